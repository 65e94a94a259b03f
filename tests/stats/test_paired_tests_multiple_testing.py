"""Holm's correction: hand arithmetic and a naive reference."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.stats.paired_tests import holm, holm_of_pairs
from tests.naive import stats as naive

p_values = st.floats(1e-300, 1.0)


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.6: x 4, x 3, x 2, x 1 gives 0.04, 0.06, 0.06, 0.6.
    adjusted = holm(np.array([0.6, 0.02, 0.01, 0.03]))
    np.testing.assert_allclose(adjusted, [0.6, 0.06, 0.04, 0.06], rtol=1e-15)
    # 0.02 x 2 may not fall below 0.015 x 3 = 0.045, and nothing gets above 1.
    np.testing.assert_allclose(holm(np.array([0.015, 0.02, 0.9])), [0.045, 0.045, 0.9], rtol=1e-15)
    assert holm(np.array([0.5, 0.6, 0.7])).tolist() == [1.0, 1.0, 1.0]
    assert holm(np.array([0.3])).tolist() == [0.3]


@given(st.lists(p_values, min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_holm_is_the_naive_one_and_keeps_the_order(raw):
    before = np.array(raw)
    after = holm(before)
    np.testing.assert_allclose(after, naive.holm(raw), rtol=1e-15)
    assert (after >= before).all()
    assert (after <= 1).all()
    assert (np.diff(after[np.argsort(before, kind="stable")]) >= 0).all()


def test_holm_of_pairs_is_symmetric():
    matrix = np.array([[1.0, 0.01, 0.04], [0.01, 1.0, 0.03], [0.04, 0.03, 1.0]])
    adjusted = holm_of_pairs(matrix)
    expected = [[1.0, 0.03, 0.06], [0.03, 1.0, 0.06], [0.06, 0.06, 1.0]]
    np.testing.assert_allclose(adjusted, expected, rtol=1e-15)
    assert matrix[0, 1] == 0.01
