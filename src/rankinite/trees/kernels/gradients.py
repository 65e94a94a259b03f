"""From gradients of documents to packed integers of rows, and to sums of leaves.

Integers are exact: histograms may be added and subtracted in any order. A row's value is the
sum over its documents, since documents may share a row of the feature matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import (
    inlined_kernel,
    kernel,
    parallel_kernel,
    prange,
    summing_kernel,
)

# Floats are summed over a fixed number of blocks, then block by block, so that sums do not depend
# on the number of threads.
SUM_BLOCKS = 64


@summing_kernel
def absolute_sum_between(
    values: NDArray[np.float64], chosen: NDArray[np.bool_], first: int, last: int
) -> float:
    """Return the sum of the absolute values of the chosen documents from first to last - 1."""
    total = 0.0
    if len(chosen) == 0:
        for i in range(first, last):
            total += abs(values[i])
    else:
        for i in range(first, last):
            size = abs(values[i])
            total += size if chosen[i] else 0.0
    return total


@parallel_kernel
def absolute_sum(values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> float:
    """Return the sum of the absolute values of the chosen documents; of all if empty."""
    n_docs = len(values)
    sums = np.empty(SUM_BLOCKS)
    for block in prange(SUM_BLOCKS):
        first, last = n_docs * block // SUM_BLOCKS, n_docs * (block + 1) // SUM_BLOCKS
        sums[block] = absolute_sum_between(values, chosen, first, last)
    total = 0.0
    for block in range(SUM_BLOCKS):
        total += sums[block]
    return total


@inlined_kernel
def quantise(value: float, scale: float, count_bits: int) -> int:
    """Return a scaled value as an integer; with bits for a count, packed with a count of 1."""
    integer = np.int64(np.rint(value * scale))
    return (integer << count_bits) + 1 if count_bits > 0 else integer


@parallel_kernel
def pack_docs(
    values: NDArray[np.float64],
    scale: float,
    count_bits: int,
    chosen: NDArray[np.bool_],
    out: NDArray[np.int64],
) -> None:
    """Write the packed value of each document; 0 for one not chosen."""
    every = len(chosen) == 0
    for i in prange(len(values)):
        packed = quantise(values[i], scale, count_bits)
        out[i] = packed if every or chosen[i] else 0


@parallel_kernel
def pack_rows(
    values: NDArray[np.float64],
    scale: float,
    count_bits: int,
    chosen: NDArray[np.bool_],
    rows: NDArray[np.int32],
    thread_sums: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Write the sum of the packed values of each row's documents.

    ``thread_sums`` is scratch of one value per thread and row: several threads may have documents
    of the same row.
    """
    n_docs, n_threads = len(values), len(thread_sums)
    every = len(chosen) == 0
    for thread in prange(n_threads):
        sums = thread_sums[thread]
        sums[:] = 0
        for i in range(n_docs * thread // n_threads, n_docs * (thread + 1) // n_threads):
            if every or chosen[i]:
                sums[rows[i]] += quantise(values[i], scale, count_bits)
    for row in prange(len(out)):
        total = np.int64(0)
        for thread in range(n_threads):
            total += thread_sums[thread, row]
        out[row] = total


@kernel
def rows_with_docs(gradients: NDArray[np.int64], count_bits: int, out: NDArray[np.int32]) -> int:
    """Write the rows that have a document, by their packed gradients; return how many there are.

    Each row is written and the position advances only if it counts, so ``out`` is longer than the
    rows by one.
    """
    count_mask = (np.int64(1) << count_bits) - 1
    n = 0
    for row in range(len(gradients)):
        out[n] = row
        n += (gradients[row] & count_mask) > 0
    return n


@parallel_kernel
def sum_leaves(
    leaves: NDArray[Any],
    rows: NDArray[np.int32],
    gradients: NDArray[np.float64],
    hessians: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    n_leaves: int,
) -> NDArray[np.float64]:
    """Return the sums of gradients and hessians of the chosen documents of each leaf.

    Documents are added in their order, not in that of the rows: data given by an index of rows
    must equal the same data copied out.
    """
    n_docs = len(gradients)
    every = len(chosen) == 0
    direct = len(rows) == 0
    blocks = np.zeros((SUM_BLOCKS, 2, n_leaves))
    for block in prange(SUM_BLOCKS):
        for i in range(n_docs * block // SUM_BLOCKS, n_docs * (block + 1) // SUM_BLOCKS):
            if every or chosen[i]:
                leaf = leaves[i] if direct else leaves[rows[i]]
                blocks[block, 0, leaf] += gradients[i]
                blocks[block, 1, leaf] += hessians[i]
    sums = np.zeros((2, n_leaves))
    for block in range(SUM_BLOCKS):
        for k in range(2):
            for leaf in range(n_leaves):
                sums[k, leaf] += blocks[block, k, leaf]
    return sums
