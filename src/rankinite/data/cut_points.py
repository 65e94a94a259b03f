"""The ranks of one feature's values, for values that were seen and for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import ModelFileError

Floats = NDArray[np.float32]
Counts = NDArray[np.uint32]
TYPES = {"values": np.float32, "below": np.uint32, "upto": np.uint32}
SIZES = "n_cut_points"


@dataclass(frozen=True, eq=False)
class CutPoints:
    """Some of a feature's values in increasing order, and how many of all are below each.

    The smallest and the largest value are among them; there are none if all were missing.

    Attributes
    ----------
    values
        The values, each once.
    below, upto
        How many of all values are less than each, and how many are less or the same.
    """

    values: Floats
    below: Counts
    upto: Counts

    @classmethod
    def of(cls, column: Floats, most: int | None) -> Self:
        """Find the cut points of a column: all of its values, or at most so many of them."""
        ordered = np.sort(column)  # missing values come last
        ordered = ordered[: len(column) - np.count_nonzero(np.isnan(column))]
        below = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
        upto = np.append(below[1:], len(ordered))[: len(below)]
        if most is not None and len(below) > most:
            kept = _evenly_spaced(below, len(ordered), most)
            below, upto = below[kept], upto[kept]
        return cls(ordered[below], below.astype(np.uint32), upto.astype(np.uint32))

    @property
    def n_values(self) -> int:
        """How many values there were, the same ones counted each time."""
        return int(self.upto[-1]) if len(self.upto) else 0

    def ranks(self, column: Floats) -> Floats:
        """Return the share of values below each: (how many there are) / (n_values - 1).

        Between two cut points the number grows in proportion to the value; missing stay missing.
        """
        place = self._places(column)
        n_below = np.append(self.below, self.n_values).astype(np.float64)[place]
        if (self.below[1:] > self.upto[:-1]).any():
            between = (place > 0) & (place < len(self.values))
            n_below[between] = self._interpolated(column[between], place[between])
        ranks = np.minimum(n_below / max(1, self.n_values - 1), 1.0).astype(np.float32)
        ranks[np.isnan(column)] = np.nan
        return ranks

    def _places(self, column: Floats) -> NDArray[np.int64]:
        """Return the first cut point that is not less than each value."""
        # Values in order find their places three times as fast: the next is near the last.
        order = np.argsort(column)
        places = np.empty(len(column), np.int64)
        places[order] = np.searchsorted(self.values, column[order])
        return places

    def _interpolated(self, column: Floats, place: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how many values are below each, which lies above a cut point and up to another."""
        values = self.values.astype(np.float64)
        first, last = self.upto[place - 1].astype(np.float64), self.below[place]
        share = (column - values[place - 1]) / (values[place] - values[place - 1])
        return first + share * (last - first)

    def is_sound(self) -> bool:
        """Tell whether these can be the cut points of a feature."""
        if len(self.values) == 0:
            return True
        return bool(
            np.isfinite(self.values).all()
            and (self.values[1:] > self.values[:-1]).all()
            and self.below[0] == 0
            and (self.below < self.upto).all()
            and (self.upto[:-1] <= self.below[1:]).all()
        )


def _evenly_spaced(below: NDArray[np.int64], n_values: int, most: int) -> NDArray[np.int64]:
    """Choose the values that stand at evenly spaced ranks, the first and the last among them.

    Two neighbours at ranks r and s, s - r <= (n_values - 1) / (most - 1) + 1 for rounding, have
    at most s - r - 1 values between them; so no value is off by more than 1 / (most - 1).
    """
    ranks = np.rint(np.linspace(0, n_values - 1, most)).astype(np.int64)
    return np.unique(np.searchsorted(below, ranks, side="right") - 1)


def to_arrays(features: Sequence[CutPoints]) -> dict[str, NDArray[Any]]:
    """Return the cut points of all features as arrays for a file."""
    arrays = {name: np.concatenate([getattr(one, name) for one in features]) for name in TYPES}
    return {**arrays, SIZES: np.array([len(one.values) for one in features], np.int64)}


def from_arrays(arrays: Mapping[str, NDArray[Any]], n_features: int) -> list[CutPoints]:
    """Make cut points again of what a file kept; what cannot be so is a `ModelFileError`."""
    sizes = arrays.get(SIZES)
    if sizes is None or sizes.dtype != np.int64 or sizes.shape != (n_features,):
        raise ModelFileError(
            f"the file does not say how many cut points {n_features} features have"
        )
    if (sizes < 0).any() or any(
        name not in arrays or arrays[name].dtype != kind or arrays[name].shape != (sizes.sum(),)
        for name, kind in TYPES.items()
    ):
        raise ModelFileError(f"the file has not the {sizes.sum():,} cut points that it names")
    pieces = [np.split(arrays[name], np.cumsum(sizes)[:-1]) for name in TYPES]
    features = [CutPoints(*own) for own in zip(*pieces, strict=True)]
    for number, one in enumerate(features):
        if not one.is_sound():
            raise ModelFileError(f"the cut points of feature {number} do not increase")
    return features
