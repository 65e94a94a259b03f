"""Kernels of lambda gradients: all pairs of a query's documents, with a few operations per pair.

One loop over pairs serves every measure, from the rows that `swaps` fills. It runs along ranks,
is compiled to work on several documents v at once, and needs no exponential: with
e = exp(s - largest s), 1 / (1 + exp(s_u - s_v)) = e_v / (e_u + e_v).

Indexes that come from an array are cast to unsigned integers before they are used: otherwise each
lookup first checks whether the index is negative and counts from the end.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import (
    exponentials,
    inlined_kernel,
    kernel,
    parallel_kernel,
    prange,
    summing_kernel,
)
from rankinite.measures.kernels import order_documents, padded_length
from rankinite.objectives.kernels.arrays import ObjectiveArrays, Scratch, SortScratch
from rankinite.objectives.kernels.swaps import (
    DISTANCE,
    EVERY_PAIR,
    GRADIENT,
    HESSIAN,
    INVERSE,
    LOWER,
    N_ROWS,
    SCALE,
    SCORE,
    SPARE,
    UPPER,
    VALUE,
    E,
    Ranked,
    fill_swaps,
)

NOT_NORMALISED = 0
BY_DEVIATION = 1
BY_DISTANCE = 2

# Rows of pairs are padded to a multiple of this, so that vectorised loops leave no remainder.
LANES = 4
# exp(-600) is still a normal number, and so are all products that the loop over pairs makes of it.
WIDEST_SPREAD = 600.0
# Added to distances of scores, so that nothing is divided by 0.
LEAST_DISTANCE = 0.01
# Gradients whose squares sum to less count as 0; the inverse of their deviation would overflow.
LEAST_SQUARES = 1e-290
# Queries of up to this many documents are sorted by counting, which is faster for them.
FEW = 128
# Rows of rounded scores are padded to a multiple of this, for vectorised loops.
ROUNDED_LANES = 32
# Rows of this width hold the documents of most queries: FEW and padding, in an odd number of cache
# lines, so that rows do not all compete for the same set of the cache.
USUAL_WIDTH = 136


@summing_kernel
def pair_gradient(
    difference: float, drop: float, distance: float, t: float
) -> tuple[float, float, float]:
    """Return what a pair adds to the gradient of its upper document, its size, and its hessian.

    ``difference`` is the value of the upper document minus that of the lower, ``drop`` what the
    measure loses by a swap, which is divided by ``distance``; ``t`` is exp(score of the lower -
    score of the upper).
    """
    inverse = 1.0 / (t * distance + distance)
    part = drop * inverse
    numerator = t if difference > 0.0 else 1.0
    return part * numerator, abs(part) * numerator, abs(part) * (t * (inverse * distance))


@summing_kernel
def add_pairs(
    flat: NDArray[np.float64],
    width: int,
    n: int,
    n_top: int,
    by_measure: bool,
    by_distance: bool,
    least: float,
) -> float:
    """Add up gradients and hessians of all pairs u < v with u < n_top.

    Return the sum of the sizes of the gradients if pairs are divided by their distance.
    """
    total = 0.0
    if width < 0:  # never true; it tells the compiler that no index is negative
        return total
    for u in range(n_top):
        value, upper = flat[VALUE * width + u], flat[UPPER * width + u]
        scale, inverse = flat[SCALE * width + u], flat[INVERSE * width + u]
        nearer = flat[DISTANCE * width + u] - least
        gradient = 0.0
        hessian = 0.0
        size = 0.0
        for k in range((n - u + LANES - 2) // LANES * LANES):
            v = u + 1 + k
            difference = value - flat[VALUE * width + v]
            drop = swap_change(
                difference, difference * (upper - flat[LOWER * width + v]), by_measure
            )
            distance = flat[DISTANCE * width + v] - nearer if by_distance else 1.0
            t = inverse * flat[E * width + v]
            g, g_size, h = pair_gradient(difference, drop, distance, t)
            gradient += g
            hessian += h
            if by_distance:
                size += g_size
            flat[GRADIENT * width + v] -= g * scale
            flat[HESSIAN * width + v] += h * scale
        flat[GRADIENT * width + u] += gradient * scale
        flat[HESSIAN * width + u] += hessian * scale
        total += size * scale
    return total


@inlined_kernel
def swap_change(difference: float, change: float, by_measure: bool) -> float:
    """Return what a swap costs: for RankNet 1, with the sign of the difference in value."""
    if by_measure:
        return change
    return 1.0 if difference > 0.0 else (-1.0 if difference < 0.0 else 0.0)


@kernel
def add_near_pairs(
    r: Ranked, n: int, n_top: int, by_measure: bool, by_distance: bool, least: float
) -> float:
    """Add up all pairs, with a row width known to the compiler where possible.

    Then the compiler also knows that rows do not overlap, and need not check it per document.
    """
    flat = r.reshape(r.size)
    if r.shape[1] != USUAL_WIDTH:  # too rare to compile one more specialised loop
        return add_pairs(flat, r.shape[1], n, n_top, by_measure, True, least)
    if by_distance:
        return add_pairs(flat, USUAL_WIDTH, n, n_top, by_measure, True, least)
    return add_pairs(flat, USUAL_WIDTH, n, n_top, by_measure, False, least)


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
            t = math.exp(-distance)
            g, g_size, h = pair_gradient(difference, drop, least + slope * distance, t)
            total += g_size
            r[GRADIENT, u] += g
            r[GRADIENT, v] -= g
            r[HESSIAN, u] += h
            r[HESSIAN, v] += h
    return total


@kernel
def keep_labelled(
    r: Ranked,
    order: NDArray[np.int64],
    n: int,
    n_top: int,
    values: NDArray[np.float64],
    start: int,
) -> tuple[int, int]:
    """Remove documents without a label from the ranks; return how many remain, and in the top."""
    kept = 0
    kept_in_top = 0
    for k in range(n):
        if np.isnan(values[start + order[k]]):
            continue
        order[kept] = order[k]
        for row in range(SCORE, DISTANCE):
            r[row, kept] = r[row, k]
        kept += 1
        if k < n_top:
            kept_in_top = kept
    return kept, kept_in_top


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
    return add_near_pairs(r, n, n_top, by_measure, by_distance, least)


@kernel
def normaliser(r: Ranked, n: int, n_docs: int, normalise: int, total: float) -> float:
    """Return the factor of a query's gradients and hessians."""
    if normalise == BY_DISTANCE and total > 0.0:
        return math.log2(1.0 + 2.0 * total) / (2.0 * total)
    if normalise == BY_DEVIATION:
        squares = 0.0
        for k in range(n):
            squares += r[GRADIENT, k] * r[GRADIENT, k]
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
    """Sort documents by counting those above each; ties keep their order.

    Quadratic, but without branches and eight documents at once: the fastest way for few. Scores
    are rounded to 32 bits for it, and ties that only rounding made are sorted in the end. NaN, of
    a model that diverged, is above nothing; its place is arbitrary, but within the query.
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
    sorting: SortScratch,
    n: int,
    start: int,
    scores: NDArray[np.float64],
    values: NDArray[np.float64],
    shuffle: NDArray[np.int64],
) -> bool:
    """Fill order, scores and values by rank; return whether a document has no label.

    Documents with equal scores are ranked in the order of ``shuffle``.
    """
    order, keys = sorting.order, sorting.keys
    for i in range(n):
        r[SPARE, i] = scores[np.uint64(shuffle[start + i])] + 0.0  # -0.0 ties with 0.0
    if n <= FEW:
        order_few(r[SPARE], n, order, keys[0], sorting.rounded, sorting.above)
    else:
        order_documents(r[SPARE, :n], bits[SPARE], order, keys[0], keys[1])
    has_missing = False
    for k in range(n):
        doc = np.uint64(order[k])
        r[SCORE, k] = r[SPARE, doc]
        value = values[np.uint64(start) + doc]
        has_missing |= np.isnan(value)
        r[VALUE, k] = 0.0 if np.isnan(value) else value
    return has_missing


@kernel
def new_scratch(longest: int) -> Scratch:
    """Allocate scratch memory that queries of up to ``longest`` documents can share."""
    # An odd number of cache lines per row: rows do not all start in the same set of the cache.
    width = max(USUAL_WIDTH, 8 * ((longest + LANES) // 8 + 1 | 1))
    usual = np.empty((N_ROWS, USUAL_WIDTH), np.float64)
    wide = usual if width == USUAL_WIDTH else np.empty((N_ROWS, width), np.float64)
    return Scratch(
        usual,
        usual.view(np.int64),
        wide,
        wide.view(np.int64),
        SortScratch(
            np.empty(longest, np.int64),
            np.empty((2, padded_length(longest)), np.int64),
            np.zeros(FEW, np.float32),
            np.empty(FEW, np.int32),
        ),
        np.empty(0, np.bool_),
    )


@inlined_kernel
def fits_usual(n: int) -> bool:
    """Tell whether a query fits into rows of the usual width.

    This depends on its own length only: the two widths are compiled to different loops, and the
    last bits of a query must not depend on the other queries.
    """
    return n + LANES <= USUAL_WIDTH


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
        if labelled < n:
            for i in range(start, start + n):
                out_gradient[i] = 0.0
                out_hessian[i] = 0.0
        for k in range(labelled):
            doc = np.uint64(shuffle[np.uint64(start + order[k])])
            out_gradient[doc] = r[GRADIENT, k] * factor
            out_hessian[doc] = r[HESSIAN, k] * factor


@parallel_kernel
def all_pairwise_gradients(
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    arrays: ObjectiveArrays,
    selected: NDArray[np.bool_],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write gradients and hessians of the ``selected`` queries, or of all if that mask is empty.

    Block b has the queries ``blocks[b]`` to ``blocks[b + 1] - 1``.
    """
    for block in prange(len(blocks) - 1):
        scratch = new_scratch(len(arrays.rank_weights))
        first, last = blocks[block], blocks[block + 1]
        pairwise_gradients(
            first, last, scores, arrays, scratch, selected, out_gradient, out_hessian
        )
