"""BinnedData: features as bytes, made once and shared by any number of fits."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError
from rankinite.core.params import Whole, check
from rankinite.core.seeds import generator
from rankinite.trees.kernels.encode import encode, find_cuts
from rankinite.trees.kernels.histogram import COLUMNS_A_WORD

MOST_BINS = 255
SLOTS = 256
# Cut points are found on so many rows at most.
SAMPLE_ROWS = 100_000

Bytes = NDArray[np.uint8]
EVERY_ROW = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Block:
    """Columns that were binned together, twice: row by row for counting, column by column.

    Attributes
    ----------
    bins
        One row of bytes a document, padded to whole words.
    columns
        The same, one row a column.
    cuts
        The cut points of every column, padded with infinity: bin b holds the values above cut
        b - 1 up to and including cut b.
    n_bins
        How many bins every column has, without the one for missing values; 0 for padding.
    """

    bins: Bytes
    columns: Bytes
    cuts: NDArray[np.float32]
    n_bins: NDArray[np.int64]

    @classmethod
    def make(
        cls,
        X: NDArray[np.float32],
        rows: NDArray[np.int64],
        docs: NDArray[np.int64],
        most_bins: int,
        seed: int,
    ) -> Block:
        """Bin some rows of a matrix by cut points that suit the rows of the documents."""
        n_rows = len(rows) if len(rows) else len(X)
        width = padded(X.shape[1])
        cuts, n_bins = _find_all_cuts(X, docs, width, most_bins, seed)
        bins = np.zeros((n_rows, width), np.uint8)
        columns = np.zeros((width, n_rows), np.uint8)
        encode(X, rows, cuts, n_bins, bins, columns)
        return cls(*(_frozen(array) for array in (bins, columns, cuts, n_bins)))

    def columns_of(self, X: NDArray[np.float32], rows: NDArray[np.int64]) -> Bytes:
        """Bin other rows by these cut points, column by column."""
        n_rows = len(rows) if len(rows) else len(X)
        columns = np.zeros((len(self.n_bins), n_rows), np.uint8)
        encode(X, rows, self.cuts, self.n_bins, np.zeros((0, 0), np.uint8), columns)
        return _frozen(columns)

    @property
    def used(self) -> NDArray[np.int64]:
        """The columns that are no padding."""
        return np.flatnonzero(self.n_bins)


def padded(n_columns: int) -> int:
    """Return the number of columns of whole words."""
    return -(-n_columns // COLUMNS_A_WORD) * COLUMNS_A_WORD


def _find_all_cuts(
    X: NDArray[np.float32],
    docs: NDArray[np.int64],
    width: int,
    most_bins: int,
    seed: int,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    sample = docs
    n_docs = len(docs) if len(docs) else len(X)
    if n_docs > SAMPLE_ROWS:
        chosen = generator(seed, "bins").choice(n_docs, SAMPLE_ROWS, replace=False, shuffle=False)
        sample = np.sort(chosen) if not len(docs) else docs[np.sort(chosen)]
    cuts = np.full((width, SLOTS), np.inf, np.float32)
    n_bins = np.zeros(width, np.int64)

    def find(start: int) -> None:
        end = min(start + COLUMNS_A_WORD, X.shape[1])
        part = X[:, start:end] if not len(sample) else X[sample, start:end]
        values = np.sort(part.T, axis=1)  # NaN last
        for j in range(end - start):
            known = values[j, : np.searchsorted(values[j], np.nan)]
            found = find_cuts(known, most_bins, cuts[start + j])
            n_bins[start + j] = found + 1

    with ThreadPoolExecutor(numba.get_num_threads()) as workers:
        list(workers.map(find, range(0, X.shape[1], COLUMNS_A_WORD)))
    return cuts, n_bins


def _no_columns(n_rows: int) -> Block:
    return Block.make(np.zeros((n_rows, 0), np.float32), EVERY_ROW, EVERY_ROW, MOST_BINS, 0)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class BinnedData:
    """The rows of a feature matrix, binned.

    Attributes
    ----------
    main, more
        The columns, and those appended later.
    feature_names
        One name a feature.
    """

    main: Block
    more: Block
    feature_names: tuple[str, ...]

    @classmethod
    def make(
        cls,
        X: NDArray[np.float32],
        feature_names: Sequence[str],
        *,
        rows: NDArray[np.int64] = EVERY_ROW,
        docs: NDArray[np.int64] = EVERY_ROW,
        most_bins: int = MOST_BINS,
        seed: int = 0,
    ) -> BinnedData:
        """Bin a matrix.

        Parameters
        ----------
        X
            Features; NaN means missing.
        feature_names
            One name a feature.
        rows
            The rows to bin; all if empty.
        docs
            The row of every document, for which bins should hold equal shares; every row once if
            empty.
        most_bins
            How many bins a feature may have, besides the one for missing values.
        seed
            For the sample that cut points are found on.
        """
        check("BinnedData", "most_bins", most_bins, Whole(2, MOST_BINS))
        main = Block.make(X, rows, docs, most_bins, seed)
        return cls(main, _no_columns(main.columns.shape[1]), tuple(feature_names))

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.main.columns.shape[1])

    @property
    def column_of(self) -> NDArray[np.int64]:
        """The column of every feature, those of the second block behind those of the first."""
        width = len(self.main.n_bins)
        return np.concatenate([self.main.used, self.more.used + width])

    def columns_of(
        self, X: NDArray[np.float32], rows: NDArray[np.int64] = EVERY_ROW
    ) -> tuple[Bytes, Bytes]:
        """Bin other rows by the same cut points, column by column, in both blocks."""
        if X.shape[1] != len(self.feature_names):
            raise DataError(
                f"the data have {X.shape[1]} features; expected {len(self.feature_names)}"
            )
        n_main = len(self.main.used)
        if n_main == X.shape[1]:
            n_rows = len(rows) if len(rows) else len(X)
            return self.main.columns_of(X, rows), np.zeros((0, n_rows), np.uint8)
        parts = (np.ascontiguousarray(X[:, :n_main]), np.ascontiguousarray(X[:, n_main:]))
        return self.main.columns_of(parts[0], rows), self.more.columns_of(parts[1], rows)
