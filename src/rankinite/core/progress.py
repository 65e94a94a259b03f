"""How long work tells how far it is; who shows it, and how, is not its business."""

from __future__ import annotations

from typing import Protocol, Self


class ProgressBar:
    """One piece of work under way, of which nobody sees anything; a context manager that ends it.

    Whoever shows progress overrides `advance`, `note` and `end`.
    """

    def advance(self, amount: int) -> None:
        """Say that so much more is done."""

    def note(self, text: str) -> None:
        """Say in a few words how well it goes."""

    def end(self) -> None:
        """Say that the work has ended, well or not."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.end()


class Progress(Protocol):
    """Whoever wants to know how far work is."""

    def start(self, name: str, total: int | None, unit: str) -> ProgressBar:
        """Begin a piece of work of ``total`` units (None if nobody knows)."""


class Silent:
    """The progress that nobody watches: the default everywhere."""

    def start(self, name: str, total: int | None, unit: str) -> ProgressBar:
        """Begin a piece of work without a word."""
        return ProgressBar()
