"""A base: a ranker, another model, or scores that boosting starts from (LambdaSMART)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import rankinite as rk
from tests.rankers.cases import (
    CASES,
    SMALL,
    TEST,
    TRAIN,
    VALID,
    WHOLE,
    background,
    bytes_of,
    copied,
)


def test_a_base_shifts_where_training_starts():
    """Squared error from a base is squared error of what the base leaves, by hand."""
    base = background()
    left = TRAIN.y - base.predict(TRAIN)
    params = SMALL | WHOLE | {"n_trees": 1, "learning_rate": 1.0, "l2_regularization": 0.0}
    model = rk.MART("squared", **params, base=base).fit(TRAIN)
    tree_part = model.predict(TRAIN) - base.predict(TRAIN)
    for value in np.unique(tree_part.round(9)):
        leaf = np.isclose(tree_part, value)
        assert left[leaf].mean() == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", ["NDCG", "squared", "net"])
def test_a_ranker_and_its_scores_are_the_same_base(name):
    base, case = background(), CASES[name]
    by_ranker = case.new(base=base).fit(TRAIN, valid=VALID)
    by_scores = case.new(base=base.predict(TRAIN)).fit(
        TRAIN, valid=VALID, valid_base=base.predict(VALID)
    )
    assert by_scores.history_ == by_ranker.history_
    np.testing.assert_array_equal(
        by_scores.predict(TEST, base_scores=base.predict(TEST)), by_ranker.predict(TEST)
    )
    alone = by_scores.predict(TEST, base_scores=0)
    np.testing.assert_allclose(alone, by_ranker.predict(TEST) - base.predict(TEST), atol=1e-12)


def test_a_model_contains_its_base():
    base = background()
    base.save("base.rk")
    loaded = rk.load_model("base.rk")
    model = rk.LambdaMART(**SMALL, base=loaded).fit(TRAIN)
    expected = model.predict(TEST)
    model.save("model.rk")
    Path("base.rk").unlink()
    del base, loaded, model
    again = rk.load_model("model.rk")
    np.testing.assert_array_equal(again.predict(TEST), expected)
    assert isinstance(again.base, rk.MART)
    assert Path("model.rk").read_bytes() == bytes_of(again)


@pytest.mark.parametrize(
    "names", [("NDCG", "squared", "NDCG"), ("net", "NDCG", "net"), ("NDCG", "net-sgd", "squared")]
)
def test_bases_of_bases(names):
    model = background()
    for name in names:
        model = CASES[name].new(base=model).fit(TRAIN)
    expected = model.predict(TEST)
    model.save("model.rk")
    again = rk.load_model("model.rk")
    np.testing.assert_array_equal(again.predict(TEST), expected)
    assert type(again.base.base.base) is rk.MART
    assert again.base.base.base.base is None
    assert bytes_of(again) == Path("model.rk").read_bytes()


def test_mcrank_is_a_base_but_has_none():
    base = rk.McRank(**SMALL | {"n_trees": 2}).fit(VALID)
    model = rk.LambdaMART(**SMALL, base=base).fit(TRAIN)
    np.testing.assert_array_equal(model.predict(TEST, n_trees=0), base.predict(TEST))
    with pytest.raises(rk.UsageError, match="McRank: there is no parameter 'base'"):
        rk.McRank(base=base)


def test_a_base_that_needs_queries_gets_them():
    base = rk.MART("logistic", per_query=True, **SMALL).fit(VALID)
    model = rk.LambdaMART(**SMALL, base=base).fit(TRAIN)
    np.testing.assert_array_equal(model.predict(TEST.X, TEST.qid), model.predict(TEST))
    with pytest.raises(rk.UsageError, match="give predict a qid"):
        model.predict(TEST.X)


def test_any_model_can_be_a_base():
    base = LinearRegression().fit(VALID.X, VALID.y)
    model = rk.LambdaMART(**SMALL, base=base).fit(TRAIN)
    np.testing.assert_array_equal(model.predict(TEST, n_trees=0), base.predict(TEST.X))
    np.testing.assert_array_equal(model.predict(TEST.X), model.predict(TEST))
    with pytest.raises(rk.UsageError, match="LinearRegression, which a model file cannot hold"):
        model.save("model.rk")
    assert not Path("model.rk").exists()


def test_scores_follow_documents_that_are_brought_together():
    """Arrays may hold the documents of a query apart; what belongs to them moves with them."""
    shuffled = np.random.default_rng(3).permutation(TRAIN.n_docs)
    first = {q: i for i, q in reversed(list(enumerate(TRAIN.qid[shuffled])))}
    order = np.array(sorted(shuffled, key=lambda i: first[TRAIN.qid[i]]))
    # Stable: inside a query the documents stand as in the shuffled arrays.
    place = np.argsort(shuffled)
    order = np.array(sorted(order, key=lambda i: (first[TRAIN.qid[i]], place[i])))
    base = TRAIN.X[:, 0].astype(np.float64)
    apart = rk.LambdaMART(**SMALL, base=base[shuffled]).fit(
        TRAIN.X[shuffled],
        TRAIN.y[shuffled],
        qid=TRAIN.qid[shuffled],
        valid=(TRAIN.X[shuffled], TRAIN.y[shuffled], TRAIN.qid[shuffled]),
        valid_base=base[shuffled],
    )
    together = rk.LambdaMART(**SMALL, base=base[order]).fit(
        TRAIN.X[order],
        TRAIN.y[order],
        qid=TRAIN.qid[order],
        valid=(TRAIN.X[order], TRAIN.y[order], TRAIN.qid[order]),
        valid_base=base[order],
    )
    assert bytes_of(apart) == bytes_of(together)


SCORES = np.zeros(TRAIN.n_docs)


@pytest.mark.parametrize(
    ("base", "options", "error", "sentence"),
    [
        (SCORES[:-1], {}, rk.DataError, "base has the shape (95,); expected a fitted ranker, or"),
        (SCORES[:, None], {}, rk.DataError, "base has the shape (96, 1)"),
        (SCORES * np.nan, {}, rk.DataError, "base has nan for document 0; expected finite"),
        ("base.rk", {}, rk.UsageError, "base is a str; expected a fitted ranker (load_model"),
        (rk.MART(), {}, rk.UsageError, "the base, a MART, is not fitted yet; fit it first"),
        (SCORES, {"valid": VALID}, rk.UsageError, "of the validation set 'valid' as valid_base"),
        (
            SCORES,
            {"valid": {"a": VALID, "b": VALID}, "valid_base": {"a": np.zeros(48)}},
            rk.UsageError,
            "of the validation set 'b' as valid_base",
        ),
        (
            SCORES,
            {"valid": VALID, "valid_base": np.zeros(3)},
            rk.DataError,
            "valid_base of 'valid' has the shape (3,)",
        ),
    ],
)
def test_bases_that_are_refused(base, options, error, sentence):
    with pytest.raises(error) as caught:
        rk.LambdaMART(**SMALL, base=base).fit(TRAIN, **options)
    assert sentence in str(caught.value)


def test_a_base_of_other_features_is_refused():
    base = rk.MART(**SMALL).fit(copied(TRAIN, feature_names=["a", "b", "c", "d"]))
    with pytest.raises(rk.DataError, match="lacks 'a', 'b', 'c', 'd'"):
        rk.LambdaMART(**SMALL, base=base).fit(TRAIN)


@pytest.mark.parametrize(
    ("base_scores", "error", "sentence"),
    [
        (None, rk.UsageError, "give base_scores, the same ranker's scores of these documents"),
        (np.zeros(3), rk.DataError, "base_scores has the shape (3,)"),
        (1.5, rk.DataError, "base_scores has the shape ()"),
        (np.full(48, np.inf), rk.DataError, "base_scores has inf for document 0"),
    ],
)
def test_base_scores_that_are_refused(base_scores, error, sentence):
    model = rk.LambdaMART(**SMALL, base=SCORES).fit(TRAIN)
    for loaded in (False, True):
        if loaded:
            model.save("model.rk")
            model = rk.load_model("model.rk")
        for call in (model.predict, model.staged_predict):
            with pytest.raises(error) as caught:
                call(TEST, base_scores=base_scores)
            assert sentence in str(caught.value)


def test_base_scores_nobody_asked_for():
    plain = rk.LambdaMART(**SMALL).fit(TRAIN)
    with pytest.raises(rk.UsageError, match="the model has no base; leave them out"):
        plain.predict(TEST, base_scores=np.zeros(48))
    based = rk.LambdaMART(**SMALL, base=background()).fit(TRAIN)
    with pytest.raises(rk.UsageError, match="the model contains its base; leave them out"):
        based.predict(TEST, base_scores=np.zeros(48))
