"""The kernels that count pairs of documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import kernel, parallel_kernel, prange
from rankinite.objectives.kernels import fits_usual, keep_labelled, new_scratch, rank_documents
from rankinite.objectives.plan import Plan, Scratch
from rankinite.objectives.swaps import EVERY_PAIR, LOWER, UPPER, VALUE, fill_swaps


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
