"""The kernels of lambda gradients: every pair of a query's documents, a few operations each.

One loop over pairs serves every measure, from the rows that `swaps` fills. It runs along ranks,
is compiled to work on several documents v at once, and needs no exponential: with
e = exp(s - largest s), 1 / (1 + exp(s_u - s_v)) = e_v / (e_u + e_v).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import inlined_kernel, kernel, parallel_kernel, prange, summing_kernel
from rankinite.measures.order import order_documents, padded_length
from rankinite.objectives.exponential import exponentials
from rankinite.objectives.swaps import (
    EVERY_PAIR,
    LAMBDA,
    LOWER,
    N_ROWS,
    SCALE,
    SCORE,
    SPARE,
    UPPER,
    VALUE,
    WEIGHT,
    E,
    Ranked,
    fill_swaps,
)

AS_IT_IS = 0
BY_DEVIATION = 1
BY_DISTANCE = 2

# Rows of pairs are filled up to a multiple of this, so that none is left to be done one by one.
LANES = 4
# exp(-600) is still a normal number, and so is whatever the loop over pairs makes of it.
WIDEST_SPREAD = 600.0
LEAST_DISTANCE = 0.01
# So many documents are put in order by counting.
FEW = 96


@inlined_kernel
def push(value: float, change: float, e_u: float, e_v: float) -> tuple[float, float]:
    """Return what a pair adds to the lambda of its upper document, and to both weights.

    ``value`` is how much more the upper document is worth, ``change`` what a swap costs.
    """
    both = 1.0 / (e_u + e_v)
    share_u = e_u * both
    share_v = e_v * both
    rho = share_v if value > 0.0 else share_u
    return change * rho, abs(change) * (share_u * share_v)


@summing_kernel
def push_by_measure(r: Ranked, n: int, reach: int) -> None:
    """Add up lambdas and weights of all pairs u < v with u < reach."""
    for u in range(reach):
        value, upper, scale, e = r[VALUE, u], r[UPPER, u], r[SCALE, u], r[E, u]
        lam = 0.0
        weight = 0.0
        for k in range((n - u + LANES - 2) // LANES * LANES):
            v = u + 1 + k
            more = value - r[VALUE, v]
            a, b = push(more, more * (upper - r[LOWER, v]) * scale, e, r[E, v])
            lam += a
            weight += b
            r[LAMBDA, v] -= a
            r[WEIGHT, v] += b
        r[LAMBDA, u] += lam
        r[WEIGHT, u] += weight


@inlined_kernel
def swap_change(more: float, change: float, by_measure: bool) -> float:
    """Return what a swap costs: for RankNet 1, with the sign of how much more it is worth."""
    if by_measure:
        return change
    return 1.0 if more > 0.0 else (-1.0 if more < 0.0 else 0.0)


@summing_kernel
def push_by_distance(
    r: Ranked, n: int, reach: int, by_measure: bool, least: float, slope: float
) -> float:
    """Add up lambdas and weights, each pair's over ``least + slope x distance of scores``.

    Return the sum of the pairs' lambdas.
    """
    total = 0.0
    for u in range(reach):
        value, upper, scale, e = r[VALUE, u], r[UPPER, u], r[SCALE, u], r[E, u]
        score = r[SCORE, u]
        lam = 0.0
        weight = 0.0
        size = 0.0
        for k in range((n - u + LANES - 2) // LANES * LANES):
            v = u + 1 + k
            more = value - r[VALUE, v]
            change = swap_change(more, more * (upper - r[LOWER, v]) * scale, by_measure)
            a, b = push(more, change / (least + slope * (score - r[SCORE, v])), e, r[E, v])
            lam += a
            weight += b
            size += abs(a)
            r[LAMBDA, v] -= a
            r[WEIGHT, v] += b
        r[LAMBDA, u] += lam
        r[WEIGHT, u] += weight
        total += size
    return total


@kernel
def push_far_apart(
    r: Ranked, n: int, reach: int, by_measure: bool, least: float, slope: float
) -> float:
    """Do what `push_by_distance` does where scores spread too far for ``e``."""
    total = 0.0
    for u in range(reach):
        for v in range(u + 1, n):
            more = r[VALUE, u] - r[VALUE, v]
            change = more * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
            distance = r[SCORE, u] - r[SCORE, v]
            change = swap_change(more, change, by_measure) / (least + slope * distance)
            a, b = push(more, change, 1.0, math.exp(-distance))
            total += abs(a)
            r[LAMBDA, u] += a
            r[LAMBDA, v] -= a
            r[WEIGHT, u] += b
            r[WEIGHT, v] += b
    return total


@kernel
def keep_labelled(
    r: Ranked,
    order: NDArray[np.int64],
    n: int,
    reach: int,
    values: NDArray[np.float64],
    start: int,
) -> tuple[int, int]:
    """Close the ranks over documents without a label; return how many remain, and within reach."""
    kept = 0
    kept_in_reach = 0
    for k in range(n):
        if np.isnan(values[start + order[k]]):
            continue
        order[kept] = order[k]
        for row in range(SCORE, E):
            r[row, kept] = r[row, k]
        kept += 1
        if k < reach:
            kept_in_reach = kept
    return kept, kept_in_reach


@kernel
def push_all(
    r: Ranked,
    bits: NDArray[np.int64],
    n: int,
    reach: int,
    by_measure: bool,
    by_distance: bool,
) -> float:
    """Set lambdas and weights of the first n ranks; return the sum of the pairs' lambdas.

    The sum is only there if it is needed: by distance. Where all scores are equal there is no
    distance to divide by.
    """
    least, slope = 1.0, 0.0
    if by_distance and r[SCORE, 0] > r[SCORE, n - 1]:
        least, slope = LEAST_DISTANCE, 1.0
    for k in range(n + LANES):
        r[LAMBDA, k] = 0.0
        r[WEIGHT, k] = 0.0
    if r[SCORE, 0] - r[SCORE, n - 1] > WIDEST_SPREAD:
        return push_far_apart(r, n, reach, by_measure, least, slope)
    exponentials(r[SCORE], r[SCORE, 0], n, r[SPARE], bits[SPARE], r[E])
    # Documents that are worth less than any other, at a score of minus infinity: they push nobody.
    for k in range(n, n + LANES):
        r[VALUE, k] = -1.0
        r[LOWER, k] = 0.0
        r[SCORE, k] = r[SCORE, n - 1]
        r[E, k] = 0.0
    if by_measure and not by_distance:
        push_by_measure(r, n, reach)
        return 0.0
    return push_by_distance(r, n, reach, by_measure, least, slope)


@kernel
def normaliser(r: Ranked, n: int, n_docs: int, normalise: int, total: float) -> float:
    """Return what to multiply a query's lambdas and weights by."""
    if normalise == BY_DISTANCE and total > 0.0:
        return math.log2(1.0 + 2.0 * total) / (2.0 * total)
    if normalise == BY_DEVIATION:
        squares = 0.0
        for k in range(n):
            squares += r[LAMBDA, k] * r[LAMBDA, k]
        return math.sqrt(n_docs / squares) if squares > 0.0 else 0.0
    return 1.0


@kernel
def order_few(r: Ranked, n: int, order: NDArray[np.int64]) -> None:
    """Order documents by counting those above each; ties keep theirs.

    Quadratic, but without branches and several documents at once: for few it is the fastest.
    Scores that are no numbers, of a model that diverged, find no place; then any will do.
    """
    for i in range(n):
        order[i] = i
    for i in range(n):
        score = r[SPARE, i]
        rank = 0
        for j in range(i):
            rank += r[SPARE, j] >= score
        for j in range(n - i - 1):
            rank += r[SPARE, i + 1 + j] > score
        order[rank] = i


@kernel
def rank_documents(
    r: Ranked,
    bits: NDArray[np.int64],
    order: NDArray[np.int64],
    keys: NDArray[np.int64],
    n: int,
    start: int,
    scores: NDArray[np.float64],
    values: NDArray[np.float64],
    shuffle: NDArray[np.int64],
) -> bool:
    """Fill order, scores and values by rank; return whether a document has no label.

    Documents with equal scores stand in the order of ``shuffle``.
    """
    for i in range(n):
        r[SPARE, i] = scores[shuffle[start + i]] + 0.0  # -0.0 ties with 0.0
    if n <= FEW:
        order_few(r, n, order)
    else:
        order_documents(r[SPARE, :n], bits[SPARE], order, keys[0], keys[1])
    gaps = False
    for k in range(n):
        r[SCORE, k] = r[SPARE, order[k]]
        value = values[start + order[k]]
        gaps |= np.isnan(value)
        r[VALUE, k] = 0.0 if np.isnan(value) else value
    return gaps


@kernel
def block_lambdas(
    first: int,
    last: int,
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    values: NDArray[np.float64],
    shuffle: NDArray[np.int64],
    rank_weights: NDArray[np.float64],
    scales: NDArray[np.float64],
    query_weight: NDArray[np.float64],
    form: int,
    truncation: int,
    normalise: int,
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Write lambdas and weights of the queries from first to last - 1, which share scratch."""
    longest = len(rank_weights)
    # An odd number of cache lines a row: rows do not all begin in the same set of the cache.
    width = 8 * ((longest + LANES) // 8 + 1 | 1)
    r = np.empty((N_ROWS, width), np.float64)
    bits = r.view(np.int64)
    order = np.empty(longest, np.int64)
    keys = np.empty((2, padded_length(longest)), np.int64)
    for q in range(first, last):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        labelled, factor = 0, 0.0
        if scales[q] > 0.0:
            gaps = rank_documents(r, bits, order, keys, n, start, scores, values, shuffle)
            reach = min(fill_swaps(r, n, form, rank_weights, scales[q]), truncation)
            labelled = n
            if gaps:
                labelled, reach = keep_labelled(r, order, n, reach, values, start)
            total = push_all(r, bits, labelled, reach, form != EVERY_PAIR, normalise == BY_DISTANCE)
            factor = query_weight[q] * normaliser(r, labelled, n, normalise, total)
        if labelled < n:
            for i in range(start, start + n):
                out_lambda[i] = 0.0
                out_weight[i] = 0.0
        for k in range(labelled):
            doc = shuffle[start + order[k]]
            out_lambda[doc] = r[LAMBDA, k] * factor
            out_weight[doc] = r[WEIGHT, k] * factor


@parallel_kernel
def all_lambdas(
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    blocks: NDArray[np.int64],
    values: NDArray[np.float64],
    shuffle: NDArray[np.int64],
    rank_weights: NDArray[np.float64],
    scales: NDArray[np.float64],
    query_weight: NDArray[np.float64],
    form: int,
    truncation: int,
    normalise: int,
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Write lambdas and weights of all queries.

    ``values`` stand in the order of ``shuffle``, which gives the documents of each query in an
    order of no meaning; they are NaN where there is no label. ``scales`` is 0 where a query has
    no pairs. Block b has the queries ``blocks[b]`` to ``blocks[b + 1] - 1``.
    """
    for block in prange(len(blocks) - 1):
        block_lambdas(
            blocks[block],
            blocks[block + 1],
            scores,
            offsets,
            values,
            shuffle,
            rank_weights,
            scales,
            query_weight,
            form,
            truncation,
            normalise,
            out_lambda,
            out_weight,
        )
