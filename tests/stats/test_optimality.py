"""Local optimality: functions whose rising directions theory counts, and what is told of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import rankinite as rk
from rankinite.core.progress import Task
from rankinite.stats.optimality import BOTH_WAYS, STEPS, n_directions
from rankinite.stats.optimality_moves import Optimality, SingleWeights, Worst

# 459 directions that rise with chance 1/2: the deviation of their number is sqrt(459) / 2 = 10.7.
HALF, FIVE_DEVIATIONS = 459 / 2, 5 * math.sqrt(459) / 2


def bowl(weights):
    """A quadratic with its only maximum, 3, at 0."""
    return 3 - (weights**2 * np.arange(1, len(weights) + 1)).sum()


def around(value, weights, **options):
    weights = np.array(weights, np.float64)
    return rk.local_optimality(rk.along_of(value, weights), len(weights), **options)


def one_by_one(value, weights, **options):
    weights = np.array(weights, np.float64)
    return rk.single_weights(rk.along_of(value, weights), len(weights), **options)


def drawn(n_weights, seed=0, **options):
    """Return the directions that a function is asked for."""
    asked = []

    def along(directions, steps):
        asked.append(directions.copy())
        return np.zeros((len(directions), len(steps)))

    rk.local_optimality(along, n_weights, steps=[1.0], seed=seed, **options)
    assert (asked[0] == np.zeros((1, n_weights))).all()
    return np.concatenate(asked[1:])


def seen(rising, tying, falling, delta=0.01):
    """Return what so many directions show that end 1 above, at and 1 below a start of 2."""
    values = np.array([3.0] * rising + [2.0] * tying + [1.0] * falling)[:, None]
    return Optimality(2.0, np.array([0.5]), values, 4, delta, 0.01, 0)


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

        rk.local_optimality(along, 2, block=200)
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
        along = rk.along_of(value, weights)
        weights[:] = 9
        assert rk.local_optimality(along, 2).is_optimum


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


class TestBound:
    """Upper limits by Clopper and Pearson; a two-sided 95 % has 2.5 % above its upper end."""

    @pytest.mark.parametrize(
        ("rising", "n", "delta", "expected"),
        [
            (0, 10, 0.025, 0.3085),
            (1, 10, 0.025, 0.4450),
            (3, 10, 0.025, 0.6525),
            (5, 10, 0.025, 0.8129),
            (9, 10, 0.025, 0.9975),
            (2, 20, 0.025, 0.3170),
            (10, 100, 0.025, 0.1762),
            (0, 10, 0.05, 0.2589),
        ],
    )
    def test_published_tables(self, rising, n, delta, expected):
        found = seen(rising, 0, n - rising, delta).rise_rate_bound
        assert found == pytest.approx(expected, abs=5.1e-5)

    def test_none_of_459(self):
        # (1 - p)^459 = 0.01
        bound = seen(0, 0, 459).rise_rate_bound
        assert bound == pytest.approx(1 - 0.01 ** (1 / 459), rel=1e-12)
        assert bound < 0.01

    @given(st.integers(0, 60), st.integers(0, 60), st.floats(1e-6, 0.5))
    def test_the_chance_of_so_few_is_delta_at_the_bound(self, reaching, falling, delta):
        if falling == 0:
            falling = 1
        bound = seen(reaching, 0, falling, delta).rise_rate_bound
        chance = scipy.stats.binom.cdf(reaching, reaching + falling, bound)
        assert chance == pytest.approx(delta, rel=1e-6)

    def test_ties_count(self):
        assert seen(3, 4, 50).rise_rate_bound == seen(7, 0, 50).rise_rate_bound
        assert seen(3, 0, 0).rise_rate_bound == seen(0, 3, 0).rise_rate_bound == 1

    @given(st.floats(0.001, 0.2), st.floats(0.001, 0.9))
    def test_an_optimum_has_a_bound_of_epsilon_or_less(self, delta, epsilon):
        n = n_directions(delta, epsilon)
        assert seen(0, 0, n, delta).rise_rate_bound <= epsilon * (1 + 1e-9)


class TestTold:
    def test_what_counts(self):
        found = seen(2, 3, 4)
        assert (found.n_rising, found.n_tying, found.n_directions) == (2, 3, 9)
        assert found.rising.tolist() == [True] * 2 + [False] * 7
        assert found.tying.tolist() == [False] * 2 + [True] * 3 + [False] * 4
        assert not found.is_optimum
        assert not seen(0, 1, 4).is_optimum
        assert not seen(1, 0, 4).is_optimum
        assert seen(0, 0, 5).is_optimum
        assert found.confidence == 0.99
        assert found.worst == Worst(0, 0.5, 1.0)

    def test_a_rising_direction_that_also_ties_is_rising(self):
        found = Optimality(
            2.0, np.array([0.5, 1.0]), np.array([[2.0, 3.0], [1.0, 2.0]]), 4, 0.01, 0.01, 0
        )
        assert found.rising.tolist() == [True, False]
        assert found.tying.tolist() == [False, True]

    @pytest.mark.parametrize(
        ("found", "expected"),
        [
            (
                seen(0, 0, 459),
                "None of 459 directions reaches the start's 2: with 99% confidence at most 1% "
                "reach it. The nearest, direction 0, is 1 below at step 0.5.",
            ),
            (
                seen(17, 2, 440),
                "17 of 459 directions rise above the start's 2, and 2 more tie. The largest rise "
                "is 1, of direction 0 at step 0.5.",
            ),
            (
                seen(1, 1, 457),
                "1 of 459 directions rises above the start's 2, and 1 more ties. The largest rise "
                "is 1, of direction 0 at step 0.5.",
            ),
            # By the table of 1 of 10 at 2.5 %: 44.5 %, here rounded up.
            (
                seen(0, 1, 9, delta=0.025),
                "None of 10 directions rises above the start's 2, but 1 ties with it: with 97.5% "
                "confidence at most 44.6% reach it.",
            ),
        ],
    )
    def test_sentences(self, found, expected):
        assert str(found) == expected

    @pytest.mark.parametrize(
        ("values", "n_weights", "expected"),
        [
            (
                [[0.5], [0.75]],
                2,
                "Moved alone, none of 2 weights reaches the start's 1. The nearest, weight 7, is "
                "0.25 below at step -0.5.",
            ),
            (
                [[0.5], [1.0]],
                9,
                "Moved alone, none of 2 weights drawn from 9 rises above the start's 1, but 1 ties "
                "with it.",
            ),
            (
                [[1.0], [1.5]],
                2,
                "Moved alone, 1 of 2 weights rises above the start's 1, and 1 more ties. The "
                "largest rise is 0.5, of weight 7 at step -0.5.",
            ),
        ],
    )
    def test_sentences_of_weights(self, values, n_weights, expected):
        found = SingleWeights(
            1.0, np.array([-0.5]), np.array(values), n_weights, weights=np.array([3, 7])
        )
        assert str(found) == expected

    def test_json(self):
        found = around(
            bowl, np.zeros(2), delta=np.float64(0.5), epsilon=0.5, steps=[1], seed=np.int64(4)
        )
        (value,) = found.values[0]
        assert json.loads(json.dumps(found.as_json())) == {
            "n_directions": 1,
            "delta": 0.5,
            "epsilon": 0.5,
            "seed": 4,
            "rise_rate_bound": 0.5,
            "start": 3.0,
            "is_optimum": True,
            "n_weights": 2,
            "n_rising": 0,
            "n_tying": 0,
            "worst": {"number": 0, "step": 1.0, "gain": value - 3},
            "steps": [1.0],
            "values": [[value]],
        }
        found = one_by_one(bowl, np.zeros(2), steps=[-1.0])
        assert json.loads(json.dumps(found.as_json())) == {
            "weights": [0, 1],
            "start": 3.0,
            "is_optimum": True,
            "n_weights": 2,
            "n_rising": 0,
            "n_tying": 0,
            "worst": {"number": 0, "step": -1.0, "gain": -1.0},
            "steps": [-1.0],
            "values": [[2.0], [1.0]],
        }


class Told(Task):
    """Progress that keeps what it is told."""

    def __init__(self):
        self.told = []

    def start(self, name, total, unit):
        self.told.append((total, unit))
        return self

    def advance(self, amount):
        self.told.append(amount)

    def end(self):
        self.told.append("end")


class TestProgress:
    def test_directions(self):
        progress = Told()
        around(bowl, np.zeros(2), block=200, progress=progress)
        assert progress.told == [(459, "directions"), 200, 200, 59, "end"]

    def test_weights(self):
        progress = Told()
        one_by_one(bowl, np.zeros(5), chosen=3, block=2, progress=progress)
        assert progress.told == [(3, "weights"), 2, 1, "end"]

    def test_it_ends_when_the_function_fails(self):
        progress = Told()
        with pytest.raises(ZeroDivisionError):
            around(lambda w: 1 / float(w @ w == 0), np.zeros(2), progress=progress)
        assert progress.told == [(459, "directions"), "end"]


class TestErrors:
    def test_not_a_number_along_a_direction(self):
        # Of the directions asked for, the 21st gives nan at the second step.
        def along(directions, steps):
            values = np.zeros((len(directions), len(steps)))
            values[directions[:, 0] == wanted, 1:] = math.nan
            return values

        wanted = drawn(3)[20, 0]
        problem = "local_optimality: the value of direction 20 at step 0.2 is nan; expected finite"
        with pytest.raises(rk.DataError, match=problem):
            rk.local_optimality(along, 3)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_not_a_number_for_a_weight(self, value):
        problem = f"single_weights: the value of weight 2 at step 0.5 is {value}; expected finite"
        with pytest.raises(rk.DataError, match=problem):
            one_by_one(lambda w: value if w[2] > 0.45 else 0.0, np.zeros(4), block=1)

    def test_not_a_number_at_the_start(self):
        with pytest.raises(rk.DataError, match="the value at the start is nan; expected a finite"):
            around(lambda w: math.nan, np.zeros(2))

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"steps": []}, "steps must be one or more numbers in a list; got"),
            ({"steps": 0.5}, "steps must be one or more numbers in a list; got 0.5"),
            ({"steps": [[0.5]]}, "steps must be"),
            ({"steps": [0.5, 0.0]}, "every step must be a finite number, above 0"),
            ({"steps": [math.nan]}, "every step must be"),
            ({"steps": ["0.5"]}, "every step must be"),
            ({"seed": -1}, "seed must be"),
            ({"block": 0}, "block must be a whole number of at least 1; got 0"),
        ],
    )
    @pytest.mark.parametrize("test", [around, one_by_one])
    def test_bad_options(self, test, options, problem):
        with pytest.raises(rk.UsageError, match=problem):
            test(bowl, [0.0, 0.0], **options)

    def test_random_directions_go_one_way(self):
        with pytest.raises(rk.UsageError, match=r"local_optimality: every step .* got -0\.1"):
            around(bowl, [0.0], steps=[0.1, -0.1])

    @pytest.mark.parametrize("chosen", [0, 1.5, True])
    def test_bad_chosen(self, chosen):
        with pytest.raises(rk.UsageError, match="single_weights: chosen must be a whole number"):
            one_by_one(bowl, [0.0], chosen=chosen)

    @pytest.mark.parametrize("n_weights", [0, -1, 2.0])
    def test_bad_number_of_weights(self, n_weights):
        with pytest.raises(rk.UsageError, match="n_weights must be a whole number of at least 1"):
            rk.local_optimality(rk.along_of(bowl, np.zeros(2)), n_weights)

    @pytest.mark.parametrize("n_weights", [1, 3])
    def test_another_number_of_weights(self, n_weights):
        with pytest.raises(rk.UsageError, match=f"2 weights, .* of {n_weights}; give n_weights=2"):
            rk.local_optimality(rk.along_of(bowl, np.zeros(2)), n_weights)

    def test_no_function(self):
        with pytest.raises(rk.UsageError, match="along is a ndarray; expected a function, such as"):
            rk.local_optimality(np.zeros(3), 3)

    @pytest.mark.parametrize(
        "found", [np.zeros(1), np.zeros((2, 1)), np.array([["a"]]), np.array([[1j]]), [[None]]]
    )
    def test_values_of_another_shape_or_kind(self, found):
        with pytest.raises(rk.UsageError, match=r"expected numbers of the shape \(1, 1\)"):
            rk.local_optimality(lambda directions, steps: found, 3)

    @pytest.mark.parametrize("found", [None, "high", np.zeros(2), [1.0], 1j])
    def test_a_plain_function_gives_a_number(self, found):
        with pytest.raises(rk.UsageError, match=r"along_of: the function gives .* expected a num"):
            around(lambda w: found, np.zeros(2))

    @pytest.mark.parametrize("found", [1, np.float32(1), np.array(1.0), True])
    def test_any_number_is_one(self, found):
        assert around(lambda w: found, np.zeros(2), epsilon=0.5).start == 1.0

    def test_weights_are_a_row(self):
        with pytest.raises(rk.UsageError, match=r"weights have the shape \(2, 2\); expected one"):
            rk.along_of(bowl, np.zeros((2, 2)))
