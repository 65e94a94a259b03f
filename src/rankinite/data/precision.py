"""Features are 32-bit floats: which features that precision is too coarse for.

A 32-bit float has 24 significant bits. Rounding to it moves a value by less than a ten-millionth of
itself, far below the noise of any feature, except where all values of a feature are large and
close together, as times in seconds since 1970 are within an hour: then different values become
equal. Other tools do the same silently; here a warning names the features.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.format import some_of
from rankinite.core.types import Floats, Floats32

log = logging.getLogger("rankinite")

# Rounded values of a feature are too coarse if fewer steps than this lie between the smallest and
# the largest; trees have 255 bins.
FEWEST_STEPS = 1024
ROWS_A_BLOCK = 1 << 14


class Rounding:
    """What rounding to 32 bits does to features, which it sees block by block.

    Parameters
    ----------
    n_features
        Number of features.
    """

    def __init__(self, n_features: int) -> None:
        self.lowest: Floats = np.full(n_features, np.inf)
        self.highest: Floats = np.full(n_features, -np.inf)
        self.is_rounded = np.zeros(n_features, bool)

    def see(self, values: NDArray[Any], rounded: Floats32, columns: slice) -> None:
        """Compare some rows of these columns with what they became."""
        # 32-bit floats and bytes are what they were.
        if len(values) == 0 or np.can_cast(values.dtype, np.float32):
            return
        with np.errstate(invalid="ignore", over="ignore"):
            # NaN is not different from NaN, and smaller than nothing.
            differs = (values != rounded) & (values == values)
            self.is_rounded[columns] |= differs.any(axis=0)
            for bounds, choose in ((self.lowest, np.fmin), (self.highest, np.fmax)):
                bounds[columns] = choose(bounds[columns], choose.reduce(values, axis=0))

    @property
    def coarse(self) -> NDArray[np.int64]:
        """The features whose values differ by a few steps of 32-bit floats, or by none."""
        with np.errstate(invalid="ignore", over="ignore"):
            span = self.highest - self.lowest
            largest = np.maximum(np.abs(self.lowest), np.abs(self.highest)).astype(np.float32)
            step = np.spacing(largest).astype(np.float64)
            return np.flatnonzero(self.is_rounded & (span > 0) & (span < FEWEST_STEPS * step))

    def warn(self, names: Sequence[str]) -> None:
        """Warn of the features that are too coarse, by name."""
        if len(self.coarse):
            log.warning(
                "features are 32-bit floats, of about 7 digits, too few for the values of %s: some "
                "that differ become equal; subtract a constant, such as the smallest value, or "
                "rescale them",
                some_of([names[j] for j in self.coarse]),
            )


def to_float32(values: NDArray[Any]) -> tuple[Floats32, Rounding]:
    """Return a matrix as 32-bit floats in C order, and what that did to its columns.

    A matrix that is so already is not copied.
    """
    rounding = Rounding(values.shape[1])
    # Too large a number becomes infinite, and is refused by name later.
    with np.errstate(over="ignore"):
        if values.dtype.kind not in "fiu" or np.can_cast(values.dtype, np.float32):
            return np.asarray(values, np.float32, order="C"), rounding
        matrix = np.empty(values.shape, np.float32)
        # Block by block: a mapped file need not be in memory, and temporary arrays stay small.
        for start in range(0, len(values), ROWS_A_BLOCK):
            rows = slice(start, start + ROWS_A_BLOCK)
            matrix[rows] = values[rows]
            rounding.see(values[rows], matrix[rows], slice(None))
    return matrix, rounding
