"""Evaluate scores on a data set."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import make_scorer

from rankinite.data import checks
from rankinite.data.ranking_data import RankingData
from rankinite.data.scores import check_scores
from rankinite.data.splits import first_sample
from rankinite.measures.measure import Measure
from rankinite.measures.scorer import Scorer, mean_of_counted
from rankinite.measures.text import MeasureLike, one_measure, parse_measures

log = logging.getLogger("rankinite")


@dataclass(frozen=True)
class Evaluation:
    """Values of measures: one per query, and their means.

    Attributes
    ----------
    qids
        The queries.
    per_query
        For every measure, by its text, one value per query; NaN where the query is left out.
    """

    qids: NDArray[Any]
    per_query: Mapping[str, NDArray[np.float64]]

    @property
    def mean(self) -> dict[str, float]:
        """The mean of every measure over the queries that count; NaN if none does."""
        return {name: mean_of_counted(values) for name, values in self.per_query.items()}

    @property
    def n_queries(self) -> dict[str, int]:
        """How many queries count for every measure."""
        return {name: int((~np.isnan(v)).sum()) for name, v in self.per_query.items()}

    def __str__(self) -> str:
        return "  ".join(f"{name} {value:.4f}" for name, value in self.mean.items())


def evaluate(
    scores: ArrayLike,
    data: RankingData,
    measures: MeasureLike | Iterable[MeasureLike] = ("NDCG@10", "ERR"),
    *,
    drop_single_label: bool = False,
) -> Evaluation:
    """Evaluate scores on a data set.

    Documents with equal scores count as if every order among them were equally likely. Every
    query counts alike in a mean, and so does every sample of one; query weights are for training.

    Parameters
    ----------
    scores
        One finite score a document; larger is better.
    data
        The data set.
    measures
        Measures as values or texts; see `parse_measure`. Tiers are evaluated one by one.
    drop_single_label
        Leave out queries whose documents all have the same label, of the measure's source: every
        order of them has the same value (LambdaSMART, Sec. 5.1).

    Examples
    --------
    >>> data = RankingData(X=[[0.0], [1.0]], y=[0, 1], qid=[1, 1], top_grade=1)
    >>> evaluate([0.3, 0.1], data, ["MRR", "ERR"]).mean
    {'MRR': 0.5, 'ERR': 0.25}
    """
    checks.require_data_set("evaluate", data)
    checks.require_labels("evaluate", data)
    checked = check_scores(scores, data)
    sample = first_sample(data.qids)
    if sample is not None:
        log.warning(
            "the data hold samples, such as %r, which count as queries of their own", sample
        )
    return evaluate_all([checked], data, measures, drop_single_label=drop_single_label)[0]


def evaluate_all(
    rankings: Sequence[NDArray[np.float64]],
    data: RankingData,
    measures: MeasureLike | Iterable[MeasureLike],
    *,
    drop_single_label: bool,
) -> list[Evaluation]:
    """Evaluate several arrays of checked scores; what depends only on labels is computed once."""
    chosen = parse_measures(measures)
    for measure in chosen:
        top_grade = getattr(measure, "top_grade", None)
        if top_grade is not None and top_grade != data.top_grade:
            log.warning("%s: the top grade of the data set is %g", measure, data.top_grade)
    labels = data.all_labels
    # Values of documents are worth their memory only if there are several rankings to measure.
    scorer = Scorer(chosen, labels, data.offsets, data.top_grade, reuse=len(rankings) > 1)
    dropped = _single_label(chosen, labels, data.offsets) if drop_single_label else None
    evaluations = []
    for scores in rankings:
        values = scorer.per_query(scores)
        if dropped is not None:
            values[dropped] = np.nan
        rows = zip(chosen, values, strict=True)
        evaluations.append(Evaluation(data.qids, {str(measure): row for measure, row in rows}))
    return evaluations


def _single_label(
    measures: Sequence[Measure],
    labels: Mapping[str | None, NDArray[np.float64]],
    offsets: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return for every measure (rows) which queries have a single label; a missing one is 0."""
    single = {}
    for source in {measure.source for measure in measures}:
        # As measures do: a document without a label in this source counts as irrelevant.
        column = np.nan_to_num(labels[source], nan=0.0)
        highest = np.maximum.reduceat(column, offsets[:-1])
        single[source] = highest == np.minimum.reduceat(column, offsets[:-1])
    return np.stack([single[measure.source] for measure in measures])


def scorer(measure: str | Measure = "NDCG@10") -> Any:
    """Return a scorer for ``cross_validate``, ``GridSearchCV`` and their like.

    The queries reach it by scikit-learn's metadata routing: after
    ``sklearn.set_config(enable_metadata_routing=True)``, pass ``qid`` to the ``fit`` of the search,
    or in ``params`` of ``cross_validate``.

    Parameters
    ----------
    measure
        One measure, as a text or a value.
    """
    chosen = one_measure("scorer", measure)

    def mean(y_true: ArrayLike, y_pred: ArrayLike, *, qid: ArrayLike | None = None) -> float:
        labels = np.asarray(y_true, np.float64)
        queries = np.zeros(len(labels), np.int64) if qid is None else qid
        # Measures look at no features, but a data set has at least one. The documents of a query
        # need not be contiguous in a fold of scikit-learn.
        number = np.arange(len(labels), dtype=np.float64)
        data = RankingData(number[:, None], labels, queries, group=True)
        order = data.rows if data.rows is not None else slice(None)
        return evaluate(np.asarray(y_pred)[order], data, chosen).mean[str(chosen)]

    mean.__name__ = str(chosen)
    return make_scorer(mean).set_score_request(qid=True)
