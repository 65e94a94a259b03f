"""Measures as scorers of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import make_scorer

from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import evaluate
from rankinite.measures.measure import Measure
from rankinite.measures.text import one_measure


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
        number = np.arange(len(labels), dtype=np.float64)
        data = RankingData(number[:, None], labels, queries, group=True)
        order = data.rows if data.rows is not None else slice(None)
        return evaluate(np.asarray(y_pred)[order], data, chosen).mean[str(chosen)]

    mean.__name__ = str(chosen)
    return make_scorer(mean).set_score_request(qid=True)
