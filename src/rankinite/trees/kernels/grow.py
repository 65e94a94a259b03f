"""Grow one tree in a single call, unless a leaf is so large that several threads search its splits.

Leaf-wise and symmetric trees grow alike: histograms of the leaves made last, search for splits,
partitioning of rows. They differ only in what is split next: leaf-wise growth splits the leaf with
the largest gain, symmetric growth splits all leaves of a level by the split that they gain most by
together. A split that all documents vote for is seldom an accident of the few documents of a leaf,
which is what large trees on many noisy features suffer from.

Where `grow` meets such a leaf it returns, and is called again: by several threads for a share of
the columns each, so that threads need not add up their histograms, and then to go on. Only integers
are added, and gains are compared in the order of the columns: the tree is the same for any number
of threads. The values of leaves come from unrounded gradients afterwards (grower.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel
from rankinite.trees.bins import SET_BYTES
from rankinite.trees.kernels.categories import (
    category_split_gain,
    order_categories,
    side_of,
    write_left_set,
)
from rankinite.trees.kernels.gain import Limits, leaf_value
from rankinite.trees.kernels.histogram import (
    BUNDLES_PER_WORD,
    DEPTH,
    END,
    GRADIENT,
    HESSIAN,
    HISTOGRAM,
    PARENT,
    SIDE,
    SPLITTABLE,
    START,
    TreeData,
    Workspace,
    count_siblings,
    docs_in,
    packing_of,
)
from rankinite.trees.kernels.split import (
    CANDIDATE_FIELDS,
    COLUMN,
    CUT,
    GAIN,
    LEFT,
    MAX_CUTS,
    MISSING,
    RIGHT,
    SCORE,
    SCRATCH_ROWS,
    best_leaf_split,
    best_level_split,
    inherit_groups,
    missing_shift,
    partition_rows,
    split_gain,
)

# Columns of a split of the grown tree. A child of at least 0 is a split, others are the complement
# of a leaf.
SPLIT_COLUMN, SPLIT_CUT, SPLIT_MISSING, LEFT_CHILD, RIGHT_CHILD = range(5)
SPLIT_FIELDS = 5
# Less work than this, in additions, is done by one thread before the others would have woken up.
PARALLEL_WORK = 1_000_000
# How far a tree has grown: whether it has a root, the numbers of its splits, of the leaves made
# last (siblings count as one) and of its levels, and by how many shares of the columns these leaves
# were searched, 0 if they were not.
HAS_ROOT, N_SPLITS, N_NEW, N_LEVELS, N_SHARES = range(5)
STATE_FIELDS = 5


class Frontier(NamedTuple):
    """Leaves of the tree as it grows.

    Attributes
    ----------
    state
        How far the tree has grown, see ``STATE_FIELDS``.
    leaves
        Table of the leaves, see ``LEAF_FIELDS``.
    best
        Best split of each leaf, see ``CANDIDATE_FIELDS``; unused by symmetric trees.
    siblings
        The leaves that were made last: the smaller, and the larger or -1.
    candidates
        Best splits in each share of the columns, for two leaves at most.
    values
        Value of each leaf in units of packed gradients; 0 unless values are limited.
    open_groups
        Whether each group of an interaction constraint has all features on the path to each leaf.
    allowed
        Whether each leaf may be split by each column; no columns if all may.
    """

    state: NDArray[np.int64]
    leaves: NDArray[np.int64]
    best: NDArray[np.float64]
    siblings: NDArray[np.int64]
    candidates: NDArray[np.float64]
    values: NDArray[np.float64]
    open_groups: NDArray[np.bool_]
    allowed: NDArray[np.bool_]


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
    left_sets
        For each categorical split, the set of bins that go left; empty if no column is
        categorical.
    """

    splits: NDArray[np.int64]
    gains: NDArray[np.float64]
    docs: NDArray[np.int64]
    leaf_docs: NDArray[np.int64]
    left_sets: NDArray[np.uint8]


@kernel
def search_columns(
    share: int,
    n_shares: int,
    data: TreeData,
    limits: Limits,
    workspace: Workspace,
    frontier: Frontier,
    n_leaves: int,
    n_siblings: int,
    tile: NDArray[np.uint64],
) -> None:
    """Make the histograms of new leaves in a share of the columns, and find the best splits there.

    The candidates of the share are the best splits of the two siblings made last, or the best
    split of the level.
    """
    # Shares are whole words of bundles, since histograms are counted word by word.
    n_words = (data.n_bundles + data.n_more_bundles) // BUNDLES_PER_WORD
    first_bundle = n_words * share // n_shares * BUNDLES_PER_WORD
    last_bundle = n_words * (share + 1) // n_shares * BUNDLES_PER_WORD
    first, last = data.bundle_columns[first_bundle], data.bundle_columns[last_bundle]
    leaves, siblings = frontier.leaves, frontier.siblings
    for k in range(n_siblings):
        count_siblings(
            data, workspace, leaves, siblings[k, 0], siblings[k, 1], first_bundle, last_bundle,
            tile, workspace.tile_values[share],
        )  # fmt: skip
    # Allocated by each share, because threads must not write into the same scratch.
    scratch = np.empty((SCRATCH_ROWS, MAX_CUTS))
    candidates = frontier.candidates[share]
    if limits.symmetric:
        best_level_split(
            data, workspace, limits, leaves[:n_leaves], frontier.values, frontier.allowed, first,
            last, scratch, candidates[0],
        )  # fmt: skip
        return
    for k in range(2):
        leaf = siblings[0, k]
        if leaf >= 0:
            best_leaf_split(
                data, workspace, limits, leaves[leaf], frontier.values[leaf],
                frontier.allowed[leaf], first, last, scratch, candidates[k],
            )  # fmt: skip


@kernel
def search_work(data: TreeData, frontier: Frontier, n_siblings: int) -> int:
    """Return about how many additions it takes to search the leaves made last."""
    leaves, siblings = frontier.leaves, frontier.siblings
    n_bundles = data.n_bundles + data.n_more_bundles
    work = np.int64(0)
    for k in range(n_siblings):
        smaller, larger = siblings[k, 0], siblings[k, 1]
        if leaves[smaller, SPLITTABLE] == 1 or (larger >= 0 and leaves[larger, SPLITTABLE] == 1):
            work += (leaves[smaller, END] - leaves[smaller, START]) * n_bundles
            # A bin is cleared, subtracted, added up and compared.
            work += 4 * data.bin_offsets[-1]
    return work


@kernel
def best_share(candidates: NDArray[np.float64], n_shares: int, k: int) -> int:
    """Return which share has the best split; of equal ones the first, whose columns are first."""
    best = 0
    for share in range(1, n_shares):
        if candidates[share, k, SCORE] > candidates[best, k, SCORE]:
            best = share
    return best


@kernel
def sum_rows(values: NDArray[np.int64], rows: NDArray[np.int32]) -> int:
    """Return the sum of the values of some rows."""
    total = np.int64(0)
    for k in range(len(rows)):
        total += values[rows[k]]
    return total


@kernel
def mark_splittable(count_bits: int, limits: Limits, leaf: NDArray[np.int64]) -> None:
    """Write whether a leaf is large and shallow enough to be split."""
    n_docs = docs_in(leaf[GRADIENT], count_bits)
    leaf[SPLITTABLE] = leaf[DEPTH] < limits.max_depth and n_docs >= 2 * limits.min_docs


@kernel
def count_leaf(
    data: TreeData, limits: Limits, rows: NDArray[np.int32], leaf: NDArray[np.int64]
) -> None:
    """Write the sums over a leaf's rows into its row of the table of leaves."""
    leaf_rows = rows[leaf[START] : leaf[END]]
    leaf[GRADIENT] = sum_rows(data.gradients, leaf_rows)
    leaf[HESSIAN] = sum_rows(data.hessians, leaf_rows) if data.separate_hessians else 0
    mark_splittable(data.count_bits, limits, leaf)


@kernel
def make_siblings(
    data: TreeData,
    limits: Limits,
    rows: NDArray[np.int32],
    leaves: NDArray[np.int64],
    leaf: int,
    new: int,
    middle: int,
) -> tuple[int, int]:
    """Make two leaves of one; return the one with fewer rows, then the other.

    The left one keeps the number of the leaf, the right one is ``new``; its rows begin at
    ``middle``.
    """
    left, right = leaves[leaf], leaves[new]
    right[START], right[END] = middle, left[END]
    left[END] = middle
    left[DEPTH] += 1
    right[DEPTH] = left[DEPTH]
    left[PARENT], left[SIDE] = new - 1, 0
    right[PARENT], right[SIDE] = new - 1, 1
    # The left child stands in its parent's row of the table, which is overwritten from here on.
    parent_gradient, parent_hessian = left[GRADIENT], left[HESSIAN]
    parent_histogram = left[HISTOGRAM]
    left_is_smaller = right[START] - left[START] <= right[END] - right[START]
    smaller, larger = (leaf, new) if left_is_smaller else (new, leaf)
    count_leaf(data, limits, rows, leaves[smaller])
    leaves[larger, GRADIENT] = parent_gradient - leaves[smaller, GRADIENT]
    leaves[larger, HESSIAN] = parent_hessian - leaves[smaller, HESSIAN]
    mark_splittable(data.count_bits, limits, leaves[larger])
    # The larger child takes over its parent's histogram, from which the smaller is subtracted.
    leaves[larger, HISTOGRAM] = parent_histogram
    leaves[smaller, HISTOGRAM] = new
    return smaller, larger


@kernel
def write_sides(
    bins: NDArray[np.uint8],
    rows: NDArray[np.int32],
    left_set: NDArray[np.uint8],
    sides: NDArray[np.uint8],
) -> None:
    """Write 0 for each of the rows that goes left by a categorical split, and 1 for the others."""
    for k in range(len(rows)):
        sides[rows[k]] = side_of(bins[rows[k]], left_set)


@kernel
def find_left_set(
    data: TreeData,
    workspace: Workspace,
    limits: Limits,
    leaves: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    split: NDArray[np.float64],
    scratch: NDArray[np.float64],
    left_set: NDArray[np.uint8],
) -> int:
    """Write which bins go left, and where missing values go, by a categorical split of leaves.

    The order of the categories is found once more, which takes less than to keep it for all
    candidates. Return the number of bins in it, or 0 if the split is numerical.
    """
    column = int(split[COLUMN])
    if not data.categorical[column]:
        return 0
    n = order_categories(data, workspace, limits, leaves, allowed, column, scratch)
    missing_left = write_left_set(
        data, workspace, leaves, allowed, column, int(split[CUT]), n, scratch, left_set
    )
    split[MISSING] = LEFT if missing_left else RIGHT
    return n


@kernel
def split_leaf(
    data: TreeData,
    limits: Limits,
    workspace: Workspace,
    frontier: Frontier,
    tree: GrownTree,
    leaf: int,
    split: NDArray[np.float64],
    left_set: NDArray[np.uint8],
    gain: float,
    n_splits: int,
    sibling: int,
) -> None:
    """Split a leaf: partition its rows, write the split down, and make two leaves of it.

    ``left_set`` counts if the split is categorical; ``sibling`` is the row of the frontier's
    siblings that gets the new leaves.
    """
    leaves = frontier.leaves
    column, cut, missing = int(split[COLUMN]), int(split[CUT]), int(split[MISSING])
    n_columns = data.columns.shape[0]
    bins = data.columns[column] if column < n_columns else data.more_columns[column - n_columns]
    start, end = leaves[leaf, START], leaves[leaf, END]
    shift = missing_shift(data.n_bins[column], missing == LEFT)
    bound = cut + shift
    if data.categorical[column]:
        # As bins 0 and 1, so that rows are partitioned in one way only.
        write_sides(bins, workspace.rows[start:end], left_set, workspace.sides)
        bins, shift, bound = workspace.sides, 0, 0
        # One by one: an assignment of arrays takes seconds to compile, for the text of its errors.
        for k in range(len(left_set)):
            tree.left_sets[n_splits, k] = left_set[k]
    n_left = partition_rows(
        workspace.rows[start:end], bins, shift, bound, workspace.right_rows[start:end]
    )  # fmt: skip
    new = n_splits + 1
    written = tree.splits[n_splits]
    written[SPLIT_COLUMN], written[SPLIT_CUT], written[SPLIT_MISSING] = column, cut, missing
    written[LEFT_CHILD], written[RIGHT_CHILD] = ~leaf, ~new
    # The split above still names the leaf as its child, and the root has none above it.
    if leaves[leaf, PARENT] >= 0:
        tree.splits[leaves[leaf, PARENT], LEFT_CHILD + leaves[leaf, SIDE]] = n_splits
    tree.gains[n_splits] = gain
    tree.docs[n_splits] = docs_in(leaves[leaf, GRADIENT], data.count_bits)
    smaller, larger = make_siblings(data, limits, workspace.rows, leaves, leaf, new, start + n_left)
    frontier.siblings[sibling, 0], frontier.siblings[sibling, 1] = smaller, larger
    if limits.limits_values:
        parent, path_smooth = frontier.values[leaf], limits.path_smooth
        for side in (leaf, new):
            frontier.values[side] = leaf_value(
                leaves[side], packing_of(data), limits, parent, path_smooth
            )
    if len(data.groups) > 0:
        inherit_groups(data.groups, column, leaf, new, frontier.open_groups, frontier.allowed)


@kernel
def split_best_leaf(
    data: TreeData,
    limits: Limits,
    workspace: Workspace,
    frontier: Frontier,
    tree: GrownTree,
    n_splits: int,
    n_shares: int,
) -> int:
    """Split the leaf with the largest gain; return the number of splits made, 1 or 0."""
    best, siblings = frontier.best, frontier.siblings
    # Only the two leaves made last were searched; the others keep what was found earlier.
    for k in range(2):
        if siblings[0, k] >= 0:
            share = best_share(frontier.candidates, n_shares, k)
            for field in range(CANDIDATE_FIELDS):
                best[siblings[0, k], field] = frontier.candidates[share, k, field]
    leaf = -1
    gain = limits.min_gain
    for k in range(n_splits + 1):
        if best[k, GAIN] > gain:
            gain = best[k, GAIN]
            leaf = k
    if leaf < 0:
        return 0
    left_set = np.empty(SET_BYTES, np.uint8)
    scratch = np.empty((SCRATCH_ROWS, MAX_CUTS))
    only, allowed = frontier.leaves[leaf : leaf + 1], frontier.allowed[leaf : leaf + 1]
    find_left_set(data, workspace, limits, only, allowed, best[leaf], scratch, left_set)
    split_leaf(
        data, limits, workspace, frontier, tree, leaf, best[leaf], left_set, gain, n_splits, 0
    )
    return 1


@kernel
def split_level(
    data: TreeData,
    limits: Limits,
    workspace: Workspace,
    frontier: Frontier,
    tree: GrownTree,
    n_splits: int,
    n_shares: int,
) -> int:
    """Split all leaves by the best split of the level; return the number of splits made.

    A leaf that would have too few documents on a side, or that constraints forbid the split, stays
    as it is.
    """
    split = frontier.candidates[best_share(frontier.candidates, n_shares, 0), 0]
    if split[GAIN] <= limits.min_gain:
        return 0
    scratch = np.empty((SCRATCH_ROWS, MAX_CUTS))
    left_set = np.empty(SET_BYTES, np.uint8)
    level, column = frontier.leaves[: n_splits + 1], int(split[COLUMN])
    n_ordered = find_left_set(
        data, workspace, limits, level, frontier.allowed, split, scratch, left_set
    )
    n_new = 0
    # Leaves that are made here are numbered behind these, and wait for the next level.
    for leaf in range(n_splits + 1):
        row, value, allowed = frontier.leaves[leaf], frontier.values[leaf], frontier.allowed[leaf]
        if n_ordered > 0:
            gain = category_split_gain(
                data, workspace, limits, row, value, allowed, column, int(split[CUT]), n_ordered,
                scratch,
            )  # fmt: skip
        else:
            gain = split_gain(data, workspace, limits, row, value, allowed, split, scratch)
        if gain > 0.0:
            split_leaf(
                data, limits, workspace, frontier, tree, leaf, split, left_set, gain,
                n_splits + n_new, n_new,
            )  # fmt: skip
            n_new += 1
    return n_new


@kernel
def is_full(limits: Limits, n_splits: int, n_levels: int) -> bool:
    """Return whether a tree with these numbers of splits and levels may not grow any further.

    A level is split whole or not at all: each of its leaves may become two. Its depth is the
    number of levels, also where some leaves were not split.
    """
    if limits.symmetric:
        return n_levels == limits.max_depth or 2 * (n_splits + 1) > limits.n_leaves
    return n_splits + 1 >= limits.n_leaves


@kernel
def make_root(data: TreeData, limits: Limits, workspace: Workspace, frontier: Frontier) -> None:
    """Make a leaf of all rows."""
    root = frontier.leaves[0]
    root[END] = len(workspace.rows)
    root[PARENT] = -1
    count_leaf(data, limits, workspace.rows, root)
    if limits.limits_values:
        # The root has no parent to be drawn to.
        frontier.values[0] = leaf_value(root, packing_of(data), limits, 0.0, 0.0)
    # The root is counted like the smaller of two siblings, of which there is no larger.
    frontier.siblings[0, 1] = -1
    frontier.state[HAS_ROOT] = frontier.state[N_NEW] = 1


@kernel
def grow(
    first_share: int,
    last_share: int,
    data: TreeData,
    limits: Limits,
    workspace: Workspace,
    frontier: Frontier,
    tree: GrownTree,
) -> bool:
    """Grow a tree on the rows of the workspace; or search shares of the columns, if there are any.

    Without shares, the tree grows until it is done or until a search is worth several threads, in
    which case the result is True. Then this is to be called for all shares, of which there are as
    many as tiles, and once more without any. One kernel does both, because most of its code is that
    of the search, which would be compiled twice.
    """
    state = frontier.state
    for share in range(first_share, last_share):
        search_columns(
            share, len(workspace.tiles), data, limits, workspace, frontier, state[N_SPLITS] + 1,
            state[N_NEW], workspace.tiles[share],
        )  # fmt: skip
    if first_share < last_share:
        return False
    if state[HAS_ROOT] == 0:
        make_root(data, limits, workspace, frontier)
    # One thread needs tiles for all columns, which are those of all shares together.
    whole_tile = workspace.tiles.reshape(workspace.tiles.size)
    while state[N_NEW] > 0 and not is_full(limits, state[N_SPLITS], state[N_LEVELS]):
        n_splits, n_new = state[N_SPLITS], state[N_NEW]
        if state[N_SHARES] == 0:
            n_tiles = len(workspace.tiles)
            if n_tiles > 1 and search_work(data, frontier, n_new) >= PARALLEL_WORK:
                state[N_SHARES] = n_tiles
                return True
            state[N_SHARES] = 1
            search_columns(0, 1, data, limits, workspace, frontier, n_splits + 1, n_new, whole_tile)
        n_shares = state[N_SHARES]
        if limits.symmetric:
            n_new = split_level(data, limits, workspace, frontier, tree, n_splits, n_shares)
        else:
            n_new = split_best_leaf(data, limits, workspace, frontier, tree, n_splits, n_shares)
        state[N_SPLITS] += n_new
        state[N_NEW], state[N_SHARES] = n_new, 0
        state[N_LEVELS] += 1
    for leaf in range(state[N_SPLITS] + 1):
        tree.leaf_docs[leaf] = docs_in(frontier.leaves[leaf, GRADIENT], data.count_bits)
    return False
