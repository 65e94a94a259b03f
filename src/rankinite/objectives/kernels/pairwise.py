"""Kernels of lambda gradients: all pairs of a query's documents, with a few operations per pair.

One loop over pairs serves every measure, from the rows that `swaps` fills. It runs along ranks,
is compiled to work on several documents v at once, and needs no exponential: with
e = exp(s - largest s), 1 / (1 + exp(s_u - s_v)) = e_v / (e_u + e_v). A second loop visits only the
pairs that are tied in the tiers above (Objectives, Sec. 4.2).

Indexes that come from an array are cast to unsigned integers before they are used: otherwise each
lookup first checks whether the index is negative and counts from the end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.elementary import LOG2_E, exponential, exponentials, logarithm
from rankinite.core.jit import inlined_kernel, kernel
from rankinite.core.lanes import in_all_lanes, load_lanes, select, store_lanes, sum_of_lanes
from rankinite.objectives.kernels.arrays import ObjectiveArrays, Scratch, SortScratch
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
    fill_swaps,
    fits_usual,
    keep_labelled,
    new_scratch,
    rank_documents,
)

NOT_NORMALISED = 0
BY_DEVIATION = 1
BY_DISTANCE = 2

# exp(-600) is still a normal number, and so are all products that the loop over pairs makes of it.
WIDEST_SPREAD = 600.0
# Added to distances of scores, so that nothing is divided by 0.
LEAST_DISTANCE = 0.01
# Gradients whose squares sum to less count as 0; the inverse of their deviation would overflow.
LEAST_SQUARES = 1e-290


@kernel
def all_pairwise_gradients(
    first_block: int,
    last_block: int,
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    arrays: ObjectiveArrays,
    selected: NDArray[np.bool_],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write gradients and hessians of some blocks of queries.

    Of the ``selected`` queries there, or of all if that mask is empty. Block b has the queries
    ``blocks[b]`` to ``blocks[b + 1] - 1``.
    """
    # Once for many queries.
    scratch = new_scratch(len(arrays.rank_weights))
    pairwise_gradients(
        blocks[first_block], blocks[last_block], scores, arrays, scratch, selected, out_gradient,
        out_hessian,
    )  # fmt: skip


@kernel
def pairwise_gradients(
    first: int,
    last: int,
    scores: NDArray[np.float64],
    arrays: ObjectiveArrays,
    scratch: Scratch,
    selected: NDArray[np.bool_],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write gradients and hessians of the ``selected`` queries from first to last - 1.

    Fields of the named tuples are unpacked once for all queries: to do so for each of them takes
    as long as ten documents.
    """
    form, truncation, normalise = arrays.form, arrays.n_top, arrays.normalise
    offsets, values, shuffle = arrays.offsets, arrays.values, arrays.shuffle
    rank_weights, scales, weights = arrays.rank_weights, arrays.scales, arrays.query_weight
    usual, usual_bits, wide, wide_bits, sorting, _ = scratch
    order = sorting.order
    for q in range(first, last):
        if len(selected) > 0 and not selected[q]:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        r, bits = (usual, usual_bits) if fits_usual(n) else (wide, wide_bits)
        labelled, factor = 0, 0.0
        if scales[q] > 0.0:
            has_missing = rank_documents(r, bits, sorting, n, start, scores, values, shuffle)
            n_top = min(fill_swaps(r, n, form, rank_weights, scales[q]), truncation)
            labelled = n
            if has_missing:
                labelled, n_top = keep_labelled(r, order, n, n_top, values, start)
            total = set_pair_gradients(
                r, bits, labelled, n_top, form != EVERY_PAIR, normalise == BY_DISTANCE
            )
            factor = weights[q] * normaliser(r, labelled, n, normalise, total)
        # The loop below writes to labelled documents only.
        if labelled < n:
            for i in range(start, start + n):
                out_gradient[i] = 0.0
                out_hessian[i] = 0.0
        for k in range(labelled):
            doc = np.uint64(shuffle[np.uint64(start + order[k])])
            out_gradient[doc] = r[GRADIENT, k] * factor
            out_hessian[doc] = r[HESSIAN, k] * factor


@kernel
def set_pair_gradients(
    r: Ranked,
    bits: NDArray[np.int64],
    n: int,
    n_top: int,
    by_measure: bool,
    by_distance: bool,
) -> float:
    """Set gradients and hessians of the first n ranks.

    Return the sum of the sizes of the pairs' gradients, computed only for ``by_distance``. Where
    all scores are equal there is no distance to divide by.
    """
    least, slope = 1.0, 0.0
    if by_distance and r[SCORE, 0] > r[SCORE, n - 1]:
        least, slope = LEAST_DISTANCE, 1.0
    for k in range(n + LANES):
        r[GRADIENT, k] = 0.0
        r[HESSIAN, k] = 0.0
    if r[SCORE, 0] - r[SCORE, n - 1] > WIDEST_SPREAD:
        return add_far_pairs(r, n, n_top, by_measure, least, slope)
    exponentials(r[SCORE], r[SCORE, 0], n, r[SPARE], bits[SPARE], r[E])
    for k in range(n):
        r[INVERSE, k] = 1.0 / r[E, k]
        r[DISTANCE, k] = slope * (r[SCORE, 0] - r[SCORE, k])
    # Padding: documents of the least value at a score of minus infinity add 0 to every sum.
    for k in range(n, n + LANES):
        r[VALUE, k] = -1.0
        r[LOWER, k] = 0.0
        r[DISTANCE, k] = r[DISTANCE, n - 1]
        r[E, k] = 0.0
    return add_pairs(r.reshape(r.size), r.shape[1], n, n_top, by_measure, least)


@inlined_kernel
def add_pairs(
    flat: NDArray[np.float64], width: int, n: int, n_top: int, by_measure: bool, least: float
) -> float:
    """Add up gradients and hessians of all pairs u < v with u < n_top.

    Return the sum of the sizes of the gradients. Where pairs are not divided by their distance,
    the row of distances is 0 and ``least`` is 1.
    """
    total = in_all_lanes(0.0)
    for u in range(n_top):
        value, upper = flat[VALUE * width + u], flat[UPPER * width + u]
        scale, inverse = flat[SCALE * width + u], flat[INVERSE * width + u]
        # Distances from the first rank: the distance of a pair, plus the least, is one subtraction.
        nearer = flat[DISTANCE * width + u] - least
        gradient = hessian = size = in_all_lanes(0.0)
        # The n - u - 1 documents below, rounded up to whole lanes; padding adds 0 to the sums.
        for v in range(u + 1, n, LANES):
            difference = value - load_lanes(flat, VALUE * width + v)
            change = difference * (upper - load_lanes(flat, LOWER * width + v))
            drop = swap_change(difference, change, by_measure) * scale
            distance = load_lanes(flat, DISTANCE * width + v) - nearer
            t = inverse * load_lanes(flat, E * width + v)
            g, g_size, h = pair_gradient(difference, drop, distance, t)
            gradient, hessian, size = gradient + g, hessian + h, size + g_size
            add_lanes(flat, GRADIENT * width + v, -g)
            add_lanes(flat, HESSIAN * width + v, h)
        flat[GRADIENT * width + u] += sum_of_lanes(gradient)
        flat[HESSIAN * width + u] += sum_of_lanes(hessian)
        total = total + size
    return sum_of_lanes(total)


@inlined_kernel
def add_lanes(flat: NDArray[np.float64], index: int, lanes: Any) -> None:
    """Add lanes to what an array has from an index on."""
    store_lanes(flat, index, load_lanes(flat, index) + lanes)


@kernel
def add_far_pairs(
    r: Ranked, n: int, n_top: int, by_measure: bool, least: float, slope: float
) -> float:
    """Do what `add_near_pairs` does where scores spread too far for ``e``."""
    total = 0.0
    for u in range(n_top):
        for v in range(u + 1, n):
            difference = r[VALUE, u] - r[VALUE, v]
            change = difference * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
            distance = r[SCORE, u] - r[SCORE, v]
            drop = swap_change(difference, change, by_measure)
            t = exponential(-distance)
            g, g_size, h = pair_gradient(difference, drop, least + slope * distance, t)
            total += g_size
            r[GRADIENT, u] += g
            r[GRADIENT, v] -= g
            r[HESSIAN, u] += h
            r[HESSIAN, v] += h
    return total


@inlined_kernel
def pair_gradient(difference: Any, drop: Any, distance: Any, t: Any) -> tuple[Any, Any, Any]:
    """Return what a pair adds to the gradient of its upper document, its size, and its hessian.

    Of a single pair, or of several at once in lanes, as the following.

    ``difference`` is the value of the upper document minus that of the lower, ``drop`` what the
    measure loses by a swap, which is divided by ``distance``; ``t`` is exp(score of the lower -
    score of the upper).
    """
    # rho is t / (1 + t) if the upper document is the better one, and 1 / (1 + t) if not; a single
    # division, the slowest operation of a pair, serves both and their product rho (1 - rho).
    inverse = 1.0 / (t * distance + distance)
    part = drop * inverse
    numerator = select(difference > 0.0, t, 1.0)
    gradient = part * numerator
    return gradient, abs(gradient), abs(part) * (t * (inverse * distance))


@inlined_kernel
def swap_change(difference: Any, change: Any, by_measure: bool) -> Any:
    """Return what a swap costs: for RankNet 1, with the sign of the difference in value."""
    if by_measure:
        return change
    return select(difference > 0.0, 1.0, select(difference < 0.0, -1.0, 0.0))


@inlined_kernel
def sigmoid_pair_gradient(difference: Any, drop: Any, distance: Any, t: Any, m: float) -> Any:
    """Return what a pair adds to the gradient of its upper document; ``m`` is exp(mu)."""
    # x / (1 + x)^2 with x = m / t if the upper document is the better one and m t if not,
    # multiplied out: t may be 0.
    mt = m * t
    below = select(difference > 0.0, m + t, 1.0 + mt)
    return drop * mt / (below * below * distance)


@inlined_kernel
def at_least_1(difference: Any, change: Any) -> Any:
    """Return the change, its size at least 1, with the sign of the difference in value."""
    size = select(abs(change) > 1.0, abs(change), 1.0)
    return select(difference > 0.0, size, select(difference < 0.0, -size, 0.0))


@inlined_kernel
def normaliser(r: Ranked, n: int, n_docs: int, normalise: int, total: float) -> float:
    """Return the factor of a query's gradients and hessians."""
    # The size of a pair's lambda counts for each of its two documents.
    if normalise == BY_DISTANCE and total > 0.0:
        return logarithm(1.0 + 2.0 * total) * LOG2_E / (2.0 * total)
    # Gradients of pairs sum to 0, and so the mean of their squares is their variance. Documents
    # without a label count, with a gradient of 0.
    if normalise == BY_DEVIATION:
        squares = 0.0
        for k in range(n):
            squares += r[GRADIENT, k] * r[GRADIENT, k]
        return math.sqrt(n_docs / squares) if squares > LEAST_SQUARES else 0.0
    return 1.0


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
    # Whether all scores are equal, and nothing to be divided by, is asked of documents in groups.
    first, last = n - 1, 0
    for i in range(ends[n_groups - 1] if n_groups > 0 else 0):
        first, last = min(first, ranks[i]), max(last, ranks[i])
    least, slope = least_distance(r, first, last, by_distance)
    total = 0.0
    begin = 0
    for group in range(n_groups):
        end = ends[group]
        for i in range(begin, end):
            u = ranks[i]
            if u >= n_top:  # the ranks of a group are in order, and all others are further down
                break
            for j in range(i + 1, end):
                v = ranks[j]
                difference = r[VALUE, u] - r[VALUE, v]
                drop = difference * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
                distance = r[SCORE, u] - r[SCORE, v]
                t = r[INVERSE, u] * r[E, v] if near else exponential(-distance)
                g, g_size, h = pair_gradient(difference, drop, least + slope * distance, t)
                total += g_size
                r[GRADIENT, u] += g
                r[GRADIENT, v] -= g
                r[HESSIAN, u] += h
                r[HESSIAN, v] += h
        begin = end
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
    ends[:n] = 0
    for k in range(n):
        group = groups[start + order[k]]
        if group >= 0:
            ends[group] += 1
            n_groups = max(n_groups, group + 1)
    total = 0
    for group in range(n_groups):
        count = ends[group]
        ends[group] = total
        total += count
    for k in range(n):
        group = groups[start + order[k]]
        if group >= 0:
            ranks[ends[group]] = k
            ends[group] += 1
    return n_groups


@kernel
def fill_exponentials(r: Ranked, n: int) -> bool:
    """Clear gradients; fill ``e`` and its inverse and return True, unless scores spread too far."""
    for k in range(n + LANES):
        r[GRADIENT, k] = 0.0
        r[HESSIAN, k] = 0.0
    if r[SCORE, 0] - r[SCORE, n - 1] > WIDEST_SPREAD:
        return False
    for k in range(n):
        r[E, k] = exponential(r[SCORE, k] - r[SCORE, 0])
        r[INVERSE, k] = 1.0 / r[E, k]
    return True


@kernel
def least_distance(r: Ranked, first: int, last: int, by_distance: bool) -> tuple[float, float]:
    """Return what is added to distances and their factor, as in `set_pair_gradients`."""
    if by_distance and r[SCORE, first] > r[SCORE, last]:
        return LEAST_DISTANCE, 1.0
    return 1.0, 0.0
