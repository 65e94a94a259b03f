"""Frames of all kinds: columns are matched by name, and nulls are missing values."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import rankinite as rk
from tests.rankers.cases import SMALL, TEST, TRAIN, VALID

X, Y, QID = np.array(TRAIN.X), np.array(TRAIN.y), np.array(TRAIN.qid)
NAMES = ["bm25", "pagerank", "length", "age"]
KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy polars": lambda frame: pl.from_pandas(frame).lazy(),
    "Arrow": pa.Table.from_pandas,
    "Arrow dataset": lambda frame: pyarrow.dataset.dataset(pa.Table.from_pandas(frame)),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
IGNORED = "features that it was not fitted to are ignored: 'doc', 'clicks'"


def frame_of(features=X) -> pd.DataFrame:
    return pd.DataFrame(features, columns=NAMES)


def turned(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in another order, with a text and a number besides."""
    more = frame.assign(doc=[f"d{i}" for i in range(len(frame))], clicks=1)
    return more[["age", "doc", "length", "clicks", "bm25", "pagerank"]]


def notes(caplog) -> list[str]:
    return [record.message for record in caplog.records if "ignored" in record.message]


def named(data: rk.RankingData, names=NAMES) -> rk.RankingData:
    return data.replace(feature_names=tuple(names))


@every_kind
def test_frames_fit_like_arrays(kind):
    model = rk.LambdaMART(**SMALL).fit(kind(frame_of()), Y, qid=QID)
    assert model.feature_names_ == tuple(NAMES)
    expected = rk.LambdaMART(**SMALL).fit(X, Y, qid=QID).predict(TEST.X)
    np.testing.assert_array_equal(model.predict(kind(frame_of(TEST.X))), expected)


@every_kind
@pytest.mark.parametrize("ranker", [rk.LambdaMART(**SMALL), rk.LambdaRank(n_epochs=2)])
def test_columns_are_matched_by_name(kind, ranker, caplog):
    model = ranker.fit(named(TRAIN))
    expected = model.predict(named(TEST))
    with caplog.at_level(logging.INFO, "rankinite"):
        scores = model.predict(kind(turned(frame_of(TEST.X))))
    np.testing.assert_array_equal(scores, expected)
    assert notes(caplog) == [f"{type(ranker).__name__}: {IGNORED}"]
    lacking = kind(turned(frame_of(TEST.X)).drop(columns="pagerank"))
    with pytest.raises(rk.DataError, match="is expecting 4 features as input; it lacks 'pagerank'"):
        model.predict(lacking)


def test_features_of_data_sets_are_matched_by_name():
    model = rk.LambdaMART(**SMALL).fit(named(TRAIN), valid=named(VALID))
    order = ["age", "bm25", "length", "pagerank"]
    other = named(VALID).select_features(order)
    again = rk.LambdaMART(**SMALL).fit(named(TRAIN), valid=other)
    assert again.history_ == model.history_
    test = named(TEST)
    np.testing.assert_array_equal(model.predict(test.select_features(order)), model.predict(test))
    for staged, expected in zip(
        model.staged_predict(test.select_features(order)), model.staged_predict(test), strict=True
    ):
        np.testing.assert_array_equal(staged, expected)


def test_a_base_and_an_ensemble_get_matched_columns_with_one_note(caplog):
    base = rk.LambdaMART(**SMALL).fit(named(TRAIN))
    above = rk.LambdaMART(**SMALL, base=base).fit(named(TRAIN))
    both = rk.Average([base, above]).fit(named(VALID))
    for model in (above, both):
        caplog.clear()
        with caplog.at_level(logging.INFO, "rankinite"):
            scores = model.predict(turned(frame_of(TEST.X)))
        np.testing.assert_array_equal(scores, model.predict(named(TEST)))
        assert notes(caplog) == [f"{type(model).__name__}: {IGNORED}"]
    order = ["age", "bm25", "length", "pagerank"]
    again = rk.Average([base, above]).fit(named(VALID).select_features(order))
    np.testing.assert_array_equal(again.means_, both.means_)


def test_parquet_at_the_shell(call, caplog):
    rk.LambdaMART(**SMALL).fit(named(TRAIN)).save("m.rk")
    frame = turned(frame_of(TEST.X)).assign(qid=TEST.qid)
    pq.write_table(pa.Table.from_pandas(frame), "test.parquet")
    call("predict", "m.rk", "test.parquet", "--out", "scores.txt")
    assert notes(caplog) == ["test.parquet: the columns 'doc', 'clicks' are ignored"]
    np.testing.assert_array_equal(
        np.loadtxt("scores.txt"), rk.load_model("m.rk").predict(named(TEST))
    )
    pq.write_table(pa.Table.from_pandas(frame.drop(columns="age")), "test.parquet")
    printed = " ".join(call("predict", "m.rk", "test.parquet", code=1).split())
    assert "there is no feature column 'age'" in printed


@pytest.mark.parametrize("kind", ["pandas", "polars", "Arrow"])
def test_nulls_are_missing_values(kind):
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None, 3, 4], "Int64"),
            "b": pd.array([True, None, False, True], "boolean"),
            "c": pd.array([0.5, 0.25, None, 2], "Float64"),
        }
    )
    plain = [[1, 1, 0.5], [np.nan, np.nan, 0.25], [3, 0, np.nan], [4, 1, 2]]
    y, qid = pd.Series([1, 0, 2, 1], dtype="Int64"), pd.Series([7, 7, 2**60 + 1, 2**60 + 1])
    small = {"n_trees": 2, "n_leaves": 3, "min_docs_in_leaf": 1}
    model = rk.LambdaMART(**small).fit(KINDS[kind](frame), y, qid=qid.astype("Int64"))
    expected = rk.LambdaMART(**small).fit(plain, [1, 0, 2, 1], qid=qid.to_numpy())
    np.testing.assert_array_equal(model.predict(KINDS[kind](frame)), expected.predict(plain))


def test_nulls_of_labels_and_queries():
    y, qid = pd.Series([1, None, 2], dtype="Int64"), pd.Series([1, 1, 2], dtype="Int64")
    data = rk.RankingData(np.ones((3, 1)), y, qid, labels={"clicks": [0, 1, 0]})
    np.testing.assert_array_equal(data.y, [1, np.nan, 2])
    assert data.qids.tolist() == [1, 2]
    with pytest.raises(rk.DataError, match="qid: document 1 has nan; expected one per document"):
        rk.RankingData(np.ones((3, 1)), [0, 0, 1], pd.Series([1, None, 2], dtype="Int64"))


def test_mapped_files_are_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    data = rk.RankingData(mapped, Y, QID)
    assert np.shares_memory(data.matrix, mapped)
    model = rk.LambdaMART(**SMALL).fit(data)
    np.testing.assert_array_equal(model.predict(mapped), model.predict(X))


@every_kind
def test_a_data_set_of_a_frame_has_its_names(kind):
    data = rk.RankingData(kind(frame_of()), Y, QID)
    assert data.equals(rk.RankingData(X, Y, QID, feature_names=NAMES))
    renamed = rk.RankingData(kind(frame_of()), Y, QID, feature_names=list("abcd"))
    assert renamed.feature_names == tuple("abcd")
    numbered = rk.RankingData(pd.DataFrame(X), Y, QID)
    assert numbered.feature_names == ("1", "2", "3", "4")


def test_a_base_has_the_features_of_the_ranker_above_it():
    base = rk.LambdaMART(**SMALL).fit(named(TRAIN).select_features(NAMES[:3]))
    with pytest.raises(rk.DataError, match="it has 'age' besides"):
        rk.LambdaMART(**SMALL, base=base).fit(named(TRAIN))
