"""WithScoreFeatures: out-of-fold scores in training, the scorer's in use, and the model file."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import rankinite as rk
from rankinite.core.container import Content, read_container, write_container
from rankinite.ensembles.score_features import (
    FEATURE_NAMES,
    out_of_fold_scores,
    with_score_features,
)
from tests.ensembles.cases import members
from tests.rankers.cases import SMALL, TEST, TRAIN, VALID, bytes_of, copied

SCORER = rk.MART("logistic", **SMALL | {"n_trees": 3})
RANKER = rk.MART(**SMALL | {"n_leaves": 12, "min_docs_in_leaf": 1, "valid_measure": "NDCG"})


def new(**changes):
    return rk.WithScoreFeatures(**{"scorer": SCORER, "ranker": RANKER, "folds": 3} | changes)


@pytest.fixture(scope="module")
def model():
    """Return a fitted one, in which the score features matter."""
    fitted = new().fit(TRAIN)
    gains = fitted.ranker_.importances()
    assert any(gains[name] > 0 for name in fitted.ranker_.feature_names_[4:])
    return fitted


def test_scores_of_training_documents_are_out_of_fold():
    scores = out_of_fold_scores(SCORER, TRAIN, 3)
    parts = TRAIN.split(3)
    seen = 0
    for k, part in enumerate(parts):
        others = TRAIN[~np.isin(TRAIN.qids, part.qids)]
        assert others.n_queries == sum(p.n_queries for j, p in enumerate(parts) if j != k)
        expected = clone(SCORER).fit(others)
        for q in np.flatnonzero(np.isin(TRAIN.qids, part.qids)):
            docs = slice(TRAIN.offsets[q], TRAIN.offsets[q + 1])
            np.testing.assert_array_equal(scores[docs], expected.predict(TRAIN[int(q)]))
            seen += 1
    assert seen == TRAIN.n_queries


def test_labels_of_a_query_do_not_reach_its_own_features():
    changed = TRAIN.y.copy()
    changed[: TRAIN.sizes[0]] = changed[: TRAIN.sizes[0]][::-1]
    assert not np.array_equal(changed, TRAIN.y)
    other = copied(TRAIN, y=changed)
    first = slice(0, TRAIN.sizes[0])
    np.testing.assert_array_equal(
        out_of_fold_scores(SCORER, TRAIN, 3)[first], out_of_fold_scores(SCORER, other, 3)[first]
    )


def test_samples_are_in_the_fold_of_their_query():
    data = rk.augment(TRAIN, fraction=0.5, times=2)
    scores = out_of_fold_scores(SCORER, data, 3)
    for part in data.split(3):
        mask = np.isin(data.qids, part.qids)
        fitted = clone(SCORER).fit(data[~mask])
        expected = fitted.predict(data[mask])
        np.testing.assert_array_equal(scores[np.repeat(mask, data.sizes)], expected)


def test_it_is_its_parts(model):
    train = with_score_features(TRAIN, out_of_fold_scores(SCORER, TRAIN, 3), "MART: ")
    scorer, ranker = clone(SCORER).fit(TRAIN), clone(RANKER).fit(train)
    expected = ranker.predict(with_score_features(TEST, scorer.predict(TEST), "MART: "))
    np.testing.assert_array_equal(model.predict(TEST), expected)
    assert model.ranker_.feature_names_[4:] == tuple(f"MART: {name}" for name in FEATURE_NAMES)
    assert model.feature_names_ == tuple("1234")
    assert (model.n_features_in_, model.top_grade_) == (4, 4.0)
    again = rk.WithScoreFeatures.from_fitted(scorer, ranker)
    np.testing.assert_array_equal(again.predict(TEST), expected)
    assert bytes_of(again.set_params(folds=3)) == bytes_of(model)


def test_validation_sets_are_handed_to_the_ranker():
    model = new().fit(TRAIN, valid=VALID)
    (curve,) = model.ranker_.history_["valid"].values()
    seen = with_score_features(VALID, model.scorer_.predict(VALID), "MART: ")
    value = rk.evaluate(model.ranker_.predict(seen), VALID, "NDCG").mean["NDCG"]
    assert max(curve) == pytest.approx(value)
    assert not model.scorer_.history_


def test_arrays_whose_queries_stand_apart(model):
    order = np.argsort(np.arange(TRAIN.n_docs) % 8, kind="stable")
    apart = new().fit(TRAIN.X[order], TRAIN.y[order], qid=TRAIN.qid[order])
    assert bytes_of(apart) == bytes_of(model)
    order = np.argsort(np.arange(TEST.n_docs) % 8, kind="stable")
    scores = model.predict(TEST.X[order], TEST.qid[order])
    np.testing.assert_array_equal(scores, model.predict(TEST)[order])


def test_weights_of_documents_move_along():
    weights = np.linspace(0.5, 2, TRAIN.n_docs)
    order = np.argsort(np.arange(TRAIN.n_docs) % 8, kind="stable")
    weighted = new(ranker=SCORER).fit(TRAIN, sample_weight=weights)
    other = new(ranker=SCORER).fit(
        TRAIN.X[order], TRAIN.y[order], qid=TRAIN.qid[order], sample_weight=weights[order]
    )
    assert bytes_of(weighted) == bytes_of(other)


def test_a_query_is_scored_alone_as_among_others(model):
    together = model.predict(TEST)
    for q, query in enumerate(TEST):
        docs = slice(TEST.offsets[q], TEST.offsets[q + 1])
        np.testing.assert_array_equal(model.predict(query), together[docs])


def test_scikit_learn_manners(model):
    copy = clone(model)
    assert not copy.is_fitted
    assert not copy.scorer.is_fitted
    assert bytes_of(copy.fit(TRAIN)) == bytes_of(model)
    assert model.get_params()["ranker__n_trees"] == 6
    copy.set_params(scorer__n_trees=1)
    assert (copy.scorer.n_trees, model.scorer.n_trees, SCORER.n_trees) == (1, 3, 3)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))
    assert repr(model).startswith("WithScoreFeatures(")
    before = dict(vars(copy))
    assert copy.fit(TRAIN) is copy
    assert all(name.endswith("_") for name in vars(copy).keys() - before.keys())


def test_by_default_it_is_the_winners():
    model = rk.WithScoreFeatures()
    assert (type(model._new("scorer")), model._new("scorer").loss) == (rk.MART, "logistic")
    assert type(model._new("ranker")) is rk.LambdaMART


def test_saved_and_loaded(model):
    model.save("model.rk")
    again = rk.load_model("model.rk")
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))
    assert bytes_of(again) == bytes_of(model)
    assert bytes_of(again.fit(TRAIN)) == bytes_of(model)


def test_within_others(model):
    """As a member, as a scorer and as a base; with an ensemble for its scorer."""
    average = rk.Average([model, members()[0]]).fit(VALID)
    scorer = rk.WithScoreFeatures(rk.Average(members()[:1]), model, folds=2).fit(TRAIN)
    based = rk.LambdaMART(**SMALL, base=model).fit(TRAIN)
    for outer in (average, scorer, based):
        outer.save("model.rk")
        again = rk.load_model("model.rk")
        np.testing.assert_array_equal(again.predict(TEST), outer.predict(TEST))
        assert bytes_of(again) == bytes_of(outer)


def test_the_commands_know_it(call, model):
    rk.save(TEST, "test.txt")
    model.save("model.rk")
    printed = [float(number) for number in call("predict", "model.rk", "test.txt").split()]
    assert printed == model.predict(rk.load("test.txt")).tolist()
    assert "which has no trees" in call("predict", "model.rk", "test.txt", "--n-trees", 1, code=2)
    shown = call("inspect", "model.rk")
    assert "The scorer of model.rk" in shown
    assert "of scores" in shown
    inspection = json.loads(call("inspect", "model.rk", "--json"))
    assert (inspection["scorer"]["class"], inspection["ranker"]["class"]) == ("MART", "MART")
    assert inspection["ranker"]["trees"] == 6
    assert "trees" not in inspection
    rk.Average([model, members()[0]]).fit(VALID).save("average.rk")
    lines = [" ".join(line.split()) for line in call("inspect", "average.rk").splitlines()]
    assert any(line.startswith("1 WithScoreFeatures 6 trees 1 ") for line in lines)


def test_predict_needs_queries(model):
    with pytest.raises(rk.UsageError, match="depends on the whole query; give predict a qid, or"):
        model.predict(TEST.X)
    with pytest.raises(rk.UsageError, match="qid has 47 values for 48 documents"):
        model.predict(TEST.X, TEST.qid[1:])
    with pytest.raises(rk.DataError, match="WithScoreFeatures: X has 3 features"):
        model.predict(TEST.X[:, :3], TEST.qid)
    with pytest.raises(rk.UsageError, match="is not fitted yet; call fit"):
        new().predict(TEST)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"scorer": "MART"}, "scorer is a str; expected a ranker, such as MART("),
        ({"ranker": 3}, "ranker is a int; expected a ranker, such as LambdaMART()"),
        ({"folds": 1}, "folds must be a whole number of at least 2; got 1"),
        ({"folds": 13}, "12 queries are too few for 13 folds"),
    ],
)
def test_wrong_parameters(changes, sentence):
    with pytest.raises(ValueError) as caught:
        new(**changes).fit(TRAIN)
    assert str(caught.value).startswith("WithScoreFeatures: ")
    assert sentence in str(caught.value)


def test_parts_that_do_not_fit(model):
    from_fitted = rk.WithScoreFeatures.from_fitted
    for scorer, ranker, sentence in (
        (SCORER, model.ranker_, "the scorer is not fitted yet"),
        (model.scorer_, RANKER, "the ranker is not fitted yet"),
        (None, model.ranker_, "scorer is a NoneType"),
        (model.scorer_, members()[0], "are not those of the scorer and four more"),
        (model.ranker_, model.scorer_, "are not those of the scorer and four more"),
    ):
        with pytest.raises(ValueError) as caught:
            from_fitted(scorer, ranker)
        assert sentence in str(caught.value)


FORGED = [
    ("parameters", {"folds": 1}, "folds must be a whole number"),
    ("parameters", {"scorer": 1}, "its parameters are ['scorer']"),
    ("members", [], "other rankers inside than a scorer and a ranker"),
    ("feature_names", ["a", "b", "c", "d"], "do not fit the ranker that contains them"),
    ("based_on_scores", True, "other rankers inside"),
    ("ranker", None, "its ranker is no ranker"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), FORGED)
def test_forged_files_are_refused(model, name, value, sentence):
    model.save("model.rk")
    content = read_container("model.rk")
    write_container("model.rk", Content({**content.manifest, name: value}, content.arrays))
    with pytest.raises(rk.ModelFileError) as caught:
        rk.load_model("model.rk")
    assert sentence in str(caught.value)


def test_a_file_without_a_ranker_is_refused(model):
    model.save("model.rk")
    content = read_container("model.rk")
    manifest = {key: value for key, value in content.manifest.items() if key != "ranker"}
    write_container("model.rk", Content(manifest, content.arrays))
    with pytest.raises(rk.ModelFileError, match="other rankers inside than a scorer and a ranker"):
        rk.load_model("model.rk")
