"""Rankers among scikit-learn's tools: its own checks, searches, cross-validation, routing."""

from __future__ import annotations

import inspect
from collections import defaultdict
from functools import wraps

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    HalvingGridSearchCV,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    cross_validate,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import rankinite as rk
from rankinite.models import RANKERS
from rankinite.rankers.ranker import NO_QUERIES
from tests.rankers.cases import SMALL, TEST, TRAIN, WHOLE, every_ranker

X, Y, QID = np.array(TRAIN.X), np.array(TRAIN.y), np.array(TRAIN.qid)


def checked(case, kind, excused):
    """Run scikit-learn's checks; return their names by status."""
    exact = {} if case.is_net else {**WHOLE, "min_docs_in_leaf": 1}
    model = kind(**case.new(**exact, rounds=2, random_state=0).get_params(deep=False))
    by_status = defaultdict(set)
    for result in check_estimator(
        model, expected_failed_checks=excused, on_fail=None, on_skip=None
    ):
        by_status[result["status"]].add(result["check_name"])
    return by_status


def with_one_query(kind):
    """Return the subclass that scikit-learn's checks can fit, as `Ranker` documents it."""

    @wraps(kind.fit)  # whose arguments tell scikit-learn which checks apply
    def fit(self, X, y=None, *, qid=0, **options):
        return kind.fit(self, X, y, qid=qid, **options)

    def score(self, X, y=None, *, qid=0):
        return kind.score(self, X, y, qid=qid)

    members = {"fit": fit, "score": score, "__doc__": kind.__doc__, "__module__": __name__}
    return type(kind.__name__, (kind,), members)


WITH_ONE_QUERY = {name: with_one_query(kind) for name, kind in RANKERS.items()}
globals().update(WITH_ONE_QUERY)  # where pickle looks for them


# Ours follow the protocol: see `rankinite.core.estimator`.
without_base_class = pytest.mark.filterwarnings("ignore:.*does not inherit from:UserWarning")


@every_ranker
@without_base_class
def test_check_estimator(case):
    declared = dict(case.kind.expected_failed_checks)
    by_status = checked(case, case.kind, declared)
    assert not by_status["failed"]
    assert len(by_status["passed"]) >= 15
    # What is excused is there to be run, and has a reason; weights only if fit takes them.
    unweighted = {name for name in declared if "sample_weight" not in name}
    assert unweighted <= by_status["xfail"] <= declared.keys()
    assert all(len(reason) > 20 for reason in declared.values())


@every_ranker
@without_base_class
def test_check_estimator_with_queries(case):
    """Only the reasons that have nothing to do with queries are left."""
    declared = case.kind.expected_failed_checks
    excused = {name: reason for name, reason in declared.items() if reason is not NO_QUERIES}
    by_status = checked(case, WITH_ONE_QUERY[case.kind.__name__], excused)
    assert not by_status["failed"]
    assert by_status["xfail"] <= excused.keys()
    assert len(by_status["passed"]) > 35


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
    """A ranker that is fitted to one query of all documents differs."""
    model = rk.LambdaMART(**SMALL | WHOLE)
    search = GridSearchCV(model, {"n_leaves": [4]}, scoring=rk.scorer(), cv=GroupKFold(3))
    search.fit(X, Y, qid=QID, groups=QID)
    one_query = rk.LambdaMART(**SMALL | WHOLE).fit(X, Y, qid=0)
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


PIPELINES = {"scaled": StandardScaler(), "normalised": rk.RankNormaliser()}
every_pipeline = pytest.mark.parametrize("step", PIPELINES.values(), ids=PIPELINES)


@every_pipeline
def test_a_pipeline_passes_queries_on(step):
    alone = rk.LambdaMART(**SMALL).fit(clone(step).fit_transform(X), Y, qid=QID)
    steps = clone(step).fit(X).transform(TEST.X)
    pipeline = Pipeline([("norm", clone(step)), ("rank", rk.LambdaMART(**SMALL))])
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(pipeline).fit(X, Y, qid=QID)
        np.testing.assert_array_equal(routed.predict(TEST.X), alone.predict(steps))
        np.testing.assert_array_equal(routed.predict(TEST.X, qid=TEST.qid), alone.predict(steps))
        expected = alone.score(steps, TEST.y, qid=TEST.qid)
        assert routed.score(TEST.X, TEST.y, qid=TEST.qid) == expected
    # Without routing, the name of the step says who gets the queries.
    named = clone(pipeline).fit(X, Y, rank__qid=QID)
    np.testing.assert_array_equal(named.predict(TEST.X), alone.predict(steps))
    with pytest.raises(rk.UsageError, match="LambdaMART: requires qid, the query of every doc"):
        pipeline.fit(X, Y)


@every_ranker
def test_score_is_the_measure_of_validation(case):
    model = case.fit()
    expected = rk.evaluate(model.predict(TEST), TEST, "NDCG@10").mean["NDCG@10"]
    shuffled = np.random.default_rng(5).permutation(TEST.n_docs)
    arrays = TEST.X[shuffled], TEST.y[shuffled]
    if case.kind in (rk.LambdaMART, rk.LambdaRank):  # the others have no measure of training
        model.set_params(measure="NDCG@10")
    assert model.score(TEST) == pytest.approx(expected)
    assert model.score(*arrays, qid=TEST.qid[shuffled]) == pytest.approx(expected)
    assert model.score(TEST.X, TEST.y, group=TEST.sizes) == pytest.approx(expected)
    # ERR depends on the top grade, of which a part of the documents may have none.
    model.set_params(valid_measure=["ERR", "NDCG"])
    few = TEST[np.flatnonzero(np.maximum.reduceat(TEST.y, TEST.offsets[:-1]) < 4)]
    assert few.y.max() < model.top_grade_ == TEST.top_grade
    expected = rk.evaluate(model.predict(few), few, "ERR").mean["ERR"]
    assert model.score(few.X, few.y, qid=few.qid) == pytest.approx(expected)


def test_score_needs_labels_and_queries():
    model = rk.LambdaMART(**SMALL).fit(TRAIN)
    for call, sentence in (
        (lambda: model.score(X, Y), "LambdaMART.score: requires qid, the query of every"),
        (lambda: model.score(X, qid=QID), "LambdaMART.score: requires y; give labels"),
        (lambda: model.score(TRAIN, sample_weight=Y), "documents have no weight in a measure"),
        (lambda: model.score(TRAIN, Y), "y was given besides a RankingData"),
        (lambda: rk.LambdaMART().score(TRAIN), "is not fitted yet"),
    ):
        with pytest.raises(rk.UsageError, match=sentence):
            call()


@pytest.mark.usefixtures("routed")
def test_a_search_without_scoring_takes_score():
    model = rk.LambdaMART("NDCG@3", **SMALL)
    search = GridSearchCV(model, {"n_leaves": [3, 4]}, cv=GroupKFold(3)).fit(
        X, Y, qid=QID, groups=QID
    )
    same = GridSearchCV(model, {"n_leaves": [3, 4]}, scoring=rk.scorer("NDCG@3"), cv=GroupKFold(3))
    same.fit(X, Y, qid=QID, groups=QID)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"]
    )


@pytest.mark.usefixtures("routed")
def test_groups_can_be_the_queries():
    """By scikit-learn's own renaming, for those who pass queries as groups only."""
    results = [
        cross_validate(
            model, X, Y, scoring=scoring, cv=GroupKFold(3), params=params
        )["test_score"]
        for model, scoring, params in (
            (
                rk.LambdaMART(**SMALL).set_fit_request(qid="groups"),
                rk.scorer().set_score_request(qid="groups"),
                {"groups": QID},
            ),
            (rk.LambdaMART(**SMALL), rk.scorer(), {"qid": QID, "groups": QID}),
        )
    ]  # fmt: skip
    np.testing.assert_array_equal(*results)


@pytest.mark.usefixtures("routed")
def test_cross_validation_without_queries_is_refused():
    with pytest.raises(ValueError, match="LambdaMART: requires qid, the query of every document"):
        cross_validate(
            rk.LambdaMART(**SMALL), X, Y, scoring=rk.scorer(), cv=GroupKFold(3),
            params={"groups": QID},
        )  # fmt: skip


def test_a_search_without_routing():
    """The ranker gets its queries by scikit-learn's old way, the scorer has them by index."""
    pandas = pytest.importorskip("pandas")
    features, labels = pandas.DataFrame(X).add_prefix("f"), pandas.Series(Y)
    model, grid, folds = rk.LambdaMART(**SMALL), {"n_leaves": [3, 4]}, GroupKFold(3)
    scoring = rk.scorer(qid=pandas.Series(QID))
    plain = GridSearchCV(model, grid, scoring=scoring, cv=folds)
    plain.fit(features, labels, qid=QID, groups=QID)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = GridSearchCV(model, grid, scoring=rk.scorer(), cv=folds)
        routed.fit(features, labels, qid=QID, groups=QID)
    for key in ("split0_test_score", "split1_test_score", "split2_test_score"):
        np.testing.assert_array_equal(plain.cv_results_[key], routed.cv_results_[key])


@pytest.mark.usefixtures("routed")
def test_halving_searches_over_trees():
    params = SMALL | WHOLE
    search = HalvingGridSearchCV(
        rk.LambdaMART(**params), {"n_leaves": [2, 3, 4, 5]}, scoring=rk.scorer("NDCG@10"),
        resource="n_trees", max_resources=8, min_resources=2, factor=2, cv=GroupKFold(3),
    )  # fmt: skip
    search.fit(X, Y, qid=QID, groups=QID)
    assert search.n_resources_ == [2, 4, 8]
    assert search.n_candidates_ == [4, 2, 1]
    assert search.best_estimator_.n_trees == 8
    best = rk.LambdaMART(**params | search.best_params_).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(search.predict(TEST.X), best.predict(TEST.X))


def test_names_of_features():
    pandas = pytest.importorskip("pandas")
    names = ["a", "b", "c", "d"]
    model = rk.LambdaMART(**SMALL)
    assert not hasattr(model, "feature_names_in_")
    model.fit(pandas.DataFrame(X, columns=names), Y, qid=QID)
    assert model.feature_names_in_.tolist() == names
    assert model.feature_names_in_.dtype == object
    assert model.n_features_in_ == 4
    model.save("model.rk")
    assert rk.load_model("model.rk").feature_names_in_.tolist() == names
    # Of an array there are no names, as in scikit-learn.
    assert not hasattr(model.fit(X, Y, qid=QID), "feature_names_in_")


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
