"""What holds for every ensemble: it is a ranker among rankers, and says what is wrong."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate

import rankinite as rk
from rankinite.models import ENSEMBLES
from tests.ensembles.cases import (
    CASES,
    every_case,
    every_case_of_rankers,
    every_ensemble,
    members,
    scores_of,
)
from tests.rankers.cases import SMALL, TEST, TRAIN, VALID, bytes_of, copied


def test_the_cases_are_of_all_ensembles():
    assert {case.kind.__name__ for case in CASES.values()} == set(ENSEMBLES)
    assert all(ENSEMBLES[name].__name__ == name for name in ENSEMBLES)


@every_case
def test_clones_are_unfitted_and_keep_their_members_fitted(case):
    model = case.fit()
    copy = clone(model)
    assert type(copy) is type(model)
    assert not copy.is_fitted
    assert copy.members is model.members
    assert all(member.is_fitted for member in copy.members or ())
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert bytes_of(copy.fit(VALID, **case.options(VALID))) == bytes_of(model)


@every_case
def test_fit_returns_the_ensemble_and_leaves_parameters_alone(case):
    model = case.new()
    before = dict(vars(model))
    assert model.fit(VALID, **case.options(VALID)) is model
    learned = vars(model).keys() - before.keys()
    assert all(name.endswith("_") for name in learned)
    assert {"feature_names_", "n_features_in_", "top_grade_", "member_names_", "scales_"} <= learned
    for name, value in before.items():
        assert getattr(model, name) is value
    assert model.feature_names_ == ("1", "2", "3", "4")
    assert (model.n_features_in_, model.top_grade_) == (4, 4.0)
    assert model.member_names_ == ("1", "2", "3")


@every_case
def test_a_fit_repeats_to_the_last_byte(case):
    assert bytes_of(case.fit()) == bytes_of(case.fit())


@every_case
def test_an_ensemble_survives_a_pickle(case):
    model = case.fit()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(case.predict(again), case.predict(model))


@every_case
def test_repr_names_the_class(case):
    assert repr(case.new()).startswith(f"{case.kind.__name__}(")


@every_case
def test_a_query_is_scored_alone_as_among_others(case):
    model = case.fit()
    together = case.predict(model)
    for q, query in enumerate(TEST):
        docs = slice(TEST.offsets[q], TEST.offsets[q + 1])
        np.testing.assert_array_equal(case.predict(model, query), together[docs])


@every_case_of_rankers
def test_rankers_and_their_scores_are_combined_alike(case):
    by_rankers = case.fit()
    by_scores = case.new(members=None).fit(VALID, member_scores=scores_of(VALID))
    scores = by_scores.predict(None, member_scores=scores_of(TEST))
    np.testing.assert_array_equal(scores, by_rankers.predict(TEST))
    rows = np.stack(list(scores_of(TEST).values()))
    np.testing.assert_array_equal(by_scores.predict(TEST, member_scores=rows), scores)
    for fitted in (by_scores, by_rankers):
        combined = fitted.combine(scores_of(TEST), TEST.qid)
        np.testing.assert_array_equal(combined, scores)
    by_rows = case.new(members=None).fit(
        VALID, member_scores=np.stack(list(scores_of(VALID).values()))
    )
    np.testing.assert_array_equal(by_rows.predict(None, member_scores=rows), scores)


@every_case_of_rankers
def test_scores_may_come_in_any_order(case):
    model = case.new(members=None).fit(VALID, member_scores=scores_of(VALID))
    turned = dict(reversed(scores_of(TEST).items()))
    np.testing.assert_array_equal(
        model.predict(None, member_scores=turned),
        model.predict(None, member_scores=scores_of(TEST)),
    )


@every_case
def test_arrays_and_sets_fit_alike(case):
    """Documents of one query may stand apart in arrays, and what belongs to them moves along."""
    order = np.argsort(np.arange(TRAIN.n_docs) % 8, kind="stable")
    options = {name: {n: s[order] for n, s in rows.items()}
               for name, rows in case.options(TRAIN).items()}  # fmt: skip
    apart = case.new().fit(TRAIN.X[order], TRAIN.y[order], qid=TRAIN.qid[order], **options)
    assert bytes_of(apart) == bytes_of(case.fit(TRAIN))


@every_case_of_rankers
def test_predict_takes_arrays_and_frames(case):
    pandas = pytest.importorskip("pandas")
    names = ["a", "b", "c", "d"]
    named = [clone(member).fit(copied(TRAIN, feature_names=names)) for member in members()]
    model = case.new(members=named).fit(copied(TRAIN, feature_names=names))
    assert model.feature_names_ == tuple(names)
    expected = model.predict(copied(TEST, feature_names=names))
    X = np.array(TEST.X)
    for features in (X, X.tolist(), pandas.DataFrame(X, columns=names)):
        np.testing.assert_array_equal(model.predict(features, TEST.qid), expected)
    by_array = case.new(members=named).fit(np.array(TRAIN.X), TRAIN.y, qid=TRAIN.qid)
    assert bytes_of(by_array) == bytes_of(model)
    with pytest.raises(rk.DataError, match=f"{model._name}: X has 4 features, but .* lacks 'a'"):
        model.predict(TEST)
    with pytest.raises(rk.DataError, match=f"{model._name}: X has 3 features"):
        model.predict(X[:, :3])


@every_ensemble
def test_members_that_need_queries_get_them(case):
    per_query = rk.MART("logistic", per_query=True, **SMALL).fit(TRAIN)
    model = case.new(members=[per_query, *members()[1:]]).fit(VALID)
    np.testing.assert_array_equal(model.predict(TEST.X, TEST.qid), model.predict(TEST))
    with pytest.raises(rk.UsageError, match="give predict a qid"):
        model.predict(TEST.X)


@every_ensemble
def test_queries_of_arrays(case):
    """By qid, by group, or all in one; members that need the queries get them, too."""
    per_query = rk.MART("logistic", per_query=True, **SMALL).fit(TRAIN)
    new = case.new(members=[per_query, *members()[1:]])
    expected = bytes_of(clone(new).fit(TRAIN))
    assert bytes_of(clone(new).fit(TRAIN.X, TRAIN.y, group=TRAIN.sizes)) == expected
    together = rk.RankingData(TRAIN.X, TRAIN.y, np.zeros(TRAIN.n_docs))
    in_one = clone(new).fit(TRAIN.X, TRAIN.y, qid=0)
    assert bytes_of(in_one) == bytes_of(clone(new).fit(together))
    with pytest.raises(rk.UsageError, match=f"{case.kind.__name__}: requires qid, the query of"):
        clone(new).fit(TRAIN.X, TRAIN.y)


@every_case_of_rankers
def test_score(case):
    model = case.fit()
    ranker = model if case.kind is not rk.Stacked else model.ranker_
    measure = str(getattr(ranker, "measure", "NDCG@10"))
    expected = rk.evaluate(model.predict(TEST), TEST, measure).mean[measure]
    assert model.score(TEST) == pytest.approx(expected)
    assert model.score(TEST.X, TEST.y, qid=TEST.qid) == pytest.approx(expected)


@every_ensemble
def test_ensembles_of_ensembles(case):
    inner = rk.Average(members()[:2]).fit(VALID)
    model = case.new(members={"1": inner, "2": members()[2], "3": members()[0]}).fit(VALID)
    expected = model.predict(TEST)
    model.save("model.rk")
    again = rk.load_model("model.rk")
    np.testing.assert_array_equal(again.predict(TEST), expected)
    assert isinstance(again.members["1"], rk.Average)


@every_ensemble
def test_an_ensemble_is_a_base(case):
    base = case.fit()
    model = rk.LambdaMART(**SMALL, base=base).fit(TRAIN, valid=VALID)
    np.testing.assert_array_equal(model.predict(TEST, n_trees=0), base.predict(TEST))
    model.save("model.rk")
    again = rk.load_model("model.rk")
    assert type(again.base) is case.kind
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))
    assert bytes_of(again) == bytes_of(model)


def test_an_ensemble_of_scores_is_no_base():
    base = CASES["average-scores"].fit()
    with pytest.raises(rk.UsageError, match="was fitted to scores, not to rankers"):
        rk.LambdaMART(**SMALL, base=base).fit(TRAIN)


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routed")
def test_searches_and_cross_validation():
    arrays = np.array(VALID.X), np.array(VALID.y)
    search = GridSearchCV(
        rk.Interpolation(members()),
        # Arrays do not say the top grade, of which ERR would depend.
        {"measure": ["NDCG@2", "MAP"]},
        scoring=rk.scorer("NDCG@10"),
        cv=GroupKFold(3),
    )
    search.fit(*arrays, qid=VALID.qid, groups=VALID.qid)
    best = rk.Interpolation(members(), **search.best_params_).fit(VALID)
    np.testing.assert_array_equal(search.predict(TEST.X), best.predict(TEST))
    results = cross_validate(
        rk.Average(members()), *arrays, scoring=rk.scorer("NDCG"), cv=GroupKFold(3),
        params={"qid": VALID.qid, "groups": VALID.qid},
    )  # fmt: skip
    for fold, (train, valid) in enumerate(GroupKFold(3).split(*arrays, VALID.qid)):
        model = rk.Average(members()).fit(arrays[0][train], arrays[1][train], qid=VALID.qid[train])
        data = rk.RankingData(arrays[0][valid], arrays[1][valid], VALID.qid[valid])
        value = rk.evaluate(model.predict(data), data, "NDCG").mean["NDCG"]
        assert results["test_score"][fold] == pytest.approx(value)


def test_parameters_of_the_ranker_on_top_are_reached_through_it():
    model = rk.Stacked(members(), ranker=rk.LambdaRank(hidden=0))
    assert model.get_params()["ranker__hidden"] == 0
    model.set_params(ranker__hidden=2)
    assert model.ranker.hidden == 2


@every_ensemble
def test_unfitted_ensembles_say_so(case):
    model = case.new()
    for call in (lambda: model.predict(TEST), lambda: model.save("model.rk")):
        with pytest.raises(rk.UsageError, match=f"{model._name}: is not fitted yet; call fit"):
            call()


def test_members_changed_after_the_fit():
    """What was fitted stays as it is until it is fitted again."""
    model = rk.Average(members()).fit(VALID)
    before = model.predict(TEST)
    model.set_params(members=members()[::-1])
    np.testing.assert_array_equal(model.predict(TEST), before)
    model.save("model.rk")
    np.testing.assert_array_equal(rk.load_model("model.rk").predict(TEST), before)
    turned = model.fit(VALID)
    assert turned.scales_.tolist() == rk.Average(members()).fit(VALID).scales_[::-1].tolist()


OTHER = copied(TRAIN, feature_names=["1", "2", "3", "x"])
TURNED = TRAIN.select_features(["2", "1", "3", "4"])


@pytest.mark.parametrize(
    ("refused", "error", "sentence"),
    [
        ([], rk.UsageError, "members is empty; give at least one member"),
        ({}, rk.UsageError, "members is empty"),
        ("a.rk", rk.UsageError, "members is a str; expected a list of fitted rankers"),
        (rk.MART(), rk.UsageError, "members is a MART; expected a list of fitted rankers"),
        ([rk.MART()], rk.UsageError, "the member '1', a MART, is not fitted yet; fit it first"),
        (["a.rk"], rk.UsageError, "the member '1' is a str; expected a fitted ranker (load_model"),
        (np.zeros((2, 48)), rk.UsageError, "members is a ndarray"),
        ([np.zeros(48)], rk.UsageError, "scores are combined with members=None, and given to fit"),
        ({1: "a", "1": "b"}, rk.UsageError, "two members are called '1'"),
        (None, rk.UsageError, "there is nothing to combine; give members, fitted rankers, or"),
    ],
)  # fmt: skip
@every_ensemble
def test_members_that_are_refused(case, refused, error, sentence):
    with pytest.raises(error) as caught:
        case.new(members=refused).fit(VALID)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(case.kind.__name__)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (OTHER, "'1' and 'b' were fitted to different features: only the first has '4', only the "
         "second has 'x'"),
        (TURNED, "were fitted to different features: they are in another order"),
    ],
)  # fmt: skip
def test_members_of_different_features(data, sentence):
    other = rk.MART(**SMALL | {"n_trees": 1}).fit(data)
    with pytest.raises(rk.DataError) as caught:
        rk.Average({"1": members()[0], "b": other}).fit(VALID)
    assert sentence in str(caught.value)


def test_data_of_other_features():
    with pytest.raises(rk.DataError, match=r"X has 4 features, but .* it lacks '4' and has"):
        rk.Average(members()).fit(OTHER)


ONE = np.zeros(48)
SCORES = [
    ({"1": ONE, "2": ONE[:-1]}, rk.DataError, "'2' has 47 scores for 48 documents; expected one"),
    ([ONE[:-1], ONE], rk.DataError, "'1' has 47 scores for 48 documents"),
    (ONE, rk.DataError, "member_scores has the shape (48,); expected one row per member"),
    (ONE[:, None], rk.DataError, "the member '1' has 1 scores for 48 documents"),
    (np.zeros((2, 2, 2)), rk.DataError, "member_scores has the shape (2, 2, 2)"),
    ([ONE.reshape(2, 24)], rk.DataError, "the member '1' have the shape (2, 24); expected one"),
    ({"a": np.where(np.arange(48) == 7, np.nan, 0.0)}, rk.DataError, "'a' has nan for document 7"),
    ({"a": ONE - np.inf}, rk.DataError, "'a' has -inf for document 0; expected finite scores"),
    ({"a": ["high"] * 48}, rk.DataError, "scores of the member 'a' cannot be made numbers"),
    ("scores.txt", rk.UsageError, "member_scores is a str; expected one row of scores per member"),
    ({}, rk.UsageError, "member_scores is empty; give at least one member"),
]


@pytest.mark.parametrize(("scores", "error", "sentence"), SCORES)
@every_ensemble
def test_scores_that_are_refused(case, scores, error, sentence):
    with pytest.raises(error) as caught:
        case.new(members=None).fit(VALID, member_scores=scores)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        (None, "was fitted to scores, not to rankers; give member_scores"),
        ({"1": ONE, "2": ONE}, "member_scores lacks '3'; expected those of '1', '2', '3'"),
        ({"1": ONE, "2": ONE, "x": ONE}, "member_scores lacks '3' and has 'x' besides"),
        (np.zeros((2, 48)), "member_scores lacks '3'"),
        ({"1": ONE, "2": ONE, "3": ONE[:5]}, "'1' has 48 scores, and '3' has 5; expected scores"),
        (np.full((3, 48), np.nan), "'1' has nan for document 0"),
    ],
)
def test_scores_to_predict_from_that_are_refused(scores, sentence):
    model = CASES["average-scores"].fit()
    with pytest.raises(ValueError) as caught:
        model.predict(None, member_scores=scores)
    assert sentence in str(caught.value)


def test_scores_of_other_documents():
    model = CASES["average-scores"].fit()
    for X in (TEST[:2], TEST.X[:16]):
        with pytest.raises(rk.DataError, match="'1' has 48 scores for 16 documents"):
            model.predict(X, member_scores=scores_of(TEST))


def test_scores_nobody_asked_for():
    model = rk.Average(members())
    for call in (model.fit, model.fit(VALID).predict):
        with pytest.raises(rk.UsageError, match="the members are rankers, which predict themsel"):
            call(VALID, member_scores=scores_of(VALID))


@every_ensemble
def test_other_mistakes(case):
    with pytest.raises(rk.UsageError, match="requires y to be passed"):
        case.new().fit(VALID.X)
    with pytest.raises(
        rk.UsageError, match="there is no parameter 'member'; did you mean 'members'"
    ):
        case.kind(member=[])
    if "measure" in case.new().get_params():
        with pytest.raises(rk.UsageError, match="there is no measure 'NDGC'"):
            case.new(measure="NDGC").fit(VALID)
        with pytest.raises(rk.UsageError, match="are 2 measures; give one"):
            case.new(measure="NDCG, ERR").fit(VALID)
        nothing = copied(VALID, y=np.zeros(VALID.n_docs))
        with pytest.raises(rk.DataError, match="no query of the data counts for NDCG@10: none has"):
            case.new().fit(nothing)


@every_case
def test_one_document_and_one_member(case):
    data = VALID[0]
    model = case.new(members=None, **{"tree": None} if case.kind is rk.BestMix else {})
    model.fit(data, member_scores={"only": np.arange(8.0)})
    scores = model.predict(None, member_scores={"only": [3.0]})
    assert scores.shape == (1,)
    assert np.isfinite(scores).all()
    assert model.predict(None, member_scores={"only": []}).shape == (0,)
