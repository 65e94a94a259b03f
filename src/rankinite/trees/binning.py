"""BinnedData: features as bytes, made once and shared by any number of fits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.files import atomic_folder, save_array
from rankinite.core.jit import frozen, n_threads
from rankinite.core.params import Whole, check
from rankinite.core.random import generator
from rankinite.data.ranking_data import RankingData
from rankinite.trees.kernels.binning import encode, find_cuts
from rankinite.trees.kernels.histogram import COLUMNS_A_WORD

MOST_BINS = 255
SLOTS = 256
FORMAT = "rankinite binned data 1"
MANIFEST = "manifest.json"
# Cut points are found on so many rows at most.
SAMPLE_ROWS = 100_000

Bytes = NDArray[np.uint8]


EVERY_ROW = frozen(np.zeros(0, np.int64))


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
        # Kernels are compiled anew for arrays that can be written to: all inputs are frozen.
        bins = np.zeros((n_rows, width), np.uint8)
        columns = np.zeros((width, n_rows), np.uint8)
        encode(frozen(X), frozen(rows), cuts, n_bins, bins, columns)
        return cls(frozen(bins), frozen(columns), cuts, n_bins)

    def columns_of(self, X: NDArray[np.float32], rows: NDArray[np.int64]) -> Bytes:
        """Bin other rows by these cut points, column by column."""
        n_rows = len(rows) if len(rows) else len(X)
        columns = np.zeros((len(self.n_bins), n_rows), np.uint8)
        nothing = np.zeros((0, 0), np.uint8)
        encode(frozen(X), frozen(rows), self.cuts, self.n_bins, nothing, columns)
        return frozen(columns)

    def beside(self, other: Block) -> Block:
        """Return the columns of both, those of the other behind, padded anew."""
        n_rows = self.columns.shape[1]
        n_columns = len(self.used) + len(other.used)
        columns = np.zeros((padded(n_columns), n_rows), np.uint8)
        cuts = np.full((len(columns), SLOTS), np.inf, np.float32)
        n_bins = np.zeros(len(columns), np.int64)
        for start, block in ((0, self), (len(self.used), other)):
            places = slice(start, start + len(block.used))
            columns[places] = block.columns[block.used]
            cuts[places] = block.cuts[block.used]
            n_bins[places] = block.n_bins[block.used]
        bins = np.ascontiguousarray(columns.T)
        return Block(frozen(bins), frozen(columns), frozen(cuts), frozen(n_bins))

    @property
    def used(self) -> NDArray[np.int64]:
        """The columns that are no padding."""
        return np.flatnonzero(self.n_bins)

    @property
    def splittable(self) -> NDArray[np.int64]:
        """How many bins every column has; 0 for one whose values are all the same."""
        several = self.n_bins > 1
        for c in np.flatnonzero(self.n_bins == 1):  # beside that bin there may be missing values
            several[c] = bool((self.columns[c] != self.columns[c, :1]).any())
        return np.where(several, self.n_bins, 0)


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

    with ThreadPoolExecutor(n_threads()) as workers:
        list(workers.map(find, range(0, X.shape[1], COLUMNS_A_WORD)))
    return frozen(cuts), frozen(n_bins)


def _no_columns(n_rows: int) -> Block:
    return Block.make(np.zeros((n_rows, 0), np.float32), EVERY_ROW, EVERY_ROW, MOST_BINS, 0)


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

    @classmethod
    def of(cls, data: RankingData, *, most_bins: int = MOST_BINS, seed: int = 0) -> BinnedData:
        """Bin the whole matrix that a data set, and all that was cut from it, shares.

        Parameters
        ----------
        data
            A data set; `fit` takes the result as ``binned`` for this set, its splits and folds.
        most_bins, seed
            As in `make`.
        """
        return cls.make(data.matrix, data.feature_names, most_bins=most_bins, seed=seed)

    def append(self, X: NDArray[np.float32], feature_names: Sequence[str]) -> BinnedData:
        """Return the same rows with more features, such as the scores of other rankers.

        The bins that are there already are shared, not copied.

        Parameters
        ----------
        X
            The new features of every row.
        feature_names
            Their names.
        """
        with np.errstate(over="ignore"):
            added = np.ascontiguousarray(X, np.float32)
        names = [*self.feature_names, *feature_names]
        if added.shape != (self.n_rows, len(feature_names)) or np.isinf(added).any():
            raise DataError(
                f"append: the features have the shape {added.shape}; expected finite numbers, "
                f"{self.n_rows} rows and {len(feature_names)} columns"
            )
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"append: feature {twice!r} is there already; give it another name")
        block = Block.make(added, EVERY_ROW, EVERY_ROW, MOST_BINS, 0)
        return BinnedData(self.main, self.more.beside(block), tuple(names))

    def save(self, folder: str | Path) -> None:
        """Write the bins to a folder, from which any number of processes can share them.

        Parameters
        ----------
        folder
            A folder that is not there yet; it appears whole or not at all.
        """
        target = Path(folder)
        if target.exists():
            raise UsageError(f"{target}: is there already; name a new folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_folder(target) as made:
            for name, block in (("main", self.main), ("more", self.more)):
                for part in fields(Block):
                    save_array(made / f"{name}-{part.name}.npy", getattr(block, part.name))
            names = json.dumps({"format": FORMAT, "feature_names": self.feature_names})
            (made / MANIFEST).write_text(names)

    @classmethod
    def open(cls, folder: str | Path) -> BinnedData:
        """Map the bins of a folder into memory, which processes that do so share."""
        source = Path(folder)
        try:
            manifest = json.loads((source / MANIFEST).read_text())
            if manifest["format"] != FORMAT:
                raise ValueError(f"its format is {manifest['format']!r}, expected {FORMAT!r}")
            main, more = (
                Block(
                    *(
                        np.asarray(np.load(source / f"{name}-{part.name}.npy", mmap_mode="r"))
                        for part in fields(Block)
                    )
                )
                for name in ("main", "more")
            )
            names = tuple(str(name) for name in manifest["feature_names"])
        except (OSError, EOFError, ValueError, KeyError, TypeError) as problem:
            raise DataError(f"{source}: cannot be opened as binned data: {problem}") from None
        return cls(main, more, names)._checked(source)

    def _checked(self, source: Path) -> BinnedData:
        """Return itself, if the arrays of a folder fit together."""
        for block in (self.main, self.more):
            width = block.n_bins.size
            whole = (
                self.main.columns.ndim == 2
                and block.n_bins.ndim == 1
                and block.n_bins.dtype == np.int64
                and block.cuts.dtype == np.float32
                and block.bins.shape == (self.n_rows, width)
                and block.columns.shape == (width, self.n_rows)
                and block.cuts.shape == (width, SLOTS)
                and {array.dtype.name for array in (block.bins, block.columns)} == {"uint8"}
                and bool(((block.n_bins >= 0) & (block.n_bins <= MOST_BINS)).all())
                # A bin that its column does not have would be counted outside of its slots.
                and bool((block.bins.max(axis=0, initial=0) <= block.n_bins).all())
                and bool((block.columns.max(axis=1, initial=0) <= block.n_bins).all())
            )
            if not whole:
                raise DataError(f"{source}: the arrays of this folder do not fit together")
        if len(self.column_of) != len(self.feature_names):
            raise DataError(f"{source}: the names of this folder do not fit its columns")
        return self

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
            return self.main.columns_of(X, rows), frozen(np.zeros((0, n_rows), np.uint8))
        chosen = X[rows] if len(rows) else X  # before columns are copied, as X may be a large file
        main, more = (np.ascontiguousarray(X) for X in np.split(chosen, [n_main], axis=1))
        return self.main.columns_of(main, EVERY_ROW), self.more.columns_of(more, EVERY_ROW)
