"""Data sets without any label: they can be kept, loaded and scored, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankinite as rk
from rankinite.data.describe import describe
from rankinite.data.ranking_data import RankingData

NO_LABELS = "the data set has no labels, and can only be scored; give y, name the label column"
X = np.array([[0.5, 2.0], [0.25, 0.0], [0.125, 1.0]], np.float32)
QID = [7, 7, 9]
TEXT = "qid:7 1:0.5 2:2\nqid:7 1:0.25\n  qid:9\t1:0.125 2:1 # a comment\n"


def unlabelled(**more) -> RankingData:
    return RankingData(X=X, qid=QID, **more)


def labelled() -> RankingData:
    rng = np.random.default_rng(5)
    features = rng.normal(size=(60, 2))
    return RankingData(features, (features[:, 0] > 0).astype(int), np.repeat(np.arange(6), 10))


def test_a_set_without_y():
    data = unlabelled()
    assert not data.is_labelled
    assert labelled().is_labelled
    assert np.isnan(data.y).all()
    assert repr(data) == "<RankingData: 2 queries, 3 documents, 2 features, no labels>"
    assert data.equals(RankingData(X, [np.nan] * 3, QID))
    assert data.top_grade == 0
    assert unlabelled(top_grade=4).top_grade == 4
    assert rk.concat([data[0], data[1]]).equals(data)


@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz", "data.parquet"])
@pytest.mark.parametrize("top_grade", [None, 4])
def test_files_there_and_back(name, top_grade, tmp_path):
    data = unlabelled(top_grade=top_grade, query_weight=[1, 2])
    rk.save(data, tmp_path / name)
    assert rk.load(tmp_path / name).equals(data)


def test_text_without_labels(tmp_path):
    path = tmp_path / "data"  # recognised by its first bytes
    path.write_text(TEXT)
    data = rk.load(path, comments=False)
    assert data.equals(unlabelled())


@pytest.mark.parametrize("line", ["1:0.5 2:2", "  1:.5 2:2e0", "01:5e-1 2:2 # qid:3"])
def test_text_with_features_alone_and_group_sizes(line, tmp_path):
    (tmp_path / "data.txt").write_text(f"{line}\n1:0.25\n1:0.125 2:1\n")
    (tmp_path / "data.txt.query").write_text("2\n1\n")
    data = rk.load(tmp_path / "data.txt", comments=False)
    assert data.equals(RankingData(X=X, group_sizes=[2, 1]))


def test_frames_and_parquet_without_the_column(tmp_path):
    table = pa.table({"qid": QID, "1": X[:, 0], "2": X[:, 1]})
    pq.write_table(table, tmp_path / "data.parquet")
    for data in (
        rk.from_frame(table),
        rk.from_frame(table.to_pandas()),
        rk.load(tmp_path / "data.parquet"),
    ):
        assert data.equals(unlabelled())
    # A column that was asked for is missed.
    with pytest.raises(rk.DataError, match="there is no label column 'grade'"):
        rk.from_frame(table, label="grade")
    with pytest.raises(rk.DataError, match="there is no label column 'label'"):
        rk.load(tmp_path / "data.parquet", label="label")


def test_a_feature_may_be_called_label(tmp_path):
    data = unlabelled(feature_names=["label", "x"])
    rk.save(data, tmp_path / "data.parquet")
    assert rk.load(tmp_path / "data.parquet").equals(data)


def test_nulls_alone_are_no_labels():
    frame = pd.DataFrame({"label": [None] * 3, "qid": QID, "1": X[:, 0], "2": X[:, 1]})
    assert rk.from_frame(frame).equals(unlabelled())


def test_what_needs_labels_says_so():
    data, train = unlabelled(), labelled()
    for name, call in {
        "LambdaMART": lambda: rk.LambdaMART().fit(data),
        "MART": lambda: rk.MART().fit(data),
        "Average": lambda: rk.Average(members=None).fit(data, member_scores=[[1, 2, 3]]),
        "evaluate": lambda: rk.evaluate([1, 2, 3], data),
        "compare": lambda: rk.compare({"a": [1, 2, 3], "b": [3, 2, 1]}, data),
        "augment": lambda: rk.augment(data),
    }.items():
        with pytest.raises(rk.DataError, match=f"^{name}: {NO_LABELS}"):
            call()
    with pytest.raises(rk.DataError, match=f"the validation set 'valid': .*{NO_LABELS}"):
        rk.LambdaMART().fit(train, valid=data)


def test_a_description_counts_what_there_is():
    description = describe(unlabelled())
    assert (description.n_docs, description.n_unlabelled) == (3, 3)
    assert description.grades == {}


def test_the_commands(call):
    rk.LambdaMART(n_trees=2, n_leaves=3).fit(labelled()).save("m.rk")
    Path("data.txt").write_text(TEXT)
    table = pa.table({"1": X[:, 0], "2": X[:, 1], "qid": QID})
    pq.write_table(table, "data.parquet")
    expected = rk.load_model("m.rk").predict(X)
    for name in ("data.txt", "data.parquet"):
        printed = [float(line) for line in call("predict", "m.rk", name).split()]
        np.testing.assert_array_equal(printed, expected)
        assert NO_LABELS in " ".join(call("evaluate", name, "--feature", "1", code=1).split())
        assert NO_LABELS in " ".join(call("train", name, "--out", "x.rk", code=1).split())
        assert "Documents without a label" in call("data", "describe", name)
