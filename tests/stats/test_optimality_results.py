"""Local optimality: what is told of it, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import rankinite as rk
from rankinite.core.progress import ProgressBar
from rankinite.stats.optimality import Optimality, SingleWeights, Worst, n_directions
from tests.stats.cases import around, bowl, drawn, one_by_one, seen


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
            "confidence": 0.5,
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


class Told(ProgressBar):
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
            rk.stats.local_optimality(along, 3)

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
            rk.stats.local_optimality(rk.stats.directional_values(bowl, np.zeros(2)), n_weights)

    @pytest.mark.parametrize("n_weights", [1, 3])
    def test_another_number_of_weights(self, n_weights):
        with pytest.raises(rk.UsageError, match=f"2 weights, .* of {n_weights}; give n_weights=2"):
            rk.stats.local_optimality(rk.stats.directional_values(bowl, np.zeros(2)), n_weights)

    def test_no_function(self):
        with pytest.raises(rk.UsageError, match="along is a ndarray; expected a function, such as"):
            rk.stats.local_optimality(np.zeros(3), 3)

    @pytest.mark.parametrize(
        "found", [np.zeros(1), np.zeros((2, 1)), np.array([["a"]]), np.array([[1j]]), [[None]]]
    )
    def test_values_of_another_shape_or_kind(self, found):
        with pytest.raises(rk.UsageError, match=r"expected numbers of the shape \(1, 1\)"):
            rk.stats.local_optimality(lambda directions, steps: found, 3)

    @pytest.mark.parametrize("found", [None, "high", np.zeros(2), [1.0], 1j])
    def test_a_plain_function_gives_a_number(self, found):
        with pytest.raises(
            rk.UsageError, match=r"directional_values: the function gives .* expected a num"
        ):
            around(lambda w: found, np.zeros(2))

    @pytest.mark.parametrize("found", [1, np.float32(1), np.array(1.0), True])
    def test_any_number_is_one(self, found):
        assert around(lambda w: found, np.zeros(2), epsilon=0.5).start == 1.0

    def test_weights_are_a_row(self):
        with pytest.raises(rk.UsageError, match=r"weights have the shape \(2, 2\); expected one"):
            rk.stats.directional_values(bowl, np.zeros((2, 2)))
