"""Naive line search: every crossing, and the measure in the middle of every gap.

Scores are fractions, so that documents that cross in one point do so exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise

from rankinite.measures import Measure
from tests.naive import measures as naive

Query = tuple[Sequence[float], Sequence[float], Sequence[float]]  # first, second, labels
Line = Callable[[Fraction, Fraction, Fraction], Fraction]  # first, second, alpha


def mixed(first: Fraction, second: Fraction, alpha: Fraction) -> Fraction:
    """Return the convex mix."""
    return (1 - alpha) * first + alpha * second


def added(first: Fraction, second: Fraction, alpha: Fraction) -> Fraction:
    """Return the sum."""
    return first + alpha * second


def crossings(query: Query, line: Line, low: Fraction, high: Fraction) -> set[Fraction]:
    """Return all alphas strictly between the bounds at which two documents cross."""
    alphas = set()
    for i, j in combinations(range(len(query[0])), 2):
        # The difference of two scores is a line: its zero from its values at 0 and at 1.
        zero = difference(query, i, j, line, Fraction(0))
        slope = difference(query, i, j, line, Fraction(1)) - zero
        if slope and low < -zero / slope < high:
            alphas.add(-zero / slope)
    return alphas


def difference(query: Query, i: int, j: int, line: Line, alpha: Fraction) -> Fraction:
    """Return by how much one document is above the other."""
    upper, lower = (line(Fraction(query[0][k]), Fraction(query[1][k]), alpha) for k in (i, j))
    return upper - lower


def value_at(
    queries: Sequence[Query], measure: Measure, top_grade: float, line: Line, alpha: Fraction
) -> float:
    """Return the mean of the measure over the queries that count."""
    values = []
    for first, second, labels in queries:
        scores = [line(Fraction(a), Fraction(b), alpha) for a, b in zip(first, second, strict=True)]
        values.append(naive.expectation(measure, scores, labels, top_grade))
    counted = [value for value in values if not math.isnan(value)]
    return math.fsum(counted) / len(counted)


def course(
    queries: Sequence[Query],
    measure: Measure,
    top_grade: float,
    line: Line,
    low: Fraction,
    high: Fraction,
) -> list[tuple[Fraction, Fraction, float]]:
    """Return all gaps between crossings, with the measure in the middle of each."""
    alphas = set().union(*(crossings(query, line, low, high) for query in queries))
    return [
        (begin, end, value_at(queries, measure, top_grade, line, (begin + end) / 2))
        for begin, end in pairwise([low, *sorted(alphas), high])
    ]
