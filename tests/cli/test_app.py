"""The commands, called as a person would call them."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankinite as rk
from rankinite.cli import demo, main

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def data(tmp_path):
    made = rk.RankingData(
        X=[[0.5, 0], [0.1, 2], [0.9, 2], [0.3, np.nan], [0.2, 1]],
        y=[0, 1, 2, 0, 0],
        qid=[7, 7, 7, 8, 8],
        feature_names=["bm25", "clicks"],
        top_grade=4,
    )
    rk.save(made, tmp_path / "data.parquet")
    return made


def test_describe_counts_by_hand(call, data):
    printed = json.loads(call("data", "describe", "data.parquet", "--json", "--figures", "f"))
    (description,) = printed["sets"]
    assert description["file"] == "data.parquet"
    assert (description["queries"], description["documents"], description["features"]) == (2, 5, 2)
    assert description["grades"] == {"0": 3, "1": 1, "2": 1}
    assert description["distinct_values_per_feature"] == [5, 3]
    assert description["missing"] == pytest.approx(1 / 10)
    assert description["documents_per_query"]["queries_by_documents"] == {"2": 1, "3": 1}
    assert description["queries_without_relevant"] == description["queries_with_one_label"] == 1
    for path in printed["figures"]:
        assert Path(path).read_bytes()[:8] == PNG


def test_describe_prints_tables_2_and_3(call, data):
    printed = call("data", "describe", "data.parquet")
    rows = {line[:36].strip(): line[36:].split() for line in printed.splitlines()}
    assert rows["Queries"] == ["2"]
    assert rows["Documents"] == ["5"]
    assert ["Good", "2", "20.00%"] in [line.split() for line in printed.splitlines()]


@pytest.mark.parametrize("target", ["a.txt", "a.txt.gz", "a.parquet"])
def test_convert_there_and_back(call, data, target):
    assert f"wrote {target}" in call("data", "convert", "data.parquet", target)
    assert json.loads(call("data", "convert", target, "b.parquet", "--json"))["documents"] == 5
    assert rk.load("b.parquet").equals(data)


def test_convert_writes_qrels(call, data):
    call("data", "convert", "data.parquet", "data.qrels")
    assert Path("data.qrels").read_text() == "7 0 1 0\n7 0 2 1\n7 0 3 2\n8 0 1 0\n8 0 2 0\n"


def test_split_keeps_every_query_once(call):
    rk.save(rk.polynomials(20), "all.parquet")
    call("data", "split", "all.parquet", "--proportions", "0.6,0.2,0.2", "--out", "p", "--seed", 3)
    parts = [rk.load(f"p/{name}.parquet") for name in ("train", "valid", "test")]
    assert [part.n_queries for part in parts] == [12, 4, 4]
    assert sorted(np.concatenate([part.qids for part in parts])) == list(range(1, 21))
    wrote = json.loads(
        call(
            "data", "split", "all.parquet", "--parts", 10, "--out", "t", "--format", "txt", "--json"
        )
    )
    assert [part["wrote"] for part in wrote] == [f"t/part{k:02}.txt" for k in range(1, 11)]
    call("data", "split", "all.parquet", "--folds", 4, "--out", "f")
    held_out = [rk.load(f"f/fold{k}/valid.parquet").qids for k in range(1, 5)]
    assert sorted(np.concatenate(held_out)) == list(range(1, 21))


def test_evaluate_scores_run_and_feature_agree(call, data):
    scores = np.array([3.0, 1.0, 2.0, 1.0, 2.0])
    rk.save_scores(scores, data, "scores.txt")
    rk.save_scores(scores, data, "scores.run", run="mine")
    arguments = ["--measures", "MRR,ERR,NDCG@1", "--json"]
    plain = json.loads(call("evaluate", "data.parquet", "scores.txt", *arguments))
    assert plain == json.loads(call("evaluate", "data.parquet", "scores.run", *arguments))
    # Query 7 ranks labels 0, 2, 1; R = 3/16 and 1/16; query 8 has none.
    assert plain["mean"]["MRR"] == pytest.approx(1 / 2)
    assert plain["mean"]["ERR"] == pytest.approx((3 / 16 / 2 + 13 / 16 * 1 / 16 / 3) / 2)
    assert plain["queries"] == {"MRR": 1, "ERR": 2, "NDCG@1": 1}
    by_feature = json.loads(
        call("evaluate", "data.parquet", "--feature", "clicks", "-m", "MRR", "--json")
    )
    # Labels 1 and 2 tie at the top.
    assert by_feature["mean"]["MRR"] == 1.0


def test_evaluate_writes_queries_and_prints_a_table(call, data):
    rk.save_scores([3, 1, 2, 1, 2], data, "s")
    printed = call("evaluate", "data.parquet", "s", "-m", "MRR,ERR", "--per-query", "q.csv")
    assert ["MRR", "0.5000", "1"] in [line.split() for line in printed.splitlines()]
    rows = list(csv.reader(Path("q.csv").read_text().splitlines()))
    assert rows[0] == ["qid", "MRR", "ERR"]
    assert rows[1][:2] == ["7", "0.5"]
    assert rows[2] == ["8", "", "0.0"]


def test_missing_documents_of_a_run(call, data):
    Path("run").write_text("7 Q0 3 1 9.0 x\n8 Q0 1 1 2.0 x\n")
    assert "lacks 3 of 5 documents" in call("evaluate", "data.parquet", "run", code=1)
    printed = json.loads(
        call("evaluate", "data.parquet", "run", "--missing", "last", "-m", "MRR", "--json")
    )
    assert printed["mean"]["MRR"] == 1.0


def test_loading_options_reach_the_reader(call):
    Path("apart.txt").write_text("1 qid:1 1:1 #c = 0.5\n0 qid:2 1:2 #c = 0\n0 qid:1 1:3 #c = 1\n")
    assert "apart.txt:3: query 1 comes again" in call("data", "describe", "apart.txt", code=1)
    arguments = ["--group", "--labels", "c", "--top-grade", 4, "--n-features", 3, "--json"]
    (description,) = json.loads(call("data", "describe", "apart.txt", *arguments))["sets"]
    assert (description["features"], description["top_grade"], description["label_sources"]) == (
        3,
        4,
        {"c": 3},
    )
    Path("sized.txt").write_text("1 1:1\n0 1:2\n")
    Path("sizes").write_text("2\n")
    (description,) = json.loads(
        call("data", "describe", "sized.txt", "--query-file", "sizes", "--json")
    )["sets"]
    assert description["queries"] == 1
    Path("latin.txt").write_bytes(b"1 qid:1 1:1 #\xe9\n")
    assert "--no-comments" in call("data", "describe", "latin.txt", code=1)
    assert "Queries" in call("data", "describe", "latin.txt", "--no-comments")


def test_demo_names_what_it_wrote(call, monkeypatch):
    monkeypatch.setattr(demo, "QUERIES", {"train": 80, "valid": 20, "test": 20})
    printed = json.loads(call("demo", "--out", "here", "--jobs", 1, "--json"))
    assert list(printed["final"]["test"]) == [*(f"M{k}" for k in range(1, 13)), "ensemble"]
    assert all(Path(path).read_bytes()[:1] for path in printed["wrote"])
    assert Path("here/run/report.html") in map(Path, printed["wrote"])


def test_scores_stand_in_the_order_of_the_file_even_if_grouped(call):
    Path("apart.txt").write_text("0 qid:1 1:1\n3 qid:2 1:9\n2 qid:1 1:2\n0 qid:2 1:3\n")
    Path("scores").write_text("1\n9\n2\n3\n")
    arguments = ["--group", "-m", "MRR", "--json"]
    by_scores = json.loads(call("evaluate", "apart.txt", "scores", *arguments))
    by_feature = json.loads(call("evaluate", "apart.txt", "--feature", 1, *arguments))
    assert by_scores["mean"] == by_feature["mean"] == {"MRR": 1.0}


def test_split_does_not_overwrite_its_input(call):
    rk.save(rk.polynomials(10), "train.parquet")
    before = Path("train.parquet").read_bytes()
    sentence = call(
        "data", "split", "train.parquet", "--proportions", "0.5,0.5", "--out", ".", code=2
    )
    assert "would overwrite train.parquet" in sentence
    assert Path("train.parquet").read_bytes() == before


def test_columns_of_foreign_parquet_files_can_be_named(call):
    table = pa.table({"url": ["a", "b"], "query_id": [1, 1], "grade": [0, 2], "bm25": [0.5, 0.7]})
    pq.write_table(table, "foreign.parquet")
    assert "--label-column" in call("data", "describe", "foreign.parquet", code=1)
    columns = ["--label-column", "grade", "--qid-column", "query_id"]
    # Whoever only looks is shown the texts as categories; what is written needs their meaning.
    assert "categorical" in call("data", "describe", "foreign.parquet", *columns)
    refused = call("data", "convert", "foreign.parquet", "own.parquet", *columns, code=1)
    assert "--doc-id-column" in refused
    columns += ["--doc-id-column", "url"]
    call("data", "convert", "foreign.parquet", "own.parquet", *columns)
    data = rk.load("own.parquet")
    assert data.feature_names == ("bm25",)
    assert data.doc_ids.tolist() == ["a", "b"]
    call("data", "convert", "own.parquet", "labels.qrels.gz")
    assert gzip.decompress(Path("labels.qrels.gz").read_bytes()) == b"1 0 a 0\n1 0 b 2\n"
    Path("own.parquet").rename("own.txt")
    assert "this is a Parquet file" in call("data", "describe", "own.txt", code=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["data", "simulate", "polynomials", "--out", "o", "--size", "inf"], "--size must be"),
        (["data", "simulate", "polynomials", "--out", "o", "--size", "0"], "--size must be"),
        (["data", "describe", "data.parquet", "--labels", ""], "has an empty name"),
        (
            ["data", "describe", "x.txt", "--qid-column", "q"],
            "qid is an option of Parquet files, and x.txt is text",
        ),
        (["evaluate", "data.parquet", "--feature", "x"], "the features are 'bm25', 'clicks'"),
        (["evaluate", "data.parquet", "--feature", "bm25", "-m", "ERR[c]"], "--labels c"),
    ],
)
def test_wrong_use_names_what_to_do(call, data, arguments, words):
    assert words in call(*arguments, code=2)


def test_another_top_grade_is_warned_of(call, data, capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "data.parquet", "--feature", "bm25", "-m", "ERR(top_grade=7)"])
    assert (
        "warning: ERR(top_grade=7): the top grade of the data set is 4" in capsys.readouterr().err
    )
