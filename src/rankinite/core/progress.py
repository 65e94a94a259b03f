"""Progress reporting: long work reports to a `Progress`, and the caller decides how to show it."""

from __future__ import annotations

from typing import Protocol, Self


class ProgressBar:
    """Progress of one piece of work, as a context manager; this class shows nothing.

    Subclasses that show progress override `advance`, `note` and `end`.
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
    """Progress reporter: starts a bar for each piece of work."""

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
