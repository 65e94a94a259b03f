from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from rankinite.core.errors import UsageError
from rankinite.core.params import Bounds, Either, OneOf, Real, Whole, check

CASES = [
    (Whole(), [0, 1, 10**30, np.int64(3), np.uint8(0)], [-1, 1.0, "1", None, True, np.True_]),
    (Whole(2, 4), [2, 4, np.int8(3)], [1, 5, np.int64(-(2**63)), math.nan]),
    (
        Real(),
        [-1e308, 0, np.float32(2), Fraction(1, 3), 10**300],
        [math.nan, math.inf, -math.inf, 10**400, -(10**400), "0", False, None, 1j, Decimal(1)],
    ),
    (Real(0, 1), [0, 1, 0.5], [-1e-300, 1.0000001]),
    (Real(0, 1, low_open=True, high_open=True), [0.5, 5e-324], [0, 0.0, 1, -0.0]),
    (
        Bounds(0),
        [(0, 1), [0.5, 2], np.array([1.0, 1e100]), (0, 5e-324)],
        [(1, 0), (1, 1), (-1, 1), (0, math.nan), (0, 1e101), (0, 1, 2), "01", 3, None, ("0", "1")],
    ),
    (OneOf(["a", 1, None]), ["a", 1, None], ["b", True, 1.0, 0, np.array([1, 2])]),
    (Either(Whole(1), OneOf([None, "all"])), [1, None, "all"], [0, "none", 1.5]),
]


@pytest.mark.parametrize(("constraint", "good", "bad"), CASES, ids=str)
def test_what_is_allowed(constraint, good, bad):
    assert all(constraint.allows(value) for value in good)
    assert not any(constraint.allows(value) for value in bad)


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (Whole(), "a whole number of at least 0"),
        (Whole(1, 9), "a whole number from 1 to 9"),
        (Bounds(), "two numbers, the smaller first"),
        (Bounds(0), "two numbers of at least 0, the smaller first"),
        (Real(), "a finite number"),
        (Real(0), "a finite number, at least 0"),
        (Real(high=1, high_open=True), "a finite number, below 1"),
        (Real(0, 0.5, low_open=True), "a finite number, above 0 and at most 0.5"),
        (OneOf(["a", 2]), "one of 'a', 2"),
        (Either(Whole(1), OneOf([None])), "a whole number of at least 1, or one of None"),
    ],
)
def test_the_sentence(constraint, words):
    with pytest.raises(UsageError) as caught:
        check("Model", "depth", -0.5j, constraint)
    assert str(caught.value) == f"Model: depth must be {words}; got (-0-0.5j)"
