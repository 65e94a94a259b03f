"""Fixed-point numbers: their sums are exact, and so do not depend on the order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.types import Floats, Integers

SUM_BITS = 60  # below the 63 of int64, for differences of sums
VALUE_BITS = 48  # of the largest value; the last bits of a float64 are rounding anyway


@dataclass(frozen=True)
class FixedPoint:
    """Values of systems (rows) for queries (columns) as integer multiples of a power of two.

    Attributes
    ----------
    integers
        The multiples: systems x queries, with further axes before them.
    exponents
        Exponents of the power of two, one for each index of the further axes.
    """

    integers: Integers
    exponents: NDArray[np.int32]

    @classmethod
    def from_floats(cls, numbers: Floats) -> FixedPoint:
        """Round numbers to the finest power of two at which no sum over queries exceeds 2^60.

        Examples
        --------
        >>> numbers = FixedPoint.from_floats(np.array([[0.5, 0.25], [1.0, 0.0]]))
        >>> numbers.to_floats(numbers.integers.sum(axis=-1)).tolist()
        [0.75, 1.0]
        """
        largest = np.frexp(np.abs(numbers).max(axis=(-2, -1)))[1]
        exponents = largest - min(VALUE_BITS, SUM_BITS - numbers.shape[-1].bit_length())
        integers = np.rint(np.ldexp(numbers, -exponents[..., None, None]))
        return cls(integers.astype(np.int64), exponents)

    def to_floats(self, sums: Integers) -> Floats:
        """Return the values of sums over queries."""
        values: Floats = np.ldexp(sums.astype(np.float64), self.exponents[..., None])
        return values
