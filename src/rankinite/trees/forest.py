"""Trees and forests: their arrays, their checks, and the scores that they give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.cached import cached_property
from rankinite.core.errors import ModelFileError
from rankinite.core.jit import frozen
from rankinite.core.types import Floats
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
        numbers = np.isfinite(self.value).all() and np.isfinite(self.gain).all()
        if not (inside & compares).all() or not numbers:
            return False
        of_categories = np.isin(self.feature, list(categories))
        return bool((of_categories == self.categorical).all() and self._has_sound_sets(categories))

    def _has_sound_sets(self, categories: Categories) -> bool:
        """Tell whether sets hold bins of their features, and missing values as they should."""
        splits = np.flatnonzero(self.categorical)
        for split, row in zip(splits, self.left_sets, strict=True):
            n_bins = n_category_bins(categories[int(self.feature[split])])
            goes_left = _bits(row)
            if goes_left[n_bins] != self.missing_left[split] or goes_left[n_bins + 1 :].any():
                return False
        return True


def _bits(left_set: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.unpackbits(left_set, bitorder="little").astype(np.bool_)


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

    trees: tuple[Tree, ...]
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

    @cached_property
    def _scorer(self) -> ForestScorer:
        kinds = SPLIT_ARRAYS | LEAF_ARRAYS
        arrays = {
            name: np.concatenate(
                [np.zeros(0, kinds[name]), *(getattr(t, name) for t in self.trees)]
            )
            for name in ("feature", "threshold", "missing_left", "first", "right", "value")
        }
        return ForestScorer(
            **arrays,
            n_leaves=np.array([tree.n_leaves for tree in self.trees], np.int64),
            left_sets=np.concatenate([NO_SETS, *(tree.left_sets for tree in self.trees)]),
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
        for tree in self.trees:
            np.add.at(sums, tree.feature, tree.gain if kind == "gain" else 1.0)
        return sums

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a model file."""
        arrays = {
            name: np.concatenate([getattr(tree, name) for tree in self.trees])
            if self.trees
            else np.zeros(0)
            for name in SPLIT_ARRAYS | LEAF_ARRAYS
        }
        arrays["n_leaves"] = np.array([tree.n_leaves for tree in self.trees], np.int64)
        return {**arrays, "start": self.start, **self._category_arrays()}

    def _category_arrays(self) -> dict[str, NDArray[Any]]:
        if not self.categories:
            return {}
        n_categories = np.full(self.n_features, -1, np.int64)
        for feature, codes in self.categories.items():
            n_categories[feature] = len(codes)
        return {
            N_CATEGORIES: n_categories,
            CATEGORIES: np.concatenate([self.categories[j] for j in sorted(self.categories)]),
            LEFT_SETS: np.concatenate([NO_SETS, *(tree.left_sets for tree in self.trees)]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> Forest:
        """Make a forest of the arrays of a model file; all numbers are checked before use."""
        n_leaves = _checked(arrays, "n_leaves", np.int64)
        start = _checked(arrays, "start", np.float64)
        possible = (n_leaves >= 1) & (n_leaves <= MAX_LEAVES)
        if len(start) < 1 or len(n_leaves) % len(start) or not possible.all():
            raise ModelFileError("the numbers of trees and leaves in the file do not fit together")
        if not np.isfinite(start).all():
            raise ModelFileError("the scores to begin with in the file are not finite")
        values = {
            name: _checked(arrays, name, kind, n_leaves - 1) for name, kind in SPLIT_ARRAYS.items()
        } | {name: _checked(arrays, name, kind, n_leaves) for name, kind in LEAF_ARRAYS.items()}
        categories = _read_categories(arrays, n_features)
        left_sets = _read_left_sets(arrays, int(np.isnan(values["threshold"]).sum()))
        trees = tuple(separate_trees(values, n_leaves, left_sets))
        unsound = find_levels(values["first"], values["right"], n_leaves).unsound
        # All at once, as if they were one tree, and one by one only to tell which it is.
        if unsound >= 0 or not Tree(**values, left_sets=left_sets).is_sound(n_features, categories):
            numbers = (k for k, t in enumerate(trees) if not t.is_sound(n_features, categories))
            number = min(next(numbers, len(trees)), unsound if unsound >= 0 else len(trees))
            raise ModelFileError(f"tree {number} in the file is no tree")
        return cls(trees, start, n_features, categories)


def _read_categories(arrays: Mapping[str, NDArray[Any]], n_features: int) -> Categories:
    """Check the categories of a model file: of each feature increasing whole numbers."""
    if N_CATEGORIES not in arrays:
        return {}
    counts = _checked(arrays, N_CATEGORIES, np.int64)
    codes = _checked(arrays, CATEGORIES, np.float32)
    fits = len(counts) == n_features and ((counts >= -1) & (counts <= MOST_BINS)).all()
    if not fits or counts.clip(0).sum() != len(codes):
        raise ModelFileError("the numbers of categories in the file do not fit together")
    ends = np.cumsum(counts.clip(0))
    categories = {
        int(j): frozen(codes[ends[j] - counts[j] : ends[j]]) for j in np.flatnonzero(counts >= 0)
    }
    for of_feature in categories.values():
        whole = np.isfinite(of_feature) & (of_feature >= 0) & (np.floor(of_feature) == of_feature)
        if not whole.all() or (np.diff(of_feature) <= 0).any():
            raise ModelFileError("the categories in the file are not increasing whole numbers")
    return categories


def _read_left_sets(arrays: Mapping[str, NDArray[Any]], n_sets: int) -> NDArray[np.uint8]:
    left_sets = arrays.get(LEFT_SETS, NO_SETS)
    if left_sets.shape != (n_sets, SET_BYTES) or left_sets.dtype != np.uint8:
        raise ModelFileError("the file does not have a set for each of its categorical splits")
    return left_sets


def _checked(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    kind: type[np.generic],
    lengths: NDArray[np.int64] | None = None,
) -> NDArray[Any]:
    array = arrays.get(name)
    # A forest without trees is written as empty arrays of no particular type.
    if array is None or array.ndim != 1 or (array.dtype != kind and array.size):
        raise ModelFileError(f"the file lacks {name!r}, or it is not of the right kind")
    if lengths is not None and len(array) != lengths.sum():
        raise ModelFileError(f"{name!r} in the file has {len(array)} values; more or fewer fit")
    return array.astype(kind)


def separate_trees(
    values: Mapping[str, NDArray[Any]], n_leaves: NDArray[np.int64], left_sets: NDArray[np.uint8]
) -> Iterator[Tree]:
    """Iterate over trees whose arrays lie one behind the other."""
    set_end = 0
    leaf_ends = np.cumsum(n_leaves)
    split_ends = np.cumsum(n_leaves - 1)
    for leaf_end, split_end, n in zip(leaf_ends, split_ends, n_leaves, strict=True):
        arrays = {name: values[name][split_end - n + 1 : split_end] for name in SPLIT_ARRAYS}
        arrays |= {name: values[name][leaf_end - n : leaf_end] for name in LEAF_ARRAYS}
        set_begin, set_end = set_end, set_end + int(np.isnan(arrays["threshold"]).sum())
        yield Tree(**arrays, left_sets=left_sets[set_begin:set_end])


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
