"""The documents of a query by rank, and how much swapping two of them changes a measure.

Whatever the measure, swapping the documents at ranks u < v lowers it by

    (value_u - value_v) x (upper_u - lower_v) x scale_u

with rows of numbers that are filled once per query: first documents are ranked, then the rows of
the measure's form are filled (`fill_swaps`), then documents without a label are removed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel
from rankinite.core.lanes import n_lanes
from rankinite.measures.kernels.values_with_ties import (
    AVERAGE_PRECISION,
    CASCADE,
    N_FORMS,
    RECIPROCAL_RANK,
    order_documents,
    padded_length,
)
from rankinite.objectives.kernels.arrays import Scratch, SortScratch

# Two forms of swaps belong to no measure; they are numbered behind the forms of measures.
RECIPROCAL_GAIN = N_FORMS  # Optimality, Eq. 11: swaps that lower the reciprocal rank do not count
EVERY_PAIR = N_FORMS + 1  # RankNet: every swap changes the measure by 1

# Where a document satisfies for certain, the chance to continue would be 0, and it is a divisor.
LEAST_CHANCE = 1e-30

# The rows of the array r, whose columns are a query's documents by rank. One array rather than
# eleven: every array argument costs a kernel atomic reference counts. `keep_labelled` moves the
# rows from SCORE to before DISTANCE, which are filled by then.
SPARE, SCORE, VALUE, UPPER, LOWER, SCALE, DISTANCE, E, INVERSE, GRADIENT, HESSIAN = range(11)
N_ROWS = 11

# Rows of pairs are padded by this many documents, so that the last lanes of a row are in it.
LANES = n_lanes(np.float64)
# Queries of up to this many documents are sorted by counting, which is faster for them.
FEW = 128
# Rows of rounded scores are padded to a multiple of this, for vectorised loops.
ROUNDED_LANES = 32
# Rows of this width hold the documents of most queries: FEW and padding, in an odd number of cache
# lines, so that rows do not all compete for the same set of the cache.
USUAL_WIDTH = 136

Ranked = NDArray[np.float64]


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
        # A document without a label keeps its rank, at which it is worth nothing.
        r[VALUE, k] = 0.0 if np.isnan(value) else value
    return has_missing


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
    # What stands behind n is left over from other queries; its counts are never read.
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
    # Rounding keeps the order of scores that it does not make equal, so that documents move within
    # such a group only: insertion is fast.
    for k in range(1, n):
        i = np.uint64(order[k])
        place = k
        while place > 0 and scores[np.uint64(order[place - 1])] < scores[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i


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
    # Only after `fill_swaps`, in which they hold the ranks that others would otherwise move to.
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
def fill_swaps(
    r: Ranked, n: int, form: int, rank_weights: NDArray[np.float64], scale: float
) -> int:
    """Fill the rows for a form of measure and return how many ranks u can change it."""
    if form == CASCADE:
        cascade_swaps(r, n, rank_weights)
    elif form == AVERAGE_PRECISION:
        average_precision_swaps(r, n, rank_weights, scale)
    elif form == RECIPROCAL_RANK:
        return reciprocal_rank_swaps(r, n, rank_weights, False)
    elif form == RECIPROCAL_GAIN:
        return reciprocal_rank_swaps(r, n, rank_weights, True)
    else:  # also for pairs that all count the same, whose loop does not read these rows
        cumulated_swaps(r, n, rank_weights, scale)
    return n


@kernel
def cumulated_swaps(r: Ranked, n: int, rank_weights: NDArray[np.float64], scale: float) -> None:
    """Fill the rows for sums of value x rank weight: DCG, NDCG, precision."""
    for k in range(n):
        r[UPPER, k] = rank_weights[k]
        r[LOWER, k] = rank_weights[k]
        r[SCALE, k] = scale


@kernel
def cascade_swaps(r: Ranked, n: int, rank_weights: NDArray[np.float64]) -> None:
    """Fill the rows for ERR and pFound (Ensemble, Sec. 3).

    With T = 1 - R, pi_k = T_1 ... T_k and w the rank weights, the three terms of the paper add up
    to (R_u - R_v) / T_u times the sum of pi_k (w_k - w_(k+1)) over u <= k < v. Summed from the
    last rank upwards the differences are exact where they are small, and never negative: this is
    the paper's Theorem 1.
    """
    alive = 1.0
    for k in range(n):
        continues = max(1.0 - r[VALUE, k], LEAST_CHANCE)
        alive *= continues
        r[SCALE, k] = 1.0 / continues
        r[LOWER, k] = alive
    below = 0.0
    for k in range(n - 1, -1, -1):
        if k < n - 1:
            below += r[LOWER, k] * (rank_weights[k] - rank_weights[k + 1])
        r[UPPER, k] = below
        r[LOWER, k] = below


@kernel
def average_precision_swaps(
    r: Ranked, n: int, rank_weights: NDArray[np.float64], scale: float
) -> None:
    """Fill the rows for average precision (Optimality, Sec. 4.2).

    The document that moves up to rank u gains (relevant above u + 1) / u, the one that leaves
    rank v loses (relevant down to v) / v, and each relevant one between gains 1 / rank.
    """
    # By the change that a real swap makes: Eq. 9 is exact for misranked pairs only.
    above = 0.0
    between = 0.0
    for k in range(n):
        weight = rank_weights[k] / (k + 1.0)
        r[LOWER, k] = (above + r[VALUE, k]) * weight - between
        between += r[VALUE, k] * weight
        r[UPPER, k] = (above + 1.0) * weight - between
        above += r[VALUE, k]
        r[SCALE, k] = scale


@kernel
def reciprocal_rank_swaps(
    r: Ranked, n: int, rank_weights: NDArray[np.float64], gain_only: bool
) -> int:
    """Fill the rows for the reciprocal rank and return how many ranks u can change it.

    An irrelevant document above the first relevant one changes places with any relevant one; the
    first relevant one goes down to rank v, unless the second then stands above it.
    """
    # There is a relevant document: a query without pairs has the scale 0, and is passed over.
    first = 0
    while r[VALUE, first] == 0.0:
        first += 1
    second = first + 1
    while second < n and r[VALUE, second] == 0.0:
        second += 1
    for k in range(n):
        r[UPPER, k] = rank_weights[k] / (k + 1.0)
        r[SCALE, k] = 1.0
    for k in range(n):
        first_after = first if r[VALUE, k] > 0.0 else min(k, second)
        r[LOWER, k] = r[UPPER, first_after]
    # A swap of two ranks below the first relevant one changes nothing, and one that starts at it
    # can only lower the measure.
    return first if gain_only else first + 1
