"""Rankers among scikit-learn's tools: its own checks, searches, cross-validation, routing."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import rankinite as rk
from rankinite.models import RANKERS
from tests.rankers.cases import SMALL, TEST, TRAIN, WHOLE, every_ranker

X, Y, QID = np.array(TRAIN.X), np.array(TRAIN.y), np.array(TRAIN.qid)


@every_ranker
def test_check_estimator(case):
    exact = {} if case.is_net else {**WHOLE, "min_docs_in_leaf": 1}
    model = case.new(**exact, rounds=2, random_state=0)
    declared = case.kind.expected_failed_checks
    results = check_estimator(
        model, expected_failed_checks=dict(declared), on_fail=None, on_skip=None
    )
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    excused = {result["check_name"] for result in results if result["status"] == "xfail"}
    passed = {result["check_name"] for result in results if result["status"] == "passed"}
    assert not failed
    assert excused <= declared.keys()
    assert len(passed) > 35
    # What is excused is there to be run, and has a reason.
    assert declared.keys() <= {result["check_name"] for result in results}
    assert all(len(reason) > 20 for reason in declared.values())


def test_the_classes_say_what_does_not_apply():
    for ranker in RANKERS.values():
        documented = "".join(inspect.getdoc(kind) or "" for kind in ranker.__mro__)
        assert "expected_failed_checks" in documented
        assert "check_dtype_object" in ranker.expected_failed_checks


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@every_ranker
@pytest.mark.usefixtures("routed")
def test_grid_search_with_queries(case):
    params = case.small | case.whole | case.settings(rounds=4)
    search = GridSearchCV(
        case.kind(**params),
        {case.size: [2, 5], "learning_rate": [0.1, 0.5]},
        scoring=rk.scorer("NDCG@10"),
        cv=GroupKFold(3),
    )
    search.fit(X, Y, qid=QID, groups=QID)
    assert search.predict(TEST.X).shape == (TEST.n_docs,)
    # By hand: fit on two thirds of the queries, evaluate on the last.
    for place, chosen in enumerate(search.cv_results_["params"]):
        for fold, (train, valid) in enumerate(GroupKFold(3).split(X, Y, QID)):
            model = case.kind(**params | chosen).fit(X[train], Y[train], qid=QID[train])
            data = rk.RankingData(X[valid], Y[valid], QID[valid])
            expected = rk.evaluate(model.predict(data), data, "NDCG@10").mean["NDCG@10"]
            assert search.cv_results_[f"split{fold}_test_score"][place] == pytest.approx(expected)
    best = case.kind(**params | search.best_params_).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(search.predict(TEST.X), best.predict(TEST.X))


@pytest.mark.usefixtures("routed")
def test_searches_see_queries_and_not_one_long_list():
    """A ranker that is fitted without queries takes all documents for one, and differs."""
    model = rk.LambdaMART(**SMALL | WHOLE)
    search = GridSearchCV(model, {"n_leaves": [4]}, scoring=rk.scorer(), cv=GroupKFold(3))
    search.fit(X, Y, qid=QID, groups=QID)
    one_query = rk.LambdaMART(**SMALL | WHOLE).fit(X, Y)
    assert (search.predict(TEST.X) != one_query.predict(TEST.X)).any()


@every_ranker
@pytest.mark.usefixtures("routed")
def test_cross_validate_with_queries(case):
    results = cross_validate(
        case.kind(**case.small),
        X,
        Y,
        scoring={"ndcg": rk.scorer("NDCG"), "err": rk.scorer("ERR(top_grade=4)")},
        cv=GroupKFold(3),
        params={"qid": QID, "groups": QID},
        return_estimator=True,
    )
    folds = GroupKFold(3).split(X, Y, QID)
    for fold, (_, valid) in enumerate(folds):
        data = rk.RankingData(X[valid], Y[valid], QID[valid], top_grade=4)
        scores = results["estimator"][fold].predict(data)
        expected = rk.evaluate(scores, data, ["NDCG", "ERR"]).mean
        assert results["test_ndcg"][fold] == pytest.approx(expected["NDCG"])
        assert results["test_err"][fold] == pytest.approx(expected["ERR"])


SPLITTERS = {
    "GroupKFold": GroupKFold(3),
    "GroupKFold-shuffled": GroupKFold(3, shuffle=True, random_state=0),
    "GroupShuffleSplit": GroupShuffleSplit(2, test_size=0.4, random_state=0),
    "StratifiedGroupKFold": StratifiedGroupKFold(3, shuffle=True, random_state=0),
    "LeaveOneGroupOut": LeaveOneGroupOut(),
}
every_splitter = pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)
MORE = rk.augment(TRAIN, 0.5, 3)


@every_splitter
@pytest.mark.parametrize("data", [TRAIN, TRAIN[::-2]], ids=["whole", "sliced"])
def test_group_splitters_go_by_query(splitter, data):
    pairs = list(splitter.split(data.X, data.y, groups=data.qid))
    assert len(pairs) == splitter.get_n_splits(data.X, data.y, data.qid)
    for train, valid in pairs:
        assert set(data.qid[train]).isdisjoint(data.qid[valid])
        assert len(train) + len(valid) == data.n_docs


@every_splitter
def test_group_splitters_keep_samples_with_their_query(splitter):
    for train, valid in splitter.split(MORE.X, MORE.y, groups=MORE.origin):
        names = [{qid.partition("~")[0] for qid in MORE.qid[part]} for part in (train, valid)]
        assert names[0].isdisjoint(names[1])
        assert names[0] | names[1] == set(map(str, TRAIN.qids))
        # Query by query it is a data set again, and each has all of its documents.
        part = rk.RankingData(MORE.X[valid], MORE.y[valid], MORE.qid[valid])
        sizes = dict(zip(MORE.qids, MORE.sizes, strict=True))
        assert [sizes[qid] for qid in part.qids] == part.sizes.tolist()


@every_splitter
@pytest.mark.usefixtures("routed")
def test_cross_validate_with_samples(splitter):
    features, labels, qid = np.array(MORE.X), np.array(MORE.y), MORE.qid
    results = cross_validate(
        rk.LambdaMART(**SMALL | {"n_trees": 2}),
        features,
        labels,
        scoring=rk.scorer("NDCG@5"),
        cv=splitter,
        params={"qid": qid, "groups": MORE.origin},
        return_estimator=True,
        return_indices=True,
    )
    for k, valid in enumerate(results["indices"]["test"]):
        data = rk.RankingData(features[valid], labels[valid], qid[valid])
        scores = results["estimator"][k].predict(data)
        expected = rk.evaluate(scores, data, "NDCG@5").mean["NDCG@5"]
        assert results["test_score"][k] == pytest.approx(expected)


@pytest.mark.usefixtures("routed")
def test_a_pipeline_passes_queries_on():
    model = rk.LambdaMART(**SMALL)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, Y, qid=QID)
    alone = rk.LambdaMART(**SMALL).fit(StandardScaler().fit_transform(X), Y, qid=QID)
    scaled = StandardScaler().fit(X).transform(TEST.X)
    np.testing.assert_array_equal(pipeline.predict(TEST.X), alone.predict(scaled))


@pytest.mark.usefixtures("routed")
def test_sample_weight_is_routed_where_it_is_asked_for():
    weights = np.random.default_rng(1).random(len(Y))
    model = rk.MART(**SMALL).set_fit_request(sample_weight=True)
    results = cross_validate(
        model, X, Y, scoring=rk.scorer(), cv=GroupKFold(3), return_estimator=True,
        params={"qid": QID, "groups": QID, "sample_weight": weights},
    )  # fmt: skip
    train = next(iter(GroupKFold(3).split(X, Y, QID)))[0]
    by_hand = rk.MART(**SMALL).fit(X[train], Y[train], qid=QID[train], sample_weight=weights[train])
    np.testing.assert_array_equal(results["estimator"][0].predict(TEST.X), by_hand.predict(TEST.X))


def test_a_scorer_needs_a_measure():
    with pytest.raises(rk.UsageError, match="there is no measure 'NDGC'"):
        rk.scorer("NDGC")
