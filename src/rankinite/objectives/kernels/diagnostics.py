"""The kernels that count pairs of documents."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel, parallel_kernel, prange
from rankinite.objectives.kernels.arrays import SIGMOID_COST, Plan, Scratch
from rankinite.objectives.kernels.pair_losses import least_distance, sigmoid_push
from rankinite.objectives.kernels.pairwise import (
    BY_DISTANCE,
    fits_usual,
    keep_labelled,
    new_scratch,
    push,
    rank_documents,
    swap_change,
)
from rankinite.objectives.kernels.swaps import (
    EVERY_PAIR,
    LOWER,
    SCALE,
    SCORE,
    UPPER,
    VALUE,
    Ranked,
    fill_swaps,
)


@kernel
def query_pairs(q: int, scores: NDArray[np.float64], plan: Plan, scratch: Scratch) -> int:
    """Return how many pairs of a query's documents push each other."""
    form, scale, offsets = plan.form, plan.scales[q], plan.offsets
    values, shuffle = plan.values, plan.shuffle
    usual, usual_bits, wide, wide_bits, order, keys, rounded, above, _ = scratch
    count = 0
    if scale == 0.0 or plan.query_weight[q] == 0.0:
        return count
    start, n = offsets[q], offsets[q + 1] - offsets[q]
    r, bits = (usual, usual_bits) if fits_usual(n) else (wide, wide_bits)
    gaps = rank_documents(r, bits, order, keys, rounded, above, n, start, scores, values, shuffle)
    reach = min(fill_swaps(r, n, form, plan.rank_weights, scale), plan.reach)
    labelled = n
    if gaps:
        labelled, reach = keep_labelled(r, order, n, reach, values, start)
    every = form == EVERY_PAIR
    for u in range(min(reach, labelled)):
        for v in range(u + 1, labelled):
            differ = r[VALUE, u] != r[VALUE, v]
            count += differ and (every or r[UPPER, u] != r[LOWER, v])
    return count


@parallel_kernel
def count_pairs(
    scores: NDArray[np.float64], blocks: NDArray[np.int64], plan: Plan, out: NDArray[np.int64]
) -> None:
    """Write how many pairs push each other in each block of queries."""
    for block in prange(len(blocks) - 1):
        scratch = new_scratch(len(plan.rank_weights))
        out[block] = 0
        for q in range(blocks[block], blocks[block + 1]):
            out[block] += query_pairs(q, scores, plan, scratch)


@kernel
def pair_lambda(r: Ranked, u: int, v: int, plan: Plan, least: float, slope: float) -> float:
    """Return what the pair of ranks u < v adds to the lambda of its upper document.

    As in the kernels of all pairs, which hold the same in a form that is faster and cannot tell
    one pair from another.
    """
    more = r[VALUE, u] - r[VALUE, v]
    apart = r[SCORE, u] - r[SCORE, v]
    change = more * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
    fall = swap_change(more, change, plan.form != EVERY_PAIR)
    distance, t = least + slope * apart, math.exp(-apart)
    if plan.kind == SIGMOID_COST:
        return sigmoid_push(more, fall, distance, t, math.exp(plan.margin))
    lam, _, _ = push(more, fall, distance, t)
    return lam


@kernel
def add_shares_of_query(
    q: int,
    scores: NDArray[np.float64],
    grades: NDArray[np.int64],
    highly: int,
    plan: Plan,
    scratch: Scratch,
    sums: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Add the shares of each grade in the lambdas of a query's highly relevant documents.

    ``sums`` has a row for each rank, with a place for each grade and one for the sizes of all.
    """
    scale, offsets = plan.scales[q], plan.offsets
    usual, usual_bits, wide, wide_bits, order, keys, rounded, above, _ = scratch
    if scale == 0.0 or plan.query_weight[q] == 0.0:
        return
    start, n = offsets[q], offsets[q + 1] - offsets[q]
    r, bits = (usual, usual_bits) if fits_usual(n) else (wide, wide_bits)
    gaps = rank_documents(
        r, bits, order, keys, rounded, above, n, start, scores, plan.values, plan.shuffle
    )
    reach = min(fill_swaps(r, n, plan.form, plan.rank_weights, scale), plan.reach)
    if gaps:
        n, reach = keep_labelled(r, order, n, reach, plan.values, start)
    least, slope = least_distance(r, 0, n - 1, plan.normalise == BY_DISTANCE)
    n_grades = len(out) - 1
    sums[:n] = 0.0
    for u in range(min(reach, n)):
        upper = grades[start + order[u]]
        for v in range(u + 1, n):
            lower = grades[start + order[v]]
            if upper < highly and lower < highly:
                continue
            lam = pair_lambda(r, u, v, plan, least, slope)
            sums[u, lower] += lam
            sums[v, upper] -= lam
            sums[u, n_grades] += abs(lam)
            sums[v, n_grades] += abs(lam)
    for k in range(n):
        if grades[start + order[k]] >= highly and sums[k, n_grades] > 0.0:
            for grade in range(n_grades):
                out[grade] += sums[k, grade] / sums[k, n_grades]
            out[n_grades] += 1.0


@parallel_kernel
def add_grade_shares(
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    grades: NDArray[np.int64],
    highly: int,
    plan: Plan,
    out: NDArray[np.float64],
) -> None:
    """Add up the shares of each grade in each block of queries, and how many documents have any.

    ``grades`` are the numbers of documents' grades in the order of the plan's ``shuffle``, -1 for
    no label; from ``highly`` on they are highly relevant. ``out`` has a row for each block, with a
    place for each grade and one for the number of documents.
    """
    for block in prange(len(blocks) - 1):
        scratch = new_scratch(len(plan.rank_weights))
        sums = np.empty((len(plan.rank_weights), out.shape[1]))
        out[block] = 0.0
        for q in range(blocks[block], blocks[block + 1]):
            add_shares_of_query(q, scores, grades, highly, plan, scratch, sums, out[block])


@parallel_kernel
def rank_all(
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    plan: Plan,
    out: NDArray[np.int64],
) -> None:
    """Write the documents of every query from the first rank to the last."""
    offsets, shuffle = plan.offsets, plan.shuffle
    for block in prange(len(blocks) - 1):
        scratch = new_scratch(len(plan.rank_weights))
        usual, usual_bits, wide, wide_bits, order, keys, rounded, above, _ = scratch
        for q in range(blocks[block], blocks[block + 1]):
            start, n = offsets[q], offsets[q + 1] - offsets[q]
            r, bits = (usual, usual_bits) if fits_usual(n) else (wide, wide_bits)
            rank_documents(
                r, bits, order, keys, rounded, above, n, start, scores, plan.values, shuffle
            )
            for k in range(n):
                out[start + k] = shuffle[start + order[k]]
