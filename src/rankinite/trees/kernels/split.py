"""Splits: the best one of a leaf, or of all leaves of a level, and the rows on either side of it.

Splits are found in histograms. With G and H the sums of gradients and hessians of a leaf (each
document's hessian is 1 unless hessians are used), a split into l and r gains

    G_l^2 / H_l + G_r^2 / H_r - G^2 / H  =  (G_l - H_l G / H)^2 H / (H_l H_r).

The right side needs a single division per cut and loses no digits to the difference of large
squares. Its factor H, the same for all cuts, is left out until the best cut is known.

L2 regularisation adds a constant r to the hessian of every leaf. With r in H_l and in H_r the same
formula holds for H + 2 r; what the leaf itself has is G^2 / (H + r), and the difference, which is
the same for all cuts, is added to the gain of the best one: see `parent_correction`.

With noise, the column is not chosen by its gain, but by sqrt(gain) plus a random number that is as
large as the root of the gain of a split of pure noise. So splits that data cannot tell apart win
in turn, and what one tree fits by accident the next one does not.

The split that is taken partitions the rows of its leaf: those that go left come first, so that the
rows of every leaf are one range.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import float_of_bits, inlined_kernel, kernel, parallel_kernel, prange
from rankinite.trees.kernels.histogram import (
    DEPTH,
    GRADIENT,
    HESSIAN,
    HISTOGRAM,
    SPLITTABLE,
    Packing,
    TreeData,
    Workspace,
    docs_in,
    packing_of,
)

# Columns of a split candidate. Integers below 2^53 are floats too, so one array holds all five.
# The column with the largest score is taken; without noise that is the one with the largest gain.
GAIN, COLUMN, CUT, MISSING, SCORE = range(5)
CANDIDATE_FIELDS = 5
# Where a split sends missing values; UNSEEN if the node has none.
RIGHT = 0
LEFT = 1
UNSEEN = 2

# An int64 below 2^51 added to these bits is a float64: the processor has no vector instruction
# that converts. Subtracting the same number as a float leaves the converted one.
MAGIC_BITS = np.int64(0x4338000000000000)
MAGIC = 6755399441055744.0
# Cuts of a column at most: 255 bins, and one between them and the missing values.
MAX_CUTS = 256
# Rows of scratch: packed sums and hessians to the left of each cut; gains of a leaf with missing
# values to the right and to the left; and such gains of a level.
SCRATCH_ROWS = 6
# Fewer rows are partitioned by one thread before the others would have woken up.
PARALLEL_ROWS = 8192


class Limits(NamedTuple):
    """Where growth stops, and which leaf is split next.

    Attributes
    ----------
    n_leaves, max_depth
        Number of leaves and depth at most.
    min_docs
        Number of documents of a leaf at least.
    min_gain
        A split must gain more than this, in units of the packed gradients.
    l2
        What is added to the hessian of every leaf, in units of the packed hessians.
    symmetric
        Whether all leaves of a level get the same split; otherwise the leaf with the largest gain
        is split next.
    """

    n_leaves: int
    max_depth: int
    min_docs: int
    min_gain: float
    l2: float
    symmetric: bool


class Totals(NamedTuple):
    """Sums over the documents of a leaf, as floats.

    Attributes
    ----------
    n_docs, gradient
        Number of documents and sum of their gradients.
    hessian
        Sum of their hessians, or the number of documents if gains are measured without; plus twice
        the L2 term, one for each of the two leaves that a split would make.
    """

    n_docs: float
    gradient: float
    hessian: float


@inlined_kernel
def float_of(integer: int) -> float:
    """Return an integer between -2^51 and 2^51 as a float, in a way that can be vectorised."""
    number: float = float_of_bits(integer + MAGIC_BITS) - MAGIC
    return number


@inlined_kernel
def low_bits(n: int) -> int:
    """Return a mask of this many bits."""
    return (np.int64(1) << n) - 1


@kernel
def leaf_totals(leaf: NDArray[np.int64], packing: Packing, l2: float) -> Totals:
    """Return the sums of a leaf from its row of the table of leaves."""
    packed = leaf[GRADIENT]
    n_docs = float(docs_in(packed, packing.count_bits))
    gradient = float(packed >> (packing.count_bits + packing.hessian_bits))
    hessian = n_docs
    if packing.separate_hessians:
        hessian = float(leaf[HESSIAN])
    elif packing.hessian_bits > 0:
        hessian = float((packed >> packing.count_bits) & low_bits(packing.hessian_bits))
    return Totals(n_docs, gradient, hessian + 2.0 * l2)


@kernel
def parent_correction(totals: Totals, l2: float) -> float:
    """Return what to add to the gain of a split because the leaf itself has its L2 term only once.

    Never above 0: a split must be worth a second term.
    """
    square = totals.gradient * totals.gradient
    return square / totals.hessian - square / (totals.hessian - l2) if l2 > 0.0 else 0.0


@kernel
def running_sums(
    histogram: NDArray[np.int64], n_cuts: int, missing_left: bool, sums: NDArray[np.int64]
) -> None:
    """Write what is to the left of each cut of a column.

    A cut at b sends bins 0 to b to the left, and the missing values too, which have the last bin
    of the histogram, if ``missing_left``.
    """
    total = histogram[len(histogram) - 1] if missing_left else np.int64(0)
    for b in range(n_cuts):
        total += histogram[b]
        sums[b] = total


@kernel
def column_gains(
    histogram: NDArray[np.int64],
    hessians: NDArray[np.int64],
    n_cuts: int,
    missing_left: bool,
    packing: Packing,
    totals: Totals,
    limits: Limits,
    sums: NDArray[np.int64],
    gains: NDArray[np.float64],
) -> None:
    """Write what a leaf gains by each cut of a column, over H; -1 where a side is too small.

    ``sums`` is scratch of two rows. Running sums cannot be vectorised; they are written out first,
    so that all that follows can.
    """
    left_sums, left_hessians = sums[0], sums[1]
    running_sums(histogram, n_cuts, missing_left, left_sums)
    separate = packing.separate_hessians
    if separate:
        running_sums(hessians, n_cuts, missing_left, left_hessians)
    count_mask = low_bits(packing.count_bits)
    gradient_shift = packing.count_bits + packing.hessian_bits
    # Without hessians every document counts 1: the field of the hessian is that of the count.
    hessian_shift, hessian_mask = 0, count_mask
    if packing.hessian_bits > 0:
        hessian_shift, hessian_mask = packing.count_bits, low_bits(packing.hessian_bits)
    n_docs, hessian = totals.n_docs, totals.hessian
    min_docs, l2 = limits.min_docs, limits.l2
    mean = totals.gradient / hessian
    for b in range(n_cuts):
        packed = left_sums[b]
        left_docs = float_of(packed & count_mask)
        left = left_hessians[b] if separate else (packed >> hessian_shift) & hessian_mask
        left_hessian = float_of(left) + l2
        surplus = float_of(packed >> gradient_shift) - left_hessian * mean
        # `&` instead of `and`, which would branch, and the loop would not be vectorised.
        enough = (left_docs >= min_docs) & (n_docs - left_docs >= min_docs)
        product = left_hessian * (hessian - left_hessian)
        gains[b] = surplus * surplus / product if enough & (product > 0.0) else -1.0


# Inlined, because it is called for every leaf and column, and arrays that are handed to a function
# cost reference counts.
@inlined_kernel
def gains_by_side(
    histogram: NDArray[np.int64],
    hessians: NDArray[np.int64],
    packing: Packing,
    totals: Totals,
    limits: Limits,
    sums: NDArray[np.int64],
    right_gains: NDArray[np.float64],
    left_gains: NDArray[np.float64],
) -> int:
    """Write the gains of a column with missing values to either side; return how many cuts it has.

    Without missing values the gains are the same, and only those to the right are written. With
    them there are as many cuts as bins: the last sends all values left and the missing ones right.
    """
    n = len(histogram) - 1
    has_missing = docs_in(histogram[n], packing.count_bits) > 0
    n_cuts = n if has_missing else n - 1
    column_gains(histogram, hessians, n_cuts, False, packing, totals, limits, sums, right_gains)
    if has_missing:
        column_gains(histogram, hessians, n - 1, True, packing, totals, limits, sums, left_gains)
    return n_cuts


@kernel
def argmax_gain(gains: NDArray[np.float64], n: int) -> tuple[int, float]:
    """Return the index and value of the first of the largest of n gains; -1 if none is above 0."""
    best = -1
    best_gain = 0.0
    for b in range(n):
        if gains[b] > best_gain:
            best_gain = gains[b]
            best = b
    return best, best_gain


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
def best_leaf_split(
    data: TreeData,
    workspace: Workspace,
    limits: Limits,
    leaf: NDArray[np.int64],
    first: int,
    last: int,
    scratch: NDArray[np.float64],
    candidate: NDArray[np.float64],
) -> None:
    """Write the best split of a leaf among the columns first to last; gain 0 if there is none.

    Of equal scores the first column, the first bin, and missing values to the right win. Columns
    are compared by the score that is written, to the last bit, as those of other threads will be.
    """
    clear_candidate(candidate)
    packing = packing_of(data)
    separate = packing.separate_hessians
    totals = leaf_totals(leaf, packing, limits.l2)
    if leaf[SPLITTABLE] == 0 or totals.hessian <= 0.0:
        return
    split_bins, bin_offsets = data.split_bins, data.bin_offsets
    leaf_histogram = workspace.histograms[leaf[HISTOGRAM]]
    leaf_hessians = workspace.hessian_histograms[leaf[HISTOGRAM] if separate else 0]
    sums, right_gains, left_gains = scratch[:2].view(np.int64), scratch[2], scratch[3]
    noise = data.noise[leaf[DEPTH] % len(data.noise)]
    correction = parent_correction(totals, limits.l2)
    for column in range(first, last):
        n = split_bins[column]
        if n == 0:
            continue
        start = bin_offsets[column]
        histogram = leaf_histogram[start : start + n + 1]
        hessians = leaf_hessians[start : start + n + 1] if separate else leaf_hessians
        n_cuts = gains_by_side(
            histogram, hessians, packing, totals, limits, sums, right_gains, left_gains
        )
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
    first: int,
    last: int,
    scratch: NDArray[np.float64],
    candidate: NDArray[np.float64],
) -> None:
    """Write the split of the columns first to last that all leaves together gain most by.

    Gains are added in the order of the leaves, so that their sum does not depend on the threads.
    Of equal scores the first column, the first bin, and missing values to the right win.
    """
    clear_candidate(candidate)
    packing = packing_of(data)
    separate = packing.separate_hessians
    split_bins, bin_offsets = data.split_bins, data.bin_offsets
    histograms, hessian_histograms = workspace.histograms, workspace.hessian_histograms
    sums, right_gains, left_gains = scratch[:2].view(np.int64), scratch[2], scratch[3]
    to_right, to_left = scratch[4], scratch[5]
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
        start, missing_bin = bin_offsets[column], bin_offsets[column] + n
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
            row = leaves[leaf, HISTOGRAM]
            histogram = histograms[row, start : missing_bin + 1]
            hessians = hessian_histograms[0]
            if separate:
                hessians = hessian_histograms[row, start : missing_bin + 1]
            n_cuts = gains_by_side(
                histogram, hessians, packing, totals, limits, sums, right_gains, left_gains
            )
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
    split: NDArray[np.float64],
    scratch: NDArray[np.float64],
) -> float:
    """Return what a leaf gains by a given split; 0 if a side would have too few documents."""
    packing = packing_of(data)
    totals = leaf_totals(leaf, packing, limits.l2)
    if leaf[SPLITTABLE] == 0 or totals.hessian <= 0.0:
        return 0.0
    column, cut = int(split[COLUMN]), int(split[CUT])
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
