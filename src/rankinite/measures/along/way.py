"""How scores depend on alpha."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError
from rankinite.core.kernels import frozen
from rankinite.measures.along.parts import Lines

Floats = NDArray[np.float64]

# Of scores: what rounding may do to them, and how large they may be.
NEAR_START = 4e-15
LARGEST_SCORE = 1e150


@dataclass(frozen=True)
class Way:
    """How scores depend on alpha.

    Attributes
    ----------
    one, other
        Two scores of each document; or with ``convex`` False a score and its slope.
    low, high
        The bounds of alpha.
    convex
        Whether scores are (1 - alpha) one + alpha other, or one + alpha other.
    """

    one: Floats
    other: Floats
    low: float
    high: float
    convex: bool

    def scores(self, alpha: float) -> Floats:
        """Return the scores at alpha."""
        if self.convex:
            return mixed(self.one, self.other, alpha)
        return np.asarray(self.one + alpha * self.other)

    def alphas(self, t: Floats | float) -> Floats:
        """Return the alphas at places along the lines; the last is the bound itself."""
        inside = np.minimum(self.low + t, self.high)
        return np.asarray(np.where(t >= self.high - self.low, self.high, inside))

    def lines(self) -> Lines:
        """Return the lines of all documents, from low on."""
        first = np.ascontiguousarray(self.scores(self.low), np.float64)
        second = np.ascontiguousarray(self.other, np.float64)
        largest, of_second = np.abs(first).max(), np.abs(second).max()
        for size in (largest, of_second, np.abs(self.scores(self.high)).max()):
            if not size <= LARGEST_SCORE:
                raise DataError(
                    f"scores: they reach {size:g} within the bounds of alpha; expected at most "
                    f"{LARGEST_SCORE:g}"
                )
        rise = of_second + self.convex * largest
        near = NEAR_START * float(largest / rise) if rise > 0.0 else 0.0
        end = self.high - self.low
        return Lines(frozen(first), frozen(second), float(self.convex), end, near)


def mixed(one: Floats, other: Floats, alpha: float) -> Floats:
    """Return (1 - alpha) one + alpha other."""
    return np.asarray((1.0 - alpha) * one + alpha * other)
