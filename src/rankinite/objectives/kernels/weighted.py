"""Kernels of pairs whose documents have weights: a pair counts the product of two of them.

A document has two weights, one where it is the better of a pair and one where it is the worse. They
are the same if documents are weighted, and differ if positions are corrected for: then they are the
inverse propensities of clicked and of unclicked documents (Unbiased, Sec. 4).

The kernels of documents without weights know nothing of these, and stay as fast as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.elementary import exponential
from rankinite.core.jit import inlined_kernel, kernel
from rankinite.core.lanes import in_all_lanes, load_lanes, select, sum_of_lanes
from rankinite.objectives.kernels.arrays import (
    LOCAL_COST,
    PAIRS,
    SIGMOID_COST,
    SPRING_SMOOTH,
    TIED_PAIRS,
    ObjectiveArrays,
)
from rankinite.objectives.kernels.pairwise import (
    BY_DISTANCE,
    add_lanes,
    at_least_1,
    fill_exponentials,
    least_distance,
    pair_gradient,
    sigmoid_pair_gradient,
    swap_change,
)
from rankinite.objectives.kernels.swaps import (
    DISTANCE,
    EVERY_PAIR,
    GRADIENT,
    HESSIAN,
    INVERSE,
    LANES,
    LOWER,
    SCALE,
    SCORE,
    SPARE,
    UPPER,
    VALUE,
    E,
    Ranked,
)

# Two rows that are free once documents are ranked hold the weights.
BETTER, WORSE = SPARE, DISTANCE


@kernel
def set_weighted_gradients(
    r: Ranked,
    arrays: ObjectiveArrays,
    start: int,
    order: NDArray[np.int64],
    n: int,
    n_top: int,
) -> float:
    """Set gradients and hessians of weighted pairs; return the sum of the sizes of gradients."""
    for k in range(n):
        r[BETTER, k] = arrays.better_weight[start + order[k]]
        r[WORSE, k] = arrays.worse_weight[start + order[k]]
    first, last = 0, n - 1
    if arrays.kind == TIED_PAIRS:  # only documents in a group make pairs
        while first < last and arrays.groups[start + order[first]] < 0:
            first += 1
        while last > first and arrays.groups[start + order[last]] < 0:
            last -= 1
    least, slope = least_distance(r, first, last, arrays.normalise == BY_DISTANCE)
    near = fill_exponentials(r, n)
    if near and arrays.kind == PAIRS:
        for k in range(n, n + LANES):  # padding, as in `pairwise.set_pair_gradients`
            r[VALUE, k] = -1.0
            r[LOWER, k] = 0.0
            r[SCORE, k] = r[SCORE, n - 1]
            r[E, k] = 0.0
            r[BETTER, k] = 0.0
            r[WORSE, k] = 0.0
        by_measure = arrays.form != EVERY_PAIR
        return add_weighted_pairs(r.reshape(r.size), r.shape[1], n, n_top, by_measure, least, slope)
    return add_weighted_pairs_of_kind(r, arrays, start, order, n, n_top, least, slope)


@inlined_kernel
def add_weighted_pairs(
    flat: NDArray[np.float64],
    width: int,
    n: int,
    n_top: int,
    by_measure: bool,
    least: float,
    slope: float,
) -> float:
    """Add up gradients and hessians of all pairs; the loop is that of `pairwise.add_pairs`."""
    total = in_all_lanes(0.0)
    for u in range(n_top):
        value, upper = flat[VALUE * width + u], flat[UPPER * width + u]
        scale, inverse = flat[SCALE * width + u], flat[INVERSE * width + u]
        score = flat[SCORE * width + u]
        better, worse = flat[BETTER * width + u], flat[WORSE * width + u]
        gradient = hessian = size = in_all_lanes(0.0)
        for v in range(u + 1, n, LANES):
            difference = value - load_lanes(flat, VALUE * width + v)
            change = difference * (upper - load_lanes(flat, LOWER * width + v))
            drop = swap_change(difference, change, by_measure) * scale
            above = better * load_lanes(flat, WORSE * width + v)
            below = worse * load_lanes(flat, BETTER * width + v)
            weight = select(difference > 0.0, above, below)
            distance = least + slope * (score - load_lanes(flat, SCORE * width + v))
            t = inverse * load_lanes(flat, E * width + v)
            g, g_size, h = pair_gradient(difference, drop * weight, distance, t)
            gradient, hessian, size = gradient + g, hessian + h, size + g_size
            add_lanes(flat, GRADIENT * width + v, -g)
            add_lanes(flat, HESSIAN * width + v, h)
        flat[GRADIENT * width + u] += sum_of_lanes(gradient)
        flat[HESSIAN * width + u] += sum_of_lanes(hessian)
        total = total + size
    return sum_of_lanes(total)


@kernel
def add_weighted_pairs_of_kind(
    r: Ranked,
    arrays: ObjectiveArrays,
    start: int,
    order: NDArray[np.int64],
    n: int,
    n_top: int,
    least: float,
    slope: float,
) -> float:
    """Add up the pairs of any construction, or of scores that spread too far for ``e``."""
    kind, groups = arrays.kind, arrays.groups
    by_measure, m = arrays.form != EVERY_PAIR, exponential(arrays.margin)
    total = 0.0
    for u in range(min(n_top, n)):
        end = min(u + 2, n) if kind == LOCAL_COST else n
        for v in range(u + 1, end):
            if kind == TIED_PAIRS:
                group = groups[start + order[u]]
                if group < 0 or group != groups[start + order[v]]:
                    continue
            difference = r[VALUE, u] - r[VALUE, v]
            change = difference * (r[UPPER, u] - r[LOWER, v])
            if kind == SPRING_SMOOTH:
                drop = at_least_1(difference, change) * r[SCALE, u]
            else:
                drop = swap_change(difference, change * r[SCALE, u], by_measure)
            drop *= pair_weight(arrays, start, order, u, v, difference)
            apart = r[SCORE, u] - r[SCORE, v]
            distance, t = least + slope * apart, exponential(-apart)
            if kind == SIGMOID_COST:
                g, h = sigmoid_pair_gradient(difference, drop, distance, t, m), 0.0
                g_size = abs(g)
            else:
                g, g_size, h = pair_gradient(difference, drop, distance, t)
            total += g_size
            r[GRADIENT, u] += g
            r[GRADIENT, v] -= g
            r[HESSIAN, u] += h
            r[HESSIAN, v] += h
    return total


@inlined_kernel
def pair_weight(
    arrays: ObjectiveArrays,
    start: int,
    order: NDArray[np.int64],
    u: int,
    v: int,
    difference: float,
) -> float:
    """Return the weight of the pair at ranks u < v; ``difference`` is that of their values."""
    if len(arrays.better_weight) == 0:
        return 1.0
    upper, lower = start + order[u], start + order[v]
    if difference > 0.0:
        return float(arrays.better_weight[upper] * arrays.worse_weight[lower])
    return float(arrays.worse_weight[upper] * arrays.better_weight[lower])


@kernel
def weight_documents(
    r: Ranked, arrays: ObjectiveArrays, start: int, order: NDArray[np.int64], n: int
) -> None:
    """Multiply gradients and hessians by the weights of documents, where there are no pairs."""
    for k in range(n):
        weight = arrays.better_weight[start + order[k]]
        r[GRADIENT, k] *= weight
        r[HESSIAN, k] *= weight
