"""Naive reference of leaf values under limits: exact fractions, inputs on a grid, every subset."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product

from rankinite.trees.forest import Tree


def limited_value(
    gradient: Fraction,
    divisor: Fraction,
    n_docs: int,
    parent: Fraction | None,
    max_step: float,
    path_smooth: float,
) -> Fraction:
    """Return a value cut off at the largest step, then averaged with that of the parent.

    The leaf counts its documents, the parent `path_smooth`; without a parent there is no average.
    """
    value = gradient / divisor if divisor else Fraction(0)
    if max_step:
        value = min(max(value, -Fraction(max_step)), Fraction(max_step))
    if parent is None or not path_smooth or not divisor:
        return value
    s = Fraction(path_smooth)
    return (n_docs * value + s * parent) / (n_docs + s)


def next_inputs(
    tree: Tree, n_features: int, directions: Sequence[int]
) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Return pairs of inputs, the second with the next value of a constrained feature.

    All inputs on a grid: every threshold, something above all of them, and a missing value. A
    threshold itself goes left, so the grid meets every side of every split.
    """
    grid: list[list[float]] = []
    for feature in range(n_features):
        cuts = {
            float(cut)
            for cut, j in zip(tree.threshold, tree.feature, strict=True)
            if j == feature and math.isfinite(cut)
        }
        above = [max(cuts) + abs(max(cuts)) + 1.0] if cuts else [0.0]
        grid.append([*sorted(cuts), *above, math.nan])
    pairs = []
    for feature, direction in enumerate(directions):
        if direction:
            others = [values if j != feature else [0.0] for j, values in enumerate(grid)]
            for point in product(*others):
                for steps in pairwise(grid[feature][:-1]):
                    low, high = (
                        (*point[:feature], value, *point[feature + 1 :]) for value in steps
                    )
                    pairs.append((low, high) if direction > 0 else (high, low))
    return pairs


def isotonic(
    order: set[tuple[int, int]], weights: Sequence[float], targets: Sequence[float]
) -> list[float]:
    """Return the nearest values in order: the largest of upper sets of the least of lower sets.

    A value is the largest, over upper sets that it is in, of the least mean, over lower sets that
    it is in, of what both have in common (Robertson, Wright and Dykstra 1988, Theorem 1.4.4).
    """
    n = len(targets)
    subsets = range(1, 1 << n)
    weight = {s: sum(weights[i] for i in range(n) if s >> i & 1) for s in subsets}
    total = {s: sum(weights[i] * targets[i] for i in range(n) if s >> i & 1) for s in subsets}
    upper = [s for s in subsets if all(s >> b & 1 for a, b in order if s >> a & 1)]
    lower = [s for s in subsets if all(s >> a & 1 for a, b in order if s >> b & 1)]
    return [
        max(
            min(total[u & low] / weight[u & low] for low in lower if low >> i & 1)
            for u in upper
            if u >> i & 1
        )
        for i in range(n)
    ]
