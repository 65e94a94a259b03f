"""Naive references of lambda gradients: two documents really change places."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from rankinite.measures import Measure
from tests.naive import measures as naive


def lambdas(
    measure: Measure | None,
    scores: Sequence[float],
    labels: Sequence[float],
    top_grade: float,
    *,
    ranking: Sequence[int] | None = None,
    truncation: int | None = None,
    normalise: str = "none",
    gain_only: bool = False,
    better: Sequence[float] | None = None,
    worse: Sequence[float] | None = None,
) -> tuple[list[float], list[float]]:
    """Return gradient and hessian of each document of a query; RankNet's if the measure is None.

    ``ranking`` gives the documents from the first rank to the last; by default that of the
    scores, which must then differ. A pair counts ``better`` of its better document times ``worse``
    of the other; 1 if None.
    """
    gradient, hessian, sizes = [0.0] * len(scores), [0.0] * len(scores), []
    ranking = naive.sort_descending(scores) if ranking is None else ranking
    labelled = {s for s, label in zip(scores, labels, strict=True) if not math.isnan(label)}
    for i, j, change in pairs(measure, labels, top_grade, ranking, truncation, gain_only):
        if normalise == "distance" and len(labelled) > 1:
            change /= 0.01 + abs(scores[i] - scores[j])
        change *= 1.0 if better is None else better[i]
        change *= 1.0 if worse is None else worse[j]
        rho = sigmoid(scores[j] - scores[i])
        gradient[i] += change * rho
        gradient[j] -= change * rho
        hessian[i] += change * rho * sigmoid(scores[i] - scores[j])
        hessian[j] += change * rho * sigmoid(scores[i] - scores[j])
        sizes.append(change * rho)
    factor = normaliser(normalise, gradient, 2.0 * math.fsum(sizes))
    return [factor * number for number in gradient], [factor * number for number in hessian]


def position_losses(
    measure: Measure | None,
    scores: Sequence[float],
    labels: Sequence[float],
    top_grade: float,
    positions: Sequence[int],
    clicked: Sequence[float],
    unclicked: Sequence[float],
    *,
    truncation: int | None = None,
) -> tuple[list[float], list[float]]:
    """Return the sums that propensities are estimated from (Unbiased, Sec. 4).

    The first are by the position of a pair's better document, of losses over the propensity
    ``unclicked`` of the other; the second by that of the other, over ``clicked``. Positions count
    from 0.
    """
    of_better, of_worse = [0.0] * len(clicked), [0.0] * len(clicked)
    ranking = naive.sort_descending(scores)
    for i, j, change in pairs(measure, labels, top_grade, ranking, truncation):
        loss = change * softplus(scores[j] - scores[i])
        of_better[positions[i]] += loss / unclicked[positions[j]]
        of_worse[positions[j]] += loss / clicked[positions[i]]
    return of_better, of_worse


def softplus(x: float) -> float:
    """Return log(1 + exp(x)) for any x."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def pairs(
    measure: Measure | None,
    labels: Sequence[float],
    top_grade: float,
    ranking: Sequence[int],
    truncation: int | None = None,
    gain_only: bool = False,
) -> Iterator[tuple[int, int, float]]:
    """Go through pairs: the better document, the worse, what swapping them changes."""
    for u, v in combinations(range(len(ranking)), 2):
        i, j = ranking[u], ranking[v]
        if math.isnan(labels[i]) or math.isnan(labels[j]):
            continue
        if truncation is not None and u >= truncation:
            continue
        value_i, value_j = (document_value(measure, labels[k], top_grade) for k in (i, j))
        if value_i == value_j:
            continue
        change = swap(measure, labels, top_grade, ranking, u, v)
        if gain_only and change < 0.0:
            continue
        yield (i, j, abs(change)) if value_i > value_j else (j, i, abs(change))


def swap(
    measure: Measure | None,
    labels: Sequence[float],
    top_grade: float,
    ranking: Sequence[int],
    u: int,
    v: int,
) -> float:
    """Return how much the measure rises if the documents at two ranks change places."""
    if measure is None:
        return 1.0
    ranked = [0.0 if math.isnan(labels[k]) else labels[k] for k in ranking]
    before = naive.strict_value(measure, ranked, top_grade)
    ranked[u], ranked[v] = ranked[v], ranked[u]
    return naive.strict_value(measure, ranked, top_grade) - before


def document_value(measure: Measure | None, label: float, top_grade: float) -> float:
    """Return the label as the measure sees it."""
    return label if measure is None else naive.document_value(measure, label, top_grade)


def sigmoid(x: float) -> float:
    """Return 1 / (1 + exp(-x)) for any x."""
    return 1.0 / (1.0 + math.exp(-x)) if x > -700.0 else 0.0


def normaliser(normalise: str, gradient: Sequence[float], total: float) -> float:
    """Return the factor of a query's gradients and hessians."""
    if normalise == "deviation":
        mean = math.fsum(gradient) / len(gradient)
        deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in gradient) / len(gradient))
        return 1.0 / deviation if deviation > 0.0 else 0.0
    if normalise == "distance" and total > 0.0:
        return math.log2(1.0 + total) / total
    return 1.0
