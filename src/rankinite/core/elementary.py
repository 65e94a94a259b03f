"""Exponentials and logarithms that are the same to the last bit on every processor.

The functions of the C library and of numpy choose their code by what the processor has, and differ
in the last bit. Those here consist of additions, multiplications and divisions, which are rounded
alike everywhere; their errors are below two units in the last place. Kernels call `exponential`,
`logarithm` and `logarithm_plus_1` for single numbers and `exponentials` for many; Python calls the
functions that have numpy's names.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.jit import float_of_bits, inlined_kernel, kernel

# Adding this to a number of moderate size rounds it to an integer, which is then in the lowest
# bits of the sum.
ROUNDER = 1.5 * 2.0**52
LOG2_E = float.fromhex("0x1.71547652b82fep+0")
LN2 = float.fromhex("0x1.62e42fefa39efp-1")
# ln 2 in two parts; the first has so few bits that its product with an integer is exact.
LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# The exponent is to the left of the 52 bits of the fraction; this is the exponent of 1.0.
FRACTION_BITS = 52
EXPONENT_OF_ONE = 1023 << FRACTION_BITS
# Beyond these exp is 0 and infinity.
LEAST_EXPONENT, MOST_EXPONENT = -746.0, 710.0
ROOT_HALF = math.sqrt(0.5)


@inlined_kernel
def exponential_near_0(r: Any) -> Any:
    """Return exp(r) for numbers up to 0.35 by Taylor's series, to the last bits."""
    # To the 13th power; the next term, r^14 / 14!, is below 5e-18. Pairs of terms, then pairs of
    # pairs: a processor computes these side by side, where each step of Horner's rule waits for the
    # one before.
    square = r * r
    fourth = square * square
    low = (r * (1.0 / 6.0) + 0.5) + (r * (1.0 / 120.0) + 1.0 / 24.0) * square
    middle = (r * (1.0 / 5040.0) + 1.0 / 720.0) + (r * (1.0 / 362880.0) + 1.0 / 40320.0) * square
    high = (r * (1.0 / 39916800.0) + 1.0 / 3628800.0) + (
        r * (1.0 / 6227020800.0) + 1.0 / 479001600.0
    ) * square
    # What is added to 1 is computed apart, so that only the last sum rounds much.
    return 1.0 + (r + square * (low + fourth * (middle + fourth * high)))


@inlined_kernel
def logarithm_near_1(x: Any) -> Any:
    """Return log(x) for numbers between the roots of 1/2 and 2."""
    # log((1 + s) / (1 - s)) = 2 (s + s^3 / 3 + s^5 / 5 + ...) with s = f / (2 + f), at most 0.172.
    # As 2 s = f - s f, the first term is f itself, which is exact, less what is small.
    f = x - 1.0
    s = f / (2.0 + f)
    square = s * s
    series = 1.0 / 23.0
    series = series * square + 1.0 / 21.0
    series = series * square + 1.0 / 19.0
    series = series * square + 1.0 / 17.0
    series = series * square + 1.0 / 15.0
    series = series * square + 1.0 / 13.0
    series = series * square + 1.0 / 11.0
    series = series * square + 1.0 / 9.0
    series = series * square + 1.0 / 7.0
    series = series * square + 1.0 / 5.0
    series = series * square + 1.0 / 3.0
    return f - s * (f - 2.0 * (square * series))


@kernel
def exponential(x: float) -> float:
    """Return exp(x)."""
    if x != x:  # NaN has no whole part
        return x
    limited = float(min(max(x, LEAST_EXPONENT), MOST_EXPONENT))
    whole = (limited * LOG2_E + ROUNDER) - ROUNDER
    r = (limited - whole * LN2_HIGH) - whole * LN2_LOW
    # 2^k as two factors: k itself may be outside the range of exponents.
    k = int(whole)
    half = k >> 1
    lower = float_of_bits((half << FRACTION_BITS) + EXPONENT_OF_ONE)
    upper = float_of_bits(((k - half) << FRACTION_BITS) + EXPONENT_OF_ONE)
    return float(exponential_near_0(r) * lower * upper)


@kernel
def logarithm(x: float) -> float:
    """Return log(x) for a positive finite number."""
    fraction, exponent = math.frexp(x)
    if fraction < ROOT_HALF:
        fraction *= 2.0
        exponent -= 1
    return float(exponent * LN2_HIGH + (exponent * LN2_LOW + logarithm_near_1(fraction)))


@kernel
def logarithm_plus_1(x: float) -> float:
    """Return log(1 + x) for a number of 0 or more, which may be tiny."""
    total = 1.0 + x
    # What was lost in the sum, to first order.
    return logarithm(total) + (x - (total - 1.0)) / total


@kernel
def exponentials(
    numbers: NDArray[np.float64],
    shift: float,
    n: int,
    power: NDArray[np.float64],
    power_bits: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Write exp(number - shift) for n numbers; the differences must lie between -700 and 700.

    With x = k ln 2 + r and k whole, exp(x) = 2^k exp(r), and r is at most 0.35. ``power`` is
    scratch and ``power_bits`` the same memory seen as integers.
    """
    # Three loops: the second reads as integers what the first wrote as floats. They are compiled to
    # work on several numbers at once.
    for i in range(n):
        rounded = (numbers[i] - shift) * LOG2_E + ROUNDER
        power[i] = rounded
        out[i] = rounded - ROUNDER
    for i in range(n):
        power_bits[i] = (power_bits[i] << FRACTION_BITS) + EXPONENT_OF_ONE
    for i in range(n):
        r = ((numbers[i] - shift) - out[i] * LN2_HIGH) - out[i] * LN2_LOW
        out[i] = exponential_near_0(r) * power[i]


# In Python, and for arrays; models are scored without a compiler


def _in_python(function: Any) -> Any:
    return getattr(function, "py_func", function)


def exp(numbers: ArrayLike) -> Any:
    """Return the exponentials of a number or an array."""
    limited = np.clip(np.asarray(numbers, np.float64), LEAST_EXPONENT, MOST_EXPONENT)
    whole = (limited * LOG2_E + ROUNDER) - ROUNDER
    return _times_power_of_2((limited - whole * LN2_HIGH) - whole * LN2_LOW, whole)


def exp2(numbers: ArrayLike) -> Any:
    """Return 2 to the power of numbers; to whole powers it is exact."""
    limited = np.clip(np.asarray(numbers, np.float64), -1080.0, 1030.0)
    whole = np.rint(limited)
    # Nearly all labels are whole numbers, and then there is nothing to compute.
    if (whole == limited).all():
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(1.0, whole.astype(np.int32))
    return _times_power_of_2((limited - whole) * LN2, whole)


def _times_power_of_2(r: Any, whole: Any) -> Any:
    """Return exp(r) times a power of 2, as two factors: it may be outside the range of numbers."""
    k = np.nan_to_num(whole).astype(np.int64)
    factors = (
        ((exponents << FRACTION_BITS) + EXPONENT_OF_ONE).view(np.float64)
        for exponents in (k >> 1, k - (k >> 1))
    )
    with np.errstate(over="ignore", under="ignore"):
        return _in_python(exponential_near_0)(r) * next(factors) * next(factors)


def power(base: float, exponents: ArrayLike) -> NDArray[np.float64]:
    """Return a number to the power of whole numbers of 0 or more, by repeated squaring."""
    left = np.asarray(exponents).astype(np.int64)
    result = np.ones(left.shape)
    while left.any():
        result = np.where(left & 1 == 1, result * base, result)
        base *= base
        left >>= 1
    return result


def cospi(x: float) -> float:
    """Return the cosine of pi times a number from 0 to 1."""
    # sin(y) by Taylor's series, with y between plus and minus pi / 2.
    y = math.pi * (0.5 - x)
    square = y * y
    series = 1.0
    for k in range(21, 1, -2):
        series = 1.0 - series * square / (k * (k - 1))
    return y * series


def log(numbers: ArrayLike) -> Any:
    """Return the natural logarithms of positive numbers."""
    fraction, exponent = _near_1(numbers)
    series = _in_python(logarithm_near_1)(fraction)
    return exponent * LN2_HIGH + (exponent * LN2_LOW + series)


def log2(numbers: ArrayLike) -> Any:
    """Return the logarithms of positive numbers to base 2; those of powers of 2 are exact."""
    fraction, exponent = _near_1(numbers)
    return exponent + _in_python(logarithm_near_1)(fraction) * LOG2_E


def _near_1(numbers: ArrayLike) -> tuple[Any, Any]:
    """Return numbers as a fraction between the roots of 1/2 and 2, and a power of 2."""
    fraction, exponent = np.frexp(np.asarray(numbers, np.float64))
    is_low = fraction < ROOT_HALF
    return np.where(is_low, 2.0 * fraction, fraction), exponent - is_low
