"""Counting by bin: some columns of a word, or all."""

from __future__ import annotations

import numpy as np
import pytest

from rankinite.core.jit import frozen
from rankinite.trees.kernels.histogram import COLUMNS_A_WORD, TILE_ROWS, TILE_STRIDE, add_rows
from tests.naive import trees as naive_trees
from tests.trees.cases import bin_all

N_WORDS = 3
N_COLUMNS = N_WORDS * COLUMNS_A_WORD


def counted(bins, rows, amounts, n_slots, first, last) -> np.ndarray:
    """Return the histograms of the columns from first to last, one behind the other."""
    slots = np.concatenate([[0], np.cumsum(n_slots)])
    histogram = np.zeros(slots[-1], np.int64)
    tile = np.empty(N_WORDS * TILE_STRIDE, np.uint64)
    add_rows(
        frozen(bins.reshape(-1).copy()), bins.shape[1], first, last, rows, amounts, slots,
        histogram, tile, np.empty(TILE_ROWS, np.int64),
    )  # fmt: skip
    return histogram


@pytest.mark.kernel
@pytest.mark.parametrize("n_rows", [0, 1, TILE_ROWS + 3])
def test_columns_with_slots_are_counted_and_no_others(n_rows):
    """Every number of columns of a word that have slots occurs, at changing places."""
    rng = np.random.default_rng(n_rows)
    seen = set()
    for case in range(40):
        share = rng.random()
        n_slots = rng.integers(1, 257, N_COLUMNS) * (rng.random(N_COLUMNS) < share)
        if case == 0:
            n_slots[:] = 256
        n_all = n_rows + 5
        bins = np.stack([rng.integers(0, max(n, 1), n_all) for n in n_slots], 1).astype(np.uint8)
        rows = rng.permutation(n_all)[:n_rows].astype(np.int32)
        amounts = rng.integers(-(2**40), 2**40, n_all)
        first = COLUMNS_A_WORD * int(rng.integers(0, N_WORDS))
        inputs = (bins, rows, amounts, n_slots, first, N_COLUMNS)
        np.testing.assert_array_equal(counted(*inputs), naive_trees.histograms(*inputs))
        seen |= set(np.count_nonzero(n_slots[first:].reshape(-1, COLUMNS_A_WORD), axis=1).tolist())
    assert seen == set(range(COLUMNS_A_WORD + 1))


def test_a_column_of_equal_values_cannot_be_split():
    nan = np.nan
    binned = bin_all([[1, 0, nan, 7, nan], [1, 2, nan, 7, 3], [1, 2, nan, nan, 3]])
    assert (binned.main.splittable[:5] > 0).tolist() == [False, True, False, True, True]
    assert not binned.main.splittable[5:].any()
