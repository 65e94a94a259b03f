"""Ensembles of members that know categories, each with codes of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rankinite as rk

SMALL = {"n_trees": 6, "n_leaves": 8, "min_docs_in_leaf": 3, "docs_per_tree": 1.0}
COLOURS = ("red", "green", "blue", "grey", "pink")
FEATURES = ["x", "colour"]


def frame(part: int, colours=COLOURS, n: int = 160) -> pd.DataFrame:
    """Return documents whose labels depend on their colours; "amber" is worth most."""
    rng = np.random.default_rng(part)
    worth = {"amber": 4.0, "red": 2.0, "green": -1.0, "blue": 0.0, "grey": 1.0, "pink": -2.0}
    colour, x = rng.choice(np.array(colours, object), n), rng.normal(size=n)
    label = np.digitize([worth[c] for c in colour] + x, [-1, 1, 2])
    return pd.DataFrame({"x": x, "colour": colour, "label": label, "qid": np.arange(n) // 8})


def data_set(table: pd.DataFrame) -> rk.RankingData:
    return rk.from_frame(table, categorical_features=["colour"])


def as_arguments(table: pd.DataFrame, kind: str = "object"):
    return table[FEATURES].astype({"colour": kind}), table.label, table.qid


TRAIN, OTHER, TEST = frame(1), frame(2), frame(3)
# "amber" comes first in its table, so that each colour has another code than in the others.
VALID = frame(4, ("amber", *COLOURS))


@pytest.fixture(scope="module")
def members():
    # The second has a table of its own, too.
    of_some = frame(5, ("pink", "red", "amber"))
    return [
        rk.MART(**SMALL).fit(data_set(TRAIN)),
        rk.LambdaMART(**SMALL).fit(data_set(of_some)),
    ]


def stacked(members) -> rk.Stacked:
    return rk.Stacked(members, ranker=rk.LambdaRank(hidden=0, n_epochs=3))


VALIDATION = {
    "a data set": data_set(VALID),
    "a frame": as_arguments(VALID, "category"),
    "a frame of texts": as_arguments(VALID),
}


@pytest.mark.parametrize("valid", VALIDATION.values(), ids=list(VALIDATION))
def test_validation_sets_of_stacked_have_codes_of_their_own(members, valid):
    model = stacked(members).fit(data_set(OTHER), valid=valid)
    value = rk.evaluate(model.predict(data_set(VALID)), data_set(VALID), "NDCG").mean["NDCG"]
    curve = model.ranker_.history_["valid"]["NDCG"]
    assert value == pytest.approx(max(curve), abs=1e-6)


def test_what_validation_sets_are_does_not_matter(members):
    sets = stacked(members).fit(data_set(OTHER), valid=VALIDATION).ranker_.history_
    assert sets["a frame"] == sets["a data set"] == sets["a frame of texts"]


@pytest.mark.parametrize(
    "kind", [rk.Average, rk.Interpolation, rk.BestMix, rk.Stacked], ids=lambda kind: kind.__name__
)
def test_frames_are_fitted_and_scored_as_data_sets_are(members, kind):
    ensemble = kind(members)
    x, y, qid = as_arguments(OTHER)
    of_set = ensemble.fit(data_set(OTHER)).predict(data_set(TEST))
    of_frame = ensemble.fit(x, y, qid=qid).predict(TEST[FEATURES], TEST.qid)
    np.testing.assert_array_equal(of_frame, of_set)


def test_arrays_have_the_codes_of_the_members():
    codes = data_set(OTHER)
    array = rk.RankingData(codes.X, codes.y, codes.qid)
    member = rk.MART(**SMALL).fit(data_set(TRAIN))
    model = stacked([member]).fit(
        codes.X, codes.y, qid=codes.qid, valid=(array.X, array.y, codes.qid)
    )
    same = stacked([member]).fit(codes, valid=codes)
    assert model.ranker_.history_ == same.ranker_.history_


def test_score_features_of_validation_sets_with_codes_of_their_own():
    ranker = rk.LambdaMART("NDCG", **SMALL, average_rounds=False)
    model = rk.WithScoreFeatures(rk.MART(**SMALL), ranker)
    model.fit(data_set(TRAIN), valid=VALIDATION)
    history = model.ranker_.history_
    assert history["a frame"] == history["a data set"]
    value = rk.evaluate(model.predict(data_set(VALID)), data_set(VALID), "NDCG").mean["NDCG"]
    assert value == pytest.approx(max(history["a data set"]["NDCG"]), abs=1e-6)


def test_score_features_of_frames_know_the_categories_of_both_rankers():
    # One bin for every category, and fewer in the scorer: it does not know the rare ones.
    model = rk.WithScoreFeatures(
        rk.MART(**SMALL | {"most_bins": 3}), rk.LambdaMART(**SMALL), folds=2
    ).fit(data_set(TRAIN))
    assert len(model.scorer_.categories_["colour"]) < len(model.ranker_.categories_["colour"])
    np.testing.assert_array_equal(
        model.predict(VALID[FEATURES], VALID.qid), model.predict(data_set(VALID))
    )
