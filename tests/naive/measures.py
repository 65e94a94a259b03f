"""Naive references of measures: plain Python, one definition after the other.

A measure is defined for a strict order: labels from the first rank to the last. Its value under
ties is the mean over all orders of tied documents, every one of them written out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise, product
from operator import mul

from rankinite.measures import Measure


def sort_descending(keys: Sequence[float]) -> list[int]:
    """Return the places of the keys from large to small; equal keys keep their order."""
    return sorted(range(len(keys)), key=lambda i: -keys[i])


def strict_value(measure: Measure, labels: Sequence[float], top_grade: float) -> float:
    """Return the value of documents in this order."""
    values = [document_value(measure, label, top_grade) for label in labels]
    if max(values) == 0:
        return math.nan if measure.empty == "skip" else measure.empty
    return DEFINITIONS[measure.name](measure, values, values[: measure.depth])


def expectation(
    measure: Measure, scores: Sequence[float], labels: Sequence[float], top_grade: float
) -> float:
    """Return the mean value over all orders of documents with equal scores."""
    orders = [strict_value(measure, order, top_grade) for order in all_orders(scores, labels)]
    return math.fsum(orders) / len(orders)


def all_orders(scores: Sequence[float], labels: Sequence[float]) -> Iterator[list[float]]:
    """Go through the distinct orders of labels that the scores allow; all are equally likely."""
    tied = [
        [label for s, label in zip(scores, labels, strict=True) if s == score]
        for score in sorted(set(scores), reverse=True)
    ]
    for groups in product(*(list(distinct_orders(group)) for group in tied)):
        yield [label for group in groups for label in group]


def distinct_orders(labels: list[float]) -> Iterator[list[float]]:
    """Go through the orders of labels that can be told apart."""
    if len(set(labels)) <= 1:
        yield labels
        return
    for first in sorted(set(labels)):
        rest = labels.copy()
        rest.remove(first)
        for order in distinct_orders(rest):
            yield [first, *order]


def document_value(measure: Measure, label: float, top_grade: float) -> float:
    """Return the gain of a document, its chance to satisfy, or whether it is relevant."""
    if measure.name in ("MAP", "MRR", "P", "Recall", "Hit", "RBP"):
        return 1.0 if label >= measure.relevant else 0.0
    if measure.name == "Judged":
        return 0.0 if math.isnan(label) else 1.0
    if measure.name in ("NDCG", "DCG"):
        if not isinstance(measure.gain, str):
            return measure.gain[int(label)]
        return label if measure.gain == "linear" else 2.0**label - 1.0
    top = top_grade if measure.top_grade is None else measure.top_grade
    if measure.name == "CNDCG":
        return 2.0 ** (top * label) - 1.0
    return (2.0**label - 1.0) / 2.0**top


def dcg(_measure: Measure, _all: list[float], counted: list[float]) -> float:
    """Return the sum of gain / log2(1 + rank)."""
    return math.fsum(gain / math.log2(1 + rank) for rank, gain in enumerate(counted, 1))


def ndcg(measure: Measure, gains: list[float], counted: list[float]) -> float:
    """Return DCG over the DCG of the best order."""
    best = sorted(gains, reverse=True)
    return dcg(measure, gains, counted) / dcg(measure, best, best[: measure.depth])


def err(_measure: Measure, _all: list[float], counted: list[float]) -> float:
    """Return the sum of P(the user stops at rank) / rank (Ensemble, Eq. 1)."""
    return math.fsum(stop / rank for rank, stop in enumerate(stopping(counted), 1))


def pfound(measure: Measure, _all: list[float], counted: list[float]) -> float:
    """Return the sum of P(the user stops at rank), where some give up before each next rank."""
    stay = 1.0 - measure.break_
    return math.fsum(stop * stay**above for above, stop in enumerate(stopping(counted)))


def stopping(chances: list[float]) -> list[float]:
    """Return the chance to stop at each rank: satisfied there and nowhere above."""
    continues = [1.0, *accumulate((1.0 - chance for chance in chances), mul)]
    return [chance * above for chance, above in zip(chances, continues[:-1], strict=True)]


def average_precision(_measure: Measure, relevant: list[float], counted: list[float]) -> float:
    """Return the sum of precisions at relevant ranks over all relevant (Optimality, Eq. 1)."""
    precisions = [sum(counted[:r]) / r for r in range(1, len(counted) + 1) if counted[r - 1]]
    return math.fsum(precisions) / sum(relevant)


def reciprocal_rank(_measure: Measure, _all: list[float], counted: list[float]) -> float:
    """Return 1 over the first relevant rank (Optimality, Eq. 2), 0 if there is none."""
    return 1.0 / (counted.index(1.0) + 1) if 1.0 in counted else 0.0


def precision(measure: Measure, relevant: list[float], counted: list[float]) -> float:
    """Return the relevant documents down to the depth over the depth."""
    return sum(counted) / (measure.depth or len(relevant))


def recall(_measure: Measure, relevant: list[float], counted: list[float]) -> float:
    """Return the relevant documents down to the depth over all relevant ones."""
    return sum(counted) / sum(relevant)


def coverage(_measure: Measure, _all: list[float], judged: list[float]) -> float:
    """Return the documents with a label down to the depth, over the ranks down to it."""
    return sum(judged) / len(judged)


def hit(_measure: Measure, _all: list[float], counted: list[float]) -> float:
    """Return 1 if there is a relevant document down to the depth, 0 if not."""
    return float(any(counted))


def rank_biased_precision(measure: Measure, _all: list[float], counted: list[float]) -> float:
    """Return (1 - p) times the sum of p^(rank - 1) over relevant ranks (Moffat & Zobel 2008)."""
    chances = (measure.p**above for above, relevant in enumerate(counted) if relevant)
    return (1.0 - measure.p) * math.fsum(chances)


def exact_cascade(
    scores: Sequence[float], labels: Sequence[float], weight: Callable[[int], Fraction]
) -> Fraction:
    """Return the expected weight of the stopping rank under ties, exactly (top grade 4).

    After p documents of a tied group of n, the user goes on with chance e_p(T) / C(n, p), where
    e_p adds up the products of T = 1 - R over all sets of p documents.
    """
    total, alive, rank = Fraction(0), Fraction(1), 0
    for score in sorted(set(scores), reverse=True):
        group = [y for s, y in zip(scores, labels, strict=True) if s == score]
        sums = [Fraction(1)] + [Fraction(0)] * len(group)
        for y in group:
            continues = 1 - Fraction(2 ** int(y) - 1, 16)
            sums = [1, *(b + continues * a for a, b in pairwise(sums))]
        chances = [total_p / math.comb(len(group), p) for p, total_p in enumerate(sums)]
        for before, after in pairwise(chances):
            rank += 1
            total += alive * (before - after) * weight(rank)
        alive *= chances[-1]
    return total


DEFINITIONS = {
    "NDCG": ndcg,
    "CNDCG": ndcg,
    "DCG": dcg,
    "ERR": err,
    "pFound": pfound,
    "MAP": average_precision,
    "MRR": reciprocal_rank,
    "P": precision,
    "Judged": coverage,
    "Recall": recall,
    "Hit": hit,
    "RBP": rank_biased_precision,
}
