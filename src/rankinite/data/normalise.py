"""RankNormaliser: features as shares of smaller values (Challenge, Sec. 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankinite.core.container import Content, read_container, write_container
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.jit import n_threads
from rankinite.core.params import Whole, check, or_none
from rankinite.core.progress import Progress, Silent
from rankinite.core.types import Floats32, Integers
from rankinite.data import checks
from rankinite.data.concat import refuse_other_features
from rankinite.data.ranking_data import RankingData
from rankinite.data.splits import refuse_samples

Result = TypeVar("Result")
Counts = NDArray[np.uint32]

OWNER = "RankNormaliser"
MOST = or_none(Whole(2))  # the smallest and the largest value are always cut points
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

    def is_valid(self) -> bool:
        """Return whether the arrays, read from a file, are valid cut points."""
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
    features = [CutPoints(*arrays_of_feature) for arrays_of_feature in zip(*pieces, strict=True)]
    for number, cut_points in enumerate(features):
        if not cut_points.is_valid():
            raise ModelFileError(f"the cut points of feature {number} do not increase")
    return features


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


class RankNormaliser(BaseEstimator):  # type: ignore[misc]
    """Replaces each value of a feature by the share of documents with a smaller value.

    The value x becomes (number of the n fitted values that are less than x) / (n - 1), as in
    Challenge, Sec. 4.3, where training, validation and test data of both sets were fitted at
    once. The result lies between 0 and 1, and ties stay ties. A new value counts the fitted values
    below it as well; missing values stay missing and do not count.

    Parameters
    ----------
    most_cut_points
        Maximum number of a feature's values to keep, at evenly spaced ranks; values between them
        are interpolated, and ranks are off by at most 1 / (most_cut_points - 1). None keeps every
        distinct value (12 bytes each), which is exact.

    Attributes
    ----------
    feature_names_ : tuple of str
        Names of the features that it was fitted to.
    cut_points_ : list of CutPoints
        Cut points of each feature.

    Examples
    --------
    >>> data = RankingData(X=[[30], [10], [10], [20], [99]], y=[0, 1, 2, 0, 1], group_sizes=[5])
    >>> normaliser = RankNormaliser().fit(data)
    >>> normaliser.transform(data).X.ravel().tolist()
    [0.75, 0.0, 0.0, 0.5, 1.0]
    """

    feature_names_: tuple[str, ...]
    cut_points_: list[CutPoints]

    def __init__(self, most_cut_points: int | None = None) -> None:
        self.most_cut_points = most_cut_points

    def fit(
        self, sets: RankingData | Sequence[RankingData], *, progress: Progress | None = None
    ) -> Self:
        """Learn the ranks of the values of all sets together.

        Parameters
        ----------
        sets
            One data set, or several with the same features. They may not contain samples, whose
            documents would count more than once: normalise first, then augment.
        progress
            Progress reporter.
        """
        check(OWNER, "most_cut_points", self.most_cut_points, MOST)
        data_sets = [data.dense(OWNER) for data in _checked_sets(sets)]
        parts = [(data.matrix, data.rows) for data in data_sets]
        self.cut_points_ = find_cut_points(parts, self.most_cut_points, progress)
        self.feature_names_ = tuple(data_sets[0].feature_names)
        return self

    def transform(self, data: RankingData, *, progress: Progress | None = None) -> RankingData:
        """Return the data set with a new feature matrix; categorical features stay as they are.

        Parameters
        ----------
        data
            Data set with the features that were fitted. Samples keep sharing their rows.
        progress
            Progress reporter.
        """
        self._check_fitted()
        checks.require_data_set(OWNER, data)
        refuse_other_features(OWNER, self.feature_names_, data.feature_names)
        data = data.dense(OWNER)
        used, rows = used_rows(len(data.matrix), data.rows)
        n_rows = data.n_docs if used is None else len(used)
        matrix = np.empty((n_rows, data.n_features), np.float32)

        def fill(columns: slice) -> None:
            values = _columns(data.matrix, used, columns)
            names = data.feature_names[columns]
            for name, column, cut_points in zip(
                names, values, self.cut_points_[columns], strict=True
            ):
                # Codes of categories have no order.
                if name not in data.categories:
                    column[:] = cut_points.ranks(column)
            matrix[:, columns] = values.T

        for _ in _in_blocks(fill, data.n_features, "Normalising", progress):
            pass
        return data.replace(matrix=matrix, rows=rows)

    def fit_transform(
        self, sets: RankingData | Sequence[RankingData], *, progress: Progress | None = None
    ) -> list[RankingData]:
        """Fit all data sets together, and return each of them normalised.

        Parameters
        ----------
        sets, progress
            As in `fit`.
        """
        data_sets = _checked_sets(sets)
        self.fit(data_sets, progress=progress)
        return [self.transform(data, progress=progress) for data in data_sets]

    def _check_fitted(self) -> None:
        if not hasattr(self, "cut_points_"):
            raise UsageError(
                f"{OWNER}: is not fitted yet; call fit, or read a fitted one with {OWNER}.load"
            )

    def save(self, path: str | Path) -> None:
        """Write the fitted normaliser to a file, which appears whole or not at all.

        Parameters
        ----------
        path
            The file; by custom its name ends in ``.rk``.
        """
        self._check_fitted()
        manifest = {
            "class": OWNER,
            "most_cut_points": self.most_cut_points,
            "feature_names": list(self.feature_names_),
        }
        write_container(path, Content(manifest, to_arrays(self.cut_points_)))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a fitted normaliser from a file.

        Parameters
        ----------
        path
            A file that `save` wrote.
        """
        content = read_container(path)
        kind = content.manifest.get("class")
        if kind != OWNER:
            raise ModelFileError(
                f"{path}: holds a {kind!r} and no {OWNER}; rankers are read with load_model"
            )
        try:
            new = cls(_read_most(content.manifest))
            new.feature_names_ = _read_names(content.manifest)
            new.cut_points_ = from_arrays(content.arrays, len(new.feature_names_))
        except ModelFileError as problem:
            raise ModelFileError(f"{path}: {problem}") from None
        return new


def _checked_sets(sets: RankingData | Sequence[RankingData]) -> list[RankingData]:
    data_sets = list(sets) if isinstance(sets, Sequence) else [sets]
    if not data_sets:
        raise UsageError(f"{OWNER}: there is nothing to fit; give at least one data set")
    for data in data_sets:
        checks.require_data_set(OWNER, data)
        refuse_other_features(OWNER, data_sets[0].feature_names, data.feature_names)
        advice = "their documents would count more than once, so normalise first, then augment"
        refuse_samples(OWNER, data.qids, advice)
    return data_sets


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


def _read_most(manifest: Mapping[str, Any]) -> int | None:
    most: int | None = manifest.get("most_cut_points")
    if not MOST.allows(most):
        raise ModelFileError(f"most_cut_points is {most!r}; expected {MOST}")
    return most


def _read_names(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    names = manifest.get("feature_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the feature names are damaged; expected a list of texts")
    if not names or len(set(names)) < len(names):
        raise ModelFileError("the feature names are damaged; expected each once")
    return tuple(names)
