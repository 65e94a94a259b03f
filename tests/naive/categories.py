"""Naive reference of categorical splits: trees grown by trying every split on raw values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from rankinite.trees.forest import Forest, Tree
from tests.naive.trees import between, goes_left, unfold

Docs = tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """Whether each document goes left, and what is left of its surplus over its leaf's mean."""

    feature: int
    left: np.ndarray
    share: np.ndarray


@dataclass(frozen=True)
class Problem:
    """Documents to grow a tree for; smoothing and l2 are in units of hessians."""

    X: np.ndarray
    gradients: np.ndarray
    hessians: np.ndarray
    categorical: frozenset[int]
    smoothing: float = 0.0
    l2: float = 0.0
    min_docs: int = 1

    def sums(self, docs: Docs) -> tuple[float, float]:
        index = list(docs)
        return float(self.gradients[index].sum()), float(self.hessians[index].sum())

    def splits(self, leaves: Sequence[Docs]) -> Iterator[Split]:
        """Yield all splits of some leaves, which share it if they are several."""
        every = np.ones(len(self.X))
        for feature in range(self.X.shape[1]):
            values = self.X[:, feature]
            if feature in self.categorical:
                yield from self.category_splits(feature, leaves)
                continue
            known = sorted({float(value) for value in values if value == value})
            cuts = [between(low, high) for low, high in pairwise(known)]
            for threshold in (*cuts, math.inf):
                for missing in (False, True):
                    left = np.array([goes_left(float(v), threshold, missing) for v in values])
                    yield Split(feature, left, every)

    def category_splits(self, feature: int, leaves: Sequence[Docs]) -> Iterator[Split]:
        """Yield the beginnings of the order by (g - m h) / (h + s), summed over the leaves."""
        keys = [None if value != value else float(value) for value in self.X[:, feature]]
        surplus: dict[float | None, float] = {}
        hessian: dict[float | None, float] = {}
        for docs in leaves:
            if len(docs) < 2 * self.min_docs:
                continue
            total, weight = self.sums(docs)
            for i in docs:
                beyond = self.gradients[i] - total / weight * self.hessians[i]
                surplus[keys[i]] = surplus.get(keys[i], 0.0) + beyond
                hessian[keys[i]] = hessian.get(keys[i], 0.0) + self.hessians[i]
        order = sorted(surplus, key=lambda key: -surplus[key] / (hessian[key] + self.smoothing))
        shares = {key: h / (h + self.smoothing) for key, h in hessian.items()}
        share = np.array([shares.get(key, 1.0) for key in keys])
        n_docs = {key: sum(keys[i] == key for docs in leaves for i in docs) for key in order}
        for n in range(1, len(order)):
            lefts = set(order[:n])
            # Categories that no document has follow missing values, or else the larger side.
            absent = 2 * sum(n_docs[key] for key in lefts) >= sum(n_docs.values())
            if None in hessian:
                absent = None in lefts
            left = [key in lefts if key in hessian else absent for key in keys]
            yield Split(feature, np.array(left), share)

    def gain(self, split: Split, docs: Docs) -> float:
        """Return what a leaf gains by the shrunk gradients; 0 if a side is too small."""
        lefts = [i for i in docs if split.left[i]]
        rights = [i for i in docs if not split.left[i]]
        if min(len(lefts), len(rights)) < self.min_docs:
            return 0.0
        total, weight = self.sums(docs)
        mean = total / weight
        shrunk = mean * self.hessians + split.share * (self.gradients - mean * self.hessians)

        def score(some: Sequence[int]) -> float:
            return shrunk[some].sum() ** 2 / (self.hessians[some].sum() + self.l2)

        return max(score(lefts) + score(rights) - score(list(docs)), 0.0)

    def sides(self, split: Split, docs: Docs) -> tuple[Docs, Docs]:
        return (
            tuple(i for i in docs if split.left[i]),
            tuple(i for i in docs if not split.left[i]),
        )

    def best_first(self, n_leaves: int) -> tuple[set[Docs], list[float]]:
        """Return the documents of each leaf, and the gains of the splits in their order."""
        leaves, gains = [tuple(range(len(self.X)))], []
        while len(leaves) < n_leaves:
            best = [max(self._offers([docs]), key=lambda offer: offer[0]) for docs in leaves]
            k = max(range(len(leaves)), key=lambda k: best[k][0])
            gain, split = best[k]
            if gain <= 1e-9 or split is None:
                break
            docs = leaves.pop(k)
            leaves += self.sides(split, docs)
            gains.append(gain)
        return set(leaves), gains

    def by_levels(self, n_leaves: int) -> tuple[set[Docs], list[float]]:
        """Return the same for a symmetric tree."""
        leaves, gains = [tuple(range(len(self.X)))], []
        while 2 * len(leaves) <= n_leaves:
            gain, split = max(self._offers(leaves), key=lambda offer: offer[0])
            if gain <= 1e-9 or split is None:
                break
            after: list[Docs] = []
            for docs in leaves:
                leaf_gain = self.gain(split, docs)
                after += self.sides(split, docs) if leaf_gain > 0 else [docs]
                gains += [leaf_gain] if leaf_gain > 0 else []
            leaves = after
        return set(leaves), gains

    def _offers(self, leaves: Sequence[Docs]) -> Iterator[tuple[float, Split | None]]:
        yield 0.0, None
        for split in self.splits(leaves):
            yield sum(self.gain(split, docs) for docs in leaves), split


def best_subset_gain(gain: Callable[[set[int]], float], categories: Sequence[int]) -> float:
    """Return the largest gain of all sets of categories, by trying each."""
    return max(
        gain(set(chosen))
        for size in range(1, len(categories))
        for chosen in combinations(categories, size)
    )


def leaf_of(forest: Forest, tree: Tree, document: Sequence[float]) -> int:
    """Walk from the root to a leaf by raw values: categories are looked up in their sets."""
    node = unfold(tree)
    numbers = {int(k): n for n, k in enumerate(np.flatnonzero(np.isnan(tree.threshold)))}
    while node.children:
        k = node.number
        feature, value = int(tree.feature[k]), float(document[tree.feature[k]])
        if k in numbers:
            left = _is_in(tree.left_sets[numbers[k]], forest.categories, feature, value)
        else:
            left = goes_left(value, float(tree.threshold[k]), bool(tree.missing_left[k]))
        node = node.children[0 if left else 1]
    return node.number


def _is_in(
    left_set: np.ndarray, categories: Mapping[int, np.ndarray], feature: int, value: float
) -> bool:
    codes = categories[feature].tolist()
    place = codes.index(value) if value in codes else max(1, len(codes))
    return bool(left_set[place // 8] >> (place % 8) & 1)
