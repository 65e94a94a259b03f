"""What fit and predict refuse: the right error, and a sentence with what, where, what to do."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

import rankinite as rk
from tests.rankers.cases import (
    CASES,
    CLASSES,
    SMALL,
    TEST,
    TRAIN,
    VALID,
    bytes_of,
    copied,
    every_case,
    every_case_of_trees,
    every_ranker,
)

X, Y, QID = np.array(TRAIN.X), np.array(TRAIN.y), np.array(TRAIN.qid)
NAMES = ["bm25", "pagerank", "length", "age"]


def changed(array, place, value):
    new = np.array(array, dtype=np.result_type(array, type(value)))
    new[place] = value
    return new


def refused(error, call):
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, rk.RankiniteError)
    assert "\n" not in message
    assert len(message) < 500
    return message


OF_ALL = [
    ({"learning_rate": -0.1}, "learning_rate must be a finite number, above 0; got -0.1"),
    ({"learning_rate": 0}, "learning_rate must be a finite number, above 0; got 0"),
    ({"learning_rate": float("nan")}, "learning_rate must be a finite number, above 0; got nan"),
    ({"learning_rate": "fast"}, "learning_rate must be a finite number, above 0; got 'fast'"),
    ({"patience": 0}, "patience must be a whole number of at least 1, or one of None; got 0"),
    ({"min_improvement": -1}, "min_improvement must be a finite number, at least 0; got -1"),
    ({"random_state": -1}, "random_state must be a whole number of at least 0; got -1"),
    ({"random_state": "seed"}, "random_state must be a whole number of at least 0; got 'seed'"),
]
OF_TREES = [
    ({"n_leaves": 1}, "n_leaves must be a whole number from 2 to 65536; got 1"),
    ({"n_leaves": 31.0}, "n_leaves must be a whole number from 2 to 65536; got 31.0"),
    ({"n_trees": 0}, "n_trees must be a whole number of at least 1; got 0"),
    ({"n_trees": True}, "n_trees must be a whole number of at least 1; got True"),
    ({"docs_per_tree": 1.1}, "docs_per_tree must be a finite number, above 0 and at most 1"),
    ({"queries_per_tree": 0}, "queries_per_tree must be a finite number, above 0 and at most 1"),
    ({"features_per_tree": -1}, "features_per_tree must be a finite number, above 0 and at most"),
    ({"criterion": "gini"}, "criterion must be one of 'mse', 'newton', or one of None; got"),
    ({"step": "leap"}, "step must be one of 'newton', 'gradient'"),
    ({"max_depth": 0}, "max_depth must be a whole number of at least 1, or one of None; got 0"),
    ({"min_docs_in_leaf": 0}, "min_docs_in_leaf must be a whole number of at least 1; got 0"),
    ({"min_gain": -1.0}, "min_gain must be a finite number, at least 0; got -1.0"),
    ({"most_bins": 256}, "most_bins must be a whole number from 2 to 255, or one of None; got 256"),
]
UNITS = "hidden must be a whole number from 0 (a linear net) to 65536, or several from 1, one for"
OF_NETS = [
    *(({"hidden": value}, UNITS) for value in (-1, 2.0, "5", True, None, (5, 0), [3, "x"], {5})),
    ({"hidden": 1 << 17}, UNITS),
    ({"optimiser": "newton"}, "optimiser must be one of 'adam', 'sgd'; got 'newton'"),
    ({"n_epochs": 0}, "n_epochs must be a whole number of at least 1, or one of None; got 0"),
    ({"queries_per_step": 0}, "queries_per_step must be a whole number of at least 1, or one of"),
    ({"queries_per_step": "some"}, "or one of 'all'; got 'some'"),
    ({"most_restarts": -1}, "most_restarts must be a whole number of at least 0, or one of None"),
    ({"weight_decay": -0.1}, "weight_decay must be a finite number, at least 0; got -0.1"),
    ({"truncation": 0}, "truncation must be a whole number of at least 1, or one of None"),
    ({"normalise": True}, "normalise must be one of 'none', 'deviation', 'distance'"),
]
OUT_OF_RANGE = [
    pytest.param(case, params, sentence, id=f"{name}-{params}")
    for name, case in CLASSES.items()
    for params, sentence in [*OF_ALL, *(OF_NETS if case.is_net else OF_TREES)]
]


@pytest.mark.parametrize(("case", "params", "sentence"), OUT_OF_RANGE)
def test_parameters_out_of_range(case, params, sentence):
    model = case.new(**params)
    message = refused(rk.UsageError, lambda: model.fit(TRAIN))
    assert message.startswith(f"{case.kind.__name__}: ")
    assert sentence in message
    assert not model.is_fitted


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"measure": "NDGC"}, "there is no measure 'NDGC'; known are NDCG, "),
        ({"measure": "NDCG@ten"}, "'ten' is not a depth; expected a whole number"),
        ({"measure": 3}, "3 is not a measure; give one, such as 'NDCG@10'"),
        ({"measure": "NDCG@3 > NDCG@3"}, "the tier NDCG@3 is there twice; give each tier once"),
        ({"measure": "NDCG@3 > CNDCG[clicks]"}, "the data set has no label source 'clicks'"),
        ({"measure": "NDCG[clicks]"}, "the data set has no label source 'clicks'"),
        ({"valid_measure": "NDGC"}, "there is no measure 'NDGC'"),
        ({"truncation": 0}, "truncation must be a whole number of at least 1, or one of None"),
        ({"normalise": True}, "normalise must be one of 'none', 'deviation', 'distance'"),
    ],
)
def test_parameters_of_lambda_rankers(params, sentence):
    for kind in (rk.LambdaMART, rk.LambdaRank):
        assert sentence in refused(rk.UsageError, lambda kind=kind: kind(**params).fit(TRAIN))


def test_parameters_of_mart():
    message = refused(rk.UsageError, lambda: rk.MART("absolute").fit(TRAIN))
    assert message == ("MART: loss must be one of 'squared', 'centred', 'logistic'; got 'absolute'")
    message = refused(rk.UsageError, lambda: rk.MART(per_query=True).fit(TRAIN))
    assert message == (
        "MART: per_query is for chances, and loss='centred' predicts grades; leave it, or set "
        "loss='logistic'"
    )


def frame(**columns):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(dict(zip(NAMES, X.T, strict=True)) | columns)


TRAINING = {
    "NaN label": (rk.DataError, X, changed(Y, 5, np.nan), QID, "the label of document 5 is nan"),
    "infinite label": (rk.DataError, X, changed(Y, 5, np.inf), QID, "of document 5 is inf"),
    "negative label": (
        rk.DataError, X, changed(Y, 7, -1.0), QID,
        "the label of document 7 is -1; expected at least 0",
    ),
    "text labels": (rk.DataError, X, ["good"] * 96, QID, "y: cannot be made numbers"),
    "complex labels": (rk.DataError, X, Y + 1j, QID, "y has complex numbers"),
    "no labels": (rk.UsageError, X, None, QID, "the target y is None; give labels, or a Ranking"),
    "labels too few": (rk.DataError, X, Y[:-1], QID, "y: 95 values for 96 documents"),
    "labels by column": (rk.DataError, X, np.stack([Y, Y], 1), QID, "array of shape (96, 2) for"),
    "queries too few": (rk.DataError, X, Y, QID[:-1], "qid: 95 values for 96 documents"),
    "NaN query": (rk.DataError, X, Y, changed(QID, 3, np.nan), "qid: document 3 has nan"),
    "one dimension": (
        rk.DataError, X[:, 0], Y, QID,
        "Expected 2D array, got 1D array instead. Reshape your data: one row per document",
    ),
    "infinite feature": (
        rk.DataError, changed(X, (4, 2), np.inf), Y, QID,
        "feature '3' of document 4 is infinite",
    ),
    "feature too large": (
        rk.DataError, changed(X, (4, 2), 1e39).astype(np.float64), Y, QID, "too large for a 32-bit",
    ),
    "complex features": (rk.DataError, X + 1j, Y, QID, "Complex data not supported; give real"),
    "sparse features": (
        rk.DataError, scipy.sparse.csr_array(changed(X, (4, 2), np.inf)), Y, QID,
        "feature '3' of document 4 is infinite",
    ),
    "sparse complex features": (
        rk.DataError, scipy.sparse.csr_array(X + 1j), Y, QID, "Complex data not supported",
    ),
    "text features": (rk.DataError, X.astype(str).astype(object) + "x", Y, QID, "numbers"),
    "ragged features": (rk.DataError, [[1.0], [1.0, 2.0]], [0, 1], [1, 1], "X cannot be made a"),
    "no documents": (rk.DataError, X[:0], Y[:0], QID[:0], "there are no documents"),
    "no features": (rk.DataError, X[:, :0], Y, QID, "0 feature(s) (shape=(96, 0)) while a minimum"),
    "set and labels": (rk.UsageError, TRAIN, Y, None, "y was given besides a RankingData"),
    "set and queries": (rk.UsageError, TRAIN, None, QID, "qid was given besides a RankingData"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("error", "features", "labels", "qid", "sentence"), TRAINING.values(), ids=TRAINING
)
@every_ranker
def test_training_data_that_are_refused(case, error, features, labels, qid, sentence):
    model = case.new()
    assert sentence in refused(error, lambda: model.fit(features, labels, qid=qid))
    assert not model.is_fitted


@every_ranker
def test_queries_by_id_by_size_or_all_in_one(case):
    by_size = case.new().fit(X, Y, group=TRAIN.sizes)
    assert bytes_of(by_size) == bytes_of(case.new().fit(X, Y, qid=QID))
    in_one = case.new().fit(X, Y, qid=0)
    assert bytes_of(in_one) == bytes_of(case.new().fit(X, Y, qid=np.zeros(96)))
    name = case.kind.__name__
    for options, sentence in (
        ({}, "requires qid, the query of every document; give qid, or group, the sizes of consec"),
        ({"qid": QID, "group": TRAIN.sizes}, "qid and group were both given; give one of the two"),
        ({"qid": "query"}, "qid is the text 'query'; give the column itself"),
        ({"group": TRAIN.sizes[1:]}, "group: they add up to 88, but there are 96 documents"),
    ):
        message = refused(ValueError, lambda options=options: case.new().fit(X, Y, **options))
        assert message.startswith(f"{name}: {sentence}")
    message = refused(rk.UsageError, lambda: case.new().fit(TRAIN, group=TRAIN.sizes))
    assert "group was given besides a RankingData" in message
    valid = (VALID.X, VALID.y, None)
    message = refused(rk.UsageError, lambda: case.new().fit(TRAIN, valid=valid))
    assert f"{name}: the validation set 'valid': {name}: requires qid" in message


@every_ranker
def test_texts_get_advice(case):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    words = [("red", "green")[i % 2] for i in range(96)]
    days = np.datetime64("2020-01-01") + np.arange(96)
    frames = [
        frame(age=pandas.Series(words, dtype=object)),
        frame(age=pandas.Series(words, dtype="string")),
        frame(age=days),
        polars.DataFrame(frame()).with_columns(polars.Series("age", words)),
        polars.DataFrame(frame()).with_columns(polars.Series("age", words)).to_arrow(),
    ]
    fitted = case.new().fit(frame(), Y, qid=QID)
    for table in frames:
        for call in (
            lambda table=table: case.new().fit(table, Y, qid=QID),
            lambda table=table: fitted.predict(table),
        ):
            message = refused(rk.DataError, call)
            assert "these columns are not numbers: 'age'; if they are categories, name" in message
            assert "categorical_features" in message


@every_case
def test_labels_above_the_top_grade(case):
    if case.kind in (rk.LambdaMART, rk.LambdaRank):
        model = case.new(measure="ERR(top_grade=2)", base=None)
        message = refused(rk.DataError, lambda: model.fit(TRAIN))
        doc = int(np.argmax(Y > 2))
        assert f"ERR(top_grade=2): document {doc} has the label {Y[doc]:g}, above the" in message
    with pytest.raises(rk.DataError, match="top_grade: 2 is below the label 4"):
        copied(TRAIN, top_grade=2)


def test_grades_that_have_no_power_of_two():
    data = copied(TRAIN, y=Y * 1000, top_grade=5000)
    message = refused(rk.DataError, lambda: rk.LambdaMART(**SMALL).fit(data))
    assert "NDCG: document" in message


def test_decimal_labels_are_no_classes():
    data = copied(TRAIN, y=changed(Y, 3, 1.5))
    message = refused(rk.DataError, lambda: rk.McRank(**SMALL).fit(data))
    assert "document 3 has the label 1.5, and classes are whole grades; round the labels" in message
    assert "such as MART" in message
    rk.MART(**SMALL).fit(data)


@pytest.mark.parametrize(
    ("valid", "error", "sentence"),
    [
        ((X[:0], Y[:0], QID[:0]), rk.DataError, "the validation set 'valid': X: there are no doc"),
        ((X, Y), rk.UsageError, "the validation set 'valid': it has 2 parts; expected a Ranking"),
        (X, rk.UsageError, "valid is a ndarray; expected a RankingData, (X, y, qid), or several"),
        ((X[:, :3], Y, QID), rk.DataError, "'valid': LambdaMART: X has 3 features, but LambdaMART"),
        ({"a": VALID, "b": (X, Y[:3], QID)}, rk.DataError, "the validation set 'b': y: 3 values"),
        (copied(VALID, feature_names=NAMES), rk.DataError, "lacks '1', '2', '3', '4' and has 'bm2"),
        ((X, np.zeros(96), QID), rk.DataError, "no query of the validation set 'valid' counts for"),
    ],
)
def test_validation_sets_that_are_refused(valid, error, sentence):
    model = rk.LambdaMART(**SMALL)
    message = refused(error, lambda: model.fit(TRAIN, valid=valid))
    assert message.startswith("LambdaMART: ")
    assert sentence in message
    assert not model.is_fitted


def test_a_validation_set_without_queries():
    empty = TRAIN.replace(
        rows=np.zeros(0, np.int64), y=np.zeros(0), offsets=np.zeros(1, np.int64), qids=QID[:0]
    )
    message = refused(rk.DataError, lambda: rk.LambdaMART(**SMALL).fit(TRAIN, valid=empty))
    assert message == (
        "LambdaMART: the validation set 'valid': it has no queries; give some, or leave valid out"
    )


@every_ranker
@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["bm25", "pagerank", "length"], "is expecting 4 features as input; it lacks 'age'"),
        (["bm25", "PageRank", "length", "age"], "it lacks 'pagerank' and has 'PageRank' besides"),
    ],
)
def test_features_that_are_not_those_of_fit(case, names, sentence):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    model = case.fit(copied(TRAIN, feature_names=NAMES))
    model.save("model.rk")
    values = np.ones((3, len(names)), np.float32)
    for documents in (
        rk.RankingData(values, [0, 1, 2], [1, 1, 1], feature_names=names),
        pandas.DataFrame(values, columns=names),
        polars.DataFrame(values, schema=names),
        polars.DataFrame(values, schema=names).to_arrow(),
    ):
        for ranker in (model, rk.load_model("model.rk")):
            assert sentence in refused(
                rk.DataError, lambda ranker=ranker, documents=documents: ranker.predict(documents)
            )
            if not case.is_net:
                refused(
                    rk.DataError, lambda r=ranker, documents=documents: r.staged_predict(documents)
                )


def test_columns_are_only_numbered_where_nobody_named_them():
    pandas = pytest.importorskip("pandas")
    model = rk.LambdaMART(**SMALL).fit(X, Y, qid=QID)
    expected = model.predict(TEST.X)
    for columns in (range(4), NAMES, ["1", "2", "3", "4"]):
        frame = pandas.DataFrame(TEST.X, columns=columns)
        np.testing.assert_array_equal(model.predict(frame), expected)
    turned = pandas.DataFrame(TEST.X[:, [1, 0, 2, 3]], columns=["2", "1", "3", "4"])
    np.testing.assert_array_equal(model.predict(turned), expected)
    # A number is a place: one more is another data set.
    wider = rk.RankingData(np.ones((2, 5)), [0, 1], [1, 1])
    assert "it has '5' besides" in refused(rk.DataError, lambda: model.predict(wider))


@pytest.mark.parametrize(
    ("documents", "error", "sentence"),
    [
        (X[:, :3], rk.DataError, "X has 3 features, but LambdaMART is expecting 4 features as inp"),
        (X[0], rk.DataError, "Expected 2D array, got 1D array instead. Reshape your data"),
        (changed(X, (4, 2), np.inf), rk.DataError, "infinity (or a number too large for 32 bits) "
         "at document 4, column 2; give finite"),
        (changed(X.astype(float), (4, 2), 1e39), rk.DataError, "at document 4, column 2"),
        (X + 1j, rk.DataError, "Complex data not supported"),
        (scipy.sparse.csr_array(X[:, :3]), rk.DataError, "X has 3 features, but LambdaMART is exp"),
        (scipy.sparse.csr_array(changed(X, (4, 2), np.inf)), rk.DataError, "of document 4 is inf"),
        (np.full((2, 4), "x"), rk.DataError, "X cannot be made a matrix of numbers"),
        ([[1, 2], [3]], rk.DataError, "X cannot be made a matrix of numbers"),
        ("model.rk", rk.DataError, "Expected 2D array, got 0D array instead"),
    ],
)  # fmt: skip
def test_documents_that_are_refused(documents, error, sentence):
    model = rk.LambdaMART(**SMALL).fit(TRAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sentence in refused(error, lambda: model.predict(documents))


@every_case
def test_an_unfitted_ranker(case):
    model = case.new()
    sentence = f"{case.kind.__name__}: is not fitted yet; call fit, or read a fitted one with load"
    staged = [] if case.is_net else [lambda: model.staged_predict(TEST)]
    for call in (
        lambda: model.predict(TEST),
        *staged,
        lambda: model.save("model.rk"),
        lambda: model.importances(),
        lambda: model.feature_importances_,
    ):
        assert sentence in refused(rk.UsageError, call)
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(model, "feature_importances_")


@every_ranker
def test_a_fit_that_fails_leaves_the_old_model(case):
    model = case.fit()
    before = case.predict(model)
    refused(rk.DataError, lambda: model.fit(X, changed(Y, 0, np.nan), qid=QID))
    np.testing.assert_array_equal(case.predict(model), before)


@pytest.mark.parametrize("n_trees", [-1, 7, 2.0, "all"])
def test_numbers_of_trees_that_are_refused(n_trees):
    model = CASES["NDCG"].fit()
    message = refused(rk.UsageError, lambda: model.predict(TEST, n_trees=n_trees))
    assert message == f"LambdaMART: n_trees must be a whole number from 0 to 6; got {n_trees!r}"


def test_other_options_that_are_refused():
    model = CASES["NDCG"].fit()
    assert "kind must be one of 'gain', 'count'" in refused(
        rk.UsageError, lambda: model.importances("cover")
    )
    assert "every must be a whole number of at least 1" in refused(
        rk.UsageError, lambda: model.staged_predict(TEST, every=0)
    )
    assert "the callback 3 cannot be called; give functions" in refused(
        rk.UsageError, lambda: CASES["NDCG"].fit(callbacks=[3])
    )


def test_per_query_needs_the_queries():
    model = CASES["per-query"].fit()
    message = refused(rk.UsageError, lambda: model.predict(TEST.X))
    assert "give predict a qid, or a RankingData" in message
    message = refused(rk.UsageError, lambda: model.predict(TEST.X, TEST.qid[:5]))
    assert message == "MART: qid has 5 values for 48 documents"


@every_case_of_trees
def test_scores_that_diverge_stay_finite_with_a_warning(case, caplog):
    model = case.fit(valid=VALID, changes={"learning_rate": 1e300, "patience": None})
    assert np.isfinite(case.predict(model)).all()
    (warning,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warning.startswith("training: scores diverge in round 1; a smaller learning_rate")


@pytest.mark.parametrize("label", [1e150, 1e200, 1e300])
def test_labels_whose_gradients_have_no_squares_are_refused(label):
    X, qid = np.arange(8.0)[:, None], np.repeat([1, 2], 4)
    data = rk.RankingData(X, np.where(X[:, 0] % 2 > 0, label, 0.0), qid)
    with pytest.raises(rk.UsageError, match="training: the gradients are too large for trees"):
        rk.MART(n_trees=1, min_docs_in_leaf=1).fit(data)


def test_weights_whose_gradients_have_no_squares_are_refused():
    data = rk.RankingData(X[:16], Y[:16], QID[:16], query_weight=[1.0, 1e200])
    with pytest.raises(rk.UsageError, match="smaller labels or weights"):
        rk.MART(n_trees=1, min_docs_in_leaf=1).fit(data)


@pytest.mark.parametrize("number", [np.float16(0.5), np.float32(0.5), Fraction(1, 2)])
def test_numbers_of_other_kinds_train_the_same_model(number):
    settings = {"n_trees": 2, "min_docs_in_leaf": 1, "n_leaves": 4}
    models = [rk.MART(l2_regularization=l2, **settings).fit(TRAIN) for l2 in (0.5, number)]
    assert np.array_equal(models[0].predict(TRAIN), models[1].predict(TRAIN))
