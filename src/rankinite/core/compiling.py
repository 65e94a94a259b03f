"""Says that kernels are compiled: the first use of a version waits for that, up to a minute."""

from __future__ import annotations

import logging
from typing import Any

import numba.core.event as events

log = logging.getLogger("rankinite")

COMPILE = "numba:compile"


class Listener(events.Listener):  # type: ignore[misc]
    """Says so when numba begins to compile; kernels from the disk are no matter."""

    def on_start(self, _event: Any) -> None:
        """Say it; the terminal shows a sentence once."""
        log.info("compiling for the first use, which takes up to a minute")

    def on_end(self, _event: Any) -> None:
        """Say nothing."""


def tell_of_compiling() -> None:
    """Say from now on when kernels are compiled."""
    events.register(COMPILE, Listener())
