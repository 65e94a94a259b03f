"""``rankinite data simulate`` writes what the library simulates."""

import json
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.cli import main


def simulate(call, kind, *options):
    return call("data", "simulate", kind, *options)


def test_polynomials(call):
    simulate(call, "polynomials", "--size", 0.001, "--features", 7, "--out", "s", "--seed", 2)
    assert rk.load("s/valid.parquet").equals(rk.polynomials(5, part="valid", n_features=7, seed=2))


def test_both_sets_of_the_challenge(call):
    wrote = json.loads(simulate(call, "challenge", "--size", 0.002, "--out", "s", "--json"))
    assert [Path(row["wrote"]).name for row in wrote] == [
        f"set{market}.{part}.parquet" for market in (1, 2) for part in ("train", "valid", "test")
    ]
    # 0.002 of 19,944, 2,994, 6,983, 1,266, 1,266 and 3,798.
    assert [row["queries"] for row in wrote] == [40, 6, 14, 3, 3, 8]
    assert rk.load("s/set2.test.parquet").equals(rk.challenge(8, part="test", market=2))


def test_one_set_as_text(call):
    simulate(
        call, "challenge", "--size", 0.001, "--market", 2, "--seed", 3, "--format", "txt", "-o", "s"
    )
    assert sorted(path.name for path in Path("s").iterdir()) == [
        ".rankinite",
        "set2.test.txt",
        "set2.train.txt",
        "set2.valid.txt",
    ]
    assert rk.load("s/set2.test.txt").equals(rk.challenge(4, part="test", market=2, seed=3))


@pytest.mark.parametrize("suffix", [None, "txt"])
def test_clicks_of_several_sets(call, suffix):
    sets = {part: rk.polynomials(6, part=part, n_features=5) for part in ("train", "test")}
    for part, data in sets.items():
        rk.save(data, f"{part}.parquet")
    ending = [] if suffix is None else ["--format", suffix]
    options = ["--out", "c", "--users", 40, "--seed", 3]
    simulate(call, "clicks", "train.parquet", "test.parquet", *options, *ending)
    for part, data in sets.items():
        clicked = rk.load(f"c/{part}.{suffix or 'parquet'}")
        assert clicked.equals(rk.clicks(data, users=40, seed=3))


def test_the_engine_may_rank_by_a_feature(call):
    data = rk.polynomials(4, n_features=5)
    rk.save(data, "d.parquet")
    simulate(call, "clicks", "d.parquet", "--feature", "3", "--out", "c")
    expected = rk.clicks(data, scores=data.X[:, 2])
    assert rk.load("c/d.parquet").equals(expected)
    other = rk.clicks(data).labels["clicks"]
    assert not np.array_equal(expected.labels["clicks"], other, equal_nan=True)


def test_sessions(call):
    data = rk.polynomials(4, n_features=5)
    rk.save(data, "d.parquet")
    options = ["--sessions", 3, "--exponent", 0.5, "--feature", "3", "--seed", 2]
    simulate(call, "sessions", "d.parquet", *options, "--out", "c")
    scores = data.X[:, 2]
    expected = rk.click_sessions(data, scores=scores, sessions=3, exponent=0.5, seed=2)
    assert rk.load("c/d.parquet").equals(expected)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["polynomials", "--size", "1e12"], "--size must be a finite number, above 0 and at most"),
        (["challenge", "--size", "1.5"], "--size must be a finite number, above 0 and at most 1"),
        (["clicks", "d.txt", "--users", "1e300"], "--users must be a finite number, above 0 and"),
        (["sessions", "d.txt", "--exponent", "-1"], "--exponent must be a finite number, at least"),
        (["clicks", "absent.txt"], "absent.txt: there is no such file"),
    ],
)
def test_wrong_use(call, words, sentence):
    rk.save(rk.polynomials(2, n_features=2), "d.txt")
    code = 1 if "absent.txt" in words else 2
    assert sentence in call("data", "simulate", *words, "--out", "o", code=code)
    assert not Path("o").exists()


def test_a_group_without_a_command_shows_its_help_and_no_error(capsys):
    for words in ([], ["data"], ["data", "simulate"]):
        with pytest.raises(SystemExit) as leaving:
            main(words)
        printed = capsys.readouterr()
        assert (leaving.value.code, printed.err) == (2, "")
        assert " ".join(["Usage: rankinite", *words]) in printed.out
