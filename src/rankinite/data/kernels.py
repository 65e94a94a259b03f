"""Kernels of features: counts of distinct and missing values, and ranks of values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel

COLUMNS_A_BLOCK = 16  # 16 float32 values fill a cache line
MIXER = 0x2C1B3C6D  # odd, and small enough that no product overflows


@kernel
def count_values(
    first_block: int,
    last_block: int,
    bits: NDArray[np.uint32],
    rows: NDArray[np.int64],
    distinct: NDArray[np.int64],
    missing: NDArray[np.int64],
) -> None:
    """Count the distinct and the missing values of each column of float32 bits.

    With a hash set per column. Columns are copied in blocks, so that each cache line is read once.
    """
    n_rows = len(rows)
    # A power of two, so that a mask finds the slot; at most half full, so that runs stay short.
    n_slots = 16
    while n_slots < 2 * n_rows:
        n_slots *= 2
    n_columns = bits.shape[1]
    for block in range(first_block, last_block):
        first = block * COLUMNS_A_BLOCK
        width = min(COLUMNS_A_BLOCK, n_columns - first)
        values = np.empty((width, n_rows), np.uint32)
        for i in range(n_rows):
            for j in range(width):
                values[j, i] = bits[rows[i], first + j]
        # 64 bits, because every pattern of 32 bits may be a value: -1 marks a free slot.
        slots = np.empty(n_slots, np.int64)
        for j in range(width):
            slots[:] = -1
            n_distinct = 0
            n_missing = 0
            for i in range(n_rows):
                value = np.int64(values[j, i])
                if value & 0x7FFFFFFF > 0x7F800000:  # NaN of either sign
                    n_missing += 1
                    continue
                if value == 0x80000000:
                    value = 0  # -0.0 equals 0.0
                mixed = ((value ^ (value >> 15)) * MIXER) & 0xFFFFFFFF
                slot = (mixed ^ (mixed >> 12)) & (n_slots - 1)
                while slots[slot] != -1 and slots[slot] != value:
                    slot = (slot + 1) & (n_slots - 1)
                if slots[slot] == -1:
                    slots[slot] = value
                    n_distinct += 1
            distinct[first + j] = n_distinct
            missing[first + j] = n_missing


@kernel
def write_ranks(
    X: NDArray[np.float32],
    values: NDArray[np.float32],
    below: NDArray[np.uint32],
    upto: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    out: NDArray[np.float32],
) -> None:
    """Write the ranks of all values of a matrix, row by row; missing values stay missing.

    `CutPoints.ranks` does the same column by column, which is faster where cut points are many.
    Those of feature j are from ``offsets[j]`` to ``offsets[j + 1] - 1``.
    """
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            begin, end = offsets[j], offsets[j + 1]
            # NaN is not equal to itself.
            if begin == end or x != x:
                out[i, j] = np.nan
                continue
            # The first cut point that is not below x. Each step is a choice between two numbers and
            # no branch, which the processor would guess wrong every other time.
            low, n_left = begin, end - begin
            while n_left > 1:
                half = n_left // 2
                low += half if values[np.uint64(low + half - 1)] < x else 0
                n_left -= half
            low += values[np.uint64(low)] < x
            n_values = np.float64(upto[end - 1])
            if low == end:
                n_below = n_values
            else:
                n_below = np.float64(below[low])
                if low > begin:
                    first, last = np.float64(values[low - 1]), np.float64(values[low])
                    n_first = np.float64(upto[low - 1])
                    share = (np.float64(x) - first) / (last - first)
                    n_below = n_first + share * (n_below - n_first)
            out[i, j] = min(n_below / max(1.0, n_values - 1.0), 1.0)
