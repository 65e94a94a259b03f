"""Histograms: some columns of a word, or all."""

from __future__ import annotations

import numpy as np
import pytest

from rankinite.core.jit import frozen
from rankinite.trees.kernels.histogram import (
    COLUMNS_PER_WORD,
    TILE_ROWS,
    TILE_STRIDE,
    add_rows,
)
from tests.naive import trees as naive_trees

N_WORDS = 3
N_COLUMNS = N_WORDS * COLUMNS_PER_WORD


def histograms(bins, rows, values, n_bins, first, last) -> np.ndarray:
    """Return the histograms of the columns from first to last, one behind the other."""
    bin_offsets = np.concatenate([[0], np.cumsum(n_bins)])
    histogram = np.zeros(bin_offsets[-1], np.int64)
    tile = np.empty(N_WORDS * TILE_STRIDE, np.uint64)
    add_rows(
        frozen(bins.reshape(-1).copy()), bins.shape[1], first, last, rows, values, bin_offsets,
        histogram, tile, np.empty(TILE_ROWS, np.int64),
    )  # fmt: skip
    return histogram


@pytest.mark.kernel
@pytest.mark.parametrize("n_rows", [0, 1, TILE_ROWS + 3])
def test_columns_with_bins_are_counted_and_no_others(n_rows):
    """Every number of columns of a word that have bins occurs, at changing positions."""
    rng = np.random.default_rng(n_rows)
    seen = set()
    for case in range(40):
        share = rng.random()
        n_bins = rng.integers(1, 257, N_COLUMNS) * (rng.random(N_COLUMNS) < share)
        if case == 0:
            n_bins[:] = 256
        n_all = n_rows + 5
        bins = np.stack([rng.integers(0, max(n, 1), n_all) for n in n_bins], 1).astype(np.uint8)
        rows = rng.permutation(n_all)[:n_rows].astype(np.int32)
        values = rng.integers(-(2**40), 2**40, n_all)
        first = COLUMNS_PER_WORD * int(rng.integers(0, N_WORDS))
        inputs = (bins, rows, values, n_bins, first, N_COLUMNS)
        np.testing.assert_array_equal(histograms(*inputs), naive_trees.histograms(*inputs))
        seen |= set(np.count_nonzero(n_bins[first:].reshape(-1, COLUMNS_PER_WORD), axis=1).tolist())
    assert seen == set(range(COLUMNS_PER_WORD + 1))
