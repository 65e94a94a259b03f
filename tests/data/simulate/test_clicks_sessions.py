"""Sessions of single users, who examine a document by its position and click it by its grade."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk

GRADED = rk.polynomials(30, part="train", n_features=5)


def test_a_session_shows_ten_documents_from_the_first_position_on():
    log = rk.click_sessions(GRADED, sessions=3)
    assert log.qids[:4].tolist() == ["1~1", "1~2", "1~3", "2~1"]
    assert (log.sizes == 10).all()
    assert log.labels["position"].reshape(-1, 10).tolist() == [list(range(1, 11))] * 90
    assert set(log.y) == {0.0, 1.0}
    assert log.top_grade == 1.0
    # Every document is one of its query, once.
    for session in log[:6]:
        rows = session.rows.tolist()
        assert len(set(rows)) == 10
        query = int(session.qids[0].partition("~")[0]) - 1
        assert set(rows) <= set(range(*GRADED.offsets[query : query + 2]))
    np.testing.assert_array_equal(log.labels["grade"], GRADED.y[log.rows])


def test_short_queries_show_what_they_have():
    data = rk.RankingData(X=[[0.5], [0.1], [0.9]], y=[0, 1, 2], qid=[7, 7, 8])
    log = rk.click_sessions(data, sessions=2)
    assert log.qids.tolist() == ["7~1", "7~2", "8~1", "8~2"]
    assert log.sizes.tolist() == [2, 2, 1, 1]


def test_rates_of_clicks_are_those_of_the_model():
    """By position and grade: k^-0.5 (0.2 + 0.8 (2^grade - 1) / 16)."""
    log = rk.click_sessions(GRADED, sessions=400, exponent=0.5, slip=0.2, page_noise=5.0)
    position, grade = log.labels["position"], log.labels["grade"]
    np.testing.assert_allclose(log.labels["propensity"], position**-0.5)
    for k in (1, 3, 10):
        for y in (0, 2):
            chosen = (position == k) & (grade == y)
            expected = k**-0.5 * (0.2 + 0.8 * (2.0**y - 1.0) / 16.0)
            deviation = np.sqrt(expected * (1.0 - expected) / chosen.sum())
            assert chosen.sum() > 500
            assert abs(log.y[chosen].mean() - expected) < 5.0 * deviation


def test_pages_follow_the_scores():
    scores = np.arange(GRADED.n_docs)[::-1]
    log = rk.click_sessions(GRADED, scores=scores, page_noise=0.0)
    first = GRADED.offsets[:-1, np.newaxis] + np.arange(10)
    np.testing.assert_array_equal(log.rows, first.ravel())


def test_the_same_seed_gives_the_same_clicks():
    logs = [rk.click_sessions(GRADED, sessions=2, seed=seed) for seed in (1, 1, 2)]
    assert logs[0].equals(logs[1])
    assert not logs[0].equals(logs[2])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sessions": 0}, "sessions must be a whole number of at least 1"),
        ({"exponent": -1.0}, "exponent must be a finite number, at least 0"),
        ({"slip": 1.5}, "slip must be a finite number, at least 0 and at most 1"),
        ({"page_noise": -1.0}, "page_noise must be a finite number, at least 0"),
    ],
)
def test_options_that_are_refused(options, sentence):
    with pytest.raises(rk.UsageError, match=f"click_sessions: {sentence}"):
        rk.click_sessions(GRADED, **options)


def test_documents_without_a_grade_are_refused():
    y = np.where(np.arange(GRADED.n_docs) == 3, np.nan, GRADED.y)
    data = GRADED.with_labels({"other": GRADED.y}).replace(y=y)
    with pytest.raises(rk.DataError, match="click_sessions: document 3 has no label"):
        rk.click_sessions(data)
