"""The inputs of a net: features that vary, with mean 0 and deviation 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import frozen, parallel_kernel, prange

EVERY_ROW = np.zeros(0, np.int64)
MOST_BLOCKS = 64


@parallel_kernel
def sums_by_block(
    X: NDArray[np.float32],
    rows: NDArray[np.int64],
    n_docs: int,
    centre: NDArray[np.float64],
    counts: NDArray[np.int64],
    sums: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Write, for blocks of documents, the sums of what features have above the centre.

    A missing value counts nothing.
    """
    n_blocks = len(counts)
    for block in prange(n_blocks):
        for i in range(block * n_docs // n_blocks, (block + 1) * n_docs // n_blocks):
            row = X[rows[i] if len(rows) > 0 else i]
            for j in range(len(row)):
                x = np.float64(row[j]) - centre[j]
                there = x == x
                counts[block, j] += there
                sums[block, j] += x if there else 0.0
                squares[block, j] += x * x if there else 0.0


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Which features are inputs, and how they are scaled.

    Attributes
    ----------
    features
        The columns of features that vary.
    means, scales
        Their means, and one over their standard deviations.
    """

    features: NDArray[np.int64]
    means: NDArray[np.float32]
    scales: NDArray[np.float32]

    @classmethod
    def fit(
        cls, X: NDArray[np.float32], rows: NDArray[np.int64] | None, n_docs: int
    ) -> Standardiser:
        """Find the means and deviations of documents; missing values are left out."""
        where = EVERY_ROW if rows is None else rows
        n_features = X.shape[1]
        centre = np.zeros(n_features)
        deviation = np.zeros(n_features)
        # The second time the centre is the mean, and squares lose nothing.
        for _ in range(2):
            shape = (min(MOST_BLOCKS, n_docs), n_features)
            counts, sums, squares = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape)
            sums_by_block(frozen(X), frozen(where), n_docs, centre, counts, sums, squares)
            n = np.maximum(counts.sum(axis=0), 1)
            centre = centre + sums.sum(axis=0) / n
            deviation = np.sqrt(squares.sum(axis=0) / n)
        means = centre.astype(np.float32)
        # Rounding makes a constant vary by so little.
        varies = deviation > 1e-6 * np.abs(centre)
        with np.errstate(divide="ignore", over="ignore"):
            scales = (1.0 / deviation).astype(np.float32)
        features = np.flatnonzero(varies & (deviation > 0.0) & np.isfinite(scales))
        return cls(features, means[features], scales[features])
