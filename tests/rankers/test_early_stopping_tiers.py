"""Early stopping by tiers: the round that trees and nets keep."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import rankinite as rk
from rankinite.measures.tiers import TieredMeasure
from rankinite.rankers.gradient_descent import NetLearner
from tests.naive.early_stopping import best_rounds as naive
from tests.rankers.cases import SMALL, bytes_of

TIERS = (rk.NDCG(depth=3), rk.measures.CNDCG(depth=3, source="clicks"), rk.ERR())


TRAIN, VALID = (
    rk.clicks(rk.polynomials(n, part=part, n_features=4, n_docs=8))
    for n, part in ((30, "train"), (12, "valid"))
)
TOLERANCE = 0.05
MEASURE = f"NDCG@3 ~{TOLERANCE} > CNDCG@3[clicks], ERR"
TREES = SMALL | {"n_trees": 30, "patience": 12}
RANKERS = {
    "LambdaMART": rk.LambdaMART(preset="paper", **TREES),
    "MART": rk.MART(**TREES),
    "McRank": rk.McRank(**TREES | {"n_trees": 8}),
    "adam": rk.LambdaRank(hidden=3, n_epochs=20, learning_rate=0.01, patience=9),
    "sgd": rk.LambdaRank(
        preset="paper", hidden=3, n_epochs=30, learning_rate=0.3, patience=3, optimiser="sgd"
    ),
}
every_learner = pytest.mark.parametrize("name", RANKERS)


def new(name, **changes):
    return clone(RANKERS[name]).set_params(**{"valid_measure": MEASURE} | changes)


def rows_of(model):
    """Return the values of both tiers, round by round."""
    curves = [model.history_["valid"][str(tier)] for tier in TIERS[:2]]
    return list(zip(*curves, strict=True))


@every_learner
def test_the_kept_round_is_that_of_a_loop_over_the_history(name):
    model = new(name).fit(TRAIN, valid=VALID)
    assert list(model.history_["valid"]) == ["NDCG@3", "CNDCG@3[clicks]", "ERR"]
    rows = rows_of(model)
    bests, improvements = naive(rows, [TOLERANCE])
    assert model.best_round_ == bests[-1]
    kept = rk.evaluate(model.predict(VALID), VALID, TIERS[:2]).mean
    assert tuple(kept.values()) == rows[bests[-1] - 1]
    if name != "sgd":
        most = model.get_params().get("n_trees") or model.n_epochs
        ages = [n - improved for n, improved in enumerate(improvements, 1)]
        assert max(ages[:-1]) < model.patience
        assert ages[-1] == model.patience or model.n_rounds_ == most


@pytest.mark.parametrize("name", ["LambdaMART", "adam", "sgd"])
def test_tiers_choose_another_round_than_the_first_alone(name):
    model = new(name, patience=None).fit(TRAIN, valid=VALID)
    alone = new(name, patience=None, valid_measure="NDCG@3").fit(TRAIN, valid=VALID)
    curve = alone.history_["valid"]["NDCG@3"]
    assert model.history_["valid"]["NDCG@3"] == curve
    assert model.best_round_ != alone.best_round_ == int(np.argmax(curve)) + 1
    (first, second), (top, other) = (
        rows_of(model)[ranker.best_round_ - 1] for ranker in (model, alone)
    )
    assert second > other
    assert first >= top - TOLERANCE


def test_sgd_restarts_where_no_tier_improves(monkeypatch):
    restarts = []
    commit = NetLearner.commit

    def recording(self, done, *, is_best):
        commit(self, done, is_best=is_best)
        restarts.append(self.state.n_restarts)

    monkeypatch.setattr(NetLearner, "commit", recording)
    model = new("sgd").fit(TRAIN, valid=VALID)
    rows = rows_of(model)
    expected, since = [], 0
    for n in range(1, len(rows)):
        _, improvements = naive(rows[since:n], [TOLERANCE])
        if n - since - improvements[-1] >= model.patience:
            expected.append(n)
            since = n
    assert expected
    assert [k for k in range(1, len(rows)) if restarts[k] > restarts[k - 1]] == expected


@every_learner
def test_an_interrupted_fit_resumes_to_the_same_bytes(name):
    kept = Path("fit.ckpt")
    undisturbed = bytes_of(new(name).fit(TRAIN, valid=VALID))
    for k in (1, 4, 7):

        def interrupt(done, k=k):
            if done.number == k:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            new(name).fit(TRAIN, valid=VALID, checkpoint=kept, callbacks=[interrupt])
        assert bytes_of(new(name).fit(TRAIN, valid=VALID, checkpoint=kept)) == undisturbed
        kept.unlink()


def test_a_checkpoint_of_another_tolerance_is_refused():
    new("LambdaMART").fit(TRAIN, valid=VALID, checkpoint="fit.ckpt")
    other = new("LambdaMART", valid_measure=MEASURE.replace(str(TOLERANCE), "0.04"))
    with pytest.raises(rk.UsageError, match="of a fit with another valid_measure; delete it"):
        other.fit(TRAIN, valid=VALID, checkpoint="fit.ckpt")


def test_a_value_is_as_good_as_its_text():
    value = [TieredMeasure(TIERS[:2], TOLERANCE), rk.ERR()]
    by_text, by_value = (
        new("LambdaMART", valid_measure=measure).fit(TRAIN, valid=VALID)
        for measure in (MEASURE, value)
    )
    assert by_text.history_ == by_value.history_
    assert by_text.n_trees_ == by_value.n_trees_
    by_value.save("model.rk")
    loaded = rk.load_model("model.rk")
    again = clone(loaded).fit(TRAIN, valid=VALID)
    assert again.n_trees_ == by_text.n_trees_


class Tiered:
    """An objective whose measure has tiers."""

    measure = TieredMeasure(TIERS[:2], TOLERANCE)

    def prepare(self, targets):
        return rk.objectives.Lambdas("NDCG").prepare(targets)


@pytest.mark.parametrize("name", ["LambdaMART", "adam"])
def test_the_tiers_of_training_decide_by_default(name):
    model = new(name, measure=Tiered(), valid_measure=None).fit(TRAIN, valid=VALID)
    assert list(model.history_["valid"]) == ["NDCG@3", "CNDCG@3[clicks]"]
    explicit = new(name, measure=Tiered()).fit(TRAIN, valid=VALID)
    assert rows_of(model) == rows_of(explicit)
    assert model.best_round_ == explicit.best_round_ == naive(rows_of(model), [TOLERANCE])[0][-1]


@pytest.mark.parametrize("name", ["LambdaMART", "McRank", "adam"])
def test_a_validation_set_without_the_label_source_is_refused(name):
    bare = rk.polynomials(12, part="valid", n_features=4, n_docs=8)
    with pytest.raises(rk.UsageError) as refusal:
        new(name).fit(TRAIN, valid={"near": VALID, "far": bare})
    assert "the validation set 'far'" in str(refusal.value)
    assert "no label source 'clicks'; it has none but its own" in str(refusal.value)


def test_a_training_set_that_is_measured_needs_the_label_source():
    bare = rk.polynomials(12, part="train", n_features=4, n_docs=8)
    sentence = r"LambdaRank: the training set: .* no label source 'clicks'"
    with pytest.raises(rk.UsageError, match=sentence):
        new("sgd").fit(bare, valid=VALID)
    with pytest.raises(rk.UsageError, match=sentence):
        new("adam").fit(bare)
    assert new("adam").fit(bare, valid=VALID).best_epoch_
