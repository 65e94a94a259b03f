"""Kernels of diagnostics: pairs with a gradient, shares of grades in gradients, rankings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.elementary import exponential
from rankinite.core.jit import kernel
from rankinite.objectives.kernels.arrays import SIGMOID_COST, ObjectiveArrays, Scratch
from rankinite.objectives.kernels.pairwise import (
    BY_DISTANCE,
    least_distance,
    pair_gradient,
    sigmoid_pair_gradient,
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
    fits_usual,
    keep_labelled,
    new_scratch,
    rank_documents,
)
from rankinite.objectives.kernels.weighted import pair_weight


@kernel
def rank_labelled(
    q: int, scores: NDArray[np.float64], arrays: ObjectiveArrays, scratch: Scratch
) -> tuple[Ranked, int, int]:
    """Rank the documents of a query that have a label; return rows, their number, and the top's.

    A query without pairs or without weight has none: nothing is learned from it.
    """
    offsets, values, scale = arrays.offsets, arrays.values, arrays.scales[q]
    usual, usual_bits, wide, wide_bits, sorting, _ = scratch
    start, n = offsets[q], offsets[q + 1] - offsets[q]
    r, bits = (usual, usual_bits) if fits_usual(n) else (wide, wide_bits)
    if scale == 0.0 or arrays.query_weight[q] == 0.0:
        return r, 0, 0
    has_missing = rank_documents(r, bits, sorting, n, start, scores, values, arrays.shuffle)
    n_top = min(fill_swaps(r, n, arrays.form, arrays.rank_weights, scale), arrays.n_top)
    if has_missing:
        n, n_top = keep_labelled(r, sorting.order, n, n_top, values, start)
    return r, n, min(n_top, n)


@kernel
def query_pairs(
    q: int, scores: NDArray[np.float64], arrays: ObjectiveArrays, scratch: Scratch
) -> int:
    """Return how many pairs of a query's documents have a gradient."""
    r, n, n_top = rank_labelled(q, scores, arrays, scratch)
    every = arrays.form == EVERY_PAIR
    count = 0
    for u in range(n_top):
        for v in range(u + 1, n):
            differ = r[VALUE, u] != r[VALUE, v]
            count += differ and (every or r[UPPER, u] != r[LOWER, v])
    return count


@kernel
def count_pairs(
    first_block: int,
    last_block: int,
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    arrays: ObjectiveArrays,
    out: NDArray[np.int64],
) -> None:
    """Write how many pairs have a gradient in each block of queries."""
    scratch = new_scratch(len(arrays.rank_weights))
    for block in range(first_block, last_block):
        out[block] = 0
        for q in range(blocks[block], blocks[block + 1]):
            out[block] += query_pairs(q, scores, arrays, scratch)


@kernel
def single_pair_gradient(
    r: Ranked, u: int, v: int, arrays: ObjectiveArrays, least: float, slope: float
) -> float:
    """Return what the pair of ranks u < v adds to the gradient of its upper document.

    It computes the same as the kernels of all pairs, which are faster but add up all pairs at
    once.
    """
    difference = r[VALUE, u] - r[VALUE, v]
    apart = r[SCORE, u] - r[SCORE, v]
    change = difference * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
    drop = swap_change(difference, change, arrays.form != EVERY_PAIR)
    distance, t = least + slope * apart, exponential(-apart)
    if arrays.kind == SIGMOID_COST:
        m = exponential(arrays.margin)
        return float(sigmoid_pair_gradient(difference, drop, distance, t, m))
    gradient, _, _ = pair_gradient(difference, drop, distance, t)
    return float(gradient)


@kernel
def add_query_shares(
    q: int,
    scores: NDArray[np.float64],
    grades: NDArray[np.int64],
    highly: int,
    arrays: ObjectiveArrays,
    scratch: Scratch,
    sums: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Add the shares of each grade in the gradients of a query's highly relevant documents.

    ``sums`` has a row for each rank, with a column for each grade and one for the sizes of all.
    """
    r, n, n_top = rank_labelled(q, scores, arrays, scratch)
    if n == 0:
        return
    start, order = arrays.offsets[q], scratch.sorting.order
    least, slope = least_distance(r, 0, n - 1, arrays.normalise == BY_DISTANCE)
    n_grades = len(out) - 1
    sums[:n] = 0.0
    for u in range(n_top):
        upper = grades[start + order[u]]
        for v in range(u + 1, n):
            lower = grades[start + order[v]]
            # Shares are those of highly relevant documents; a pair without one adds to none.
            if upper < highly and lower < highly:
                continue
            gradient = single_pair_gradient(r, u, v, arrays, least, slope)
            gradient *= pair_weight(arrays, start, order, u, v, r[VALUE, u] - r[VALUE, v])
            sums[u, lower] += gradient
            sums[v, upper] -= gradient
            sums[u, n_grades] += abs(gradient)
            sums[v, n_grades] += abs(gradient)
    for k in range(n):
        if grades[start + order[k]] >= highly and sums[k, n_grades] > 0.0:
            for grade in range(n_grades):
                out[grade] += sums[k, grade] / sums[k, n_grades]
            out[n_grades] += 1.0


@kernel
def add_grade_shares(
    first_block: int,
    last_block: int,
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    grades: NDArray[np.int64],
    highly: int,
    arrays: ObjectiveArrays,
    out: NDArray[np.float64],
) -> None:
    """Add up the shares of each grade in each block of queries, and how many documents have any.

    ``grades`` are the numbers of documents' grades in the order of ``arrays.shuffle``, -1 for
    no label; from ``highly`` on they are highly relevant. ``out`` has a row for each block, with a
    column for each grade and one for the number of documents.
    """
    scratch = new_scratch(len(arrays.rank_weights))
    sums = np.empty((len(arrays.rank_weights), out.shape[1]))
    for block in range(first_block, last_block):
        out[block] = 0.0
        for q in range(blocks[block], blocks[block + 1]):
            add_query_shares(q, scores, grades, highly, arrays, scratch, sums, out[block])


@kernel
def rank_all(
    first_block: int,
    last_block: int,
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    arrays: ObjectiveArrays,
    out: NDArray[np.int64],
) -> None:
    """Write the documents of every query from the first rank to the last."""
    offsets, shuffle = arrays.offsets, arrays.shuffle
    scratch = new_scratch(len(arrays.rank_weights))
    usual, usual_bits, wide, wide_bits, sorting, _ = scratch
    for block in range(first_block, last_block):
        for q in range(blocks[block], blocks[block + 1]):
            start, n = offsets[q], offsets[q + 1] - offsets[q]
            r, bits = (usual, usual_bits) if fits_usual(n) else (wide, wide_bits)
            rank_documents(r, bits, sorting, n, start, scores, arrays.values, shuffle)
            for k in range(n):
                out[start + k] = shuffle[start + sorting.order[k]]
