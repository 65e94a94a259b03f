"""Ctrl-C, and requests to end: every command leaves by them in the same way.

They raise KeyboardInterrupt, so that files are removed and workers end on the way out, whether
somebody pressed Ctrl-C, a scheduler ended the job or a terminal was closed. It is not raised within
an import: half of a module, or a package that takes any exception there for a part that is not
installed, would end in other errors, or go on without saying so.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
import threading
from types import FrameType
from typing import Any, Self

SECONDS_BEFORE_REPEAT = 0.05
IMPORTING = "<frozen importlib._bootstrap>"  # the file of the functions that import
NAMES = {"SIGINT": "Interrupted", "SIGTERM": "Terminated", "SIGHUP": "Hung up"}
# Shells report the end by a signal so.
FIRST_CODE = 128


class Signals:
    """Handles signals while a command runs; what they did before is restored in the end.

    Attributes
    ----------
    number
        The last signal that arrived; None before the first.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._previous: dict[int, Any] = {}
        self._previous_hook = sys.unraisablehook

    @property
    def code(self) -> int:
        """The exit code of a command that was stopped."""
        return FIRST_CODE + (self.number or signal.SIGINT)

    @property
    def sentence(self) -> str:
        """What is said when a command was stopped."""
        return NAMES[signal.Signals(self.number or signal.SIGINT).name]

    def __enter__(self) -> Self:
        self._previous_hook = sys.unraisablehook
        sys.unraisablehook = self._on_unraisable
        for name in NAMES:
            # Under nohup, and behind a shell's &, some are meant for others.
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._handle(number, self._on_signal)
        if hasattr(signal, "setitimer"):
            self._handle(signal.SIGALRM, self._on_alarm)
        return self

    def _handle(self, number: int, handler: Any) -> None:
        # Signals arrive in the main thread, and can be handled by nobody else.
        with contextlib.suppress(ValueError):
            self._previous[number] = signal.signal(number, handler)

    def __exit__(self, *_problem: object) -> None:
        sys.unraisablehook = self._previous_hook
        if hasattr(signal, "setitimer") and self._previous:
            signal.setitimer(signal.ITIMER_REAL, 0)
        while self._previous:
            signal.signal(*self._previous.popitem())

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        insists, self.number = self.number is not None, number
        if not insists and _is_importing(frame):
            self._repeat()
            return
        raise KeyboardInterrupt

    def _on_alarm(self, _number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            self._repeat()
            return
        raise KeyboardInterrupt

    def _on_unraisable(self, unraisable: Any) -> None:
        """Repeat what arrived where Python cannot raise it, such as in a finaliser."""
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self._repeat()
        else:
            sys.__unraisablehook__(unraisable)

    def _repeat(self) -> None:
        if getattr(signal, "SIGALRM", None) in self._previous:
            signal.setitimer(signal.ITIMER_REAL, SECONDS_BEFORE_REPEAT)
        else:
            threading.Timer(SECONDS_BEFORE_REPEAT, _thread.interrupt_main).start()


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == IMPORTING:
            return True
        frame = frame.f_back
    return False
