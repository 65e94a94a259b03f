"""Thresholds that send every document the way of the trees, by the comparison of another engine.

A document of ours goes left if its feature, a number of 32 bits, is at most the threshold. Other
tools compare by ``<``, in 64 bits, or with something added; for numbers of 32 bits there is nearly
always a threshold of theirs that separates the same numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.types import Floats

LARGEST = float(np.finfo(np.float32).max)
# What Solr adds to each threshold, in 32 bits.
SLACK = np.float32(1e-6)
# Candidates on both sides of the difference, in steps of the smallest size.
NEIGHBOURS = 8


def at_most(thresholds: NDArray[np.float32]) -> Floats:
    """Return thresholds for ``x <= t`` in 32 or 64 bits.

    Infinity, which only separates missing values from all others, becomes the largest number.
    """
    return np.minimum(thresholds.astype(np.float64), LARGEST)


def below(thresholds: NDArray[np.float32]) -> Floats:
    """Return thresholds for ``x < t`` in 32 or 64 bits: the next number of 32 bits.

    Behind the largest number that is infinity.
    """
    return _next(thresholds, np.inf).astype(np.float64)


def with_slack(thresholds: NDArray[np.float32]) -> tuple[Floats, NDArray[np.int64]]:
    """Return thresholds for ``x <= t + 1e-6`` in 32 bits, and by how many numbers each is off.

    Sums with 1e-6 are rounded, so that none may equal the threshold: the nearest is taken. Near 0
    sums have gaps in which there are many numbers.
    """
    wanted = np.minimum(thresholds, np.float32(LARGEST))
    best = (wanted - SLACK).astype(np.float32)
    for direction in (-np.inf, np.inf):
        step = best
        for _ in range(NEIGHBOURS):
            step = _next(step, direction)
            is_nearer = np.abs(step + SLACK - wanted) < np.abs(best + SLACK - wanted)
            best = np.where(is_nearer, step, best)
    return best.astype(np.float64), np.abs(_rank(best + SLACK) - _rank(wanted))


def _rank(numbers: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return whole numbers in the order of numbers of 32 bits, one apart from the next."""
    bits = numbers.astype(np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _next(numbers: NDArray[np.float32], direction: float) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return np.nextafter(numbers, np.float32(direction), dtype=np.float32)


def number(value: float) -> str:
    """Return the shortest text that reads back as the same number of 64 bits.

    Examples
    --------
    >>> number(np.float32(0.1))
    '0.10000000149011612'
    """
    return repr(float(value))
