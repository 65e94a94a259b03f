"""Which features made queries worse between two models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankinite.core.errors import DataError
from rankinite.core.types import Floats, Integers
from rankinite.data.ranking_data import RankingData
from rankinite.explanation.explain import Explanation, explain
from rankinite.measures.measure import Measure
from rankinite.measures.scorer import Scorer
from rankinite.measures.text import one_measure
from rankinite.rankers.ranker import Ranker

OWNER = "explain_losses"
# Queries beyond the largest losses change the picture little, and pairs are many.
MOST_QUERIES = 1000
# Smaller differences come from the rounding of sums.
ROUNDING = 1e-12


@dataclass(frozen=True)
class QueryChange:
    """The values of a measure for a query, by the earlier and by the later model."""

    qid: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """How much the measure has gained."""
        return self.after - self.before

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"query": self.qid, "before": self.before, "after": self.after}


@dataclass(frozen=True)
class Losses:
    """Which features moved documents wrongly in the queries that got worse.

    Attributes
    ----------
    measure
        The measure.
    wins, losses
        The queries that got better and worse, the largest change first.
    n_queries
        Number of queries that count.
    n_pairs
        Number of pairs of documents that the earlier model ranks rightly and the later one wrongly.
    influences
        By feature, how much it moved these pairs the wrong way, the largest first: the change of
        its contribution to the difference of the scores, in standard deviations of each model's
        scores within queries; the mean over the pairs of a query, and over queries. They add up to
        the mean change of the differences.
    """

    measure: str
    wins: tuple[QueryChange, ...]
    losses: tuple[QueryChange, ...]
    n_queries: int
    n_pairs: int
    influences: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "measure": self.measure,
            "queries": self.n_queries,
            "wins": [row.as_json() for row in self.wins],
            "losses": [row.as_json() for row in self.losses],
            "pairs": self.n_pairs,
            "influences": self.influences,
        }


def explain_losses(
    before: Ranker, after: Ranker, data: RankingData, measure: str | Measure = "NDCG@10"
) -> Losses:
    """Return which features made queries worse from one model to another.

    Parameters
    ----------
    before, after
        The earlier and the later model.
    data
        Labelled documents.
    measure
        The measure by which queries get better or worse.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.polynomials(20, n_features=3)
    >>> short, long = (rk.LambdaMART(n_trees=n).fit(data) for n in (2, 5))
    >>> losses = rk.explain_losses(short, long, data)
    >>> len(losses.wins) + len(losses.losses) <= losses.n_queries == 20
    True
    """
    chosen = one_measure(OWNER, measure)
    if not data.is_labelled:
        raise DataError(f"{OWNER}: the data set has no labels, which {chosen} needs")
    scorer = Scorer([chosen], data.all_labels, data.offsets, data.top_grade)
    values = [scorer.per_query(model.predict(data))[0] for model in (before, after)]
    change = values[1] - values[0]
    counts = np.flatnonzero(~np.isnan(change))
    order = counts[np.argsort(change[counts], kind="stable")]

    def changes(queries: Sequence[int]) -> tuple[QueryChange, ...]:
        return tuple(
            QueryChange(str(data.qids[q]), float(values[0][q]), float(values[1][q]))
            for q in queries
        )

    lost = order[change[order] < -ROUNDING]
    won = order[change[order] > ROUNDING][::-1]
    n_pairs, influences = 0, dict[str, float]()
    if len(lost):
        part = data[np.sort(lost[:MOST_QUERIES])]
        explanations = [explain(model, part) for model in (before, after)]
        n_pairs, influences = _influences(explanations[0], explanations[1], part)
    return Losses(str(chosen), changes(won), changes(lost), len(counts), n_pairs, influences)


def _influences(
    before: Explanation, after: Explanation, data: RankingData
) -> tuple[int, dict[str, float]]:
    """Return the number of pairs that turned the wrong way, and what turned them."""
    names = tuple(dict.fromkeys((*before.feature_names, *after.feature_names)))
    place = {name: j for j, name in enumerate(names)}
    amounts = np.zeros((2, data.n_docs, len(names)))
    scores = np.zeros((2, data.n_docs))
    for k, explanation in enumerate((before, after)):
        scale = _deviation_within(explanation.scores, data)
        columns = [place[name] for name in explanation.feature_names]
        amounts[k][:, columns] = explanation.contributions / scale
        scores[k] = explanation.scores / scale
    changed = amounts[1] - amounts[0]
    total, n_pairs, n_queries = np.zeros(len(names)), 0, 0
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        docs = np.arange(begin, end)
        better, worse = _turned(docs, data.y, scores)
        if len(better):
            total += (changed[worse] - changed[better]).mean(axis=0)
            n_pairs, n_queries = n_pairs + len(better), n_queries + 1
    mean = total / max(n_queries, 1)
    order = np.argsort(-mean, kind="stable")
    return n_pairs, {names[j]: float(mean[j]) for j in order if mean[j]}


def _turned(docs: Integers, labels: Floats, scores: Floats) -> tuple[Integers, Integers]:
    """Return pairs of documents, better and worse, that were right before and are wrong after."""
    grades = np.nan_to_num(labels[docs])
    old, new = scores[0][docs], scores[1][docs]
    is_better = grades[:, None] > grades[None, :]
    was_right, is_wrong = old[:, None] > old[None, :], new[:, None] < new[None, :]
    better, worse = np.nonzero(is_better & was_right & is_wrong)
    return docs[better], docs[worse]


def _deviation_within(scores: Floats, data: RankingData) -> float:
    """Return the standard deviation of scores around the means of their queries; never 0."""
    means = np.add.reduceat(scores, data.offsets[:-1]) / data.sizes
    deviation = float(np.sqrt(np.mean((scores - np.repeat(means, data.sizes)) ** 2)))
    return deviation or 1.0
