"""RankNormaliser: features as the share of documents below (Challenge, Sec. 4.3)."""

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
from rankinite.core.params import Either, OneOf, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.types import Floats32, Integers
from rankinite.data import checks
from rankinite.data.concat import refuse_other_features
from rankinite.data.ranking_data import RankingData
from rankinite.data.samples import first_sample

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

    values: Floats32
    below: Counts
    upto: Counts

    @classmethod
    def of(cls, column: Floats32, most: int | None) -> Self:
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

    def ranks(self, column: Floats32) -> Floats32:
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

    def _places(self, column: Floats32) -> NDArray[np.int64]:
        """Return the first cut point that is not less than each value."""
        # Values in order find their places three times as fast: the next is near the last.
        order = np.argsort(column)
        places = np.empty(len(column), np.int64)
        places[order] = np.searchsorted(self.values, column[order])
        return places

    def _interpolated(self, column: Floats32, place: NDArray[np.int64]) -> NDArray[np.float64]:
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


Found = TypeVar("Found")

OWNER = "RankNormaliser"
MOST = Either(Whole(2), OneOf([None]))
# Values that stand side by side in a row of the matrix, and in one line of the cache.
COLUMNS_A_BLOCK = 16


class RankNormaliser(BaseEstimator):  # type: ignore[misc]
    """Replaces every value by the share of documents that have a smaller one.

    The value x of a feature becomes (how many of the n fitted values are less than x) / (n - 1),
    as in Challenge, Sec. 4.3, where training, validation and test data of both sets were fitted
    at once. It lies between 0 and 1, and ties stay ties. A value that was not fitted counts those
    below it as well; missing values stay missing and do not count.

    Parameters
    ----------
    most_cut_points
        None keeps every different value (12 bytes each) and gives the formula exactly. A number
        keeps so many of a feature's values, at evenly spaced ranks, and interpolates between
        them; ranks are then off by at most 1 / (most_cut_points - 1).

    Attributes
    ----------
    feature_names_ : tuple of str
        The features that it was fitted to.
    cut_points_ : list of CutPoints
        What it knows about each of them.

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
            One set, or several with the same features. They hold no samples, whose documents
            would count more than once: normalise first, then augment.
        progress
            Who wants to know how far it is.
        """
        check(OWNER, "most_cut_points", self.most_cut_points, MOST)
        given = _checked_sets(sets)

        def find(columns: slice) -> list[CutPoints]:
            pieces = [_columns(data.base, data.rows, columns) for data in given]
            values = np.concatenate(pieces, axis=1)
            return [CutPoints.of(column, self.most_cut_points) for column in values]

        n_features = given[0].n_features
        found = _in_blocks(find, n_features, "Finding cut points", progress)
        self.cut_points_ = [cut_points for block in found for cut_points in block]
        self.feature_names_ = given[0].feature_names
        return self

    def transform(self, data: RankingData, *, progress: Progress | None = None) -> RankingData:
        """Return a set with a new matrix of features, and all else as it was.

        Parameters
        ----------
        data
            A set with the features that were fitted. Samples go on sharing their rows.
        progress
            Who wants to know how far it is.
        """
        self._check_fitted()
        checks.data_set(OWNER, data)
        refuse_other_features(OWNER, self.feature_names_, data.feature_names)
        used, rows = _used_rows(data)
        n_rows = data.n_docs if used is None else len(used)
        matrix = np.empty((n_rows, data.n_features), np.float32)

        def fill(columns: slice) -> None:
            values = _columns(data.base, used, columns)
            for column, cut_points in zip(values, self.cut_points_[columns], strict=True):
                column[:] = cut_points.ranks(column)
            matrix[:, columns] = values.T

        for _ in _in_blocks(fill, data.n_features, "Normalising", progress):
            pass
        return data._with(base=matrix, rows=rows)

    def fit_transform(
        self, sets: RankingData | Sequence[RankingData], *, progress: Progress | None = None
    ) -> list[RankingData]:
        """Learn the ranks of all sets together, and return each of them normalised.

        Parameters
        ----------
        sets, progress
            As in `fit`.
        """
        given = _checked_sets(sets)
        self.fit(given, progress=progress)
        return [self.transform(data, progress=progress) for data in given]

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
            new = cls(_known_most(content.manifest))
            new.feature_names_ = _known_names(content.manifest)
            new.cut_points_ = from_arrays(content.arrays, len(new.feature_names_))
        except ModelFileError as problem:
            raise ModelFileError(f"{path}: {problem}") from None
        return new


def _checked_sets(sets: RankingData | Sequence[RankingData]) -> list[RankingData]:
    given = list(sets) if isinstance(sets, Sequence) else [sets]
    if not given:
        raise UsageError(f"{OWNER}: there is nothing to fit; give at least one set")
    for data in given:
        checks.data_set(OWNER, data)
        refuse_other_features(OWNER, given[0].feature_names, data.feature_names)
        sample = first_sample(data.qids)
        if sample is not None:
            raise UsageError(
                f"{OWNER}: the data hold samples, such as {sample!r}, whose documents would count "
                "more than once; normalise first, then augment"
            )
    return given


def _in_blocks(
    work: Callable[[slice], Found], n_features: int, name: str, progress: Progress | None
) -> Iterator[Found]:
    """Do work on blocks of columns, several at once, and go through what it gives in order."""
    starts = range(0, n_features, COLUMNS_A_BLOCK)
    blocks = [slice(start, min(start + COLUMNS_A_BLOCK, n_features)) for start in starts]
    with (
        ThreadPoolExecutor(n_threads()) as pool,
        (progress or Silent()).start(name, n_features, "features") as bar,
    ):
        for columns, found in zip(blocks, pool.map(work, blocks), strict=True):
            yield found
            bar.advance(columns.stop - columns.start)


def _used_rows(data: RankingData) -> tuple[Integers | None, Integers | None]:
    """Return the rows of the matrix that hold a document, and each document's among these."""
    if data.rows is None:
        return None, None
    used = np.zeros(len(data.base), np.bool_)
    used[data.rows] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[data.rows]


def _columns(
    base: NDArray[np.float32], rows: Integers | None, columns: slice
) -> NDArray[np.float32]:
    """Copy some columns of some rows, or all, out of the matrix, each in one piece."""
    block = base[:, columns]
    return (block if rows is None else block[rows]).T.copy()


def _known_most(manifest: Mapping[str, Any]) -> int | None:
    most: int | None = manifest.get("most_cut_points")
    if not MOST.allows(most):
        raise ModelFileError(f"most_cut_points is {most!r}; expected {MOST}")
    return most


def _known_names(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    names = manifest.get("feature_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the names of features are damaged; expected a list of texts")
    if not names or len(set(names)) < len(names):
        raise ModelFileError("the names of features are damaged; expected each once")
    return tuple(names)
