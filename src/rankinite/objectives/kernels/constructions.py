"""Kernels of the other constructions of a lambda gradient (Optimality, Sec. 7), and of weights.

They start as those of `pairwise` do: documents are ranked, rows are filled by rank, and documents
without a label are removed from the ranks. `Lambdas` does not call them, so that its users need
not wait for them to compile. The sigmoid cost is that of Objectives, Sec. 5.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.elementary import exponential
from rankinite.core.jit import inlined_kernel, kernel
from rankinite.core.lanes import in_all_lanes, load_lanes, sum_of_lanes
from rankinite.measures.kernels.values_with_ties import (
    AVERAGE_PRECISION,
    CASCADE,
    RECIPROCAL_RANK,
)
from rankinite.objectives.kernels.arrays import (
    DISCRETE_BOUNDED,
    LOCAL_COST,
    LOCAL_GRADIENT,
    SIGMOID_COST,
    SPRING_SMOOTH,
    TIED_PAIRS,
    ObjectiveArrays,
    Scratch,
)
from rankinite.objectives.kernels.pairwise import (
    BY_DISTANCE,
    add_lanes,
    at_least_1,
    fill_exponentials,
    least_distance,
    normaliser,
    pair_gradient,
    set_tied_gradients,
    sigmoid_pair_gradient,
)
from rankinite.objectives.kernels.swaps import (
    GRADIENT,
    HESSIAN,
    INVERSE,
    LANES,
    LOWER,
    SCALE,
    SCORE,
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
from rankinite.objectives.kernels.weighted import set_weighted_gradients, weight_documents

# `discrete_bounded` moves documents instead of swapping them; it uses two rows for the value of a
# rank, and for what is above it.
RANK_VALUE, ABOVE = UPPER, LOWER


@kernel
def all_construction_gradients(
    first_block: int,
    last_block: int,
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    arrays: ObjectiveArrays,
    selected: NDArray[np.bool_],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write gradients and hessians of the ``selected`` queries, or of all if that is empty."""
    scratch = new_scratch(len(arrays.rank_weights))
    for q in range(blocks[first_block], blocks[last_block]):
        if len(selected) == 0 or selected[q]:
            construction_gradients(q, scores, arrays, scratch, out_gradient, out_hessian)


@kernel
def construction_gradients(
    q: int,
    scores: NDArray[np.float64],
    arrays: ObjectiveArrays,
    scratch: Scratch,
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write gradients and hessians of the documents of one query, by any construction.

    Also by the usual one, if documents have weights.
    """
    kind, form, n_top, scale = arrays.kind, arrays.form, arrays.n_top, arrays.scales[q]
    by_distance = arrays.normalise == BY_DISTANCE
    offsets, values, shuffle = arrays.offsets, arrays.values, arrays.shuffle
    usual, usual_bits, wide, wide_bits, sorting, _ = scratch
    order = sorting.order
    start, n = offsets[q], offsets[q + 1] - offsets[q]
    r, bits = (usual, usual_bits) if fits_usual(n) else (wide, wide_bits)
    labelled, factor = 0, 0.0
    weighted = len(arrays.better_weight) > 0
    # The gradients of these two are no sums over pairs: weights multiply those of documents.
    of_pairs = kind not in (LOCAL_GRADIENT, DISCRETE_BOUNDED)
    if scale > 0.0:
        total = 0.0
        has_missing = rank_documents(r, bits, sorting, n, start, scores, values, shuffle)
        labelled = n
        # Moves are not swaps: their change is computed from the ranks that a document passes over.
        if kind == DISCRETE_BOUNDED:
            fill_rank_values(r, n, form, arrays.rank_weights)
        else:
            n_top = min(fill_swaps(r, n, form, arrays.rank_weights, scale), n_top)
        # Tied pairs are found by group, and documents without a label are in group -1.
        if has_missing and kind != TIED_PAIRS:
            labelled, n_top = keep_labelled(r, order, n, n_top, values, start)
        if weighted and of_pairs:
            total = set_weighted_gradients(r, arrays, start, order, labelled, n_top)
        elif kind == TIED_PAIRS:
            total = set_tied_gradients(r, sorting, arrays.groups, start, n, n_top, by_distance)
        elif kind == SIGMOID_COST:
            total = set_sigmoid_gradients(r, labelled, n_top, arrays.margin, by_distance)
        elif kind == SPRING_SMOOTH:
            spring_smooth(r, labelled)
        elif kind == LOCAL_COST:
            local_cost(r, labelled, n_top)
        elif kind == DISCRETE_BOUNDED:
            discrete_bounded(r, labelled, form)
        else:
            local_gradient(r, labelled, n_top, arrays.margin)
        if weighted and not of_pairs:
            weight_documents(r, arrays, start, order, labelled)
        factor = arrays.query_weight[q] * normaliser(r, labelled, n, arrays.normalise, total)
    write_ranked(r, labelled, factor, order, shuffle, start, n, out_gradient, out_hessian)


@kernel
def write_ranked(
    r: Ranked,
    labelled: int,
    factor: float,
    order: NDArray[np.int64],
    shuffle: NDArray[np.int64],
    start: int,
    n: int,
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write a query's gradients and hessians, times a factor; 0 for documents without a label."""
    if labelled < n:
        for i in range(start, start + n):
            out_gradient[i] = 0.0
            out_hessian[i] = 0.0
    for k in range(labelled):
        doc = shuffle[start + order[k]]
        out_gradient[doc] = r[GRADIENT, k] * factor
        out_hessian[doc] = r[HESSIAN, k] * factor


@kernel
def set_sigmoid_gradients(r: Ranked, n: int, n_top: int, mu: float, by_distance: bool) -> float:
    """Set gradients, and hessians to 0; return the sum of the sizes of the pairs' gradients."""
    least, slope = least_distance(r, 0, n - 1, by_distance)
    m = exponential(mu)
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
            t = exponential(-apart)
            g = sigmoid_pair_gradient(difference, drop, least + slope * apart, t, m)
            total += abs(g)
            r[GRADIENT, u] += g
            r[GRADIENT, v] -= g
    return total


@inlined_kernel
def add_sigmoid_pairs(
    flat: NDArray[np.float64], width: int, n: int, n_top: int, m: float, least: float, slope: float
) -> float:
    """Add up the gradients of all pairs u < v with u < n_top, as `pairwise.add_pairs` does."""
    total = in_all_lanes(0.0)
    for u in range(n_top):
        value, upper = flat[VALUE * width + u], flat[UPPER * width + u]
        scale, inverse = flat[SCALE * width + u], flat[INVERSE * width + u]
        score = flat[SCORE * width + u]
        gradient = size = in_all_lanes(0.0)
        for v in range(u + 1, n, LANES):
            difference = value - load_lanes(flat, VALUE * width + v)
            drop = difference * (upper - load_lanes(flat, LOWER * width + v)) * scale
            distance = least + slope * (score - load_lanes(flat, SCORE * width + v))
            t = inverse * load_lanes(flat, E * width + v)
            g = sigmoid_pair_gradient(difference, drop, distance, t, m)
            gradient, size = gradient + g, size + abs(g)
            add_lanes(flat, GRADIENT * width + v, -g)
        flat[GRADIENT * width + u] += sum_of_lanes(gradient)
        total = total + size
    return sum_of_lanes(total)


@kernel
def spring_smooth(r: Ranked, n: int) -> None:
    """Set the gradients of all pairs, each change at least 1 before it is normalised."""
    if fill_exponentials(r, n):
        for k in range(n, n + LANES):  # padding, as in `pairwise.set_pair_gradients`
            r[VALUE, k] = -1.0
            r[LOWER, k] = 0.0
            r[E, k] = 0.0
        add_spring_pairs(r.reshape(r.size), r.shape[1], n)
        return
    for u in range(n):
        for v in range(u + 1, n):
            difference = r[VALUE, u] - r[VALUE, v]
            drop = at_least_1(difference, difference * (r[UPPER, u] - r[LOWER, v]))
            add_pair(r, u, v, drop * r[SCALE, u])


@inlined_kernel
def add_spring_pairs(flat: NDArray[np.float64], width: int, n: int) -> None:
    """Add up gradients and hessians of all pairs; the loop is that of `pairwise.add_pairs`."""
    for u in range(n):
        value, upper = flat[VALUE * width + u], flat[UPPER * width + u]
        scale, inverse = flat[SCALE * width + u], flat[INVERSE * width + u]
        gradient = hessian = in_all_lanes(0.0)
        for v in range(u + 1, n, LANES):
            difference = value - load_lanes(flat, VALUE * width + v)
            change = difference * (upper - load_lanes(flat, LOWER * width + v))
            drop = at_least_1(difference, change) * scale
            t = inverse * load_lanes(flat, E * width + v)
            g, _, h = pair_gradient(difference, drop, 1.0, t)
            gradient, hessian = gradient + g, hessian + h
            add_lanes(flat, GRADIENT * width + v, -g)
            add_lanes(flat, HESSIAN * width + v, h)
        flat[GRADIENT * width + u] += sum_of_lanes(gradient)
        flat[HESSIAN * width + u] += sum_of_lanes(hessian)


@kernel
def local_cost(r: Ranked, n: int, n_top: int) -> None:
    """Set the gradients of pairs of neighbours."""
    for k in range(n):
        r[GRADIENT, k] = 0.0
        r[HESSIAN, k] = 0.0
    for u in range(min(n_top, n - 1)):
        add_pair(r, u, u + 1, neighbour_drop(r, u))


@kernel
def local_gradient(r: Ranked, n: int, n_top: int, margin: float) -> None:
    """Set gradients to the mean slope towards one or two neighbours, and hessians to 1."""
    for k in range(n):
        r[GRADIENT, k] = 0.0
        r[HESSIAN, k] = 1.0
    for u in range(min(n_top, n - 1)):
        slope = neighbour_drop(r, u) / (r[SCORE, u] - r[SCORE, u + 1] + margin)
        r[GRADIENT, u] += slope
        r[GRADIENT, u + 1] -= slope
    # All but the first and the last rank have two neighbours.
    for k in range(1, n - 1):
        r[GRADIENT, k] *= 0.5


@kernel
def neighbour_drop(r: Ranked, u: int) -> float:
    """Return what swapping the documents at ranks u and u + 1 costs."""
    difference = r[VALUE, u] - r[VALUE, u + 1]
    return float(difference * (r[UPPER, u] - r[LOWER, u + 1]) * r[SCALE, u])


@kernel
def add_pair(r: Ranked, u: int, v: int, drop: float) -> None:
    """Add what one pair of ranks u < v gives, if a swap costs ``drop``."""
    t = exponential(r[SCORE, v] - r[SCORE, u])
    g, _, h = pair_gradient(r[VALUE, u] - r[VALUE, v], drop, 1.0, t)
    r[GRADIENT, u] += g
    r[GRADIENT, v] -= g
    r[HESSIAN, u] += h
    r[HESSIAN, v] += h


@kernel
def discrete_bounded(r: Ranked, n: int, form: int) -> None:
    """Set gradients to what moving each document to its ideal rank changes, and hessians to 1."""
    fill_above(r, n, form)
    for k in range(n):
        ideal = ideal_rank(r, n, k)
        r[GRADIENT, k] = 0.0
        r[HESSIAN, k] = 1.0
        if ideal != k:
            low, high = min(k, ideal), max(k, ideal)
            # The documents between move against the one that moves: up by a rank if it goes down.
            step = 1 if k == low else -1
            before = value_between(r, form, low, high, 0)
            change = value_between(r, form, low, high, step) - before
            r[GRADIENT, k] = -step * min(abs(change), 1.0)


@kernel
def fill_rank_values(r: Ranked, n: int, form: int, rank_weights: NDArray[np.float64]) -> None:
    """Fill the row of the values of ranks."""
    by_rank = form in (AVERAGE_PRECISION, RECIPROCAL_RANK)
    for k in range(n):
        r[RANK_VALUE, k] = rank_weights[k] / (k + 1.0) if by_rank else rank_weights[k]


@kernel
def fill_above(r: Ranked, n: int, form: int) -> None:
    """Fill the row of what is above a rank: the chance to get there, or the number of relevant."""
    above = 1.0 if form == CASCADE else 0.0
    for k in range(n):
        r[ABOVE, k] = above
        above = above * (1.0 - r[VALUE, k]) if form == CASCADE else above + r[VALUE, k]


@kernel
def ideal_rank(r: Ranked, n: int, k: int) -> int:
    """Return the rank by value of the document at rank k; equal values keep their order."""
    value = r[VALUE, k]
    rank = 0
    for j in range(n):
        rank += r[VALUE, j] > value or (j < k and r[VALUE, j] == value)
    return rank


@kernel
def value_between(r: Ranked, form: int, low: int, high: int, step: int) -> float:
    """Return what the ranks low to high add to the unnormalised measure.

    With a ``step`` of 0 as they are, of 1 after the first of their documents moved to the end, of
    -1 after the last moved to the start; the others move by one rank.
    """
    total = 0.0
    above = r[ABOVE, low]
    for k in range(low, high + 1):
        doc = k + step
        doc = low if doc > high else (high if doc < low else doc)
        value, rank_value = r[VALUE, doc], r[RANK_VALUE, k]
        if form == CASCADE:
            total += above * value * rank_value
            above *= 1.0 - value
        elif form == AVERAGE_PRECISION:
            above += value
            total += value * above * rank_value
        elif form == RECIPROCAL_RANK:
            total += rank_value if above == 0.0 and value > 0.0 else 0.0
            above += value
        else:
            total += value * rank_value
    return total
