"""Histograms: some bundles of a word, or all; of one column each, or of several."""

from __future__ import annotations

import numpy as np
import pytest

from rankinite.core.jit import frozen
from rankinite.trees.binning import BinnedColumns
from rankinite.trees.bins import PADDED_CUTS
from rankinite.trees.grower import Grower
from rankinite.trees.kernels.histogram import (
    BUNDLES_PER_WORD,
    TILE_ROWS,
    TILE_STRIDE,
    add_rows,
    count_bundles,
)
from tests.naive import trees as naive_trees
from tests.trees.cases import bin_all, bundled_at_any_size, growth

N_WORDS = 3
N_BUNDLES = N_WORDS * BUNDLES_PER_WORD
START, SCRATCH_START = 3, 5


def histograms(bins, rows, values, n_bins, first, last) -> np.ndarray:
    """Return the histograms of the columns from first to last, one behind the other.

    Every third has a place elsewhere, as if several columns shared its byte.
    """
    begins = np.cumsum(n_bins) - n_bins
    is_shared = np.arange(N_BUNDLES) % 3 == 1
    offsets = np.where(n_bins > 0, begins, -1)
    flat = np.zeros(SCRATCH_START + 2 * n_bins.sum(), np.int64)
    tile = np.empty(N_WORDS * TILE_STRIDE, np.uint64)
    elsewhere = SCRATCH_START + n_bins.sum()
    add_rows(
        frozen(bins.reshape(-1).copy()), bins.shape[1], first, last, rows, values,
        np.where(is_shared, n_bins, 0), offsets, START, elsewhere, flat, tile,
        np.empty(TILE_ROWS, np.int64),
    )  # fmt: skip
    starts = np.where(is_shared, elsewhere, START) + begins
    return np.concatenate([flat[s : s + n] for s, n in zip(starts, n_bins, strict=True)])


@pytest.mark.kernel
@pytest.mark.parametrize("n_rows", [0, 1, TILE_ROWS + 3])
def test_bundles_with_an_offset_are_counted_and_no_others(n_rows):
    """Every number of bundles of a word that are counted occurs, at changing positions."""
    rng = np.random.default_rng(n_rows)
    seen = set()
    for case in range(40):
        share = rng.random()
        n_bins = rng.integers(1, 257, N_BUNDLES) * (rng.random(N_BUNDLES) < share)
        if case == 0:
            n_bins[:] = 256
        n_all = n_rows + 5
        bins = np.stack([rng.integers(0, max(n, 1), n_all) for n in n_bins], 1).astype(np.uint8)
        rows = rng.permutation(n_all)[:n_rows].astype(np.int32)
        values = rng.integers(-(2**40), 2**40, n_all)
        first = BUNDLES_PER_WORD * int(rng.integers(0, N_WORDS))
        inputs = (bins, rows, values, n_bins, first, N_BUNDLES)
        np.testing.assert_array_equal(histograms(*inputs), naive_trees.histograms(*inputs))
        seen |= set(np.count_nonzero(n_bins[first:].reshape(-1, BUNDLES_PER_WORD), axis=1).tolist())
    assert seen == set(range(BUNDLES_PER_WORD + 1))


def features_of_few_values(rng, n_rows: int, n_features: int) -> np.ndarray:
    """Make columns of one to many values, some with missing values."""
    most = rng.choice([1, 2, 3, 10, 300], n_features)
    X = np.floor(rng.random((n_rows, n_features)) * most)
    missing = rng.random(X.shape) < rng.choice([0.0, 0.0, 0.1], n_features)
    return np.where(missing, np.nan, X)


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(8))
def test_columns_of_bundles_have_the_histograms_that_they_would_have_alone(seed):
    """In both blocks, for all columns or some, in any range of words."""
    rng = np.random.default_rng(seed)
    n_rows, n_main, n_more = 60, int(rng.integers(0, 40)), int(rng.integers(0, 40))
    n_columns = n_main + n_more
    X = features_of_few_values(rng, n_rows, n_columns)
    features = None
    if seed % 2:
        features = np.flatnonzero(rng.random(n_columns) < 0.6)
    with bundled_at_any_size():
        binned = bin_all(X[:, :n_main]).append(X[:, n_main:], [f"m{j}" for j in range(n_more)])
        grower = Grower(binned, None, growth(4))
    data = grower._tree_data(features, grower._packing(uses_hessians=False))
    assert n_columns < 9 or (data.bundle_codes > 0).any()
    workspace = grower._workspace
    rows = rng.permutation(n_rows)[:50].astype(np.int32)
    values = rng.integers(-(2**40), 2**40, n_rows)
    n_words = len(data.bundle_codes) // BUNDLES_PER_WORD
    middle = int(rng.integers(n_words + 1)) * BUNDLES_PER_WORD
    workspace.histograms[:] = 7
    for first, last in ((0, middle), (middle, n_words * BUNDLES_PER_WORD)):
        count_bundles(
            data, values, rows, first, last, workspace.histograms, 2, 4,
            np.empty((n_words + 1) * TILE_STRIDE, np.uint64), np.empty(TILE_ROWS, np.int64),
        )  # fmt: skip
    columns = np.concatenate([binned.main.columns, binned.more.columns])
    sizes = np.where(data.split_bins > 0, data.split_bins + 1, 0)
    expected = naive_trees.histograms(columns.T, rows, values, sizes, 0, n_columns)
    width = data.bin_offsets[-1]
    np.testing.assert_array_equal(workspace.histograms[2, :width], expected)
    assert (workspace.histograms[[0, 1, 3]] == 7).all()


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(4))
def test_the_digits_of_a_byte_are_the_bins_of_its_columns(seed):
    rng = np.random.default_rng(seed)
    with bundled_at_any_size():
        block = bin_all(features_of_few_values(rng, 50, 30)).main
        bundles = block.bundles
    for bundle, codes in enumerate(bundles.n_codes.tolist()):
        code, period = block.bundled[:, bundle].astype(int), codes
        for column in reversed(range(*bundles.columns[bundle : bundle + 2])):
            if bundles.strides[column]:
                digit = code % period // bundles.strides[column]
                assert digit.tolist() == block.columns[column].tolist()
                period = bundles.strides[column]
        assert codes <= 256
    varies = [len(np.unique(column)) > 1 for column in block.columns]
    assert (bundles.strides > 0).tolist() == varies


def test_neighbours_are_bundled_while_they_fit():
    """3 x 10 x 8 = 240 codes; with 2 more values there would be 480."""
    n_bins = np.array([3, 10, 1, 8, 2, 255])
    columns = np.stack([np.arange(20_000) % n for n in n_bins]).astype(np.uint8)
    cuts = np.full((6, PADDED_CUTS), np.inf, np.float32)
    block = BinnedColumns._of(columns, cuts, n_bins, np.zeros(6, np.bool_))
    assert block.bundles.n_codes.tolist() == [240, 2, 255, 1, 1, 1, 1, 1]
    assert block.bundles.columns.tolist() == [0, 4, 5, 6, 6, 6, 6, 6, 6]
    assert block.bundles.strides.tolist() == [1, 3, 0, 30, 1, 1]
    assert block.bundled[305, 0] == 305 % 3 + 3 * (305 % 10) + 30 * (305 % 8)


def test_few_rows_have_small_bundles():
    """192 rows are worth 3 codes, too few for two columns."""
    columns = np.stack([np.arange(192) % 2] * 3).astype(np.uint8)
    cuts = np.full((3, PADDED_CUTS), np.inf, np.float32)
    block = BinnedColumns._of(columns, cuts, np.full(3, 2), np.zeros(3, np.bool_))
    assert block.bundles.n_codes.tolist() == [2, 2, 2, 1, 1, 1, 1, 1]
    # 256 rows are worth 4.
    columns = np.stack([np.arange(256) % 2] * 3).astype(np.uint8)
    block = BinnedColumns._of(columns, cuts, np.full(3, 2), np.zeros(3, np.bool_))
    assert block.bundles.n_codes.tolist() == [4, 2, 1, 1, 1, 1, 1, 1]
