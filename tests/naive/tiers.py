"""Naive references of tiers and of the sigmoid cost: documents really swap.

``ranking`` gives the documents from the first rank to the last; by default that of the scores,
which must then differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from rankinite.measures import Measure
from tests.naive import measures as naive
from tests.naive import pairwise as naive_pairwise

Labels = Sequence[float]


def tier(
    measures: Sequence[Measure],
    labels: Sequence[Labels],
    scores: Sequence[float],
    top_grade: float,
    *,
    ranking: Sequence[int] | None = None,
    truncation: int | None = None,
    normalise: str = "none",
    pairs_of: str = "positive",
) -> tuple[list[float], list[float]]:
    """Return gradient and hessian of each document by the last of the measures, a lower tier."""
    ranking = naive.sort_descending(scores) if ranking is None else ranking
    members = [k for k in ranking if takes_part(measures[-1], labels[-1][k], top_grade, pairs_of)]
    all_equal = len({scores[k] for k in members}) <= 1
    gradient, hessian, sizes = [0.0] * len(scores), [0.0] * len(scores), []
    for i, j, change in tied_pairs(measures, labels, top_grade, ranking, truncation, members):
        if normalise == "distance" and not all_equal:
            change /= 0.01 + abs(scores[i] - scores[j])
        rho = naive_pairwise.sigmoid(scores[j] - scores[i])
        gradient[i] += change * rho
        gradient[j] -= change * rho
        for k in (i, j):
            hessian[k] += change * rho * naive_pairwise.sigmoid(scores[i] - scores[j])
        sizes.append(change * rho)
    factor = naive_pairwise.normaliser(normalise, gradient, 2.0 * math.fsum(sizes))
    return [factor * number for number in gradient], [factor * number for number in hessian]


def tied_pairs(
    measures: Sequence[Measure],
    labels: Sequence[Labels],
    top_grade: float,
    ranking: Sequence[int],
    truncation: int | None,
    members: Sequence[int],
) -> Iterator[tuple[int, int, float]]:
    """Go through pairs tied above: the better document, the worse, what swapping them changes."""
    known = [0.0 if math.isnan(label) else label for label in labels[-1]]
    for u, v in combinations(range(len(ranking)), 2):
        i, j = ranking[u], ranking[v]
        if i not in members or j not in members or (truncation is not None and u >= truncation):
            continue
        if not all(
            tied(measure, column[i], column[j], top_grade)
            for measure, column in zip(measures[:-1], labels[:-1], strict=True)
        ):
            continue
        value_i, value_j = (
            naive_pairwise.document_value(measures[-1], known[k], top_grade) for k in (i, j)
        )
        if value_i != value_j:
            change = abs(naive_pairwise.swap(measures[-1], known, top_grade, ranking, u, v))
            yield (i, j, change) if value_i > value_j else (j, i, change)


def takes_part(measure: Measure, label: float, top_grade: float, pairs_of: str) -> bool:
    """Tell whether a document makes pairs in a lower tier."""
    if pairs_of == "all":
        return True
    if math.isnan(label):
        return False
    return pairs_of == "labelled" or naive_pairwise.document_value(measure, label, top_grade) > 0.0


def tied(measure: Measure, first: float, second: float, top_grade: float) -> bool:
    """Tell whether two labels are the same to a measure; no label is the same as no label."""
    if math.isnan(first) or math.isnan(second):
        return math.isnan(first) and math.isnan(second)
    return naive_pairwise.document_value(
        measure, first, top_grade
    ) == naive_pairwise.document_value(measure, second, top_grade)


def tiered(
    measures: Sequence[Measure],
    labels: Sequence[Labels],
    weights: Sequence[float],
    scores: Sequence[float],
    top_grade: float,
    *,
    normalise: str = "none",
    truncation: int | None = None,
    ranking: Sequence[int] | None = None,
    pairs_of: str = "positive",
) -> tuple[list[float], list[float]]:
    """Return gradient and hessian of each document by all tiers together."""
    of_parts = normalise if normalise == "distance" else "none"
    parts = [
        naive_pairwise.lambdas(
            measures[0], scores, labels[0], top_grade,
            ranking=ranking, truncation=truncation, normalise=of_parts,
        )
    ]  # fmt: skip
    parts += [
        tier(
            measures[:k], labels[:k], scores, top_grade,
            ranking=ranking, truncation=truncation, normalise=of_parts, pairs_of=pairs_of,
        )
        for k in range(2, len(measures) + 1)
    ]  # fmt: skip
    return together(parts, [1.0 - sum(weights), *weights], normalise)


def together(
    parts: Sequence[tuple[list[float], list[float]]],
    mixture_weights: Sequence[float],
    normalise: str,
) -> tuple[list[float], list[float]]:
    """Return the weighted sums of gradients and hessians, over the deviation if asked."""
    gradient, hessian = (
        [
            math.fsum(s * part[row][k] for s, part in zip(mixture_weights, parts, strict=True))
            for k in docs
        ]
        for row, docs in enumerate([range(len(parts[0][0]))] * 2)
    )
    factor = (
        naive_pairwise.normaliser("deviation", gradient, 0.0) if normalise == "deviation" else 1.0
    )
    return [factor * number for number in gradient], [factor * number for number in hessian]


def sigmoid_cost(
    measure: Measure,
    scores: Sequence[float],
    labels: Labels,
    top_grade: float,
    mu: float,
    *,
    ranking: Sequence[int] | None = None,
    truncation: int | None = None,
    normalise: str = "none",
) -> list[float]:
    """Return the lambda of each document by Eqs. 14 and 15 of Objectives, with their sign."""
    ranking = naive.sort_descending(scores) if ranking is None else ranking
    labelled = {s for s, label in zip(scores, labels, strict=True) if not math.isnan(label)}
    gradient, sizes = [0.0] * len(scores), []
    for i, j, change in naive_pairwise.pairs(measure, labels, top_grade, ranking, truncation):
        if normalise == "distance" and len(labelled) > 1:
            change /= 0.01 + abs(scores[i] - scores[j])
        pair = change * slope(scores[i] - scores[j], mu)
        gradient[i] += pair
        gradient[j] -= pair
        sizes.append(pair)
    factor = naive_pairwise.normaliser(normalise, gradient, 2.0 * math.fsum(sizes))
    return [factor * number for number in gradient]


def slope(difference: float, mu: float) -> float:
    """Return how fast 1 / (1 + exp(difference + mu)) falls."""
    return naive_pairwise.sigmoid(difference + mu) * naive_pairwise.sigmoid(-difference - mu)
