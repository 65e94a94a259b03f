"""The functions against decimal arithmetic of 40 digits, which rounds correctly everywhere."""

from __future__ import annotations

import decimal
import math

import numpy as np
import pytest

from rankinite.core import elementary
from rankinite.core.elementary import exponential, exponentials, logarithm, logarithm_plus_1

CONTEXT = decimal.Context(prec=40, Emin=-9999, Emax=9999)


def exact_exp(x):
    return CONTEXT.exp(decimal.Decimal(x))


def exact_log(x):
    return CONTEXT.ln(decimal.Decimal(x))


def units_off(value, exact):
    """How many units in the last place of the exact value a number is from it."""
    unit = decimal.Decimal(math.ulp(float(exact)))
    return float(abs(decimal.Decimal(float(value)) - exact) / unit)


def drawn(*ranges, n=150):
    rng = np.random.default_rng(1)
    return [float(x) for low, high in ranges for x in rng.uniform(low, high, n)]


EXPONENTS = [0.0, -0.0, 1.0, -1.0, 1e-300, -1e-17, 709.7, -708.3]
EXPONENTS += drawn((-1e-3, 1e-3), (-1.0, 1.0), (-40.0, 40.0), (-708.0, 709.7))
POSITIVE = [1.0, 2.0, 0.5, 1.0 + 2**-52, 1.0 - 2**-53, 1e-308, 1.7e308, 5e-324, math.sqrt(0.5)]
POSITIVE += [math.exp(x) for x in drawn((-0.5, 0.5), (-30.0, 30.0), (-700.0, 700.0))]


@pytest.mark.kernel
@pytest.mark.parametrize("function", [exponential, elementary.exp], ids=["one", "array"])
def test_exponentials_are_nearly_exact(function):
    worst = max(units_off(function(x), exact_exp(x)) for x in EXPONENTS)
    assert worst < 2.0


@pytest.mark.kernel
@pytest.mark.parametrize("function", [logarithm, elementary.log], ids=["one", "array"])
def test_logarithms_are_nearly_exact(function):
    assert function(1.0) == 0.0
    others = [x for x in POSITIVE if x != 1.0]
    worst = max(units_off(function(x), exact_log(x)) for x in others)
    assert worst < 2.0


@pytest.mark.kernel
def test_logarithms_of_a_little_more_than_1():
    numbers = [5e-324, 1e-300, 1e-17, 1e-16, 1e-8, *np.abs(EXPONENTS[8:308]).tolist()]
    worst = max(
        units_off(logarithm_plus_1(x), exact_log(CONTEXT.add(1, decimal.Decimal(x))))
        if x > 1e-30
        else units_off(logarithm_plus_1(x), decimal.Decimal(x))  # log(1 + x) = x - x^2 / 2 + ...
        for x in numbers
    )
    assert worst < 2.0
    assert logarithm_plus_1(0.0) == 0.0


@pytest.mark.kernel
def test_what_is_too_large_or_small():
    for function in (exponential, elementary.exp):
        assert function(1e4) == math.inf
        assert function(math.inf) == math.inf
        assert function(-1e4) == 0.0
        assert function(-math.inf) == 0.0
        assert math.isnan(function(math.nan))
        # The smallest numbers have few bits; 1e-320 is about 2,000 of them.
        assert function(-736.827) == pytest.approx(1e-320, rel=1e-3)


def test_powers_of_2_are_exact():
    whole = np.arange(-1074, 1024)
    assert (elementary.exp2(whole) == np.ldexp(1.0, whole)).all()
    assert (elementary.log2(np.ldexp(1.0, whole)) == whole).all()
    assert elementary.exp2([-1080.0, -1e6, 1030.0]).tolist() == [0.0, 0.0, math.inf]


def test_powers_of_2_between_whole_ones():
    numbers = drawn((-20.0, 20.0), (-1000.0, 1000.0))
    ln2 = exact_log(2)
    powers = [CONTEXT.exp(CONTEXT.multiply(decimal.Decimal(x), ln2)) for x in numbers]
    logs = [CONTEXT.divide(exact_log(x), ln2) for x in POSITIVE]
    assert max(map(units_off, elementary.exp2(numbers), powers)) < 2.0
    off = [
        units_off(value, log)
        for value, log in zip(elementary.log2(POSITIVE), logs, strict=True)
        if log != 0
    ]
    assert max(off) < 2.0


def test_powers_of_a_number():
    # Products of 53 bits each, rounded: to the 10th power at most 9 roundings of half a unit.
    assert elementary.power(0.5, np.arange(60)).tolist() == [2.0**-k for k in range(60)]
    for base in (0.9, 0.85, 0.3, 0.0, 1.0):
        exact = [CONTEXT.power(decimal.Decimal(base), k) if k else 1 for k in range(11)]
        off = map(units_off, elementary.power(base, np.arange(11)), exact)
        assert max(off) <= 5.0


def test_the_cosine():
    shares = np.linspace(0.0, 1.0, 201)
    values = [elementary.cospi(x) for x in shares.tolist()]
    assert values[0] == pytest.approx(1.0, abs=2e-16)
    assert values[100] == 0.0
    assert values[50] == pytest.approx(math.sqrt(0.5), abs=2e-16)
    np.testing.assert_allclose(values, np.cos(np.pi * shares), atol=4e-16)


@pytest.mark.kernel
def test_many_are_those_of_one():
    numbers = np.array(drawn((-300.0, 300.0), (-1.0, 1.0), n=501))
    out, spare = np.empty(len(numbers)), np.empty(len(numbers))
    exponentials(numbers, 0.25, len(numbers), spare, spare.view(np.int64), out)
    singly = [exponential(x) for x in (numbers - 0.25).tolist()]
    assert out.tolist() == singly
    assert elementary.exp(numbers - 0.25).tolist() == singly
    positive = np.abs(numbers) + 1e-9
    assert elementary.log(positive).tolist() == [logarithm(x) for x in positive.tolist()]
