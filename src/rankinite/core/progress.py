"""How long work tells how far it is; who shows it, and how, is not its business."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self


class Task(Protocol):
    """One piece of work under way; a context manager that ends it."""

    def advance(self, amount: int) -> None:
        """Say that so much more is done."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Progress(Protocol):
    """Whoever wants to know how far work is."""

    def start(self, name: str, total: int | None, unit: str) -> Task:
        """Begin a piece of work of ``total`` units (None if nobody knows)."""


class _SilentTask:
    def advance(self, amount: int) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class Silent:
    """The progress that nobody watches: the default everywhere."""

    def start(self, name: str, total: int | None, unit: str) -> Task:
        """Begin a piece of work without a word."""
        return _SilentTask()
