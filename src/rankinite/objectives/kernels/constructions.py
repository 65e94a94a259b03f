"""The kernels of the other constructions of a lambda gradient (Optimality, Sec. 7).

Tied pairs and the sigmoid cost (Objectives) are in files of their own, and join the others here.
They begin as those of `kernels` do: documents are ranked, rows are filled by rank, and the ranks
are closed over documents without a label. None of them is compiled for `Lambdas`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel, parallel_kernel, prange, summing_kernel
from rankinite.objectives.kernels.arrays import (
    DISCRETE_BOUNDED,
    LOCAL_COST,
    SIGMOID_COST,
    SPRING_SMOOTH,
    TIED_PAIRS,
    Plan,
    Scratch,
)
from rankinite.objectives.kernels.pair_losses import fill_exponentials, push_sigmoid, push_tied
from rankinite.objectives.kernels.pairwise import (
    BY_DISTANCE,
    LANES,
    fits_usual,
    keep_labelled,
    new_scratch,
    normaliser,
    push,
    rank_documents,
)
from rankinite.objectives.kernels.swaps import (
    AVERAGE_PRECISION,
    CASCADE,
    INVERSE,
    LAMBDA,
    LOWER,
    RECIPROCAL_RANK,
    SCALE,
    SCORE,
    UPPER,
    VALUE,
    WEIGHT,
    E,
    Ranked,
    fill_swaps,
)

# Where documents are moved, two rows hold other things than for swaps: what a rank is worth, and
# what stands above it.
WORTH, ABOVE = UPPER, LOWER


@inlined_kernel
def at_least_1(more: float, change: float) -> float:
    """Return the change, its size at least 1, with the sign of how much more it is worth."""
    size = max(abs(change), 1.0)
    return size if more > 0.0 else (-size if more < 0.0 else 0.0)


@summing_kernel
def spring_near(flat: NDArray[np.float64], width: int, n: int) -> None:
    """Add up lambdas and weights of all pairs; the loop is that of `kernels.push_rows`."""
    if width < 0:  # never; but now the compiler knows that no index is negative
        return
    for u in range(n):
        value, upper = flat[VALUE * width + u], flat[UPPER * width + u]
        scale, inverse = flat[SCALE * width + u], flat[INVERSE * width + u]
        lam = 0.0
        weight = 0.0
        for k in range((n - u + LANES - 2) // LANES * LANES):
            v = u + 1 + k
            more = value - flat[VALUE * width + v]
            fall = at_least_1(more, more * (upper - flat[LOWER * width + v]))
            a, _, c = push(more, fall, 1.0, inverse * flat[E * width + v])
            lam += a
            weight += c
            flat[LAMBDA * width + v] -= a * scale
            flat[WEIGHT * width + v] += c * scale
        flat[LAMBDA * width + u] += lam * scale
        flat[WEIGHT * width + u] += weight * scale


@kernel
def push_pair(r: Ranked, u: int, v: int, fall: float) -> None:
    """Add what one pair of ranks u < v gives, if a swap costs ``fall``."""
    t = math.exp(r[SCORE, v] - r[SCORE, u])
    a, _, c = push(r[VALUE, u] - r[VALUE, v], fall, 1.0, t)
    r[LAMBDA, u] += a
    r[LAMBDA, v] -= a
    r[WEIGHT, u] += c
    r[WEIGHT, v] += c


@kernel
def spring_smooth(r: Ranked, n: int) -> None:
    """Set lambdas and weights: all pairs, each change at least 1 before it is normalised."""
    if fill_exponentials(r, n):
        for k in range(n, n + LANES):  # as in `kernels.push_all`: they push nobody
            r[VALUE, k] = -1.0
            r[LOWER, k] = 0.0
            r[E, k] = 0.0
        spring_near(r.reshape(r.size), r.shape[1], n)
        return
    for u in range(n):
        for v in range(u + 1, n):
            more = r[VALUE, u] - r[VALUE, v]
            fall = at_least_1(more, more * (r[UPPER, u] - r[LOWER, v]))
            push_pair(r, u, v, fall * r[SCALE, u])


@kernel
def neighbour_fall(r: Ranked, u: int) -> float:
    """Return what swapping the documents at ranks u and u + 1 costs."""
    more = r[VALUE, u] - r[VALUE, u + 1]
    return float(more * (r[UPPER, u] - r[LOWER, u + 1]) * r[SCALE, u])


@kernel
def local_cost(r: Ranked, n: int, reach: int) -> None:
    """Set lambdas and weights: only neighbours push each other."""
    for k in range(n):
        r[LAMBDA, k] = 0.0
        r[WEIGHT, k] = 0.0
    for u in range(min(reach, n - 1)):
        push_pair(r, u, u + 1, neighbour_fall(r, u))


@kernel
def local_gradient(r: Ranked, n: int, reach: int, margin: float) -> None:
    """Set lambdas to the mean slope towards one or two neighbours, and weights to 1."""
    for k in range(n):
        r[LAMBDA, k] = 0.0
        r[WEIGHT, k] = 1.0
    for u in range(min(reach, n - 1)):
        slope = neighbour_fall(r, u) / (r[SCORE, u] - r[SCORE, u + 1] + margin)
        r[LAMBDA, u] += slope
        r[LAMBDA, u + 1] -= slope
    for k in range(1, n - 1):
        r[LAMBDA, k] *= 0.5


@kernel
def fill_worth(r: Ranked, n: int, form: int, rank_weights: NDArray[np.float64]) -> None:
    """Fill the row of what a rank is worth."""
    by_rank = form in (AVERAGE_PRECISION, RECIPROCAL_RANK)
    for k in range(n):
        r[WORTH, k] = rank_weights[k] / (k + 1.0) if by_rank else rank_weights[k]


@kernel
def fill_above(r: Ranked, n: int, form: int) -> None:
    """Fill the row of what stands above a rank: the chance to come so far, or how many relevant."""
    above = 1.0 if form == CASCADE else 0.0
    for k in range(n):
        r[ABOVE, k] = above
        above = above * (1.0 - r[VALUE, k]) if form == CASCADE else above + r[VALUE, k]


@kernel
def ideal_rank(r: Ranked, n: int, k: int) -> int:
    """Return where the document at rank k stands by value; equal values keep their order."""
    value = r[VALUE, k]
    rank = 0
    for j in range(n):
        rank += r[VALUE, j] > value or (j < k and r[VALUE, j] == value)
    return rank


@kernel
def worth_between(r: Ranked, form: int, low: int, high: int, step: int) -> float:
    """Return what the ranks low to high give to the unnormalised measure.

    With a ``step`` of 0 as they are, of 1 after the first of their documents went to the end, of
    -1 after the last went to the beginning; the others move by one.
    """
    total = 0.0
    above = r[ABOVE, low]
    for k in range(low, high + 1):
        doc = k + step
        doc = low if doc > high else (high if doc < low else doc)
        value, worth = r[VALUE, doc], r[WORTH, k]
        if form == CASCADE:
            total += above * value * worth
            above *= 1.0 - value
        elif form == AVERAGE_PRECISION:
            above += value
            total += value * above * worth
        elif form == RECIPROCAL_RANK:
            total += worth if above == 0.0 and value > 0.0 else 0.0
            above += value
        else:
            total += value * worth
    return total


@kernel
def discrete_bounded(r: Ranked, n: int, form: int) -> None:
    """Set lambdas to what moving each document to its ideal rank changes, and weights to 1."""
    fill_above(r, n, form)
    for k in range(n):
        ideal = ideal_rank(r, n, k)
        r[LAMBDA, k] = 0.0
        r[WEIGHT, k] = 1.0
        if ideal != k:
            low, high = min(k, ideal), max(k, ideal)
            step = 1 if k == low else -1
            before = worth_between(r, form, low, high, 0)
            change = worth_between(r, form, low, high, step) - before
            r[LAMBDA, k] = -step * min(abs(change), 1.0)


@kernel
def write_ranked(
    r: Ranked,
    labelled: int,
    factor: float,
    order: NDArray[np.int64],
    shuffle: NDArray[np.int64],
    start: int,
    n: int,
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Write a query's lambdas and weights, times a factor, and 0 for documents without a label."""
    if labelled < n:
        for i in range(start, start + n):
            out_lambda[i] = 0.0
            out_weight[i] = 0.0
    for k in range(labelled):
        doc = shuffle[start + order[k]]
        out_lambda[doc] = r[LAMBDA, k] * factor
        out_weight[doc] = r[WEIGHT, k] * factor


@kernel
def query_constructed(
    q: int,
    scores: NDArray[np.float64],
    plan: Plan,
    scratch: Scratch,
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Write lambdas and weights of the documents of one query, of whichever construction."""
    kind, form, reach, scale = plan.kind, plan.form, plan.reach, plan.scales[q]
    by_distance = plan.normalise == BY_DISTANCE
    offsets, values, shuffle = plan.offsets, plan.values, plan.shuffle
    usual, usual_bits, wide, wide_bits, order, keys, rounded, above, _ = scratch
    start, n = offsets[q], offsets[q + 1] - offsets[q]
    r, bits = (usual, usual_bits) if fits_usual(n) else (wide, wide_bits)
    labelled, factor = 0, 0.0
    if scale > 0.0:
        total = 0.0
        gaps = rank_documents(
            r, bits, order, keys, rounded, above, n, start, scores, values, shuffle
        )
        labelled = n
        if kind == DISCRETE_BOUNDED:
            fill_worth(r, n, form, plan.rank_weights)
        else:
            reach = min(fill_swaps(r, n, form, plan.rank_weights, scale), reach)
        if gaps and kind != TIED_PAIRS:
            labelled, reach = keep_labelled(r, order, n, reach, values, start)
        if kind == TIED_PAIRS:
            total = push_tied(r, order, keys, plan.groups, start, n, reach, by_distance)
        elif kind == SIGMOID_COST:
            total = push_sigmoid(r, labelled, reach, plan.margin, by_distance)
        elif kind == SPRING_SMOOTH:
            spring_smooth(r, labelled)
        elif kind == LOCAL_COST:
            local_cost(r, labelled, reach)
        elif kind == DISCRETE_BOUNDED:
            discrete_bounded(r, labelled, form)
        else:
            local_gradient(r, labelled, reach, plan.margin)
        factor = plan.query_weight[q] * normaliser(r, labelled, n, plan.normalise, total)
    write_ranked(r, labelled, factor, order, shuffle, start, n, out_lambda, out_weight)


@parallel_kernel
def all_constructed(
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    plan: Plan,
    wanted: NDArray[np.bool_],
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Write lambdas and weights of all queries that are ``wanted``, or of all if that is empty."""
    for block in prange(len(blocks) - 1):
        scratch = new_scratch(len(plan.rank_weights))
        for q in range(blocks[block], blocks[block + 1]):
            if len(wanted) == 0 or wanted[q]:
                query_constructed(q, scores, plan, scratch, out_lambda, out_weight)
