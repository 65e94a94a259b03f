"""Grow one tree, leaf with the largest gain first, in one call: small data pay for no launches.

The smaller child of a split is counted, the larger is parent minus smaller. Every thread takes a
share of the columns, so there is nothing to add up between threads; only integers are added, so
the tree is the same for any number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel, parallel_kernel, prange
from rankinite.trees.kernels.histogram import COLUMNS_A_WORD, add_rows
from rankinite.trees.kernels.partition import part_rows, shift_of
from rankinite.trees.kernels.split import LARGEST_COLUMN, LEFT, best_split

# What is known of a leaf: its rows, depth, packed gradients and counts, masses, which histogram
# it has, and the split and side that it hangs on.
START, END, DEPTH, PACKED, MASS, BUFFER, PARENT, SIDE = range(8)
LEAF_FIELDS = 8
# What is known of a split: column, bin, side of missing values, left and right child.
COLUMN, CUT, MISSING, LEFT_CHILD, RIGHT_CHILD = range(5)
# What is found of a leaf: gain, column, bin, side of missing values.
GAIN = 0
FOUND = 4
# Less work than this is done by one thread before the others would have begun.
STEPS_FOR_THREADS = 60_000


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
        add_rows(bins, row_bytes, first, end, rows, amounts, slots, histogram, tile, tile_amounts)
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


@kernel
def find_splits_of(
    part: int,
    n_parts: int,
    bins: NDArray[np.uint8],
    more_bins: NDArray[np.uint8],
    row_bytes: int,
    more_bytes: int,
    slots: NDArray[np.int64],
    taking_part: NDArray[np.int64],
    rows: NDArray[np.int32],
    amounts: NDArray[np.int64],
    masses: NDArray[np.int64],
    by_mass: bool,
    count_bits: int,
    min_docs: int,
    smaller: NDArray[np.int64],
    larger: NDArray[np.int64],
    wanted: NDArray[np.bool_],
    pool: NDArray[np.int64],
    mass_pool: NDArray[np.int64],
    tile: NDArray[np.uint64],
    tile_amounts: NDArray[np.int64],
    found: NDArray[np.float64],
) -> None:
    """Count one part of the columns of the smaller leaf, and find the best splits of both there.

    ``wanted`` tells for which leaf a split is asked; ``found`` has a row for either.
    """
    n_words = (row_bytes + more_bytes) // COLUMNS_A_WORD
    first = n_words * part // n_parts * COLUMNS_A_WORD
    last = n_words * (part + 1) // n_parts * COLUMNS_A_WORD
    own, other = smaller[BUFFER], larger[BUFFER]
    node_rows = rows[smaller[START] : smaller[END]]
    scratch = np.empty((4, LARGEST_COLUMN))
    count_columns(
        bins, more_bins, row_bytes, more_bytes, first, last, node_rows, amounts, slots,
        pool[own], tile, tile_amounts,
    )  # fmt: skip
    if by_mass:
        count_columns(
            bins, more_bins, row_bytes, more_bytes, first, last, node_rows, masses, slots,
            mass_pool[own], tile, tile_amounts,
        )  # fmt: skip
    if wanted[1]:
        subtract(pool[other], pool[own], slots[first], slots[last])
        if by_mass:
            subtract(mass_pool[other], mass_pool[own], slots[first], slots[last])
    for child in range(2):
        buffer = own if child == 0 else other
        packed = smaller[PACKED] if child == 0 else larger[PACKED]
        mass = smaller[MASS] if child == 0 else larger[MASS]
        gain, column, cut, side = 0.0, -1, 0, 0
        if wanted[child]:
            gain, column, cut, side = best_split(
                pool[buffer], mass_pool[buffer if by_mass else 0], by_mass, slots, taking_part,
                first, last, packed, mass, count_bits, min_docs, scratch[:3], scratch[3],
            )  # fmt: skip
        found[child, GAIN] = gain
        found[child, 1] = column
        found[child, 2] = cut
        found[child, 3] = side


@parallel_kernel
def find_splits(
    n_parts: int,
    bins: NDArray[np.uint8],
    more_bins: NDArray[np.uint8],
    row_bytes: int,
    more_bytes: int,
    slots: NDArray[np.int64],
    taking_part: NDArray[np.int64],
    rows: NDArray[np.int32],
    amounts: NDArray[np.int64],
    masses: NDArray[np.int64],
    by_mass: bool,
    count_bits: int,
    min_docs: int,
    smaller: NDArray[np.int64],
    larger: NDArray[np.int64],
    wanted: NDArray[np.bool_],
    pool: NDArray[np.int64],
    mass_pool: NDArray[np.int64],
    tiles: NDArray[np.uint64],
    tile_amounts: NDArray[np.int64],
    found: NDArray[np.float64],
) -> None:
    """Do what `find_splits_of` does for all parts of the columns, on as many threads."""
    for part in prange(n_parts):
        find_splits_of(
            part, n_parts, bins, more_bins, row_bytes, more_bytes, slots, taking_part, rows,
            amounts, masses, by_mass, count_bits, min_docs, smaller, larger, wanted, pool,
            mass_pool, tiles[part], tile_amounts[part], found[part],
        )  # fmt: skip


@kernel
def take_best(
    found: NDArray[np.float64], n_found: int, child: int, best: NDArray[np.float64], leaf: int
) -> None:
    """Choose among what the threads found: the first of those with the largest gain."""
    chosen = 0
    for part in range(1, n_found):
        if found[part, child, GAIN] > found[chosen, child, GAIN]:
            chosen = part
    for k in range(FOUND):
        best[leaf, k] = found[chosen, child, k]


@kernel
def sum_rows(amounts: NDArray[np.int64], rows: NDArray[np.int32]) -> int:
    """Return the sum of the amounts of some rows."""
    total = np.int64(0)
    for k in range(len(rows)):
        total += amounts[rows[k]]
    return total


@kernel
def split_leaf(
    leaves: NDArray[np.int64],
    leaf: int,
    new: int,
    middle: int,
    rows: NDArray[np.int32],
    amounts: NDArray[np.int64],
    masses: NDArray[np.int64],
    by_mass: bool,
) -> tuple[int, int]:
    """Make two leaves of one, and return the one with fewer rows, then the other."""
    old = leaves[leaf]
    fresh = leaves[new]
    fresh[START], fresh[END] = middle, old[END]
    old[END] = middle
    old[DEPTH] += 1
    fresh[DEPTH] = old[DEPTH]
    old[PARENT], old[SIDE] = new - 1, 0
    fresh[PARENT], fresh[SIDE] = new - 1, 1
    left_is_fewer = fresh[START] - old[START] <= fresh[END] - fresh[START]
    smaller, larger = (leaf, new) if left_is_fewer else (new, leaf)
    fewer = rows[leaves[smaller, START] : leaves[smaller, END]]
    packed, mass = old[PACKED], old[MASS]
    leaves[smaller, PACKED] = sum_rows(amounts, fewer)
    leaves[smaller, MASS] = sum_rows(masses, fewer) if by_mass else 0
    leaves[larger, PACKED] = packed - leaves[smaller, PACKED]
    leaves[larger, MASS] = mass - leaves[smaller, MASS]
    # The larger child goes on with its parent's histogram.
    leaves[larger, BUFFER] = old[BUFFER]
    leaves[smaller, BUFFER] = new
    return smaller, larger


@kernel
def write_split(
    leaves: NDArray[np.int64],
    leaf: int,
    new: int,
    column: int,
    cut: int,
    side: int,
    out_split: NDArray[np.int64],
) -> None:
    """Write down that a leaf is split, and that the split above it leads there."""
    split = out_split[new - 1]
    split[COLUMN], split[CUT], split[MISSING] = column, cut, side
    split[LEFT_CHILD], split[RIGHT_CHILD] = ~leaf, ~new
    if leaves[leaf, PARENT] >= 0:
        out_split[leaves[leaf, PARENT], LEFT_CHILD + leaves[leaf, SIDE]] = new - 1


@kernel
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

    A child of at least 0 in ``out_split`` is a split, others are the complement of a leaf.
    ``taking_part`` are the numbers of bins with 0 for columns that are left out, which
    have no slots. ``rows`` is put
    in the order of the leaves; ``lefts`` and ``rights`` are scratch of the same length. ``pool``
    has one histogram a leaf.
    """
    row_bytes, more_bytes = columns.shape[0], more_columns.shape[0]
    ones = (np.int64(1) << count_bits) - 1
    found = np.zeros((n_parts, 2, FOUND))
    best = np.zeros((n_leaves, FOUND))
    whole_tile = tiles.reshape(tiles.size)
    wanted = np.zeros(2, np.bool_)
    leaves = np.zeros((n_leaves, LEAF_FIELDS), np.int64)
    leaves[0, END] = len(rows)
    leaves[0, PACKED] = sum_rows(amounts, rows)
    leaves[0, MASS] = sum_rows(masses, rows) if by_mass else 0
    leaves[0, PARENT] = -1
    n_splits = 0
    smaller, larger = 0, -1
    while True:
        for k in range(2):
            child = smaller if k == 0 else larger
            wanted[k] = (
                child >= 0
                and n_splits < n_leaves - 1
                and leaves[child, DEPTH] < max_depth
                and leaves[child, PACKED] & ones >= 2 * min_docs
            )
        best[smaller, GAIN] = 0.0
        if larger >= 0:
            best[larger, GAIN] = 0.0
        if wanted[0] or wanted[1]:
            n_rows = leaves[smaller, END] - leaves[smaller, START]
            if n_rows * (row_bytes + more_bytes) + 4 * slots[-1] < STEPS_FOR_THREADS:
                find_splits_of(
                    0, 1, bins, more_bins, row_bytes, more_bytes, slots, taking_part, rows,
                    amounts, masses, by_mass, count_bits, min_docs, leaves[smaller],
                    leaves[max(larger, 0)], wanted, pool, mass_pool, whole_tile,
                    tile_amounts[0], found[0],
                )  # fmt: skip
                n_found = 1
            else:
                find_splits(
                    n_parts, bins, more_bins, row_bytes, more_bytes, slots, taking_part, rows,
                    amounts, masses, by_mass, count_bits, min_docs, leaves[smaller],
                    leaves[max(larger, 0)], wanted, pool, mass_pool, tiles, tile_amounts, found,
                )  # fmt: skip
                n_found = n_parts
            take_best(found, n_found, 0, best, smaller)
            if larger >= 0:
                take_best(found, n_found, 1, best, larger)
        leaf = -1
        gain = min_gain
        for k in range(n_splits + 1):
            if best[k, GAIN] > gain:
                gain = best[k, GAIN]
                leaf = k
        if leaf < 0 or n_splits == n_leaves - 1:
            break
        column, cut, side = int(best[leaf, 1]), int(best[leaf, 2]), int(best[leaf, 3])
        shift = shift_of(n_bins[column], side == LEFT)
        start, end = leaves[leaf, START], leaves[leaf, END]
        bytes_of = columns[column] if column < row_bytes else more_columns[column - row_bytes]
        n_left = part_rows(
            rows[start:end], bytes_of, shift, cut + shift, lefts[start:end], rights[start:end],
            n_parts,
        )  # fmt: skip
        new = n_splits + 1
        write_split(leaves, leaf, new, column, cut, side, out_split)
        out_gain[n_splits] = gain
        out_docs[n_splits] = leaves[leaf, PACKED] & ones
        smaller, larger = split_leaf(
            leaves, leaf, new, start + n_left, rows, amounts, masses, by_mass
        )
        n_splits += 1
    for k in range(n_splits + 1):
        out_leaf_docs[k] = leaves[k, PACKED] & ones
    return n_splits
