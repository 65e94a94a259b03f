"""Find the leaf of each row, many rows at a time, by comparing bins.

Splits are in the order parent, left subtree, right subtree; leaves are numbered from left to
right. All rows begin at leaf 0. A row that is at the first leaf of a split's subtree when the split
comes is on the path through it, and moves to the first leaf of the right subtree if it goes right.
Nothing branches, and bins and leaves are bytes, so the processor handles 32 rows at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import LANES, advance_leaves, inlined_kernel, kernel
from rankinite.trees.kernels.binning import encode_rows
from rankinite.trees.kernels.categories import find_sides
from rankinite.trees.kernels.grow import LEFT_CHILD, RIGHT_CHILD, SPLIT_MISSING, GrownTree
from rankinite.trees.kernels.split import LEFT, UNSEEN

# Leaves of this many rows stay in the first-level cache while all splits pass over them.
BLOCK_ROWS = 4096
# The bins of this many documents, for the features that matter, stay in the first-level cache.
BLOCK_DOCS = 256


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
    """Splits of a tree, or of many, as comparisons of bytes; see `missing_shift`.

    Attributes
    ----------
    column
        Column that each split compares.
    shift, bound
        A row goes right if its bin plus the shift, as a byte, is above the bound.
    first, right
        First leaf of each split's subtree, and first leaf of its right subtree; of the same type
        as the leaves of rows.
    set_of, left_sets
        Which set of bins goes left by a categorical split, and the sets; -1 for a numerical split.
        Of a categorical split, shift and bound are 0: they compare sides, see `find_sides`.
    """

    column: NDArray[np.int64]
    shift: NDArray[np.uint8]
    bound: NDArray[np.uint8]
    first: NDArray[Any]
    right: NDArray[Any]
    set_of: NDArray[np.int32]
    left_sets: NDArray[np.uint8]


class ForestArrays(NamedTuple):
    """All trees of a forest, one behind the other, over bins made of their own thresholds.

    Attributes
    ----------
    features
        Features that some split asks for, which are the columns of the splits.
    cuts, n_bins
        Cut points of these columns, and their numbers of bins.
    categorical
        Whether their bins are categories.
    column, shift, bound, first, right, set_of, left_sets
        The splits, as in `BinnedSplits`.
    values
        Values of the leaves.
    split_offsets, value_offsets
        Where the splits and the leaves of each tree begin.
    """

    features: NDArray[np.int64]
    cuts: NDArray[np.float32]
    n_bins: NDArray[np.int64]
    categorical: NDArray[np.bool_]
    column: NDArray[np.int32]
    shift: NDArray[np.uint8]
    bound: NDArray[np.uint8]
    first: NDArray[Any]
    right: NDArray[Any]
    set_of: NDArray[np.int32]
    left_sets: NDArray[np.uint8]
    values: NDArray[np.float64]
    split_offsets: NDArray[np.int64]
    value_offsets: NDArray[np.int64]


def leaf_type(n_leaves: int) -> type[np.generic]:
    """Return the smallest integer type that can number the leaves; splits and rows share it."""
    return np.uint8 if n_leaves <= 256 else np.uint16


@kernel
def count_leaves(splits: NDArray[np.int64], node: int, stack: NDArray[np.int64]) -> int:
    """Return the number of leaves below a node of a grown tree."""
    count = 0
    top = 0
    stack[0] = node
    while top >= 0:
        node = stack[top]
        top -= 1
        if node < 0:
            count += 1
            continue
        stack[top + 1] = splits[node, LEFT_CHILD]
        stack[top + 2] = splits[node, RIGHT_CHILD]
        top += 2
    return count


@kernel
def lay_out(tree: GrownTree, layout: Layout) -> None:
    """Find the order of a grown tree's splits and leaves that `find_leaves` needs.

    Missing values that a split did not see in training go where more documents go.
    """
    splits, docs, leaf_docs = tree.splits, tree.docs, tree.leaf_docs
    order, first = layout.order, layout.first
    n_laid_out = 0
    n_leaves = 0
    # Subtrees on the stack have no leaf in common, so there are never more of them than leaves.
    stack = np.empty(len(splits) + 1, np.int64)
    stack[0] = 0 if len(splits) else ~0
    top = 0
    while top >= 0:
        node = stack[top]
        top -= 1
        if node < 0:
            layout.leaf_order[n_leaves] = ~node
            n_leaves += 1
            continue
        left_child, right_child = splits[node, LEFT_CHILD], splits[node, RIGHT_CHILD]
        left_docs = docs[left_child] if left_child >= 0 else leaf_docs[~left_child]
        missing = splits[node, SPLIT_MISSING]
        layout.missing_left[n_laid_out] = missing == LEFT or (
            missing == UNSEEN and 2 * left_docs >= docs[node]
        )
        order[n_laid_out] = node
        first[n_laid_out] = n_leaves
        n_laid_out += 1
        # What is put down last is taken first: the left subtree comes before the right one.
        stack[top + 1] = right_child
        stack[top + 2] = left_child
        top += 2
    # A right subtree begins behind the leaves of the left one.
    for k in range(n_laid_out):
        layout.right[k] = first[k] + count_leaves(splits, splits[order[k], LEFT_CHILD], stack)


@inlined_kernel
def next_leaf(
    leaf: np.uint8, code: np.uint8, shift: np.uint8, bound: np.uint8, first: int, right: int
) -> Any:
    """Return the leaf of a row after a split, of which it has the bin ``code``."""
    # The sum, cut off to a byte, wraps around as `missing_shift` wants it. `&` instead of `and`,
    # because a branch could not be vectorised.
    goes_right = np.uint8((np.int64(code) + np.int64(shift)) & 255) > bound
    return right if goes_right & (leaf == first) else leaf


@kernel
def find_leaves(
    first_row: int,
    last_row: int,
    columns: NDArray[np.uint8],
    more_columns: NDArray[np.uint8],
    splits: BinnedSplits,
    leaves: NDArray[Any],
) -> None:
    """Write the leaves of some rows of binned columns."""
    column, shift, bound, first, right, set_of, left_sets = splits
    n_columns = columns.shape[0]
    if len(left_sets) == 0 and more_columns.shape[0] == 0:
        codes = columns.reshape(columns.size)
        while last_row - first_row >= LANES:
            advance_leaves(
                codes, columns.shape[1], column, shift, bound, first, right, 0, len(column),
                first_row, True, leaves,
            )  # fmt: skip
            first_row += LANES
    # So few that their leaves stay in the cache from split to split.
    for start in range(first_row, last_row, BLOCK_ROWS):
        end = min(start + BLOCK_ROWS, last_row)
        for row in range(start, end):
            leaves[row] = 0
        sides = np.empty(end - start if len(left_sets) > 0 else 0, np.uint8)
        for k in range(len(column)):
            if column[k] < n_columns:
                bins = columns[column[k], start:end]
            else:
                bins = more_columns[column[k] - n_columns, start:end]
            if set_of[k] >= 0:
                find_sides(bins, left_sets[set_of[k]], sides)
                bins = sides
            here = leaves[start:end]
            for row in range(len(here)):
                here[row] = next_leaf(here[row], bins[row], shift[k], bound[k], first[k], right[k])


@kernel
def sum_leaves(
    first_block: int,
    last_block: int,
    leaves: NDArray[Any],
    rows: NDArray[np.int32],
    gradients: NDArray[np.float64],
    hessians: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    out: NDArray[np.float64],
) -> None:
    """Write the sums of gradients and hessians of the chosen documents of each leaf.

    ``out`` has a matrix for each block of documents, whose number is fixed: their sums, hence the
    values of leaves, are the same for any number of threads. Documents are added in their order,
    not in that of the rows: data given by an index of rows must equal the same data copied out.
    """
    n_docs = len(gradients)
    every = len(chosen) == 0
    direct = len(rows) == 0
    n_blocks = len(out)
    for block in range(first_block, last_block):
        sums = out[block]
        sums[:] = 0.0
        for i in range(n_docs * block // n_blocks, n_docs * (block + 1) // n_blocks):
            if every or chosen[i]:
                leaf = leaves[i] if direct else leaves[rows[i]]
                sums[0, leaf] += gradients[i]
                sums[1, leaf] += hessians[i]


@kernel
def add_values(
    first: int,
    last: int,
    leaves: NDArray[Any],
    rows: NDArray[np.int32],
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    """Add the value of its leaf to each document's score; without ``rows`` document i is row i."""
    if len(rows) == 0:
        for i in range(first, last):
            scores[i] += values[leaves[i]]
    else:
        for i in range(first, last):
            scores[i] += values[leaves[rows[i]]]


@kernel
def find_thresholds(
    thresholds: NDArray[np.float32],
    column: NDArray[np.int64],
    cuts: NDArray[np.float32],
    out: NDArray[np.int64],
) -> None:
    """Write which of its column's cut points each threshold is; infinity is the one behind."""
    for k in range(len(thresholds)):
        column_cuts = cuts[column[k]]
        cut = 0
        # Ends in any case, since cut points are padded with infinity.
        while column_cuts[cut] < thresholds[k]:
            cut += 1
        out[k] = cut


@kernel
def next_set(set_of: NDArray[np.int32], split: int, last: int) -> int:
    """Return the first categorical split from a split on; ``last`` if there is none before it."""
    while split < last and set_of[split] < 0:
        split += 1
    return split


@kernel
def score_rows(
    X: NDArray[np.float32],
    rows: NDArray[np.int64],
    forest: ForestArrays,
    start: int,
    leaves: NDArray[Any],
    scores: NDArray[np.float64],
) -> None:
    """Add the values of all trees to the scores of the rows that begin at ``start``.

    Tree t adds to row ``t % len(scores)`` of the scores. ``leaves`` is scratch for `BLOCK_DOCS`
    leaves. The trees of a document are added in their order: its score does not depend on the
    other documents.
    """
    column, shift, bound = forest.column, forest.shift, forest.bound
    first, right, values = forest.first, forest.right, forest.values
    split_offsets, value_offsets = forest.split_offsets, forest.value_offsets
    n_docs = scores.shape[1]
    n_outputs = np.uint64(len(scores))
    set_of, left_sets = forest.set_of, forest.left_sets
    # The sides of documents by a categorical split are one more column.
    sides = len(forest.features)
    encoded = np.zeros((sides + 1, BLOCK_DOCS), np.uint8)
    codes = encoded.reshape(encoded.size)
    column_values = np.empty(BLOCK_DOCS, np.float32)
    positions = np.empty(BLOCK_DOCS, np.uint64)
    for begin in range(0, n_docs, BLOCK_DOCS):
        n = min(BLOCK_DOCS, n_docs - begin)
        encode_rows(
            X, rows, start + begin, forest.features, forest.cuts, forest.n_bins,
            forest.categorical, column_values, positions, encoded[:, :n],
        )  # fmt: skip
        output = np.uint64(0)
        for tree in range(len(split_offsets) - 1):
            # Leaves behind the last document are computed along, and never read.
            for at in range(0, n, LANES):
                root, last = split_offsets[tree], split_offsets[tree + 1]
                split = root
                # A tree of one leaf has no splits, but leaves that begin at 0.
                while split < last or split == root:
                    end = last if len(left_sets) == 0 else next_set(set_of, split, last)
                    advance_leaves(
                        codes, BLOCK_DOCS, column, shift, bound, first, right, split, end, at,
                        split == root, leaves,
                    )  # fmt: skip
                    if end < last:
                        left_set = left_sets[set_of[end]]
                        find_sides(encoded[column[end]], left_set, encoded[sides])
                        for k in range(at, at + LANES):
                            leaves[k] = next_leaf(
                                leaves[k],
                                encoded[sides, k],
                                shift[end],
                                bound[end],
                                first[end],
                                right[end],
                            )
                    split = end + 1
            # Indexes, since a slice of an array costs as much as some splits. Unsigned, because a
            # signed index is first checked for counting from the end.
            tree_values, start_of_output = np.uint64(value_offsets[tree]), np.uint64(begin)
            for k in range(np.uint64(n)):
                value = values[tree_values + np.uint64(leaves[k])]
                scores[output, start_of_output + k] += value
            output += np.uint64(1)
            if output == n_outputs:
                output = np.uint64(0)
