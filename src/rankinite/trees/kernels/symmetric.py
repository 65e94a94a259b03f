"""Grow one symmetric tree: all leaves of a level are split alike, by what they gain together.

A split that all documents vote for is seldom an accident of the few documents of a leaf, which is
what large trees on many noisy features suffer from. Histograms are made as in `grow`: the smaller
child of a split is counted, the larger is parent minus smaller; every thread takes a share of the
columns, and the sums of gains over leaves are added in the order of the leaves, so the tree is the
same for any number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel, parallel_kernel, prange
from rankinite.trees.kernels.grow import (
    BUFFER,
    END,
    FOUND,
    GAIN,
    LEAF_FIELDS,
    MASS,
    PACKED,
    PARENT,
    START,
    count_columns,
    split_leaf,
    subtract,
    sum_rows,
    write_split,
)
from rankinite.trees.kernels.histogram import COLUMNS_A_WORD
from rankinite.trees.kernels.partition import part_rows, shift_of
from rankinite.trees.kernels.split import LARGEST_COLUMN, LEFT, RIGHT, UNSEEN, gains_of_column


@kernel
def add_gains(gains: NDArray[np.float64], n: int, factor: float, out: NDArray[np.float64]) -> None:
    """Add what a leaf gains at every cut; one that it cannot take gains nothing."""
    for b in range(n):
        if gains[b] > 0.0:
            out[b] += gains[b] * factor


@kernel
def best_of_level(
    first: int,
    last: int,
    leaves: NDArray[np.int64],
    n_leaves: int,
    slots: NDArray[np.int64],
    taking_part: NDArray[np.int64],
    by_mass: bool,
    count_bits: int,
    min_docs: int,
    pool: NDArray[np.int64],
    mass_pool: NDArray[np.int64],
    found: NDArray[np.float64],
) -> None:
    """Find the split of the columns first to last that all leaves together gain most by.

    Of equal gains the first column, bin, and missing values to the right win.
    """
    ones = (np.int64(1) << count_bits) - 1
    sums = np.empty((3, LARGEST_COLUMN))
    gains = np.empty(LARGEST_COLUMN)
    to_right = np.empty(LARGEST_COLUMN)
    to_left = np.empty(LARGEST_COLUMN)
    found[GAIN], found[1], found[2], found[3] = 0.0, -1, 0, UNSEEN
    for column in range(first, last):
        n = taking_part[column]
        if n == 0:
            continue
        start = slots[column]
        seen = False
        for leaf in range(n_leaves):
            if leaves[leaf, PACKED] & ones >= 2 * min_docs:
                seen |= (pool[leaves[leaf, BUFFER], start + n] & ones) > 0
        to_right[:n] = 0.0
        to_left[:n] = 0.0
        for leaf in range(n_leaves):
            packed = leaves[leaf, PACKED]
            docs = packed & ones
            if docs < 2 * min_docs:
                continue
            gradient, n_docs = float(packed >> count_bits), float(docs)
            mass = float(leaves[leaf, MASS]) if by_mass else n_docs
            if mass <= 0.0:
                continue
            buffer = leaves[leaf, BUFFER]
            bins = pool[buffer, start : start + n + 1]
            masses = mass_pool[buffer, start : start + n + 1] if by_mass else mass_pool[0]
            missing = bins[n]
            some = (missing & ones) > 0
            n_cuts = n if some else n - 1
            gains_of_column(
                bins, masses, by_mass, n_cuts, 0, 0, count_bits, n_docs, gradient, mass, min_docs,
                sums, gains,
            )  # fmt: skip
            add_gains(gains, n_cuts, mass, to_right)
            if some:
                gains_of_column(
                    bins, masses, by_mass, n - 1, missing, masses[n] if by_mass else 0, count_bits,
                    n_docs, gradient, mass, min_docs, sums, gains,
                )  # fmt: skip
            if seen:
                add_gains(gains, n - 1, mass, to_left)
        for b in range(n):
            if to_right[b] > found[GAIN]:
                found[GAIN], found[1], found[2] = to_right[b], column, b
                found[3] = RIGHT if seen else UNSEEN
        if seen:
            for b in range(n):
                if to_left[b] > found[GAIN]:
                    found[GAIN], found[1], found[2], found[3] = to_left[b], column, b, LEFT


@kernel
def find_level_of(
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
    leaves: NDArray[np.int64],
    n_leaves: int,
    pairs: NDArray[np.int64],
    n_pairs: int,
    pool: NDArray[np.int64],
    mass_pool: NDArray[np.int64],
    tile: NDArray[np.uint64],
    tile_amounts: NDArray[np.int64],
    found: NDArray[np.float64],
) -> None:
    """Make the histograms of new leaves in one part of the columns, and find the best split there.

    ``pairs`` has the smaller and the larger leaf of every split of the level before.
    """
    n_words = (row_bytes + more_bytes) // COLUMNS_A_WORD
    first = n_words * part // n_parts * COLUMNS_A_WORD
    last = n_words * (part + 1) // n_parts * COLUMNS_A_WORD
    for k in range(n_pairs):
        smaller, larger = pairs[k, 0], pairs[k, 1]
        own = leaves[smaller, BUFFER]
        node_rows = rows[leaves[smaller, START] : leaves[smaller, END]]
        count_columns(
            bins, more_bins, row_bytes, more_bytes, first, last, node_rows, amounts, slots,
            pool[own], tile, tile_amounts,
        )  # fmt: skip
        if by_mass:
            count_columns(
                bins, more_bins, row_bytes, more_bytes, first, last, node_rows, masses, slots,
                mass_pool[own], tile, tile_amounts,
            )  # fmt: skip
        if larger >= 0:
            other = leaves[larger, BUFFER]
            subtract(pool[other], pool[own], slots[first], slots[last])
            if by_mass:
                subtract(mass_pool[other], mass_pool[own], slots[first], slots[last])
    best_of_level(
        first, last, leaves, n_leaves, slots, taking_part, by_mass, count_bits, min_docs, pool,
        mass_pool, found,
    )  # fmt: skip


@parallel_kernel
def find_level(
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
    leaves: NDArray[np.int64],
    n_leaves: int,
    pairs: NDArray[np.int64],
    n_pairs: int,
    pool: NDArray[np.int64],
    mass_pool: NDArray[np.int64],
    tiles: NDArray[np.uint64],
    tile_amounts: NDArray[np.int64],
    found: NDArray[np.float64],
) -> None:
    """Do what `find_level_of` does for all parts of the columns, on as many threads."""
    for part in prange(n_parts):
        find_level_of(
            part, n_parts, bins, more_bins, row_bytes, more_bytes, slots, taking_part, rows,
            amounts, masses, by_mass, count_bits, min_docs, leaves, n_leaves, pairs, n_pairs, pool,
            mass_pool, tiles[part], tile_amounts[part], found[part],
        )  # fmt: skip


@kernel
def gain_at(
    bins: NDArray[np.int64],
    masses: NDArray[np.int64],
    by_mass: bool,
    n: int,
    cut: int,
    side: int,
    packed: int,
    total_mass: int,
    count_bits: int,
    min_docs: int,
) -> float:
    """Return what a leaf gains by a split; 0 if it has too few documents on a side."""
    ones = (np.int64(1) << count_bits) - 1
    left = np.int64(0)
    left_mass_sum = np.int64(0)
    for b in range(cut + 1):
        left += bins[b]
        if by_mass:
            left_mass_sum += masses[b]
    if side == LEFT:
        left += bins[n]
        if by_mass:
            left_mass_sum += masses[n]
    docs, left_docs = packed & ones, left & ones
    if left_docs < min_docs or docs - left_docs < min_docs:
        return 0.0
    mass = float(total_mass) if by_mass else float(docs)
    left_mass = float(left_mass_sum) if by_mass else float(left_docs)
    product = left_mass * (mass - left_mass)
    if product <= 0.0:
        return 0.0
    surplus = float(left >> count_bits) - left_mass * (float(packed >> count_bits) / mass)
    return surplus * surplus / product * mass


@kernel
def grow_levels(
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
    """Grow a symmetric tree on some rows and return how many splits it has; see `grow`.

    A leaf that has too few documents on a side of its level's split stays as it is. There are as
    many levels as leaves can all be split, and the gain of a level is that of all its splits.
    """
    row_bytes, more_bytes = columns.shape[0], more_columns.shape[0]
    ones = (np.int64(1) << count_bits) - 1
    found = np.zeros((n_parts, FOUND))
    pairs = np.zeros((n_leaves, 2), np.int64)
    leaves = np.zeros((n_leaves, LEAF_FIELDS), np.int64)
    leaves[0, END] = len(rows)
    leaves[0, PACKED] = sum_rows(amounts, rows)
    leaves[0, MASS] = sum_rows(masses, rows) if by_mass else 0
    leaves[0, PARENT] = -1
    pairs[0, 1] = -1
    n_pairs, n_splits, level = 1, 0, 0
    while n_pairs > 0 and level < max_depth and 2 * (n_splits + 1) <= n_leaves:
        find_level(
            n_parts, bins, more_bins, row_bytes, more_bytes, slots, taking_part, rows, amounts,
            masses, by_mass, count_bits, min_docs, leaves, n_splits + 1, pairs, n_pairs, pool,
            mass_pool, tiles, tile_amounts, found,
        )  # fmt: skip
        chosen = 0
        for part in range(1, n_parts):
            if found[part, GAIN] > found[chosen, GAIN]:
                chosen = part
        if found[chosen, GAIN] <= min_gain:
            break
        column, cut, side = int(found[chosen, 1]), int(found[chosen, 2]), int(found[chosen, 3])
        shift = shift_of(n_bins[column], side == LEFT)
        bytes_of = columns[column] if column < row_bytes else more_columns[column - row_bytes]
        first_slot, last_slot = slots[column], slots[column] + n_bins[column] + 1
        n_pairs = 0
        for leaf in range(n_splits + 1):
            buffer = leaves[leaf, BUFFER]
            gain = gain_at(
                pool[buffer, first_slot:last_slot],
                mass_pool[buffer, first_slot:last_slot] if by_mass else mass_pool[0],
                by_mass, n_bins[column], cut, side, leaves[leaf, PACKED], leaves[leaf, MASS],
                count_bits, min_docs,
            )  # fmt: skip
            if gain <= 0.0:
                continue
            start, end = leaves[leaf, START], leaves[leaf, END]
            n_left = part_rows(
                rows[start:end], bytes_of, shift, cut + shift, lefts[start:end],
                rights[start:end], n_parts,
            )  # fmt: skip
            new = n_splits + 1
            write_split(leaves, leaf, new, column, cut, side, out_split)
            out_gain[n_splits] = gain
            out_docs[n_splits] = leaves[leaf, PACKED] & ones
            smaller, larger = split_leaf(
                leaves, leaf, new, start + n_left, rows, amounts, masses, by_mass
            )
            pairs[n_pairs, 0], pairs[n_pairs, 1] = smaller, larger
            n_pairs += 1
            n_splits += 1
        level += 1
    for k in range(n_splits + 1):
        out_leaf_docs[k] = leaves[k, PACKED] & ones
    return n_splits
