"""Partition the rows of a node between its children, in parallel and without changing their order.

A stable order keeps the rows of each leaf ascending, so that histograms read memory forwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel, parallel_kernel, prange

# Fewer rows are partitioned by one thread before the others would have woken up.
PARALLEL_ROWS = 8192


@kernel
def missing_shift(n_bins: int, missing_left: bool) -> int:
    """Return what to add to a bin so that one comparison also tells where missing values go.

    Missing values have the bin behind the last one. To send them left, all bins are shifted so
    far that, as a byte, this one becomes 0.
    """
    return 256 - n_bins if missing_left else 0


@kernel
def partition_serially(
    rows: NDArray[np.int32],
    column: NDArray[np.uint8],
    shift: int,
    bound: int,
    left_rows: NDArray[np.int32],
    right_rows: NDArray[np.int32],
) -> int:
    """Write the rows that go left and those that go right; return how many go left.

    A row goes left if its bin plus ``shift``, as a byte, is at most ``bound``: see
    `missing_shift`. Each row is written to both sides and only one side advances, because a
    branch that depends on the data would be mispredicted half of the time.
    """
    n_left = 0
    n_right = 0
    for k in range(len(rows)):
        row = rows[k]
        goes_left = ((column[row] + shift) & 255) <= bound
        left_rows[n_left] = row
        right_rows[n_right] = row
        n_left += goes_left
        n_right += not goes_left
    return n_left


@kernel
def copy_rows(source: NDArray[np.int32], target: NDArray[np.int32]) -> None:
    """Copy as many rows as the source has."""
    for k in range(len(source)):
        target[k] = source[k]


@kernel
def sum_first(numbers: NDArray[np.int64], n: int) -> int:
    """Return the sum of the first n numbers."""
    total = 0
    for k in range(n):
        total += numbers[k]
    return total


@parallel_kernel
def partition_rows(
    rows: NDArray[np.int32],
    column: NDArray[np.uint8],
    shift: int,
    bound: int,
    left_rows: NDArray[np.int32],
    right_rows: NDArray[np.int32],
    n_threads: int,
) -> int:
    """Bring the rows that go left before those that go right; return how many go left."""
    n = len(rows)
    if n < PARALLEL_ROWS:
        n_left = partition_serially(rows, column, shift, bound, left_rows, right_rows)
        copy_rows(left_rows[:n_left], rows)
        copy_rows(right_rows[: n - n_left], rows[n_left:])
        return n_left
    n_lefts = np.empty(n_threads, np.int64)
    for thread in prange(n_threads):
        first, last = n * thread // n_threads, n * (thread + 1) // n_threads
        n_lefts[thread] = partition_serially(
            rows[first:last], column, shift, bound, left_rows[first:last], right_rows[first:last]
        )
    # Only when all threads are done is it known where each one's rows belong.
    for thread in prange(n_threads):
        first, last = n * thread // n_threads, n * (thread + 1) // n_threads
        n_left, before = n_lefts[thread], sum_first(n_lefts, thread)
        total = sum_first(n_lefts, n_threads)
        copy_rows(left_rows[first : first + n_left], rows[before:])
        copy_rows(right_rows[first : last - n_left], rows[total + first - before :])
    return sum_first(n_lefts, n_threads)
