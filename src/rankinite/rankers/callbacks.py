"""Callbacks: functions that are called with a `Round` after every round of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rankinite.core.errors import UsageError

# The value of every measure on every validation set.
Values = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Round:
    """What callbacks get after every round.

    Attributes
    ----------
    number
        Number of rounds that are done.
    values
        The value of every measure on every validation set: ``values["valid"]["NDCG@10"]``.
    """

    number: int
    values: Values

    def __str__(self) -> str:
        return "  ".join(
            f"{name} {measure} {value:.4f}"
            for name, values in self.values.items()
            for measure, value in values.items()
        )


# One that returns True stops the fit.
Callback = Callable[[Round], object]


def as_callbacks(owner: str, callbacks: Any) -> list[Callback]:
    """Return the callbacks of the user, one or several, as a list."""
    listed = [callbacks] if callable(callbacks) else list(callbacks)
    for callback in listed:
        if not callable(callback):
            raise UsageError(f"{owner}: the callback {callback!r} cannot be called; give functions")
    return listed
