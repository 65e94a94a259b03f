"""How trees score: by numpy as long as there is little to do, then by compiled kernels.

To import numba and to load machine code takes about a second, which is longer than most programs
need that load a model and score once. So the first calls of a process are left to numpy, as far as
they are short (`PLAIN_CALLS`, `PLAIN_SECONDS`). Both add the same values in the same order: scores
do not depend on who computed them, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.cached import cached_property
from rankinite.core.jit import JIT_IS_OFF, frozen
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats
from rankinite.trees.bins import EVERY_ROW, MOST_BINS, PADDED_CUTS, SET_BYTES

if TYPE_CHECKING:
    from rankinite.trees.kernels.predict import ForestArrays

# Fewer documents are scored before another thread would have started.
DOCS_PER_THREAD = 512
# A process that scores more often than this will go on to do so, and is worth compiled code.
PLAIN_CALLS = 3
# What numpy is expected to take for a call at most; about half of the time to load compiled code.
PLAIN_SECONDS = 0.5
# Trees with more different comparisons have too many combinations of their results.
MOST_COMPARISONS = 12
# Documents x trees that are followed at a time.
BLOCK_NODES = 1 << 17
# Cut points between 255 bins.
MOST_CUTS = MOST_BINS - 1
# Nanoseconds that numpy takes: for a document at a level of a tree; for a comparison that splits
# share, for a document in it, and to find the leaf of a combination of results.
DOC_LEVEL, COMPARISON, COMPARED_DOC, COMBINATION = 22.0, 2_500.0, 1.0, 150.0


# The shape of trees


@dataclass(frozen=True)
class Levels:
    """The splits of several trees, level by level.

    Attributes
    ----------
    left, right
        Children of each split: at least 0 is a split, others are the complement of a leaf.
    trees
        By level, the tree of each of its splits.
    unsound
        The first tree whose splits do not divide its leaves; -1 if all do.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    trees: Sequence[NDArray[np.int64]]
    unsound: int = -1


def find_levels(first: NDArray[Any], right: NDArray[Any], n_leaves: NDArray[np.int64]) -> Levels:
    """Follow the order of splits: each divides its range of leaves, left subtree before right.

    Parameters
    ----------
    first, right
        First leaf of each split's subtree, and first leaf of its right subtree, of all trees one
        behind the other; they may come from a damaged file.
    n_leaves
        Number of leaves of each tree.
    """
    first, right = first.astype(np.int64), right.astype(np.int64)
    children = np.empty((2, len(first)), np.int64)
    leaf_offsets = np.cumsum(n_leaves) - n_leaves
    split_offsets = leaf_offsets - np.arange(len(n_leaves))  # one split less than leaves
    tree = np.flatnonzero(n_leaves > 1)
    split, begin, end = split_offsets[tree], np.zeros(len(tree), np.int64), n_leaves[tree]
    trees: list[NDArray[np.int64]] = []
    while len(split):
        middle = right[split]
        sound = (first[split] == begin) & (begin < middle) & (middle < end)
        if not sound.all():
            unsound = int(tree[~sound].min())
            return Levels(children[0], children[1], trees, unsound)
        trees.append(tree)
        # A left subtree with k leaves has the next k - 1 splits.
        right_split = split + (middle - begin)
        has_left, has_right = middle - begin > 1, end - middle > 1
        leaves = leaf_offsets[tree]
        children[0, split] = np.where(has_left, split + 1, ~(leaves + begin))
        children[1, split] = np.where(has_right, right_split, ~(leaves + middle))
        tree = np.concatenate([tree[has_left], tree[has_right]])
        split = np.concatenate([split[has_left] + 1, right_split[has_right]])
        begin = np.concatenate([begin[has_left], middle[has_right]])
        end = np.concatenate([middle[has_left], end[has_right]])
    return Levels(children[0], children[1], trees)


@dataclass(frozen=True)
class Comparisons:
    """Comparisons of a feature with a threshold, by tree: symmetric trees have few different ones.

    Attributes
    ----------
    splits
        For each comparison of each tree, one of the splits that make it.
    offsets
        Where the comparisons of each tree begin.
    of_split
        Which of its tree's comparisons each split makes.
    """

    splits: NDArray[np.int64]
    offsets: NDArray[np.int64]
    of_split: NDArray[np.int64]


# Forests


@dataclass(frozen=True, eq=False)
class ForestScorer:
    """What scores documents by the trees of a forest, whose arrays lie one behind the other.

    Attributes
    ----------
    feature, threshold, missing_left, first, right
        The splits of all trees, as `Tree` has them.
    value
        Values of the leaves.
    n_leaves
        Number of leaves of each tree.
    left_sets
        Sets of the categorical splits.
    categories
        By categorical feature, the codes of the categories that have bins.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    first: NDArray[np.uint16]
    right: NDArray[np.uint16]
    value: Floats
    n_leaves: NDArray[np.int64]
    left_sets: NDArray[np.uint8]
    categories: Any

    @cached_property
    def features(self) -> NDArray[np.int64]:
        """The features that some split asks for."""
        return np.unique(self.feature).astype(np.int64)

    def add_to(
        self, scores: Floats, X: NDArray[np.float32], rows: NDArray[np.int64] | None
    ) -> Floats:
        """Add the values of the trees to the scores of rows of a dense matrix, and return these.

        Tree t adds to row ``t % len(scores)`` of the scores.
        """
        if len(self.n_leaves) == 0 or scores.shape[1] == 0:
            return scores
        if _Calls.are_compiled or self.categories or not self._is_plain_work(X, rows):
            return self.add_compiled(scores, X, rows)
        return self.add_plainly(scores, X, rows)

    # By numpy

    def _is_plain_work(self, X: NDArray[np.float32], rows: NDArray[np.int64] | None) -> bool:
        """Tell whether numpy should score rows of a matrix, as the first calls of a process."""
        n_docs = X.shape[0] if rows is None else len(rows)
        seconds = self._seconds_of_levels(n_docs)
        by_codes = self._seconds_of_codes(n_docs)
        # Only if it matters are all values looked at.
        if by_codes <= PLAIN_SECONDS < seconds and not np.isnan(self._used(X, rows)).any():
            seconds = by_codes
        return not _is_worth_compiled_code(seconds)

    def _used(self, X: NDArray[np.float32], rows: NDArray[np.int64] | None) -> NDArray[np.float32]:
        """Return the features that some split asks for, of rows of a matrix."""
        return np.ascontiguousarray(
            X[:, self.features] if rows is None else X[rows[:, None], self.features]
        )

    def _seconds_of_levels(self, n_docs: int) -> float:
        return float(n_docs * self._depths.sum() * DOC_LEVEL * 1e-9)

    def _seconds_of_codes(self, n_docs: int) -> float:
        if self._comparisons is None:
            return math.inf
        n_combinations = (1 << np.diff(self._comparisons.offsets)).sum()
        compared = len(self._comparisons.splits) * (COMPARISON + n_docs * COMPARED_DOC)
        return float(compared + n_combinations * COMBINATION) * 1e-9

    def add_plainly(
        self, scores: Floats, X: NDArray[np.float32], rows: NDArray[np.int64] | None
    ) -> Floats:
        """Add the values of the trees by numpy; none of the splits may be categorical."""
        used = self._used(X, rows)
        place = np.searchsorted(self.features, self.feature)
        has_few = self._seconds_of_codes(len(used)) < self._seconds_of_levels(len(used))
        # Splits that compare the same may send missing values to different sides.
        if self._comparisons is not None and has_few and not np.isnan(used).any():
            columns = np.ascontiguousarray(used.T)
            self._add_by_codes(self._comparisons, scores, columns, place)
            return scores
        step = max(1, BLOCK_NODES // len(self.n_leaves))
        for begin in range(0, len(used), step):
            values = self.value[~self._find_leaves(used[begin : begin + step], place)]
            part = scores[:, begin : begin + step]
            for tree, added in enumerate(values):
                part[tree % len(scores)] += added
        return scores

    @cached_property
    def _levels(self) -> Levels:
        return find_levels(self.first, self.right, self.n_leaves)

    @cached_property
    def _depths(self) -> NDArray[np.int64]:
        """How many levels of splits each tree has."""
        depths = np.zeros(len(self.n_leaves), np.int64)
        for level, trees in enumerate(self._levels.trees):
            depths[trees] = level + 1
        return depths

    @cached_property
    def _roots(self) -> NDArray[np.int64]:
        """The first node of each tree: a split, or the complement of its only leaf."""
        leaf = np.cumsum(self.n_leaves) - self.n_leaves
        return np.where(self.n_leaves > 1, leaf - np.arange(len(leaf)), ~leaf)

    @cached_property
    def _comparisons(self) -> Comparisons | None:
        """The different comparisons of each tree; None if some tree has too many."""
        tree = np.repeat(np.arange(len(self.n_leaves)), self.n_leaves - 1)
        order = np.lexsort((self.threshold, self.feature, tree))
        keys = np.stack([tree[order], self.feature[order], self.threshold[order].view(np.int32)])
        is_new = np.ones(len(order), np.bool_)
        is_new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
        chosen = order[is_new]
        n_of_tree = np.bincount(tree[chosen], minlength=len(self.n_leaves))
        if n_of_tree.max(initial=0) > MOST_COMPARISONS:
            return None
        offsets = np.concatenate([[0], np.cumsum(n_of_tree)])
        number = np.empty(len(order), np.int64)
        number[order] = np.cumsum(is_new) - 1
        return Comparisons(chosen, offsets, number - offsets[tree])

    def _add_by_codes(
        self,
        comparisons: Comparisons,
        scores: Floats,
        columns: NDArray[np.float32],
        place: NDArray[np.int64],
    ) -> None:
        """Add the values of trees whose few comparisons give a code of as many bits."""
        above = np.empty(columns.shape[1], np.bool_)
        bounds = pairwise(comparisons.offsets.tolist())
        for tree, ((begin, end), values) in enumerate(zip(bounds, self._values, strict=True)):
            code = np.zeros(columns.shape[1], np.uint16)
            for split in comparisons.splits[begin:end]:
                np.greater(columns[place[split]], self.threshold[split], out=above)
                code += code
                code += above
            scores[tree % len(scores)] += values[code]

    @cached_property
    def _values(self) -> list[Floats]:
        """By tree, the value of the leaf that every combination of its comparisons leads to."""
        if self._comparisons is None:
            raise AssertionError("the trees have too many comparisons")
        numbers = np.diff(self._comparisons.offsets)
        values: list[Floats] = [np.zeros(0)] * len(numbers)
        for n in np.unique(numbers):
            trees = np.flatnonzero(numbers == n)
            codes = np.arange(1 << n)
            node = np.repeat(self._roots[trees][:, None], len(codes), axis=1)
            while (inner := node >= 0).any():
                split = np.where(inner, node, 0)
                above = (codes >> (n - 1 - self._comparisons.of_split[split])) & 1
                child = np.where(above, self._levels.right[split], self._levels.left[split])
                node = np.where(inner, child, node)
            for tree, leaves in zip(trees, ~node, strict=True):
                values[tree] = self.value[leaves]
        return values

    def _find_leaves(self, used: NDArray[np.float32], place: NDArray[np.int64]) -> NDArray[Any]:
        """Return the complement of the leaf of each document in each tree: trees x documents."""
        node = np.repeat(self._roots[:, None], len(used), axis=1)
        at = np.flatnonzero(node >= 0)
        flat = node.reshape(-1)
        while len(at):
            split, doc = flat[at], at % len(used)
            numbers = used[doc, place[split]]
            # A comparison with NaN is false either way.
            goes_right = np.where(
                self.missing_left[split],
                numbers > self.threshold[split],
                ~(numbers <= self.threshold[split]),
            )
            child = np.where(goes_right, self._levels.right[split], self._levels.left[split])
            flat[at] = child
            at = at[child >= 0]
        return node

    # By kernels

    def add_compiled(
        self, scores: Floats, X: NDArray[np.float32], rows: NDArray[np.int64] | None
    ) -> Floats:
        """Add the values of the trees by a kernel; many documents are scored on several threads."""
        from rankinite.trees.kernels.predict import BLOCK_DOCS, score_rows

        arrays = self._arrays
        X, rows = frozen(X), EVERY_ROW if rows is None else frozen(rows)

        def score_range(begin: int, end: int) -> None:
            # Numba compiles a kernel again for arrays that are not contiguous.
            part = np.ascontiguousarray(scores[:, begin:end])
            leaves = np.empty(BLOCK_DOCS, arrays.first.dtype)
            score_rows(X, rows, arrays, begin, leaves, part)
            scores[:, begin:end] = part

        parallel_for(score_range, scores.shape[1], grain=DOCS_PER_THREAD)
        return scores

    @cached_property
    def _arrays(self) -> ForestArrays:
        """The trees as comparisons of bytes: the thresholds of all trees are cut points of bins."""
        from rankinite.trees.kernels.predict import ForestArrays, leaf_type

        features, place = np.unique(self.feature, return_inverse=True)
        column, cut = np.empty((2, len(self.feature)), np.int64)
        # The feature, the cut points and the number of bins of each column.
        columns: list[tuple[int, NDArray[np.float32], int]] = []
        for j, feature in enumerate(features.tolist()):
            splits, first = np.flatnonzero(place == j), len(columns)
            if feature in self.categories:
                codes = self.categories[feature]
                column[splits], cut[splits] = first, 0
                columns.append((feature, codes, n_category_bins(codes)))
                continue
            # Infinity, which separates missing values from all others, is no cut between bins.
            wanted = self.threshold[splits]
            thresholds = np.unique(wanted[np.isfinite(wanted)])
            # A feature with more thresholds than bins can have between them is several columns.
            parts = [thresholds[k : k + MOST_CUTS] for k in range(0, len(thresholds), MOST_CUTS)]
            columns += [(feature, part, len(part) + 1) for part in parts or [thresholds]]
            number = np.searchsorted(thresholds, wanted)
            part_of_split = np.minimum(number // MOST_CUTS, max(0, len(parts) - 1))
            column[splits], cut[splits] = first + part_of_split, number - part_of_split * MOST_CUTS
        cuts = np.full((len(columns), PADDED_CUTS), np.inf, np.float32)
        for row, (_, points, _) in zip(cuts, columns, strict=True):
            row[: len(points)] = points
        column_features = np.array([feature for feature, _, _ in columns], np.int64)
        n_bins = np.array([n for _, _, n in columns], np.int64)
        categorical = np.isnan(self.threshold)
        # As `missing_shift` of a single split. A categorical one compares sides, 0 and 1.
        shift = np.where(self.missing_left & ~categorical, 256 - n_bins[column], 0)
        offsets = np.concatenate([[0], np.cumsum(self.n_leaves)])
        kind = leaf_type(int(self.n_leaves.max(initial=1)))
        return ForestArrays(
            features=column_features,
            cuts=cuts,
            n_bins=n_bins,
            categorical=np.isin(column_features, list(self.categories)),
            column=column.astype(np.int32),
            shift=shift.astype(np.uint8),
            bound=(cut + shift).astype(np.uint8),
            first=self.first.astype(kind),
            right=self.right.astype(kind),
            set_of=set_numbers(categorical),
            left_sets=self.left_sets,
            values=self.value,
            split_offsets=offsets - np.arange(len(offsets)),  # one split less than leaves
            value_offsets=offsets,
        )


def set_numbers(categorical: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the number of each categorical split among these; -1 for numerical splits."""
    return np.where(categorical, np.cumsum(categorical) - 1, -1).astype(np.int32)


def n_category_bins(categories: NDArray[np.float32]) -> int:
    """Return the number of bins of a categorical feature, which has one even without categories."""
    return max(1, len(categories))


# Who scores


class _Calls:
    """How often this process has scored by numpy, and whether it has loaded compiled code."""

    n = 0
    are_compiled = False


def _is_worth_compiled_code(seconds: float) -> bool:
    """Tell whether a call is to use compiled code, from how long numpy would take."""
    if JIT_IS_OFF or seconds > PLAIN_SECONDS or _Calls.n >= PLAIN_CALLS:
        _Calls.are_compiled = True
    _Calls.n += 1
    return _Calls.are_compiled


def load_compiled_code() -> None:
    """Load, or compile, what scores by trees, so that no later call of this process has to."""
    _Calls.are_compiled = True
    for n_leaves in (2, 257):  # leaves are numbered by one byte or by two
        split = np.arange(n_leaves - 1)
        chain = ForestScorer(
            feature=np.zeros(n_leaves - 1, np.int32),
            threshold=(split % 250).astype(np.float32)[::-1],
            missing_left=np.zeros(n_leaves - 1, np.bool_),
            first=np.zeros(n_leaves - 1, np.uint16),
            right=(n_leaves - 1 - split).astype(np.uint16),
            value=np.zeros(n_leaves),
            n_leaves=np.array([n_leaves]),
            left_sets=np.zeros((0, SET_BYTES), np.uint8),
            categories={},
        )
        chain.add_compiled(np.zeros((1, 1)), np.zeros((1, 1), np.float32), None)
