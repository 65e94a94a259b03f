"""Parameters declare what they may be; one place makes the sentence when they are not."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rankinite.core.errors import UsageError


class Constraint(Protocol):
    """What a parameter may be."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is one of those meant."""

    def __str__(self) -> str:
        """Return the words that follow "must be"."""


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low`` to ``high``, both included."""

    low: int = 0
    high: int | None = None

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a whole number in the range (True and False are not)."""
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            return False
        number = int(value)
        return self.low <= number and (self.high is None or number <= self.high)

    def __str__(self) -> str:
        if self.high is None:
            return f"a whole number of at least {self.low}"
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Real:
    """A finite number from ``low`` to ``high``; the ends are included unless said otherwise."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a finite number in the range."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return False
        try:
            number = float(value)
        except OverflowError:
            return False
        above = number > self.low if self.low_open else number >= self.low
        below = number < self.high if self.high_open else number <= self.high
        return math.isfinite(number) and above and below

    def __str__(self) -> str:
        words = []
        if math.isfinite(self.low):
            words.append(f"{'above' if self.low_open else 'at least'} {self.low:g}")
        if math.isfinite(self.high):
            words.append(f"{'below' if self.high_open else 'at most'} {self.high:g}")
        return "a finite number" + (", " if words else "") + " and ".join(words)


@dataclass(frozen=True)
class OneOf:
    """One of a few values."""

    values: Sequence[Any]

    def allows(self, value: Any) -> bool:
        """Tell whether the value is one of the few."""
        return any(type(value) is type(known) and value == known for known in self.values)

    def __str__(self) -> str:
        return "one of " + ", ".join(repr(value) for value in self.values)


LARGEST_BOUND = 1e100


@dataclass(frozen=True)
class Bounds:
    """Two numbers of at least ``low``, the smaller first."""

    low: float = -LARGEST_BOUND

    def allows(self, value: Any) -> bool:
        """Tell whether the value is two such numbers."""
        try:
            low, high = value
        except (TypeError, ValueError):
            return False
        number = Real(self.low, LARGEST_BOUND)
        return number.allows(low) and number.allows(high) and bool(low < high)

    def __str__(self) -> str:
        least = f" of at least {self.low:g}" if self.low > -LARGEST_BOUND else ""
        return f"two numbers{least}, the smaller first"


@dataclass(frozen=True)
class SourceName:
    """The name of a label source, such as a measure's text can hold."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is such a name."""
        if not isinstance(value, str):
            return False
        return value != "" and value == value.strip() and not set(value) & set("[]()>,\n")

    def __str__(self) -> str:
        return "a name without brackets, commas and >, and without spaces around it"


@dataclass(frozen=True)
class Either:
    """What either of two constraints allows."""

    first: Constraint
    second: Constraint

    def allows(self, value: Any) -> bool:
        """Tell whether one of the two allows the value."""
        return self.first.allows(value) or self.second.allows(value)

    def __str__(self) -> str:
        return f"{self.first}, or {self.second}"


def check(owner: str, name: str, value: Any, constraint: Constraint) -> None:
    """Raise a `UsageError` unless the constraint allows the value.

    Parameters
    ----------
    owner
        Whose parameter it is, as a person would write it: ``LambdaMART``, ``split``.
    name, value
        The parameter.
    constraint
        What it may be.
    """
    if not constraint.allows(value):
        raise UsageError(f"{owner}: {name} must be {constraint}; got {value!r}")
