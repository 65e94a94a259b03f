"""Local optimality: functions whose rising directions theory counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import rankinite as rk
from rankinite.stats.optimality import BOTH_WAYS, STEPS, n_directions
from tests.stats.cases import FIVE_DEVIATIONS, HALF, around, bowl, drawn, one_by_one


class TestNumberOfDirections:
    def test_paper(self):
        assert n_directions() == 459

    @pytest.mark.parametrize(
        ("delta", "epsilon", "expected"),
        [
            (0.05, 0.05, 59),  # Wilks' numbers for one-sided tolerance limits
            (0.05, 0.01, 299),
            (0.01, 0.05, 90),
            (0.05, 0.10, 29),
            (0.5, 0.5, 1),
            (0.125, 0.5, 3),  # 1/2 x 1/2 x 1/2
            (0.81, 0.1, 2),  # 0.9 x 0.9
            (0.729, 0.1, 3),
            (0.01, 0.9, 2),  # 0.1 x 0.1
            (0.001, 0.9, 3),
            (0.0001, 0.99, 2),
            (0.99, 0.5, 1),
        ],
    )
    def test_known_numbers(self, delta, epsilon, expected):
        assert n_directions(delta, epsilon) == expected

    @given(st.floats(1e-9, 0.999), st.floats(1e-4, 0.999))
    def test_it_is_the_smallest_number_that_misses_rarely_enough(self, delta, epsilon):
        n = n_directions(delta, epsilon)
        assert n >= 1
        assert (1 - epsilon) ** n <= delta * (1 + 1e-9)
        assert (1 - epsilon) ** (n - 1) > delta * (1 - 1e-9)

    @pytest.mark.parametrize(
        ("delta", "epsilon", "problem"),
        [
            (0.0, 0.01, "delta must be a finite number, above 0 and below 1; got 0.0"),
            (1.0, 0.01, "delta must be"),
            (math.nan, 0.01, "delta must be"),
            (0.01, 0.0, "epsilon must be"),
            (0.01, 1.0, "epsilon must be"),
            (0.01, "0.01", "epsilon must be"),
        ],
    )
    def test_bad_chances(self, delta, epsilon, problem):
        with pytest.raises(rk.UsageError, match=problem):
            n_directions(delta, epsilon)
        with pytest.raises(rk.UsageError, match=problem):
            around(bowl, [0.0], delta=delta, epsilon=epsilon)


class TestDirections:
    def test_they_are_of_length_1_and_all_differ(self):
        directions = drawn(7)
        assert directions.shape == (459, 7)
        np.testing.assert_allclose((directions**2).sum(axis=1), 1, rtol=1e-14)
        assert len(np.unique(directions[:, 0])) == 459

    def test_moments(self):
        # A coordinate has mean 0 and square 1/n; two coordinates' product has mean 0 and square
        # 1 / (n (n + 2)), and a coordinate's square has variance 3 / (n (n + 2)) - 1 / n^2.
        n, k = 5, 4603
        directions = drawn(n, delta=0.01, epsilon=0.001)
        assert len(directions) == k
        assert np.abs(directions.mean(axis=0)).max() < 5 * math.sqrt(1 / n / k)
        products = directions.T @ directions / k
        off = products[~np.eye(n, dtype=bool)]
        assert np.abs(off).max() < 5 * math.sqrt(1 / (n * (n + 2)) / k)
        on = np.diag(products) - 1 / n
        assert np.abs(on).max() < 5 * math.sqrt((3 / (n * (n + 2)) - 1 / n**2) / k)

    def test_on_a_ball_every_slice_has_its_share(self):
        # Archimedes: slices of a sphere of equal height have equal area.
        directions = drawn(3, delta=0.01, epsilon=0.001)
        for axis in directions.T:
            counts = np.histogram(axis, bins=10, range=(-1, 1))[0]
            expected = len(axis) / 10
            distance = ((counts - expected) ** 2 / expected).sum()
            assert distance < scipy.stats.chi2.ppf(1 - 1e-4, df=9)

    def test_on_a_circle_every_angle_has_its_share(self):
        angles = np.arctan2(*drawn(2, delta=0.01, epsilon=0.001).T)
        counts = np.histogram(angles, bins=12, range=(-math.pi, math.pi))[0]
        expected = len(angles) / 12
        distance = ((counts - expected) ** 2 / expected).sum()
        assert distance < scipy.stats.chi2.ppf(1 - 1e-4, df=11)

    @pytest.mark.parametrize("block", [1, 7, 459, 1000])
    def test_blocks_do_not_matter(self, block):
        assert drawn(6, block=block).tobytes() == drawn(6).tobytes()
        usual, other = around(bowl, np.ones(6)), around(bowl, np.ones(6), block=block)
        assert usual.values.tobytes() == other.values.tobytes()
        assert usual.as_json() == other.as_json()

    def test_blocks_are_no_larger_than_asked_for(self):
        sizes = []

        def along(directions, steps):
            sizes.append(len(directions))
            return np.zeros((len(directions), len(steps)))

        rk.stats.local_optimality(along, 2, block=200)
        assert sizes == [1, 200, 200, 59]

    def test_seeds(self):
        assert drawn(4, seed=3).tobytes() == drawn(4, seed=3).tobytes()
        assert not np.isin(drawn(4, seed=3), drawn(4, seed=4)).any()

    def test_more_directions_begin_with_the_same(self):
        assert drawn(4, epsilon=0.05).tobytes() == drawn(4)[:90].tobytes()

    def test_they_can_be_drawn_again(self):
        found = around(bowl, np.ones(4), seed=8)
        directions = drawn(4, seed=8)
        for number in (0, 17, 458):
            assert found.direction(number).tobytes() == directions[number].tobytes()
        with pytest.raises(rk.UsageError, match="number must be a whole number from 0 to 458"):
            found.direction(459)


class TestFunctions:
    def test_a_maximum(self):
        found = around(bowl, np.zeros(4))
        assert found.is_optimum
        assert (found.start, found.n_directions, found.n_rising, found.n_tying) == (3, 459, 0, 0)
        assert found.steps.tolist() == list(STEPS)
        assert found.values.shape == (459, 10)
        # The weakest curvature is 1: no value at a step s is above 3 - s^2.
        assert (found.values <= 3 - found.steps**2 + 1e-12).all()
        assert found.worst.step == 0.1
        assert -0.04 < found.worst.gain < -0.01

    def test_the_values_are_those_of_the_function(self):
        found = around(bowl, [0.5, -1.0, 2.0], steps=[0.25, 2.0], seed=5)
        for number in (0, 200):
            for column, step in enumerate((0.25, 2.0)):
                moved = np.array([0.5, -1.0, 2.0]) + step * found.direction(number)
                assert found.values[number, column] == bowl(moved)

    def test_beside_a_maximum_nearly_half_rise(self):
        # -(1 + 2 s x + s^2) is above -1 where x < -s / 2; x is uniform on -1 to 1 in three
        # dimensions, so the smallest step, 0.1, rises with chance 0.95 / 2.
        found = around(lambda w: -(w @ w), [1.0, 0.0, 0.0])
        assert not found.is_optimum
        assert abs(found.n_rising - 0.475 * 459) < FIVE_DEVIATIONS
        expected = [found.direction(k)[0] < -0.05 for k in range(459)]
        assert found.rising.tolist() == expected

    def test_half_of_all_directions_rise_on_a_slope(self):
        found = around(lambda w: w @ np.array([1.0, -2.0, 0.5]), [4.0, 4.0, 4.0])
        assert abs(found.n_rising - HALF) < FIVE_DEVIATIONS
        assert found.n_tying == 0
        # None rises by more than the slope's length, and one of 459 gets near it.
        assert found.worst.step == 1.0
        assert 0.9 * math.sqrt(5.25) < found.worst.gain <= math.sqrt(5.25)

    def test_half_of_all_directions_rise_on_a_saddle(self):
        found = around(lambda w: w[0] ** 2 - w[1] ** 2, [0.0, 0.0])
        assert not found.is_optimum
        assert abs(found.n_rising - HALF) < FIVE_DEVIATIONS
        expected = [abs(x) > abs(y) for x, y in (found.direction(k) for k in range(459))]
        assert found.rising.tolist() == expected

    def test_a_minimum(self):
        found = around(lambda w: w @ w, np.zeros(3))
        assert found.n_rising == 459
        assert found.rise_rate_bound == 1
        assert not found.is_optimum

    def test_a_constant_ties_everywhere(self):
        found = around(lambda w: 0.25, np.zeros(3))
        assert not found.is_optimum
        assert (found.n_rising, found.n_tying, found.rise_rate_bound) == (0, 459, 1)
        assert found.tying.all()
        assert found.worst == (0, 0.1, 0)

    def test_a_plateau_ties_at_its_steps_only(self):
        # Flat up to a distance of 1/4, then lower.
        found = around(lambda w: -float(w @ w > 0.0625), np.zeros(3))
        assert found.n_tying == 459
        assert (found.values == np.where(np.array(STEPS) < 0.25, 0, -1)).all()
        assert around(lambda w: -float(w @ w > 0.0625), np.zeros(3), steps=[0.3]).is_optimum

    def test_a_rise_far_off_is_a_rise(self):
        # A ring at a distance of 0.95 to 1.05 is higher.
        found = around(lambda w: float(0.9 < w @ w < 1.1) - 0.1 * w @ w, np.zeros(3))
        assert found.rising.all()
        assert found.worst.step == 1.0
        assert around(lambda w: float(w @ w > 0.9) - w @ w, np.zeros(3), steps=[0.5]).is_optimum

    def test_one_dimension_has_two_directions(self):
        found = around(lambda w: w[0], [0.0], steps=[1.0])
        assert set(found.values.ravel()) == {-1.0, 1.0}
        assert abs(found.n_rising - HALF) < FIVE_DEVIATIONS

    def test_a_weight_that_does_not_matter_shows_only_by_itself(self):
        # No random direction is exactly along the second weight, so each falls a little.
        value = lambda w: -(w[0] ** 2) - w[2] ** 2  # noqa: E731
        assert around(value, np.zeros(3)).is_optimum
        found = one_by_one(value, np.zeros(3))
        assert not found.is_optimum
        assert found.tying.tolist() == [False, True, False]
        assert found.n_rising == 0

    def test_a_function_that_changes_its_weights_harms_nobody(self):
        def value(weights):
            weights *= 2
            return -(weights @ weights)

        weights = np.zeros(2)
        along = rk.stats.directional_values(value, weights)
        weights[:] = 9
        assert rk.stats.local_optimality(along, 2).is_optimum


class TestSingleWeights:
    def test_a_maximum(self):
        found = one_by_one(bowl, np.zeros(3))
        assert found.is_optimum
        assert found.weights.tolist() == [0, 1, 2]
        assert found.steps.tolist() == list(BOTH_WAYS)
        assert len(BOTH_WAYS) == 20
        expected = 3 - np.arange(1, 4)[:, None] * np.array(BOTH_WAYS) ** 2
        np.testing.assert_allclose(found.values, expected, rtol=1e-14)
        # The nearest is the first weight, by a step of 0.1 either way: 0.01 below.
        number, step, gain = found.worst
        assert (number, abs(step), round(gain, 12)) == (0, 0.1, -0.01)

    @pytest.mark.parametrize("bad", [0, 3, 9])
    @pytest.mark.parametrize("way", [-0.5, 0.5])
    def test_the_one_bad_weight_is_found(self, bad, way):
        best = np.zeros(10)
        best[bad] = way
        found = one_by_one(lambda w: -((w - best) ** 2).sum(), np.zeros(10), block=4)
        assert np.flatnonzero(found.rising).tolist() == [bad]
        assert found.n_tying == 0
        assert found.worst == (bad, way, 0.25)

    def test_one_way_only(self):
        found = one_by_one(lambda w: w.sum(), np.zeros(3), steps=[-0.5, -1])
        assert found.is_optimum
        assert found.values.tolist() == [[-0.5, -1.0]] * 3

    def test_some_weights(self):
        weights = np.arange(1000.0)
        found = one_by_one(lambda w: w @ weights, np.zeros(1000), steps=[1], chosen=50, seed=2)
        assert len(set(found.weights)) == 50
        assert (np.diff(found.weights) > 0).all()
        # The step of 1 shows the weight: row and number belong together.
        assert found.values[:, 0].tolist() == found.weights.tolist()
        assert found.worst.number == found.weights[-1]
        # 50 uniform numbers of 1000: the mean's deviation is sqrt(1000^2 / 12 / 50) = 41.
        assert abs(found.weights.mean() - 499.5) < 5 * 41
        again, other = (
            one_by_one(bowl, np.zeros(1000), steps=[1], chosen=50, seed=seed) for seed in (2, 3)
        )
        assert again.weights.tolist() == found.weights.tolist() != other.weights.tolist()

    @pytest.mark.parametrize("chosen", [3, 4, None])
    def test_no_more_than_there_are(self, chosen):
        assert one_by_one(bowl, np.zeros(3), chosen=chosen).weights.tolist() == [0, 1, 2]
