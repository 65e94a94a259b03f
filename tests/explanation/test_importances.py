"""Permutation importance within queries, and the dependence of rankings on a feature."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import DataError, UsageError

TREES = {"n_trees": 8, "n_leaves": 6}


def data_with_noise(n_queries=30, seed=0) -> rk.RankingData:
    """Make labels of the first feature; the second is the query's, and the third is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * 8, 3)).astype(np.float32)
    X[:, 1] = np.repeat(rng.normal(size=n_queries), 8)
    y = np.digitize(X[:, 0], [0.0, 1.0])
    return rk.RankingData(
        X, y, group_sizes=np.full(n_queries, 8), feature_names=["good", "of_query", "noise"]
    )


@pytest.fixture(scope="module")
def model():
    return rk.LambdaMART(**TREES).fit(data_with_noise())


def test_only_what_ranks_is_important(model):
    rows = rk.permutation_importances(model, data_with_noise(seed=1), "NDCG@5", repeats=3)
    by_name = {row.feature: row for row in rows}
    assert rows[0].feature == "good"
    assert rows[0].low > 0.05
    assert rows[0].low < rows[0].drop < rows[0].high
    # All documents of a query have the same value, which permuting them leaves in place.
    if "of_query" in by_name:
        assert by_name["of_query"].drop == 0.0
    if "noise" in by_name:
        assert abs(by_name["noise"].drop) < rows[0].drop / 3


def test_the_drop_is_that_of_permuted_features(model, monkeypatch):
    data = data_with_noise(seed=1)
    # An order that is known: documents of each query reversed.
    order = np.arange(data.n_docs).reshape(-1, 8)[:, ::-1].ravel()
    monkeypatch.setattr("rankinite.explanation.importances._permuted", lambda _rng, _data: order)
    X = np.array(data.X)
    X[:, 0] = X[order, 0]
    changed = rk.RankingData(X, data.y, group_sizes=data.sizes, feature_names=data.feature_names)
    before, after = (
        rk.evaluate(model.predict(d), data, "ERR").mean["ERR"] for d in (data, changed)
    )
    rows = rk.permutation_importances(model, data, "ERR", repeats=1)
    drop = next(row.drop for row in rows if row.feature == "good")
    assert drop == pytest.approx(before - after, abs=1e-12)


def test_the_seed_decides(model):
    data = data_with_noise(seed=1)
    first, again, other = (
        rk.permutation_importances(model, data, repeats=1, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again != other


def test_what_cannot_be_measured_is_refused(model):
    data = data_with_noise()
    unlabelled = rk.RankingData(data.X, group_sizes=data.sizes, feature_names=data.feature_names)
    with pytest.raises(DataError, match="has no labels"):
        rk.permutation_importances(model, unlabelled)
    with pytest.raises(UsageError, match="repeats"):
        rk.permutation_importances(model, data, repeats=0)
    with pytest.raises(UsageError, match="no fitted ranker"):
        rk.permutation_importances(rk.LambdaMART(), data)


def test_ranks_improve_along_a_good_feature(model):
    data = data_with_noise(seed=1)
    result = rk.partial_dependence(model, data, "good", grid=5)
    assert len(result.grid) == 5
    assert (np.diff(result.score) >= 0).all()
    assert (np.diff(result.rank) <= 0).all()
    assert result.rank[0] > 0.7
    assert result.rank[-1] < 0.3


def test_dependence_by_the_definition(model):
    data = data_with_noise(n_queries=3, seed=2)
    result = rk.partial_dependence(model, data, "good", grid=[0.5])
    scores, ranks = model.predict(data), []
    for doc in range(data.n_docs):
        X = np.array(data.X)
        X[doc, 0] = 0.5
        changed = model.predict(
            rk.RankingData(X, group_sizes=data.sizes, feature_names=data.feature_names)
        )
        begin = doc // 8 * 8
        others = np.delete(scores[begin : begin + 8], doc - begin)
        ranks.append(((others > changed[doc]).sum() + (others == changed[doc]).sum() / 2) / 7)
    assert result.rank[0] == pytest.approx(np.mean(ranks))


def test_dependence_where_the_query_counts():
    data = data_with_noise(n_queries=6)
    ranker = rk.WithScoreFeatures(rk.MART(**TREES), rk.LambdaMART(**TREES), folds=2).fit(data)
    result = rk.partial_dependence(ranker, data, "good", grid=3)
    assert result.rank[0] > result.rank[-1]


def test_missing_values_are_the_last_of_the_grid(model):
    data = data_with_noise(seed=1)
    X = np.array(data.X)
    X[3, 0] = np.nan
    data = data.replace(matrix=X, rows=None)
    result = rk.partial_dependence(model, data, "good", grid=4)
    assert np.isnan(result.grid[-1])
    assert result.as_json()["values"][-1] is None
    with pytest.raises(UsageError, match="no feature 'x'"):
        rk.partial_dependence(model, data, "x")
