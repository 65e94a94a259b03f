"""BinnedData: features as bytes, made once and shared by any number of fits.

A feature has at most 255 bins and one for missing values, so that a bin is a byte. How cut points
are chosen is in kernels/binning.py.

A category of a categorical feature has a bin of its own. If there are more categories than bins,
the rarest have none and count as missing, and so does a category that was not there when bins were
made: what trees learn from rare categories is the best guess for new ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.cached import cached_property
from rankinite.core.checksums import Checksums, summed_folder
from rankinite.core.errors import DataError, UsageError
from rankinite.core.files import save_array
from rankinite.core.jit import frozen
from rankinite.core.memory import require_memory
from rankinite.core.npy import map_array
from rankinite.core.params import Whole, check, or_none
from rankinite.core.random import generator
from rankinite.core.threads import parallel_for
from rankinite.data.ranking_data import RankingData
from rankinite.data.sparse import dense_column, is_sparse
from rankinite.trees.bins import EVERY_ROW, MOST_BINS, PADDED_CUTS
from rankinite.trees.bundles import Bundles
from rankinite.trees.kernels.binning import encode, find_cuts

# Columns that are sorted together, so that rows are read once for several of them.
SORTED_TOGETHER = 8
# Fewer are encoded by one thread before another has woken up.
ROWS_PER_THREAD = 1024
# Unless a number of bins is given: at least so many, and one for so many documents.
FEWEST_BINS = 64
DOCS_PER_BIN = 100
FORMAT = "rankinite binned data 2"
MANIFEST = "manifest.json"
# Cut points are found on a sample of at most this many rows: quantiles of more differ little.
SAMPLE_ROWS = 100_000

Bytes = NDArray[np.uint8]

# Takes the first of some columns, and the one behind the last; returns their values, sorted.
SortedColumns = Callable[[int, int], Iterable[NDArray[np.float32]]]


@dataclass(frozen=True, eq=False)
class BinnedColumns:
    """Columns that were binned together, in two layouts.

    Attributes
    ----------
    bundled
        Bins row by row, a byte for each bundle, for histograms.
    columns
        Bins column by column, for partitioning rows and finding leaves.
    cuts
        Cut points of each column, padded with infinity: bin b holds the values above cut b - 1 up
        to and including cut b. Of a categorical column, the categories of its bins.
    n_bins
        Number of bins of each column, without the one for missing values.
    categorical
        Whether the bins of each column are categories.
    n_codes
        Number of bins of each column that rows have, including that for missing values, if any
        are missing; 1 if all rows have the same.
    """

    bundled: Bytes
    columns: Bytes
    cuts: NDArray[np.float32]
    n_bins: NDArray[np.int64]
    categorical: NDArray[np.bool_]
    n_codes: NDArray[np.int64]

    @classmethod
    def make(
        cls,
        X: NDArray[np.float32],
        rows: NDArray[np.int64],
        docs: NDArray[np.int64],
        most_bins: int,
        seed: int,
        categorical: Sequence[int] = (),
        most_categories: int = MOST_BINS,
    ) -> BinnedColumns:
        """Bin some rows of a matrix by cut points found on the rows of the documents."""
        n_rows = len(rows) if len(rows) else X.shape[0]
        n_columns = X.shape[1]
        # Of every bin a byte in each layout, and the cut points of every column.
        what = f"training on the bins of {n_rows:,} documents x {n_columns:,} features"
        n_bytes = (2 * n_rows + 4 * PADDED_CUTS) * n_columns
        require_memory("BinnedData", what, n_bytes, "take fewer documents or features")
        cuts, n_bins = _find_all_cuts(X, docs, most_bins, seed)
        is_categorical = np.zeros(n_columns, np.bool_)
        for j in categorical:
            is_categorical[j] = True
            column = dense_column(X, j)
            categories = _frequent(column[docs] if len(docs) else column, most_categories)
            cuts[j] = np.inf
            cuts[j, : len(categories)] = categories
            n_bins[j] = max(1, len(categories))
        columns = _encode(X, rows, cuts, n_bins, is_categorical)
        return cls._of(columns, cuts, n_bins, is_categorical)

    @classmethod
    def _of(
        cls,
        columns: Bytes,
        cuts: NDArray[np.float32],
        n_bins: NDArray[np.int64],
        categorical: NDArray[np.bool_],
    ) -> BinnedColumns:
        """Return binned columns with their bundles."""
        most = columns.max(axis=1, initial=0).astype(np.int64)
        n_codes = np.where(most == n_bins, n_bins + 1, n_bins)
        # A column with a single bin varies if it also has missing values, but not only these.
        for c in np.flatnonzero((n_bins == 1) & (n_codes == 2)):
            n_codes[c] = 1 + bool((columns[c] == 0).any())
        bundled = Bundles.of(n_codes, columns.shape[1]).bytes_of(frozen(columns))
        # Numba compiles a kernel anew for arrays that can be written to: all inputs are frozen.
        return cls(
            frozen(bundled), frozen(columns), frozen(cuts), frozen(n_bins), frozen(categorical),
            frozen(n_codes),
        )  # fmt: skip

    @cached_property
    def bundles(self) -> Bundles:
        """Which columns share a byte."""
        return Bundles.of(self.n_codes, self.columns.shape[1])

    def columns_of(self, X: NDArray[np.float32], rows: NDArray[np.int64]) -> Bytes:
        """Bin other rows by these cut points, column by column."""
        return frozen(_encode(X, rows, self.cuts, self.n_bins, self.categorical))

    def append(self, other: BinnedColumns) -> BinnedColumns:
        """Return these columns and those of another behind them."""
        return self._of(
            np.concatenate([self.columns, other.columns]),
            np.concatenate([self.cuts, other.cuts]),
            np.concatenate([self.n_bins, other.n_bins]),
            np.concatenate([self.categorical, other.categorical]),
        )

    @property
    def splittable(self) -> NDArray[np.int64]:
        """Number of bins of each column; 0 for one whose values are all the same."""
        # Columns that cannot be split take no space in histograms, and no time.
        return np.where(self.n_codes > 1, self.n_bins, 0)


def bins_for(n_docs: int) -> int:
    """Return how many bins of a feature so many documents are worth.

    Most of the time of a tree on few documents goes into bins that hold none, or so few that a cut
    between them is chosen by chance.
    """
    return min(max(FEWEST_BINS, n_docs // DOCS_PER_BIN), MOST_BINS)


def _find_all_cuts(
    X: NDArray[np.float32],
    docs: NDArray[np.int64],
    most_bins: int,
    seed: int,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    sample = docs
    n_docs = len(docs) if len(docs) else X.shape[0]
    if n_docs > SAMPLE_ROWS:
        chosen = generator(seed, "bins").choice(n_docs, SAMPLE_ROWS, replace=False, shuffle=False)
        # In the order of rows, which are then read from memory one after the other.
        sample = np.sort(chosen) if not len(docs) else docs[np.sort(chosen)]
    cuts = np.full((X.shape[1], PADDED_CUTS), np.inf, np.float32)
    n_bins = np.zeros(X.shape[1], np.int64)

    sorted_columns = _sorted_sparse_columns if is_sparse(X) else _sorted_columns
    values_of = sorted_columns(X, sample)

    def find(first_block: int, last_block: int) -> None:
        last = min(last_block * SORTED_TOGETHER, X.shape[1])
        for start in range(first_block * SORTED_TOGETHER, last, SORTED_TOGETHER):
            end = min(start + SORTED_TOGETHER, last)
            for j, values in enumerate(values_of(start, end), start):
                known = values[: np.searchsorted(values, np.nan)]
                n_bins[j] = find_cuts(known, most_bins, cuts[j]) + 1

    # NumPy sorts without holding the interpreter's lock.
    parallel_for(find, -(-X.shape[1] // SORTED_TOGETHER))
    return cuts, n_bins


def _frequent(values: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """Return the most frequent values in increasing order; of equally frequent ones the smaller."""
    categories, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return np.sort(categories[np.argsort(-counts, kind="stable")[:most]])


def _sorted_columns(X: NDArray[np.float32], sample: NDArray[np.int64]) -> SortedColumns:
    """Return a function that sorts the values of some columns, NaN last."""

    def values_of(start: int, end: int) -> NDArray[np.float32]:
        some_columns = X[:, start:end] if not len(sample) else X[sample, start:end]
        return np.sort(some_columns.T, axis=1)

    return values_of


def _sorted_sparse_columns(X: Any, sample: NDArray[np.int64]) -> SortedColumns:
    """Return the same for a sparse matrix, of which one column at a time gets its zeros."""
    by_column = (X[sample] if len(sample) else X).tocsc()
    n_rows = by_column.shape[0]

    def values_of(start: int, end: int) -> Iterator[NDArray[np.float32]]:
        for j in range(start, end):
            entries = np.sort(by_column.data[by_column.indptr[j] : by_column.indptr[j + 1]])
            values = np.zeros(n_rows, np.float32)
            n_negative = np.searchsorted(entries, 0.0)
            values[:n_negative] = entries[:n_negative]
            values[n_rows - len(entries) + n_negative :] = entries[n_negative:]
            yield values

    return values_of


def _encode(
    X: Any,
    rows: NDArray[np.int64],
    cuts: NDArray[np.float32],
    n_bins: NDArray[np.int64],
    categorical: NDArray[np.bool_],
) -> Bytes:
    """Return the bins of some rows, column by column."""
    columns = np.empty((len(n_bins), len(rows) if len(rows) else X.shape[0]), np.uint8)
    described = frozen(cuts), frozen(n_bins), frozen(categorical)
    if not is_sparse(X):
        arguments = frozen(X), frozen(rows), *described, columns
        parallel_for(encode, columns.shape[1], *arguments, grain=ROWS_PER_THREAD)
        return columns
    by_column = (X[rows] if len(rows) else X).tocsc()
    # Most entries are 0: all get its bin, and the others are written over it.
    zero = (cuts < 0.0).sum(axis=1).astype(np.uint8)
    # Categories are whole numbers from 0 in increasing order.
    zero[categorical & (cuts[:, 0] != 0.0)] = n_bins[categorical & (cuts[:, 0] != 0.0)]
    columns[:] = zero[:, None]
    for j in range(X.shape[1]):
        entries = slice(by_column.indptr[j], by_column.indptr[j + 1])
        values, places = by_column.data[entries], by_column.indices[entries]
        codes = np.searchsorted(cuts[j, : n_bins[j] - 1], values).astype(np.uint8)
        unknown = cuts[j, codes] != values if categorical[j] else np.isnan(values)
        codes[unknown] = n_bins[j]
        columns[j, places] = codes
    return columns


def _no_columns(n_rows: int) -> BinnedColumns:
    return BinnedColumns.make(np.zeros((n_rows, 0), np.float32), EVERY_ROW, EVERY_ROW, MOST_BINS, 0)


@dataclass(frozen=True, eq=False)
class BinnedData:
    """The rows of a feature matrix, binned.

    Attributes
    ----------
    main, more
        The columns, and those appended later. They are kept apart so that appending copies none of
        the main columns, which may be shared between processes.
    feature_names
        One name per feature.
    """

    main: BinnedColumns
    more: BinnedColumns
    feature_names: tuple[str, ...]

    @classmethod
    def make(
        cls,
        X: NDArray[np.float32],
        feature_names: Sequence[str],
        *,
        rows: NDArray[np.int64] = EVERY_ROW,
        docs: NDArray[np.int64] = EVERY_ROW,
        most_bins: int | None = MOST_BINS,
        seed: int = 0,
        categorical: Sequence[int] = (),
    ) -> BinnedData:
        """Bin a matrix.

        Parameters
        ----------
        X
            Feature matrix, dense or in CSR format; NaN means missing.
        feature_names
            One name per feature.
        rows
            Rows to bin; all if empty.
        docs
            Row of each document. Bins hold about equal numbers of documents. Each row counts once
            if empty.
        most_bins
            Number of bins of a feature at most, besides the one for missing values. If None, by the
            number of documents, see `bins_for`.
        seed
            Seed of the sample that cut points are found on.
        categorical
            Columns of categorical features, which hold codes. If ``most_bins`` is None, each has
            as many bins as are possible.
        """
        check("BinnedData", "most_bins", most_bins, or_none(Whole(2, MOST_BINS)))
        most_categories = most_bins or MOST_BINS
        if most_bins is None:
            most_bins = bins_for(len(docs) if len(docs) else X.shape[0])
        main = BinnedColumns.make(X, rows, docs, most_bins, seed, categorical, most_categories)
        return cls(main, _no_columns(main.columns.shape[1]), tuple(feature_names))

    @classmethod
    def of(
        cls,
        data: RankingData,
        *,
        most_bins: int | None = MOST_BINS,
        seed: int = 0,
        categorical: Sequence[int] | None = None,
    ) -> BinnedData:
        """Bin the whole matrix that a data set shares with its splits and folds.

        Parameters
        ----------
        data
            Data set; `fit` takes the result as ``binned`` for this set, its splits and folds.
        most_bins, seed
            As in `make`.
        categorical
            Columns of categorical features; those that the data set says are if None.
        """
        if categorical is None:
            categorical = [data.feature_names.index(name) for name in data.categories]
        return cls.make(
            data.matrix,
            data.feature_names,
            most_bins=most_bins,
            seed=seed,
            categorical=categorical,
        )

    def append(self, X: NDArray[np.float32], feature_names: Sequence[str]) -> BinnedData:
        """Return the same rows with more features, such as the scores of other rankers.

        The main bins are shared, not copied.

        Parameters
        ----------
        X
            New features of all rows.
        feature_names
            Names of the new features.
        """
        with np.errstate(over="ignore"):
            X = np.ascontiguousarray(X, np.float32)
        names = [*self.feature_names, *feature_names]
        if X.shape != (self.n_rows, len(feature_names)) or np.isinf(X).any():
            raise DataError(
                f"append: the features have the shape {X.shape}; expected finite numbers, "
                f"{self.n_rows} rows and {len(feature_names)} columns"
            )
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"append: feature {twice!r} is there already; give it another name")
        added = BinnedColumns.make(X, EVERY_ROW, EVERY_ROW, MOST_BINS, 0)
        return BinnedData(self.main, self.more.append(added), tuple(names))

    def save(self, folder: str | Path) -> None:
        """Write the bins to a folder, which any number of processes can map into memory.

        Parameters
        ----------
        folder
            New folder; it is written whole or not at all.
        """
        target = Path(folder)
        if target.exists():
            raise UsageError(f"{target}: is there already; name a new folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with summed_folder(target) as folder:
            for name, block in (("main", self.main), ("more", self.more)):
                for field in fields(BinnedColumns):
                    save_array(folder / f"{name}-{field.name}.npy", getattr(block, field.name))
            manifest = json.dumps({"format": FORMAT, "feature_names": self.feature_names})
            (folder / MANIFEST).write_text(manifest)

    @classmethod
    def open(cls, folder: str | Path) -> BinnedData:
        """Map the bins of a folder into memory; processes that do so share it."""
        source = Path(folder)
        try:
            Checksums.of(source).check()
            manifest = json.loads((source / MANIFEST).read_text())
            if manifest["format"] != FORMAT:
                raise ValueError(f"its format is {manifest['format']!r}, expected {FORMAT!r}")
            main, more = (
                BinnedColumns(
                    *(
                        map_array(source / f"{name}-{field.name}.npy")
                        for field in fields(BinnedColumns)
                    )
                )
                for name in ("main", "more")
            )
            names = tuple(str(name) for name in manifest["feature_names"])
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise DataError(f"{source}: cannot be opened as binned data: {problem}") from None
        return cls(main, more, names)._checked(source)

    def _checked(self, source: Path) -> BinnedData:
        """Return these data if the arrays of a folder fit together; kernels do not check."""
        for block in (self.main, self.more):
            width = block.n_bins.size
            is_consistent = (
                self.main.columns.ndim == 2
                and block.n_bins.ndim == 1
                and block.n_codes.shape == (width,)
                and {array.dtype.name for array in (block.n_bins, block.n_codes)} == {"int64"}
                and block.cuts.dtype == np.float32
                and block.columns.shape == (width, self.n_rows)
                and block.cuts.shape == (width, PADDED_CUTS)
                and block.categorical.shape == (width,)
                and block.categorical.dtype == np.bool_
                and {array.dtype.name for array in (block.bundled, block.columns)} == {"uint8"}
                and bool(((block.n_bins >= 1) & (block.n_bins <= MOST_BINS)).all())
                and bool(((block.n_codes >= 1) & (block.n_codes <= block.n_bins + 1)).all())
                # A bin that its column does not have would be counted in another column's bins.
                and bool((block.columns.max(axis=1, initial=0) <= block.n_bins).all())
                and block.bundled.shape == (self.n_rows, len(block.bundles.n_codes))
                and bool((block.bundled.max(axis=0, initial=0) < block.bundles.n_codes).all())
            )
            if not is_consistent:
                raise DataError(f"{source}: the arrays of this folder do not fit together")
        if len(self.main.n_bins) + len(self.more.n_bins) != len(self.feature_names):
            raise DataError(f"{source}: the names of this folder do not fit its columns")
        return self

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.main.columns.shape[1])

    @property
    def categories(self) -> dict[int, NDArray[np.float32]]:
        """The categories that have bins, in their order, of each categorical feature."""
        blocks = [(block, j) for block in (self.main, self.more) for j in range(len(block.n_bins))]
        return {
            feature: block.cuts[j][np.isfinite(block.cuts[j])]
            for feature, (block, j) in enumerate(blocks)
            if block.categorical[j]
        }

    def columns_of(
        self, X: NDArray[np.float32], rows: NDArray[np.int64] = EVERY_ROW
    ) -> tuple[Bytes, Bytes]:
        """Bin other rows by the same cut points; return the main and the appended columns."""
        if X.shape[1] != len(self.feature_names):
            raise DataError(
                f"the data have {X.shape[1]} features; expected {len(self.feature_names)}"
            )
        n_main = len(self.main.n_bins)
        if n_main == X.shape[1]:
            n_rows = len(rows) if len(rows) else X.shape[0]
            return self.main.columns_of(X, rows), frozen(np.zeros((0, n_rows), np.uint8))
        # Rows are chosen before columns are copied, as X may be a large mapped file.
        chosen = X[rows] if len(rows) else X
        main, more = chosen[:, :n_main], chosen[:, n_main:]
        if not is_sparse(X):
            main, more = np.ascontiguousarray(main), np.ascontiguousarray(more)
        return self.main.columns_of(main, EVERY_ROW), self.more.columns_of(more, EVERY_ROW)
