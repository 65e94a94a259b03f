"""Grow one tree, leaf with the largest gain first, in one call: small data pay for no launches.

The smaller child of a split is counted, the larger is parent minus smaller. Every thread takes a
share of the columns, so there is nothing to add up between threads; only integers are added, so
the tree is the same for any number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import kernel, parallel_kernel, prange
from rankinite.trees.kernels.histogram import COLUMNS_A_WORD, add_rows
from rankinite.trees.kernels.partition import copy_rows, shift_of, sort_out
from rankinite.trees.kernels.split import LARGEST_COLUMN, LEFT, best_split

# Fewer rows are sent to their children faster by one thread than it takes to wake the others.
ROWS_FOR_THREADS = 8192
# What is found of each child: gain, column, bin, side of missing values.
FOUND = 4


@kernel
def count_columns(
    bins: NDArray[np.uint8],
    more_bins: NDArray[np.uint8],
    row_bytes: int,
    more_bytes: int,
    first: int,
    last: int,
    rows: NDArray[np.int32],
    amounts: NDArray[np.int64],
    slots: NDArray[np.int64],
    histogram: NDArray[np.int64],
    tile: NDArray[np.uint64],
    tile_amounts: NDArray[np.int64],
) -> None:
    """Make the histograms of the columns first to last, which may lie in both blocks."""
    for slot in range(slots[first], slots[last]):
        histogram[slot] = 0
    if first < row_bytes:
        end = min(last, row_bytes)
        add_rows(
            bins, row_bytes, first, end, rows, amounts, slots, histogram, tile, tile_amounts
        )  # fmt: skip
    if last > row_bytes:
        start = max(first, row_bytes) - row_bytes
        add_rows(
            more_bins, more_bytes, start, last - row_bytes, rows, amounts, slots[row_bytes:],
            histogram, tile, tile_amounts,
        )  # fmt: skip


@kernel
def subtract(
    histogram: NDArray[np.int64], part: NDArray[np.int64], first_slot: int, last_slot: int
) -> None:
    """Take one child's histogram from its parent's, which becomes the other child's."""
    whole = histogram[first_slot:last_slot]
    less = part[first_slot:last_slot]
    for slot in range(len(whole)):
        whole[slot] -= less[slot]


@parallel_kernel
def grow(
    bins: NDArray[np.uint8],
    more_bins: NDArray[np.uint8],
    columns: NDArray[np.uint8],
    more_columns: NDArray[np.uint8],
    slots: NDArray[np.int64],
    n_bins: NDArray[np.int64],
    taking_part: NDArray[np.int64],
    rows: NDArray[np.int32],
    lefts: NDArray[np.int32],
    rights: NDArray[np.int32],
    amounts: NDArray[np.int64],
    masses: NDArray[np.int64],
    by_mass: bool,
    count_bits: int,
    total: int,
    total_mass: int,
    n_leaves: int,
    max_depth: int,
    min_docs: int,
    min_gain: float,
    n_parts: int,
    pool: NDArray[np.int64],
    mass_pool: NDArray[np.int64],
    tiles: NDArray[np.uint64],
    tile_amounts: NDArray[np.int64],
    out_split: NDArray[np.int64],
    out_gain: NDArray[np.float64],
    out_docs: NDArray[np.int64],
    out_leaf_docs: NDArray[np.int64],
) -> int:
    """Grow a tree on some rows and return how many splits it has.

    Split k is ``out_split[k]``: column, bin, side of missing values, left and right child; a child
    of at least 0 is a split, others are the complement of a leaf. ``taking_part`` are the numbers
    of bins with 0 for columns that are left out. ``rows`` is put in the order of the leaves;
    ``lefts`` and ``rights`` are scratch of the same length. ``pool`` has one histogram a leaf.
    """
    row_bytes = columns.shape[0]
    more_bytes = more_columns.shape[0]
    n_words = (row_bytes + more_bytes) // COLUMNS_A_WORD
    ones = (np.int64(1) << count_bits) - 1
    found = np.zeros((n_parts, 2, FOUND))
    scratch = np.empty((n_parts, 4, LARGEST_COLUMN))
    cuts = np.empty(n_parts + 1, np.int64)
    n_left_of = np.zeros(n_parts, np.int64)
    start = np.zeros(n_leaves, np.int64)
    end = np.zeros(n_leaves, np.int64)
    depth = np.zeros(n_leaves, np.int64)
    packed = np.zeros(n_leaves, np.int64)
    mass = np.zeros(n_leaves, np.int64)
    buffer = np.zeros(n_leaves, np.int64)
    best = np.zeros((n_leaves, FOUND))
    hangs_on = np.full(n_leaves, -1, np.int64)
    on_the_right = np.zeros(n_leaves, np.int64)
    end[0] = len(rows)
    packed[0] = total
    mass[0] = total_mass
    n_splits = 0
    # The first round counts the root; every other splits a leaf and counts its children.
    smaller, larger = 0, -1
    while True:
        if smaller >= 0:
            node_rows = rows[start[smaller] : end[smaller]]
            scan_smaller = (packed[smaller] & ones) >= 2 * min_docs and depth[smaller] < max_depth
            scan_larger = (
                larger >= 0
                and (packed[larger] & ones) >= 2 * min_docs
                and depth[larger] < max_depth
            )
            if scan_smaller or scan_larger:
                own = buffer[smaller]
                other = buffer[larger] if larger >= 0 else own
                for part in prange(n_parts):
                    first = n_words * part // n_parts * COLUMNS_A_WORD
                    last = n_words * (part + 1) // n_parts * COLUMNS_A_WORD
                    count_columns(
                        bins, more_bins, row_bytes, more_bytes, first, last, node_rows, amounts,
                        slots, pool[own], tiles[part], tile_amounts[part],
                    )  # fmt: skip
                    if by_mass:
                        count_columns(
                            bins, more_bins, row_bytes, more_bytes, first, last, node_rows,
                            masses, slots, mass_pool[own], tiles[part], tile_amounts[part],
                        )  # fmt: skip
                    if scan_smaller:
                        a, b, c, d = best_split(
                            pool[own], mass_pool[own if by_mass else 0], by_mass, slots,
                            taking_part, first, last, packed[smaller], mass[smaller], count_bits,
                            min_docs, scratch[part, :3], scratch[part, 3],
                        )  # fmt: skip
                        found[part, 0, 0] = a
                        found[part, 0, 1] = b
                        found[part, 0, 2] = c
                        found[part, 0, 3] = d
                    if scan_larger:
                        subtract(pool[other], pool[own], slots[first], slots[last])
                        if by_mass:
                            subtract(mass_pool[other], mass_pool[own], slots[first], slots[last])
                        a, b, c, d = best_split(
                            pool[other], mass_pool[other if by_mass else 0], by_mass, slots,
                            taking_part, first, last, packed[larger], mass[larger], count_bits,
                            min_docs, scratch[part, :3], scratch[part, 3],
                        )  # fmt: skip
                        found[part, 1, 0] = a
                        found[part, 1, 1] = b
                        found[part, 1, 2] = c
                        found[part, 1, 3] = d
            for child in range(2):
                leaf = smaller if child == 0 else larger
                scanned = scan_smaller if child == 0 else scan_larger
                if leaf >= 0:
                    best[leaf, 0] = 0.0
                    best[leaf, 1] = -1.0
                if scanned:
                    for part in range(n_parts):
                        if found[part, child, 0] > best[leaf, 0]:
                            for k in range(FOUND):
                                best[leaf, k] = found[part, child, k]
        if n_splits == n_leaves - 1:
            break
        leaf = -1
        gain = min_gain
        for k in range(n_splits + 1):
            if best[k, 1] >= 0.0 and best[k, 0] > gain:
                gain = best[k, 0]
                leaf = k
        if leaf < 0:
            break
        column = int(best[leaf, 1])
        cut = int(best[leaf, 2])
        side = int(best[leaf, 3])
        shift = shift_of(n_bins[column], side == LEFT)
        bound = cut + shift
        first_row, last_row = start[leaf], end[leaf]
        n_rows = last_row - first_row
        bytes_of = columns[column] if column < row_bytes else more_columns[column - row_bytes]
        if n_rows < ROWS_FOR_THREADS:
            n_left = sort_out(
                rows[first_row:last_row], bytes_of, shift, bound,
                lefts[first_row:last_row], rights[first_row:last_row],
            )  # fmt: skip
            copy_rows(lefts[first_row : first_row + n_left], rows[first_row:last_row])
            copy_rows(rights[first_row : last_row - n_left], rows[first_row + n_left : last_row])
        else:
            for part in range(n_parts + 1):
                cuts[part] = first_row + n_rows * part // n_parts
            for part in prange(n_parts):
                n_left_of[part] = sort_out(
                    rows[cuts[part] : cuts[part + 1]], bytes_of, shift, bound,
                    lefts[cuts[part] : cuts[part + 1]], rights[cuts[part] : cuts[part + 1]],
                )  # fmt: skip
            n_left = 0
            for part in range(n_parts):
                n_left += n_left_of[part]
            for part in prange(n_parts):
                left = first_row
                right = first_row + n_left
                for before in range(part):
                    left += n_left_of[before]
                    right += cuts[before + 1] - cuts[before] - n_left_of[before]
                here = n_left_of[part]
                copy_rows(lefts[cuts[part] : cuts[part] + here], rows[left:])
                copy_rows(rights[cuts[part] : cuts[part + 1] - here], rows[right:])
        new = n_splits + 1
        middle = first_row + n_left
        # Sums of the side with fewer rows; the other has the rest.
        left_is_fewer = 2 * n_left <= n_rows
        sum_packed = np.int64(0)
        sum_mass = np.int64(0)
        for k in range(
            first_row if left_is_fewer else middle, middle if left_is_fewer else last_row
        ):
            sum_packed += amounts[rows[k]]
            if by_mass:
                sum_mass += masses[rows[k]]
        rest_packed = packed[leaf] - sum_packed
        rest_mass = mass[leaf] - sum_mass
        out_split[n_splits, 0] = column
        out_split[n_splits, 1] = cut
        out_split[n_splits, 2] = side
        out_split[n_splits, 3] = ~leaf
        out_split[n_splits, 4] = ~new
        out_gain[n_splits] = best[leaf, 0]
        out_docs[n_splits] = packed[leaf] & ones
        if hangs_on[leaf] >= 0:
            out_split[hangs_on[leaf], 3 + on_the_right[leaf]] = n_splits
        hangs_on[leaf] = n_splits
        on_the_right[leaf] = 0
        hangs_on[new] = n_splits
        on_the_right[new] = 1
        start[new], end[new] = middle, last_row
        end[leaf] = middle
        depth[leaf] += 1
        depth[new] = depth[leaf]
        packed[leaf] = sum_packed if left_is_fewer else rest_packed
        packed[new] = rest_packed if left_is_fewer else sum_packed
        mass[leaf] = sum_mass if left_is_fewer else rest_mass
        mass[new] = rest_mass if left_is_fewer else sum_mass
        smaller, larger = (leaf, new) if left_is_fewer else (new, leaf)
        # The larger child goes on with its parent's histogram.
        old = buffer[leaf]
        buffer[smaller] = new
        buffer[larger] = old
        n_splits += 1
        if n_splits == n_leaves - 1:
            break
    for leaf in range(n_splits + 1):
        out_leaf_docs[leaf] = packed[leaf] & ones
    return n_splits
