"""The command ``combine``: members whose averages are known by hand, and models."""

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.ensembles.combine import METHODS
from tests.rankers.cases import SMALL, SMALL_NET, TEST, TRAIN, VALID

# On one scale a is -1, 1, -1, 1 and b is 1, -1, -1, 1; the average is 0, 0, -2, 2.
A, B = [0, 2, 0, 2], [4, 0, 0, 4]
PAIR = ["a.scores", "b.scores", "--data", "data.parquet", "--measures", "MRR,P@1"]
MODELS = ["1.rk", "2.rk", "3.rk", "--data", "valid.parquet", "--quiet"]


@cache
def members():
    """Return three small models."""
    return [
        rk.MART(**SMALL | {"n_trees": 3}).fit(TRAIN),
        rk.LambdaMART("ERR", **SMALL | {"n_trees": 4}).fit(TRAIN),
        rk.LambdaRank(**SMALL_NET | {"n_epochs": 2}).fit(TRAIN),
    ]


def scores_of(data):
    """Return what they predict, by name."""
    return {str(k): model.predict(data) for k, model in enumerate(members(), 1)}


@pytest.fixture
def data():
    """Two queries; of each the second document is relevant. a is always right, b once."""
    data_set = rk.RankingData(X=[[0.0], [1.0]] * 2, y=[0, 1] * 2, qid=[1, 1, 2, 2])
    rk.save(data_set, "data.parquet")
    rk.save_scores(A, data_set, "a.scores")
    rk.save_scores(B, data_set, "b.scores")
    return data_set


@pytest.fixture
def models():
    """Write three models, and the data sets to combine and to test them on."""
    for k, model in enumerate(members(), 1):
        model.save(f"{k}.rk")
    rk.save(VALID, "valid.parquet")
    rk.save(TEST, "test.parquet")


def test_tables_in_a_pipe(call, data):
    # One half holds one query each: by the first, where a is better, a is chosen, which is no
    # better on the second; by the second all are equal, and all members are kept.
    assert call("combine", *PAIR) == (
        "Means over 2 queries\n"
        "Ranker            Kind       MRR     P@1  Weight\n"
        "1  a              scores  1.0000  1.0000       1\n"
        "2  b              scores  0.7500  0.5000       1\n"
        "average of all 2          0.8750  0.7500\n"
        "\n"
        "Averages by MRR: all 3 subsets\n"
        "Members     MRR     P@1\n"
        "1        1.0000  1.0000  best\n"
        "1 2      0.8750  0.7500  all, chosen\n"
        "2        0.7500  0.5000\n"
        "\n"
        "Chosen: the average of all 2.\n"
        "The best subset (1) gains +0.1250 MRR over all members on the queries that it was chosen "
        "by (paired t-test: p = 0.5, which flatters the best of 3).\n"
        "Chosen by one half of the queries and tested on the other, each in turn, subsets gain "
        "+0.0000 (p = 1); this decides, at level 0.05.\n"
        "wrote combined/combined.md\n"
        "wrote combined/combined.json\n"
        "wrote combined/combined.csv\n"
        "wrote combined/scores.txt\n"
    )


def test_files_hold_all_of_it(call, data):
    printed = json.loads(call("combine", *PAIR, "--out", "found/here", "--json"))
    folder = Path("found/here")
    np.testing.assert_allclose(rk.load_scores(folder / "scores.txt", data), [0, 0, -2, 2])
    rows = list(csv.reader((folder / "combined.csv").read_text().splitlines()))
    assert rows == [
        ["method", "members", "n_members", "MRR", "P@1", "chosen"],
        ["average", "a", "1", "1.0", "1.0", "0"],
        ["average", "a + b", "2", "0.875", "0.75", "1"],
        ["average", "b", "1", "0.75", "0.5", "0"],
    ]
    assert "| 1 2 | 0.8750 | 0.7500 | all, chosen |" in (folder / "combined.md").read_text()
    kept = json.loads((folder / "combined.json").read_text())
    wrote = printed.pop("wrote")
    assert kept == printed
    assert wrote == [
        f"found/here/{n}" for n in ("combined.md", "combined.json", "combined.csv", "scores.txt")
    ]
    assert kept["chosen"] == {
        "members": ["a", "b"], "values": {"MRR": 0.875, "P@1": 0.75}, "weights": [1, 1],
    }  # fmt: skip
    assert kept["search"]["best"] == ["a"]
    assert [subset["members"] for subset in kept["search"]["subsets"]] == [["a"], ["a", "b"], ["b"]]


def test_a_subset_is_chosen_where_it_is_better_on_both_halves(call):
    """Of forty queries, a is right in all, and b is noise."""
    n = 40
    data = rk.RankingData(X=np.zeros((3 * n, 1)), y=[2, 1, 0] * n, group_sizes=[3] * n)
    rk.save(data, "data.parquet")
    rk.save_scores([3, 2, 1] * n, data, "a.scores")
    rng = np.random.default_rng(0)
    rk.save_scores(rng.normal(size=3 * n), data, "b.scores")
    out = call("combine", *PAIR[:4], "--measures", "NDCG")
    assert ["average", "of", "1", "1.0000"] in [line.split() for line in out.splitlines()]
    assert "Chosen: the average of 1.\n" in out
    assert rk.load_scores("combined/scores.txt", data)[:3] == pytest.approx(
        np.array([1, 0, -1]) / np.sqrt(2 / 3)
    )
    out = call("combine", *PAIR[:4], "--measures", "NDCG", "--level", "0")
    assert "Chosen: the average of all 2.\n" in out
    out = call("combine", *PAIR[:4], "--measures", "NDCG", "--subsets", "none")
    assert "subsets" not in out.replace("a search for a subset", "")
    assert "Chosen: the average of all members, without a search for a subset.\n" in out


@pytest.mark.parametrize("method", METHODS)
def test_models_become_one_that_predict_uses(call, models, method):
    printed = json.loads(
        call("combine", *MODELS, "--method", method, "--test", "test.parquet", "--json")
    )
    assert "combined/ensemble.rk" in printed["wrote"]
    for part in ("valid", "test"):
        call("predict", "combined/ensemble.rk", f"{part}.parquet", "--out", f"{part}.txt")
    written = [Path(f"combined/{name}").read_bytes() for name in ("scores.txt", "test-scores.txt")]
    assert [Path("valid.txt").read_bytes(), Path("test.txt").read_bytes()] == written
    scores = rk.load_scores("combined/test-scores.txt", TEST)
    assert printed["test"]["chosen"] == rk.evaluate(scores, TEST).mean
    first = rk.evaluate(scores_of(TEST)["1"], TEST).mean
    assert printed["test"]["members"]["1"] == first
    assert (printed["search"] is None) == (method != "average")


def test_models_and_their_scores_are_the_same(call, models):
    for name, scores in scores_of(VALID).items():
        rk.save_scores(scores, VALID, f"{name}.scores")
    printed = json.loads(call("combine", *MODELS, "--json"))
    again = json.loads(
        call("combine", *(f"{k}.scores" for k in (1, 2, 3)), *MODELS[3:], "--out", "o", "--json")
    )
    assert again["search"] == printed["search"]
    assert Path("combined/scores.txt").read_bytes() == Path("o/scores.txt").read_bytes()
    assert not Path("o/ensemble.rk").exists()


def test_a_tree_of_best_mixes(call, models):
    out = call("combine", *MODELS, "--method", "best-mix", "--tree", "((1 3)2)")
    expected = rk.BestMix(members(), tree="((1 3)2)").fit(VALID)
    for node in expected.nodes_:
        assert [node.text, f"{node.alpha:.4g}", f"{node.value:.4f}"] in [
            line.rsplit(maxsplit=2) for line in out.splitlines()
        ]
    assert "\nChosen: best-mix of all members.\n" in out
    rows = list(csv.DictReader(Path("combined/combined.csv").read_text().splitlines()))
    assert [row["method"] for row in rows if row["chosen"] == "1"] == ["best-mix"]


def test_a_test_set_without_labels(call, models):
    bare = rk.RankingData(X=TEST.X, y=np.zeros(TEST.n_docs), qid=TEST.qid)
    rk.save(bare, "bare.parquet")
    out = call("combine", *MODELS, "--test", "bare.parquet", "--top-grade", "4")
    assert "No test query has a relevant document: there are scores" in out
    assert json.loads(Path("combined/combined.json").read_text())["test"]["gain"] is None
    assert len(rk.load_scores("combined/test-scores.txt", TEST)) == TEST.n_docs


def test_greedy_search_of_many(call, data):
    printed = json.loads(call("combine", *PAIR, "--subsets", "greedy", "--json"))
    assert printed["search"]["method"] == "forward and backward"
    for k in range(13):
        rk.save_scores(np.array(A) + k * np.array(B), data, f"m{k}.scores")
    many = [f"m{k}.scores" for k in range(13)]
    printed = json.loads(call("combine", *many, *PAIR[2:], "--json"))
    assert printed["search"]["method"] == "forward and backward"


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--method", "best"], "'best' is not one of 'average', 'best-mix'", 2),
        (["--method", "best-mix", "--tree", "(1 x)"], "there is no member 'x'", 2),
        (["--tree", "(1 2)"], "a tree is for the method best-mix", 2),
        (["--method", "linear", "--subsets", "every"], "linear takes all members", 2),
        (["--test", "data.parquet"], "a.scores holds those of --data alone", 2),
        (["--level", "2"], "level must be", 2),
        (["--measures", "NDGC"], "there is no measure 'NDGC'", 2),
        (["--out", "a.scores"], "a.scores: this is a file; expected a folder", 1),
    ],
)
def test_wrong_flags(call, data, arguments, message, code):
    assert message in call("combine", *PAIR, *arguments, code=code)
    assert not Path("combined").exists()


def test_wrong_members(call, data):
    rest = PAIR[2:]
    assert "give at least two" in call("combine", "a.scores", *rest, code=2)
    assert "Missing argument 'MEMBERS'" in call("combine", *rest, code=2)
    assert "was given twice" in call("combine", "a.scores", "./a.scores", *rest, code=2)
    assert "gone.rk: there is no such file" in call("combine", "a.scores", "gone.rk", *rest, code=1)
    Path("bad.scores").write_text("1\nnan\n3\n4\n")
    err = call("combine", "a.scores", "bad.scores", *rest, code=1)
    assert "bad.scores:2: 'nan' is not a score; expected a number" in err
    Path("bad.scores").write_text("1\n2\n3\n")
    err = call("combine", "a.scores", "bad.scores", *rest, code=1)
    assert "bad.scores: 3 scores for 4 documents" in err
    Path("combined").mkdir()
    Path("combined/scores.txt").write_bytes(Path("a.scores").read_bytes())
    err = call("combine", "b.scores", "combined/scores.txt", *rest, code=2)
    assert "this would overwrite combined/scores.txt" in err


def test_more_members_than_every_subset_has_time_for(call, data):
    names = [f"m{k}.scores" for k in range(25)]
    for name in names:
        rk.save_scores(A, data, name)
    err = call("combine", *names, *PAIR[2:], "--subsets", "every", code=2)
    assert "25 members have too many subsets to measure every one" in err


def test_a_larger_label_in_the_test_set(call, models):
    larger = rk.RankingData(X=TEST.X, y=np.full(TEST.n_docs, 9.0), qid=TEST.qid)
    rk.save(larger, "larger.parquet")
    err = call("combine", *MODELS, "--test", "larger.parquet", code=1)
    assert "larger.parquet: has labels above" in err
    assert "--top-grade" in err


def test_inspect_shows_members_and_the_ranker_on_top(call, models):
    call("combine", *MODELS, "--method", "two-layer")
    out = call("inspect", "combined/ensemble.rk")
    lines = [line.split() for line in out.splitlines()]
    assert "Members, each as (score - mean) / scale" in out
    assert ["2", "LambdaMART", "4", "trees"] in [line[:4] for line in lines]
    assert "The ranker on top of combined/ensemble.rk, whose features are members" in out
    assert ["Layers", "3", "inputs,", "10", "units,", "score"] in lines
    call("combine", *MODELS, "--subsets", "none")
    out = call("inspect", "combined/ensemble.rk")
    assert "Members, each as weight * (score - mean) / scale" in out
    assert "scaled" in out
    assert "Base" not in out
