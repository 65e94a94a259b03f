"""Kernels of the sigmoid cost and of pairs that are tied in the tiers above (Objectives)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel, summing_kernel
from rankinite.objectives.kernels.arrays import SortScratch
from rankinite.objectives.kernels.pairwise import (
    LANES,
    LEAST_DISTANCE,
    WIDEST_SPREAD,
    pair_gradient,
)
from rankinite.objectives.kernels.swaps import (
    GRADIENT,
    HESSIAN,
    INVERSE,
    LOWER,
    SCALE,
    SCORE,
    UPPER,
    VALUE,
    E,
    Ranked,
)


@kernel
def fill_exponentials(r: Ranked, n: int) -> bool:
    """Clear gradients; fill ``e`` and its inverse and return True, unless scores spread too far."""
    for k in range(n + LANES):
        r[GRADIENT, k] = 0.0
        r[HESSIAN, k] = 0.0
    if r[SCORE, 0] - r[SCORE, n - 1] > WIDEST_SPREAD:
        return False
    for k in range(n):
        r[E, k] = math.exp(r[SCORE, k] - r[SCORE, 0])
        r[INVERSE, k] = 1.0 / r[E, k]
    return True


@kernel
def least_distance(r: Ranked, first: int, last: int, by_distance: bool) -> tuple[float, float]:
    """Return what is added to distances and their factor, as in `pairwise.set_pair_gradients`."""
    if by_distance and r[SCORE, first] > r[SCORE, last]:
        return LEAST_DISTANCE, 1.0
    return 1.0, 0.0


@inlined_kernel
def sigmoid_pair_gradient(
    difference: float, drop: float, distance: float, t: float, m: float
) -> float:
    """Return what a pair adds to the gradient of its upper document; ``m`` is exp(mu)."""
    below = m + t if difference > 0.0 else 1.0 + m * t
    return drop * (m * t) / (below * below * distance)


@summing_kernel
def add_sigmoid_pairs(
    flat: NDArray[np.float64], width: int, n: int, n_top: int, m: float, least: float, slope: float
) -> float:
    """Add up the gradients of all pairs u < v with u < n_top, as `pairwise.add_pairs` does."""
    total = 0.0
    if width < 0:  # never true; it tells the compiler that no index is negative
        return total
    for u in range(n_top):
        value, upper = flat[VALUE * width + u], flat[UPPER * width + u]
        scale, inverse = flat[SCALE * width + u], flat[INVERSE * width + u]
        score = flat[SCORE * width + u]
        gradient = 0.0
        size = 0.0
        for k in range((n - u + LANES - 2) // LANES * LANES):
            v = u + 1 + k
            difference = value - flat[VALUE * width + v]
            drop = difference * (upper - flat[LOWER * width + v])
            distance = least + slope * (score - flat[SCORE * width + v])
            t = inverse * flat[E * width + v]
            g = sigmoid_pair_gradient(difference, drop, distance, t, m)
            gradient += g
            size += abs(g)
            flat[GRADIENT * width + v] -= g * scale
        flat[GRADIENT * width + u] += gradient * scale
        total += size * scale
    return total


@kernel
def set_sigmoid_gradients(r: Ranked, n: int, n_top: int, mu: float, by_distance: bool) -> float:
    """Set gradients, and hessians to 0; return the sum of the sizes of the pairs' gradients."""
    least, slope = least_distance(r, 0, n - 1, by_distance)
    m = math.exp(mu)
    if fill_exponentials(r, n):
        for k in range(n, n + LANES):  # padding, as in `pairwise.set_pair_gradients`
            r[VALUE, k] = -1.0
            r[LOWER, k] = 0.0
            r[SCORE, k] = r[SCORE, n - 1]
            r[E, k] = 0.0
        return add_sigmoid_pairs(r.reshape(r.size), r.shape[1], n, n_top, m, least, slope)
    total = 0.0
    for u in range(n_top):
        for v in range(u + 1, n):
            difference = r[VALUE, u] - r[VALUE, v]
            drop = difference * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
            apart = r[SCORE, u] - r[SCORE, v]
            t = math.exp(-apart)
            g = sigmoid_pair_gradient(difference, drop, least + slope * apart, t, m)
            total += abs(g)
            r[GRADIENT, u] += g
            r[GRADIENT, v] -= g
    return total


@kernel
def ranks_by_group(
    groups: NDArray[np.int64],
    start: int,
    order: NDArray[np.int64],
    n: int,
    ends: NDArray[np.int64],
    ranks: NDArray[np.int64],
) -> int:
    """Sort the ranks by group; return the number of groups.

    The ranks of group g are ``ranks[ends[g - 1]]`` to ``ranks[ends[g] - 1]``, from the top.
    """
    n_groups = 0
    for g in range(n):
        ends[g] = 0
    for k in range(n):
        group = groups[start + order[k]]
        if group >= 0:
            ends[group] += 1
            n_groups = max(n_groups, group + 1)
    total = 0
    for g in range(n_groups):
        count = ends[g]
        ends[g] = total
        total += count
    for k in range(n):
        group = groups[start + order[k]]
        if group >= 0:
            ranks[ends[group]] = k
            ends[group] += 1
    return n_groups


@kernel
def set_tied_gradients(
    r: Ranked,
    sorting: SortScratch,
    groups: NDArray[np.int64],
    start: int,
    n: int,
    n_top: int,
    by_distance: bool,
) -> float:
    """Set gradients and hessians; return the sum of the sizes of the pairs' gradients."""
    # Sorting is done: its keys are free to hold groups.
    ends, ranks = sorting.keys[0], sorting.keys[1]
    n_groups = ranks_by_group(groups, start, sorting.order, n, ends, ranks)
    near = fill_exponentials(r, n)
    first, last = n - 1, 0
    for i in range(ends[n_groups - 1] if n_groups > 0 else 0):
        first, last = min(first, ranks[i]), max(last, ranks[i])
    least, slope = least_distance(r, first, last, by_distance)
    total = 0.0
    begin = 0
    for g in range(n_groups):
        end = ends[g]
        for i in range(begin, end):
            u = ranks[i]
            if u >= n_top:
                break
            for j in range(i + 1, end):
                v = ranks[j]
                difference = r[VALUE, u] - r[VALUE, v]
                drop = difference * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
                distance = r[SCORE, u] - r[SCORE, v]
                t = r[INVERSE, u] * r[E, v] if near else math.exp(-distance)
                g, g_size, h = pair_gradient(difference, drop, least + slope * distance, t)
                total += g_size
                r[GRADIENT, u] += g
                r[GRADIENT, v] -= g
                r[HESSIAN, u] += h
                r[HESSIAN, v] += h
        begin = end
    return total
