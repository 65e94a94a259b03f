"""Kernels of position bias: the losses of pairs, summed by the positions of their documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.elementary import exponential, logarithm_plus_1
from rankinite.core.jit import kernel
from rankinite.objectives.kernels.arrays import ObjectiveArrays, Scratch
from rankinite.objectives.kernels.diagnostics import rank_labelled
from rankinite.objectives.kernels.pairwise import swap_change
from rankinite.objectives.kernels.swaps import (
    EVERY_PAIR,
    LOWER,
    SCALE,
    SCORE,
    UPPER,
    VALUE,
    new_scratch,
)


@kernel
def sum_losses_by_position(
    first_block: int,
    last_block: int,
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    arrays: ObjectiveArrays,
    positions: NDArray[np.int64],
    selected: NDArray[np.bool_],
    out: NDArray[np.float64],
) -> None:
    """Write the sums of each block of queries, of the ``selected`` ones unless that is empty.

    ``out`` has one matrix for each block, whose first row sums by the position of the better
    document of a pair and whose second row by that of the worse. ``positions`` count from 0, in the
    order of ``arrays.shuffle``.
    """
    # By block, and added up in their order later: the same bits for any number of threads.
    scratch = new_scratch(len(arrays.rank_weights))
    for block in range(first_block, last_block):
        out[block] = 0.0
        for q in range(blocks[block], blocks[block + 1]):
            if len(selected) == 0 or selected[q]:
                add_query_losses(q, scores, arrays, positions, scratch, out[block])


@kernel
def add_query_losses(
    q: int,
    scores: NDArray[np.float64],
    arrays: ObjectiveArrays,
    positions: NDArray[np.int64],
    scratch: Scratch,
    out: NDArray[np.float64],
) -> None:
    """Add the losses of the pairs of a query: change of the measure x log(1 + exp(s_j - s_i))."""
    r, n, n_top = rank_labelled(q, scores, arrays, scratch)
    start, order, by_measure = arrays.offsets[q], scratch.sorting.order, arrays.form != EVERY_PAIR
    for u in range(n_top):
        for v in range(u + 1, n):
            difference = r[VALUE, u] - r[VALUE, v]
            if difference == 0.0:
                continue
            change = difference * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
            apart = r[SCORE, u] - r[SCORE, v]
            cost = logarithm_plus_1(exponential(-apart))
            better, worse = start + order[u], start + order[v]
            if difference < 0.0:
                better, worse = worse, better
                cost += apart
            weight = arrays.better_weight[better] * arrays.worse_weight[worse]
            loss = abs(swap_change(difference, change, by_measure)) * cost * weight
            out[0, positions[better]] += loss * arrays.query_weight[q]
            out[1, positions[worse]] += loss * arrays.query_weight[q]
