"""``rankinite data normalise``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk


@pytest.fixture
def sets():
    made = {
        part: rk.polynomials(4, part=part, n_features=3, n_docs=5) for part in ("train", "test")
    }
    rk.save(made["train"], "train.txt")
    rk.save(made["test"], "test.parquet")
    return list(made.values())


def run(call, *arguments, code=0):
    return call("data", "normalise", *arguments, code=code)


def test_all_sets_at_once(call, sets):
    printed = run(call, "train.txt", "test.parquet", "--out", "n")
    assert [line.split() for line in printed.splitlines()] == [
        ["Wrote"],
        ["File", "Queries", "Documents"],
        ["n/train.txt", "4", "20"],
        ["n/test.parquet", "4", "20"],
    ]
    written = [rk.load("n/train.txt"), rk.load("n/test.parquet")]
    for data, expected in zip(written, rk.RankNormaliser().fit_transform(sets), strict=True):
        assert data.equals(expected)
    # No value stands twice: the shares are all of 0/39, 1/39, ..., 39/39.
    both = np.concatenate([data.X for data in written])
    np.testing.assert_array_equal(np.sort(both[:, 1]), np.float32(np.arange(40) / 39))


def test_cut_points_are_saved_and_applied(call, sets):
    printed = run(call, "train.txt", "--out", "n", "--cut-points", "n/cuts.rk")
    assert printed.endswith("\nwrote n/cuts.rk\n")
    options = ["--out", "again", "--apply", "n/cuts.rk", "--json"]
    wrote = json.loads(run(call, "train.txt", "test.parquet", *options))
    assert [row["wrote"] for row in wrote] == ["again/train.txt", "again/test.parquet"]
    assert wrote[1] == {"wrote": "again/test.parquet", "queries": 4, "documents": 20}
    assert Path("again/train.txt").read_bytes() == Path("n/train.txt").read_bytes()
    expected = rk.RankNormaliser().fit(sets[0]).transform(sets[1])
    assert rk.load("again/test.parquet").equals(expected)


def test_fewer_cut_points_and_another_format(call, sets):
    options = ["--most-cut-points", 5, "--format", "txt.gz", "--cut-points", "cuts.rk"]
    run(call, "train.txt", "test.parquet", "--out", "n", *options)
    expected = rk.RankNormaliser(5).fit(sets)
    assert rk.load("n/test.txt.gz").equals(expected.transform(sets[1]))
    expected.save("expected.rk")
    assert Path("cuts.rk").read_bytes() == Path("expected.rk").read_bytes()


def test_nothing_is_overwritten(call, sets):
    before = Path("train.txt").read_bytes()
    for options in (["--out", "."], ["--out", "n", "--cut-points", "./train.txt"]):
        sentence = run(call, "train.txt", "test.parquet", *options, code=2)
        assert "data normalise: this would overwrite train.txt" in sentence
    assert Path("train.txt").read_bytes() == before
    Path("a").mkdir()
    rk.save(sets[1], "a/train.txt")
    sentence = run(call, "train.txt", "a/train.txt", "--out", "n", code=2)
    assert "two files would be written to n/train.txt; choose different names" in sentence
    rk.save(sets[0], "test.txt")
    options = ["--out", "n", "--format", "parquet"]
    assert "written to n/test.parquet" in run(call, "test.txt", "test.parquet", *options, code=2)
    assert not Path("n").exists()


def test_sets_with_other_features(call, sets):
    Path("narrow.txt").write_text("1 qid:1 1:0.5 2:1\n0 qid:1 1:0.2\n")
    rk.save(sets[0].select_features([2, 1, 0]), "turned.parquet")
    for order in (["narrow.txt", "train.txt"], ["train.txt", "narrow.txt"]):
        sentence = run(call, *order, "--out", "n", code=1)
        assert "narrow.txt: lacks the features '3'" in sentence
        assert "add --n-features 3" in sentence
        run(call, *order, "--out", "n", "--n-features", 3)
    sentence = run(call, "train.txt", "turned.parquet", "--out", "n", code=1)
    assert "turned.parquet: the sets have different features: '1' in one where" in sentence
    run(call, "train.txt", "--out", "n", "--cut-points", "cuts.rk")
    assert "narrow.txt: lacks the features '3'" in run(
        call, "narrow.txt", "--out", "n", "--apply", "cuts.rk", code=1
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["train.txt", "--apply", "none.rk"], 1, "none.rk: there is no such file"),
        (["train.txt", "--apply", "train.txt"], 1, "train.txt: is not a model file"),
        (["train.txt", "--apply", "x", "--cut-points", "y"], 2, "leave out --cut-points and"),
        (["train.txt", "--apply", "x", "--most-cut-points", "9"], 2, "leave out --cut-points and"),
        (["train.txt", "--most-cut-points", "1"], 2, "Invalid value for '--most-cut-points'"),
        (["train.txt", "none.txt"], 1, "none.txt: there is no such file"),
        (["train.txt", "test.parquet", "--query-file", "q"], 2, "belongs to one data set"),
        (["train.txt", "--cuts", "x"], 2, "No such option: --cuts"),
    ],
)
def test_wrong_use(call, sets, arguments, code, words):
    assert words in run(call, *arguments, "--out", "n", code=code)
    assert not Path("n").exists()


def test_samples_come_afterwards(call, sets):
    call("data", "augment", "train.txt", "--out", "more.parquet")
    sentence = run(call, "more.parquet", "--out", "n", code=1)
    assert "normalise first, then augment" in sentence


def test_json_names_the_cut_points(call, sets):
    wrote = json.loads(run(call, "train.txt", "--out", "n", "--cut-points", "c.rk", "--json"))
    assert [row["wrote"] for row in wrote] == ["n/train.txt", "c.rk"]


def test_cut_points_need_a_place_of_their_own(call, sets):
    sentence = run(call, "train.txt", "--out", "n", "--cut-points", "n", code=2)
    assert "two files would be written to n; choose different names" in sentence
    assert not Path("n").exists()
