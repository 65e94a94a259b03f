"""From features of documents to inputs of a net: values, and their ranks, standardised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import checked_array
from rankinite.core.errors import ModelFileError
from rankinite.core.jit import frozen
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats32, Integers
from rankinite.data.cut_points import SIZES, find_cut_points, from_arrays, to_arrays, used_rows
from rankinite.data.kernels import write_ranks
from rankinite.nets.kernels.forward import Inputs, sums_by_block

EVERY_ROW = np.zeros(0, np.int64)
# Sums go over a number of blocks that does not depend on the threads, so that neither do they.
SUM_BLOCKS = 64
# A constant feature seems to vary by up to this share of its mean, because sums are rounded.
ROUNDING = 1e-6
# Ranks are off by at most 1 / 255, less than the noise of any feature.
MOST_CUT_POINTS = 256
# Fewer documents are ranked before another thread would have started.
DOCS_PER_THREAD = 1024


@dataclass(frozen=True, eq=False)
class RankTable:
    """Cut points of all features, one feature behind the other, see `cut_points.CutPoints`.

    Attributes
    ----------
    values, below, upto
        Cut points, and the number of fitted values below each and up to each.
    sizes
        Number of cut points of each feature.
    """

    values: Floats32
    below: NDArray[np.uint32]
    upto: NDArray[np.uint32]
    sizes: NDArray[np.int64]

    @classmethod
    def fit(cls, X: Floats32, rows: Integers | None) -> Self:
        """Find the cut points; a row that several documents share counts for each of them."""
        cut_points = find_cut_points([(X, rows)], MOST_CUT_POINTS)
        return cls.from_arrays(to_arrays(cut_points))

    def beside_values(self, X: Floats32, rows: Integers | None) -> tuple[Floats32, Integers | None]:
        """Return a matrix of the rows in use, with ranks behind the values, and its rows."""
        used, new_rows = used_rows(len(X), rows)
        values = X if used is None else X[used]
        n_rows, n_features = values.shape
        both = np.empty((n_rows, 2 * n_features), np.float32)
        both[:, :n_features] = values
        offsets = np.concatenate([[0], np.cumsum(self.sizes)])

        def rank(begin: int, end: int) -> None:
            write_ranks(
                values[begin:end], self.values, self.below, self.upto, offsets,
                both[begin:end, n_features:],
            )  # fmt: skip

        parallel_for(rank, n_rows, grain=DOCS_PER_THREAD)
        return both, new_rows

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the table as arrays of a model file."""
        return {
            "values": self.values,
            "below": self.below,
            "upto": self.upto,
            SIZES: self.sizes,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make a table of arrays, which are as `to_arrays` returns them."""
        return cls(*(frozen(arrays[name]) for name in ("values", "below", "upto", SIZES)))


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Which features are inputs, and how they are scaled.

    Attributes
    ----------
    features
        Columns that vary: those of the features and, from their number on, those of their ranks.
    means, scales
        Means of these columns, and one over their standard deviations.
    ranks
        How features become ranks; None if only their values are inputs.
    """

    features: NDArray[np.int64]
    means: Floats32
    scales: Floats32
    ranks: RankTable | None = None

    @classmethod
    def fit(
        cls,
        X: Floats32,
        rows: Integers | None,
        n_docs: int,
        *,
        rank_inputs: bool = False,
    ) -> Standardiser:
        """Find means and deviations over documents; missing values are left out."""
        ranks = RankTable.fit(X, rows) if rank_inputs else None
        if ranks is not None:
            X, rows = ranks.beside_values(X, rows)
        index = frozen(EVERY_ROW if rows is None else rows)
        n_columns = X.shape[1]
        centre = np.zeros(n_columns)
        deviation = np.zeros(n_columns)
        # The first pass finds the mean. Squares of differences from it, in the second pass, lose no
        # digits, as squares of large features would.
        for _ in range(2):
            shape = (min(SUM_BLOCKS, n_docs), n_columns)
            counts, sums, squares = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape)
            arguments = frozen(X), index, n_docs, centre, counts, sums, squares
            parallel_for(sums_by_block, len(counts), *arguments)
            n = np.maximum(counts.sum(axis=0), 1)
            centre = centre + sums.sum(axis=0) / n
            deviation = np.sqrt(squares.sum(axis=0) / n)
        means = centre.astype(np.float32)
        varies = deviation > ROUNDING * np.abs(centre)
        with np.errstate(divide="ignore", over="ignore"):
            scales = (1.0 / deviation).astype(np.float32)
        # One over a deviation of less than about 3e-39 is infinite in 32 bits.
        features = np.flatnonzero(varies & (deviation > 0.0) & np.isfinite(scales))
        return cls(features, means[features], scales[features], ranks)

    def inputs_of(self, X: Floats32, rows: Integers | None) -> Inputs:
        """Return documents as kernels take them."""
        if self.ranks is not None:
            X, rows = self.ranks.beside_values(X, rows)
        return Inputs(
            frozen(np.ascontiguousarray(X)),
            frozen(EVERY_ROW if rows is None else np.ascontiguousarray(rows)),
            frozen(self.features),
            frozen(self.means),
            frozen(self.scales),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the standardiser as arrays of a model file."""
        return {
            "features": self.features,
            "means": self.means,
            "scales": self.scales,
            **({} if self.ranks is None else self.ranks.to_arrays()),
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], n_features: int, *, rank_inputs: bool
    ) -> Standardiser:
        """Make a standardiser of the arrays of a model file; all are checked before use."""
        n_columns = 2 * n_features if rank_inputs else n_features
        features = checked_array(arrays, "features", np.int64, None, low=0, high=n_columns - 1)
        means = checked_array(arrays, "means", np.float32, len(features))
        scales = checked_array(arrays, "scales", np.float32, len(features))
        if (np.diff(features) <= 0).any():
            raise ModelFileError("the inputs of the net in the file are not features of its own")
        if (scales <= 0.0).any():
            raise ModelFileError("the inputs of the net in the file have no scales")
        ranks = None
        if rank_inputs:
            cut_points = from_arrays(arrays, n_features)
            ranks = RankTable.from_arrays(to_arrays(cut_points))
        return cls(features.copy(), means.copy(), scales.copy(), ranks)
