"""Features that made queries worse from one model to another."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3)).astype(np.float32)
DATA = rk.RankingData(
    X, np.digitize(X[:, 0], [0.0, 1.0]), group_sizes=np.full(30, 8),
    feature_names=["good", "bad", "idle"],
)  # fmt: skip


def model_of(labels):
    data = rk.RankingData(X, labels, group_sizes=DATA.sizes, feature_names=DATA.feature_names)
    return rk.LambdaMART(n_trees=10, n_leaves=6).fit(data)


@pytest.fixture(scope="module")
def models():
    return model_of(DATA.y), model_of(np.digitize(X[:, 0] + X[:, 1], [0.0, 1.0]))


def test_the_feature_that_misleads_comes_first(models):
    losses = rk.explain_losses(*models, DATA, "NDCG@5")
    before, after = (
        rk.evaluate(m.predict(DATA), DATA, "NDCG@5").per_query["NDCG@5"] for m in models
    )
    assert len(losses.losses) == (after < before - 1e-12).sum()
    assert len(losses.wins) == (after > before + 1e-12).sum()
    changes = [row.change for row in losses.losses]
    assert changes == sorted(changes)
    assert changes[0] == pytest.approx((after - before).min())
    assert losses.n_pairs > 0
    assert next(iter(losses.influences)) == "bad"
    assert sum(losses.influences.values()) > 0


def test_equal_models_lose_nothing(models):
    losses = rk.explain_losses(models[0], models[0], DATA)
    assert (losses.wins, losses.losses, losses.n_pairs, losses.influences) == ((), (), 0, {})
    assert losses.as_json()["queries"] == 30


def test_labels_are_needed(models):
    data = rk.RankingData(X, group_sizes=DATA.sizes, feature_names=DATA.feature_names)
    with pytest.raises(DataError, match="has no labels"):
        rk.explain_losses(*models, data)
