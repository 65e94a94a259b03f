"""Cut points and bins against naive ones, and on values at the edge of float32."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.trees import binning
from rankinite.trees.binning import BinnedData, bins_for
from tests.naive import trees as naive_trees
from tests.trees.cases import bin_all, grow_tree, growth

SCALE = 1 if numba.config.DISABLE_JIT else 10

NAN = math.nan
LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)


def cuts_of(binned: BinnedData, feature: int = 0) -> list[float]:
    """Return the cut points of a feature of the first block; behind them is infinity."""
    n_cuts = int(binned.main.n_bins[feature]) - 1
    assert np.isposinf(binned.main.cuts[feature, n_cuts:]).all()
    return binned.main.cuts[feature, :n_cuts].tolist()


def check_column(values, most_bins: int) -> list[float]:
    column = np.asarray(values, np.float32)
    binned = bin_all(column[:, None], most_bins=most_bins)
    cuts = naive_trees.cut_points(column.tolist(), most_bins)
    assert cuts_of(binned) == cuts
    bins = [naive_trees.bin_of(value, cuts) for value in column.tolist()]
    assert binned.main.columns[0].tolist() == bins
    return cuts


@pytest.mark.kernel
@settings(deadline=None, max_examples=20 + 10 * SCALE)
@given(
    values=st.lists(
        st.floats(width=32, allow_infinity=False)
        | st.sampled_from([NAN, 0.0, -0.0, 1.0, 2.0, SMALLEST, -SMALLEST, LARGEST, -LARGEST]),
        min_size=1,
        max_size=30,
    ),
    most_bins=st.integers(2, 9) | st.just(255),
)
def test_any_column_follows_the_rule(values, most_bins):
    check_column(values, most_bins)


@pytest.mark.kernel
@pytest.mark.parametrize("most_bins", [2, 3, 8, 255])
@pytest.mark.parametrize("kind", ["real", "counts", "mostly zero", "two heaps", "sorted"])
def test_longer_columns_follow_the_rule(kind, most_bins):
    rng = np.random.default_rng(most_bins)
    n = 100 * SCALE + 300
    column = {
        "real": rng.normal(size=n),
        "counts": rng.poisson(rng.gamma(0.5, 400.0, size=n)),
        "mostly zero": np.where(rng.random(n) < 0.8, 0.0, rng.normal(size=n)),
        "two heaps": np.where(rng.random(n) < 0.5, rng.normal(size=n), rng.integers(2, size=n)),
        "sorted": np.arange(n),
    }[kind]
    cuts = check_column(column, most_bins)
    values = np.unique(column.astype(np.float32))
    # Every bin has a value; with more values than bins none is wasted, but for heavy values.
    filled = np.unique(np.searchsorted(cuts, values))
    assert len(filled) == len(cuts) + 1 <= min(most_bins, len(values))
    if kind in ("real", "sorted"):
        counts = np.bincount(np.searchsorted(cuts, column.astype(np.float32)))
        assert len(counts) == most_bins
        assert counts.max() <= math.ceil(n / most_bins) + 1


@pytest.mark.kernel
@pytest.mark.parametrize(("n_values", "n_bins"), [(1, 1), (2, 2), (254, 254), (255, 255)])
def test_every_value_has_a_bin_if_there_are_enough(n_values, n_bins):
    X = np.arange(n_values, dtype=np.float32)[:, None]
    binned = bin_all(X)
    assert cuts_of(binned) == [value + 0.5 for value in range(n_bins - 1)]
    assert binned.main.columns[0].tolist() == list(range(n_bins))


@pytest.mark.kernel
def test_256_values_share_255_bins():
    binned = bin_all(np.append(np.arange(256), NAN)[:, None])
    sizes = np.bincount(binned.main.columns[0], minlength=256)
    # One bin has two values; the missing value has a bin of its own behind them.
    assert sorted(sizes.tolist()) == [1] * 255 + [2]
    assert sizes[255] == 1
    assert binned.main.columns[0, -1] == 255


@pytest.mark.kernel
def test_a_heavy_value_keeps_its_bin():
    """Of 100 values 80 are zero: the zeros have a bin of their own, also among four."""
    values = [*range(-10, 0), *[0] * 80, *range(1, 11)]
    cuts = check_column(values, 4)
    assert max(cut for cut in cuts if cut < 0) >= -1
    assert min(cut for cut in cuts if cut >= 0) < 1


@pytest.mark.kernel
@pytest.mark.parametrize("most_bins", [2, 3, 17, 254])
def test_most_bins_is_honoured(most_bins):
    rng = np.random.default_rng(0)
    binned = bin_all(rng.normal(size=(600, 3)), most_bins=most_bins)
    assert binned.main.n_bins[:3].tolist() == [most_bins] * 3
    assert binned.main.columns.max() == most_bins - 1


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, float(np.nextafter(np.float32(1), np.float32(2)))),
        (float(np.nextafter(np.float32(1), np.float32(0))), 1.0),
        (16777215.0, 16777216.0),
        (-3e38, 3e38),
        (3e38, LARGEST),
        (-LARGEST, LARGEST),
        (float(np.nextafter(np.float32(LARGEST), np.float32(0))), LARGEST),
        (0.0, SMALLEST),
        (-SMALLEST, 0.0),
        (-SMALLEST, SMALLEST),
        (SMALLEST, 3 * SMALLEST),
        (-0.0, SMALLEST),
    ],
)
def test_neighbours_at_the_edge_of_float32_are_told_apart(low, high):
    cuts = check_column([low, high, NAN], 255)
    assert len(cuts) == 1
    assert low <= cuts[0] < high
    tree = grow_tree([[low], [high], [low], [high]], [1, -1, 1, -1], growth(2))
    assert tree.value.tolist() == [1.0, -1.0]


@pytest.mark.kernel
def test_both_zeros_are_one_value():
    assert check_column([0.0, -0.0, 0.0, -0.0], 255) == []
    assert check_column([-0.0, 0.0, 1.0], 255) == [0.5]


@pytest.mark.kernel
@pytest.mark.parametrize("column", [[NAN, NAN], [NAN, 7.0], [7.0, 7.0]])
def test_columns_with_nothing_to_cut(column):
    assert check_column(column, 255) == []


@pytest.mark.kernel
def test_bins_hold_equal_shares_of_the_documents_not_of_the_rows():
    """Row 9 has half of all documents, so that four bins for ten values leave it one alone."""
    X = np.arange(10, dtype=np.float32)[:, None]
    docs = np.array([*range(9), *[9] * 9])
    binned = bin_all(X, docs=docs, most_bins=4)
    assert cuts_of(binned) == naive_trees.cut_points(X[docs, 0].tolist(), 4)
    assert cuts_of(binned)[-1] == 8.5
    assert cuts_of(binned) != cuts_of(bin_all(X, most_bins=4))


@pytest.mark.kernel
def test_some_rows_are_binned_in_their_order():
    X = np.arange(20, dtype=np.float32).reshape(10, 2)
    rows = np.array([7, 2, 2, 9])
    binned = bin_all(X, rows=rows)
    assert binned.n_rows == 4
    assert binned.main.columns.tolist() == bin_all(X).main.columns[:, rows].tolist()


def test_cut_points_of_many_rows_come_from_a_sample(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    exact = cuts_of(bin_all(X, most_bins=8))
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 100)
    sampled = [cuts_of(bin_all(X, most_bins=8, seed=seed)) for seed in (0, 0, 1)]
    assert sampled[0] == sampled[1] != sampled[2]
    assert exact not in sampled
    for cuts in sampled:
        counts = np.bincount(np.searchsorted(cuts, X[:, 0]))
        assert len(counts) == 8
        # A fair share of 50, within four standard deviations of a sample a quarter of the size.
        assert counts.min() > 10
        assert counts.max() < 110
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 400)
    assert cuts_of(bin_all(X, most_bins=8)) == exact


def test_a_sample_of_documents_is_that_of_the_copied_rows(monkeypatch):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 50)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 9)).astype(np.float32)
    docs = rng.integers(80, size=300)
    by_rows, copied = bin_all(X, docs=docs, most_bins=9), bin_all(X[docs], most_bins=9)
    assert by_rows.main.cuts.tobytes() == copied.main.cuts.tobytes()
    assert by_rows.main.columns[:, docs].tobytes() == copied.main.columns.tobytes()


def test_values_outside_the_sample_go_to_the_outer_bins(monkeypatch):
    X = np.arange(100, dtype=np.float32)[:, None]
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 5)
    binned = bin_all(X)
    assert binned.main.n_bins[0] == 5
    assert binned.main.columns[0, 0] == 0
    assert binned.main.columns[0, -1] == 4
    assert (np.diff(binned.main.columns[0].astype(int)) >= 0).all()


def test_few_documents_have_few_bins_unless_told_otherwise():
    """One bin for 100 documents: 90 for 9,000; but 64 at least, and 255 at most."""
    assert [bins_for(n) for n in (1, 6_400, 9_000, 25_500, 10**7)] == [64, 64, 90, 255, 255]
    X = np.random.default_rng(9).normal(size=(9_000, 1))
    assert bin_all(X, most_bins=None).main.n_bins[0] == 90
    assert bin_all(X[:500], most_bins=None).main.n_bins[0] == 64
    # Documents count, not the rows that they share.
    docs = np.repeat(np.arange(300), 30)
    assert bin_all(X[:300], docs=docs, most_bins=None).main.n_bins[0] == 90
