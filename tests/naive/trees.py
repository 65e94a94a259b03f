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
from tests.naive import leaf_values

# Feature, threshold, and whether missing values go left.
Split = tuple[int, float, bool]


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


def is_tree(tree: Tree) -> bool:
    """Follow the order of splits: each divides its range of leaves, left before right."""
    ranges = [(0, tree.n_leaves)]
    for first, right in zip(tree.first.tolist(), tree.right.tolist(), strict=True):
        while ranges and ranges[-1][1] - ranges[-1][0] == 1:
            ranges.pop()
        if not ranges:
            return False
        begin, end = ranges.pop()
        if first != begin or not begin < right < end:
            return False
        ranges += [(right, end), (begin, right)]
    return all(end - begin == 1 for begin, end in ranges)


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
class Leaf:
    """A leaf of a tree under growth, which is node ``node`` of the whole tree.

    It has documents, a depth, the features on its path, and the value by which splits are chosen.
    """

    node: Node
    docs: list[int]
    depth: int = 0
    path: frozenset[int] = frozenset()
    value: Fraction = Fraction(0)


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

    def root(self, tree: Tree) -> Leaf:
        docs = list(self.docs)
        return Leaf(unfold(tree), docs, value=self.split_value(docs, None))

    def children(self, leaf: Leaf, sides: tuple[list[int], list[int]], feature: int) -> list[Leaf]:
        assert leaf.node.children
        path = leaf.path | {feature}
        return [
            Leaf(node, docs, leaf.depth + 1, path, self.split_value(docs, leaf.value))
            for node, docs in zip(leaf.node.children, sides, strict=True)
        ]

    def split_value(self, docs: Sequence[int], parent: Fraction | None) -> Fraction:
        """Return the limited value of documents, by the hessians that splits are chosen by."""
        gradient, hessian = self.sums(docs)
        r, options = self.l2(self.sums(self.docs)[1]), self.options
        return leaf_values.limited_value(
            gradient, hessian + r, len(docs), parent, options.max_delta_step, options.path_smooth
        )

    def allows(self, path: frozenset[int], feature: int) -> bool:
        """Tell whether a feature may follow a path: alone, or if a group has them all."""
        groups, wanted = self.options.groups, path | {feature}
        return not groups or len(wanted) == 1 or any(wanted <= set(group) for group in groups)

    def gain(self, leaf: Leaf, split: Split) -> Fraction:
        """Return what a leaf gains by a split, or 0 if it is not allowed.

        A leaf with value v has 2 G v - (H + r) v^2, where r is the L2 term; that is G^2 / (H + r)
        for the best value G / (H + r). And nobody splits to lose.
        """
        feature, threshold, _ = split
        lefts, rights = sides = self.sides(leaf.docs, *split)
        if min(map(len, sides)) < max(1, self.options.min_docs_in_leaf):
            return Fraction(0)
        r = self.l2(self.sums(self.docs)[1])
        if not self.allows(leaf.path, feature) or not all(self.sums(s)[1] + r for s in sides):
            return Fraction(0)
        values = [self.split_value(side, leaf.value) for side in sides]
        direction = self.options.directions[feature] if self.options.directions else 0
        if values[0] == values[1] or (
            direction * (values[1] - values[0]) < 0 and math.isfinite(threshold)
        ):
            return Fraction(0)
        parts = ((lefts, values[0], 1), (rights, values[1], 1), (leaf.docs, leaf.value, -1))
        gain = Fraction(0)
        for docs, value, sign in parts:
            gradient, hessian = self.sums(docs)
            gain += sign * (2 * gradient * value - (hessian + r) * value**2)
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

    def best_gain(self, leaf: Leaf) -> Fraction:
        if self.options.max_depth is not None and leaf.depth >= self.options.max_depth:
            return Fraction(0)
        return max((self.gain(leaf, split) for split in self.every_split()), default=Fraction(0))

    def final_sums(self, docs: Sequence[int]) -> tuple[Fraction, Fraction]:
        """Return the sum of gradients, and what it is divided by: hessians or documents, and L2."""
        hessians = self.hessians if self.options.step == "newton" else [1] * len(self.X)
        divisor, total = (
            sum((Fraction(hessians[i]) for i in some), Fraction(0)) for some in (docs, self.docs)
        )
        gradient = sum((Fraction(self.gradients[i]) for i in docs), Fraction(0))
        return gradient, divisor + self.l2(total)

    def values(self, tree: Tree, docs: dict[int, list[int]]) -> list[float]:
        """Return the values of leaves, whose documents are given by number."""
        values: dict[int, Fraction] = {}

        def below(node: Node) -> list[int]:
            if not node.children:
                return docs[node.number]
            return below(node.children[0]) + below(node.children[1])

        def walk(node: Node, parent: Fraction | None) -> None:
            mine = below(node)
            value = leaf_values.limited_value(
                *self.final_sums(mine), len(mine), parent,
                self.options.max_delta_step, self.options.path_smooth,
            )  # fmt: skip
            for child in node.children or ():
                walk(child, value)
            if not node.children:
                values[node.number] = value

        walk(unfold(tree), None)
        return self.in_order(tree, [float(values[k]) for k in range(len(docs))], docs)

    def in_order(self, tree: Tree, values: list[float], docs: dict[int, list[int]]) -> list[float]:
        """Return the nearest values that satisfy the monotone constraints."""
        directions = self.options.directions
        inputs = leaf_values.next_inputs(tree, self.X.shape[1], directions)
        leaves = {(leaf_of(tree, low), leaf_of(tree, high)) for low, high in inputs}
        order = {(a, b) for a, b in leaves if a != b}
        weights = [float(self.final_sums(docs[k])[1]) for k in range(len(docs))]
        if not order or not any(weights):
            return values
        weights = [max(weight, 1e-12 * max(weights)) for weight in weights]
        return leaf_values.isotonic(order, weights, values)

    def assert_values(self, tree: Tree, leaves: Sequence[Leaf]) -> None:
        """Check the leaves: plain values to the last bit, others but for rounding."""
        docs = {leaf.node.number: leaf.docs for leaf in leaves}
        assert [len(docs[k]) for k in range(len(docs))] == tree.leaf_docs.tolist()
        options = self.options
        exact = not (
            options.l2_regularization or options.directions or options.max_delta_step
            or options.path_smooth
        )  # fmt: skip
        expected = self.values(tree, docs)
        np.testing.assert_allclose(tree.value, expected, rtol=0 if exact else 1e-9, atol=1e-300)

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
    frontier = [problem.root(tree)]
    gains = [problem.best_gain(frontier[0])]
    while len(frontier) < options.n_leaves:
        best = max(gains)
        candidates = [
            k for k, leaf in enumerate(frontier) if leaf.node.children and gains[k] >= best - noise
        ]
        if not candidates:
            assert best <= options.min_gain + noise, "a leaf that gains most was not split"
            break
        assert best > options.min_gain - noise, "a split gains too little"
        leaf = frontier.pop(candidates[0])
        gain = gains.pop(candidates[0])
        sides = assert_splits(tree, leaf, problem, gain)
        for child in problem.children(leaf, sides, int(tree.feature[leaf.node.number])):
            frontier.append(child)
            gains.append(problem.best_gain(child))
    assert not any(leaf.node.children for leaf in frontier)
    problem.assert_values(tree, frontier)


def assert_grown_by_levels(tree: Tree, problem: Problem) -> None:
    """Grow the symmetric tree again, by trying everything: each level had the largest gain then.

    Where several splits gain the same, the tree may have taken any of them; a leaf that gains no
    more than rounding could make may have been split or not.
    """
    options, noise = problem.options, problem.noise
    most = min(options.n_leaves, max(2, len(problem.X) // max(1, options.min_docs_in_leaf)))
    frontier = [problem.root(tree)]
    level = 0
    while 2 * len(frontier) <= most and level != options.max_depth:
        totals = {
            split: sum((problem.gain(leaf, split) for leaf in frontier), Fraction(0))
            for split in problem.every_split()
        }
        best = max(totals.values(), default=Fraction(0))
        if best <= options.min_gain + noise and not any(leaf.node.children for leaf in frontier):
            break
        assert best > options.min_gain - noise, "a level gains too little"
        equal = (split for split, total in totals.items() if total >= best - noise)
        after = next(
            filter(None, (_after(tree, problem, frontier, split) for split in equal)), None
        )
        assert after is not None, "another split gains more"
        frontier = after
        level += 1
    assert not any(leaf.node.children for leaf in frontier)
    problem.assert_values(tree, frontier)


def _after(
    tree: Tree, problem: Problem, frontier: Sequence[Leaf], split: Split
) -> list[Leaf] | None:
    """Return the leaves after a level, or None if the tree has not split all of them like this."""
    leaves: list[Leaf] = []
    for leaf in frontier:
        sides = problem.sides(leaf.docs, *split)
        gain = problem.gain(leaf, split)
        k = leaf.node.number
        tree_sides: tuple[list[int], list[int]] = ([], [])
        if leaf.node.children:
            threshold, missing_left = float(tree.threshold[k]), bool(tree.missing_left[k])
            tree_sides = problem.sides(leaf.docs, int(tree.feature[k]), threshold, missing_left)
        if leaf.node.children and tree_sides == sides and int(tree.feature[k]) == split[0]:
            assert abs(Fraction(float(tree.gain[k])) - gain) <= problem.noise
            assert tree.docs[k] == len(leaf.docs)
            leaves += problem.children(leaf, sides, split[0])
        elif gain > problem.noise:
            return None
        else:
            leaves.append(leaf)
    return leaves if len(leaves) > len(frontier) else None


def assert_splits(
    tree: Tree, leaf: Leaf, problem: Problem, best: Fraction
) -> tuple[list[int], list[int]]:
    """Check that the split of a leaf has the best gain; return the documents of its sides."""
    k, docs = leaf.node.number, leaf.docs
    feature, threshold = int(tree.feature[k]), float(tree.threshold[k])
    assert feature in problem.features
    assert threshold in (*problem.cuts[feature], math.inf)
    split = feature, threshold, bool(tree.missing_left[k])
    sides = problem.sides(docs, *split)
    assert min(map(len, sides)) >= max(1, problem.options.min_docs_in_leaf)
    gain = problem.gain(leaf, split)
    assert abs(gain - best) <= problem.noise, "another split gains more"
    assert abs(Fraction(float(tree.gain[k])) - gain) <= problem.noise
    assert tree.docs[k] == len(docs)
    if not any(math.isnan(problem.X[i, feature]) for i in docs):
        assert tree.missing_left[k] == (len(sides[0]) >= len(sides[1]))
    return sides
