"""The best of a measure along a line of scores agrees with trying every gap between crossings."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import DataError
from rankinite.measures import parse_measure
from rankinite.measures.line_search import Along, Following, mixed
from tests.naive import line_search as naive_along

TEXTS = ["NDCG", "NDCG@2", "ERR", "ERR@3", "MAP", "MAP@2", "MRR", "MRR@2", "DCG@3", "P@2", "P"]
TEXTS += ["pFound@3", "NDCG(empty=1)", "ERR(top_grade=5)"]
TOP = 4.0


def following(queries: list[naive_along.Query], text: str) -> Following:
    labels = np.concatenate([np.asarray(labels, float) for _, _, labels in queries])
    sizes = [len(labels) for _, _, labels in queries]
    offsets = np.append(0, np.cumsum(sizes))
    return Following(parse_measure(text), {None: labels}, offsets, TOP)


def arrays(queries: list[naive_along.Query]) -> tuple[np.ndarray, np.ndarray]:
    first = np.concatenate([np.asarray(one, float) for one, _, _ in queries])
    return first, np.concatenate([np.asarray(other, float) for _, other, _ in queries])


def check_against_trying(
    found: Along, queries: list[naive_along.Query], text: str, way: naive_along.Way, low, high
) -> None:
    """Compare the whole course, the best value and the ends with the obvious."""
    measure = parse_measure(text)
    tried = naive_along.course(queries, measure, TOP, way, Fraction(low), Fraction(high))
    best = max(value for _, _, value in tried)
    ends = [naive_along.value_at(queries, measure, TOP, way, Fraction(end)) for end in (low, high)]
    assert found.at_ends == pytest.approx(ends, abs=1e-12)
    assert found.value == pytest.approx(max(best, *ends), abs=1e-12)
    assert found.course.is_whole
    middles = [float((begin + end) / 2) for begin, end, _ in tried]
    at = np.searchsorted(found.course.ends, middles)
    assert found.course.values[at] == pytest.approx([value for _, _, value in tried], abs=1e-12)
    assert found.course.begins[0] == low
    assert found.course.ends[-1] == high


@st.composite
def some_queries(draw: st.DrawFn) -> list[naive_along.Query]:
    """Draw queries with few different scores: ties, equal lines, and many in one crossing."""
    size = st.integers(1, 6)
    score = st.integers(-3, 3) | st.sampled_from([-0.0, 0.5, 2.25])
    queries = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(size)
        several = st.lists(score, min_size=n, max_size=n)
        labels = st.lists(st.integers(0, 4), min_size=n, max_size=n)
        queries.append((draw(several), draw(several), draw(labels)))
    queries[0][2][0] = 2  # a measure of nothing at all is no number
    return queries


@pytest.mark.kernel
@settings(max_examples=100, deadline=None)
@given(some_queries(), st.sampled_from(TEXTS))
def test_mixes_agree_with_trying_every_gap(queries, text):
    found = following(queries, text).best_mix(*arrays(queries), whole=True)
    check_against_trying(found, queries, text, naive_along.mixed, 0, 1)


BOUNDS = [(0, 1), (0, 4), (0, 0.5), (0.5, 8), (-2, 2), (0, 1e15), (0.125, 1)]


@settings(max_examples=200, deadline=None)
@given(some_queries(), st.sampled_from(TEXTS), st.sampled_from(BOUNDS))
def test_steps_agree_with_trying_every_gap(queries, text, bounds):
    found = following(queries, text).best_step(*arrays(queries), *bounds, whole=True)
    check_against_trying(found, queries, text, naive_along.added, *bounds)


@settings(max_examples=100, deadline=None)
@given(some_queries(), st.sampled_from(TEXTS), st.sampled_from([(0, 1), (0, 4), (0, 0.5)]))
def test_steps_without_peaks_are_as_good(queries, text, bounds):
    follow = following(queries, text)
    with_peaks, without = (
        follow.best_step(*arrays(queries), *bounds, with_peaks=peaks) for peaks in (True, False)
    )
    assert without.value == pytest.approx(with_peaks.value, abs=1e-12)
    assert without.peak is None


@settings(max_examples=100, deadline=None)
@given(some_queries(), st.sampled_from(TEXTS))
def test_a_peak_is_a_point_that_beats_all_gaps(queries, text):
    measure = parse_measure(text)
    found = following(queries, text).best_mix(*arrays(queries))
    points = set().union(
        *(naive_along.crossings(q, naive_along.mixed, Fraction(0), Fraction(1)) for q in queries)
    )
    values = [
        naive_along.value_at(queries, measure, TOP, naive_along.mixed, point) for point in points
    ]
    best = max(values, default=0.0)
    if best > found.value + 1e-9:
        assert found.peak is not None
        assert found.peak.value == pytest.approx(best, abs=1e-12)
        at = naive_along.value_at(
            queries,
            measure,
            TOP,
            naive_along.mixed,
            min(points, key=lambda p: abs(p - Fraction(found.peak.alpha))),
        )
        assert at == pytest.approx(best, abs=1e-12)
    else:
        assert found.peak is None or found.peak.value <= best + 1e-9


@pytest.mark.parametrize("text", ["NDCG@10", "ERR", "MAP@5", "MRR"])
@pytest.mark.parametrize("digits", [None, 1])
def test_longer_queries_agree_with_measuring_every_gap(text, digits):
    """Scores with one digit cross in one point only but for rounding: 0.3 - 0.2 is not 0.1."""
    rng = np.random.default_rng(3)
    queries = []
    for n in (1, 2, 17, 40):
        scores = rng.normal(size=(2, n))
        rounded = scores if digits is None else np.round(scores, digits)
        queries.append((*rounded, rng.integers(0, 5, n)))
    follow = following(queries, text)
    first, second = arrays(queries)
    found = follow.best_mix(first, second, whole=True)
    middles = (found.course.begins + found.course.ends) / 2
    measured = [follow.measure(mixed(first, second, alpha)) for alpha in middles]
    assert found.course.values == pytest.approx(measured, abs=1e-12)
    assert found.value == pytest.approx(max(*measured, *found.at_ends), abs=1e-12)
    assert found.interval[0] <= found.alpha <= found.interval[1]
    crossings = set().union(
        *(naive_along.crossings(q, naive_along.mixed, Fraction(0), Fraction(1)) for q in queries)
    )
    inside = [c for c in crossings if found.interval[0] + 1e-9 < c < found.interval[1] - 1e-9]
    values = [follow.measure(mixed(first, second, float(c) + 1e-10)) for c in inside]
    assert values == pytest.approx([found.value] * len(inside), abs=1e-12)


@pytest.mark.parametrize("text", TEXTS)
def test_hundreds_of_random_cases(text):
    """Grids make ties at the ends, equal lines and common crossings; others are as they come."""
    rng = np.random.default_rng(len(text))
    for case in range(250):
        step = (0.5, 1.0, 1e-9)[case % 3]
        queries = []
        for n in rng.integers(1, 9, 3):
            first, second = np.round(rng.normal(size=(2, n)) / step) * step
            queries.append((first, second, rng.integers(0, 5, n)))
        queries[0][2][0] = 3
        follow = following(queries, text)
        first, second = arrays(queries)
        crossed = set().union(*(float_crossings(*query[:2]) for query in queries))
        edges = np.array([0.0, *sorted(crossed), 1.0])
        edges = edges[np.append(True, np.diff(edges) > 1e-11)]
        middles = (edges[:-1] + edges[1:]) / 2
        tried = [follow.measure(mixed(first, second, alpha)) for alpha in middles]
        found = follow.best_mix(first, second)
        assert found.value == pytest.approx(max(*tried, *found.at_ends), abs=1e-12)
        at = np.searchsorted(found.course.ends, middles)
        assert found.course.values[at] == pytest.approx(tried, abs=1e-12)
        assert found.value == follow.measure(mixed(first, second, found.alpha))


def float_crossings(first: np.ndarray, second: np.ndarray) -> list[float]:
    """Return where two documents cross, strictly between 0 and 1."""
    ahead, then = (scores[:, None] - scores for scores in (first, second))
    cross = ahead * then < 0
    return list((ahead[cross] / (ahead[cross] - then[cross])).tolist())


def test_an_isolated_crossing_is_reported_and_not_chosen():
    """At 0.5 all three tie: NDCG is 1/3 (1 + 1/log2 3 + 1/2) of the gain, elsewhere 1/log2 3."""
    query = ([2, 1, 0], [0, 1, 2], [0, 4, 0])
    found = following([query], "NDCG").best_mix(*arrays([query]))
    elsewhere = 1 / np.log2(3)
    assert found.value == pytest.approx(elsewhere)
    assert found.course.values == pytest.approx([elsewhere] * 2)
    assert found.peak is not None
    assert found.peak.alpha == 0.5
    assert found.peak.value == pytest.approx((1 + elsewhere + 0.5) / 3)


def test_without_a_crossing_a_step_is_one():
    query = ([2, 1, 0], [2, 1, 0], [2, 1, 0])
    follow = following([query], "NDCG")
    assert follow.best_step(*arrays([query]), 0, 100).alpha == 1.0
    assert follow.best_step(*arrays([query]), 2, 100).alpha == 2.0
    assert follow.best_mix(*arrays([query])).alpha == 0.5


@pytest.mark.parametrize("bounds", [(0.2, 0.9), (0.3, 0.9), (0.7, 2.9)])
def test_the_bounds_are_the_users(bounds):
    """Both tie at the upper bound only, and nowhere is the second one above."""
    low, high = bounds
    query = ([high, 0], [0, 1], [0, 1])
    found = following([query], "MRR").best_step(*arrays([query]), low, high)
    assert (found.alpha, found.value, found.at_ends) == (high, 0.75, (0.5, 0.75))
    assert (found.course.begins[0], found.course.ends[-1]) == bounds


def test_without_a_crossing_a_bound_at_which_documents_tie_is_not_taken():
    """At 0 the first query ties, at 1/2 the second; in between all is well."""
    queries = [([0, 0], [1, 0], [1, 0]), ([1, 0], [0, 2], [1, 0])]
    found = following(queries, "MRR").best_step(*arrays(queries), 0, 0.5)
    assert (found.value, found.interval) == (1.0, (0.0, 0.5))
    assert 0 < found.alpha < 0.5


@pytest.mark.parametrize(
    ("scale", "form"),
    [(1.0, "mix"), (1e-14, "mix"), (1e9, "mix"), (1e-14, "step"), (1e-100, "step"), (1e14, "step")],
)
def test_scales_that_differ(scale, form):
    """The first document is above the others for a between 0.5 and 0.7 only."""
    first, second, labels = np.array([0, 1, -1.4]), np.array([2.0, 0, 4]), [1, 0, 0]
    query = (scale * first, second, labels)
    follow = following([query], "MRR")
    if form == "step":
        found = follow.best_step(*arrays([query]), 0, 1e15)
        assert found.interval == pytest.approx((0.5 * scale, 0.7 * scale))
    else:
        found = follow.best_mix(*arrays([query]))
    assert found.value == 1.0
    assert found.peak is None


def test_a_direction_that_is_lost_in_rounding():
    query = ([1e100, 0], [0, 1], [1, 0])
    found = following([query], "MRR").best_step(*arrays([query]), 0.1, 5)
    assert (found.alpha, found.value, found.interval) == (1.0, 1.0, (0.1, 5.0))


def test_scores_that_are_too_large_are_refused():
    query = ([1e300, 0], [0, 1], [0, 1])
    with pytest.raises(DataError, match="they reach 1e\\+300"):
        following([query], "MRR").best_mix(*arrays([query]))


def test_an_end_wins_only_if_it_is_better():
    """All tie at 0, which is worth 3/4 in MRR; in between and at 1 the wrong one is first."""
    query = ([0, 0], [1, 0], [0, 1])
    found = following([query], "MRR").best_mix(*arrays([query]))
    assert (found.alpha, found.interval, found.value) == (0.0, (0.0, 0.0), 0.75)
    assert found.at_ends == (0.75, 0.5)


@pytest.mark.parametrize("text", ["NDCG", "ERR", "MAP"])
def test_buckets_do_not_change_the_answer(text, monkeypatch):
    rng = np.random.default_rng(5)
    queries = [(*rng.normal(size=(2, 30)), rng.integers(0, 5, 30)) for _ in range(150)]
    follow = following(queries, text)
    whole = follow.best_mix(*arrays(queries), whole=True)
    monkeypatch.setattr("rankinite.measures.line_search.search.MOST_TAKEN", 300)
    monkeypatch.setattr("rankinite.measures.line_search.search.PAIRS_SAMPLED", 5_000)
    parts = follow.best_mix(*arrays(queries))
    assert not parts.course.is_whole
    assert (parts.alpha, parts.interval, parts.value) == (whole.alpha, whole.interval, whole.value)
    known = np.isin(whole.course.begins, parts.course.begins)
    assert whole.course.values[known].max() == whole.course.values.max()


@pytest.mark.parametrize("scale", [1.0, 1e-7])
def test_buckets_that_do_not_fit_are_made_finer(scale, monkeypatch):
    """The sampled documents cross elsewhere than all others, and nearly at one point."""
    rng = np.random.default_rng(6)
    queries = [(*rng.normal(size=(2, 30)), rng.integers(0, 5, 30)) for _ in range(640)]
    first, second = arrays(queries)
    second += 1e3 * scale * rng.normal(size=len(second)) - first
    follow = following(queries, "NDCG")
    whole = follow.best_mix(first, second)
    monkeypatch.setattr("rankinite.measures.line_search.search.MOST_TAKEN", 640)
    monkeypatch.setattr("rankinite.measures.line_search.search.PAIRS_SAMPLED", 7)
    parts = follow.best_mix(first, second)
    assert whole.course.is_whole
    assert not parts.course.is_whole
    assert (parts.alpha, parts.value) == (whole.alpha, whole.value)


def test_buckets_that_cannot_be_made_fine_enough(monkeypatch):
    monkeypatch.setattr("rankinite.measures.line_search.search.MOST_TAKEN", 64)
    monkeypatch.setattr("rankinite.measures.line_search.search.MOST_ROUNDS", 1)
    rng = np.random.default_rng(9)
    queries = [(*rng.normal(size=(2, 30)), rng.integers(0, 5, 30)) for _ in range(50)]
    parts = following(queries, "NDCG").best_mix(*arrays(queries))
    monkeypatch.undo()
    whole = following(queries, "NDCG").best_mix(*arrays(queries))
    assert (parts.alpha, parts.value) == (whole.alpha, whole.value)


@pytest.mark.parametrize("text", ["NDCG", "ERR", "MAP"])
def test_a_long_query_with_ties(text):
    rng = np.random.default_rng(10)
    labels = rng.integers(0, 5, 1_500)
    query = (*np.round(labels + rng.normal(0, 3, (2, 1_500)), 1), labels)
    follow = following([query], text)
    first, second = arrays([query])
    found = follow.best_mix(first, second)
    some = slice(None, None, 997)
    middles = (found.course.begins[some] + found.course.ends[some]) / 2
    measured = [follow.measure(mixed(first, second, alpha)) for alpha in middles]
    assert found.course.values[some] == pytest.approx(measured, abs=1e-11)


def test_a_long_query():
    """With 2,000 documents, a million crossings; all that is left is to see if it is right."""
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 5, 2_000)
    query = (labels + rng.normal(0, 2, 2_000), labels + rng.normal(0, 3, 2_000), labels)
    follow = following([query], "NDCG")
    first, second = arrays([query])
    found = follow.best_mix(first, second)
    tried = [follow.measure(mixed(first, second, alpha)) for alpha in np.linspace(0, 1, 200)]
    assert found.value >= max(tried)
    assert found.value == follow.measure(mixed(first, second, found.alpha))


@pytest.mark.parametrize("text", ["NDCG", "ERR@3", "NDCG(empty=1)"])
def test_weights_of_queries_are_repeated_queries(text):
    rng = np.random.default_rng(8)
    queries = [(*rng.normal(size=(2, 6)), rng.integers(0, 3, 6)) for _ in range(20)]
    queries[3][2][:] = 0
    times = rng.integers(0, 4, 20)
    copies = [query for query, n in zip(queries, times, strict=True) for _ in range(n)]
    whole = following(copies, text).best_mix(*arrays(copies))
    labels = np.concatenate([query[2] for query in queries]).astype(float)
    offsets = np.arange(0, 121, 6)
    weights = times * 1e-15
    weighted = Following(parse_measure(text), {None: labels}, offsets, TOP, weights)
    found = weighted.best_mix(*arrays(queries))
    assert found.alpha == pytest.approx(whole.alpha, abs=1e-12)
    assert found.value == pytest.approx(whole.value, abs=1e-12)
    assert found.course.values == pytest.approx(whole.course.values, abs=1e-12)
