"""Ctrl-C that lets the current round finish: a tree, or an epoch."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any, Self


class Interruption:
    """Takes Ctrl-C as a wish to stop after the current round; a second one stops at once.

    Before the first round is done there is nothing to keep, and the first stops at once as well.
    """

    def __init__(self) -> None:
        self.is_wanted = False
        self.has_rounds = False
        self.before: Any = None

    def after_round(self) -> bool:
        """Tell whether to stop; called after every round."""
        self.has_rounds = True
        return self.is_wanted

    def __enter__(self) -> Self:
        self.before = signal.getsignal(signal.SIGINT)
        if self.before is not signal.SIG_IGN:  # as under nohup, and behind a shell's &
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_problem: object) -> None:
        signal.signal(signal.SIGINT, self.before)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_wanted or not self.has_rounds:
            raise KeyboardInterrupt
        self.is_wanted = True
