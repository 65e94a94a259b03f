"""What holds for every ranker: parameters, seeds, stages, importances, odd data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import rankinite as rk
from rankinite.models import RANKERS
from tests.rankers.cases import (
    CASES,
    SMALL,
    TEST,
    TRAIN,
    WHOLE,
    bytes_of,
    copied,
    every_case,
    every_case_of_trees,
    every_ranker,
)


def test_the_cases_are_of_all_rankers():
    assert {case.kind.__name__ for case in CASES.values()} == set(RANKERS)


@every_case
def test_clones_are_unfitted_and_have_equal_parameters(case):
    model = case.fit()
    copy = clone(model)
    assert type(copy) is type(model)
    assert not copy.is_fitted
    ours, theirs = model.get_params(deep=False), copy.get_params(deep=False)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(theirs[name], value)
    assert bytes_of(copy.fit(TRAIN)) == bytes_of(model)


def test_a_clone_keeps_its_base_fitted():
    model = CASES["NDCG-base"].new()
    copy = clone(model)
    assert copy.base is model.base
    assert copy.base.is_fitted


@every_case
def test_parameters_are_got_and_set(case):
    model = case.new()
    assert model.set_params(**case.settings(rounds=2), learning_rate=0.5) is model
    assert (model.get_params() | case.settings(rounds=2)) == model.get_params()
    assert (model.learning_rate, model.get_params()["learning_rate"]) == (0.5, 0.5)
    assert case.fit(changes={"rounds": 2}).n_rounds_ == 2


def test_parameters_of_the_base_are_reached_through_it():
    model = CASES["NDCG-base"].new()
    assert model.get_params()["base__loss"] == "centred"
    model.set_params(base__n_trees=1)
    assert model.base.n_trees == 1


@every_case
def test_repr_names_the_class_and_what_is_not_default(case):
    text = repr(case.new(**{case.size: 11}))
    assert text.startswith(f"{case.kind.__name__}(")
    assert f"{case.size}=11" in text


@every_case
def test_fit_returns_the_ranker_and_leaves_parameters_alone(case):
    model = case.new()
    if case.base == "scores":
        model.set_params(base=case.scores(TRAIN))
    before = dict(vars(model))
    assert model.fit(TRAIN) is model
    learned = vars(model).keys() - before.keys()
    assert all(name.endswith("_") for name in learned)
    assert {"feature_names_", "n_features_in_", "top_grade_", "n_rounds_", "history_"} <= learned
    assert "best_round_" in learned
    for name, value in before.items():
        assert getattr(model, name) is value
    assert model.feature_names_ == ("1", "2", "3", "4")
    assert model.top_grade_ == 4.0
    assert model.n_rounds_ == (model.n_epochs if case.is_net else model.n_trees)
    assert case.is_net or model.best_round_ == model.n_trees_ == model.n_rounds_


@every_case
def test_equal_seeds_give_equal_bytes_and_others_do_not(case):
    first = bytes_of(case.fit())
    assert bytes_of(case.fit()) == first
    other = case.fit(changes={"random_state": 4})
    assert (case.predict(other) != case.predict(case.fit())).any()


@every_ranker
@pytest.mark.parametrize("state", [None, np.random.RandomState(5)])
def test_a_drawn_seed_is_kept_and_repeats_the_model(case, state):
    model = case.fit(changes={"random_state": state})
    again = case.fit(changes={"random_state": model.seed_})
    assert bytes_of(again) == bytes_of(model)


def test_drawn_seeds_differ_and_random_states_repeat():
    case = CASES["NDCG"]
    seeds = {case.fit(changes={"random_state": None, "rounds": 1}).seed_ for _ in range(3)}
    assert len(seeds) == 3
    seeds = [case.fit(changes={"random_state": np.random.RandomState(5)}).seed_ for _ in range(2)]
    assert seeds[0] == seeds[1]


@every_case
def test_a_ranker_survives_a_pickle(case):
    model = case.fit()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(case.predict(again), case.predict(model))
    assert bytes_of(again) == bytes_of(model)


@every_case_of_trees
def test_stages_are_what_fewer_trees_predict(case):
    model = case.fit()
    stages = case.staged(model)
    assert len(stages) == model.n_trees_
    for k, scores in enumerate(stages, 1):
        np.testing.assert_array_equal(case.predict(model, n_trees=k), scores)
        fewer = case.fit(changes={"rounds": k})
        np.testing.assert_array_equal(case.predict(fewer), scores)
    np.testing.assert_array_equal(case.predict(model), stages[-1])


@every_case_of_trees
def test_some_stages_only(case):
    model = case.fit()
    n = model.n_trees_
    wanted = [*range(2, n, 2), n]
    stages = case.staged(model, every=2)
    assert len(stages) == len(wanted)
    for k, scores in zip(wanted, stages, strict=True):
        np.testing.assert_array_equal(case.predict(model, n_trees=k), scores)


@every_case_of_trees
def test_no_trees_predict_the_start(case):
    model = case.fit(changes={"measure": "NDCG"} if case.kind is rk.LambdaMART else {})
    scores = case.predict(model, n_trees=0)
    if case.base == "scores":
        np.testing.assert_array_equal(scores, case.scores(TEST))
    elif case.base == "ranker":
        np.testing.assert_array_equal(scores, model.base.predict(TEST))
    else:
        assert len(np.unique(scores)) == 1


@every_case
def test_predict_takes_arrays_frames_and_indexed_sets(case):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = ["a", "b", "c", "d"]
    train = copied(TRAIN, feature_names=names)
    test = copied(TEST, feature_names=names)
    if case.base == "ranker":
        base = rk.MART(**SMALL | {"n_trees": 2}).fit(train)
        model = case.new(base=base).fit(train)
    else:
        model = case.fit(train)
    expected = case.predict(model, test)
    options = {"qid": TEST.qid}
    if case.base == "scores":
        options["base_scores"] = case.scores(test)
    X = np.array(TEST.X)
    for documents in (
        X,
        X.astype(np.float64),
        np.asfortranarray(X),
        X.tolist(),
        pandas.DataFrame(X, columns=names),
        polars.DataFrame(X, schema=names),
        polars.DataFrame(X, schema=names).to_arrow(),
    ):
        np.testing.assert_array_equal(model.predict(documents, **options), expected)
    part = test[[3, 1]]
    picked = np.concatenate([expected[24:32], expected[8:16]])
    np.testing.assert_array_equal(case.predict(model, part), picked)


@every_case
def test_arrays_and_sets_fit_alike(case):
    whole = case.fit()
    arrays = case.new(**{"base": case.scores(TRAIN)} if case.base == "scores" else {})
    arrays.fit(np.array(TRAIN.X), TRAIN.y, qid=TRAIN.qid)
    assert bytes_of(arrays) == bytes_of(whole)


def test_predict_scores_an_empty_list_of_documents():
    model = CASES["NDCG"].fit()
    for kind in (np.float32, np.float64):
        assert model.predict(np.zeros((0, 4), kind)).shape == (0,)


def test_frames_may_hold_missing_values():
    pandas = pytest.importorskip("pandas")
    X = np.array(TRAIN.X, np.float64)
    X[::5, 1] = np.nan
    model = CASES["NDCG"].new().fit(X, TRAIN.y, qid=TRAIN.qid)
    frame = pandas.DataFrame(X).convert_dtypes(dtype_backend="numpy_nullable")
    np.testing.assert_array_equal(model.predict(frame), model.predict(X))


@every_case_of_trees
def test_importances_by_name(case):
    names = ["bm25", "pagerank", "length", "age"]
    data = copied(TRAIN, feature_names=names)
    model = case.new(base=None).fit(data) if case.base == "ranker" else case.fit(data)
    trees = model.forest_.trees
    counts = {
        name: sum(int((tree.feature == j).sum()) for tree in trees) for j, name in enumerate(names)
    }
    gains = {
        name: sum(float(tree.gain[tree.feature == j].sum()) for tree in trees)
        for j, name in enumerate(names)
    }
    assert model.importances("count") == counts
    assert model.importances() == pytest.approx(gains)
    values = list(model.importances().values())
    assert values == sorted(values, reverse=True)
    shares = model.feature_importances_
    assert shares.sum() == pytest.approx(1.0)
    assert dict(zip(names, shares, strict=True)) == pytest.approx(
        {name: gain / sum(gains.values()) for name, gain in gains.items()}
    )


def test_a_feature_that_says_nothing_has_no_importance():
    X = np.column_stack([TRAIN.y, np.zeros(TRAIN.n_docs)])
    model = rk.MART(**SMALL | WHOLE).fit(X, TRAIN.y, qid=TRAIN.qid)
    np.testing.assert_array_equal(model.feature_importances_, [1.0, 0.0])
    assert model.importances("count")["2"] == 0


def some_queries(sizes, y=None, X=None):
    n = sum(sizes)
    rng = np.random.default_rng(1)
    return rk.RankingData(
        rng.normal(size=(n, 4)) if X is None else X,
        rng.integers(0, 5, n) if y is None else y,
        group_sizes=sizes,
        top_grade=4,
    )


ODD = {
    "one query": some_queries([30]),
    "one document": some_queries([1]),
    "one document a query": some_queries([1, 1, 1]),
    "all labels equal": some_queries([5, 5], y=np.full(10, 2.0)),
    "all labels zero": some_queries([5, 5], y=np.zeros(10)),
    "features without variance": some_queries([5, 5], X=np.ones((10, 4))),
    "missing features only": some_queries([5, 5], X=np.full((10, 4), np.nan)),
    "fewer documents than leaves": some_queries([2]),
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
@every_case
def test_odd_data_give_a_model(case, data):
    large = {"hidden": 31} if case.is_net else {"n_leaves": 31, "min_docs_in_leaf": 1, **WHOLE}
    model = case.fit(data, changes=large)
    scores = case.predict(model)
    assert scores.shape == (TEST.n_docs,)
    assert np.isfinite(scores).all()
    assert bytes_of(model)
    again = rk.load_model("bytes.rk")
    np.testing.assert_array_equal(case.predict(again), scores)


@every_case
def test_nothing_to_learn_leaves_the_start(case):
    data = ODD["features without variance"]
    model = case.fit(data, changes=case.whole)
    assert set(model.importances().values()) == {0.0}
    if not case.base:
        assert len(np.unique(case.predict(model).round(12))) == 1


def test_equal_labels_push_no_document():
    model = rk.LambdaMART(**SMALL | {"n_trees": 50}).fit(ODD["all labels equal"])
    np.testing.assert_array_equal(model.predict(TEST), np.zeros(TEST.n_docs))
    assert model.n_rounds_ < 50  # ten rounds that do nothing are enough


@every_case
def test_training_learns(case):
    rate = 0.05 if case.is_net else 0.2
    changes = {"rounds": 30, "learning_rate": rate, "base": None, **case.whole}
    if case.kind is rk.McRank:
        changes.pop("base")
    model = case.new(**changes).fit(TRAIN)
    value, chance = (
        rk.evaluate(scores, TRAIN, "NDCG").mean["NDCG"]
        for scores in (model.predict(TRAIN), np.zeros(TRAIN.n_docs))
    )
    assert value > chance + 0.08  # MRR depends on fewer documents than NDCG


def test_mart_starts_from_the_mean_and_reaches_the_labels():
    data = copied(TRAIN)
    params = SMALL | WHOLE | {"min_docs_in_leaf": 1, "n_leaves": 200, "learning_rate": 1.0}
    params |= {"loss": "squared", "symmetric": False, "l2_regularization": 0.0, "n_trees": 1}
    model = rk.MART(**params).fit(data)
    np.testing.assert_allclose(model.predict(data, n_trees=0), data.y.mean())
    np.testing.assert_allclose(model.predict(data), data.y, atol=1e-9)


def test_per_query_is_the_formula_of_the_paper():
    """Ensemble, Sec. 4.2: P_max (1 + P - P_max)."""
    plain, normalised = CASES["logistic"].fit(), CASES["per-query"].fit()
    chances = plain.predict(TEST).reshape(6, 8)
    largest = chances.max(axis=1, keepdims=True)
    expected = (largest * (1 + chances - largest)).ravel()
    np.testing.assert_allclose(normalised.predict(TEST), expected, rtol=1e-14)
    shuffled = np.random.default_rng(0).permutation(TEST.n_docs)
    scores = normalised.predict(TEST.X[shuffled], TEST.qid[shuffled])
    np.testing.assert_allclose(scores, expected[shuffled], rtol=1e-14)


def test_mcrank_gives_the_expected_grade():
    model = CASES["McRank"].fit()
    outputs = model.forest_.scores(TEST.matrix)
    chances = np.exp(outputs) / np.exp(outputs).sum(axis=0)
    expected = sum(grade * chances[grade] for grade in range(5))
    np.testing.assert_allclose(model.predict(TEST), expected, rtol=1e-12)
