"""Splits of categorical columns: which categories go left.

With g and h the sums of a category's gradients and hessians in a leaf, and m the mean gradient of
the leaf (gradients over hessians), a category is worth g - m h more than the leaf. Of a few
documents that is mostly chance. So it is shrunk by the share h / (h + s), with the smoothing s: to
what documents of this category can be expected to have that training has not seen. Categories are
sorted by it, per hessian: by (g - m h) / (h + s). The left side of a split is the beginning of this
order, and the best beginning is the best of all sets of categories (Fisher 1958; without L2
regularisation). Its gain is that of the shrunk gradients: the more categories of few documents a
split is made of, the less it promises.

The leaves of a level of a symmetric tree have one order. Then g - m h and h are sums over the
leaves, where m is the mean of each leaf by itself.

The bin of missing values is one more category here: it has a place in the order. Categories that no
document of the leaves has go where missing values go, and both to the larger side if there are no
missing values either.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel
from rankinite.trees.bins import SET_BYTES
from rankinite.trees.kernels.gain import (
    Limits,
    Totals,
    leaf_totals,
    limited_value,
    parent_correction,
    totals_of,
)
from rankinite.trees.kernels.histogram import (
    HISTOGRAM,
    SPLITTABLE,
    Packing,
    TreeData,
    Workspace,
    docs_in,
    packing_of,
)

# Rows of scratch: the order of the bins, what each is worth, and its share; gains of a level.
ORDER, WORTH, SHARE, LEVEL_GAINS = range(4)
# Instead of 0, which cannot be divided by.
SMALLEST_HESSIAN = 1e-300


@inlined_kernel
def bin_totals(
    histogram: NDArray[np.int64], hessians: NDArray[np.int64], b: int, packing: Packing
) -> Totals:
    """Return the sums over the documents of a leaf that have this bin of a column."""
    hessian: int = hessians[b] if packing.separate_hessians else np.int64(0)
    return totals_of(histogram[b], hessian, packing, 0.0)


@inlined_kernel
def column_histogram(
    data: TreeData, pool: NDArray[np.int64], leaf: NDArray[np.int64], column: int
) -> NDArray[np.int64]:
    """Return the histogram of a leaf's column; an empty one if the pool, of hessians, is unused."""
    start = data.bin_offsets[column]
    return pool[min(leaf[HISTOGRAM], len(pool) - 1), start : start + data.n_bins[column] + 1]


@inlined_kernel
def takes_part(leaf: NDArray[np.int64], allowed: NDArray[np.bool_], column: int) -> bool:
    """Return whether a leaf can be split, and constraints let it be split by the column."""
    return leaf[SPLITTABLE] == 1 and (len(allowed) == 0 or allowed[column])


@kernel
def sort_bins(order: NDArray[np.int64], worth: NDArray[np.float64], n: int) -> None:
    """Sort n bins by what they are worth, the largest first; of equal ones the first bin.

    Shell's method: nothing is allocated, and there are 256 bins at most.
    """
    for gap in (57, 23, 10, 4, 1):
        for k in range(gap, n):
            b = order[k]
            j = k
            while j >= gap:
                other = order[j - gap]
                if worth[other] > worth[b] or (worth[other] == worth[b] and other < b):
                    break
                order[j] = other
                j -= gap
            order[j] = b


@kernel
def order_categories(
    data: TreeData,
    workspace: Workspace,
    limits: Limits,
    leaves: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    column: int,
    scratch: NDArray[np.float64],
) -> int:
    """Write the bins that documents of the leaves have, in their order; return how many.

    The share that is left of each bin's surplus is written, too.
    """
    n_bins = data.n_bins[column] + 1
    order, worth, share = scratch[ORDER].view(np.int64), scratch[WORTH], scratch[SHARE]
    packing = packing_of(data)
    hessians = scratch[LEVEL_GAINS]
    for b in range(n_bins):
        worth[b], hessians[b], share[b] = 0.0, 0.0, -1.0
    for k in range(len(leaves)):
        totals = leaf_totals(leaves[k], packing, 0.0)
        if not takes_part(leaves[k], allowed[k], column) or totals.hessian <= 0.0:
            continue
        mean = totals.gradient / totals.hessian
        histogram = column_histogram(data, workspace.histograms, leaves[k], column)
        separate = column_histogram(data, workspace.hessian_histograms, leaves[k], column)
        for b in range(n_bins):
            some = bin_totals(histogram, separate, b, packing)
            if some.n_docs > 0.0:
                worth[b] += some.gradient - mean * some.hessian
                hessians[b] += some.hessian
                share[b] = 1.0
    n = 0
    for b in range(n_bins):
        if share[b] > 0.0:
            smoothed = max(hessians[b] + limits.category_smoothing, SMALLEST_HESSIAN)
            worth[b] /= smoothed
            if limits.category_smoothing > 0.0:
                share[b] = hessians[b] / smoothed
            order[n] = b
            n += 1
    sort_bins(order, worth, n)
    return n


@kernel
def shrunk_gradient(some: Totals, mean: float, share: float) -> float:
    """Return the gradients of some documents of a leaf, with a share of their surplus."""
    return mean * some.hessian + share * (some.gradient - mean * some.hessian)


@kernel
def add_category_gains(
    data: TreeData,
    workspace: Workspace,
    limits: Limits,
    leaf: NDArray[np.int64],
    value: float,
    allowed: NDArray[np.bool_],
    column: int,
    n: int,
    scratch: NDArray[np.float64],
    total: NDArray[np.float64],
) -> None:
    """Add what a leaf gains if the first k + 1 of n ordered bins go left, for each k < n - 1.

    Nothing is added where a side would have too few documents or the leaf would lose. ``value`` is
    that of the leaf, if values are limited.
    """
    order, share = scratch[ORDER].view(np.int64), scratch[SHARE]
    packing = packing_of(data)
    # As in `column_gains`: the hessian has the L2 term of both sides.
    totals = leaf_totals(leaf, packing, limits.l2)
    if not takes_part(leaf, allowed, column) or totals.hessian <= 0.0:
        return
    mean = totals.gradient / max(totals.hessian - 2.0 * limits.l2, SMALLEST_HESSIAN)
    histogram = column_histogram(data, workspace.histograms, leaf, column)
    separate = column_histogram(data, workspace.hessian_histograms, leaf, column)
    gradient = 0.0
    for k in range(n):
        some = bin_totals(histogram, separate, order[k], packing)
        gradient += shrunk_gradient(some, mean, share[order[k]])
    totals = Totals(totals.n_docs, gradient, totals.hessian)
    correction = parent_correction(totals, limits.l2)
    mean_after = gradient / totals.hessian
    left_docs, left_gradient, left_hessian = 0.0, 0.0, limits.l2
    for k in range(n - 1):
        some = bin_totals(histogram, separate, order[k], packing)
        left_docs += some.n_docs
        left_gradient += shrunk_gradient(some, mean, share[order[k]])
        left_hessian += some.hessian
        enough = left_docs >= limits.min_docs and totals.n_docs - left_docs >= limits.min_docs
        product = left_hessian * (totals.hessian - left_hessian)
        if enough and product > 0.0:
            surplus = left_gradient - left_hessian * mean_after
            gain = surplus * surplus / product * totals.hessian + correction
            if limits.limits_values:
                left = Totals(left_docs, left_gradient, left_hessian)
                gain -= cost_of_limits(left, totals, limits, value)
            total[k] += max(gain, 0.0)


@kernel
def cost_of_limits(left: Totals, totals: Totals, limits: Limits, value: float) -> float:
    """Return what limited values take from the gain of a split, as in `constrain_gains`.

    Hessians of the left side have the L2 term, those of the leaf have it twice.
    """
    right = Totals(
        totals.n_docs - left.n_docs, totals.gradient - left.gradient, totals.hessian - left.hessian
    )
    cost = 0.0
    for side in (left, right):
        limited = limited_value(
            side.gradient, side.hessian, side.n_docs, value, limits.max_step, limits.path_smooth
        )
        cost += (limited * side.hessian - side.gradient) ** 2 / side.hessian
    hessian = totals.hessian - limits.l2
    return cost - (value * hessian - totals.gradient) ** 2 / max(hessian, SMALLEST_HESSIAN)


@kernel
def category_split_gain(
    data: TreeData,
    workspace: Workspace,
    limits: Limits,
    leaf: NDArray[np.int64],
    value: float,
    allowed: NDArray[np.bool_],
    column: int,
    cut: int,
    n: int,
    scratch: NDArray[np.float64],
) -> float:
    """Return what a leaf gains by the split of its level, whose order is in ``scratch``."""
    gains = scratch[LEVEL_GAINS]
    gains[cut] = 0.0
    add_category_gains(data, workspace, limits, leaf, value, allowed, column, n, scratch, gains)
    gain: float = gains[cut]
    return gain


@kernel
def category_gains(
    data: TreeData,
    workspace: Workspace,
    limits: Limits,
    leaves: NDArray[np.int64],
    values: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    column: int,
    scratch: NDArray[np.float64],
) -> int:
    """Write what the leaves together gain by each beginning of their order; return how many."""
    n = order_categories(data, workspace, limits, leaves, allowed, column, scratch)
    gains = scratch[LEVEL_GAINS]
    for k in range(n - 1):
        gains[k] = 0.0
    for k in range(len(leaves)):
        add_category_gains(
            data, workspace, limits, leaves[k], values[k], allowed[k], column, n, scratch, gains
        )
    return max(n - 1, 0)


@kernel
def write_left_set(
    data: TreeData,
    workspace: Workspace,
    leaves: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    column: int,
    cut: int,
    n: int,
    scratch: NDArray[np.float64],
    out: NDArray[np.uint8],
) -> bool:
    """Write the set of the bins that go left by a split; return whether missing values do.

    The bins up to ``cut`` of the order in ``scratch``, of n, and perhaps those that none of the
    leaves has.
    """
    order, share = scratch[ORDER].view(np.int64), scratch[SHARE]
    n_bins = data.n_bins[column]
    n_docs, left_docs = 0, 0
    for leaf in range(len(leaves)):
        if not takes_part(leaves[leaf], allowed[leaf], column):
            continue  # its histogram may not have been counted
        histogram = column_histogram(data, workspace.histograms, leaves[leaf], column)
        for k in range(n):
            some = docs_in(histogram[order[k]], data.count_bits)
            n_docs += some
            left_docs += some if k <= cut else 0
    absent_left = 2 * left_docs >= n_docs
    for k in range(n):
        if order[k] == n_bins:
            absent_left = k <= cut
    for byte in range(SET_BYTES):
        out[byte] = 0
    for b in range(n_bins):
        if share[b] < 0.0 and absent_left:
            out[b >> 3] |= np.uint8(1 << (b & 7))
    for k in range(cut + 1):
        out[order[k] >> 3] |= np.uint8(1 << (order[k] & 7))
    if absent_left:
        out[n_bins >> 3] |= np.uint8(1 << (n_bins & 7))
    return absent_left


@inlined_kernel
def side_of(b: int, left_set: NDArray[np.uint8]) -> int:
    """Return 0 for a bin in the set, which goes left, and 1 for another."""
    side: int = 1 - ((left_set[b >> 3] >> (b & 7)) & 1)
    return side


@kernel
def find_sides(
    bins: NDArray[np.uint8], left_set: NDArray[np.uint8], sides: NDArray[np.uint8]
) -> None:
    """Write the side of each bin: bins, too, of which a numerical split at 0 sends these left."""
    for k in range(len(bins)):
        sides[k] = side_of(bins[k], left_set)
