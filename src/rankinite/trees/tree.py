"""Trees as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
