"""Values of a function of weights along directions: what tests of optimality ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import Constraint, Whole, check
from rankinite.core.progress import Progress
from rankinite.core.random import generator
from rankinite.core.types import Floats, Integers

# Given directions (k x weights) and steps (s), the values (k x s) at weights + step * direction.
Along = Callable[[Floats, Floats], Floats]


def along_of(value: Callable[[Floats], float], weights: Floats) -> Along:
    """Return what gives the values of a plain function along directions from given weights.

    Parameters
    ----------
    value
        Gives a number for weights.
    weights
        Where directions start.

    Examples
    --------
    >>> along = along_of(lambda weights: weights.sum(), np.array([1.0, 2.0]))
    >>> along(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.5, 1.0]))
    array([[3.5, 4. ],
           [4. , 5. ]])
    """
    origin = np.array(weights, np.float64)
    if origin.ndim != 1:
        raise UsageError(f"along_of: weights have the shape {origin.shape}; expected one axis")

    def along(directions: Floats, steps: Floats) -> Floats:
        if directions.shape[1] != len(origin):
            raise UsageError(
                f"along_of: there are {len(origin)} weights, but directions of "
                f"{directions.shape[1]}; give n_weights={len(origin)}"
            )
        return np.array([[_number(value(origin + s * d)) for s in steps] for d in directions])

    return along


def random_direction(seed: int, number: int, n_weights: int) -> Floats:
    """Draw a direction, uniform on the unit sphere: a Gaussian knows no direction."""
    drawn = generator(seed, "direction", number).standard_normal(n_weights)
    # Not by BLAS: its sums may depend on the number of threads.
    length = math.sqrt(np.square(drawn).sum())
    return drawn / length


def unit_vector(weight: int, n_weights: int) -> Floats:
    """Return the direction of one weight."""
    vector = np.zeros(n_weights)
    vector[weight] = 1.0
    return vector


def checked_steps(owner: str, steps: Sequence[float] | Floats, may_be: Constraint) -> Floats:
    """Return steps as an array, if there are any and they are what they may be."""
    if np.ndim(steps) != 1 or len(steps) == 0:
        raise UsageError(f"{owner}: steps must be one or more numbers in a list; got {steps!r}")
    for step in steps:
        check(owner, "every step", step, may_be)
    return np.array(steps, np.float64)


@dataclass(frozen=True)
class Search:
    """Asks for values along directions, and checks what it is given.

    Attributes
    ----------
    owner, noun
        Who asks, and what it calls a direction: errors and progress say so.
    along, n_weights, steps, seed, block
        As `local_optimality` explains them.
    """

    owner: str
    noun: str
    along: Along
    n_weights: int
    steps: Floats
    seed: int
    block: int

    def __post_init__(self) -> None:
        if not callable(self.along):
            raise UsageError(
                f"{self.owner}: along is a {type(self.along).__name__}; expected a function, such "
                "as along_of(value, weights) makes"
            )
        check(self.owner, "n_weights", self.n_weights, Whole(1))
        check(self.owner, "seed", self.seed, Whole(0))
        check(self.owner, "block", self.block, Whole(1))

    def run(
        self, numbers: Integers, direction: Callable[[int], Floats], progress: Progress
    ) -> tuple[float, Floats]:
        """Return the value at the start, and the values along the directions of these numbers."""
        start = self._start()
        values = np.empty((len(numbers), len(self.steps)))
        with progress.start(f"{self.noun}s".title(), len(numbers), f"{self.noun}s") as bar:
            for first in range(0, len(numbers), self.block):
                some = numbers[first : first + self.block]
                found = self._ask(np.array([direction(int(k)) for k in some]), self.steps)
                self._check_finite(some, found)
                values[first : first + self.block] = found
                bar.advance(len(some))
        return start, values

    def _start(self) -> float:
        """Return the value at the start, by the same way as the others: a tie is a tie."""
        start = float(self._ask(np.zeros((1, self.n_weights)), np.zeros(1))[0, 0])
        if not math.isfinite(start):
            raise DataError(
                f"{self.owner}: the value at the start is {start}; expected a finite number: give "
                "weights at which the function has one"
            )
        return start

    def _ask(self, directions: Floats, steps: Floats) -> Floats:
        found = np.asarray(self.along(directions, steps))
        expected = (len(directions), len(steps))
        if found.shape != expected or found.dtype.kind not in "biuf":
            raise UsageError(
                f"{self.owner}: for {expected[0]} directions and {expected[1]} steps, along gives "
                f"{found.dtype} values of the shape {found.shape}; expected numbers of the shape "
                f"{expected}"
            )
        return found.astype(np.float64)

    def _check_finite(self, numbers: Integers, values: Floats) -> None:
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            row, column = wrong[0]
            raise DataError(
                f"{self.owner}: the value of {self.noun} {numbers[row]} at step "
                f"{self.steps[column]:g} is {values[row, column]}; expected finite values: give "
                "steps at which the function has them"
            )


def _number(found: Any) -> float:
    try:
        if np.ndim(found) == 0:
            return float(found)
    except (TypeError, ValueError):
        pass
    raise UsageError(
        f"along_of: the function gives a {type(found).__name__}, {found!r}; expected a number"
    )
