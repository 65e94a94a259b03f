"""Exponentials of many numbers at once, from additions and multiplications only.

The C library's exp works on a single number; these loops are compiled to work on several at once.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel, summing_kernel

# Adding this to a number of moderate size rounds it to an integer, which is then in the lowest
# bits of the sum.
ROUNDER = 1.5 * 2.0**52
LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts; the first has so few bits that its product with an integer is exact.
LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# The exponent is to the left of the 52 bits of the fraction; this is the exponent of 1.0.
FRACTION_BITS = 52
EXPONENT_OF_ONE = 1023 << FRACTION_BITS


@summing_kernel
def exponential_near_0(r: float) -> float:
    """Return exp(r) for numbers up to 0.35 by Taylor's series, to the last bits."""
    series = 1.0 / 479001600.0
    series = series * r + 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    return series * r + 1.0


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
    for i in range(n):
        rounded = (numbers[i] - shift) * LOG2_E + ROUNDER
        power[i] = rounded
        out[i] = rounded - ROUNDER
    for i in range(n):
        power_bits[i] = (power_bits[i] << FRACTION_BITS) + EXPONENT_OF_ONE
    for i in range(n):
        r = ((numbers[i] - shift) - out[i] * LN2_HIGH) - out[i] * LN2_LOW
        out[i] = exponential_near_0(r) * power[i]
