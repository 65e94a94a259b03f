"""Numbers as whole numbers: their sums are exact, in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.types import Floats, Integers

SUM_BITS = 60
VALUE_BITS = 48


@dataclass(frozen=True)
class Units:
    """Numbers of systems for queries as whole multiples of a unit, a power of two.

    Attributes
    ----------
    counts
        How many units each number has: systems x queries, and further axes before.
    exponents
        Of the units: one for all systems and queries, and the further axes before.
    """

    counts: Integers
    exponents: NDArray[np.int32]

    @classmethod
    def of(cls, numbers: Floats) -> Units:
        """Round numbers to units so fine that no sum over queries gets beyond 2^60.

        Examples
        --------
        >>> units = Units.of(np.array([[0.5, 0.25], [1.0, 0.0]]))
        >>> units.back(units.counts.sum(axis=-1)).tolist()
        [0.75, 1.0]
        """
        largest = np.frexp(np.abs(numbers).max(axis=(-2, -1)))[1]
        exponents = largest - min(VALUE_BITS, SUM_BITS - numbers.shape[-1].bit_length())
        counts = np.rint(np.ldexp(numbers, -exponents[..., None, None]))
        return cls(counts.astype(np.int64), exponents)

    def back(self, sums: Integers) -> Floats:
        """Return the values of sums that have an axis of systems, but none of queries."""
        found: Floats = np.ldexp(sums.astype(np.float64), self.exponents[..., None])
        return found
