"""Stacked: linear and two-layer nets, and trees, on members' scores (Ensemble, Table 1)."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from tests.ensembles.cases import LINEAR, members, scores_of
from tests.rankers.cases import SMALL, TEST, TRAIN, VALID, bytes_of


def standardised(data: rk.RankingData) -> np.ndarray:
    """Return the members' scores, scaled as on VALID, one column a member."""
    rows = [(scores_of(data)[name] - s.mean()) / s.std() for name, s in scores_of(VALID).items()]
    return np.stack(rows, axis=1).astype(np.float32)


@pytest.mark.parametrize(
    "ranker",
    [
        rk.LambdaRank(hidden=0, n_epochs=3),
        rk.LambdaRank("ERR", hidden=10, n_epochs=3),
        rk.MART(**SMALL | {"n_trees": 2, "features_per_tree": 1.0}),
    ],
    ids=["linear", "two layers", "trees"],
)
def test_it_is_a_ranker_on_scores(ranker):
    model = rk.Stacked(members(), ranker=ranker).fit(VALID)
    data = rk.RankingData(standardised(VALID), VALID.y, VALID.qid, top_grade=4)
    by_hand = type(ranker)(**ranker.get_params()).fit(data)
    np.testing.assert_allclose(
        model.predict(TEST), by_hand.predict(standardised(TEST)), rtol=1e-4, atol=1e-4
    )
    assert not ranker.is_fitted
    assert model.ranker_.feature_names_ == ("1", "2", "3")


def test_a_linear_net_is_the_default():
    model = rk.Stacked(members()).fit(VALID)
    assert isinstance(model.ranker_, rk.LambdaRank)
    assert model.ranker_.net_.hidden == ()
    assert str(model.ranker_.measure) == "NDCG@10"


def test_it_learns_whom_to_trust():
    rng = np.random.default_rng(5)
    data = rk.polynomials(60, n_features=3, n_docs=8)
    scores = {
        "good": data.y + rng.normal(0, 0.3, data.n_docs),
        "noise": rng.normal(0, 9, data.n_docs),
    }
    average, stacked = (
        model.fit(data, member_scores=scores).predict(None, member_scores=scores)
        for model in (rk.Average(), rk.Stacked(ranker=rk.LambdaRank(hidden=0, n_epochs=20)))
    )
    values = [rk.evaluate(s, data, "NDCG").mean["NDCG"] for s in (average, stacked)]
    assert values[1] > values[0] + 0.02


def test_validation_sets_stop_it_early():
    ranker = rk.LambdaRank(hidden=3, n_epochs=30, patience=2, learning_rate=0.2)
    by_rankers = rk.Stacked(members(), ranker=ranker).fit(TRAIN, valid=VALID)
    assert by_rankers.ranker_.n_rounds_ < 30
    by_scores = rk.Stacked(ranker=ranker).fit(
        TRAIN, member_scores=scores_of(TRAIN), valid=VALID, valid_scores=scores_of(VALID)
    )
    assert by_scores.ranker_.history_ == by_rankers.ranker_.history_
    curve = by_rankers.ranker_.history_["valid"]["NDCG"]
    value = rk.evaluate(by_rankers.predict(VALID), VALID, "NDCG").mean["NDCG"]
    assert value == pytest.approx(max(curve), abs=1e-6)


def test_several_validation_sets_and_arrays():
    ranker = rk.LambdaRank(hidden=0, n_epochs=3)
    order = np.argsort(np.arange(VALID.n_docs) % 8, kind="stable")
    apart = (VALID.X[order], VALID.y[order], VALID.qid[order])
    by_rankers = rk.Stacked(members(), ranker=ranker).fit(TRAIN, valid={"a": apart, "b": TEST})
    shuffled = {name: scores[order] for name, scores in scores_of(VALID).items()}
    by_scores = rk.Stacked(ranker=ranker).fit(
        TRAIN,
        member_scores=scores_of(TRAIN),
        valid={"a": apart, "b": TEST},
        valid_scores={"a": shuffled, "b": scores_of(TEST)},
    )
    assert list(by_rankers.ranker_.history_) == ["a", "b"]
    assert by_scores.ranker_.history_ == by_rankers.ranker_.history_
    plain = rk.Stacked(members(), ranker=ranker).fit(TRAIN, valid=VALID)
    assert plain.ranker_.history_["valid"] == by_rankers.ranker_.history_["a"]


def test_scores_of_validation_sets_that_are_refused():
    model = rk.Stacked(**LINEAR)
    fit = {"member_scores": scores_of(TRAIN)}
    with pytest.raises(rk.UsageError, match="for the validation set 'valid' as valid_scores"):
        model.fit(TRAIN, **fit, valid=VALID)
    with pytest.raises(rk.UsageError, match="for the validation set 'b' as valid_scores"):
        model.fit(TRAIN, **fit, valid={"b": VALID}, valid_scores={"a": scores_of(VALID)})
    with pytest.raises(rk.DataError, match="'1' has 96 scores for 48 documents"):
        model.fit(TRAIN, **fit, valid=VALID, valid_scores=scores_of(TRAIN))
    with pytest.raises(rk.DataError, match="member_scores lacks '2', '3'"):
        model.fit(TRAIN, **fit, valid=VALID, valid_scores={"1": scores_of(VALID)["1"]})


@pytest.mark.parametrize("ranker", ["LambdaRank", rk.LambdaRank, 3, rk.Average()])
def test_rankers_on_top_that_are_refused(ranker):
    with pytest.raises(rk.UsageError, match="expected a ranker that learns, such as LambdaRank"):
        rk.Stacked(members(), ranker=ranker).fit(VALID)


def test_further_labels_reach_the_ranker_on_top():
    data = VALID.with_labels({"clicks": VALID.y})
    ranker = rk.LambdaRank("NDCG[clicks]", hidden=0, n_epochs=2)
    model = rk.Stacked(members(), ranker=ranker).fit(data)
    assert list(model.ranker_.history_["train"]) == ["NDCG[clicks]"]


def test_a_drawn_seed_is_in_the_file():
    model = rk.Stacked(members(), ranker=rk.LambdaRank(hidden=2, n_epochs=2, random_state=None))
    model.fit(VALID)
    saved = bytes_of(model)
    again = rk.load_model("bytes.rk")
    assert again.ranker.random_state == model.ranker_.seed_
    assert bytes_of(again.fit(VALID)) == saved
