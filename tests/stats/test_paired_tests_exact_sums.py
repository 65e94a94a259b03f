"""Fixed-point numbers: near their floats, with exact sums that do not overflow."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.stats.paired_tests import FixedPoint


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_numbers_are_near_and_their_sums_exact(row):
    values = np.array([row])
    numbers = FixedPoint.from_floats(values)
    unit = Fraction(2) ** int(numbers.exponents)
    for value, integer in zip(row, numbers.integers[0].tolist(), strict=True):
        assert abs(Fraction(value) - integer * unit) <= unit / 2
    exact = sum(numbers.integers[0].tolist())
    assert int(numbers.integers.sum()) == exact
    assert abs(exact) <= 2**60
    assert sum(abs(integer) for integer in numbers.integers[0].tolist()) <= 2**60


def test_sums_over_many_queries_do_not_overflow():
    values = np.ones((2, 1 << 20))
    sums = FixedPoint.from_floats(values).integers.sum(axis=-1)
    # The number of queries takes 21 bits, and 2, the power of two above 1, gets the other 39.
    assert sums.tolist() == [2**20 * 2**38] * 2
    assert FixedPoint.from_floats(values).to_floats(sums).tolist() == [float(1 << 20)] * 2
