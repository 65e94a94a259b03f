"""Naive reference of the tree engine: raw values, exact fractions, every split tried."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from rankinite.trees.forest import Tree
from rankinite.trees.grower import GrowthOptions


def between(low: float, high: float) -> float:
    """Return the middle as a float32, or the lower value where the middle rounds to the upper."""
    middle = float(np.float32((low + high) / 2))
    return middle if middle < high else low


def cut_points(values: Sequence[float], most_bins: int) -> list[float]:
    """Return the cut points of a column.

    Each distinct value has a bin if there are enough of them. Otherwise a bin is closed before the
    next value if it has its fair share of the values that are left for it and all bins behind it,
    or if it would have more than that with half of the next value's documents.
    """
    counts = sorted(Counter(float(value) for value in values if value == value).items())
    if len(counts) <= most_bins:
        return [between(low, high) for (low, _), (high, _) in pairwise(counts)]
    cuts: list[float] = []
    left = sum(count for _, count in counts)
    filled = counts[0][1]
    for (low, _), (high, count) in pairwise(counts):
        bins_left = most_bins - len(cuts)
        fair = Fraction(left, bins_left)
        if bins_left > 1 and (filled >= fair or filled + Fraction(count, 2) > fair):
            cuts.append(between(low, high))
            left -= filled
            filled = 0
        filled += count
    return cuts


def bin_of(value: float, cuts: Sequence[float]) -> int:
    """Return how many cut points are below a value; a missing one has the bin behind the last."""
    return sum(cut < value for cut in cuts) if value == value else len(cuts) + 1


def histograms(
    bins: np.ndarray, rows: np.ndarray, values: np.ndarray, n_bins: Sequence[int],
    first: int, last: int,
) -> np.ndarray:  # fmt: skip
    """Return the sum of the values in each bin of each column, one column behind the other.

    Columns before `first`, and from `last` on, hold nothing.
    """
    columns = []
    for column, n in enumerate(n_bins):
        sums = np.zeros(n, np.int64)
        if n and first <= column < last:
            for row in rows:
                sums[bins[row, column]] += values[row]
        columns.append(sums)
    return np.concatenate(columns)


def goes_left(value: float, threshold: float, missing_left: bool) -> bool:
    return value <= threshold if value == value else missing_left


@dataclass(frozen=True)
class Node:
    """A split, by its number in the tree, and its children; or a leaf, by its number."""

    number: int
    children: tuple[Node, Node] | None = None


def unfold(tree: Tree) -> Node:
    """Return the root of a tree, whose splits are in the order parent, left, right."""
    numbers = iter(range(tree.n_leaves - 1))

    def node_of(begin: int, end: int) -> Node:
        if end - begin == 1:
            return Node(begin)
        number = next(numbers)
        middle = int(tree.right[number])
        assert int(tree.first[number]) == begin
        assert begin < middle < end
        return Node(number, (node_of(begin, middle), node_of(middle, end)))

    root = node_of(0, tree.n_leaves)
    assert next(numbers, None) is None
    return root


def leaf_of(tree: Tree, document: Sequence[float]) -> int:
    """Walk from the root to a leaf, by raw values."""
    node = unfold(tree)
    while node.children:
        k = node.number
        left = goes_left(
            float(document[tree.feature[k]]), float(tree.threshold[k]), bool(tree.missing_left[k])
        )
        node = node.children[0 if left else 1]
    return node.number


@dataclass(frozen=True)
class Problem:
    """Documents to grow a tree for; those of ``docs`` take part."""

    X: np.ndarray
    gradients: Sequence[float]
    hessians: Sequence[float]
    split_hessians: Sequence[float] | None
    cuts: Sequence[Sequence[float]]
    options: GrowthOptions
    docs: tuple[int, ...]
    features: tuple[int, ...]
    # What integers may change about a gain, as a share of the largest gain possible.
    rounding: Fraction

    def sums(self, docs: Sequence[int]) -> tuple[Fraction, Fraction]:
        """Return the sums of gradients and of the hessians that splits are chosen by."""
        hessians = [1] * len(self.X) if self.split_hessians is None else self.split_hessians
        gradient = sum((Fraction(self.gradients[i]) for i in docs), Fraction(0))
        return gradient, sum((Fraction(hessians[i]) for i in docs), Fraction(0))

    def sides(
        self, docs: Sequence[int], feature: int, threshold: float, missing_left: bool
    ) -> tuple[list[int], list[int]]:
        """Return the documents that go to the left and those that go to the right."""
        lefts, rights = [], []
        for i in docs:
            left = goes_left(float(self.X[i, feature]), threshold, missing_left)
            (lefts if left else rights).append(i)
        return lefts, rights

    def gain(self, lefts: Sequence[int], rights: Sequence[int]) -> Fraction:
        """Return G_l^2 / H_l + G_r^2 / H_r - G^2 / H, or 0 for a split that is not allowed.

        With an L2 term r, every H is H + r; and nobody splits to lose.
        """
        if min(len(lefts), len(rights)) < max(1, self.options.min_docs_in_leaf):
            return Fraction(0)
        (left, left_hessian), (right, right_hessian) = self.sums(lefts), self.sums(rights)
        r = self.l2(self.sums(self.docs)[1])
        if not left_hessian + r or not right_hessian + r:
            return Fraction(0)
        gain = (
            left**2 / (left_hessian + r)
            + right**2 / (right_hessian + r)
            - (left + right) ** 2 / (left_hessian + right_hessian + r)
        )
        return max(gain, Fraction(0))

    def l2(self, hessian: Fraction) -> Fraction:
        """Return what is added to hessians, from the sum of those of all documents."""
        return Fraction(self.options.l2_regularization) * hessian / len(self.docs)

    def every_split(self) -> Iterator[tuple[int, float, bool]]:
        """Yield feature, threshold and side of missing values; infinity is missing or not."""
        for feature in self.features:
            for threshold in (*self.cuts[feature], math.inf):
                yield feature, threshold, False
                yield feature, threshold, True

    def best_gain(self, docs: Sequence[int], depth: int) -> Fraction:
        if self.options.max_depth is not None and depth >= self.options.max_depth:
            return Fraction(0)
        return max(
            (self.gain(*self.sides(docs, *split)) for split in self.every_split()),
            default=Fraction(0),
        )

    def leaf_value(self, docs: Sequence[int]) -> float:
        """Return sum of gradients over sum of hessians, or their mean; 0 if that is no number."""
        gradient = sum((Fraction(self.gradients[i]) for i in docs), Fraction(0))
        divisor = Fraction(len(docs))
        if self.options.step == "newton":
            divisor = sum((Fraction(self.hessians[i]) for i in docs), Fraction(0))
            all_of_them = sum((Fraction(self.hessians[i]) for i in self.docs), Fraction(0))
            divisor += self.l2(all_of_them)
        else:
            divisor += self.l2(Fraction(len(self.docs)))
        return float(gradient / divisor) if divisor else 0.0

    def has_value(self, value: float, docs: Sequence[int]) -> bool:
        """Tell whether this is the value of a leaf: to the last bit, but for the L2 term."""
        expected = self.leaf_value(docs)
        tolerance = 1e-12 if self.options.l2_regularization else 0.0
        return abs(value - expected) <= tolerance * abs(expected)

    @property
    def noise(self) -> Fraction:
        """What rounding may change about a gain: gains that differ by less are equal."""
        size = sum((abs(Fraction(self.gradients[i])) for i in self.docs), Fraction(0))
        hessians = [Fraction(h) for h in self.split_hessians or () if h] or [Fraction(1)]
        # A leaf without any hessian is divided by the L2 term alone.
        smallest = min(*hessians, self.l2(sum(hessians, Fraction(0))) or hessians[0])
        return size**2 / smallest * self.rounding


def assert_grown_best_first(tree: Tree, problem: Problem) -> None:
    """Grow the tree again, by trying everything: each of its splits had the largest gain then.

    Where several leaves or splits gain the same, the tree may have taken any of them.
    """
    options, noise = problem.options, problem.noise
    frontier = [(unfold(tree), list(problem.docs), 0)]
    gains = [problem.best_gain(frontier[0][1], 0)]
    while len(frontier) < options.n_leaves:
        best = max(gains)
        candidates = [
            k
            for k, (node, _, _) in enumerate(frontier)
            if node.children and gains[k] >= best - noise
        ]
        if not candidates:
            assert best <= options.min_gain + noise, "a leaf that gains most was not split"
            break
        assert best > options.min_gain - noise, "a split gains too little"
        node, docs, depth = frontier.pop(candidates[0])
        gain = gains.pop(candidates[0])
        sides = assert_splits(tree, node.number, problem, docs, gain)
        assert node.children
        for child, side in zip(node.children, sides, strict=True):
            frontier.append((child, side, depth + 1))
            gains.append(problem.best_gain(side, depth + 1))
    assert not any(node.children for node, _, _ in frontier)
    for leaf, docs, _ in frontier:
        assert tree.leaf_docs[leaf.number] == len(docs)
        assert problem.has_value(float(tree.value[leaf.number]), docs)


def assert_grown_by_levels(tree: Tree, problem: Problem) -> None:
    """Grow the symmetric tree again, by trying everything: each level had the largest gain then.

    Where several splits gain the same, the tree may have taken any of them; a leaf that gains no
    more than rounding could make may have been split or not.
    """
    options, noise = problem.options, problem.noise
    most = min(options.n_leaves, max(2, len(problem.X) // max(1, options.min_docs_in_leaf)))
    frontier = [(unfold(tree), list(problem.docs))]
    level = 0
    while 2 * len(frontier) <= most and level != options.max_depth:
        totals = {
            split: sum(
                (problem.gain(*problem.sides(docs, *split)) for _, docs in frontier), Fraction(0)
            )
            for split in problem.every_split()
        }
        best = max(totals.values(), default=Fraction(0))
        if best <= options.min_gain + noise and not any(node.children for node, _ in frontier):
            break
        assert best > options.min_gain - noise, "a level gains too little"
        equal = (split for split, total in totals.items() if total >= best - noise)
        after = next(
            filter(None, (_after(tree, problem, frontier, split) for split in equal)), None
        )
        assert after is not None, "another split gains more"
        frontier = after
        level += 1
    assert not any(node.children for node, _ in frontier)
    for leaf, docs in frontier:
        assert tree.leaf_docs[leaf.number] == len(docs)
        assert problem.has_value(float(tree.value[leaf.number]), docs)


def _after(
    tree: Tree,
    problem: Problem,
    frontier: Sequence[tuple[Node, list[int]]],
    split: tuple[int, float, bool],
) -> list[tuple[Node, list[int]]] | None:
    """Return the leaves after a level, or None if the tree has not split all of them like this."""
    leaves: list[tuple[Node, list[int]]] = []
    for node, docs in frontier:
        sides = problem.sides(docs, *split)
        gain = problem.gain(*sides)
        k = node.number
        tree_sides: tuple[list[int], list[int]] = ([], [])
        if node.children:
            threshold, missing_left = float(tree.threshold[k]), bool(tree.missing_left[k])
            tree_sides = problem.sides(docs, int(tree.feature[k]), threshold, missing_left)
        if node.children and tree_sides == sides and int(tree.feature[k]) == split[0]:
            assert abs(Fraction(float(tree.gain[k])) - gain) <= problem.noise
            assert tree.docs[k] == len(docs)
            leaves += zip(node.children, sides, strict=True)
        elif gain > problem.noise:
            return None
        else:
            leaves.append((node, docs))
    return leaves if len(leaves) > len(frontier) else None


def assert_splits(
    tree: Tree, k: int, problem: Problem, docs: list[int], best: Fraction
) -> tuple[list[int], list[int]]:
    """Check that split k of the tree has the best gain; return the documents of its sides."""
    feature, threshold = int(tree.feature[k]), float(tree.threshold[k])
    assert feature in problem.features
    assert threshold in (*problem.cuts[feature], math.inf)
    sides = problem.sides(docs, feature, threshold, bool(tree.missing_left[k]))
    assert min(map(len, sides)) >= max(1, problem.options.min_docs_in_leaf)
    gain = problem.gain(*sides)
    assert abs(gain - best) <= problem.noise, "another split gains more"
    assert abs(Fraction(float(tree.gain[k])) - gain) <= problem.noise
    assert tree.docs[k] == len(docs)
    if not any(math.isnan(problem.X[i, feature]) for i in docs):
        assert tree.missing_left[k] == (len(sides[0]) >= len(sides[1]))
    return sides
