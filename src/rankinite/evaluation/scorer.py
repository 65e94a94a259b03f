"""Scorers of measures for scikit-learn: cross-validation, searches, permutation importance."""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from rankinite.core.errors import UsageError
from rankinite.data.queries import query_ids
from rankinite.evaluation.evaluate import mean_of_documents
from rankinite.measures.measure import Measure
from rankinite.measures.text import one_measure


class MeasureScorer(BaseEstimator):  # type: ignore[misc]
    """The mean of a measure over queries, as scikit-learn calls its scorers.

    Parameters
    ----------
    measure, qid
        As in `scorer`.
    """

    # An estimator, as such objects have what metadata routing asks for, and can be cloned together
    # with a search. scikit-learn's make_scorer wants routing to be on before it is told of qid.
    __metadata_request__score: ClassVar = {"qid": True, "estimator": UNUSED}

    def __init__(self, measure: str | Measure = "NDCG@10", qid: Any = None) -> None:
        self.measure = measure
        self.qid = qid

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, **metadata: Any) -> float:
        """Return what `score` does, from whose arguments scikit-learn knows what to pass on."""
        return self.score(estimator, X, y, **metadata)

    def score(self, estimator: Any, X: Any, y: ArrayLike, *, qid: ArrayLike | None = None) -> float:
        """Return the mean of the measure; larger is better.

        Parameters
        ----------
        estimator
            A fitted ranker, a pipeline that ends in one, or any other estimator that predicts.
        X, y
            Features and labels.
        qid
            The query of every document, by metadata routing.
        """
        measure = one_measure("scorer", self.measure)
        owner = f"scorer({str(measure)!r})"
        queries = self._queries(owner, X, y) if qid is None else query_ids(owner, len(X), qid)
        # Scores of some rankers depend on the whole query.
        takes_qid = "qid" in signature(estimator.predict).parameters
        scores = estimator.predict(X, qid=queries) if takes_qid else estimator.predict(X)
        return mean_of_documents(measure, y, scores, queries)

    def _queries(self, owner: str, X: Any, y: Any) -> NDArray[Any]:
        """Return the queries of some documents, from those of all."""
        if self.qid is None:
            raise UsageError(
                f"{owner}: requires qid, the query of every document; pass it on by metadata "
                "routing (sklearn.set_config(enable_metadata_routing=True)), or give the scorer "
                "the queries of all documents, rk.scorer(measure, qid=qid)"
            )
        for documents in (y, X):
            if hasattr(self.qid, "loc") and hasattr(documents, "index"):
                return self._by_index(owner, documents.index)
        queries = query_ids(owner, len(X), self.qid)
        if len(queries) != len(X):
            raise UsageError(
                f"{owner}: has the queries of {len(queries)} documents, and gets {len(X)} of them "
                "without saying which; give qid and X or y as pandas objects with the same index, "
                "or use metadata routing"
            )
        return queries

    def _by_index(self, owner: str, index: Any) -> NDArray[Any]:
        queries = self.qid
        if not queries.index.is_unique or not index.isin(queries.index).all():
            raise UsageError(
                f"{owner}: the index of qid does not tell which query documents are of; give qid, "
                "X and y with the same index, in which no value is repeated"
            )
        return np.asarray(queries.loc[index])


def scorer(measure: str | Measure = "NDCG@10", *, qid: Any = None) -> Any:
    """Return a scorer for ``cross_validate``, ``GridSearchCV``, ``permutation_importance``.

    The queries reach it by scikit-learn's metadata routing: after
    ``sklearn.set_config(enable_metadata_routing=True)``, pass ``qid`` to the ``fit`` of the search,
    or in ``params`` of ``cross_validate``. Where there is no routing, give them here.

    Parameters
    ----------
    measure
        One measure, as a text or a value.
    qid
        Without metadata routing: the query of every document. If it is scored in parts, as by
        cross-validation, a pandas Series with the index of X or y; otherwise in the order of X.

    Examples
    --------
    >>> import rankinite as rk
    >>> from sklearn.inspection import permutation_importance
    >>> data = rk.polynomials(20, n_features=3)
    >>> model = rk.LambdaMART(n_trees=5).fit(data)
    >>> scorer = rk.scorer("NDCG@10", qid=data.qid)
    >>> permutation_importance(model, data.X, data.y, scoring=scorer).importances_mean.shape
    (3,)
    """
    one_measure("scorer", measure)
    return MeasureScorer(measure, qid)
