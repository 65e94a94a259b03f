"""Tiers of measures: their text, and which of several values is better."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankinite as rk
from rankinite import measures
from rankinite.measures.text import deciding_measure, parse_measure, parse_measures
from rankinite.measures.tiers import DEFAULT_TOLERANCE, TieredMeasure, tiers_of

GRADES, CLICKS = rk.NDCG(depth=3), rk.measures.CNDCG(depth=3, source="clicks")
TIERS = (GRADES, CLICKS, rk.ERR(), rk.MAP(relevant=2, source="a~b"))


@pytest.mark.parametrize(
    ("graded", "text"),
    [
        (TieredMeasure((GRADES, CLICKS)), "NDCG@3 > CNDCG@3[clicks]"),
        (TieredMeasure((GRADES, CLICKS), 0.001), "NDCG@3 > CNDCG@3[clicks]"),
        (TieredMeasure((GRADES, CLICKS), tolerance=0.002), "NDCG@3 ~0.002 > CNDCG@3[clicks]"),
        (TieredMeasure((GRADES, CLICKS), tolerance=[0]), "NDCG@3 ~0 > CNDCG@3[clicks]"),
        (TieredMeasure((GRADES, CLICKS), 1e-5), "NDCG@3 ~1e-05 > CNDCG@3[clicks]"),
        (TieredMeasure(TIERS[:3], 0.5), "NDCG@3 ~0.5 > CNDCG@3[clicks] ~0.5 > ERR"),
        (TieredMeasure(TIERS[:3], (0.001, 2)), "NDCG@3 > CNDCG@3[clicks] ~2 > ERR"),
        (TieredMeasure(TIERS[:1:-1], 3.0), "MAP(relevant=2)[a~b] ~3 > ERR"),
    ],
)
def test_what_its_text_is(graded, text):
    assert str(graded) == text
    assert parse_measure(text) == graded


@pytest.mark.parametrize(
    "text",
    [
        "NDCG@3~0.002>CNDCG@3[clicks]",
        " ndcg@3  ~ 0.002  > cndcg@3[ clicks ] ",
        "NDCG@3 ~.002 > CNDCG@3[clicks]",
        "NDCG@3 ~2e-3 > CNDCG@3[clicks]",
    ],
)
def test_spaces_and_how_a_number_is_written_do_not_matter(text):
    assert parse_measure(text) == TieredMeasure((GRADES, CLICKS), tolerance=0.002)


tolerances = st.lists(st.floats(0, 1e300) | st.just(DEFAULT_TOLERANCE), min_size=3, max_size=3)


@settings(deadline=None)
@given(st.permutations(TIERS), st.integers(2, 4), tolerances)
def test_parsing_is_the_inverse_of_str(tiers, n, chosen):
    graded = TieredMeasure(tiers[:n], chosen[: n - 1])
    assert parse_measure(str(graded)) == graded
    assert str(parse_measure(str(graded))) == str(graded)
    assert parse_measures(str(graded)) == tiers[:n]


def test_it_is_an_immutable_value():
    graded = TieredMeasure([GRADES, CLICKS], tolerance=0.002)
    assert graded == TieredMeasure((GRADES, CLICKS), (np.float64(0.002),))
    assert graded != TieredMeasure((GRADES, CLICKS))
    assert graded != TieredMeasure((CLICKS, GRADES), 0.002)
    assert len({graded, TieredMeasure((GRADES, CLICKS), [0.002]), TieredMeasure(TIERS)}) == 2
    assert graded.tiers == (GRADES, CLICKS)
    assert graded.tolerances == (0.002,)
    assert pickle.loads(pickle.dumps(graded)) == copy.deepcopy(graded) == graded
    assert eval(repr(graded), vars(measures)) == graded
    with pytest.raises(FrozenInstanceError):
        graded.tolerances = (0.0,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NDCG@3 > NDCG@3", "NDCG@3 > NDCG@3: the tier NDCG@3 is there twice; give each tier once"),
        ("NDCG > ERR > ndcg()", "NDCG > ERR > NDCG: the tier NDCG is there twice"),
        ("NDCG@3 ~x > ERR", "'NDCG@3 ~x > ERR': 'x' is not a tolerance; expected a finite number"),
        ("NDCG@3 ~-0.1 > ERR", "'-0.1' is not a tolerance; expected a finite number of at least 0"),
        ("NDCG@3 ~ > ERR", "'' is not a tolerance"),
        ("NDCG@3 ~nan > ERR", "'nan' is not a tolerance"),
        ("NDCG@3 ~1e999 > ERR", "'1e999' is not a tolerance"),
        ("NDCG@3 ~0.1 ~0.2 > ERR", "'0.1 ~0.2' is not a tolerance"),
        ("NDCG > ERR ~0.1", "'~0.1' stands behind the last measure, which decides by any differen"),
        ("NDCG ~0.1", "'NDCG ~0.1': '~0.1' stands behind the last measure"),
        ("NDCG@3 >", "'NDCG@3 >' is not a measure: nothing stands on one side of a >; expected ND"),
        ("NDCG@3 ~0.1 >", "nothing stands on one side of a >"),
        ("~0.1 > NDCG@3", "nothing stands on one side of a >"),
        ("NDCG@3 > > ERR", "nothing stands on one side of a >"),
        ("NDCG@3 ~0.1 > XYZ", "there is no measure 'XYZ'"),
    ],
)
def test_a_bad_text_is_refused_with_a_sentence(text, words):
    with pytest.raises(rk.UsageError) as refusal:
        parse_measure(text)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((GRADES,),), "give two measures or more, the most important first"),
        (("NDCG > ERR",), "give two measures or more"),
        ((GRADES,), "give two measures or more"),
        (((GRADES, CLICKS, GRADES),), "NDCG@3 > CNDCG@3[clicks] > NDCG@3: the tier NDCG@3 is the"),
        (((GRADES, CLICKS), -0.1), "TieredMeasure: tolerance must be a finite number, at least 0"),
        (((GRADES, CLICKS), float("inf")), "tolerance must be a finite number"),
        (((GRADES, CLICKS), [float("nan")]), "tolerance must be a finite number"),
        (((GRADES, CLICKS), "0.1"), "tolerance must be a finite number, at least 0; got '0.1'"),
        (((GRADES, CLICKS), None), "tolerance must be a finite number"),
        (((GRADES, CLICKS), (0.1, 0.2)), "2 tolerances are given for 2 tiers; give one number, or"),
        ((TIERS, ()), "0 tolerances are given for 4 tiers"),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(arguments, words):
    with pytest.raises(rk.UsageError) as refusal:
        TieredMeasure(*arguments)
    assert words in str(refusal.value)


def test_the_first_measure_decides_with_its_tiers():
    graded = TieredMeasure((GRADES, CLICKS), 0.002)
    text = "NDCG@3 ~0.002 > CNDCG@3[clicks], ERR"
    assert deciding_measure(text) == graded
    assert parse_measures(text) == [GRADES, CLICKS, rk.ERR()]
    assert deciding_measure([graded, "ERR"]) == graded
    assert deciding_measure(["ERR", graded]) == deciding_measure(rk.ERR()) == rk.ERR()
    with pytest.raises(rk.UsageError, match="no measure is given"):
        deciding_measure([])


def test_a_measure_is_the_only_tier_of_itself():
    assert tiers_of(GRADES) == (GRADES,)
    assert tiers_of(TieredMeasure((GRADES, CLICKS))) == (GRADES, CLICKS)


THREE = TieredMeasure(TIERS[:3], tolerance=(0.1, 0.02))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # The first tier differs by more than 0.1.
        ([0.75, 0.1, 0.1], [0.6, 0.9, 0.9], 1),
        # It differs by 0.05, the second by 0.03, more than 0.02.
        ([0.75, 0.1, 0.1], [0.7, 0.13, 0.0], -1),
        # It differs by 0.05, the second by 0.01: the last decides, by anything.
        ([0.75, 0.11, 0.1], [0.7, 0.1, 0.1000001], -1),
        ([0.75, 0.11, 0.1], [0.7, 0.1, 0.1], 0),
        ([0.75, 0.11, 0.1], [0.75, 0.11, 0.1], 0),
        (np.array([0.75, 0.11, 0.2]), (0.75, 0.11, 0.1), 1),
    ],
)
def test_comparisons_by_hand(first, second, expected):
    assert THREE.compare(first, second) == expected
    assert THREE.compare(second, first) == -expected


def test_exactly_the_tolerance_does_not_decide():
    eighth = TieredMeasure((GRADES, CLICKS), tolerance=0.125)  # which no float rounds
    assert eighth.compare([0.5, 0.1], [0.375, 0.2]) == -1
    assert eighth.best([[0.5, 0.1], [0.375, 0.2]]) == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[0.5, 0.5, 0.5]], 0),
        # Left by the first tier: 0.6 and more; by the second: 0.48 and more; the last is best.
        ([[0.59, 0.9, 0.9], [0.7, 0.1, 0.8], [0.61, 0.49, 0.3], [0.65, 0.5, 0.2]], 2),
        # The largest second value is out of the race, so 0.3 is not 0.02 below it.
        ([[0.59, 0.9, 0.9], [0.7, 0.3, 0.8], [0.65, 0.29, 0.9]], 2),
        # The first of equals.
        ([[0.1, 0.1, 0.1], [0.7, 0.3, 0.8], [0.65, 0.3, 0.8]], 1),
    ],
)
def test_the_best_by_hand(values, expected):
    assert THREE.best(values) == expected
    assert THREE.best(np.array(values)) == expected


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5, 0.5], [], [0.5, float("nan")]])
def test_other_values_than_one_a_tier_are_refused(values):
    graded = TieredMeasure((GRADES, CLICKS))
    sentence = r"NDCG@3 > CNDCG@3\[clicks\]: expected 2 numbers, the value of each tier; got"
    with pytest.raises(rk.UsageError, match=sentence):
        graded.compare([0.5, 0.5], values)
    with pytest.raises(rk.UsageError, match=sentence):
        graded.best([[0.5, 0.5], values])


def test_of_nothing_there_is_no_best():
    with pytest.raises(rk.UsageError, match="there is nothing to choose from; give values"):
        THREE.best([])


# Few numbers, so that many are equal or just a tolerance apart.
few = st.sampled_from([0.0, 0.125, 0.25, 0.375, 0.5, 1.0])
rows = st.lists(st.tuples(few, few, few), min_size=1, max_size=7)
some = st.tuples(*[st.sampled_from([0.0, 0.125, 0.25, 0.3])] * 2)


@settings(deadline=None)
@given(rows)
def test_without_tolerance_it_is_the_order_of_tuples(values):
    plain = TieredMeasure(TIERS[:3], tolerance=0)
    assert plain.best(values) == values.index(max(values))
    first, second = values[0], values[-1]
    assert plain.compare(first, second) == (first > second) - (first < second)


@settings(deadline=None)
@given(rows, some, st.randoms(use_true_random=False))
def test_the_best_does_not_depend_on_the_order(values, chosen, random):
    graded = TieredMeasure(TIERS[:3], chosen)
    best = values[graded.best(values)]
    mixed = random.sample(values, len(values))
    # Others may be as good in the last tier; what is chosen is one of them.
    again = mixed[graded.best(mixed)]
    assert again[2] == best[2]
    assert best[0] >= max(row[0] for row in values) - chosen[0]


@settings(deadline=None)
@given(st.tuples(few, few, few), st.tuples(few, few, few), some)
def test_of_two_the_best_is_the_better_one(first, second, chosen):
    graded = TieredMeasure(TIERS[:3], chosen)
    assert graded.best([first, second]) == (graded.compare(first, second) < 0)
    assert graded.compare(first, second) == -graded.compare(second, first)
