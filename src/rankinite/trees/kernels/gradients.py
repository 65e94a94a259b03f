"""Gradients of documents as integers of rows, and as sums of leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import kernel, parallel_kernel, prange

# Sums go over fixed blocks, one behind the other, so that they do not depend on the threads.
SUM_BLOCKS = 64


@parallel_kernel
def pack(
    gradients: NDArray[np.float64],
    scale: float,
    count_bits: int,
    chosen: NDArray[np.bool_],
    out: NDArray[np.int64],
) -> None:
    """Write gradient and count of every document as one integer; 0 for one not chosen."""
    every = len(chosen) == 0
    for i in prange(len(gradients)):
        amount = (np.int64(np.rint(gradients[i] * scale)) << count_bits) + 1
        out[i] = amount if every or chosen[i] else 0


@parallel_kernel
def weigh(
    weights: NDArray[np.float64], scale: float, chosen: NDArray[np.bool_], out: NDArray[np.int64]
) -> None:
    """Write the weight of every document as an integer; 0 for one not chosen."""
    every = len(chosen) == 0
    for i in prange(len(weights)):
        amount = np.int64(np.rint(weights[i] * scale))
        out[i] = amount if every or chosen[i] else 0


@kernel
def add_to_rows(
    amounts: NDArray[np.int64], rows: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """Add the amounts of documents that share a row."""
    out[:] = 0
    for i in range(len(amounts)):
        out[rows[i]] += amounts[i]


@kernel
def rows_with(amounts: NDArray[np.int64], count_bits: int, out: NDArray[np.int32]) -> int:
    """Write the rows that hold a document, and return how many there are."""
    ones = (np.int64(1) << count_bits) - 1
    n = 0
    for row in range(len(amounts)):
        out[n] = row
        n += (amounts[row] & ones) > 0
    return n


@parallel_kernel
def sum_leaves(
    leaves: NDArray[Any],
    rows: NDArray[np.int64],
    gradients: NDArray[np.float64],
    weights: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    n_leaves: int,
) -> NDArray[np.float64]:
    """Return the sums of gradient, weight and count of the documents of every leaf.

    Documents are added in their order, not in that of the rows: data given by a rows index must
    equal the same data copied out.
    """
    n_docs = len(gradients)
    every = len(chosen) == 0
    direct = len(rows) == 0
    blocks = np.zeros((SUM_BLOCKS, n_leaves, 3))
    for block in prange(SUM_BLOCKS):
        for i in range(n_docs * block // SUM_BLOCKS, n_docs * (block + 1) // SUM_BLOCKS):
            if every or chosen[i]:
                leaf = leaves[i] if direct else leaves[rows[i]]
                blocks[block, leaf, 0] += gradients[i]
                blocks[block, leaf, 1] += weights[i]
                blocks[block, leaf, 2] += 1.0
    sums = np.zeros((n_leaves, 3))
    for block in range(SUM_BLOCKS):
        for leaf in range(n_leaves):
            for k in range(3):
                sums[leaf, k] += blocks[block, leaf, k]
    return sums
