"""Splits: the best one of a leaf, or of all leaves of a level, and the rows on either side of it.

Splits are found by the gains of all cuts, see `gain`.

With noise, the column is not chosen by its gain, but by sqrt(gain) plus a random number that is as
large as the root of the gain of a split of pure noise. So splits that data cannot tell apart win
in turn, and what one tree fits by accident the next one does not.

The split that is taken partitions the rows of its leaf: those that go left come first, so that the
rows of every leaf are one range.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel
from rankinite.trees.kernels.categories import LEVEL_GAINS, category_gains
from rankinite.trees.kernels.gain import (
    Limits,
    column_gains,
    constrain_gains,
    gains_by_side,
    leaf_totals,
    parent_correction,
)
from rankinite.trees.kernels.histogram import (
    DEPTH,
    HISTOGRAM,
    LEAF_FIELDS,
    SPLITTABLE,
    TreeData,
    Workspace,
    docs_in,
    packing_of,
)

# Columns of a split candidate. Integers below 2^53 are floats too, so one array holds all five.
# The column with the largest score is taken; without noise that is the one with the largest gain.
GAIN, COLUMN, CUT, MISSING, SCORE = range(5)
CANDIDATE_FIELDS = 5
# Where a split sends missing values; UNSEEN if the node has none. For categorical splits that is
# found when the split is taken, and the cut is a place in the order of the categories.
RIGHT = 0
LEFT = 1
UNSEEN = 2

# Cuts of a column at most: 255 bins, and one between them and the missing values.
MAX_CUTS = 256
# Rows of scratch: packed sums and hessians to the left of each cut; gains of a leaf with missing
# values to the right and to the left; and such gains of a level.
SCRATCH_ROWS = 6
# Fewer rows are partitioned by one thread before the others would have woken up.
PARALLEL_ROWS = 8192


@kernel
def argmax_gain(gains: NDArray[np.float64], n: int) -> tuple[int, float]:
    """Return the index and value of the first of the largest of n gains; -1 if none is above 0.

    Floats from 0 on are in the order of their bits as integers, and others have negative bits; the
    largest integer is found by a loop that can be vectorised.
    """
    bits = gains.view(np.int64)[:n]
    largest = np.int64(0)
    for b in range(len(bits)):
        largest = max(largest, bits[b])
    if largest == 0:
        return -1, 0.0
    best = 0
    while bits[best] != largest:
        best += 1
    return best, gains[best]


@kernel
def offer(
    candidate: NDArray[np.float64],
    noise: NDArray[np.float64],
    base: float,
    gain: float,
    column: int,
    cut: int,
    missing: int,
) -> None:
    """Take a column's best split as candidate if it gains something and its score is the largest.

    ``noise`` has a random number per column, or is empty; ``base`` is what the leaves have without
    the split.
    """
    if gain <= 0.0:
        return
    score = math.sqrt(base + gain) + noise[column] if len(noise) > 0 else gain
    if score <= candidate[SCORE]:
        return
    candidate[SCORE] = score
    candidate[GAIN] = gain
    candidate[COLUMN] = column
    candidate[CUT] = cut
    candidate[MISSING] = missing


@kernel
def clear_candidate(candidate: NDArray[np.float64]) -> None:
    """Write that there is no split, which any other one beats."""
    candidate[GAIN], candidate[SCORE] = 0.0, -np.inf
    candidate[COLUMN], candidate[CUT], candidate[MISSING] = -1, 0, UNSEEN


@kernel
def inherit_groups(
    groups: NDArray[np.bool_],
    column: int,
    leaf: int,
    new: int,
    open_groups: NDArray[np.bool_],
    allowed: NDArray[np.bool_],
) -> None:
    """Write by which columns two leaves may be split that were one until a split by a column.

    A group of an interaction constraint stays open on a path as long as it has all of the path's
    features. A column in no group closes them all, and only itself may follow.
    """
    n_columns = groups.shape[1]
    for k in range(n_columns):
        allowed[leaf, k] = k == column
    for group in range(len(groups)):
        open_groups[leaf, group] &= groups[group, column]
        open_groups[new, group] = open_groups[leaf, group]
        for k in range(n_columns):
            allowed[leaf, k] |= open_groups[leaf, group] & groups[group, k]
    for k in range(n_columns):
        allowed[new, k] = allowed[leaf, k]


@kernel
def best_leaf_split(
    data: TreeData,
    workspace: Workspace,
    limits: Limits,
    leaf: NDArray[np.int64],
    value: float,
    allowed: NDArray[np.bool_],
    first: int,
    last: int,
    scratch: NDArray[np.float64],
    candidate: NDArray[np.float64],
) -> None:
    """Write the best split of a leaf among the columns first to last; gain 0 if there is none.

    Of equal scores the first column, the first bin, and missing values to the right win. Columns
    are compared by the score that is written, to the last bit, as those of other threads will be.
    ``allowed`` tells by which columns the leaf may be split; by all if it is empty.
    """
    clear_candidate(candidate)
    packing = packing_of(data)
    separate = packing.separate_hessians
    totals = leaf_totals(leaf, packing, limits.l2)
    if leaf[SPLITTABLE] == 0 or totals.hessian <= 0.0:
        return
    split_bins, bin_offsets, categorical = data.split_bins, data.bin_offsets, data.categorical
    leaf_histogram = workspace.histograms[leaf[HISTOGRAM]]
    leaf_hessians = workspace.hessian_histograms[leaf[HISTOGRAM] if separate else 0]
    sums, right_gains, left_gains = scratch[:2].view(np.int64), scratch[2], scratch[3]
    noise = data.noise[leaf[DEPTH] % len(data.noise)]
    correction = parent_correction(totals, limits.l2)
    directions = data.directions
    is_directed, is_restricted = len(directions) > 0, len(allowed) > 0
    for column in range(first, last):
        n = split_bins[column]
        if n == 0 or (is_restricted and not allowed[column]):
            continue
        if categorical[column]:
            scratch[4, 0] = value
            n_cuts = category_gains(
                data, workspace, limits, leaf.reshape(1, LEAF_FIELDS), scratch[4],
                allowed.reshape(1, len(allowed)), column, scratch,
            )  # fmt: skip
            cut, gain = argmax_gain(scratch[LEVEL_GAINS], n_cuts)
            offer(candidate, noise, 0.0, gain, column, cut, UNSEEN)
            continue
        start = bin_offsets[column]
        histogram = leaf_histogram[start : start + n + 1]
        hessians = leaf_hessians[start : start + n + 1] if separate else leaf_hessians
        n_cuts = gains_by_side(
            histogram, hessians, packing, totals, limits, value,
            directions[column] if is_directed else 0, sums, right_gains, left_gains,
        )  # fmt: skip
        # A leaf's own share of the gain is the same for all columns, and left out of their scores.
        cut, gain = argmax_gain(right_gains, n_cuts)
        gain = gain * totals.hessian + correction
        offer(candidate, noise, 0.0, gain, column, cut, RIGHT if n_cuts == n else UNSEEN)
        if n_cuts == n:
            cut, gain = argmax_gain(left_gains, n - 1)
            gain = gain * totals.hessian + correction
            offer(candidate, noise, 0.0, gain, column, cut, LEFT)


@kernel
def add_gains(
    gains: NDArray[np.float64],
    n: int,
    hessian: float,
    correction: float,
    total: NDArray[np.float64],
) -> None:
    """Add what a leaf gains at each cut; nothing where it cannot take the cut or would lose."""
    for b in range(n):
        total[b] += max(gains[b] * hessian + correction, 0.0)


@kernel
def best_level_split(
    data: TreeData,
    workspace: Workspace,
    limits: Limits,
    leaves: NDArray[np.int64],
    values: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    first: int,
    last: int,
    scratch: NDArray[np.float64],
    candidate: NDArray[np.float64],
) -> None:
    """Write the split of the columns first to last that all leaves together gain most by.

    A leaf that constraints do not let take a split gains nothing by it, and will stay as it is.
    Gains are added in the order of the leaves, so that their sum does not depend on the threads.
    Of equal scores the first column, the first bin, and missing values to the right win.
    """
    clear_candidate(candidate)
    packing = packing_of(data)
    separate = packing.separate_hessians
    split_bins, bin_offsets, categorical = data.split_bins, data.bin_offsets, data.categorical
    histograms, hessian_histograms = workspace.histograms, workspace.hessian_histograms
    sums, right_gains, left_gains = scratch[:2].view(np.int64), scratch[2], scratch[3]
    to_right, to_left = scratch[4], scratch[5]
    directions = data.directions
    is_directed, is_restricted = len(directions) > 0, allowed.shape[1] > 0
    level = 0
    base = 0.0
    for leaf in range(len(leaves)):
        level = max(level, leaves[leaf, DEPTH])
        totals = leaf_totals(leaves[leaf], packing, limits.l2)
        if totals.hessian > 0.0:
            base += totals.gradient * totals.gradient / (totals.hessian - limits.l2)
    noise = data.noise[level % len(data.noise)]
    for column in range(first, last):
        n = split_bins[column]
        if n == 0:
            continue
        if categorical[column]:
            n_cuts = category_gains(
                data, workspace, limits, leaves, values, allowed, column, scratch
            )
            cut, gain = argmax_gain(scratch[LEVEL_GAINS], n_cuts)
            offer(candidate, noise, base, gain, column, cut, UNSEEN)
            continue
        start, missing_bin = bin_offsets[column], bin_offsets[column] + n
        direction = directions[column] if is_directed else 0
        # All leaves take the same side, so it matters whether any of them has missing values.
        has_missing = False
        for leaf in range(len(leaves)):
            if leaves[leaf, SPLITTABLE] == 1:
                missing = histograms[leaves[leaf, HISTOGRAM], missing_bin]
                has_missing |= docs_in(missing, packing.count_bits) > 0
        to_right[:n] = 0.0
        to_left[:n] = 0.0
        for leaf in range(len(leaves)):
            totals = leaf_totals(leaves[leaf], packing, limits.l2)
            if leaves[leaf, SPLITTABLE] == 0 or totals.hessian <= 0.0:
                continue
            if is_restricted and not allowed[leaf, column]:
                continue
            row = leaves[leaf, HISTOGRAM]
            histogram = histograms[row, start : missing_bin + 1]
            hessians = hessian_histograms[0]
            if separate:
                hessians = hessian_histograms[row, start : missing_bin + 1]
            n_cuts = gains_by_side(
                histogram, hessians, packing, totals, limits, values[leaf], direction, sums,
                right_gains, left_gains,
            )  # fmt: skip
            correction = parent_correction(totals, limits.l2)
            add_gains(right_gains, n_cuts, totals.hessian, correction, to_right)
            # A leaf without missing values gains the same on either side, but counts on both.
            if has_missing:
                gains = left_gains if n_cuts == n else right_gains
                add_gains(gains, n - 1, totals.hessian, correction, to_left)
        cut, gain = argmax_gain(to_right, n)
        offer(candidate, noise, base, gain, column, cut, RIGHT if has_missing else UNSEEN)
        if has_missing:
            cut, gain = argmax_gain(to_left, n)
            offer(candidate, noise, base, gain, column, cut, LEFT)


@kernel
def split_gain(
    data: TreeData,
    workspace: Workspace,
    limits: Limits,
    leaf: NDArray[np.int64],
    value: float,
    allowed: NDArray[np.bool_],
    split: NDArray[np.float64],
    scratch: NDArray[np.float64],
) -> float:
    """Return what a leaf gains by a given split; 0 if it cannot or may not take it."""
    packing = packing_of(data)
    totals = leaf_totals(leaf, packing, limits.l2)
    column, cut = int(split[COLUMN]), int(split[CUT])
    if leaf[SPLITTABLE] == 0 or totals.hessian <= 0.0:
        return 0.0
    if len(allowed) > 0 and not allowed[column]:
        return 0.0
    start, row = data.bin_offsets[column], leaf[HISTOGRAM]
    end = start + data.n_bins[column] + 1
    hessians = workspace.hessian_histograms[0]
    if packing.separate_hessians:
        hessians = workspace.hessian_histograms[row, start:end]
    sums, gains = scratch[:2].view(np.int64), scratch[2]
    # The same sums as in the search, to the last bit; those of the cuts before come along.
    column_gains(
        workspace.histograms[row, start:end], hessians, cut + 1, int(split[MISSING]) == LEFT,
        packing, totals, limits, sums, gains,
    )  # fmt: skip
    direction = data.directions[column] if len(data.directions) > 0 else 0
    if limits.limits_values or direction != 0:
        constrain_gains(
            cut + 1, data.n_bins[column] - 1, packing, totals, limits, value, direction, sums,
            gains,
        )  # fmt: skip
    correction = parent_correction(totals, limits.l2)
    gain: float = max(gains[cut] * totals.hessian + correction, 0.0)
    return gain


@kernel
def missing_shift(n_bins: int, missing_left: bool) -> int:
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
def partition_rows(
    rows: NDArray[np.int32],
    column: NDArray[np.uint8],
    shift: int,
    bound: int,
    right_rows: NDArray[np.int32],
) -> int:
    """Bring the rows that go left before those that go right; return how many go left.

    A row goes left if its bin plus ``shift``, as a byte, is at most ``bound``: see
    `missing_shift`. Each row is written to both sides, and only one side advances, because a branch
    that depends on the data would be mispredicted half of the time. The left side is written over
    rows that were read already; ``right_rows`` is scratch.
    """
    # Unsigned, because signed indexes are first checked for counting from the end.
    n_left = np.uint64(0)
    n_right = np.uint64(0)
    for k in range(len(rows)):
        row = rows[k]
        goes_left = ((column[row] + shift) & 255) <= bound
        rows[n_left] = row
        right_rows[n_right] = row
        n_left += np.uint64(goes_left)
        n_right += np.uint64(not goes_left)
    copy_rows(right_rows[:n_right], rows[n_left:])
    return np.int64(n_left)
