"""The best of a measure along a line of scores agrees with trying every gap between crossings."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import DataError
from rankinite.measures import parse_measure
from rankinite.measures.line_search import LineOptimum, MeasureAlongLine
from rankinite.measures.score_line import mixed
from tests.naive import line_search as naive_line_search

TEXTS = ["NDCG", "NDCG@2", "ERR", "ERR@3", "MAP", "MAP@2", "MRR", "MRR@2", "DCG@3", "P@2", "P"]
TEXTS += ["pFound@3", "NDCG(empty=1)", "ERR(top_grade=5)", "Recall@2", "Hit@2", "RBP"]
TEXTS += ["RBP(p=0.5)@3", "NDCG(gain=[0,1,1,5,6])@3", "Judged@2"]
TOP = 4.0


def measure_along(queries: list[naive_line_search.Query], text: str) -> MeasureAlongLine:
    labels = np.concatenate([np.asarray(labels, float) for _, _, labels in queries])
    sizes = [len(labels) for _, _, labels in queries]
    offsets = np.append(0, np.cumsum(sizes))
    return MeasureAlongLine(parse_measure(text), {None: labels}, offsets, TOP)


def arrays(queries: list[naive_line_search.Query]) -> tuple[np.ndarray, np.ndarray]:
    first = np.concatenate([np.asarray(scores, float) for scores, _, _ in queries])
    return first, np.concatenate([np.asarray(scores, float) for _, scores, _ in queries])


def check_against_trying(
    optimum: LineOptimum,
    queries: list[naive_line_search.Query],
    text: str,
    line: naive_line_search.Line,
    low,
    high,
) -> None:
    """Compare the whole course, the best value and the ends with the obvious."""
    measure = parse_measure(text)
    tried = naive_line_search.course(queries, measure, TOP, line, Fraction(low), Fraction(high))
    best = max(value for _, _, value in tried)
    ends = [
        naive_line_search.value_at(queries, measure, TOP, line, Fraction(end))
        for end in (low, high)
    ]
    assert optimum.at_ends == pytest.approx(ends, abs=1e-12)
    assert optimum.value == pytest.approx(max(best, *ends), abs=1e-12)
    assert optimum.course.is_whole
    middles = [float((begin + end) / 2) for begin, end, _ in tried]
    at = np.searchsorted(optimum.course.ends, middles)
    assert optimum.course.values[at] == pytest.approx([value for _, _, value in tried], abs=1e-12)
    assert optimum.course.begins[0] == low
    assert optimum.course.ends[-1] == high


@st.composite
def some_queries(draw: st.DrawFn) -> list[naive_line_search.Query]:
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
    optimum = measure_along(queries, text).best_mix(*arrays(queries), whole=True)
    check_against_trying(optimum, queries, text, naive_line_search.mixed, 0, 1)


BOUNDS = [(0, 1), (0, 4), (0, 0.5), (0.5, 8), (-2, 2), (0, 1e15), (0.125, 1)]


@settings(max_examples=200, deadline=None)
@given(some_queries(), st.sampled_from(TEXTS), st.sampled_from(BOUNDS))
def test_steps_agree_with_trying_every_gap(queries, text, bounds):
    optimum = measure_along(queries, text).best_step(*arrays(queries), *bounds, whole=True)
    check_against_trying(optimum, queries, text, naive_line_search.added, *bounds)


@settings(max_examples=100, deadline=None)
@given(some_queries(), st.sampled_from(TEXTS), st.sampled_from([(0, 1), (0, 4), (0, 0.5)]))
def test_steps_without_peaks_are_as_good(queries, text, bounds):
    along = measure_along(queries, text)
    with_peaks, without = (
        along.best_step(*arrays(queries), *bounds, with_peaks=peaks) for peaks in (True, False)
    )
    assert without.value == pytest.approx(with_peaks.value, abs=1e-12)
    assert without.peak is None


@settings(max_examples=100, deadline=None)
@given(some_queries(), st.sampled_from(TEXTS))
def test_a_peak_is_a_point_that_beats_all_gaps(queries, text):
    measure = parse_measure(text)
    optimum = measure_along(queries, text).best_mix(*arrays(queries))
    points = set().union(
        *(
            naive_line_search.crossings(q, naive_line_search.mixed, Fraction(0), Fraction(1))
            for q in queries
        )
    )
    values = [
        naive_line_search.value_at(queries, measure, TOP, naive_line_search.mixed, point)
        for point in points
    ]
    best = max(values, default=0.0)
    if best > optimum.value + 1e-9:
        assert optimum.peak is not None
        assert optimum.peak.value == pytest.approx(best, abs=1e-12)
        at = naive_line_search.value_at(
            queries,
            measure,
            TOP,
            naive_line_search.mixed,
            min(points, key=lambda p: abs(p - Fraction(optimum.peak.alpha))),
        )
        assert at == pytest.approx(best, abs=1e-12)
    else:
        assert optimum.peak is None or optimum.peak.value <= best + 1e-9


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
    along = measure_along(queries, text)
    first, second = arrays(queries)
    optimum = along.best_mix(first, second, whole=True)
    middles = (optimum.course.begins + optimum.course.ends) / 2
    measured = [along.mean(mixed(first, second, alpha)) for alpha in middles]
    assert optimum.course.values == pytest.approx(measured, abs=1e-12)
    assert optimum.value == pytest.approx(max(*measured, *optimum.at_ends), abs=1e-12)
    assert optimum.interval[0] <= optimum.alpha <= optimum.interval[1]
    crossings = set().union(
        *(
            naive_line_search.crossings(q, naive_line_search.mixed, Fraction(0), Fraction(1))
            for q in queries
        )
    )
    inside = [c for c in crossings if optimum.interval[0] + 1e-9 < c < optimum.interval[1] - 1e-9]
    values = [along.mean(mixed(first, second, float(c) + 1e-10)) for c in inside]
    assert values == pytest.approx([optimum.value] * len(inside), abs=1e-12)


@pytest.mark.parametrize("text", TEXTS)
def test_hundreds_of_random_cases(text):
    """Grids make ties at the ends, equal lines and common crossings; others are as they come."""
    rng = np.random.default_rng(len(text))
    for case in range(80):
        step = (0.5, 1.0, 1e-9)[case % 3]
        queries = []
        for n in rng.integers(1, 9, 3):
            first, second = np.round(rng.normal(size=(2, n)) / step) * step
            queries.append((first, second, rng.integers(0, 5, n)))
        queries[0][2][0] = 3
        along = measure_along(queries, text)
        first, second = arrays(queries)
        crossed = set().union(*(float_crossings(*query[:2]) for query in queries))
        edges = np.array([0.0, *sorted(crossed), 1.0])
        edges = edges[np.append(True, np.diff(edges) > 1e-11)]
        middles = (edges[:-1] + edges[1:]) / 2
        tried = [along.mean(mixed(first, second, alpha)) for alpha in middles]
        optimum = along.best_mix(first, second)
        assert optimum.value == pytest.approx(max(*tried, *optimum.at_ends), abs=1e-12)
        at = np.searchsorted(optimum.course.ends, middles)
        assert optimum.course.values[at] == pytest.approx(tried, abs=1e-12)
        assert optimum.value == along.mean(mixed(first, second, optimum.alpha))


def float_crossings(first: np.ndarray, second: np.ndarray) -> list[float]:
    """Return where two documents cross, strictly between 0 and 1."""
    ahead, then = (scores[:, None] - scores for scores in (first, second))
    cross = ahead * then < 0
    return list((ahead[cross] / (ahead[cross] - then[cross])).tolist())


def test_an_isolated_crossing_is_reported_and_not_chosen():
    """At 0.5 all three tie: NDCG is 1/3 (1 + 1/log2 3 + 1/2) of the gain, elsewhere 1/log2 3."""
    query = ([2, 1, 0], [0, 1, 2], [0, 4, 0])
    optimum = measure_along([query], "NDCG").best_mix(*arrays([query]))
    elsewhere = 1 / np.log2(3)
    assert optimum.value == pytest.approx(elsewhere)
    assert optimum.course.values == pytest.approx([elsewhere] * 2)
    assert optimum.peak is not None
    assert optimum.peak.alpha == 0.5
    assert optimum.peak.value == pytest.approx((1 + elsewhere + 0.5) / 3)


def test_without_a_crossing_a_step_is_one():
    query = ([2, 1, 0], [2, 1, 0], [2, 1, 0])
    along = measure_along([query], "NDCG")
    assert along.best_step(*arrays([query]), 0, 100).alpha == 1.0
    assert along.best_step(*arrays([query]), 2, 100).alpha == 2.0
    assert along.best_mix(*arrays([query])).alpha == 0.5


@pytest.mark.parametrize("bounds", [(0.2, 0.9), (0.3, 0.9), (0.7, 2.9)])
def test_the_bounds_are_the_users(bounds):
    """Both tie at the upper bound only, and nowhere is the second one above."""
    low, high = bounds
    query = ([high, 0], [0, 1], [0, 1])
    optimum = measure_along([query], "MRR").best_step(*arrays([query]), low, high)
    assert (optimum.alpha, optimum.value, optimum.at_ends) == (high, 0.75, (0.5, 0.75))
    assert (optimum.course.begins[0], optimum.course.ends[-1]) == bounds


def test_without_a_crossing_a_bound_at_which_documents_tie_is_not_taken():
    """At 0 the first query ties, at 1/2 the second; in between all is well."""
    queries = [([0, 0], [1, 0], [1, 0]), ([1, 0], [0, 2], [1, 0])]
    optimum = measure_along(queries, "MRR").best_step(*arrays(queries), 0, 0.5)
    assert (optimum.value, optimum.interval) == (1.0, (0.0, 0.5))
    assert 0 < optimum.alpha < 0.5


@pytest.mark.parametrize(
    ("scale", "form"),
    [(1.0, "mix"), (1e-14, "mix"), (1e9, "mix"), (1e-14, "step"), (1e-100, "step"), (1e14, "step")],
)
def test_scales_that_differ(scale, form):
    """The first document is above the others for a between 0.5 and 0.7 only."""
    first, second, labels = np.array([0, 1, -1.4]), np.array([2.0, 0, 4]), [1, 0, 0]
    query = (scale * first, second, labels)
    along = measure_along([query], "MRR")
    if form == "step":
        optimum = along.best_step(*arrays([query]), 0, 1e15)
        assert optimum.interval == pytest.approx((0.5 * scale, 0.7 * scale))
    else:
        optimum = along.best_mix(*arrays([query]))
    assert optimum.value == 1.0
    assert optimum.peak is None


def test_a_direction_that_is_lost_in_rounding():
    query = ([1e100, 0], [0, 1], [1, 0])
    optimum = measure_along([query], "MRR").best_step(*arrays([query]), 0.1, 5)
    assert (optimum.alpha, optimum.value, optimum.interval) == (1.0, 1.0, (0.1, 5.0))


def test_scores_that_are_too_large_are_refused():
    query = ([1e300, 0], [0, 1], [0, 1])
    with pytest.raises(DataError, match="they reach 1e\\+300"):
        measure_along([query], "MRR").best_mix(*arrays([query]))


def test_an_end_wins_only_if_it_is_better():
    """All tie at 0, which is worth 3/4 in MRR; in between and at 1 the wrong one is first."""
    query = ([0, 0], [1, 0], [0, 1])
    optimum = measure_along([query], "MRR").best_mix(*arrays([query]))
    assert (optimum.alpha, optimum.interval, optimum.value) == (0.0, (0.0, 0.0), 0.75)
    assert optimum.at_ends == (0.75, 0.5)


@pytest.mark.parametrize("text", ["NDCG", "ERR", "MAP"])
def test_buckets_do_not_change_the_answer(text, monkeypatch):
    rng = np.random.default_rng(5)
    queries = [(*rng.normal(size=(2, 30)), rng.integers(0, 5, 30)) for _ in range(150)]
    along = measure_along(queries, text)
    whole = along.best_mix(*arrays(queries), whole=True)
    monkeypatch.setattr("rankinite.measures.line_search.MOST_CHANGES", 300)
    monkeypatch.setattr("rankinite.measures.line_search.PAIRS_SAMPLED", 5_000)
    parts = along.best_mix(*arrays(queries))
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
    along = measure_along(queries, "NDCG")
    whole = along.best_mix(first, second)
    monkeypatch.setattr("rankinite.measures.line_search.MOST_CHANGES", 640)
    monkeypatch.setattr("rankinite.measures.line_search.PAIRS_SAMPLED", 7)
    parts = along.best_mix(first, second)
    assert whole.course.is_whole
    assert not parts.course.is_whole
    assert (parts.alpha, parts.value) == (whole.alpha, whole.value)


def test_buckets_that_cannot_be_made_fine_enough(monkeypatch):
    monkeypatch.setattr("rankinite.measures.line_search.MOST_CHANGES", 64)
    monkeypatch.setattr("rankinite.measures.line_search.MOST_REFINEMENTS", 1)
    rng = np.random.default_rng(9)
    queries = [(*rng.normal(size=(2, 30)), rng.integers(0, 5, 30)) for _ in range(50)]
    parts = measure_along(queries, "NDCG").best_mix(*arrays(queries))
    monkeypatch.undo()
    whole = measure_along(queries, "NDCG").best_mix(*arrays(queries))
    assert (parts.alpha, parts.value) == (whole.alpha, whole.value)


@pytest.mark.parametrize("text", ["NDCG", "ERR", "MAP"])
def test_a_long_query_with_ties(text):
    rng = np.random.default_rng(10)
    labels = rng.integers(0, 5, 1_500)
    query = (*np.round(labels + rng.normal(0, 3, (2, 1_500)), 1), labels)
    along = measure_along([query], text)
    first, second = arrays([query])
    optimum = along.best_mix(first, second)
    some = slice(None, None, 997)
    middles = (optimum.course.begins[some] + optimum.course.ends[some]) / 2
    measured = [along.mean(mixed(first, second, alpha)) for alpha in middles]
    assert optimum.course.values[some] == pytest.approx(measured, abs=1e-11)


def test_a_long_query():
    """With 2,000 documents, a million crossings; all that is left is to see if it is right."""
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 5, 2_000)
    query = (labels + rng.normal(0, 2, 2_000), labels + rng.normal(0, 3, 2_000), labels)
    along = measure_along([query], "NDCG")
    first, second = arrays([query])
    optimum = along.best_mix(first, second)
    tried = [along.mean(mixed(first, second, alpha)) for alpha in np.linspace(0, 1, 200)]
    assert optimum.value >= max(tried)
    assert optimum.value == along.mean(mixed(first, second, optimum.alpha))


@pytest.mark.parametrize("text", ["NDCG", "ERR@3", "NDCG(empty=1)"])
def test_weights_of_queries_are_repeated_queries(text):
    rng = np.random.default_rng(8)
    queries = [(*rng.normal(size=(2, 6)), rng.integers(0, 3, 6)) for _ in range(20)]
    queries[3][2][:] = 0
    times = rng.integers(0, 4, 20)
    copies = [query for query, n in zip(queries, times, strict=True) for _ in range(n)]
    whole = measure_along(copies, text).best_mix(*arrays(copies))
    labels = np.concatenate([query[2] for query in queries]).astype(float)
    offsets = np.arange(0, 121, 6)
    weights = times * 1e-15
    weighted = MeasureAlongLine(parse_measure(text), {None: labels}, offsets, TOP, weights)
    optimum = weighted.best_mix(*arrays(queries))
    assert optimum.alpha == pytest.approx(whole.alpha, abs=1e-12)
    assert optimum.value == pytest.approx(whole.value, abs=1e-12)
    assert optimum.course.values == pytest.approx(whole.course.values, abs=1e-12)
