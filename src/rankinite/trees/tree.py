"""Trees as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The arrays of a tree: those with one value a split, and those with one a leaf.
OF_SPLITS: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "threshold": np.float32,
    "missing_left": np.bool_,
    "first": np.uint16,
    "right": np.uint16,
    "gain": np.float64,
    "docs": np.int64,
}
OF_LEAVES: dict[str, type[np.generic]] = {"value": np.float64, "leaf_docs": np.int64}


@dataclass(frozen=True)
class Tree:
    """One regression tree.

    Splits stand in the order parent, left subtree, right subtree; leaves are numbered from left
    to right, and ``first`` and ``right`` are the first leaves of a split's subtree and of its
    right subtree. These two say everything about the shape.

    Attributes
    ----------
    feature, threshold, missing_left
        A document goes left if its feature is at most the threshold, or missing where
        ``missing_left`` says so.
    first, right
        The first leaf of a split's subtree, and the first of its right subtree.
    gain, docs
        What a split gained, and how many documents it saw.
    value, leaf_docs
        What a leaf adds to the score, and how many documents it saw.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    first: NDArray[np.uint16]
    right: NDArray[np.uint16]
    gain: Floats
    docs: NDArray[np.int64]
    value: Floats
    leaf_docs: NDArray[np.int64]

    @property
    def n_leaves(self) -> int:
        """How many leaves there are: one more than splits."""
        return len(self.value)

    def is_sound(self, n_features: int) -> bool:
        """Tell whether features and shape are those of a tree, as a damaged file's may not be."""
        inside = (self.feature >= 0) & (self.feature < n_features) & (self.threshold > -np.inf)
        numbers = np.isfinite(self.value).all() and np.isfinite(self.gain).all()
        return bool(inside.all() and numbers) and self._is_tree()

    def _is_tree(self) -> bool:
        """Follow the order of splits: each takes its range of leaves apart, left before right."""
        ranges = [(0, self.n_leaves)]
        for first, right in zip(self.first.tolist(), self.right.tolist(), strict=True):
            while ranges and ranges[-1][1] - ranges[-1][0] == 1:
                ranges.pop()
            if not ranges:
                return False
            begin, end = ranges.pop()
            if first != begin or not begin < right < end:
                return False
            ranges += [(right, end), (begin, right)]
        return all(end - begin == 1 for begin, end in ranges)
