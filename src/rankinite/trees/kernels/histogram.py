"""Count gradients by bin: integer histograms, one add a document and column.

A document's gradient, scaled to an integer, stands in the high bits of one int64 and the number
of documents in the low ones, so that one add counts both, and sums do not depend on their order.

Eight columns make a word. Rows are gathered a tile at a time and transposed, so that the slots of
one word's columns (16 KB) stay in the first-level cache while the whole tile is added to them:
four times as fast as going through whole rows. A column without slots is not counted; the others
of its word are, four, two or one at a time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.intrinsics import load_word, prefetch
from rankinite.core.jit import kernel

COLUMNS_A_WORD = 8
TILE_ROWS = 512
# A distance between words that is no power of two spreads them over the sets of the cache.
TILE_STRIDE = 520
LINE_BYTES = 64
ROWS_AHEAD = 8
BYTE = np.uint64(255)


@kernel
def add_eight(
    words: NDArray[np.uint64],
    amounts: NDArray[np.int64],
    first: NDArray[np.uint64],
    histogram: NDArray[np.int64],
) -> None:
    """Add amounts to the slots of all columns of a word, which begin at ``first``."""
    s0, s1, s2, s3 = first[0], first[1], first[2], first[3]
    s4, s5, s6, s7 = first[4], first[5], first[6], first[7]
    for k in range(len(words)):
        word = words[k]
        amount = amounts[k]
        histogram[s0 + (word & BYTE)] += amount
        histogram[s1 + ((word >> np.uint64(8)) & BYTE)] += amount
        histogram[s2 + ((word >> np.uint64(16)) & BYTE)] += amount
        histogram[s3 + ((word >> np.uint64(24)) & BYTE)] += amount
        histogram[s4 + ((word >> np.uint64(32)) & BYTE)] += amount
        histogram[s5 + ((word >> np.uint64(40)) & BYTE)] += amount
        histogram[s6 + ((word >> np.uint64(48)) & BYTE)] += amount
        histogram[s7 + (word >> np.uint64(56))] += amount


@kernel
def add_some(
    words: NDArray[np.uint64],
    amounts: NDArray[np.int64],
    first: NDArray[np.uint64],
    shifts: NDArray[np.uint64],
    n: int,
    histogram: NDArray[np.int64],
) -> None:
    """Add amounts to the slots of n columns of a word, which stand at ``shifts`` in it."""
    done = 0
    while n - done >= 4:
        s0, s1, s2, s3 = first[done], first[done + 1], first[done + 2], first[done + 3]
        b0, b1, b2, b3 = shifts[done], shifts[done + 1], shifts[done + 2], shifts[done + 3]
        for k in range(len(words)):
            word = words[k]
            amount = amounts[k]
            histogram[s0 + ((word >> b0) & BYTE)] += amount
            histogram[s1 + ((word >> b1) & BYTE)] += amount
            histogram[s2 + ((word >> b2) & BYTE)] += amount
            histogram[s3 + ((word >> b3) & BYTE)] += amount
        done += 4
    if n - done >= 2:
        s0, s1, b0, b1 = first[done], first[done + 1], shifts[done], shifts[done + 1]
        for k in range(len(words)):
            word = words[k]
            amount = amounts[k]
            histogram[s0 + ((word >> b0) & BYTE)] += amount
            histogram[s1 + ((word >> b1) & BYTE)] += amount
        done += 2
    if done < n:
        s0, b0 = first[done], shifts[done]
        for k in range(len(words)):
            histogram[s0 + ((words[k] >> b0) & BYTE)] += amounts[k]


@kernel
def add_rows(
    bins: NDArray[np.uint8],
    row_bytes: int,
    first_byte: int,
    last_byte: int,
    rows: NDArray[np.int32],
    amounts: NDArray[np.int64],
    slots: NDArray[np.int64],
    histogram: NDArray[np.int64],
    tile: NDArray[np.uint64],
    tile_amounts: NDArray[np.int64],
) -> None:
    """Add the amounts of some rows to the histograms of the columns from first to last byte.

    ``bins`` holds rows of ``row_bytes`` columns one behind the other; the slots of the column in
    byte c begin at ``slots[c]`` and end at ``slots[c + 1]``. It is not counted if it has none.
    """
    n = len(rows)
    first = np.empty(COLUMNS_A_WORD, np.uint64)
    shifts = np.empty(COLUMNS_A_WORD, np.uint64)
    for start in range(0, n, TILE_ROWS):
        size = min(TILE_ROWS, n - start)
        for k in range(size):
            ahead = min(start + k + ROWS_AHEAD, n - 1)
            place = np.int64(rows[ahead]) * row_bytes
            for byte in range(first_byte, last_byte, LINE_BYTES):
                prefetch(bins, place + byte)
            prefetch(bins, place + last_byte - 1)
            row = np.int64(rows[start + k])
            tile_amounts[k] = amounts[row]
            place = row * row_bytes
            target = k
            for byte in range(first_byte, last_byte, COLUMNS_A_WORD):
                tile[target] = load_word(bins, place + byte)
                target += TILE_STRIDE
        source = 0
        for byte in range(first_byte, last_byte, COLUMNS_A_WORD):
            counted = 0
            for c in range(COLUMNS_A_WORD):
                # Unsigned indexes save the question whether they count from the end.
                first[counted] = np.uint64(slots[byte + c])
                shifts[counted] = np.uint64(8 * c)
                counted += slots[byte + c] < slots[byte + c + 1]
            words = tile[source : source + size]
            if counted == COLUMNS_A_WORD:
                add_eight(words, tile_amounts, first, histogram)
            else:
                add_some(words, tile_amounts, first, shifts, counted, histogram)
            source += TILE_STRIDE
