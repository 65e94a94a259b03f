"""Ctrl-C that lets the current round, a tree or an epoch, finish."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any, Self


class Interruption:
    """Treats Ctrl-C as a request to stop after the current round; a second one stops at once.

    Before the first round is done there is nothing to keep, so the first one stops at once too.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self.has_rounds = False
        self.previous_handler: Any = None

    def after_round(self) -> bool:
        """Return whether to stop; called after every round."""
        self.has_rounds = True
        return self.is_requested

    def __enter__(self) -> Self:
        self.previous_handler = signal.getsignal(signal.SIGINT)
        if self.previous_handler is not signal.SIG_IGN:  # as under nohup, and behind a shell's &
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_problem: object) -> None:
        signal.signal(signal.SIGINT, self.previous_handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_requested or not self.has_rounds:
            raise KeyboardInterrupt
        self.is_requested = True
