"""Naive references of diagnostics: one query at a time, documents really swap.

``ranking`` gives the documents from the first rank to the last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rankinite.measures import Measure
from tests.naive import pairwise as naive_pairwise


def ranking_of(scores: Sequence[float], ties: Sequence[int]) -> list[int]:
    """Return the documents by score; those of equal scores in the order of ``ties``."""
    return sorted(ties, key=lambda doc: -scores[doc])


def grade_shares(
    measure: Measure | None,
    scores: Sequence[float],
    labels: Sequence[float],
    top_grade: float,
    grades: Sequence[float],
    highly: float,
    *,
    ranking: Sequence[int],
    truncation: int | None = None,
    normalise: str = "none",
    gain_only: bool = False,
    mu: float | None = None,
) -> list[list[float]]:
    """Return the signed share of each grade for every highly relevant document with a gradient.

    RankNet's if the measure is None; with ``mu`` the cost of a pair is a sigmoid.
    """
    pairs_of_doc: dict[int, list[tuple[float, float]]] = {}
    apart = len({s for s, label in zip(scores, labels, strict=True) if not math.isnan(label)}) > 1
    pairs = naive_pairwise.pairs(measure, labels, top_grade, ranking, truncation, gain_only)
    for better, worse, change in pairs:
        if normalise == "distance" and apart:
            change /= 0.01 + abs(scores[better] - scores[worse])
        size = change * slope(scores[better] - scores[worse], mu)
        pairs_of_doc.setdefault(better, []).append((labels[worse], size))
        pairs_of_doc.setdefault(worse, []).append((labels[better], -size))
    shares = []
    for doc, gradients in pairs_of_doc.items():
        total = math.fsum(abs(gradient) for _, gradient in gradients)
        if labels[doc] >= highly and total > 0.0:
            shares.append(
                [
                    math.fsum(gradient for label, gradient in gradients if label == grade) / total
                    for grade in grades
                ]
            )
    return shares


def slope(apart: float, mu: float | None) -> float:
    """Return the size of the gradient of a pair of scores so far apart."""
    if mu is None:
        return naive_pairwise.sigmoid(-apart)
    return naive_pairwise.sigmoid(apart + mu) * naive_pairwise.sigmoid(-apart - mu)


def agreement(first: Sequence[float], other: Sequence[float]) -> float:
    """Return the share of documents whose gradients have the same sign, or the other is 0."""
    agree = [
        b == 0.0 or (a > 0.0) - (a < 0.0) == (b > 0.0) - (b < 0.0)
        for a, b in zip(first, other, strict=True)
    ]
    return sum(agree) / len(agree)


def top_shares(
    ranking: Sequence[int], labels: Sequence[float], grades: Sequence[float], top: int
) -> list[float]:
    """Return the share of every grade, and of no label, among the first ranks."""
    first = [labels[doc] for doc in ranking[:top]]
    missing = sum(math.isnan(label) for label in first)
    return [*(first.count(grade) / len(first) for grade in grades), missing / len(first)]


def rank_changes(before: Sequence[int], after: Sequence[int], top: int) -> tuple[float, float]:
    """Return the shares of ranks, of the first and of all, with another document than before."""
    changed = [doc != now for doc, now in zip(before, after, strict=True)]
    first = changed[:top]
    return sum(first) / len(first), sum(changed) / len(changed)


def mean(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the means of columns."""
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
