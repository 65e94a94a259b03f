"""What moves away from weights have shown, and how it is told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtri

from rankinite.core.params import Whole, check
from rankinite.stats.optimality_along import random_direction
from rankinite.stats.units import Floats, Integers


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
