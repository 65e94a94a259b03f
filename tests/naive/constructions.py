"""Naive references of other constructions: documents really change places, or move.

``ranking`` gives the documents from the first rank to the last; by default that of the scores,
which must then differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from rankinite.measures import Measure
from tests.naive import measures as naive
from tests.naive import pairwise as naive_pairwise


def spring_smooth(
    measure: Measure,
    scores: Sequence[float],
    labels: Sequence[float],
    top_grade: float,
    ranking: Sequence[int] | None = None,
) -> tuple[list[float], list[float]]:
    """Return gradients and hessians if every unnormalised change is at least 1."""
    ranking = naive.sort_descending(scores) if ranking is None else ranking
    divisor = normaliser(measure, labels, top_grade)
    pairs = [
        (i, j, max(1.0, change * divisor) / divisor)
        for i, j, change in naive_pairwise.pairs(measure, labels, top_grade, ranking)
    ]
    return summed(pairs, scores)


def local_cost(
    measure: Measure,
    scores: Sequence[float],
    labels: Sequence[float],
    top_grade: float,
    ranking: Sequence[int] | None = None,
) -> tuple[list[float], list[float]]:
    """Return gradients and hessians if only pairs of neighbours count."""
    ranking = naive.sort_descending(scores) if ranking is None else ranking
    near = {frozenset(pair) for pair in pairwise(with_label(labels, ranking))}
    pairs = [
        (i, j, change)
        for i, j, change in naive_pairwise.pairs(measure, labels, top_grade, ranking)
        if frozenset((i, j)) in near
    ]
    return summed(pairs, scores)


def local_gradient(
    measure: Measure,
    scores: Sequence[float],
    labels: Sequence[float],
    top_grade: float,
    ranking: Sequence[int] | None = None,
    margin: float = 1.0,
) -> tuple[list[float], list[float]]:
    """Return the mean of the slopes towards the neighbour above and the one below."""
    ranking = naive.sort_descending(scores) if ranking is None else ranking
    gradient, hessian = [0.0] * len(scores), [0.0] * len(scores)
    kept = with_label(labels, ranking)
    if not differ(measure, labels, top_grade):
        return gradient, hessian
    for k, doc in enumerate(kept):
        slopes = []
        for other, sign in ((k - 1, 1.0), (k + 1, -1.0)):
            if 0 <= other < len(kept):
                u, v = ranking.index(doc), ranking.index(kept[other])
                rise = naive_pairwise.swap(measure, labels, top_grade, ranking, u, v)
                distance = abs(scores[doc] - scores[kept[other]])
                slopes.append(sign * rise / (distance + margin))
        gradient[doc] = sum(slopes) / len(slopes)
        hessian[doc] = 1.0
    return gradient, hessian


def discrete_bounded(
    measure: Measure,
    scores: Sequence[float],
    labels: Sequence[float],
    top_grade: float,
    ranking: Sequence[int] | None = None,
) -> tuple[list[float], list[float]]:
    """Return what moving each document to its ideal rank changes, with the move's direction."""
    ranking = naive.sort_descending(scores) if ranking is None else ranking
    gradient, hessian = [0.0] * len(scores), [0.0] * len(scores)
    kept = with_label(labels, ranking)
    if not differ(measure, labels, top_grade):
        return gradient, hessian
    ideal = sorted(kept, key=lambda doc: -naive.document_value(measure, labels[doc], top_grade))
    for doc in kept:
        moved = [other for other in kept if other != doc]
        moved.insert(ideal.index(doc), doc)
        places = iter(moved)
        after = [k if math.isnan(labels[k]) else next(places) for k in ranking]
        change = unnormalised(measure, labels, top_grade, after) - unnormalised(
            measure, labels, top_grade, ranking
        )
        up = kept.index(doc) - ideal.index(doc)
        gradient[doc] = math.copysign(min(1.0, abs(change)), up) if up else 0.0
        hessian[doc] = 1.0
    return gradient, hessian


def summed(
    pairs: Sequence[tuple[int, int, float]], scores: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return gradients and hessians of pairs: the better document, the worse, the change."""
    gradient, hessian = [0.0] * len(scores), [0.0] * len(scores)
    for i, j, change in pairs:
        rho = naive_pairwise.sigmoid(scores[j] - scores[i])
        gradient[i] += change * rho
        gradient[j] -= change * rho
        for doc in (i, j):
            hessian[doc] += change * rho * naive_pairwise.sigmoid(scores[i] - scores[j])
    return gradient, hessian


def effective_pairs(
    measure: Measure | None,
    labels: Sequence[float],
    top_grade: float,
    ranking: Sequence[int],
    truncation: int | None = None,
    gain_only: bool = False,
) -> int:
    """Return how many pairs have a swap that changes the measure, by more than rounding does."""
    pairs = naive_pairwise.pairs(measure, labels, top_grade, ranking, truncation, gain_only)
    return sum(change > 1e-12 for _, _, change in pairs)


def with_label(labels: Sequence[float], ranking: Sequence[int]) -> list[int]:
    """Return the documents that have a label, from the first rank to the last."""
    return [doc for doc in ranking if not math.isnan(labels[doc])]


def differ(measure: Measure, labels: Sequence[float], top_grade: float) -> bool:
    """Tell whether there is a pair: documents with labels that are not worth the same."""
    known = [label for label in labels if not math.isnan(label)]
    return len({naive.document_value(measure, label, top_grade) for label in known}) > 1


def unnormalised(
    measure: Measure, labels: Sequence[float], top_grade: float, ranking: Sequence[int]
) -> float:
    """Return DCG for NDCG, the sum of precisions for MAP, the number of relevant for P."""
    ranked = [0.0 if math.isnan(labels[k]) else labels[k] for k in ranking]
    divisor = normaliser(measure, labels, top_grade)
    return naive.strict_value(measure, ranked, top_grade) * divisor


def normaliser(measure: Measure, labels: Sequence[float], top_grade: float) -> float:
    """Return what the measure divides by."""
    known = [0.0 if math.isnan(label) else label for label in labels]
    values = [naive.document_value(measure, label, top_grade) for label in known]
    if measure.name in ("NDCG", "CNDCG"):
        best = sorted(values, reverse=True)
        return naive.dcg(measure, best, best[: measure.depth])
    if measure.name in ("MAP", "Recall"):
        return sum(values)
    if measure.name == "P":
        return measure.depth or len(labels)
    return 1.0
