"""Values of a function of weights along directions, which tests of local optimality need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import SEED, Constraint, Whole, check
from rankinite.core.progress import Progress
from rankinite.core.random import generator
from rankinite.core.types import Floats, Integers

# Maps directions (k x weights) and steps (s) to the values (k x s) at weights + step * direction.
DirectionalValues = Callable[[Floats, Floats], Floats]


def directional_values(value: Callable[[Floats], float], weights: Floats) -> DirectionalValues:
    """Return a function that gives the values of ``value`` along directions from weights.

    Parameters
    ----------
    value
        Function of weights.
    weights
        Weights at which the directions start.

    Examples
    --------
    >>> along = directional_values(lambda weights: weights.sum(), np.array([1.0, 2.0]))
    >>> along(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.5, 1.0]))
    array([[3.5, 4. ],
           [4. , 5. ]])
    """
    origin = np.array(weights, np.float64)  # a copy, which later changes do not reach
    if origin.ndim != 1:
        raise UsageError(
            f"directional_values: weights have the shape {origin.shape}; expected one axis"
        )

    def along(directions: Floats, steps: Floats) -> Floats:
        if directions.shape[1] != len(origin):
            raise UsageError(
                f"directional_values: there are {len(origin)} weights, but directions of "
                f"{directions.shape[1]}; give n_weights={len(origin)}"
            )
        return np.array([[_number(value(origin + s * d)) for s in steps] for d in directions])

    return along


def random_direction(seed: int, number: int, n_weights: int) -> Floats:
    """Draw a direction uniformly from the unit sphere: a Gaussian is the same in all directions."""
    drawn = generator(seed, "direction", number).standard_normal(n_weights)
    # Not by np.linalg.norm: sums by BLAS may depend on the number of threads.
    length = math.sqrt(np.square(drawn).sum())
    return drawn / length


def unit_vector(weight: int, n_weights: int) -> Floats:
    """Return the direction that changes one weight alone."""
    vector = np.zeros(n_weights)
    vector[weight] = 1.0
    return vector


def checked_steps(owner: str, steps: Sequence[float] | Floats, constraint: Constraint) -> Floats:
    """Return steps as an array; there must be some, and the constraint must allow each."""
    if np.ndim(steps) != 1 or len(steps) == 0:
        raise UsageError(f"{owner}: steps must be one or more numbers in a list; got {steps!r}")
    for step in steps:
        check(owner, "every step", step, constraint)
    return np.array(steps, np.float64)


@dataclass(frozen=True)
class DirectionEvaluator:
    """Evaluates a function along directions, in blocks, and checks the values.

    Attributes
    ----------
    owner, noun
        Name of the caller, and its word for a direction, for errors and progress.
    along, n_weights, steps, seed, block
        As in `local_optimality`.
    """

    owner: str
    noun: str
    along: DirectionalValues
    n_weights: int
    steps: Floats
    seed: int
    block: int

    def __post_init__(self) -> None:
        if not callable(self.along):
            raise UsageError(
                f"{self.owner}: along is a {type(self.along).__name__}; expected a function, such "
                "as directional_values(value, weights) returns"
            )
        check(self.owner, "n_weights", self.n_weights, Whole(1))
        check(self.owner, "seed", self.seed, SEED)
        check(self.owner, "block", self.block, Whole(1))

    def evaluate(
        self, numbers: Integers, direction: Callable[[int], Floats], progress: Progress
    ) -> tuple[float, Floats]:
        """Return the value at the start, and the values along the directions with these numbers."""
        start = self._start()
        values = np.empty((len(numbers), len(self.steps)))
        with progress.start(f"{self.noun}s".title(), len(numbers), f"{self.noun}s") as bar:
            for first in range(0, len(numbers), self.block):
                block = numbers[first : first + self.block]
                directions = np.array([direction(int(k)) for k in block])
                block_values = self._evaluate(directions, self.steps)
                self._check_finite(block, block_values)
                values[first : first + self.block] = block_values
                bar.advance(len(block))
        return start, values

    def _start(self) -> float:
        """Return the value at the start, computed like the others, so that ties are exact."""
        start = float(self._evaluate(np.zeros((1, self.n_weights)), np.zeros(1))[0, 0])
        if not math.isfinite(start):
            raise DataError(
                f"{self.owner}: the value at the start is {start}; expected a finite number: give "
                "weights at which the function has one"
            )
        return start

    def _evaluate(self, directions: Floats, steps: Floats) -> Floats:
        values = np.asarray(self.along(directions, steps))
        expected = (len(directions), len(steps))
        if values.shape != expected or values.dtype.kind not in "biuf":
            raise UsageError(
                f"{self.owner}: for {expected[0]} directions and {expected[1]} steps, along gives "
                f"{values.dtype} values of the shape {values.shape}; expected numbers of the shape "
                f"{expected}"
            )
        return values.astype(np.float64)

    def _check_finite(self, numbers: Integers, values: Floats) -> None:
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            row, column = wrong[0]
            raise DataError(
                f"{self.owner}: the value of {self.noun} {numbers[row]} at step "
                f"{self.steps[column]:g} is {values[row, column]}; expected finite values: give "
                "steps at which the function has them"
            )


def _number(value: Any) -> float:
    try:
        if np.ndim(value) == 0:
            return float(value)
    except (TypeError, ValueError):
        pass
    raise UsageError(
        f"directional_values: the function gives a {type(value).__name__}, {value!r}; "
        "expected a number"
    )
