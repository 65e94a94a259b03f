"""NAME(option=value)@depth[source]: str and parse are inverse, bad texts are refused."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankinite as rk
from rankinite.core.params import Constraint, Either, OneOf, Real, SourceName, Whole
from rankinite.measures import MEASURES, TieredMeasure, parse_measure, parse_measures
from rankinite.measures.definitions import GainTable


def allowed(constraint: Constraint) -> st.SearchStrategy[object]:
    """Draw values that a constraint allows, so that new options need no lines here."""
    match constraint:
        case Either(first, second):
            return allowed(first) | allowed(second)
        case OneOf(values):
            return st.sampled_from(values)
        case Whole(low, high):
            return st.integers(low, high)
        case GainTable():
            steps = st.lists(st.floats(0, 1e6) | st.integers(0, 10), min_size=1, max_size=5)
            return steps.map(lambda steps: (0, *accumulate(steps)))
        case SourceName():
            return st.text("abcXYZ019_-. =@é", min_size=1).map(str.strip).filter(bool)
        case Real(low, high, low_open=low_open, high_open=high_open) if high < float("inf"):
            return st.floats(low, high, exclude_min=low_open, exclude_max=high_open)
        case Real():
            return (st.floats(1e-6, 1e6) | st.integers(1, 10**20)).filter(constraint.allows)
    raise AssertionError(f"no values are known that {constraint} allows")


def measures_of(kind: type[rk.Measure]) -> st.SearchStrategy[rk.Measure]:
    options = {name: allowed(constraint) for name, constraint in kind.constraints.items()}
    return st.fixed_dictionaries({}, optional=options).map(lambda chosen: kind(**chosen))


any_measure = st.sampled_from(list(MEASURES.values())).flatmap(measures_of)


@settings(deadline=None)
@given(any_measure)
def test_parsing_is_the_inverse_of_str(measure):
    assert parse_measure(str(measure)) == measure
    assert str(parse_measure(str(measure))) == str(measure)
    assert parse_measures(str(measure)) == [measure]
    assert hash(parse_measure(str(measure))) == hash(measure)


@settings(deadline=None)
@given(st.lists(any_measure, min_size=2, max_size=4, unique=True))
def test_parsing_tiers_is_the_inverse_of_str(tiers):
    graded = TieredMeasure(tuple(tiers))
    assert str(graded) == " > ".join(str(tier) for tier in tiers)
    assert parse_measure(str(graded)) == graded
    assert parse_measures([graded]) == tiers
    assert parse_measures(", ".join(str(tier) for tier in tiers)) == tiers


@pytest.mark.parametrize("kind", MEASURES.values(), ids=list(MEASURES))
def test_every_option_has_a_constraint(kind):
    assert {name.rstrip("_") for name in kind.constraints} == {
        "depth",
        "source",
        *kind.option_names(),
    }


@pytest.mark.parametrize("kind", MEASURES.values(), ids=list(MEASURES))
def test_every_measure_is_an_immutable_value(kind):
    assert str(kind()) == kind.name
    assert kind() == kind()
    assert kind() != kind(depth=3)
    assert len({kind(), kind(), kind(depth=3), kind(source="clicks")}) == 3
    assert pickle.loads(pickle.dumps(kind(depth=3))) == kind(depth=3)
    with pytest.raises(FrozenInstanceError):
        kind().depth = 3


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("NDCG@10", rk.NDCG(depth=10)),
        ("ndcg@10", rk.NDCG(depth=10)),
        (" NDCG@10 ", rk.NDCG(depth=10)),
        ("NDCG@ 10 ", rk.NDCG(depth=10)),
        ("NDCG()", rk.NDCG()),
        ("AP", rk.MAP()),
        ("ap(relevant=2)@5", rk.MAP(relevant=2, depth=5)),
        ("RR", rk.MRR()),
        ("rr@10", rk.MRR(depth=10)),
        ("pfound", rk.measures.PFound()),
        ("PFOUND(break=0.3)", rk.measures.PFound(break_=0.3)),
        ("err(top_grade=4)", rk.ERR(top_grade=4)),
        ("MAP( relevant = 2.5 , empty = 0 )", rk.MAP(relevant=2.5, empty=0)),
        ("CNDCG@3[clicks]", rk.measures.CNDCG(depth=3, source="clicks")),
        ("NDCG(empty=skip)", rk.NDCG()),
        ("DCG(gain=linear)[ my clicks ]", rk.DCG(gain="linear", source="my clicks")),
        ("NDCG@3>CNDCG[a]", TieredMeasure((rk.NDCG(depth=3), rk.measures.CNDCG(source="a")))),
        ("NDCG > ERR > MAP", TieredMeasure((rk.NDCG(), rk.ERR(), rk.MAP()))),
        ("R@10", rk.measures.Recall(depth=10)),
        ("success@5", rk.measures.Hit(depth=5)),
        ("RBP(p=0.5, relevant=2)", rk.measures.RBP(p=0.5, relevant=2)),
        ("judged@10[clicks]", rk.measures.Judged(depth=10, source="clicks")),
        ("NDCG(gain=[0, 1,3.5], empty=1)@5", rk.NDCG(gain=[0, 1, 3.5], empty=1, depth=5)),
        ("NDCG(gain=[0,1])[a]", rk.NDCG(gain=np.array([0, 1]), source="a")),
        (
            "NDCG(gain=[0,1])@3 ~0.1 > CNDCG[a]",
            TieredMeasure((rk.NDCG(gain=(0, 1), depth=3), rk.measures.CNDCG(source="a")), 0.1),
        ),
    ],
)
def test_what_a_text_means(text, meant):
    assert parse_measure(text) == meant


@pytest.mark.parametrize(
    ("measure", "text"),
    [
        (rk.NDCG(), "NDCG"),
        (rk.NDCG(depth=10, gain="linear", empty=0), "NDCG(empty=0, gain=linear)@10"),
        (rk.MAP(relevant=2), "MAP(relevant=2)"),
        (rk.MAP(relevant=2.0), "MAP(relevant=2)"),
        (rk.MRR(relevant=0.5, empty=1), "MRR(empty=1, relevant=0.5)"),
        (rk.measures.CNDCG(depth=3, source="clicks"), "CNDCG@3[clicks]"),
        (rk.measures.PFound(break_=0.25, depth=5), "pFound(break=0.25)@5"),
        (rk.ERR(top_grade=4.0, empty=0), "ERR(top_grade=4)"),
        (TieredMeasure((rk.NDCG(depth=3), rk.ERR())), "NDCG@3 > ERR"),
        (rk.NDCG(gain=[0, 1.0, 2.5], empty=0, depth=5), "NDCG(empty=0, gain=[0,1,2.5])@5"),
        (rk.measures.RBP(p=0.8, depth=3), "RBP@3"),
    ],
)
def test_str_names_what_is_not_the_default(measure, text):
    assert str(measure) == text


def test_several_measures():
    ndcg, err, clicks = rk.NDCG(depth=3), rk.ERR(), rk.measures.CNDCG(depth=3, source="clicks")
    assert parse_measures("NDCG@3, ERR,CNDCG@3[clicks]") == [ndcg, err, clicks]
    assert parse_measures(["NDCG@3 > CNDCG@3[clicks]", err, "ndcg@3, ERR"]) == [ndcg, clicks, err]
    assert parse_measures(err) == [err]
    assert parse_measures(m for m in (err, "ERR(empty=0)")) == [err]
    assert parse_measures("NDCG(gain=[0,1,3]), ERR") == [rk.NDCG(gain=[0, 1, 3]), err]
    options = parse_measures("NDCG(gain=linear, empty=0)@3, MAP(relevant=2, empty=1), ERR")
    assert options == [rk.NDCG(gain="linear", empty=0, depth=3), rk.MAP(relevant=2, empty=1), err]


BAD_TEXTS = [
    ("", ["''", "is not a measure", "NAME(option=value)@depth[source]"]),
    ("   ", ["is not a measure"]),
    ("nDCC@10", ["'nDCC@10'", "there is no measure 'nDCC'", "NDCG, DCG, ERR, MAP, MRR, P, Recall"]),
    ("NDCG10", ["is not a measure"]),
    ("NDCG(gain=[])", ["gain must be one of 'exp2', 'linear', or a list of gains"]),
    ("NDCG(gain=[0])", ["gain must be"]),
    ("NDCG(gain=[1,2])", ["0 for the label 0"]),
    ("NDCG(gain=[0,2,1])", ["none below the one before it"]),
    ("NDCG(gain=[0,x])", ["gain must be", "'x'"]),
    ("NDCG(gain=[0,inf])", ["gain must be"]),
    ("NDCG(gain=[0,1)", ["'1' is not an option of NDCG"]),
    ("NDCG(gain=0,1)", ["'1' is not an option of NDCG"]),
    ("RBP(p=1)", ["p must be a finite number, above 0 and below 1"]),
    ("@10", ["is not a measure"]),
    ("NDCG @10", ["is not a measure"]),
    ("NDCG@", ["'NDCG@'", "'' is not a depth", "whole number from 1"]),
    ("NDCG@0", ["'0' is not a depth"]),
    ("NDCG@000", ["'000' is not a depth"]),
    ("NDCG@-1", ["'-1' is not a depth"]),
    ("NDCG@+1", ["'+1' is not a depth"]),
    ("NDCG@1.5", ["'1.5' is not a depth"]),
    ("NDCG@1_0", ["'1_0' is not a depth"]),
    ("NDCG@ten", ["'ten' is not a depth"]),
    ("NDCG@²", ["'²' is not a depth"]),
    ("NDCG@1000000000", ["'1000000000' is not a depth", "999999999"]),
    ("NDCG@" + "9" * 5000, ["is not a depth"]),
    ("NDCG@10@5", ["is not a measure"]),
    ("NDCG[clicks]@3", ["is not a measure"]),
    ("NDCG@3(gain=linear)", ["is not a measure"]),
    ("NDCG@3[]", ["'NDCG@3[]'", "the label source in [] is missing"]),
    ("NDCG@3[ ]", ["the label source in [] is missing"]),
    ("NDCG@3[clicks", ["is not a measure"]),
    ("NDCG@3[a][b]", ["is not a measure"]),
    ("NDCG@3[a[b]]", ["is not a measure"]),
    ("NDCG[a,b]", ["NDCG: source must be", "'a,b'"]),
    ("NDCG[a(b)]", ["NDCG: source must be", "'a(b)'"]),
    ("NDCG(gains=linear)", ["'gains=linear' is not an option of NDCG", "empty, gain"]),
    ("MAP(gain=linear)", ["'gain=linear' is not an option of MAP", "empty, relevant"]),
    ("pFound(break_=0.1)", ["'break_=0.1' is not an option of pFound", "top_grade, break"]),
    ("NDCG(depth=3)", ["'depth=3' is not an option of NDCG"]),
    ("NDCG(source=clicks)", ["'source=clicks' is not an option of NDCG"]),
    ("NDCG(linear)", ["'linear' is not an option of NDCG"]),
    ("NDCG(gain=)", ["'gain=' is not an option of NDCG"]),
    ("NDCG(gain=linear,)", ["'' is not an option of NDCG"]),
    ("NDCG(gain=linear, gain=exp2)", ["'gain=exp2' is not an option of NDCG", "each once"]),
    ("NDCG(gain=log)", ["NDCG: gain must be one of 'exp2', 'linear'", "'log'"]),
    ("NDCG(empty=2)", ["NDCG: empty must be one of 0, 1, 'skip'", "got 2"]),
    ("NDCG(empty=0.0)", ["NDCG: empty must be", "got 0.0"]),
    ("MAP(relevant=0)", ["MAP: relevant must be a finite number, above 0", "got 0"]),
    ("MAP(relevant=nan)", ["MAP: relevant must be a finite number", "nan"]),
    ("MAP(relevant=1e999)", ["MAP: relevant must be a finite number", "got inf"]),
    ("MAP(relevant=two)", ["MAP: relevant must be a finite number", "'two'"]),
    ("ERR(top_grade=-1)", ["ERR: top_grade must be", "got -1"]),
    ("pFound(break=1)", ["pFound: break must be", "below 1", "got 1"]),
    ("NDCG((gain=linear))", ["is not a measure"]),
    ("NDCG(gain=(linear))", ["is not a measure"]),
    ("NDCG(gain=linear)(empty=0)", ["is not a measure"]),
    ("NDCG(gain=linear", ["is not a measure"]),
    ("NDCG)", ["is not a measure"]),
    ("NDCG >", ["'NDCG >' is not a measure"]),
    ("> NDCG", ["'> NDCG' is not a measure"]),
    ("NDCG > > ERR", ["is not a measure"]),
    ("NDCG > XYZ", ["'NDCG > XYZ'", "there is no measure 'XYZ'"]),
]


@pytest.mark.parametrize(("text", "words"), BAD_TEXTS, ids=[text[:30] for text, _ in BAD_TEXTS])
def test_a_bad_text_is_refused_with_a_sentence(text, words):
    with pytest.raises(rk.UsageError) as refusal:
        parse_measure(text)
    assert all(word in str(refusal.value) for word in words), str(refusal.value)


@pytest.mark.parametrize(
    ("measures", "words"),
    [
        ([], "no measure is given"),
        ("NDCG, ERR@3 MAP", "'3 MAP' is not a depth"),
        ("NDCG,", "'' is not a measure"),
        ("NDCG,,ERR", "'' is not a measure"),
        ("NDCG(gain=linear, ERR", "'NDCG(gain=linear' is not a measure"),
        ("NDCG(gain=linear, ERR)", "'ERR' is not an option of NDCG"),
        (["NDCG", 10], "10 is not a measure"),
        (["NDCG", ["ERR"]], "['ERR'] is not a measure"),
    ],
)
def test_bad_lists_are_refused_with_a_sentence(measures, words):
    with pytest.raises(rk.UsageError) as refusal:
        parse_measures(measures)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"depth": 0}, "NDCG: depth must be a whole number from 1"),
        ({"depth": 1.0}, "NDCG: depth must be"),
        ({"depth": True}, "NDCG: depth must be"),
        ({"depth": 10**9}, "NDCG: depth must be"),
        ({"source": ""}, "NDCG: source must be"),
        ({"source": " clicks"}, "NDCG: source must be"),
        ({"source": "a]b"}, "NDCG: source must be"),
        ({"source": 3}, "NDCG: source must be"),
        ({"empty": "zero"}, "NDCG: empty must be one of 0, 1, 'skip'"),
        ({"empty": True}, "NDCG: empty must be"),
        ({"gain": "exp"}, "NDCG: gain must be one of 'exp2', 'linear'"),
    ],
)
def test_bad_options_are_refused_with_a_sentence(options, words):
    with pytest.raises(rk.UsageError) as refusal:
        rk.NDCG(**options)
    assert words in str(refusal.value)
