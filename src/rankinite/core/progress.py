"""Progress reporting: long work reports to a `Progress`, and the caller decides how to show it.

`Silent` shows nothing; a `Reporter` shows bars on a terminal, or lines in a log file. Both are for
those who ask: the command line, and ``progress=True``.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from rankinite.core.errors import UsageError
from rankinite.core.format import visible

if TYPE_CHECKING:
    import rich.progress

# Shorter work shows no progress: a bar that flashes up is noise.
SECONDS_BEFORE_BAR = 1.0
# Between lines of progress in a log file; a note alone, such as one of each tree, is worth less.
SECONDS_BETWEEN_LINES = 5.0
SECONDS_OF_SILENCE = 60.0
BAR_WIDTH = 20
# The bar, 4,000/10,000 and 0:00:00, with spaces between; the note gets the rest of the line.
BAR_ROOM = BAR_WIDTH + 25


class ProgressBar:
    """Progress of one piece of work, as a context manager; this class shows nothing.

    Subclasses that show progress override `advance`, `note` and `end`. What they raise ends the
    work.
    """

    def advance(self, amount: int) -> None:
        """Report that ``amount`` more units are done."""

    def note(self, text: str) -> None:
        """Show a short text beside the bar, such as the latest value of a measure."""

    def end(self) -> None:
        """Report that the work has ended, also after an exception."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.end()


class Progress(Protocol):
    """Progress reporter: an object whose ``start`` begins a bar for each piece of work.

    It is a protocol: any class with this method will do, and need not inherit from it.

    Examples
    --------
    >>> import rankinite as rk
    >>> class Dots(rk.ProgressBar):
    ...     def advance(self, amount):
    ...         print("." * amount, end="")
    ...
    ...     def end(self):
    ...         print()
    >>> class Printing:
    ...     def start(self, name, total, unit):
    ...         print(f"{name}, {total} {unit}: ", end="")
    ...         return Dots()
    >>> data = rk.polynomials(20, n_features=3)
    >>> model = rk.LambdaMART(n_trees=5).fit(data, progress=Printing())
    training, 5 trees: .....
    """

    def start(self, name: str, total: int | None, unit: str) -> ProgressBar:
        """Start a piece of work.

        Parameters
        ----------
        name
            Name of the work, to be shown.
        total
            Number of units; None if it is unknown.
        unit
            Name of the units, in the plural: ``documents``.
        """


class Silent:
    """Progress reporter that shows nothing; the default everywhere."""

    def start(self, name: str, total: int | None, unit: str) -> ProgressBar:
        """Start a piece of work without showing it."""
        return ProgressBar()


@dataclass(frozen=True)
class Reporter:
    """A progress reporter that shows every piece of work as a `Bar`, or as `Lines`."""

    kind: Callable[[str, int | None, str], ProgressBar]

    def start(self, name: str, total: int | None, unit: str) -> ProgressBar:
        """Begin a piece of work."""
        return self.kind(name, total, unit)


class _DelayedBar(ProgressBar):
    """Progress that appears after a second, even if nothing has advanced by then.

    Work may be a single call of a kernel that reports nothing before its end, so a timer lets the
    bar appear, in a thread of its own.
    """

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        self.name = visible(name)
        self.total = total
        self.unit = unit
        self.done = 0
        self.note_text = ""
        self.has_ended = False
        # Without it, a bar could appear after the work has ended, and would stay.
        self.lock = threading.Lock()
        self.timer = threading.Timer(SECONDS_BEFORE_BAR, self._appear)
        self.timer.daemon = True  # must not keep a process alive that Ctrl-C ends
        self.timer.start()

    def _appear(self) -> None:
        with self.lock:
            if not self.has_ended:
                self._show()

    def _show(self) -> None:
        """Show the progress for the first time."""

    def end(self) -> None:
        """Let nothing appear any more."""
        with self.lock:
            self.has_ended = True
        self.timer.cancel()


class Bar(_DelayedBar):
    """A bar on the error stream, which goes away when the work is done."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        # Before the timer starts, which may draw.
        self.drawn: rich.progress.Progress | None = None
        super().__init__(name, total, unit)

    def advance(self, amount: int) -> None:
        """Move the bar on."""
        self.done += amount
        self._update()

    def note(self, text: str) -> None:
        """Show a text behind the bar."""
        self.note_text = visible(text)
        self._update()

    def _update(self) -> None:
        if self.drawn is not None:
            room = self.drawn.console.width - len(self.name) - BAR_ROOM
            # The bar stays on one line.
            fits = len(self.note_text) <= room
            note = self.note_text if fits else self.note_text[: max(0, room - 1)] + "…"
            self.drawn.update(self.drawn.task_ids[0], completed=self.done, note=note)

    def _show(self) -> None:
        self.drawn = self._draw()
        self._update()

    def _draw(self) -> rich.progress.Progress:
        import rich.console
        import rich.progress as parts

        count = parts.DownloadColumn() if self.unit == "bytes" else parts.MofNCompleteColumn()
        bar = parts.Progress(
            parts.TextColumn("{task.description}", markup=False),
            parts.BarColumn(BAR_WIDTH),
            count,
            parts.TimeRemainingColumn(),
            parts.TextColumn("{task.fields[note]}", markup=False),
            console=rich.console.Console(stderr=True),
            transient=True,
        )
        bar.add_task(self.name, total=self.total, note="")
        bar.start()
        return bar

    def end(self) -> None:
        """Remove the bar."""
        super().end()
        if self.drawn is not None:
            self.drawn.stop()


class Lines(_DelayedBar):
    """Plain lines on the error stream, every few seconds: for log files of long runs."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        self.started = self.last_line = time.monotonic()
        self.resumed: int | None = None
        super().__init__(name, total, unit)

    def advance(self, amount: int) -> None:
        """Print a line if the last one is some seconds old."""
        # What is reported at once was done by an earlier run: it says nothing of the speed.
        if self.resumed is None:
            self.resumed = amount if time.monotonic() - self.started < SECONDS_BEFORE_BAR else 0
        self.done += amount
        if time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES:
            self._print()

    def note(self, text: str) -> None:
        """Keep the text for the next line; print one if there was none for long."""
        self.note_text = visible(text)
        if time.monotonic() - self.last_line > SECONDS_OF_SILENCE:
            self._print()

    def _show(self) -> None:
        if self.note_text:
            self._print()

    def end(self) -> None:
        """Print the last line."""
        super().end()
        if time.monotonic() - self.started > SECONDS_BEFORE_BAR:
            self._print()

    def _print(self) -> None:
        self.last_line = time.monotonic()
        of = "" if self.total is None else f" of {self.total:,}"
        parts = [f"{self.name}: {self.done:,}{of} {self.unit}", *self._time_left()]
        parts += [self.note_text] if self.note_text else []
        with contextlib.suppress(OSError):  # a full disk, or nobody who reads it, ends no work
            sys.stderr.write(", ".join(parts) + "\n")
            sys.stderr.flush()  # somebody may follow the log

    def _time_left(self) -> list[str]:
        new = self.done - (self.resumed or 0)
        # A guess needs work that this process has done itself.
        if self.total is None or new <= 0 or self.done >= self.total:
            return []
        seconds = (self.last_line - self.started) / new * (self.total - self.done)
        minutes, rest = divmod(round(seconds), 60)
        return [f"{minutes}:{rest:02} left"]


def as_progress(owner: str, progress: Progress | bool | None) -> Progress:
    """Return the progress reporter that the caller asked for.

    Parameters
    ----------
    owner
        Who works, for messages.
    progress
        A reporter; True for a bar on a terminal, and lines elsewhere; nothing for False and None.
    """
    if progress is None or progress is False:
        return Silent()
    if progress is True:
        return Reporter(Bar if sys.stderr.isatty() else Lines)
    if not callable(getattr(progress, "start", None)):
        raise UsageError(
            f"{owner}: progress is {progress!r}; expected True, False or a progress reporter, an "
            "object with a method start (rankinite.Progress)"
        )
    return progress
