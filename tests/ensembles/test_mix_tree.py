"""The text of a mix tree (Ensemble, Sec. 4.3 and Table 1)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankinite as rk
from rankinite.core.errors import UsageError
from rankinite.ensembles.mix_tree import neighbours, parse_mix_tree
from tests.rankers.cases import VALID

SIX = ["1", "2", "3", "4", "5", "6"]


def test_the_trees_of_the_paper():
    """Tree 1 joins 1 and 3, 2 and 4, what these are, 5 and 6, and then all."""
    tree = parse_mix_tree("(((1 3)(2 4))(5 6))", SIX)
    assert tree.pairs == ((0, 2), (1, 3), (6, 7), (4, 5), (8, 9))
    assert str(tree) == "(((1 3)(2 4))(5 6))"
    assert tree.texts[6:8] == ["(1 3)", "(2 4)"]
    second = parse_mix_tree("(((4 5)(1 6))(2 3))", SIX)
    assert second.pairs == ((3, 4), (0, 5), (6, 7), (1, 2), (8, 9))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("a", "a"),
        ("ab", "(a b)"),
        ("abc", "((a b)c)"),
        ("abcde", "(((a b)(c d))e)"),
        ("abcdefg", "(((a b)(c d))((e f)g))"),
    ],
)
def test_neighbours(names, text):
    assert str(neighbours(list(names))) == text
    assert str(parse_mix_tree(text, list(names))) == text


def test_names_go_before_numbers():
    assert parse_mix_tree("(2 b)", ["2", "b"]).pairs == ((0, 1),)
    assert parse_mix_tree("(2 1)", ["a", "b"]).pairs == ((1, 0),)
    assert parse_mix_tree(" ( b\n(a  c)) ", ["a", "b", "c"]).pairs == ((0, 2), (1, 3))


@st.composite
def trees(draw):
    """Return names and a random tree of them, as text."""
    n = draw(st.integers(1, 9))
    names = [f"m{k}" for k in range(n)]
    parts = draw(st.permutations(names))
    while len(parts) > 1:
        k = draw(st.integers(0, len(parts) - 2))
        parts = [*parts[:k], f"({parts[k]} {parts[k + 1]})", *parts[k + 2 :]]
    return names, parts[0]


@given(trees())
def test_text_is_read_and_written(tree):
    names, text = tree
    parsed = parse_mix_tree(text, names)
    assert parse_mix_tree(str(parsed), names) == parsed
    assert str(parsed).replace(" ", "") == text.replace(" ", "")
    assert len(parsed.pairs) == len(names) - 1


def test_the_depth_of_a_tree():
    assert parse_mix_tree("(((1 2)3)(4 5))", ["1", "2", "3", "4", "5"]).depth == 3
    assert neighbours(["a"]).depth == 0


def test_a_deep_tree():
    names = [str(k) for k in range(1, 3001)]
    text = "(" * 2999 + "1" + "".join(f" {k})" for k in range(2, 3001))
    assert len(parse_mix_tree(text, names).pairs) == 2999
    with pytest.raises(UsageError, match="is never closed"):
        parse_mix_tree("(" * 100_000, names)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("(1 7)", "there is no member '7' (at place 4) among '1', '2'"),
        ("(1 elm)", "there is no member 'elm'"),
        ("(((13)(24))(56))", "there is no member '13' (at place 4) among '1', '2', '3', '4', '5', "
         "'6'; did you mean 1 3, with spaces between?"),
        ("(1 0)", "there is no member '0'"),
        ("(1 ²)", "there is no member '²'"),
        ("(1 99999999999999999999)", "there is no member '99999999999999999999'"),
        ("((1 2)(1 3))", "the member '1' comes twice; name every member once"),
        ("((1)2)", "'(1)' has 1 part; a mix is of two"),
        ("(1 2 3)", "'(1 2 3)' has 3 parts; a mix is of two"),
        ("()", "'()' has 0 parts; a mix is of two"),
        ("((1 2)", "the parenthesis at place 1 is never closed"),
        ("(1 2))", "the parenthesis at place 6 closes nothing"),
        (")", "the parenthesis at place 1 closes nothing"),
        ("(1 2)(3 4)", "has 2 trees side by side; put each two in parentheses"),
        ("1 2", "has 2 trees side by side"),
        ("", "names no member"),
        ("((1 2)(3 4))", "leaves out the members '5', '6'; name every member once"),
        ("1", "leaves out the members '2', '3', '4', '5', '6'"),
    ],
)  # fmt: skip
def test_trees_that_are_refused(text, sentence):
    with pytest.raises(rk.UsageError) as caught:
        rk.BestMix(tree=text).fit(VALID, member_scores=np.zeros((6, VALID.n_docs)))
    assert sentence in str(caught.value)
    assert "expected pairs of pairs, as in (((1 3)(2 4))(5 6))" in str(caught.value)
