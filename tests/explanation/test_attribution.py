"""Contributions add up to the score, for every kind of ranker."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import rankinite as rk
from rankinite.core.errors import UsageError
from rankinite.explanation.attribution import attribute, explained_scores
from rankinite.explanation.kernels import fit_sums
from rankinite.trees.contributions import forest_contributions
from tests.naive import nets as naive_nets

DATA = rk.polynomials(12, n_features=4)
TREES = {"n_trees": 6, "n_leaves": 6}
NET = {"n_epochs": 4, "rank_inputs": True}


def lambdamart(**others):
    return rk.LambdaMART(**TREES, **others).fit(DATA)


def mart(**others):
    return rk.MART(**TREES, **others).fit(DATA)


def binary() -> rk.RankingData:
    return DATA.replace(y=(DATA.y > 1).astype(float), top_grade=1.0)


def chances(**others):
    return rk.MART(loss="logistic", **TREES, **others).fit(binary())


def net(**others):
    return rk.LambdaRank(**NET | others).fit(DATA)


RANKERS = {
    "LambdaMART": lambdamart,
    "on a base": lambda: lambdamart(base=mart()),
    "on chances": lambda: lambdamart(base=chances()),
    "on another library's": lambda: lambdamart(base=LinearRegression().fit(DATA.X, DATA.y)),
    "on chances per query": lambda: lambdamart(base=chances(per_query=True)),
    "MART": mart,
    "log odds": chances,
    "log odds per query": lambda: chances(per_query=True),
    "McRank": lambda: rk.McRank(**TREES).fit(DATA),
    "linear net": lambda: net(hidden=0, rank_inputs=False),
    "net": lambda: net(hidden=5),
    "net of two layers": lambda: net(hidden=(6, 4), activation="tanh"),
    "net on trees": lambda: net(hidden=3, base=mart()),
    "Average": lambda: rk.Average([lambdamart(), mart(), net(hidden=3)]).fit(DATA),
    "Interpolation": lambda: rk.Interpolation([lambdamart(), chances()]).fit(DATA),
    "Stacked": lambda: rk.Stacked([lambdamart(), mart()]).fit(DATA),
    "Average of a Stacked": lambda: rk.Average(
        [rk.Stacked([lambdamart(), mart()]).fit(DATA), mart()]
    ).fit(DATA),
    "WithScoreFeatures": lambda: rk.WithScoreFeatures(
        rk.MART(**TREES), rk.LambdaMART(**TREES), folds=2
    ).fit(DATA),
}


@pytest.fixture(scope="module")
def fitted():
    cache = {}
    return lambda name: cache.get(name) or cache.setdefault(name, RANKERS[name]())


@pytest.mark.parametrize("name", RANKERS)
def test_contributions_add_up_to_the_score(fitted, name):
    ranker = fitted(name)
    result = attribute(ranker, DATA)
    assert result.scores.tobytes() == explained_scores(ranker, DATA).tobytes()
    for score, expected, values in zip(
        result.scores.tolist(), result.expected.tolist(), result.values.tolist(), strict=True
    ):
        # No sum of numbers is finer than the last place of the finest of them.
        finest = min((math.ulp(value) for value in values if value), default=0.0)
        is_score = math.fsum([expected, *values]) == score
        assert is_score or abs(math.fsum([expected, *values, -score])) <= finest / 2
    # They order the documents of a query as predict does.
    predicted = ranker.predict(DATA)
    for begin, end in zip(DATA.offsets, DATA.offsets[1:], strict=False):
        order = np.argsort(-result.scores[begin:end], kind="stable")
        assert (np.diff(predicted[begin:end][order]) <= 0).all()
    assert result.explained == ("log odds" if name.startswith("log odds") else "score")


@pytest.mark.parametrize("name", RANKERS)
def test_little_is_left_to_rounding(fitted, name, monkeypatch):
    monkeypatch.setattr("rankinite.explanation.attribution.fit_sums", lambda *_arguments: None)
    ranker = fitted(name)
    result = attribute(ranker, DATA)
    sums = result.values.sum(axis=1) + result.expected
    # The scores of nets have 32 bits.
    has_net = "net" in name or name in ("Average", "Stacked", "Average of a Stacked")
    tolerance = 1e-5 if has_net else 1e-9
    np.testing.assert_allclose(sums, result.scores, rtol=tolerance, atol=tolerance)


def test_a_linear_net_adds_weight_times_input(fitted):
    ranker = fitted("linear net")
    result = attribute(ranker, DATA)
    inputs = naive_nets.fill(naive_nets.standardise(DATA.X), DATA.X)
    np.testing.assert_allclose(result.values, inputs * ranker.net_.weights[:-1], atol=1e-5)


def test_a_net_of_one_hidden_layer_has_integrated_gradients(fitted):
    ranker = fitted("net")
    weights, sizes = ranker.net_.weights.astype(float), ranker.net_.layers.units.tolist()
    (first, biases), (second, _) = naive_nets.split(weights, sizes)
    columns = ranker.net_.inputs.ranks.beside_values(DATA.X, None)[0]
    inputs = (columns - ranker.net_.inputs.means) * ranker.net_.inputs.scales
    added = np.zeros(inputs.shape)
    steps = 4000
    for k in range(steps):
        sums = (k + 0.5) / steps * inputs @ first.T + biases
        slopes = (sums > 0) if ranker.activation == "relu" else 1 - np.tanh(sums) ** 2
        added += inputs * ((slopes * second[0]) @ first) / steps
    by_feature = added[:, : DATA.n_features] + added[:, DATA.n_features :]
    np.testing.assert_allclose(attribute(ranker, DATA).values, by_feature, atol=1e-3)


def test_trees_on_a_base_are_added(fitted):
    ranker = fitted("on a base")
    values, _ = forest_contributions(ranker.forest_, DATA.X)
    base = attribute(ranker.base, DATA)
    np.testing.assert_allclose(
        attribute(ranker, DATA).values, values[0] + base.values, rtol=0, atol=1e-12
    )


def test_members_are_added_by_weight_and_scale(fitted):
    ranker = fitted("Average")
    expected = sum(
        weight / scale * attribute(member, DATA).values
        for member, weight, scale in zip(
            ranker.members_.values(), ranker.weights_, ranker.scales_, strict=True
        )
    )
    np.testing.assert_allclose(attribute(ranker, DATA).values, expected, rtol=0, atol=1e-5)


def test_a_stacked_ensemble_is_explained_by_its_members(fitted):
    result = attribute(fitted("Stacked"), DATA)
    assert result.names == ("score of 1", "score of 2")
    assert "scores of its members" in result.notes[0]


def test_what_is_not_part_of_a_model_is_refused():
    model = rk.LambdaMART(**TREES, base=np.zeros(DATA.n_docs)).fit(DATA)
    with pytest.raises(UsageError, match="fitted on top of scores"):
        attribute(model, DATA)
    scores = {"a": np.arange(DATA.n_docs), "b": DATA.y}
    for ensemble in (rk.Average(), rk.Stacked()):
        with pytest.raises(UsageError, match="fitted to scores"):
            attribute(ensemble.fit(DATA, member_scores=scores), DATA)


@pytest.mark.kernel
def test_sums_that_cancel_are_scores_to_the_last_bit():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(200, 5)) * 10.0 ** rng.integers(-12, 9, size=(200, 5))
    values[:, 3] = 0.0
    scores = np.array([math.fsum(row) for row in values.tolist()]) * (1 + 1e-13)
    fit_sums(0, 200, scores, np.zeros(200), values)
    assert [math.fsum(row) for row in values.tolist()] == scores.tolist()
    assert not values[:, 3].any()
