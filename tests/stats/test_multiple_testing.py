"""Holm's correction, Kendall's tau and sums in units: hand arithmetic, twins and scipy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.stats.exact_sums import FixedPoint
from rankinite.stats.kendall import kendall_tau
from rankinite.stats.multiple_testing import holm, holm_of_pairs
from tests.naive import stats as naive

p_values = st.floats(1e-300, 1.0)


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.6: x 4, x 3, x 2, x 1 gives 0.04, 0.06, 0.06, 0.6.
    found = holm(np.array([0.6, 0.02, 0.01, 0.03]))
    np.testing.assert_allclose(found, [0.6, 0.06, 0.04, 0.06], rtol=1e-15)
    # 0.02 x 2 may not fall below 0.015 x 3 = 0.045, and nothing gets above 1.
    np.testing.assert_allclose(holm(np.array([0.015, 0.02, 0.9])), [0.045, 0.045, 0.9], rtol=1e-15)
    assert holm(np.array([0.5, 0.6, 0.7])).tolist() == [1.0, 1.0, 1.0]
    assert holm(np.array([0.3])).tolist() == [0.3]


@given(st.lists(p_values, min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_holm_is_the_naive_one_and_keeps_the_order(given_p):
    before = np.array(given_p)
    after = holm(before)
    np.testing.assert_allclose(after, naive.holm(given_p), rtol=1e-15)
    assert (after >= before).all()
    assert (after <= 1).all()
    assert (np.diff(after[np.argsort(before, kind="stable")]) >= 0).all()


def test_holm_of_pairs_is_symmetric():
    matrix = np.array([[1.0, 0.01, 0.04], [0.01, 1.0, 0.03], [0.04, 0.03, 1.0]])
    adjusted = holm_of_pairs(matrix)
    expected = [[1.0, 0.03, 0.06], [0.03, 1.0, 0.06], [0.06, 0.06, 1.0]]
    np.testing.assert_allclose(adjusted, expected, rtol=1e-15)
    assert matrix[0, 1] == 0.01


def test_tau_by_hand():
    # Of six pairs of systems, 1-2 is the only one that the two measures order differently.
    found = kendall_tau(
        np.array([[0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.3, 0.4], [4.0, 3.0, 2.0, 1.0]])
    )
    np.testing.assert_allclose(found[0], [1, 4 / 6, -1], rtol=1e-15)
    np.testing.assert_allclose(found, found.T, rtol=1e-15)
    assert np.isnan(kendall_tau(np.array([[1.0, 1.0], [1.0, 2.0]]))[0, 1])


@given(st.integers(2, 8).flatmap(lambda k: st.lists(
    st.lists(st.integers(0, 5), min_size=k, max_size=k).filter(lambda row: len(set(row)) > 1),
    min_size=2, max_size=3,
)))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_tau_is_the_naive_one(rows):
    found = kendall_tau(np.array(rows, dtype=np.float64))
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            assert found[i, j] == pytest.approx(naive.tau_b(one, other), abs=1e-12)
            assert found[i, j] == pytest.approx(scipy.stats.kendalltau(one, other).statistic)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_units_are_near_and_their_sums_exact(row):
    values = np.array([row])
    units = FixedPoint.from_floats(values)
    unit = Fraction(2) ** int(units.exponents)
    for value, count in zip(row, units.counts[0].tolist(), strict=True):
        assert abs(Fraction(value) - count * unit) <= unit / 2
    exact = sum(units.counts[0].tolist())
    assert int(units.counts.sum()) == exact
    assert abs(exact) <= 2**60
    assert sum(abs(count) for count in units.counts[0].tolist()) <= 2**60


def test_units_of_many_queries_do_not_overflow():
    values = np.ones((2, 1 << 20))
    sums = FixedPoint.from_floats(values).counts.sum(axis=-1)
    # The number of queries takes 21 bits, and 2, the power of two above 1, gets the other 39.
    assert sums.tolist() == [2**20 * 2**38] * 2
    assert FixedPoint.from_floats(values).back(sums).tolist() == [float(1 << 20)] * 2
