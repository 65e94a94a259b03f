"""Evaluate scores on a data set."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData
from rankinite.data.scores import check_scores
from rankinite.data.splits import first_sample
from rankinite.measures.measure import Measure
from rankinite.measures.scorer import Scorer, mean_of_counted
from rankinite.measures.text import MeasureLike, parse_measures

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
    data: RankingData | ArrayLike,
    measures: MeasureLike | Iterable[MeasureLike] = ("NDCG@10", "ERR"),
    *,
    qid: ArrayLike | None = None,
    group_sizes: ArrayLike | None = None,
    top_grade: float | None = None,
    drop_single_label: bool = False,
) -> Evaluation:
    """Evaluate scores on a data set, or by labels and query ids alone.

    Documents with equal scores count as if every order among them were equally likely. Every
    query counts alike in a mean, and so does every sample of one; query weights are for training.

    Parameters
    ----------
    scores
        One finite score a document; larger is better.
    data
        The data set; or the labels, one per document, with ``qid`` or ``group_sizes``.
    measures
        Measures as values or texts; see `parse_measure`. Tiers are evaluated one by one.
    qid, group_sizes, top_grade
        With labels instead of a data set, as in `RankingData`: the query of each document, or the
        number of documents of each query; and the top grade. The documents of a query need not
        stand together.
    drop_single_label
        Leave out queries whose documents all have the same label, of the measure's source: every
        order of them has the same value (LambdaSMART, Sec. 5.1).

    Examples
    --------
    >>> data = RankingData(X=[[0.0], [1.0]], y=[0, 1], qid=[1, 1], top_grade=1)
    >>> evaluate([0.3, 0.1], data, ["MRR", "ERR"]).mean
    {'MRR': 0.5, 'ERR': 0.25}
    >>> evaluate([0.3, 0.1, 0.7], [0, 1, 2], "NDCG", qid=["a", "a", "b"]).mean
    {'NDCG': 0.8154648767857287}
    """
    data_set, order = labelled_queries("evaluate", data, qid, group_sizes, top_grade)
    checked = in_order(check_scores(scores, data_set), order)
    sample = first_sample(data_set.qids)
    if sample is not None:
        log.warning(
            "the data hold samples, such as %r, which count as queries of their own", sample
        )
    return evaluate_all([checked], data_set, measures, drop_single_label=drop_single_label)[0]


def labelled_queries(
    owner: str,
    data: RankingData | ArrayLike,
    qid: ArrayLike | None,
    group_sizes: ArrayLike | None,
    top_grade: float | None,
) -> tuple[RankingData, NDArray[np.int64] | None]:
    """Return a data set, or that of labels; and the order of its documents if they were scattered.

    Parameters
    ----------
    owner
        Start of error messages.
    data, qid, group_sizes, top_grade
        As in `evaluate`.
    """
    extra = {"qid": qid, "group_sizes": group_sizes, "top_grade": top_grade}
    names = [name for name, value in extra.items() if value is not None]
    if isinstance(data, RankingData):
        if names:
            raise UsageError(
                f"{owner}: the data set has {names[0]} already; leave it, or give the labels "
                "instead of the data set"
            )
        checks.require_labels(owner, data)
        return data, None
    several_sets = isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], RankingData)
    if several_sets or not (isinstance(data, Sequence) or hasattr(data, "__array__")):
        raise UsageError(
            f"{owner}: a {type(data).__name__} is no data set; expected a RankingData, or labels "
            "with qid"
        )
    labels = np.asarray(data)
    if (qid is None) == (group_sizes is None):
        which = "neither" if qid is None else "both"
        raise UsageError(
            f"{owner}: labels need the queries of their documents, as qid or as group_sizes, and "
            f"{which} of the two is given; with a single query give group_sizes=[{labels.size}]"
        )
    # Scores are often negative, labels never.
    if labels.dtype.kind in "if" and (labels < 0).any():
        raise DataError(
            f"{owner}: the label of document {(labels < 0).ravel().argmax()} is negative; expected "
            "scores first, and then labels of at least 0"
        )
    # Measures look at no features, but a data set has at least one.
    queries = RankingData(
        np.zeros((len(labels) if labels.ndim else 0, 1), np.float32),
        labels,
        qid,
        group_sizes=group_sizes,
        top_grade=top_grade,
        group=True,
    )
    return queries, queries.rows


def in_order(scores: NDArray[np.float64], order: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Return scores in the order of `labelled_queries`."""
    return scores if order is None else scores[order]


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


def mean_of_documents(
    measure: Measure, y: ArrayLike, scores: ArrayLike, qid: ArrayLike, top_grade: float = 0.0
) -> float:
    """Return the mean of a measure over queries whose documents need not be contiguous.

    Parameters
    ----------
    measure
        The measure.
    y, scores, qid
        The label, the score and the query of every document.
    top_grade
        The largest label that documents can have, if these have smaller ones only; a measure with
        a top grade of its own goes by that.
    """
    labels = np.asarray(y, np.float64)
    # Measures look at no features, but a data set has at least one.
    numbers = np.arange(len(labels), dtype=np.float64)[:, None]
    own_top = getattr(measure, "top_grade", None)
    highest = max(top_grade, labels.max(initial=0.0)) if own_top is None else own_top
    data = RankingData(numbers, labels, qid, group=True, top_grade=highest)
    ordered = np.asarray(scores)
    if data.rows is not None and ordered.shape == labels.shape:
        ordered = ordered[data.rows]
    return evaluate(ordered, data, measure).mean[str(measure)]
