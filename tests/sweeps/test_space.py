"""What a sweep tries, as people write it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import UsageError
from rankinite.sweeps.space import (
    Choice,
    Range,
    Steps,
    n_points,
    papers_space,
    points_of,
    read_over,
    space_of,
)
from tests.sweeps.cases import micro_recipe

MODELS = micro_recipe().models


def domain_of(text, name="learning_rate", model="S"):
    return space_of(MODELS[model], {name: text})[name]


def test_the_papers_grids():
    """Ensemble, Sec. 4.2: leaves 50 to 400 by 30, five rates; 10 to 30 tasks by 5, 1e-4 to 1e-2."""
    trees = space_of(MODELS["S"], papers_space("LambdaMART", "tpe"))
    assert trees["n_leaves"].values == (50, 80, 110, 140, 170, 200, 230, 260, 290, 320, 350, 380)
    assert trees["learning_rate"].values == (0.01, 0.05, 0.1, 0.3, 0.5)
    assert n_points(trees) == 60
    nets = space_of(MODELS["N"], papers_space("LambdaRank", "random"))
    assert nets["hidden"].values == (10, 15, 20, 25, 30)
    assert nets["learning_rate"] == Range(1e-4, 1e-2, whole=False)
    assert nets["learning_rate"].is_log
    grid = space_of(MODELS["N"], papers_space("LambdaRank", "grid"))
    assert grid["learning_rate"].values == (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
    assert len(list(points_of(grid))) == n_points(grid) == 25


def test_kinds_of_values():
    assert domain_of("0.1, 1,2e-3") == Choice((0.1, 1.0, 2e-3))
    assert domain_of([0.1, 1]) == Choice((0.1, 1.0))
    assert domain_of("0.1:0.5:0.1").values == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert domain_of("1:3:1").values == (1.0, 2.0, 3.0)
    assert domain_of("none,2,3", "max_depth") == Choice((None, 2, 3))
    assert domain_of("mse,newton", "criterion") == Choice(("mse", "newton"))
    assert domain_of("NDCG@5,ERR", "measure") == Choice(("NDCG@5", "ERR"))
    assert domain_of("true,false", "per_query", "C") == Choice((True, False))
    assert domain_of("[3,2], 4,[ 5 ]", "hidden", "N") == Choice(([3, 2], 4, [5]))
    assert domain_of([(3, 2), 4], "hidden", "N") == Choice(([3, 2], 4))
    assert domain_of("MAP(relevant=2, empty=0),ERR", "measure") == Choice(
        ("MAP(relevant=2, empty=0)", "ERR")
    )
    assert domain_of("2..100", "n_leaves") == Range(2, 100, whole=True)
    assert not domain_of("2..100", "n_leaves").is_log
    assert domain_of("2..200", "n_leaves").is_log
    assert not domain_of("0..1", "min_gain").is_log


@settings(max_examples=50)
@given(st.integers(2, 500), st.integers(1, 300), st.integers(1, 50))
def test_steps_are_those_of_range(low, more, step):
    steps = domain_of(f"{low}:{low + more}:{step}", "n_leaves")
    assert steps.values == tuple(range(low, low + more + 1, step))
    assert domain_of(str(steps), "n_leaves") == steps


@settings(max_examples=50)
@given(st.integers(1, 99), st.integers(1, 99), st.integers(1, 20))
def test_steps_of_hundredths_are_what_one_writes(low, more, step):
    text = f"{low / 100}:{(low + more) / 100}:{step / 100}"
    expected = tuple(k / 100 for k in range(low, low + more + 1, step))
    assert domain_of(text).values == expected
    assert isinstance(domain_of(text), Steps)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("n_leavs", "3", "did you mean 'n_leaves'?"),
        ("num_leaves", "3", "it is called 'n_leaves' here"),
        ("hidden", "3", "LambdaMART has no hidden; LambdaRank can have it"),
        ("random_state", "1,2", "'random_state' cannot be swept; the recipe's seed gives every"),
        ("bags", "1,2", "'bags' cannot be swept; it is no parameter of a ranker"),
        (
            "zzz",
            "1,2",
            "LambdaMART has no parameter 'zzz'; expected one of 'measure'",
        ),
        ("n_leaves", "1,2", "n_leaves must be a whole number from 2 to 65536; got 1"),
        ("n_leaves", "2.5", "got 2.5"),
        ("n_leaves", "1:9:2", "got 1"),
        ("n_leaves", "2..100000", "got 100000"),
        ("n_leaves", "9:2:1", "the first number must be below the second"),
        ("n_leaves", "2:9:0", "the third > 0"),
        ("n_leaves", "2:60000:1", "more than 10,000 values"),
        ("n_leaves", "2:x:1", "'x' is no number; expected values a,b,c, or low:high:step"),
        ("n_leaves", "2..nan", "'nan' is not finite"),
        ("n_leaves", "2..3..4", "expected values"),
        ("n_leaves", "9..2", "the first number must be below the second"),
        ("n_leaves", "4,4", "one of its values twice"),
        ("n_leaves", "4,,5", "has an empty value"),
        ("n_leaves", "[4,5],6", "n_leaves must be a whole number from 2 to 65536; got [4, 5]"),
        ("n_leaves", "[4,5", "got '[4,5'"),
        ("n_leaves", [], "has no values"),
        ("n_leaves", 4, "n_leaves is 4; expected values"),
        ("measure", "NGCD", "no measure 'NGCD'"),
    ],
)
def test_wrong_values(name, text, words):
    with pytest.raises(UsageError) as problem:
        domain_of(text, name)
    assert words in str(problem.value)
    assert str(problem.value).startswith("sweep: ")


def test_values_that_do_not_go_together_are_told_before_anything_is_trained():
    both = {"loss": "logistic,squared", "per_query": "false,true"}
    with pytest.raises(UsageError) as problem:
        space_of(MODELS["C"], both)
    sentence = str(problem.value)
    assert sentence.startswith("sweep: loss=squared does not go with per_query=True: ")
    assert sentence.endswith("; sweep one of them at a time")
    for name, values in both.items():
        assert len(space_of(MODELS["C"], {name: values})[name].values) == 2


def test_all_mistakes_at_once():
    with pytest.raises(UsageError) as problem:
        space_of(MODELS["S"], {"n_leaves": "1", "learning_rate": "0.1", "nope": "1"})
    lines = str(problem.value).splitlines()
    assert lines[0] == "sweep: 2 mistakes:"
    assert len(lines) == 3


def test_flags():
    assert read_over(["measure=MAP(relevant=2)"]) == {"measure": "MAP(relevant=2)"}
    for texts, words in (
        (["n_leaves"], "has no values"),
        (["n_leaves="], "has no values"),
        (["=3"], "has no values"),
        (["a=1", "a=2"], "names 'a' twice"),
    ):
        with pytest.raises(UsageError, match=words):
            read_over(texts)
