"""Gradients of documents as integers of rows, and as sums of leaves."""

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

# Sums go over fixed blocks, one behind the other, so that they do not depend on the threads.
SUM_BLOCKS = 64


@summing_kernel
def sum_between(
    numbers: NDArray[np.float64], chosen: NDArray[np.bool_], first: int, last: int
) -> float:
    """Return the sum of the sizes of the chosen numbers from first to last - 1."""
    total = 0.0
    if len(chosen) == 0:
        for i in range(first, last):
            total += abs(numbers[i])
    else:
        for i in range(first, last):
            size = abs(numbers[i])
            total += size if chosen[i] else 0.0
    return total


@parallel_kernel
def sum_of_sizes(numbers: NDArray[np.float64], chosen: NDArray[np.bool_]) -> float:
    """Return the sum of the sizes of the chosen documents' numbers; of all if empty."""
    n_docs = len(numbers)
    sums = np.empty(SUM_BLOCKS)
    for block in prange(SUM_BLOCKS):
        first, last = n_docs * block // SUM_BLOCKS, n_docs * (block + 1) // SUM_BLOCKS
        sums[block] = sum_between(numbers, chosen, first, last)
    total = 0.0
    for block in range(SUM_BLOCKS):
        total += sums[block]
    return total


@inlined_kernel
def amount_of(number: float, scale: float, count_bits: int) -> int:
    """Return a number as an integer; if there is room for a count, with a count of 1 below it."""
    amount = np.int64(np.rint(number * scale))
    return (amount << count_bits) + 1 if count_bits > 0 else amount


@parallel_kernel
def pack(
    numbers: NDArray[np.float64],
    scale: float,
    count_bits: int,
    chosen: NDArray[np.bool_],
    out: NDArray[np.int64],
) -> None:
    """Write the amount of every document; 0 for one not chosen."""
    every = len(chosen) == 0
    for i in prange(len(numbers)):
        amount = amount_of(numbers[i], scale, count_bits)
        out[i] = amount if every or chosen[i] else 0


@parallel_kernel
def pack_rows(
    numbers: NDArray[np.float64],
    scale: float,
    count_bits: int,
    chosen: NDArray[np.bool_],
    rows: NDArray[np.int32],
    parts: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Write the sum of the amounts of each row's documents; ``parts`` is scratch of the threads."""
    n_docs, n_parts = len(numbers), len(parts)
    every = len(chosen) == 0
    for part in prange(n_parts):
        own = parts[part]
        own[:] = 0
        for i in range(n_docs * part // n_parts, n_docs * (part + 1) // n_parts):
            if every or chosen[i]:
                own[rows[i]] += amount_of(numbers[i], scale, count_bits)
    for row in prange(len(out)):
        total = np.int64(0)
        for part in range(n_parts):
            total += parts[part, row]
        out[row] = total


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
    rows: NDArray[np.int32],
    gradients: NDArray[np.float64],
    weights: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    n_leaves: int,
) -> NDArray[np.float64]:
    """Return the sums of gradient and weight of the chosen documents of every leaf.

    Documents are added in their order, not in that of the rows: data given by a rows index must
    equal the same data copied out.
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
                blocks[block, 1, leaf] += weights[i]
    sums = np.zeros((2, n_leaves))
    for block in range(SUM_BLOCKS):
        for k in range(2):
            for leaf in range(n_leaves):
                sums[k, leaf] += blocks[block, k, leaf]
    return sums
