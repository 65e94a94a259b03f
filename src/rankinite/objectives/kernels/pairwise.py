"""The kernels of lambda gradients: every pair of a query's documents, a few operations each.

One loop over pairs serves every measure, from the rows that `swaps` fills. It runs along ranks,
is compiled to work on several documents v at once, and needs no exponential: with
e = exp(s - largest s), 1 / (1 + exp(s_u - s_v)) = e_v / (e_u + e_v).

Numbers of documents that come from an array are made unsigned before anything is looked up by
them: otherwise each is first asked whether it counts from the end.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel, parallel_kernel, prange, summing_kernel
from rankinite.measures.kernels import order_documents, padded_length
from rankinite.objectives.kernels.arrays import Plan, Scratch
from rankinite.objectives.kernels.exponential import exponentials
from rankinite.objectives.kernels.swaps import (
    DISTANCE,
    EVERY_PAIR,
    INVERSE,
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
# Lambdas whose squares sum to less are nothing; their inverse would overflow.
LEAST_SQUARES = 1e-290
# So many documents are put in order by counting.
FEW = 128
# Rows of rounded scores are filled up to a multiple of this.
ROUNDED_LANES = 32
# Rows of this many numbers hold the documents of most queries.
USUAL_WIDTH = 136


@summing_kernel
def push(more: float, fall: float, distance: float, t: float) -> tuple[float, float, float]:
    """Return what a pair adds to the lambda of its upper document, its size, and the weight.

    The upper document is worth ``more``, and a swap costs ``fall``, which is divided by
    ``distance``; ``t`` is exp(score of the lower - score of the upper).
    """
    inverse = 1.0 / (t * distance + distance)
    part = fall * inverse
    share = t if more > 0.0 else 1.0
    return part * share, abs(part) * share, abs(part) * (t * (inverse * distance))


@summing_kernel
def push_rows(
    flat: NDArray[np.float64],
    width: int,
    n: int,
    reach: int,
    by_measure: bool,
    by_distance: bool,
    least: float,
) -> float:
    """Add up lambdas and weights of all pairs u < v with u < reach.

    Return the sum of the lambdas' sizes if pairs are divided by their distance.
    """
    total = 0.0
    if width < 0:  # never; but now the compiler knows that no index is negative
        return total
    for u in range(reach):
        value, upper = flat[VALUE * width + u], flat[UPPER * width + u]
        scale, inverse = flat[SCALE * width + u], flat[INVERSE * width + u]
        nearer = flat[DISTANCE * width + u] - least
        lam = 0.0
        weight = 0.0
        size = 0.0
        for k in range((n - u + LANES - 2) // LANES * LANES):
            v = u + 1 + k
            more = value - flat[VALUE * width + v]
            fall = swap_change(more, more * (upper - flat[LOWER * width + v]), by_measure)
            distance = flat[DISTANCE * width + v] - nearer if by_distance else 1.0
            a, b, c = push(more, fall, distance, inverse * flat[E * width + v])
            lam += a
            weight += c
            if by_distance:
                size += b
            flat[LAMBDA * width + v] -= a * scale
            flat[WEIGHT * width + v] += c * scale
        flat[LAMBDA * width + u] += lam * scale
        flat[WEIGHT * width + u] += weight * scale
        total += size * scale
    return total


@inlined_kernel
def swap_change(more: float, change: float, by_measure: bool) -> float:
    """Return what a swap costs: for RankNet 1, with the sign of how much more it is worth."""
    if by_measure:
        return change
    return 1.0 if more > 0.0 else (-1.0 if more < 0.0 else 0.0)


@kernel
def push_near(
    r: Ranked, n: int, reach: int, by_measure: bool, by_distance: bool, least: float
) -> float:
    """Push all pairs, in rows of a width that the compiler knows, if they have it.

    Then it also knows that rows do not overlap, and need not find out again for each document.
    """
    flat = r.reshape(r.size)
    if r.shape[1] != USUAL_WIDTH:  # few enough that another loop for them need not be compiled
        return push_rows(flat, r.shape[1], n, reach, by_measure, True, least)
    if by_distance:
        return push_rows(flat, USUAL_WIDTH, n, reach, by_measure, True, least)
    return push_rows(flat, USUAL_WIDTH, n, reach, by_measure, False, least)


@kernel
def push_far_apart(
    r: Ranked, n: int, reach: int, by_measure: bool, least: float, slope: float
) -> float:
    """Do what `push_near` does where scores spread too far for ``e``."""
    total = 0.0
    for u in range(reach):
        for v in range(u + 1, n):
            more = r[VALUE, u] - r[VALUE, v]
            change = more * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
            distance = r[SCORE, u] - r[SCORE, v]
            fall = swap_change(more, change, by_measure)
            a, b, c = push(more, fall, least + slope * distance, math.exp(-distance))
            total += b
            r[LAMBDA, u] += a
            r[LAMBDA, v] -= a
            r[WEIGHT, u] += c
            r[WEIGHT, v] += c
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
        for row in range(SCORE, DISTANCE):
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
    """Set lambdas and weights of the first n ranks.

    Return the sum of the sizes of the pairs' lambdas, which only ``by_distance`` needs and gets.
    Where all scores are equal there is no distance to divide by.
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
    for k in range(n):
        r[INVERSE, k] = 1.0 / r[E, k]
        r[DISTANCE, k] = slope * (r[SCORE, 0] - r[SCORE, k])
    # Documents that are worth less than any other, at a score of minus infinity: they push nobody.
    for k in range(n, n + LANES):
        r[VALUE, k] = -1.0
        r[LOWER, k] = 0.0
        r[DISTANCE, k] = r[DISTANCE, n - 1]
        r[E, k] = 0.0
    return push_near(r, n, reach, by_measure, by_distance, least)


@kernel
def normaliser(r: Ranked, n: int, n_docs: int, normalise: int, total: float) -> float:
    """Return what to multiply a query's lambdas and weights by."""
    if normalise == BY_DISTANCE and total > 0.0:
        return math.log2(1.0 + 2.0 * total) / (2.0 * total)
    if normalise == BY_DEVIATION:
        squares = 0.0
        for k in range(n):
            squares += r[LAMBDA, k] * r[LAMBDA, k]
        return math.sqrt(n_docs / squares) if squares > LEAST_SQUARES else 0.0
    return 1.0


@kernel
def order_few(
    scores: NDArray[np.float64],
    n: int,
    order: NDArray[np.int64],
    counts: NDArray[np.int64],
    rounded: NDArray[np.float32],
    above: NDArray[np.int32],
) -> None:
    """Order documents by counting those above each; ties keep theirs.

    Quadratic, but without branches and eight documents at once: for few it is the fastest.
    Scores are rounded for it, and what rounding made equal is put right in the end. Scores that
    are no numbers, of a model that diverged, find no place; then any will do.
    """
    padded = (n + ROUNDED_LANES - 1) // ROUNDED_LANES * ROUNDED_LANES
    for i in range(n):
        rounded[i] = np.float32(scores[i])
        order[i] = i
        counts[i] = 0
    for i in range(padded):
        above[i] = 0
    for j in range(n):
        score = rounded[j]
        for i in range(padded):
            above[i] += np.int32(score > rounded[i])
    for i in range(n):
        rank = np.uint64(above[i])
        order[rank + np.uint64(counts[rank])] = i
        counts[rank] += 1
    for k in range(1, n):
        i = np.uint64(order[k])
        place = k
        while place > 0 and scores[np.uint64(order[place - 1])] < scores[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i


@kernel
def rank_documents(
    r: Ranked,
    bits: NDArray[np.int64],
    order: NDArray[np.int64],
    keys: NDArray[np.int64],
    rounded: NDArray[np.float32],
    above: NDArray[np.int32],
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
        r[SPARE, i] = scores[np.uint64(shuffle[start + i])] + 0.0  # -0.0 ties with 0.0
    if n <= FEW:
        order_few(r[SPARE], n, order, keys[0], rounded, above)
    else:
        order_documents(r[SPARE, :n], bits[SPARE], order, keys[0], keys[1])
    gaps = False
    for k in range(n):
        doc = np.uint64(order[k])
        r[SCORE, k] = r[SPARE, doc]
        value = values[np.uint64(start) + doc]
        gaps |= np.isnan(value)
        r[VALUE, k] = 0.0 if np.isnan(value) else value
    return gaps


@kernel
def new_scratch(longest: int) -> Scratch:
    """Make scratch for queries of up to so many documents; any number of them can share it."""
    # An odd number of cache lines a row: rows do not all begin in the same set of the cache.
    width = max(USUAL_WIDTH, 8 * ((longest + LANES) // 8 + 1 | 1))
    usual = np.empty((N_ROWS, USUAL_WIDTH), np.float64)
    wide = usual if width == USUAL_WIDTH else np.empty((N_ROWS, width), np.float64)
    return Scratch(
        usual,
        usual.view(np.int64),
        wide,
        wide.view(np.int64),
        np.empty(longest, np.int64),
        np.empty((2, padded_length(longest)), np.int64),
        np.zeros(FEW, np.float32),
        np.empty(FEW, np.int32),
        np.empty(0, np.bool_),
    )


@inlined_kernel
def fits_usual(n: int) -> bool:
    """Tell whether a query stands in rows of the usual width.

    By its own length, so that a query's last bits do not depend on others.
    """
    return n + LANES <= USUAL_WIDTH


@kernel
def lambdas_between(
    first: int,
    last: int,
    scores: NDArray[np.float64],
    plan: Plan,
    scratch: Scratch,
    wanted: NDArray[np.bool_],
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Write lambdas and weights of those queries from first to last - 1 that are ``wanted``.

    What is in the plan and the scratch is taken out once for all queries: to do so for each takes
    as long as ten documents.
    """
    form, truncation, normalise = plan.form, plan.reach, plan.normalise
    offsets, values, shuffle = plan.offsets, plan.values, plan.shuffle
    rank_weights, scales, weights = plan.rank_weights, plan.scales, plan.query_weight
    usual, usual_bits, wide, wide_bits, order, keys, rounded, above, _ = scratch
    for q in range(first, last):
        if len(wanted) > 0 and not wanted[q]:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        r, bits = (usual, usual_bits) if fits_usual(n) else (wide, wide_bits)
        labelled, factor = 0, 0.0
        if scales[q] > 0.0:
            gaps = rank_documents(
                r, bits, order, keys, rounded, above, n, start, scores, values, shuffle
            )
            reach = min(fill_swaps(r, n, form, rank_weights, scales[q]), truncation)
            labelled = n
            if gaps:
                labelled, reach = keep_labelled(r, order, n, reach, values, start)
            total = push_all(r, bits, labelled, reach, form != EVERY_PAIR, normalise == BY_DISTANCE)
            factor = weights[q] * normaliser(r, labelled, n, normalise, total)
        if labelled < n:
            for i in range(start, start + n):
                out_lambda[i] = 0.0
                out_weight[i] = 0.0
        for k in range(labelled):
            doc = np.uint64(shuffle[np.uint64(start + order[k])])
            out_lambda[doc] = r[LAMBDA, k] * factor
            out_weight[doc] = r[WEIGHT, k] * factor


@parallel_kernel
def all_lambdas(
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    plan: Plan,
    wanted: NDArray[np.bool_],
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Write lambdas and weights of all queries.

    Only queries that are ``wanted`` are computed, or all if that is empty. Block b has the
    queries ``blocks[b]`` to ``blocks[b + 1] - 1``.
    """
    for block in prange(len(blocks) - 1):
        scratch = new_scratch(len(plan.rank_weights))
        first, last = blocks[block], blocks[block + 1]
        lambdas_between(first, last, scores, plan, scratch, wanted, out_lambda, out_weight)
