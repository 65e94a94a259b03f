"""Trees and forests: their arrays, their checks, and the scores that they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from rankinite.core.cached import cached_property
from rankinite.core.container import LARGEST, checked_array
from rankinite.core.errors import ModelFileError
from rankinite.core.jit import frozen
from rankinite.core.types import Floats
from rankinite.data.categories import MOST_CODES
from rankinite.data.sparse import dense_rows, is_sparse, row_blocks
from rankinite.trees.bins import MOST_BINS, SET_BYTES
from rankinite.trees.scoring import ForestScorer, find_levels, n_category_bins

# Arrays of a tree with one value per split, and with one per leaf.
SPLIT_ARRAYS: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "threshold": np.float32,
    "missing_left": np.bool_,
    "first": np.uint16,
    "right": np.uint16,
    "gain": np.float64,
    "docs": np.int64,
}
LEAF_ARRAYS: dict[str, type[np.generic]] = {"value": np.float64, "leaf_docs": np.int64}
# Limits of numbers that are not part of scores: sums over all leaves, and over all trees, are
# finite. Whether features and thresholds are sound is for `Tree.is_sound` to say.
MOST_DOCS, LARGEST_GAIN = 1 << 46, 1e250
LIMITS: Mapping[str, tuple[float | None, float]] = {
    "threshold": (None, np.inf),
    "gain": (-LARGEST_GAIN, LARGEST_GAIN),
    "docs": (0, MOST_DOCS),
    "leaf_docs": (0, MOST_DOCS),
}
# Arrays of a forest with categorical features; a file without such features has none of them.
CATEGORIES, N_CATEGORIES, LEFT_SETS = "categories", "n_categories", "left_sets"
NO_SETS = frozen(np.zeros((0, SET_BYTES), np.uint8))

# By feature, the codes of the categories that have bins, in their order.
Categories = Mapping[int, NDArray[np.float32]]
NO_CATEGORIES: Categories = {}


@dataclass(frozen=True)
class Tree:
    """One regression tree.

    Splits are in the order parent, left subtree, right subtree; leaves are numbered from left to
    right. ``first`` and ``right`` then say everything about the shape of the tree.

    Attributes
    ----------
    feature, threshold, missing_left
        A document goes left if its feature is at most the threshold, or missing where
        ``missing_left`` says so. The threshold of a categorical split is NaN.
    first, right
        First leaf of each split's subtree, and first leaf of its right subtree.
    gain, docs
        Gain of each split, and number of training documents that it saw.
    value, leaf_docs
        What each leaf adds to the score, and number of training documents in it.
    left_sets
        One row for each categorical split, in their order: bit b of byte k is set if bin 8 k + b
        goes left. Bin b is category b of the feature in the forest's ``categories``; missing and
        unknown categories have the bin behind the last.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    first: NDArray[np.uint16]
    right: NDArray[np.uint16]
    gain: Floats
    docs: NDArray[np.int64]
    value: Floats
    leaf_docs: NDArray[np.int64]
    left_sets: NDArray[np.uint8] = field(default_factory=lambda: NO_SETS)

    @property
    def n_leaves(self) -> int:
        """Number of leaves: one more than splits."""
        return len(self.value)

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Whether each split is categorical."""
        return np.isnan(self.threshold)

    def left_categories(self, split: int, categories: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return which of its feature's categories a categorical split sends left."""
        row = self.left_sets[np.count_nonzero(self.categorical[:split])]
        return categories[_bits(row)[: len(categories)]]

    def is_sound(self, n_features: int, categories: Categories = NO_CATEGORIES) -> bool:
        """Return whether the numbers are those of a tree; a damaged file's may not be."""
        inside = (self.feature >= 0) & (self.feature < n_features)
        # Infinity is a threshold, too: it separates missing values from all others.
        compares = (self.threshold > -np.inf) | self.categorical
        if not (inside & compares).all():
            return False
        of_categories = np.isin(self.feature, list(categories))
        return bool((of_categories == self.categorical).all() and self._has_sound_sets(categories))

    def _has_sound_sets(self, categories: Categories) -> bool:
        """Tell whether sets hold bins of their features, and missing values as they should."""
        feature, missing_left = self.feature[self.categorical], self.missing_left[self.categorical]
        used, number = np.unique(feature, return_inverse=True)
        of_feature = [n_category_bins(categories[int(j)]) for j in used]
        n_bins = np.array(of_feature, np.int64)[number]
        bins = np.arange(8 * SET_BYTES)
        for begin in range(0, len(n_bins), SETS_A_BLOCK):
            block = slice(begin, begin + SETS_A_BLOCK)
            goes_left = _bits(self.left_sets[block])
            missing = bins == n_bins[block, None]
            if (goes_left[missing] != missing_left[block]).any():
                return False
            if (goes_left & (bins > n_bins[block, None])).any():
                return False
        return True


def _bits(left_sets: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.unpackbits(left_sets, axis=-1, bitorder="little").astype(np.bool_)


# Sets that are checked at a time, a byte for each of their bits.
SETS_A_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class TreeArrays(Sequence[Tree]):
    """Trees whose arrays lie one behind the other; each is made when it is asked for.

    A `Tree` of its own takes more memory than the few numbers that it may have in a file.

    Attributes
    ----------
    values
        The arrays of all trees by name.
    n_leaves
        Number of leaves of each tree.
    left_sets
        The sets of all categorical splits.
    """

    values: Mapping[str, NDArray[Any]]
    n_leaves: NDArray[np.int64]
    left_sets: NDArray[np.uint8]

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> TreeArrays:
        """Return trees as arrays; those that are arrays stay so."""
        if isinstance(trees, TreeArrays):
            return trees
        kinds = SPLIT_ARRAYS | LEAF_ARRAYS
        return cls(
            {
                name: np.concatenate([np.zeros(0, kind), *(getattr(tree, name) for tree in trees)])
                for name, kind in kinds.items()
            },
            np.array([tree.n_leaves for tree in trees], np.int64),
            np.concatenate([NO_SETS, *(tree.left_sets for tree in trees)]),
        )

    @cached_property
    def _offsets(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Where the splits, leaves and sets of each tree begin, and where those of the last end."""
        leaves = np.concatenate([[0], np.cumsum(self.n_leaves)])
        splits = leaves - np.arange(len(leaves))  # a split less than leaves
        sets = np.concatenate([[0], np.cumsum(np.isnan(self.values["threshold"]))])
        return splits, leaves, sets[splits]

    def __len__(self) -> int:
        return len(self.n_leaves)

    @overload
    def __getitem__(self, number: int) -> Tree: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Tree]: ...

    def __getitem__(self, number: int | slice) -> Tree | Sequence[Tree]:
        if isinstance(number, slice):
            begin, end, step = number.indices(len(self))
            if step != 1:
                return tuple(self[k] for k in range(begin, end, step))
            return TreeArrays(*self._between(begin, max(begin, end)))
        place = range(len(self))[number]
        values, _, left_sets = self._between(place, place + 1)
        return Tree(**values, left_sets=left_sets)

    def _between(
        self, begin: int, end: int
    ) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64], NDArray[np.uint8]]:
        splits, leaves, sets = (slice(o[begin], o[end]) for o in self._offsets)
        values = {name: self.values[name][splits] for name in SPLIT_ARRAYS}
        values |= {name: self.values[name][leaves] for name in LEAF_ARRAYS}
        return values, self.n_leaves[begin:end], self.left_sets[sets]


# Numbers of leaves are found for so many documents at a time that scratch memory stays small.
VALUES_PER_PART = 1 << 22
# Leaves are numbered by two bytes.
MAX_LEAVES = 65_536


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees that add up to a score.

    Attributes
    ----------
    trees
        The trees; tree t adds to output ``t % len(start)``.
    start
        Scores before the first tree, one per output.
    n_features
        Number of features of a document.
    categories
        By categorical feature, the codes of the categories that have bins, in increasing order.
    """

    trees: Sequence[Tree]
    start: Floats
    n_features: int
    categories: Categories = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.trees)

    def first(self, n_rounds: int) -> Forest:
        """Return the forest of the first rounds; a round is one tree per output."""
        n_trees = n_rounds * len(self.start)
        # The same forest, whose arrays for scoring may be made already.
        if n_trees >= len(self.trees):
            return self
        return replace(self, trees=self.trees[:n_trees])

    def scores(self, X: NDArray[np.float32], rows: NDArray[np.int64] | None = None) -> Floats:
        """Return the scores of some rows, one row of scores per output.

        Parameters
        ----------
        X
            Feature matrix.
        rows
            Rows to score; all if None.
        """
        n_docs = X.shape[0] if rows is None else len(rows)
        return self.add_to(np.repeat(self.start[:, None], n_docs, axis=1), X, rows)

    def add_to(
        self, scores: Floats, X: NDArray[np.float32], rows: NDArray[np.int64] | None = None
    ) -> Floats:
        """Add the trees' values to the scores of the rows, and return these."""
        if not is_sparse(X):
            return self._scorer.add_to(scores, X, rows)
        # Dense, some documents at a time, and only the features that some split asks for.
        features = self._scorer.features
        used = X[:, features]
        for docs in row_blocks(scores.shape[1], len(features)):
            block = dense_rows(used, docs if rows is None else rows[docs])
            scores[:, docs] = self._scorer_of_used.add_to(scores[:, docs], block, None)
        return scores

    def leaves(
        self, X: NDArray[np.float32], rows: NDArray[np.int64] | None = None
    ) -> NDArray[np.int32]:
        """Return the number of the leaf that each row (rows) reaches in each tree (columns).

        Parameters
        ----------
        X, rows
            As in `scores`.
        """
        n_docs, n_trees = len(X) if rows is None else len(rows), len(self.trees)
        out = np.empty((n_docs, n_trees), np.int32)
        if n_trees == 0:
            return out
        # The kernel of scores: of trees with an output each, whose leaves have numbers as values.
        numbered = Forest(
            tuple(
                replace(tree, value=np.arange(tree.n_leaves, dtype=np.float64))
                for tree in self.trees
            ),
            np.zeros(n_trees),
            self.n_features,
            self.categories,
        )
        every = np.arange(n_docs) if rows is None else rows
        step = max(1, VALUES_PER_PART // n_trees)
        for begin in range(0, n_docs, step):
            part = every[begin : begin + step]
            out[begin : begin + step] = numbered.scores(X, part).T
        return out

    @property
    def arrays(self) -> TreeArrays:
        """The arrays of all trees."""
        return TreeArrays.of(self.trees)

    @cached_property
    def _scorer(self) -> ForestScorer:
        arrays = self.arrays
        names = ("feature", "threshold", "missing_left", "first", "right", "value")
        return ForestScorer(
            **{name: arrays.values[name] for name in names},
            n_leaves=arrays.n_leaves,
            left_sets=arrays.left_sets,
            categories=self.categories,
        )

    @cached_property
    def _scorer_of_used(self) -> ForestScorer:
        """The same for a matrix of those features only that some split asks for."""
        scorer = self._scorer
        place = {int(feature): j for j, feature in enumerate(scorer.features)}
        return replace(
            scorer,
            feature=np.searchsorted(scorer.features, scorer.feature).astype(np.int32),
            categories={place[j]: codes for j, codes in self.categories.items() if j in place},
        )

    def importances(self, kind: str) -> Floats:
        """Return the sum of gains, or the number of splits, of each feature."""
        sums = np.zeros(self.n_features)
        values = self.arrays.values
        np.add.at(sums, values["feature"], values["gain"] if kind == "gain" else 1.0)
        return sums

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a model file."""
        trees = self.arrays
        # No trees are written as empty arrays of no particular type.
        arrays = dict(trees.values) if len(trees) else dict.fromkeys(trees.values, np.zeros(0))
        return {
            **arrays,
            "n_leaves": trees.n_leaves,
            "start": self.start,
            **self._category_arrays(trees.left_sets),
        }

    def _category_arrays(self, left_sets: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        if not self.categories:
            return {}
        n_categories = np.full(self.n_features, -1, np.int64)
        for feature, codes in self.categories.items():
            n_categories[feature] = len(codes)
        return {
            N_CATEGORIES: n_categories,
            CATEGORIES: np.concatenate([self.categories[j] for j in sorted(self.categories)]),
            LEFT_SETS: left_sets,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> Forest:
        """Make a forest of the arrays of a model file; all numbers are checked before use."""
        n_leaves = checked_array(arrays, "n_leaves", np.int64, None, low=1, high=MAX_LEAVES)
        start = checked_array(arrays, "start", np.float64, None)
        if len(start) < 1 or len(n_leaves) % len(start):
            raise ModelFileError("the numbers of trees and leaves in the file do not fit together")
        n_of_all = int(n_leaves.sum())
        values = {
            name: _read_values(arrays, name, kind, n_of_all - len(n_leaves))
            for name, kind in SPLIT_ARRAYS.items()
        } | {name: _read_values(arrays, name, kind, n_of_all) for name, kind in LEAF_ARRAYS.items()}
        categories = _read_categories(arrays, n_features)
        left_sets = _read_left_sets(arrays, int(np.isnan(values["threshold"]).sum()))
        trees = TreeArrays(values, n_leaves, left_sets)
        unsound = find_levels(values["first"], values["right"], n_leaves).unsound
        # All at once, as if they were one tree, and one by one only to tell which it is.
        if unsound >= 0 or not Tree(**values, left_sets=left_sets).is_sound(n_features, categories):
            numbers = (k for k, t in enumerate(trees) if not t.is_sound(n_features, categories))
            number = min(next(numbers, len(trees)), unsound if unsound >= 0 else len(trees))
            raise ModelFileError(f"tree {number} in the file is no tree")
        return cls(trees, start, n_features, categories)


def _read_values(
    arrays: Mapping[str, NDArray[Any]], name: str, kind: type[np.generic], length: int
) -> NDArray[Any]:
    """Check an array of all splits, or of all leaves."""
    array = arrays.get(name)
    # A forest without trees is written as empty arrays of no particular type.
    if length == 0 and array is not None and array.dtype == np.float64:
        kind = np.float64
    low, high = LIMITS.get(name, (-LARGEST, LARGEST))
    checked = checked_array(arrays, name, kind, length, low=low, high=high)
    return checked.astype((SPLIT_ARRAYS | LEAF_ARRAYS)[name], copy=False)


def _read_categories(arrays: Mapping[str, NDArray[Any]], n_features: int) -> Categories:
    """Check the categories of a model file: of each feature increasing whole numbers."""
    if N_CATEGORIES not in arrays:
        return {}
    counts = checked_array(arrays, N_CATEGORIES, np.int64, n_features, low=-1, high=MOST_BINS)
    lengths = counts.clip(0)
    codes = checked_array(
        arrays, CATEGORIES, np.float32, int(lengths.sum()), low=0, high=MOST_CODES - 1
    )
    ends = np.cumsum(lengths)
    rises = np.diff(codes) > 0
    # Between two features they need not rise; a feature without codes has no last one.
    rises[ends[(ends > 0) & (ends < len(codes))] - 1] = True
    if not rises.all() or (np.floor(codes) != codes).any():
        raise ModelFileError("the categories in the file are not increasing whole numbers")
    return {
        int(j): frozen(codes[ends[j] - counts[j] : ends[j]]) for j in np.flatnonzero(counts >= 0)
    }


def _read_left_sets(arrays: Mapping[str, NDArray[Any]], n_sets: int) -> NDArray[np.uint8]:
    # A file without categorical features has none; and no kernel has read-only ones.
    if n_sets == 0 and LEFT_SETS not in arrays:
        return NO_SETS.copy()
    return checked_array(arrays, LEFT_SETS, np.uint8, n_sets, SET_BYTES)


def mean_of_rounds(forest: Forest, weights: Floats) -> Forest:
    """Return one forest that scores like the weighted mean of a forest after each of its rounds.

    Parameters
    ----------
    forest
        The trees of all rounds, at least as many as there are weights.
    weights
        The weight of the forest after each round, from the first on; they sum to 1.
    """
    # A tree is part of the forests after its own round and all later ones.
    shares = np.cumsum(weights[::-1])[::-1]
    width = len(forest.start)
    trees = tuple(
        replace(tree, value=tree.value * shares[number // width])
        for number, tree in enumerate(forest.trees[: len(weights) * width])
    )
    return replace(forest, trees=trees)
