"""Kendall's tau: hand arithmetic, a naive reference and scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.stats.kendall import kendall_tau, query_tau
from tests.naive import stats as naive


def test_tau_by_hand():
    # Of six pairs of systems, 1-2 is the only one that the two measures order differently.
    tau = kendall_tau(np.array([[0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.3, 0.4], [4.0, 3.0, 2.0, 1.0]]))
    np.testing.assert_allclose(tau[0], [1, 4 / 6, -1], rtol=1e-15)
    np.testing.assert_allclose(tau, tau.T, rtol=1e-15)
    assert np.isnan(kendall_tau(np.array([[1.0, 1.0], [1.0, 2.0]]))[0, 1])


@given(st.integers(2, 8).flatmap(lambda k: st.lists(
    st.lists(st.integers(0, 5), min_size=k, max_size=k).filter(lambda row: len(set(row)) > 1),
    min_size=2, max_size=3,
)))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_tau_is_the_naive_one(rows):
    tau = kendall_tau(np.array(rows, dtype=np.float64))
    for i, row in enumerate(rows):
        for j, other in enumerate(rows):
            assert tau[i, j] == pytest.approx(naive.tau_b(row, other), abs=1e-12)
            assert tau[i, j] == pytest.approx(scipy.stats.kendalltau(row, other).statistic)


@given(st.integers(2, 8).flatmap(lambda k: st.lists(
    st.lists(st.integers(0, 5), min_size=k, max_size=k), min_size=2, max_size=3,
)))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_the_fast_tau_of_a_query_is_the_same(rows):
    scores = np.array(rows, dtype=np.float64)
    np.testing.assert_allclose(query_tau(scores), kendall_tau(scores), atol=1e-12)
