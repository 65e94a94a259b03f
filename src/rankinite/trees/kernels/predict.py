"""Find the leaf of every row, many rows at a time, by bins.

Splits stand in the order parent, left subtree, right subtree; leaves are numbered from left to
right. A row begins at leaf 0. Whoever stands at the first leaf of a split's subtree when the split
comes is on the way through it, and moves to the first leaf of the right subtree if the split says
so. Nothing branches, bins and leaves are bytes: the processor handles 32 rows at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel, parallel_kernel, prange
from rankinite.trees.kernels.binning import encode_rows
from rankinite.trees.kernels.split import LEFT, UNSEEN

BLOCK_ROWS = 4096


def leaf_type(n_leaves: int) -> type[np.generic]:
    """Return the smallest type that can number so many leaves; splits and rows share it."""
    return np.uint8 if n_leaves <= 256 else np.uint16


@inlined_kernel
def moved(
    leaf: np.uint8, code: np.uint8, shift: np.uint8, bound: np.uint8, first: int, right: int
) -> Any:
    """Return the leaf where a row stands after a split, of which it has the bin ``code``."""
    goes_right = np.uint8((np.int64(code) + np.int64(shift)) & 255) > bound
    return right if goes_right & (leaf == first) else leaf


@parallel_kernel
def place_all(
    columns: NDArray[np.uint8],
    more_columns: NDArray[np.uint8],
    column: NDArray[np.int64],
    shift: NDArray[np.uint8],
    bound: NDArray[np.uint8],
    first: NDArray[Any],
    right: NDArray[Any],
    leaves: NDArray[Any],
) -> None:
    """Write the leaf of every row of the columns."""
    n_rows = len(leaves)
    n_columns = columns.shape[0]
    for block in prange((n_rows + BLOCK_ROWS - 1) // BLOCK_ROWS):
        start = block * BLOCK_ROWS
        end = min(start + BLOCK_ROWS, n_rows)
        for row in range(start, end):
            leaves[row] = 0
        for k in range(len(column)):
            if column[k] < n_columns:
                bins = columns[column[k], start:end]
            else:
                bins = more_columns[column[k] - n_columns, start:end]
            here = leaves[start:end]
            for row in range(len(here)):
                here[row] = moved(here[row], bins[row], shift[k], bound[k], first[k], right[k])


@parallel_kernel
def add_values(
    leaves: NDArray[Any],
    rows: NDArray[np.int32],
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    """Add the value of its leaf to every document's score; without ``rows`` document i is row i."""
    if len(rows) == 0:
        for i in prange(len(scores)):
            scores[i] += values[leaves[i]]
    else:
        for i in prange(len(scores)):
            scores[i] += values[leaves[rows[i]]]


@kernel
def lay_out(
    split: NDArray[np.int64],
    docs: NDArray[np.int64],
    leaf_docs: NDArray[np.int64],
    stack: NDArray[np.int64],
    order: NDArray[np.int64],
    leaf_order: NDArray[np.int64],
    missing_left: NDArray[np.bool_],
    first: NDArray[np.uint16],
    right: NDArray[np.uint16],
) -> None:
    """Bring the splits of `grow` into the order that placing needs.

    ``order[k]`` is the split that comes k-th, ``leaf_order[k]`` the leaf that stands k-th from
    the left. Missing values that a split never saw go where more documents go.
    """
    n_placed = 0
    n_leaves = 0
    top = 0
    stack[top] = 0 if len(split) else ~0
    while top >= 0:
        node = stack[top]
        top -= 1
        if node < 0:
            leaf_order[n_leaves] = ~node
            n_leaves += 1
            continue
        left_child, right_child = split[node, 3], split[node, 4]
        left_docs = docs[left_child] if left_child >= 0 else leaf_docs[~left_child]
        side = split[node, 2]
        missing_left[n_placed] = side == LEFT or (side == UNSEEN and 2 * left_docs >= docs[node])
        order[n_placed] = node
        first[n_placed] = n_leaves
        n_placed += 1
        stack[top + 1] = right_child
        stack[top + 2] = left_child
        top += 2
    # A right subtree begins behind the leaves of the left one.
    for k in range(n_placed):
        node = split[order[k], 3]
        count = 0
        top = 0
        stack[0] = node
        while top >= 0:
            node = stack[top]
            top -= 1
            if node < 0:
                count += 1
                continue
            stack[top + 1] = split[node, 3]
            stack[top + 2] = split[node, 4]
            top += 2
        right[k] = first[k] + count


@kernel
def cuts_of(
    thresholds: NDArray[np.float32],
    column: NDArray[np.int64],
    cuts: NDArray[np.float32],
    out: NDArray[np.int64],
) -> None:
    """Write which of its column's cut points every threshold is; infinity is the one behind."""
    for k in range(len(thresholds)):
        own = cuts[column[k]]
        place = 0
        while own[place] < thresholds[k]:
            place += 1
        out[k] = place


# So many documents' bytes, of the features that matter, stay in the first-level cache.
BLOCK_DOCS = 256
# Blocks are filled up to a multiple of this: a loop that comes out even has no slow last part.
LANES = 32


@kernel
def score(
    X: NDArray[np.float32],
    rows: NDArray[np.int64],
    features: NDArray[np.int64],
    cuts: NDArray[np.float32],
    n_bins: NDArray[np.int64],
    column: NDArray[np.int32],
    shift: NDArray[np.uint8],
    bound: NDArray[np.uint8],
    first: NDArray[Any],
    right: NDArray[Any],
    values: NDArray[np.float64],
    split_offsets: NDArray[np.int64],
    value_offsets: NDArray[np.int64],
    leaves: NDArray[Any],
    start: int,
    scores: NDArray[np.float64],
) -> None:
    """Add the values of all trees to the scores of the rows that begin at ``start``.

    Tree t adds to row ``t % len(scores)`` of the scores. ``column`` counts the features that some
    tree asks for; ``leaves`` is scratch, of bytes unless a tree has more leaves than a byte holds.
    Every document's trees are added in their order: its score does not depend on the others.
    """
    n_docs = scores.shape[1]
    n_outputs = len(scores)
    encoded = np.zeros((len(features), BLOCK_DOCS), np.uint8)
    buffer = np.empty(BLOCK_DOCS, np.float32)
    places = np.empty(BLOCK_DOCS, np.uint64)
    for begin in range(0, n_docs, BLOCK_DOCS):
        n = min(BLOCK_DOCS, n_docs - begin)
        encode_rows(
            X, rows, start + begin, features, cuts, n_bins, buffer, places, encoded[:, :n]
        )  # fmt: skip
        n_filled = (n + LANES - 1) // LANES * LANES
        for tree in range(len(split_offsets) - 1):
            for k in range(n_filled):
                leaves[k] = 0
            for split in range(split_offsets[tree], split_offsets[tree + 1]):
                codes = encoded[column[split]]
                s, b, f, r = shift[split], bound[split], first[split], right[split]
                for k in range(n_filled):
                    leaves[k] = moved(leaves[k], codes[k], s, b, f, r)
            value = values[value_offsets[tree] : value_offsets[tree + 1]]
            total = scores[tree % n_outputs, begin : begin + n]
            for k in range(n):
                total[k] += value[np.uint64(leaves[k])]
