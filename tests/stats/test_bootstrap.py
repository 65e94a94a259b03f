"""Bootstrap intervals: hand arithmetic, a naive reference, scipy, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from rankinite.stats.bootstrap import bootstrap
from tests.naive import stats as naive


def test_two_queries_by_hand():
    # Means 0, 1/2 and 1 come with chances 1/4, 1/2, 1/4; the middle half is 1/2 alone, and any
    # share above it reaches both ends.
    intervals = bootstrap(np.array([[0.0, 1.0], [1.0, 1.0]]), level=0.4)
    assert intervals.means.tolist() == [[0.5, 0.5], [1.0, 1.0]]
    assert intervals.differences[0, 1].tolist() == [-0.5, -0.5]
    intervals = bootstrap(np.array([[0.0, 1.0], [1.0, 1.0]]), level=0.6)
    assert intervals.means.tolist() == [[0.0, 1.0], [1.0, 1.0]]
    assert intervals.differences[1, 0].tolist() == [0.0, 1.0]


def test_agrees_with_the_naive_reference():
    values = np.random.default_rng(1).random((3, 20))
    intervals = bootstrap(values, level=0.9, resamples=200, seed=4)
    means = np.array([naive.resampled_means(row, 200, seed=4) for row in values])
    ends = [0.05, 0.95]
    for i in range(3):
        np.testing.assert_allclose(intervals.means[i], np.quantile(means[i], ends), atol=1e-12)
        for j in range(3):
            expected = np.quantile(means[i] - means[j], ends)
            np.testing.assert_allclose(intervals.differences[i, j], expected, atol=1e-12)


def test_agrees_with_scipy():
    rng = np.random.default_rng(2)
    values = rng.beta(0.5, 2.0, (2, 100))
    intervals = bootstrap(values, resamples=10_000)
    for row, ours in (
        (values[0], intervals.means[0]),
        (values[1], intervals.means[1]),
        (values[0] - values[1], intervals.differences[0, 1]),
    ):
        theirs = scipy.stats.bootstrap(
            (row,), np.mean, n_resamples=10_000, method="percentile", random_state=rng
        ).confidence_interval
        # An end is a quantile at 0.025 of 10,000 draws, known to sqrt(0.025 x 0.975 / 10000) /
        # density; for a normal density there, 0.0584 / error: 0.027 errors; two such, five times.
        error = row.std() / np.sqrt(100)
        np.testing.assert_allclose(ours, theirs, atol=5 * np.sqrt(2) * 0.027 * error)


def test_intervals_hold_the_truth_as_often_as_they_say():
    # 300 experiments: the number that hold the true mean of 1/5 is binomial with mean 270 and
    # deviation 5.2; percentile intervals hold a little less on skewed values.
    values = np.random.default_rng(3).beta(0.5, 2.0, (300, 1, 200))
    ends = bootstrap(values, level=0.9, resamples=500).means[:, 0]
    holding = ((ends[:, 0] <= 0.2) & (ends[:, 1] >= 0.2)).sum()
    assert 270 - 5 * 5.2 < holding < 270 + 4 * 5.2


def test_differences_mirror_and_equal_systems_have_none():
    values = np.random.default_rng(4).random((2, 3, 30))
    values[:, 2] = values[:, 0]
    intervals = bootstrap(values, resamples=100)
    assert intervals.differences.shape == (2, 3, 3, 2)
    mirrored = -intervals.differences.transpose(0, 2, 1, 3)[..., ::-1]
    assert (intervals.differences == mirrored).all()
    assert (intervals.differences[:, 0, 2] == 0).all()
    assert (intervals.differences[:, [0, 1, 2], [0, 1, 2]] == 0).all()


def test_measures_are_resampled_alike_and_apart():
    values = np.random.default_rng(5).random((2, 3, 30))
    together = bootstrap(values * np.array([1.0, 1e250])[:, None, None], resamples=100)
    alone = bootstrap(values[0], resamples=100)
    assert together.means[0].tobytes() == alone.means.tobytes()
    np.testing.assert_allclose(together.means[1] / 1e250, bootstrap(values[1], resamples=100).means)


def test_one_query_and_seeds():
    assert bootstrap(np.array([[0.25], [0.5]])).means.tolist() == [[0.25, 0.25], [0.5, 0.5]]
    values = np.random.default_rng(6).random((2, 30))
    means = [bootstrap(values, resamples=99, seed=seed).means.tolist() for seed in (0, 0, 1)]
    assert means[0] == means[1] != means[2]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_a_larger_level_holds_more(level):
    values = np.random.default_rng(7).random((2, 50))
    inner, outer = (bootstrap(values, level=x, resamples=500).means for x in (level, 0.99))
    assert (outer[:, 0] < inner[:, 0]).all()
    assert (outer[:, 1] > inner[:, 1]).all()
