"""Kernels of explanations: contributions that add up to the last bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel


@kernel
def fit_sums(
    first: int,
    last: int,
    totals: NDArray[np.float64],
    expected: NDArray[np.float64],
    contributions: NDArray[np.float64],
) -> None:
    """Make contributions add up to the totals, where only rounding is missing.

    The exact sum of a row and its expected value, rounded once, is then its total, unless that has
    finer digits than all of them. What is missing goes to the largest contribution, what is too
    small for its last place to the smallest. Those that are 0 stay 0.
    """
    for row in range(first, last):
        values = contributions[row]
        largest, smallest = 0, -1
        for j in range(len(values)):
            if abs(values[j]) > abs(values[largest]):
                largest = j
            if values[j] != 0.0 and (smallest < 0 or abs(values[j]) < abs(values[smallest])):
                smallest = j
        if smallest < 0:
            continue
        for attempt in range(4):
            # The sum as two numbers: what rounding loses of the first is added to the second.
            high, low = totals[row], 0.0
            for j in range(-1, len(values)):
                term = -(expected[row] if j < 0 else values[j])
                total = high + term
                part = total - high
                low += (high - (total - part)) + (term - part)
                high = total
            if high + low == 0.0:
                break
            values[largest if attempt % 2 == 0 else smallest] += high + low
