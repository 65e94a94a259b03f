"""Arguments of the tree kernels, bundled: what a tree is grown on, its limits, scratch, results.

Numba compiles a named tuple of arrays like its members, so a bundle costs nothing when it is
passed on. Reading a member in an inner loop would cost a reference count each time; kernels
therefore take the arrays they need out of a bundle before their loops begin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Columns of the table of leaves: the range of rows, the depth, the sums of packed gradients and of
# hessians, the row of the histogram pool, the split and the side that the leaf hangs on, and
# whether the leaf is large and shallow enough to be split.
START, END, DEPTH, GRADIENT, HESSIAN, HISTOGRAM, PARENT, SIDE, SPLITTABLE = range(9)
LEAF_FIELDS = 9
# Columns of a split candidate. Integers below 2^53 are floats too, so one array holds all four.
GAIN, COLUMN, CUT, MISSING = range(4)
CANDIDATE_FIELDS = 4
# Columns of a split of the grown tree. A child of at least 0 is a split, others are the complement
# of a leaf.
SPLIT_COLUMN, SPLIT_CUT, SPLIT_MISSING, LEFT_CHILD, RIGHT_CHILD = range(5)
SPLIT_FIELDS = 5

# Where a split sends missing values; UNSEEN if the node has none.
RIGHT = 0
LEFT = 1
UNSEEN = 2


class TreeData(NamedTuple):
    """Binned features and packed gradients of all rows. All arrays are contiguous.

    Attributes
    ----------
    bins, more_bins
        Bins of the main and of the appended columns, row by row, flattened: histograms read whole
        rows.
    columns, more_columns
        The same bins column by column: a split reads a single column.
    n_bins
        Number of bins of each column, without the bin for missing values.
    split_bins
        The same, but 0 for columns that this tree may not split.
    bin_offsets
        Position of each column's first bin in a histogram. Columns that may not be split take no
        space.
    gradients
        Packed gradient of each row: gradient << count_bits, plus the number of documents.
    hessians
        Hessian of each row as an integer; empty unless ``uses_hessians``.
    uses_hessians
        Whether gains are measured by hessians. Otherwise each document counts 1.
    count_bits
        Number of low bits of a packed gradient that hold the number of documents.
    """

    bins: NDArray[np.uint8]
    more_bins: NDArray[np.uint8]
    columns: NDArray[np.uint8]
    more_columns: NDArray[np.uint8]
    n_bins: NDArray[np.int64]
    split_bins: NDArray[np.int64]
    bin_offsets: NDArray[np.int64]
    gradients: NDArray[np.int64]
    hessians: NDArray[np.int64]
    uses_hessians: bool
    count_bits: int


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
    symmetric
        Whether all leaves of a level get the same split; otherwise the leaf with the largest gain
        is split next.
    """

    n_leaves: int
    max_depth: int
    min_docs: int
    min_gain: float
    symmetric: bool


class Workspace(NamedTuple):
    """Memory that is used again for each tree.

    Attributes
    ----------
    rows
        Rows of the tree; growing brings them into the order of the leaves.
    left_rows, right_rows
        Scratch of the same length for partitioning.
    histograms, hessian_histograms
        Pools with one histogram per leaf; that of hessians has no columns unless they are used.
    tiles, tile_values
        Bins of some rows, transposed, and their gradients or hessians; one row per thread.
    """

    rows: NDArray[np.int32]
    left_rows: NDArray[np.int32]
    right_rows: NDArray[np.int32]
    histograms: NDArray[np.int64]
    hessian_histograms: NDArray[np.int64]
    tiles: NDArray[np.uint64]
    tile_values: NDArray[np.int64]


class Frontier(NamedTuple):
    """Leaves of the tree as it grows.

    Attributes
    ----------
    leaves
        Table of the leaves, see ``LEAF_FIELDS``.
    best
        Best split of each leaf, see ``CANDIDATE_FIELDS``; unused by symmetric trees.
    siblings
        The leaves that were made last: the smaller, and the larger or -1.
    candidates
        Best splits that each thread found in its columns, for two leaves at most.
    """

    leaves: NDArray[np.int64]
    best: NDArray[np.float64]
    siblings: NDArray[np.int64]
    candidates: NDArray[np.float64]


class Totals(NamedTuple):
    """Sums over the documents of a leaf, as floats.

    Attributes
    ----------
    n_docs, gradient
        Number of documents and sum of their gradients.
    hessian
        Sum of their hessians; the number of documents if gains are measured without.
    """

    n_docs: float
    gradient: float
    hessian: float


class GrownTree(NamedTuple):
    """A tree as it was grown: splits and leaves in the order in which they were made.

    Attributes
    ----------
    splits
        Table of the splits, see ``SPLIT_FIELDS``.
    gains, docs
        Gain and number of documents of each split.
    leaf_docs
        Number of documents of each leaf.
    """

    splits: NDArray[np.int64]
    gains: NDArray[np.float64]
    docs: NDArray[np.int64]
    leaf_docs: NDArray[np.int64]


class Layout(NamedTuple):
    """Order of a grown tree's splits and leaves in a `Tree`: parent, left subtree, right subtree.

    Attributes
    ----------
    order, leaf_order
        The split that comes k-th, and the leaf that is k-th from the left.
    missing_left
        Whether each split, in its new order, sends missing values to the left.
    first, right
        First leaf of each split's subtree, and first leaf of its right subtree.
    """

    order: NDArray[np.int64]
    leaf_order: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    first: NDArray[np.uint16]
    right: NDArray[np.uint16]


class BinnedSplits(NamedTuple):
    """Splits of a tree, or of many, as comparisons of bytes; see `partition.missing_shift`.

    Attributes
    ----------
    column
        Column that each split compares.
    shift, bound
        A row goes right if its bin plus the shift, as a byte, is above the bound.
    first, right
        First leaf of each split's subtree, and first leaf of its right subtree; of the same type
        as the leaves of rows.
    """

    column: NDArray[np.int64]
    shift: NDArray[np.uint8]
    bound: NDArray[np.uint8]
    first: NDArray[Any]
    right: NDArray[Any]


class ForestArrays(NamedTuple):
    """All trees of a forest, one behind the other, over bins made of their own thresholds.

    Attributes
    ----------
    features
        Features that some split asks for, which are the columns of the splits.
    cuts, n_bins
        Cut points of these columns, and their numbers of bins.
    column, shift, bound, first, right
        The splits, as in `BinnedSplits`.
    values
        Values of the leaves.
    split_offsets, value_offsets
        Where the splits and the leaves of each tree begin.
    """

    features: NDArray[np.int64]
    cuts: NDArray[np.float32]
    n_bins: NDArray[np.int64]
    column: NDArray[np.int32]
    shift: NDArray[np.uint8]
    bound: NDArray[np.uint8]
    first: NDArray[Any]
    right: NDArray[Any]
    values: NDArray[np.float64]
    split_offsets: NDArray[np.int64]
    value_offsets: NDArray[np.int64]
