"""Tests whether weights are a local optimum, by moving them (Optimality, Sec. 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankinite.core.lazy import LazyModule
from rankinite.core.params import Either, Real, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.random import generator
from rankinite.core.types import Floats, Integers, Mask
from rankinite.stats.directions import (
    DirectionalValues,
    DirectionEvaluator,
    checked_steps,
    random_direction,
    unit_vector,
)

special: Any = LazyModule("scipy.special")


class Worst(NamedTuple):
    """The largest value: the number of its direction (or weight), its step and its gain."""

    number: int
    step: float
    gain: float


@dataclass(frozen=True, eq=False)
class Perturbations:
    """Values of a function after its weights were moved away from a start.

    Attributes
    ----------
    start
        Value at the start.
    steps
        Lengths of the moves.
    values
        Values after the moves: directions x steps.
    n_weights
        Number of weights of the function.
    """

    start: float
    steps: Floats
    values: Floats
    n_weights: int

    @property
    def numbers(self) -> Integers:
        """Number of each direction."""
        return np.arange(len(self.values))

    @property
    def highest(self) -> Floats:
        """Largest value along each direction."""
        highest: Floats = self.values.max(axis=1)
        return highest

    @property
    def rising(self) -> Mask:
        """Whether each direction rises above the start at some step."""
        return self.highest > self.start

    @property
    def tying(self) -> Mask:
        """Whether each direction never rises above the start, but equals it at some step."""
        tying: Mask = self.highest == self.start
        return tying

    @property
    def n_rising(self) -> int:
        """Number of directions that rise above the start."""
        return int(self.rising.sum())

    @property
    def n_tying(self) -> int:
        """Number of directions that tie with the start."""
        return int(self.tying.sum())

    @property
    def is_optimum(self) -> bool:
        """Whether every value is below the start; as in the paper, a tie counts as a rise."""
        return bool((self.highest < self.start).all())

    @property
    def worst(self) -> Worst:
        """The largest of all values, whether or not it is above the start."""
        row, column = divmod(int(self.values.argmax()), len(self.steps))
        gain = float(self.values[row, column]) - self.start
        return Worst(int(self.numbers[row]), float(self.steps[column]), gain)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {
            "start": self.start,
            "is_optimum": self.is_optimum,
            "n_weights": self.n_weights,
            "n_rising": self.n_rising,
            "n_tying": self.n_tying,
            "worst": self.worst._asdict(),
            "steps": self.steps.tolist(),
            "values": self.values.tolist(),
        }

    def _verdict(self, moved: str) -> str:
        """Return how many of what was moved rise or tie, without the end of the sentence."""
        rising, tying, start = self.n_rising, self.n_tying, f"the start's {self.start:.6g}"
        if rising:
            more = f", and {tying} more {_verb(tying, 'tie')}" if tying else ""
            return f"{rising} of {moved} {_verb(rising, 'rise')} above {start}{more}"
        if tying:
            return f"none of {moved} rises above {start}, but {tying} {_verb(tying, 'tie')} with it"
        return f"none of {moved} reaches {start}"

    def _nearest(self, noun: str) -> str:
        """Return a sentence about the largest value; an empty text if it ties."""
        number, step, gain = self.worst
        if gain > 0:
            return f" The largest rise is {gain:.3g}, of {noun} {number} at step {step:g}."
        if gain < 0:
            return f" The nearest, {noun} {number}, is {-gain:.3g} below at step {step:g}."
        return ""


@dataclass(frozen=True, eq=False)
class Optimality(Perturbations):
    """Result of `local_optimality`: moves in random directions from a start.

    Attributes
    ----------
    start, steps, values, n_weights
        As in `Perturbations`.
    delta, epsilon
        If a share of at least epsilon of all directions rose, the test would miss all of them with
        a probability of at most delta.
    seed
        Seed of the directions.
    """

    delta: float
    epsilon: float
    seed: int

    @property
    def n_directions(self) -> int:
        """Number of directions."""
        return len(self.values)

    @property
    def confidence(self) -> float:
        """Confidence of the test, 1 - delta."""
        return 1 - self.delta

    @property
    def rise_rate_bound(self) -> float:
        """Upper bound of the share of directions that rise, by Clopper and Pearson.

        At a larger share, as few rises as observed have a probability below delta. A tie counts
        as a rise, as in `is_optimum`.
        """
        n_reaching = self.n_rising + self.n_tying
        if n_reaching == self.n_directions:
            return 1.0
        return float(special.bdtri(n_reaching, self.n_directions, self.delta))

    def direction(self, number: int) -> Floats:
        """Return a direction, drawn again.

        Parameters
        ----------
        number
            Number of the direction from 0, its row in ``values``.
        """
        # Directions are not kept: their seed and their number tell them.
        check("Optimality.direction", "number", number, Whole(0, self.n_directions - 1))
        return random_direction(self.seed, number, self.n_weights)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file, without the directions."""
        return {
            "n_directions": self.n_directions,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "confidence": self.confidence,
            "seed": self.seed,
            "rise_rate_bound": self.rise_rate_bound,
            **super().as_json(),
        }

    def __str__(self) -> str:
        text = self._verdict(f"{self.n_directions} directions")
        if not self.n_rising:
            # Rounded up, for it is an upper bound.
            bound = math.ceil(1000 * self.rise_rate_bound) / 1000
            share = self.epsilon if self.is_optimum else bound
            text += (
                f": with {_percent(self.confidence)} confidence at most {_percent(share)} reach it"
            )
        return text[0].upper() + text[1:] + "." + self._nearest("direction")


@dataclass(frozen=True, eq=False)
class SingleWeights(Perturbations):
    """Result of `single_weights`: weights moved one by one from a start.

    Attributes
    ----------
    start, steps, values, n_weights
        As in `Perturbations`; each row of the values belongs to a weight.
    weights
        Numbers of the weights that were moved.
    """

    weights: Integers

    @property
    def numbers(self) -> Integers:
        """Number of each weight that was moved."""
        return self.weights

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {"weights": self.weights.tolist(), **super().as_json()}

    def __str__(self) -> str:
        n_moved = len(self.weights)
        drawn = "" if n_moved == self.n_weights else f" drawn from {self.n_weights}"
        verdict = self._verdict(f"{n_moved} weights{drawn}")
        return f"Moved alone, {verdict}.{self._nearest('weight')}"


def _verb(count: int, plural: str) -> str:
    return f"{plural}s" if count == 1 else plural


def _percent(share: float) -> str:
    return f"{100 * share:g}%"


STEPS = tuple(k / 10 for k in range(1, 11))
BOTH_WAYS = tuple(k / 10 for k in range(-10, 11) if k != 0)
ABOVE_0 = Real(0, low_open=True)
NOT_0 = Either(ABOVE_0, Real(high=0, high_open=True))
# Directions evaluated at once: enough to keep the processors busy, few enough for memory.
BLOCK = 16
# Logarithms of numbers like 0.01 are off in their last bits, and ceil would turn that into one more
# direction: a relative distance below this from a whole number is rounding.
ROUNDING = 1e-12


def n_directions(delta: float = 0.01, epsilon: float = 0.01) -> int:
    """Return the number of random directions that a test of local optimality needs.

    If at least a share epsilon of all directions rises, then this many directions miss all of them
    with a probability of at most delta: ln(delta) / ln(1 - epsilon), rounded up (Optimality,
    Sec. 5).

    Examples
    --------
    >>> n_directions(0.01, 0.01)
    459
    """
    check("n_directions", "delta", delta, Real(0, 1, low_open=True, high_open=True))
    check("n_directions", "epsilon", epsilon, Real(1e-6, 1, high_open=True))
    exact = math.log(delta) / math.log1p(-epsilon)
    whole = round(exact)
    return whole if math.isclose(exact, whole, rel_tol=ROUNDING) else math.ceil(exact)


def local_optimality(
    along: DirectionalValues,
    n_weights: int,
    *,
    delta: float = 0.01,
    epsilon: float = 0.01,
    steps: Sequence[float] | Floats = STEPS,
    seed: int = 0,
    progress: Progress | None = None,
    block: int = BLOCK,
) -> Optimality:
    """Test whether weights are a local optimum, by random directions (Optimality, Sec. 5).

    Directions are drawn uniformly from the unit sphere. If none of them reaches the value at the
    start, at any step, then fewer than a share epsilon of all directions do, with a confidence of
    1 - delta.

    Parameters
    ----------
    along
        Function of directions and steps that returns values; `directional_values` makes it from a
        function of weights.
    n_weights
        Number of weights of the function.
    delta, epsilon
        Determine the number of directions; see `n_directions`.
    steps
        Lengths of the moves, above 0.
    seed
        Seed of the directions. A direction depends on the seed and its number alone.
    progress
        Progress reporter.
    block
        Number of directions in a call of ``along``.

    Examples
    --------
    >>> import rankinite as rk
    >>> along = rk.stats.directional_values(lambda w: 1 - w @ w, np.zeros(3))
    >>> optimality = local_optimality(along, 3)
    >>> optimality.is_optimum
    True
    >>> print(optimality)  # doctest: +ELLIPSIS
    None of 459 directions reaches the start's 1: with 99% confidence at most 1% reach it. The ...
    """
    owner = "local_optimality"
    lengths = checked_steps(owner, steps, ABOVE_0)
    evaluator = DirectionEvaluator(owner, "direction", along, n_weights, lengths, seed, block)
    numbers = np.arange(n_directions(delta, epsilon))
    start, values = evaluator.evaluate(
        numbers, lambda number: random_direction(seed, number, n_weights), progress or Silent()
    )
    return Optimality(
        start, lengths, values, int(n_weights), float(delta), float(epsilon), int(seed)
    )


def single_weights(
    along: DirectionalValues,
    n_weights: int,
    *,
    steps: Sequence[float] | Floats = BOTH_WAYS,
    chosen: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    block: int = BLOCK,
) -> SingleWeights:
    """Test whether moving any single weight improves the value (Optimality, Sec. 7.1).

    Parameters
    ----------
    along
        Function of directions and steps that returns values; `directional_values` makes it from a
        function of weights.
    n_weights
        Number of weights of the function.
    steps
        Lengths of the moves; negative ones move a weight down.
    chosen
        Maximum number of weights to move, drawn at random; None moves all.
    seed
        Seed of the weights that are drawn.
    progress
        Progress reporter.
    block
        Number of weights in a call of ``along``.

    Examples
    --------
    >>> import rankinite as rk
    >>> def value(weights):
    ...     return -(weights[0] ** 2) - (weights[1] - 0.5) ** 2
    >>> along = rk.stats.directional_values(value, np.zeros(2))
    >>> print(single_weights(along, 2))
    Moved alone, 1 of 2 weights rises above the start's -0.25. The largest rise is 0.25, of weight \
1 at step 0.5.
    """
    owner = "single_weights"
    lengths = checked_steps(owner, steps, NOT_0)
    evaluator = DirectionEvaluator(owner, "weight", along, n_weights, lengths, seed, block)
    weights = np.arange(n_weights)
    if chosen is not None:
        check(owner, "chosen", chosen, Whole(1))
        if chosen < n_weights:
            drawn = generator(seed, "weights").choice(n_weights, chosen, replace=False)
            weights = np.sort(drawn)
    start, values = evaluator.evaluate(
        weights, lambda weight: unit_vector(weight, n_weights), progress or Silent()
    )
    return SingleWeights(start, lengths, values, int(n_weights), weights)
