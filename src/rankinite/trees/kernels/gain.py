"""Gains: what a leaf gains by each cut of a column, from histograms.

With G and H the sums of gradients and hessians of a leaf (each document's hessian is 1 unless
hessians are used), a split into l and r gains

    G_l^2 / H_l + G_r^2 / H_r - G^2 / H  =  (G_l - H_l G / H)^2 H / (H_l H_r).

The right side needs a single division per cut and loses no digits to the difference of large
squares. Its factor H, the same for all cuts, is left out until the best cut is known.

L2 regularisation adds a constant r to the hessian of every leaf. With r in H_l and in H_r the same
formula holds for H + 2 r; what the leaf itself has is G^2 / (H + r), and the difference, which is
the same for all cuts, is added to the gain of the best one: see `parent_correction`.

A leaf whose value v is not the best one, v* = G / (H + r), because values are limited or smoothed,
has (H + r) (v - v*)^2 less. `constrain_gains` takes that from the gains of all cuts, and forbids
those that a monotone constraint does not allow. It runs only if there is something to constrain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import float_of_bits, inlined_kernel, kernel
from rankinite.trees.kernels.histogram import GRADIENT, HESSIAN, Packing, docs_in

# An int64 below 2^51 added to these bits is a float64: the processor has no vector instruction
# that converts. Subtracting the same number as a float leaves the converted one.
MAGIC_BITS = np.int64(0x4338000000000000)
MAGIC = 6755399441055744.0


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
    category_smoothing
        What is added to the hessian of a category when categories are compared, in the same units.
    symmetric
        Whether all leaves of a level get the same split; otherwise the leaf with the largest gain
        is split next.
    max_step
        Largest absolute value of a leaf, in units of packed gradients over packed hessians.
    path_smooth
        This many documents with the value of the parent are added to every leaf.
    limits_values
        Whether either of the two has an effect.
    """

    n_leaves: int
    max_depth: int
    min_docs: int
    min_gain: float
    l2: float
    category_smoothing: float
    symmetric: bool
    max_step: float
    path_smooth: float
    limits_values: bool


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
    return totals_of(leaf[GRADIENT], leaf[HESSIAN], packing, l2)


@kernel
def totals_of(packed: int, separate_hessian: int, packing: Packing, l2: float) -> Totals:
    """Return the sums of documents from that of their packed gradients.

    The sum of their hessians counts if they have histograms of their own.
    """
    n_docs = float(docs_in(packed, packing.count_bits))
    gradient = float(packed >> (packing.count_bits + packing.hessian_bits))
    hessian = n_docs
    if packing.separate_hessians:
        hessian = float(separate_hessian)
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


@kernel
def limited_value(
    gradient: float,
    hessian: float,
    n_docs: float,
    parent: float,
    max_step: float,
    path_smooth: float,
) -> float:
    """Return the value of a leaf: at most so large, then drawn towards that of its parent.

    ``hessian`` includes the L2 term; ``parent`` is the value of the parent, smoothed like this.
    """
    value = min(max(gradient / hessian, -max_step), max_step)
    share = n_docs / (n_docs + path_smooth) if path_smooth > 0.0 else 1.0
    return value * share + parent * (1.0 - share)


@kernel
def leaf_value(
    leaf: NDArray[np.int64], packing: Packing, limits: Limits, parent: float, path_smooth: float
) -> float:
    """Return the limited value of a leaf from its row of the table of leaves."""
    totals = leaf_totals(leaf, packing, limits.l2)
    hessian = totals.hessian - limits.l2
    if hessian <= 0.0:
        return 0.0
    value: float = limited_value(
        totals.gradient, hessian, totals.n_docs, parent, limits.max_step, path_smooth
    )
    return value


@kernel
def constrain_gains(
    n_cuts: int,
    n_ordered: int,
    packing: Packing,
    totals: Totals,
    limits: Limits,
    value: float,
    direction: int,
    sums: NDArray[np.int64],
    gains: NDArray[np.float64],
) -> None:
    """Take from gains what limited values cost; -1 where values go against the direction.

    ``sums`` and ``gains`` are what `column_gains` wrote; ``value`` is the value of the leaf
    itself. The cuts from ``n_ordered`` on divide values from missing ones, which have no order.
    """
    left_sums, left_hessians = sums[0], sums[1]
    count_mask = low_bits(packing.count_bits)
    gradient_shift = packing.count_bits + packing.hessian_bits
    hessian, l2 = totals.hessian, limits.l2
    max_step, path_smooth = limits.max_step, limits.path_smooth
    leaf_loss = value * (hessian - l2) - totals.gradient
    leaf_loss *= leaf_loss / (hessian - l2) if hessian > l2 else 0.0
    for b in range(n_cuts):
        if gains[b] < 0.0:
            continue
        packed = left_sums[b]
        left_docs = float(packed & count_mask)
        left_hessian = left_docs + l2
        if packing.separate_hessians:
            left_hessian = float(left_hessians[b]) + l2
        elif packing.hessian_bits > 0:
            left_hessian = float((packed >> packing.count_bits) & low_bits(packing.hessian_bits))
            left_hessian += l2
        right_hessian = hessian - left_hessian
        left_gradient = float(packed >> gradient_shift)
        right_gradient = totals.gradient - left_gradient
        left = limited_value(left_gradient, left_hessian, left_docs, value, max_step, path_smooth)
        right = limited_value(
            right_gradient, right_hessian, totals.n_docs - left_docs, value, max_step,
            path_smooth,
        )  # fmt: skip
        falls = b < n_ordered and direction * (right - left) < 0.0
        # Values that are both as large as they may be differ by nothing, or by rounding.
        if falls or left == right:
            gains[b] = -1.0
        elif limits.limits_values:
            left_loss = left * left_hessian - left_gradient
            right_loss = right * right_hessian - right_gradient
            loss = left_loss * left_loss / left_hessian + right_loss * right_loss / right_hessian
            gains[b] += (leaf_loss - loss) / hessian


# Inlined, because it is called for every leaf and column, and arrays that are handed to a function
# cost reference counts.
@inlined_kernel
def gains_by_side(
    histogram: NDArray[np.int64],
    hessians: NDArray[np.int64],
    packing: Packing,
    totals: Totals,
    limits: Limits,
    value: float,
    direction: int,
    sums: NDArray[np.int64],
    right_gains: NDArray[np.float64],
    left_gains: NDArray[np.float64],
) -> int:
    """Write the gains of a column with missing values to either side; return how many cuts it has.

    Without missing values the gains are the same, and only those to the right are written. With
    them there are as many cuts as bins: the last sends all values left and the missing ones right.
    ``value`` is that of the leaf, ``direction`` the monotone constraint of the column.
    """
    n = len(histogram) - 1
    has_missing = docs_in(histogram[n], packing.count_bits) > 0
    n_cuts = n if has_missing else n - 1
    constrained = limits.limits_values or direction != 0
    column_gains(histogram, hessians, n_cuts, False, packing, totals, limits, sums, right_gains)
    if constrained:
        constrain_gains(n_cuts, n - 1, packing, totals, limits, value, direction, sums, right_gains)
    if has_missing:
        column_gains(histogram, hessians, n - 1, True, packing, totals, limits, sums, left_gains)
        if constrained:
            constrain_gains(
                n - 1, n - 1, packing, totals, limits, value, direction, sums, left_gains
            )
    return n_cuts
