"""Cut points from values, and bins from cut points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import kernel, parallel_kernel, prange
from rankinite.trees.kernels.histogram import COLUMNS_A_WORD

MOST_CUTS = 255
BLOCK_ROWS = 64


@kernel
def between(low: np.float32, high: np.float32) -> np.float32:
    """Return a cut point from low (included) to high (not included), in the middle if possible."""
    middle = np.float32((np.float64(low) + np.float64(high)) / 2.0)
    return middle if middle < high else low


@kernel
def find_cuts(values: NDArray[np.float32], most_bins: int, cuts: NDArray[np.float32]) -> int:
    """Write the cut points between sorted values, and return how many there are.

    With at most ``most_bins`` distinct values every one gets a bin. Otherwise bins are filled one
    after the other until they hold a fair share of what is left; a value with a share of its own
    or more is not mixed with those before it.
    """
    n = len(values)
    n_distinct = 1 if n else 0
    for i in range(1, n):
        n_distinct += values[i] != values[i - 1]
    if n_distinct <= most_bins:
        n_cuts = 0
        for i in range(1, n):
            if values[i] != values[i - 1]:
                cuts[n_cuts] = between(values[i - 1], values[i])
                n_cuts += 1
        return n_cuts
    n_cuts = 0
    filled = 0
    left = n
    start = 0
    while start < n:
        end = start + 1
        while end < n and values[end] == values[start]:
            end += 1
        count = end - start
        bins_left = most_bins - n_cuts
        fair = left / bins_left
        if filled > 0 and bins_left > 1 and (filled >= fair or filled + count / 2.0 > fair):
            cuts[n_cuts] = between(values[start - 1], values[start])
            n_cuts += 1
            left -= filled
            filled = 0
        filled += count
        start = end
    return n_cuts


@kernel
def find_bin(value: np.float32, cuts: NDArray[np.float32], first_step: int) -> int:
    """Return how many cut points are below the value; the cuts are padded with infinity."""
    place = 0
    step = first_step
    while step > 0:
        place += step if cuts[place + step - 1] < value else 0
        step >>= 1
    return place


@parallel_kernel
def encode(
    X: NDArray[np.float32],
    rows: NDArray[np.int64],
    cuts: NDArray[np.float32],
    n_bins: NDArray[np.int64],
    bins: NDArray[np.uint8],
    columns: NDArray[np.uint8],
) -> None:
    """Write the bins of some rows, row by row and column by column.

    ``bins`` may have no rows if only columns are wanted; columns beyond the features of X are
    left alone. Missing values have the bin behind the last one.
    """
    n_rows = columns.shape[1]
    n_features = X.shape[1]
    n_blocks = (n_rows + BLOCK_ROWS - 1) // BLOCK_ROWS
    direct = len(rows) == 0
    for block in prange(n_blocks):
        start = block * BLOCK_ROWS
        end = min(start + BLOCK_ROWS, n_rows)
        for word in range(0, n_features, COLUMNS_A_WORD):
            for column in range(word, min(word + COLUMNS_A_WORD, n_features)):
                own = cuts[column]
                step = 1
                while step < n_bins[column]:
                    step *= 2
                step //= 2
                for row in range(start, end):
                    value = X[row if direct else rows[row], column]
                    code = find_bin(value, own, step)
                    if np.isnan(value):
                        code = n_bins[column]
                    columns[column, row] = code
            if len(bins) > 0:
                for row in range(start, end):
                    for column in range(word, min(word + COLUMNS_A_WORD, n_features)):
                        bins[row, column] = columns[column, row]
