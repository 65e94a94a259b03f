"""Rankers that follow several objectives at once: tiers, and objectives that change."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import rankinite as rk
from tests.rankers.cases import SMALL, SMALL_NET, bytes_of


def clicked(n: int, part: str) -> rk.RankingData:
    """Simulate queries with click rates, of which most documents have some."""
    data = rk.polynomials(n, part=part, n_features=4, n_docs=8)
    return rk.clicks(data, users=1000.0)


TRAIN, VALID = clicked(30, "train"), clicked(15, "valid")
TIERS = "NDCG@3 > CNDCG@3[clicks]"


def model_bytes(model, measure="NDCG"):
    """Return the model file as if the measure had another text: only what was learned differs."""
    return bytes_of(model.set_params(measure=measure))


class TestNothingIsChanged:
    """A tier without weight, and a transition that never begins, leave the model as it is."""

    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"normalise": "none"},
            {"normalise": "distance", "truncation": 2},
            {"criterion": "newton"},
            {"step": "gradient"},
        ],
        ids=str,
    )
    def test_of_trees(self, settings):
        params = {**SMALL, "valid_measure": "NDCG@3", **settings}
        plain = model_bytes(rk.LambdaMART("NDCG", **params).fit(TRAIN, valid=VALID))
        others = [rk.objectives.Tiered(TIERS, weights=0.0), "Transition(NDCG, ERR, 0)"]
        if params.get("step") == "gradient":
            others.append(
                rk.objectives.Transition(
                    "NDCG", "SigmoidCost(NDCG)", rk.objectives.LinearGrowth(0.0, 0.0)
                )
            )
        for measure in others:
            model = rk.LambdaMART(measure, **params).fit(TRAIN, valid=VALID)
            assert model_bytes(model) == plain
        some = rk.LambdaMART(rk.objectives.Tiered(TIERS, weights=0.3), **params).fit(
            TRAIN, valid=VALID
        )
        assert model_bytes(some) != plain

    @pytest.mark.parametrize("settings", [{}, {"queries_per_step": 4, "optimiser": "sgd"}], ids=str)
    def test_of_nets(self, settings):
        params = {**SMALL_NET, "valid_measure": "NDCG@3", **settings}
        plain = model_bytes(rk.LambdaRank("NDCG", **params).fit(TRAIN, valid=VALID))
        others = [
            rk.objectives.Tiered(TIERS, weights=0.0),
            rk.objectives.Transition("NDCG", "SigmoidCost(NDCG)", lambda _m: 0.0),
        ]
        for measure in others:
            model = rk.LambdaRank(measure, **params).fit(TRAIN, valid=VALID)
            assert model_bytes(model) == plain
        some = rk.LambdaRank(rk.objectives.Tiered(TIERS, weights=0.3), **params).fit(
            TRAIN, valid=VALID
        )
        assert model_bytes(some) != plain


@pytest.mark.parametrize(
    "model", [rk.LambdaMART(n_trees=60, n_leaves=7, patience=None), rk.LambdaRank(n_epochs=60)]
)
def test_clicks_are_learned_among_equal_grades(model):
    """Half of the documents are relevant, and only clicks tell them apart, by one feature."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(600, 2)).astype(np.float32)
    grades = (features[:, 0] > 0.0).astype(float)
    rates = 1.0 / (1.0 + np.exp(-3.0 * features[:, 1]))
    data = rk.RankingData(
        X=features, y=grades, qid=np.repeat(np.arange(60), 10), labels={"clicks": rates}
    )
    values = {}
    for weight in (0.0, 0.5):
        model.set_params(measure=rk.objectives.Tiered("NDCG > CNDCG[clicks]", weights=weight))
        scores = model.fit(data).predict(data)
        values[weight] = rk.evaluate(scores, data, "NDCG, CNDCG[clicks]").mean
    assert values[0.5]["CNDCG[clicks]"] > values[0.0]["CNDCG[clicks]"] + 0.03
    assert values[0.5]["NDCG"] > 0.97


def test_the_round_that_is_kept_is_chosen_by_both_tiers():
    measure = rk.parse_measure("NDCG@3 ~0.05 > CNDCG@3[clicks]")
    model = rk.LambdaMART(measure, **SMALL | {"n_trees": 25, "patience": None})
    model.fit(TRAIN, valid=VALID)
    curves = model.history_["valid"]
    assert list(curves) == ["NDCG@3", "CNDCG@3[clicks]"]
    first, second = (np.array(curve) for curve in curves.values())
    kept = model.n_trees_ - 1
    assert first[kept] >= first.max() - 0.05
    rivals = (first >= first.max() - 0.05) & (np.arange(25) > kept)
    assert not (second[rivals] > second[kept]).any()


def test_an_objective_that_changes_goes_on_from_a_checkpoint(tmp_path):
    def fit(n_trees, checkpoint=None):
        text = "Transition(NDCG, SigmoidCost(NDCG@3), linear(start=0, eta=0.1))"
        params = SMALL | {"n_trees": n_trees, "step": "gradient"}
        return rk.LambdaMART(text, **params).fit(TRAIN, checkpoint=checkpoint)

    fit(4, tmp_path / "kept")
    assert bytes_of(fit(12, tmp_path / "kept")) == bytes_of(fit(12))


def test_a_checkpoint_of_another_function_is_refused(tmp_path):
    def fit(schedule):
        measure = rk.objectives.Transition("NDCG", "ERR", schedule)
        return rk.LambdaMART(measure, **SMALL).fit(TRAIN, checkpoint=tmp_path / "kept")

    fit(lambda _m: 0.0)
    with pytest.raises(rk.UsageError, match="the checkpoint of a fit to other data"):
        fit(lambda _m: 1.0)
    fit(lambda _m: 0.0)


def test_new_weights_of_a_net_begin_a_schedule_anew():
    asked = []
    measure = rk.objectives.Transition("NDCG", "ERR", lambda m: asked.append(m) or 0.5)
    params = SMALL_NET | {"optimiser": "sgd", "learning_rate": 0.1, "patience": 1, "n_epochs": 12}
    rk.LambdaRank(measure, **params).fit(TRAIN, valid=VALID)
    assert len(asked) == 12
    assert asked.count(1) > 1
    assert all(m in (1, before + 1) for before, m in pairwise(asked))


def test_files_hold_the_text_of_the_objective(tmp_path):
    measure = rk.objectives.Tiered(TIERS, weights=0.3, pairs_of="labelled")
    rk.LambdaMART(measure, **SMALL).fit(TRAIN).save(tmp_path / "model.rk")
    loaded = rk.load_model(tmp_path / "model.rk")
    assert loaded.measure == str(measure)
    again = loaded.fit(TRAIN)
    assert bytes_of(again) == (tmp_path / "model.rk").read_bytes()


def test_diagnostics_go_by_the_labels_that_are_followed():
    rates = TRAIN.labels["clicks"]
    grades = np.where(np.isnan(rates), np.nan, (rates > 0.1).astype(float))
    data = TRAIN.with_labels({"liked": grades})
    diagnostics = rk.Diagnostics()
    measure = rk.objectives.Transition(rk.objectives.RankNet(source="liked"), "NDCG", 0.5)
    rk.LambdaMART(measure, **SMALL).fit(data, diagnostics=diagnostics)
    shares = [name for name in diagnostics.curves if name.startswith("lambda share")]
    assert shares == ["lambda share of grade 0", "lambda share of grade 1"]


class TestRefused:
    @pytest.mark.parametrize(
        "measure", ["SigmoidCost(NDCG)", "Transition(NDCG, SigmoidCost(NDCG@3), 0.5)"]
    )
    def test_newton_steps_along_the_sigmoid_cost(self, measure):
        with pytest.raises(
            rk.UsageError, match=r"step is 'newton'.*second derivative.*use step='gradient'"
        ):
            rk.LambdaMART(measure).fit(TRAIN)
        with pytest.raises(rk.UsageError, match=r"criterion is 'newton'.*use criterion='mse'"):
            rk.LambdaMART(measure, step="gradient", criterion="newton").fit(TRAIN)
        rk.LambdaMART(measure, step="gradient", n_trees=1).fit(TRAIN)

    def test_a_source_that_is_not_there(self):
        with pytest.raises(rk.UsageError, match=r"no label source 'click'; it has 'clicks', 'simi"):
            rk.LambdaMART("NDCG > CNDCG[click]").fit(TRAIN)
        plain = rk.polynomials(5, part="valid", n_features=4)
        with pytest.raises(
            rk.UsageError, match=r"validation set 'valid'.*no label source 'clicks'"
        ):
            rk.LambdaMART(TIERS).fit(TRAIN, valid=plain)

    def test_a_scorer_has_one_measure(self):
        with pytest.raises(rk.UsageError, match="scorer: 'NDCG > ERR' are 2 measures; give one"):
            rk.scorer("NDCG > ERR")

    def test_a_schedule_that_leaves_0_to_1(self):
        model = rk.LambdaRank(
            rk.objectives.Transition("NDCG", "ERR", lambda m: 0.4 * m), n_epochs=5
        )
        with pytest.raises(rk.UsageError, match=r"the schedule gives round 3 the weight 1\.2"):
            model.fit(TRAIN)
