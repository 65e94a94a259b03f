"""Partitioning of rows: left before right, in their order."""

from __future__ import annotations

import numpy as np
import pytest

from rankinite.trees.kernels.split import missing_shift, partition_rows

pytestmark = pytest.mark.kernel


def naive_left(bins: np.ndarray, n_bins: int, cut: int, missing_left: bool) -> np.ndarray:
    """Return whether each row goes left; missing values have the bin behind the last."""
    return np.where(bins == n_bins, missing_left, bins <= cut)


@pytest.mark.parametrize("n_rows", [0, 1, 50, 1001])
@pytest.mark.parametrize("missing_left", [False, True])
@pytest.mark.parametrize("n_bins", [1, 2, 40, 255])
def test_rows_keep_their_order_on_either_side(n_rows, missing_left, n_bins):
    rng = np.random.default_rng(n_rows)
    column = rng.integers(0, n_bins + 1, 2 * n_rows + 1).astype(np.uint8)
    rows = np.sort(rng.choice(len(column), n_rows, replace=False)).astype(np.int32)
    for cut in {0, n_bins // 2, n_bins - 1}:
        left = naive_left(column[rows], n_bins, cut, missing_left)
        # As numpy's integers, which without the JIT do not overflow when added to a byte.
        shift = np.int64(missing_shift(n_bins, missing_left))
        partitioned, scratch = rows.copy(), np.empty(n_rows + 1, np.int32)
        n_left = partition_rows(partitioned, column, shift, cut + shift, scratch)
        assert n_left == left.sum()
        assert partitioned.tolist() == [*rows[left], *rows[~left]]
