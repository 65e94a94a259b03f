"""Means and deviations of features, against numpy's on numbers of 64 bits."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.nets.inputs import Standardiser
from tests.naive import nets as naive_nets
from tests.nets.cases import some_features

JIT = not numba.config.DISABLE_JIT
MAX = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).tiny)

pytestmark = pytest.mark.kernel


def assert_same(standardiser: Standardiser, X: np.ndarray) -> None:
    """Compare with numpy; both numbers are rounded to 32 bits once."""
    wide = X[:, standardiser.features].astype(np.float64)
    means, deviations = np.nanmean(wide, axis=0), np.nanstd(wide, axis=0)
    # A mean near 0 is exact to what its numbers of 64 bits were.
    slack = 1e-12 * np.nanmax(np.abs(wide), axis=0, initial=0.0)
    assert (np.abs(standardiser.means - means) <= 6e-8 * np.abs(means) + slack).all()
    np.testing.assert_allclose(standardiser.scales.astype(np.float64) * deviations, 1.0, rtol=1e-6)
    assert standardiser.features.tolist() == naive_nets.standardise(X).features
    assert standardiser.means.dtype == standardiser.scales.dtype == np.float32


@settings(deadline=None, max_examples=100 if JIT else 15)
@given(
    seed=st.integers(0, 2**32),
    n_docs=st.integers(1, 300 if JIT else 30),
    n_features=st.integers(1, 9),
    shared=st.booleans(),
)
def test_against_numpy(seed, n_docs, n_features, shared):
    rng = np.random.default_rng(seed)
    X = some_features(rng, n_docs, n_features, constant=range(1, n_features, 4))
    if shared:
        rows = rng.integers(n_docs, size=rng.integers(1, 2 * n_docs + 1))
        assert_same(Standardiser.fit(X, rows, len(rows)), X[rows])
    else:
        assert_same(Standardiser.fit(X, None, n_docs), X)


def one_column(values) -> tuple[list[int], list[float], list[float]]:
    X = np.array(values, np.float32)[:, np.newaxis]
    standardiser = Standardiser.fit(X, None, len(X))
    assert_same(standardiser, X)
    return standardiser.features.tolist(), standardiser.means.tolist(), standardiser.scales.tolist()


def test_by_hand():
    assert one_column([1, 5]) == ([0], [3.0], [0.5])
    assert one_column([1, np.nan, 5, np.nan]) == ([0], [3.0], [0.5])
    # The mean of 0, 0, 0 and 8 is 2, their variance (4 + 4 + 4 + 36) / 4 = 12.
    assert one_column([0, 0, 0, 8])[1:] == ([2.0], [np.float32(12**-0.5)])


def test_a_document_that_stands_twice_counts_twice():
    X = np.array([[1.0], [5.0], [1000.0]], np.float32)
    standardiser = Standardiser.fit(X, np.array([0, 1, 0, 0]), 4)
    # The mean of 1, 5, 1 and 1 is 2, their variance (1 + 9 + 1 + 1) / 4 = 3.
    assert standardiser.means.tolist() == [2.0]
    assert standardiser.scales.tolist() == [np.float32(3**-0.5)]


@pytest.mark.parametrize("offset", [1e7, -1e7, 3e30])
def test_a_huge_offset(offset):
    """Numbers of 32 bits near 1e7 are whole; their spread is what numpy finds all the same."""
    values = offset + abs(offset) * np.random.default_rng(0).integers(-500, 501, size=400) * 1e-7
    features, means, _ = one_column(values)
    assert features == [0]
    assert abs(means[0] / offset - 1.0) < 1e-5


@pytest.mark.parametrize("value", [0.0, 0.1, -1e7 / 3, 1e-30, TINY, MAX, -MAX, np.nan])
@pytest.mark.parametrize("n_docs", [1, 2, 63, 777])
def test_what_does_not_vary_is_no_input(value, n_docs):
    X = np.full((n_docs, 3), value, np.float32)
    X[n_docs // 2, 2] = np.nan
    X[:, 1] = np.arange(n_docs)
    standardiser = Standardiser.fit(X, None, n_docs)
    assert standardiser.features.tolist() == ([1] if n_docs > 1 else [])
    assert len(standardiser.means) == len(standardiser.scales) == len(standardiser.features)


def test_what_varies_in_its_last_bits_is_no_input():
    assert one_column([1e7, 1e7 + 1] * 5) == ([], [], [])
    assert one_column([1e7, 1e7 + 100] * 5)[0] == [0]


def test_the_largest_and_the_smallest_numbers():
    features, means, scales = one_column([MAX, -MAX])
    assert (features, means) == ([0], [0.0])
    assert scales[0] * MAX == pytest.approx(1.0, rel=1e-6)
    assert one_column([MAX, MAX, MAX, -MAX])[0] == [0]
    assert one_column([MAX, np.nan, 0.0, MAX])[0] == [0]
    assert one_column([TINY, 3 * TINY])[2] == [pytest.approx(1.0 / TINY)]


def test_one_over_a_deviation_must_be_a_number_of_32_bits():
    least = float(np.finfo(np.float32).smallest_subnormal)
    X = np.array([[0.0], [least]], np.float32)
    assert len(Standardiser.fit(X, None, 2).features) == 0
