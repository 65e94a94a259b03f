"""Naive reference of contributions: Shapley values over all subsets, by the definition."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np

from rankinite.trees.forest import Categories, Tree


def goes_left(tree: Tree, split: int, value: float, categories: Categories) -> bool:
    """Return where a document with this value of the split's feature goes."""
    if not np.isnan(tree.threshold[split]):
        return bool(tree.missing_left[split]) if np.isnan(value) else value <= tree.threshold[split]
    codes = categories[int(tree.feature[split])]
    if value not in codes:
        return bool(tree.missing_left[split])
    return value in tree.left_categories(split, codes)


def expected_value(
    tree: Tree, document: np.ndarray, known: set[int], categories: Categories
) -> Fraction:
    """Return the mean of the leaves that a document may reach if only some features are known."""

    def mean(split: int, begin: int, end: int) -> tuple[Fraction, int]:
        """Return the mean below a node that has a range of leaves, and its training documents."""
        if end - begin == 1:
            return Fraction(float(tree.value[begin])), int(tree.leaf_docs[begin])
        middle = int(tree.right[split])
        left, n_left = mean(split + 1, begin, middle)
        right, n_right = mean(split + middle - begin, middle, end)
        feature = int(tree.feature[split])
        n = n_left + n_right
        if feature in known:
            is_left = goes_left(tree, split, float(document[feature]), categories)
            return (left if is_left else right), n
        if n == 0:
            return (left + right) / 2, 0
        return (n_left * left + n_right * right) / n, n

    return mean(0, 0, tree.n_leaves)[0]


def contributions(
    tree: Tree, document: np.ndarray, n_features: int, categories: Categories
) -> list[Fraction]:
    """Return the Shapley value of each feature of a document."""
    used = sorted({int(j) for j in tree.feature})
    out = [Fraction(0)] * n_features
    for feature in used:
        others = [j for j in used if j != feature]
        for size in range(len(others) + 1):
            ways = math.factorial(size) * math.factorial(len(used) - size - 1)
            weight = Fraction(ways, math.factorial(len(used)))
            for subset in combinations(others, size):
                without = expected_value(tree, document, set(subset), categories)
                with_it = expected_value(tree, document, {*subset, feature}, categories)
                out[feature] += weight * (with_it - without)
    return out
