"""What moves away from weights have shown, and how it is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtri

from rankinite.core.params import Either, Real, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.random import generator
from rankinite.core.types import Floats, Integers
from rankinite.stats.directions import (
    Along,
    Search,
    checked_steps,
    random_direction,
    unit_vector,
)


class Worst(NamedTuple):
    """The largest value met: the number of its direction (or weight), its step and its gain."""

    number: int
    step: float
    gain: float


@dataclass(frozen=True, eq=False)
class Moves:
    """What a function is worth after moves away from a start.

    Attributes
    ----------
    start
        The value where the moves start.
    steps
        How far they go.
    values
        Directions x steps.
    n_weights
        How many weights the function has.
    """

    start: float
    steps: Floats
    values: Floats
    n_weights: int

    @property
    def numbers(self) -> Integers:
        """The number of every direction."""
        return np.arange(len(self.values))

    @property
    def highest(self) -> Floats:
        """The largest value along every direction."""
        found: Floats = self.values.max(axis=1)
        return found

    @property
    def rising(self) -> NDArray[np.bool_]:
        """Whether a direction gets above the start, at any step."""
        return self.highest > self.start

    @property
    def tying(self) -> NDArray[np.bool_]:
        """Whether a direction does not get above the start, but is equal to it at some step."""
        found: NDArray[np.bool_] = self.highest == self.start
        return found

    @property
    def n_rising(self) -> int:
        """How many directions get above the start."""
        return int(self.rising.sum())

    @property
    def n_tying(self) -> int:
        """How many directions get no higher than the start, but as high."""
        return int(self.tying.sum())

    @property
    def is_optimum(self) -> bool:
        """Whether every value is below the start: the paper counts a tie as a rise."""
        return bool((self.highest < self.start).all())

    @property
    def worst(self) -> Worst:
        """The largest value of all, which is the nearest one if none is above the start."""
        row, column = divmod(int(self.values.argmax()), len(self.steps))
        gain = float(self.values[row, column]) - self.start
        return Worst(int(self.numbers[row]), float(self.steps[column]), gain)

    def as_json(self) -> dict[str, Any]:
        """Return plain values: all there is."""
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

    def _verdict(self, those: str) -> str:
        """Say how many of those rise or tie, without the end of the sentence."""
        rising, tying, start = self.n_rising, self.n_tying, f"the start's {self.start:.6g}"
        if rising:
            more = f", and {tying} more {_verb(tying, 'tie')}" if tying else ""
            return f"{rising} of {those} {_verb(rising, 'rise')} above {start}{more}"
        if tying:
            return f"none of {those} rises above {start}, but {tying} {_verb(tying, 'tie')} with it"
        return f"none of {those} reaches {start}"

    def _nearest(self, noun: str) -> str:
        """Say in a sentence which value was the largest; nothing if it ties."""
        number, step, gain = self.worst
        if gain > 0:
            return f" The largest rise is {gain:.3g}, of {noun} {number} at step {step:g}."
        if gain < 0:
            return f" The nearest, {noun} {number}, is {-gain:.3g} below at step {step:g}."
        return ""


@dataclass(frozen=True, eq=False)
class Optimality(Moves):
    """Random directions from a start; what `local_optimality` returns.

    Attributes
    ----------
    start, steps, values, n_weights
        As in `Moves`.
    delta, epsilon
        If a share of at least epsilon of all directions rose, then the test would miss them all
        with a chance of at most delta.
    seed
        What the directions were drawn by.
    """

    delta: float
    epsilon: float
    seed: int

    @property
    def n_directions(self) -> int:
        """How many directions were tried."""
        return len(self.values)

    @property
    def confidence(self) -> float:
        """How sure the test is, of 1."""
        return 1 - self.delta

    @property
    def rise_rate_bound(self) -> float:
        """The largest share of directions that may rise, by Clopper and Pearson.

        At a larger share, so few risings as were seen come with a chance below delta. A tie counts
        as a rise, as in `is_optimum`.
        """
        n_reaching = self.n_rising + self.n_tying
        if n_reaching == self.n_directions:
            return 1.0
        return float(bdtri(n_reaching, self.n_directions, self.delta))

    def direction(self, number: int) -> Floats:
        """Draw a direction again.

        Parameters
        ----------
        number
            Of the direction, counted from 0: the row in ``values``.
        """
        check("Optimality.direction", "number", number, Whole(0, self.n_directions - 1))
        return random_direction(self.seed, number, self.n_weights)

    def as_json(self) -> dict[str, Any]:
        """Return plain values: all there is, but the directions."""
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
            bound = math.ceil(1000 * self.rise_rate_bound) / 1000
            share = self.epsilon if self.is_optimum else bound
            text += (
                f": with {_percent(self.confidence)} confidence at most {_percent(share)} reach it"
            )
        return text[0].upper() + text[1:] + "." + self._nearest("direction")


@dataclass(frozen=True, eq=False)
class SingleWeights(Moves):
    """Weights moved one by one from a start; what `single_weights` returns.

    Attributes
    ----------
    start, steps, values, n_weights
        As in `Moves`; a row of the values belongs to a weight.
    weights
        The numbers of the weights that were moved.
    """

    weights: Integers

    @property
    def numbers(self) -> Integers:
        """The number of every weight that was moved."""
        return self.weights

    def as_json(self) -> dict[str, Any]:
        """Return plain values: all there is."""
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
# How many directions are asked for at once: enough to keep processors busy, few in memory.
BLOCK = 16
# Logarithms of numbers like 0.01 are off in their last bits: this far from a whole number is none.
ROUNDING = 1e-12


def n_directions(delta: float = 0.01, epsilon: float = 0.01) -> int:
    """Return how many random directions find a rising one, if there are enough of them.

    If at least a share epsilon of all directions rises, then so many directions miss them all with
    a chance of at most delta: ln(delta) / ln(1 - epsilon), rounded up (Optimality, Sec. 5).

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
    along: Along,
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
        Gives the values along directions; `along_of` makes it from a plain function of weights.
    n_weights
        How many weights the function has.
    delta, epsilon
        How many directions to draw; see `n_directions`.
    steps
        How far to move, above 0.
    seed
        Another seed draws others. A direction depends on the seed and its number alone.
    progress
        Who wants to know how far it is.
    block
        How many directions to ask for at once.

    Examples
    --------
    >>> import rankinite as rk
    >>> found = local_optimality(rk.stats.along_of(lambda w: 1 - w @ w, np.zeros(3)), 3)
    >>> found.is_optimum
    True
    >>> print(found)  # doctest: +ELLIPSIS
    None of 459 directions reaches the start's 1: with 99% confidence at most 1% reach it. The ...
    """
    far = checked_steps("local_optimality", steps, ABOVE_0)
    search = Search("local_optimality", "direction", along, n_weights, far, seed, block)
    numbers = np.arange(n_directions(delta, epsilon))
    start, values = search.run(
        numbers, lambda number: random_direction(seed, number, n_weights), progress or Silent()
    )
    return Optimality(start, far, values, int(n_weights), float(delta), float(epsilon), int(seed))


def single_weights(
    along: Along,
    n_weights: int,
    *,
    steps: Sequence[float] | Floats = BOTH_WAYS,
    chosen: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    block: int = BLOCK,
) -> SingleWeights:
    """Test whether any weight could be better, if it alone were moved (Optimality, Sec. 7.1).

    Parameters
    ----------
    along
        Gives the values along directions; `along_of` makes it from a plain function of weights.
    n_weights
        How many weights the function has.
    steps
        How far to move a weight: up, and below 0 down.
    chosen
        How many weights to try at most, drawn at random; None tries all.
    seed
        Another seed draws other weights.
    progress
        Who wants to know how far it is.
    block
        How many weights to ask for at once.

    Examples
    --------
    >>> import rankinite as rk
    >>> along = rk.stats.along_of(lambda w: -(w[0] ** 2) - (w[1] - 0.5) ** 2, np.zeros(2))
    >>> print(single_weights(along, 2))
    Moved alone, 1 of 2 weights rises above the start's -0.25. The largest rise is 0.25, of weight \
1 at step 0.5.
    """
    far = checked_steps("single_weights", steps, NOT_0)
    search = Search("single_weights", "weight", along, n_weights, far, seed, block)
    weights = np.arange(n_weights)
    if chosen is not None:
        check("single_weights", "chosen", chosen, Whole(1))
        if chosen < n_weights:
            drawn = generator(seed, "weights").choice(n_weights, chosen, replace=False)
            weights = np.sort(drawn)
    start, values = search.run(
        weights, lambda weight: unit_vector(weight, n_weights), progress or Silent()
    )
    return SingleWeights(start, far, values, int(n_weights), weights)
