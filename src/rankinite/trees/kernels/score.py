"""Score documents with many trees: features to bytes once, then every tree on bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import kernel
from rankinite.trees.kernels.encode import encode_rows
from rankinite.trees.kernels.place import moved

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
