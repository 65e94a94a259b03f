"""Send the rows of a node to its children, in parallel and without changing their order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel, parallel_kernel, prange

# Fewer rows are sent to their children faster by one thread than it takes to wake the others.
ROWS_FOR_THREADS = 8192


@kernel
def sort_out(
    rows: NDArray[np.int32],
    column: NDArray[np.uint8],
    shift: int,
    bound: int,
    lefts: NDArray[np.int32],
    rights: NDArray[np.int32],
) -> int:
    """Write the rows that go left and those that go right; return how many go left.

    A row goes left if its bin plus ``shift``, as a byte, is at most ``bound``: see `shift_of`.
    """
    n_left = 0
    n_right = 0
    for k in range(len(rows)):
        row = rows[k]
        left = ((column[row] + shift) & 255) <= bound
        lefts[n_left] = row
        rights[n_right] = row
        n_left += left
        n_right += not left
    return n_left


@kernel
def shift_of(n_bins: int, missing_left: bool) -> int:
    """Return what to add to a bin so that one comparison also tells where missing values go.

    Missing values have the bin behind the last one. To send them left, all bins are shifted so
    far that, as a byte, this one becomes 0.
    """
    return 256 - n_bins if missing_left else 0


@kernel
def copy_rows(source: NDArray[np.int32], target: NDArray[np.int32]) -> None:
    """Copy as many rows as the source has."""
    for k in range(len(source)):
        target[k] = source[k]


@kernel
def sum_of(numbers: NDArray[np.int64], n: int) -> int:
    """Return the sum of the first n numbers."""
    total = 0
    for k in range(n):
        total += numbers[k]
    return total


@parallel_kernel
def part_rows(
    rows: NDArray[np.int32],
    column: NDArray[np.uint8],
    shift: int,
    bound: int,
    lefts: NDArray[np.int32],
    rights: NDArray[np.int32],
    n_parts: int,
) -> int:
    """Bring the rows that go left before those that go right; return how many go left."""
    n = len(rows)
    if n < ROWS_FOR_THREADS:
        n_left = sort_out(rows, column, shift, bound, lefts, rights)
        copy_rows(lefts[:n_left], rows)
        copy_rows(rights[: n - n_left], rows[n_left:])
        return n_left
    n_left_of = np.empty(n_parts, np.int64)
    for part in prange(n_parts):
        first, last = n * part // n_parts, n * (part + 1) // n_parts
        n_left_of[part] = sort_out(
            rows[first:last], column, shift, bound, lefts[first:last], rights[first:last]
        )
    for part in prange(n_parts):
        first, last = n * part // n_parts, n * (part + 1) // n_parts
        here, before, total = n_left_of[part], sum_of(n_left_of, part), sum_of(n_left_of, n_parts)
        copy_rows(lefts[first : first + here], rows[before:])
        copy_rows(rights[first : last - here], rows[total + first - before :])
    return sum_of(n_left_of, n_parts)
