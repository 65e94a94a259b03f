"""``rankinite data augment``, and how samples are split."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.cli import main


@pytest.fixture
def data():
    made = rk.polynomials(10, n_features=3, n_docs=6)
    rk.save(made, "train.txt")
    return made


@pytest.mark.parametrize("target", ["more.parquet", "more.txt", "more.txt.gz"])
def test_the_library_s_samples_are_written(call, data, target):
    options = ["--fraction", 0.5, "--times", 4, "--seed", 2, "--out", target]
    printed = json.loads(call("data", "augment", "train.txt", *options, "--json"))
    expected = rk.augment(data, 0.5, 4, seed=2)
    assert rk.load(target).equals(expected)
    n_samples = expected.n_queries - 10
    assert printed == {
        "wrote": target,
        "queries": 10 + n_samples,
        "documents": 60 + 3 * n_samples,
        "samples": n_samples,
        "left_out": 40 - n_samples,
    }


def test_aug70_unless_asked_otherwise(call, data):
    printed = call("data", "augment", "train.txt", "--out", "more.parquet")
    more = rk.augment(data, 0.7, 5)
    assert rk.load("more.parquet").equals(more)
    sizes = f"({more.n_queries} queries, {more.n_docs} documents)"
    assert printed == f"wrote more.parquet {sizes}\n"


def test_left_out_samples_are_noted(capsys):
    rk.save(rk.RankingData([[1], [2], [3], [4]], [1, 1, 1, 1], [1, 1, 2, 2]), "flat.txt")
    with pytest.raises(SystemExit):
        main(["data", "augment", "flat.txt", "--out", "more.txt"])
    said = capsys.readouterr().err
    assert "note: augment: 10 of 10 samples are left out: fewer than two documents" in said


def test_its_source_is_not_overwritten(call, data):
    before = Path("train.txt").read_bytes()
    Path("link.txt").symlink_to("train.txt")
    for target in ("train.txt", "./train.txt", "link.txt"):
        sentence = call("data", "augment", "train.txt", "--out", target, code=2)
        assert "data augment: this would overwrite train.txt" in sentence
    assert Path("train.txt").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fraction", "1"], "--fraction must be a finite number, above 0 and below 1; got 1.0"),
        (["--fraction", "half"], "Invalid value for '--fraction'"),
        (["--times", "0"], "Invalid value for '--times'"),
        (["--share", "0.5"], "No such option: --share"),
    ],
)
def test_wrong_use(call, data, options, words):
    assert words in call("data", "augment", "train.txt", "--out", "more.txt", *options, code=2)
    assert not Path("more.txt").exists()


def test_wrong_files(call, data):
    assert "none.txt: there is no such file" in call(
        "data", "augment", "none.txt", "--out", "more.txt", code=1
    )
    call("data", "augment", "train.txt", "--out", "more.txt")
    sentence = call("data", "augment", "more.txt", "--out", "again.txt", code=1)
    assert "the data hold samples, such as '1~1'" in sentence


def test_folds_keep_samples_with_their_query(call, data):
    call("data", "augment", "train.txt", "--out", "more.parquet")
    call("data", "split", "more.parquet", "--folds", 5, "--out", "f")
    held_out = []
    for k in range(1, 6):
        train, valid = (rk.load(f"f/fold{k}/{name}.parquet") for name in ("train", "valid"))
        assert valid.originals is valid
        assert {qid.partition("~")[0] for qid in train.qids}.isdisjoint(valid.qids)
        assert train.n_queries > 2 * len(np.unique(train.origins))
        held_out += valid.qids.tolist()
    assert sorted(held_out, key=int) == [str(k) for k in range(1, 11)]


def test_training_refuses_samples_to_validate_on(call, data):
    call("data", "augment", "train.txt", "--out", "more.txt")
    words = ["train", "train.txt", "--valid", "more.txt", "--out", "m.rk"]
    assert "the validation set 'more': it holds samples, such as '1~1'" in call(*words, code=1)


def test_valid_and_test_parts_have_no_samples(call, data):
    rk.save(rk.augment(data, 0.5, 4), "more.parquet")
    call("data", "split", "more.parquet", "--proportions", "0.6,0.2,0.2", "--out", "s")
    parts = {name: rk.load(f"s/{name}.parquet") for name in ("train", "valid", "test")}
    assert [sorted(parts[name].qids) == sorted(parts[name].originals.qids) for name in parts] == [
        False,
        True,
        True,
    ]
    together = [qid for part in parts.values() for qid in part.originals.qids]
    assert sorted(together, key=int) == [str(qid) for qid in data.qids]
    origins = {str(qid).split("~")[0] for qid in parts["train"].qids}
    assert origins == set(parts["train"].originals.qids)


def test_parts_of_equal_kind_keep_their_samples(call, data):
    more = rk.augment(data, 0.5, 4)
    rk.save(more, "more.parquet")
    call("data", "split", "more.parquet", "--parts", 2, "--out", "s")
    parts = [rk.load(f"s/part0{k}.parquet") for k in (1, 2)]
    assert sum(part.n_queries for part in parts) == more.n_queries


def test_originals_can_be_had_again(call, data):
    rk.save(rk.augment(data, 0.5, 4), "more.parquet")
    call("data", "convert", "more.parquet", "originals.parquet", "--originals")
    originals = rk.load("originals.parquet")
    assert originals.qids.tolist() == [str(qid) for qid in data.qids]
    assert np.array_equal(originals.X, data.X)
