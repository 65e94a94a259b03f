"""Cut points: some values of a feature in increasing order, and the ranks of values among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import checked_array
from rankinite.core.errors import ModelFileError
from rankinite.core.progress import Progress, Silent
from rankinite.core.threads import n_threads
from rankinite.core.types import Floats32, Integers

Result = TypeVar("Result")
Counts = NDArray[np.uint32]

# Neighbours in a row of the matrix: 16 float32 values fill a cache line.
COLUMNS_A_BLOCK = 16
# Arrays in a file: the cut points of all features, and how many each feature has.
TYPES = {"values": np.float32, "below": np.uint32, "upto": np.uint32}
SIZES = "n_cut_points"


@dataclass(frozen=True, eq=False)
class CutPoints:
    """Some of a feature's values in increasing order, and how many of all values are below each.

    The smallest and the largest value are among them; there are none if all values are missing.

    Attributes
    ----------
    values
        Distinct values.
    below, upto
        Number of all values that are less than each, and that are less or equal.
    """

    values: Floats32
    below: Counts
    upto: Counts

    @classmethod
    def of(cls, column: Floats32, most: int | None) -> Self:
        """Return the cut points of a column: all of its values, or at most ``most`` of them."""
        ordered = np.sort(column)  # NaN, for missing values, comes last
        ordered = ordered[: len(column) - np.count_nonzero(np.isnan(column))]
        below = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
        upto = np.append(below[1:], len(ordered))[: len(below)]
        if most is not None and len(below) > most:
            kept = _evenly_spaced(below, len(ordered), most)
            below, upto = below[kept], upto[kept]
        return cls(ordered[below], below.astype(np.uint32), upto.astype(np.uint32))

    @property
    def n_values(self) -> int:
        """Number of values in fit, with repetitions."""
        return int(self.upto[-1]) if len(self.upto) else 0

    def ranks(self, column: Floats32) -> Floats32:
        """Return for each value the number of fitted values below it / (n_values - 1).

        Between two cut points the number is interpolated linearly; missing values stay missing.
        """
        place = self._places(column)
        # A value above all cut points has place len(values): the appended number is its.
        n_below = np.append(self.below, self.n_values).astype(np.float64)[place]
        # Without gaps between neighbours no fitted value was left out, and counts are exact.
        if (self.below[1:] > self.upto[:-1]).any():
            between = (place > 0) & (place < len(self.values))
            n_below[between] = self._interpolated(column[between], place[between])
        # A new value above all fitted ones has n_values of them below, and would exceed 1.
        ranks = np.minimum(n_below / max(1, self.n_values - 1), 1.0).astype(np.float32)
        ranks[np.isnan(column)] = np.nan
        return ranks

    def _places(self, column: Floats32) -> NDArray[np.int64]:
        """Return the index of the first cut point that is not less than each value."""
        # Sorted values are searched three times as fast: neighbours share most of the path.
        order = np.argsort(column)
        places = np.empty(len(column), np.int64)
        places[order] = np.searchsorted(self.values, column[order])
        return places

    def _interpolated(self, column: Floats32, place: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the number of fitted values below each, interpolated between two cut points."""
        values = self.values.astype(np.float64)
        first, last = self.upto[place - 1].astype(np.float64), self.below[place]
        share = (column - values[place - 1]) / (values[place] - values[place - 1])
        return first + share * (last - first)


def _evenly_spaced(below: NDArray[np.int64], n_values: int, most: int) -> NDArray[np.int64]:
    """Choose the values at evenly spaced ranks, including the first and the last.

    Two neighbours at ranks r and s, s - r <= (n_values - 1) / (most - 1) + 1 for rounding, have
    at most s - r - 1 values between them; so no value is off by more than 1 / (most - 1).
    """
    ranks = np.rint(np.linspace(0, n_values - 1, most)).astype(np.int64)
    return np.unique(np.searchsorted(below, ranks, side="right") - 1)


def to_arrays(features: Sequence[CutPoints]) -> dict[str, NDArray[Any]]:
    """Return the cut points of all features as arrays for a file."""
    arrays = {
        name: np.concatenate([getattr(cut_points, name) for cut_points in features])
        for name in TYPES
    }
    sizes = [len(cut_points.values) for cut_points in features]
    return {**arrays, SIZES: np.array(sizes, np.int64)}


def from_arrays(arrays: Mapping[str, NDArray[Any]], n_features: int) -> list[CutPoints]:
    """Return the cut points in the arrays of a file, or raise a `ModelFileError`."""
    values = checked_array(arrays, "values", TYPES["values"], None)
    below, upto = (checked_array(arrays, n, TYPES[n], len(values)) for n in ("below", "upto"))
    sizes = checked_array(arrays, SIZES, np.int64, n_features, low=0, high=len(values))
    ends = np.cumsum(sizes)
    # No sum of so many of these overflows.
    if ends[-1] != len(values):
        raise ModelFileError(f"the file has not the {ends[-1]:,} cut points that it names")
    starts = ends - sizes
    # Of all features at once, as if they were one, whose cut points begin anew at these places.
    is_first = np.zeros(len(values), np.bool_)
    is_first[starts[sizes > 0]] = True
    follows = ~is_first[1:]
    sound = (below < upto) & (~is_first | (below == 0))
    sound[1:] &= ~follows | (values[1:] > values[:-1]) & (upto[:-1] <= below[1:])
    if not sound.all():
        number = int(np.searchsorted(ends, int(np.flatnonzero(~sound)[0]), side="right"))
        raise ModelFileError(f"the cut points of feature {number} do not increase")
    return [
        CutPoints(values[begin:end], below[begin:end], upto[begin:end])
        for begin, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def find_cut_points(
    parts: Sequence[tuple[Floats32, Integers | None]],
    most: int | None,
    progress: Progress | None = None,
) -> list[CutPoints]:
    """Return the cut points of every feature, over some or all rows of several matrices.

    Parameters
    ----------
    parts
        Matrices with the same features, and their rows that count; all if None.
    most
        Number of cut points of a feature at most; as many as it has values if None.
    progress
        Progress reporter.
    """

    def find(columns: slice) -> list[CutPoints]:
        pieces = [_columns(matrix, rows, columns) for matrix, rows in parts]
        return [CutPoints.of(column, most) for column in np.concatenate(pieces, axis=1)]

    blocks = _in_blocks(find, parts[0][0].shape[1], "Finding cut points", progress)
    return [cut_points for block in blocks for cut_points in block]


def ranks_of_columns(
    matrix: Floats32,
    rows: Integers | None,
    features: Sequence[CutPoints],
    progress: Progress | None = None,
) -> Floats32:
    """Return the ranks of some or all rows of a matrix among the cut points of its features.

    Parameters
    ----------
    matrix, rows
        The values, and the rows that count; all if None.
    features
        The cut points of every column.
    progress
        Progress reporter.
    """
    ranks = np.empty((len(matrix) if rows is None else len(rows), matrix.shape[1]), np.float32)

    def fill(columns: slice) -> None:
        values = _columns(matrix, rows, columns)
        for column, cut_points in zip(values, features[columns], strict=True):
            column[:] = cut_points.ranks(column)
        ranks[:, columns] = values.T

    for _ in _in_blocks(fill, matrix.shape[1], "Normalising", progress):
        pass
    return ranks


def _in_blocks(
    work: Callable[[slice], Result], n_features: int, name: str, progress: Progress | None
) -> Iterator[Result]:
    """Apply a function to blocks of columns on several threads; yield its results in order."""
    starts = range(0, n_features, COLUMNS_A_BLOCK)
    blocks = [slice(start, min(start + COLUMNS_A_BLOCK, n_features)) for start in starts]
    with (
        # Sorting and searching in numpy release the GIL.
        ThreadPoolExecutor(n_threads()) as pool,
        (progress or Silent()).start(name, n_features, "features") as bar,
    ):
        for columns, result in zip(blocks, pool.map(work, blocks), strict=True):
            yield result
            bar.advance(columns.stop - columns.start)


def used_rows(n_rows: int, rows: Integers | None) -> tuple[Integers | None, Integers | None]:
    """Return the rows of a matrix that are in use, and the index of each document among them.

    Parameters
    ----------
    n_rows
        Number of rows of the matrix.
    rows
        The row of each document; None if document i is row i, and so are both results.
    """
    if rows is None:
        return None, None
    # Samples share rows: each is ranked once, and a part of a matrix leaves the rest alone.
    used = np.zeros(n_rows, np.bool_)
    used[rows] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[rows]


def _columns(
    matrix: NDArray[np.float32], rows: Integers | None, columns: slice
) -> NDArray[np.float32]:
    """Return a copy of some columns, each contiguous, of some or all rows of the matrix."""
    block = matrix[:, columns]
    return (block if rows is None else block[rows]).T.copy()
