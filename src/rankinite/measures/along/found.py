"""What is found along a line of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Course:
    """A measure against alpha: constant on intervals.

    Attributes
    ----------
    begins, ends
        The intervals, in order; each ends where the next begins, unless the course is not whole.
    values
        The measure on each.
    is_whole
        Whether all intervals are there; of very many, some stretches are left out.
    """

    begins: Floats
    ends: Floats
    values: Floats
    is_whole: bool


@dataclass(frozen=True)
class Peak:
    """A single alpha, where documents tie, that is worth more than what is next to it."""

    alpha: float
    value: float


@dataclass(frozen=True)
class Along:
    """The best of a measure along alpha.

    Attributes
    ----------
    alpha
        The middle of the best interval; or an end, if that is better than all intervals.
    interval
        The best interval: all alphas in it are worth the same.
    value
        The mean of the measure over the queries that count, at alpha.
    at_ends
        The same at the two ends of alpha's range.
    course
        The measure against alpha.
    peak
        The best single point that beats its neighbours and the best interval, if there is one: an
        expectation over the order of documents that tie there and nowhere else.
    """

    alpha: float
    interval: tuple[float, float]
    value: float
    at_ends: tuple[float, float]
    course: Course
    peak: Peak | None
