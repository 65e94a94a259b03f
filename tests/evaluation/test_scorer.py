"""Scorers for scikit-learn, by hand: NDCG@1 is 1 where the best document is first, or 0 here."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.inspection import permutation_importance

import rankinite as rk

# The second query is ranked right, the first wrong; their documents stand apart.
X = np.array([[3.0], [1.0], [2.0], [4.0]])
Y = np.array([0, 0, 1, 1])
QID = np.array([1, 2, 1, 2])


class ByFeature(BaseEstimator):
    """Scores documents by their first feature."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]


class ByQuery(ByFeature):
    """A model whose scores depend on the query, and put the best of query 1 first, too."""

    def predict(self, X, qid=None):
        return np.where(np.asarray(qid) == 1, -1, 1) * np.asarray(X)[:, 0]


@pytest.mark.parametrize("is_routed", [True, False])
def test_the_mean_over_queries(is_routed):
    with sklearn.config_context(enable_metadata_routing=is_routed):
        score = rk.scorer("NDCG@1")
        assert score(ByFeature(), X, Y, qid=QID) == 0.5
        assert score(ByQuery(), X, Y, qid=QID) == 1.0
        assert rk.scorer("NDCG@1", qid=QID)(ByFeature(), X, Y) == 0.5
        # All in one query, on purpose: the last document is relevant, and first.
        assert score(ByFeature(), X, Y, qid=0) == 1.0
        assert rk.scorer("NDCG@1", qid=0)(ByFeature(), X, Y) == 1.0
        assert clone(rk.scorer("NDCG@1", qid=QID))(ByFeature(), X, Y) == 0.5
        assert pickle.loads(pickle.dumps(score))(ByFeature(), X, Y, qid=QID) == 0.5


def test_the_top_grade_of_the_measure_counts():
    # (2^1 - 1) / 2^2 at rank 2, and at rank 1; without any warning of another top grade.
    value = rk.scorer("ERR(top_grade=2)")(ByFeature(), X, Y, qid=QID)
    assert value == pytest.approx((0.25 / 2 + 0.25) / 2)


def test_queries_by_index():
    pandas = pytest.importorskip("pandas")
    index = list("wxyz")
    frame, labels = pandas.DataFrame(X, index), pandas.Series(Y, index)
    score = rk.scorer("NDCG@1", qid=pandas.Series(QID, index))
    rows = [3, 1]
    for documents in (
        (frame.iloc[rows], labels.iloc[rows]),
        (X[rows], labels.iloc[rows]),
        (frame.iloc[rows], Y[rows]),
    ):
        assert score(ByFeature(), *documents) == 1.0
    with pytest.raises(rk.UsageError, match="the index of qid does not tell which query docum"):
        score(ByFeature(), frame.set_axis(list("abcd")), Y)


def test_without_queries_there_is_no_score():
    with pytest.raises(rk.UsageError, match=r"scorer\('NDCG@1'\): requires qid, the query of eve"):
        rk.scorer("NDCG@1")(ByFeature(), X, Y)
    with pytest.raises(rk.UsageError, match="requires qid"):
        permutation_importance(ByFeature(), X, Y, scoring=rk.scorer())
    with pytest.raises(rk.UsageError, match="has the queries of 4 documents, and gets 2 of them"):
        rk.scorer(qid=QID)(ByFeature(), X[:2], Y[:2])


def test_permutation_importance_by_query():
    wide, labels = np.column_stack([X[:, 0], np.zeros(4)]), [1, 0, 0, 1]
    scoring = rk.scorer("NDCG@1", qid=QID)
    result = permutation_importance(
        ByFeature(), wide, labels, scoring=scoring, n_repeats=20, random_state=0
    )
    # Both queries are ranked right, and a shuffled feature turns none, one or both.
    assert set(result.importances[0]) <= {0.0, 0.5, 1.0}
    assert 0.5 in result.importances[0]
    assert (result.importances[1] == 0).all()
