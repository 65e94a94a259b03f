"""The best mix of two rankers: what it gives, what it says of bad input, and how it is drawn."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import DataError, UsageError
from rankinite.measures import line_search
from tests.ensembles.cases import members
from tests.rankers.cases import TRAIN, VALID

QUERY = rk.RankingData(X=np.zeros((3, 1)), y=[0, 2, 1], qid=[1, 1, 1])
# The first document crosses the second at 1/3 and the third at 2/3.
A, B = [3.0, 2.0, 1.0], [0.0, 2.0, 1.0]


def test_hand_arithmetic():
    mix = rk.best_mix(A, B, QUERY, "NDCG")
    ideal = 3 + 1 / np.log2(3)
    at_first, between = (3 / np.log2(3) + 1 / 2) / ideal, (3 + 1 / 2) / ideal
    assert mix.course.begins == pytest.approx([0, 1 / 3, 2 / 3])
    assert mix.course.ends == pytest.approx([1 / 3, 2 / 3, 1])
    assert mix.course.values == pytest.approx([at_first, between, 1.0])
    assert mix.course.is_whole
    assert mix.alpha == pytest.approx(5 / 6)
    assert mix.interval == pytest.approx((2 / 3, 1))
    assert mix.at_ends == pytest.approx((at_first, 1.0))
    assert (mix.measure, mix.form, mix.peak) == ("NDCG", "convex", None)


def test_the_additive_form():
    """The first document is above the second until a = 1/2, and above the third until a = 2."""
    mix = rk.best_mix(A, B, QUERY, "MRR(relevant=2)", form="additive", bounds=(0, 4))
    assert mix.course.begins == pytest.approx([0, 0.5])
    assert mix.course.values == pytest.approx([0.5, 1.0])
    assert mix.alpha == pytest.approx(2.25)
    assert mix.scores(A, B) == pytest.approx(np.add(A, np.multiply(2.25, B)))


@pytest.mark.parametrize("measure", ["NDCG@10", "ERR", "MAP(relevant=2)", "MRR(relevant=2)@5"])
@pytest.mark.parametrize("form", ["convex", "additive"])
def test_the_value_is_what_evaluate_says(measure, form):
    first, second, _ = members()
    mix = rk.best_mix(first, second, VALID, measure, form=form)
    scores = mix.scores(first.predict(VALID), second.predict(VALID))
    assert mix.value == pytest.approx(rk.evaluate(scores, VALID, measure).mean[measure], abs=1e-12)
    assert mix.value >= max(mix.at_ends)
    assert mix.interval[0] <= mix.alpha <= mix.interval[1]


def test_rankers_and_their_scores_are_the_same():
    first, second, _ = members()
    by_scores = rk.best_mix(first.predict(TRAIN), second.predict(TRAIN), TRAIN)
    mix = rk.best_mix(first, second, TRAIN)
    assert (mix.alpha, mix.value) == (by_scores.alpha, by_scores.value)


def test_a_drawing(tmp_path):
    rk.best_mix(A, B, QUERY).draw(tmp_path / "mix.png")
    assert (tmp_path / "mix.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"a": [1.0, 2.0]}, DataError, "a has the shape \\(2,\\).* 3 documents"),
        ({"b": [1.0, np.nan, 2.0]}, DataError, "b has nan for document 1"),
        ({"b": "b.scores"}, UsageError, "b is a str; expected a fitted ranker"),
        ({"a": rk.MART()}, UsageError, "a, a MART, is not fitted yet"),
        ({"a": rk.MART}, UsageError, "expected a fitted ranker"),
        ({"data": [[1.0]]}, UsageError, "RankingData"),
        ({"measure": "NDGC"}, UsageError, "NDGC"),
        ({"measure": "NDCG,ERR"}, UsageError, "2 measures; give one"),
        ({"measure": "CNDCG[clicks]"}, UsageError, "no label source 'clicks'"),
        ({"form": "linear"}, UsageError, "one of 'convex', 'additive'"),
        ({"bounds": (0, 1)}, UsageError, "bounds are for the additive form"),
        ({"form": "additive", "bounds": (2, 1)}, UsageError, "the smaller first; got \\(2, 1\\)"),
        ({"form": "additive", "bounds": (1, 1)}, UsageError, "the smaller first"),
        ({"form": "additive", "bounds": 5}, UsageError, "two numbers"),
    ],
)
def test_bad_input(changes, error, words):
    arguments = {"a": A, "b": B, "data": QUERY} | changes
    with pytest.raises(error, match=words):
        rk.best_mix(arguments.pop("a"), arguments.pop("b"), arguments.pop("data"), **arguments)


def test_labels_that_no_query_counts_for():
    irrelevant = QUERY.with_labels({"others": [0, 0, 0]})
    with pytest.raises(DataError, match="none has a relevant document"):
        rk.best_mix(A, B, irrelevant, "NDCG[others]")


def test_scores_of_different_lengths_are_not_mixed():
    with pytest.raises(DataError, match=r"b has the shape \(1,\).*2 documents"):
        rk.best_mix(A, B, QUERY).scores([1.0, 2.0], [1.0])


def test_the_number_of_threads_does_not_matter(on_threads, monkeypatch):
    monkeypatch.setattr(line_search, "MOST_CHANGES", 20_000)
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 60, size=400)
    y = rng.integers(0, 5, sizes.sum())
    data = rk.RankingData(np.zeros((len(y), 1), np.float32), y, group_sizes=sizes, top_grade=4)
    a, b = y + rng.normal(0, 3, (2, len(y)))
    b[::7] = np.round(b[::7])

    def numbers():
        numbers_found = []
        for measure in ("NDCG", "ERR", "MAP"):
            mix = rk.best_mix(a, b, data, measure)
            assert not mix.course.is_whole
            numbers_found += [
                mix.alpha,
                mix.value,
                *mix.interval,
                *mix.course.begins,
                *mix.course.values,
            ]
        return np.array(numbers_found).tobytes()

    assert len(set(on_threads(numbers).values())) == 1
