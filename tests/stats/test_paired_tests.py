"""The paired tests: hand arithmetic, scipy, naive references, and invariants."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.stats import paired_tests as randomisation
from rankinite.stats.bootstrap import bootstrap
from rankinite.stats.paired_tests import SMALLEST_P, randomisation_test, t_test
from tests.naive import stats as naive

TESTS = {
    "t": t_test,
    "randomisation": lambda values: randomisation_test(values, permutations=500),
}
every_test = pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)


def skewed(rng, *shape):
    """Per-query values as measures give them: many zeros, many ones, the rest skewed."""
    values = rng.beta(0.5, 2.0, shape)
    values[rng.random(shape) < 0.2] = 0.0
    values[rng.random(shape) < 0.1] = 1.0
    return values


def scipy_randomisation(values, others):
    """Return the exact p-value: flipping a difference is exchanging the two values of a query."""
    return scipy.stats.permutation_test(
        (values, others),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    ).pvalue


tenths = st.integers(0, 10).map(lambda x: x / 10)
# One column a query: as many as differ between systems are few, so that ties are many.
matrices = st.integers(2, 4).flatmap(
    lambda k: st.lists(st.lists(tenths, min_size=k, max_size=k), min_size=1, max_size=9)
).map(lambda rows: np.array(rows).T)  # fmt: skip


def test_t_by_hand():
    # Differences 2, 0, 1, 1: mean 1, variance (1 + 1 + 0 + 0) / 3, standard error sqrt(2/3) / 2.
    # t = 2 sqrt(3/2) = sqrt(6), and with 3 degrees of freedom the distribution function is
    # F(t) = 1/2 + (t / sqrt(3) / (1 + t^2 / 3) + atan(t / sqrt(3))) / pi.
    values = np.array([[3.0, 1.0, 2.0, 5.0], [1.0, 1.0, 1.0, 4.0]])
    x = math.sqrt(6 / 3)
    above = 1 / 2 - (x / (1 + x * x) + math.atan(x)) / math.pi
    assert t_test(values)[0, 1] == pytest.approx(2 * above, rel=1e-12)


def test_randomisation_by_hand():
    # Differences 2, 0, 1, 1 sum to 4. Of 16 patterns, the sign of 0 does not matter, and of the
    # other 8 two reach 4 or -4: all signs alike.
    values = np.array([[3.0, 1.0, 2.0, 5.0], [1.0, 1.0, 1.0, 4.0]])
    assert randomisation_test(values)[0, 1] == 2 / 8
    # Differences 2, 0, 1, -1 sum to 2; 2 + 1 - 1, 2 - 1 + 1, 2 + 1 + 1 do, and their mirrors.
    values[1, 3] = 6.0
    assert randomisation_test(values)[0, 1] == 6 / 8


@pytest.mark.parametrize("n_queries", [2, 3, 30, 1000])
def test_t_agrees_with_scipy(n_queries):
    values = skewed(np.random.default_rng(n_queries), 4, n_queries) + 0.01 * np.arange(4)[:, None]
    p = t_test(values)
    for i in range(4):
        for j in range(4):
            expected = 1.0 if i == j else scipy.stats.ttest_rel(values[i], values[j]).pvalue
            assert p[i, j] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_queries", [2, 5, 8, 9, 12])
def test_randomisation_agrees_with_scipy(n_queries):
    values = skewed(np.random.default_rng(n_queries), 3, n_queries)
    p = randomisation_test(values)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        expected = scipy_randomisation(values[i], values[j])
        assert p[i, j] == pytest.approx(expected, rel=1e-12)


@given(matrices)
@settings(max_examples=60, deadline=None)
def test_enumeration_is_the_naive_one_with_all_its_ties(values):
    p = randomisation_test(values)
    whole = [[Fraction(round(10 * x), 10) for x in row] for row in values.tolist()]
    for i in range(len(values)):
        for j in range(i):
            assert p[i, j] == p[j, i] == naive.exact_randomisation(whole[i], whole[j])


@given(matrices)
@settings(max_examples=60, deadline=None)
def test_t_is_the_naive_one(values):
    p = t_test(values)
    n_queries = values.shape[1]
    for i in range(len(values)):
        for j in range(i):
            whole = [round(10 * (a - b)) for a, b in zip(values[i], values[j], strict=True)]
            if sum(whole) == 0 or n_queries == 1:
                assert p[i, j] == pytest.approx(1.0, abs=1e-12)
            elif len(set(whole)) == 1:
                assert p[i, j] == SMALLEST_P
            else:
                distance = abs(naive.t_statistic(whole, [0] * n_queries))
                expected = 2 * scipy.stats.t.sf(distance, n_queries - 1)
                assert p[i, j] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_queries", [17, 24, 61])
def test_drawn_patterns_are_the_naive_ones(n_queries, monkeypatch):
    monkeypatch.setattr(randomisation, "BLOCK", 48)
    values = np.random.default_rng(3).integers(0, 10, (3, n_queries)) / 10
    values[1:] += 0.05
    p = randomisation_test(values, permutations=100, seed=5)
    whole = [[Fraction(round(100 * x), 100) for x in row] for row in values.tolist()]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert p[i, j] == naive.drawn_randomisation(whole[i], whole[j], 100, seed=5, block=48)


@pytest.mark.parametrize("block", [1, 7, 100, 1 << 20])
def test_all_patterns_are_all_whatever_the_block(block, monkeypatch):
    values = skewed(np.random.default_rng(2), 3, 11)
    expected = randomisation_test(values)
    monkeypatch.setattr(randomisation, "BLOCK", block)
    assert randomisation_test(values).tobytes() == expected.tobytes()


def test_drawn_patterns_come_near_all_patterns():
    values = skewed(np.random.default_rng(8), 4, 16)
    exact = randomisation_test(values, permutations=2**16)
    drawn = randomisation_test(values, permutations=2**16 - 1, seed=1)
    assert exact.tolist() != drawn.tolist()
    # Five standard deviations of a share of 65,535 draws are at most 5 / 2 / sqrt(65535) = 0.0098.
    np.testing.assert_allclose(drawn, exact, atol=0.0098)


@every_test
@given(values=matrices)
@settings(max_examples=40, deadline=None)
def test_symmetric_and_between_0_and_1(test, values):
    p = test(values)
    assert (p == p.T).all()
    assert (np.diag(p) == 1).all()
    assert (p > 0).all()
    assert (p <= 1).all()


@every_test
@given(values=matrices, seed=st.integers(0, 99), shift=tenths, factor=st.sampled_from([-3, 0.25]))
@settings(max_examples=40, deadline=None)
def test_order_of_systems_scale_and_shift_do_not_matter(test, values, seed, shift, factor):
    p = test(values)
    order = np.random.default_rng(seed).permutation(len(values))
    np.testing.assert_allclose(test(values[order]), p[np.ix_(order, order)], rtol=1e-9)
    np.testing.assert_allclose(test(values * factor), p, rtol=1e-9)
    np.testing.assert_allclose(test(values + shift), p, rtol=1e-9)


@given(values=matrices, seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_order_of_queries_does_not_matter(values, seed):
    order = np.random.default_rng(seed).permutation(values.shape[1])
    np.testing.assert_allclose(t_test(values[:, order]), t_test(values), rtol=1e-9)
    assert (randomisation_test(values[:, order]) == randomisation_test(values)).all()


@every_test
def test_measures_are_tested_apart_however_large_others_are(test):
    values = skewed(np.random.default_rng(2), 2, 3, 40)
    together = test(values * np.array([1.0, 2.0**800])[:, None, None])
    assert together.shape == (2, 3, 3)
    for k in (0, 1):
        assert together[k].tobytes() == test(values[k]).tobytes()


@every_test
def test_no_difference_and_one_query(test):
    rng = np.random.default_rng(4)
    row = rng.random(50)
    assert (test(np.stack([row, row])) == 1).all()
    assert (test(np.zeros((2, 50))) == 1).all()
    assert (test(rng.random((3, 1))) == 1).all()


@every_test
def test_noise_of_rounding_is_no_difference(test):
    rows = np.full((2, 60), 0.1 + 0.2)
    rows[1] = 0.3
    assert (rows[0] != rows[1]).all()
    assert (test(rows) == 1).all()


@pytest.mark.parametrize("huge", [2.0**50, 1e18, 1e300])
def test_a_huge_value_that_systems_share_changes_nothing(huge):
    # As DCG gives for a label of 50: 2^50 - 1. The query is a tie; its size is of no interest.
    rng = np.random.default_rng(12)
    values = skewed(rng, 3, 12) + 0.02 * np.arange(3)[:, None]
    values[:, 5] = 0.0
    with_huge = values.copy()
    with_huge[:, 5] = huge
    p, exact = t_test(with_huge), randomisation_test(with_huge)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        expected = scipy.stats.ttest_rel(values[i], values[j]).pvalue
        assert expected < 0.9
        assert p[i, j] == pytest.approx(expected, rel=1e-9)
        assert exact[i, j] == scipy_randomisation(values[i], values[j])


@every_test
@pytest.mark.parametrize("odd", [0, 1, 2])
def test_a_huge_value_that_one_system_lacks_changes_nothing_for_the_others(test, odd):
    values = skewed(np.random.default_rng(13), 3, 40)
    values[:, 7] = 2.0**50
    values[odd, 7] = 0.0
    first, second = (k for k in range(3) if k != odd)
    together, alone = test(values), test(values[[first, second]])
    assert together[first, second] == alone[0, 1] < 0.99
    # One difference that outweighs all others has either sign: its pattern is always as far.
    assert together[odd, first] == pytest.approx(test(values[[odd, first]])[0, 1], rel=1e-9)


@every_test
@given(values=matrices)
@settings(max_examples=40, deadline=None)
def test_ties_of_tenths_are_ties_beside_large_numbers(test, values):
    # 1000.3 - 1000 is 0.3 but for 4e-14, which is far more than 0.3 itself is off.
    np.testing.assert_allclose(test(values + 1000), test(values), rtol=1e-9)


def test_differences_that_are_alike_but_for_rounding_are_one_difference():
    first = np.array([0.1, 0.2, 0.7, 1000.3])
    values = np.stack([first, first + 0.1])
    assert len(set((values[1] - values[0]).tolist())) > 1
    assert t_test(values)[0, 1] == SMALLEST_P
    # A tie is no such difference. Differences 0, 1, 1, 1: mean 3/4, variance 1/4, so t is
    # 3/4 / sqrt(1/4 / 4) = 3.
    values[1, 0] = values[0, 0]
    assert t_test(values)[0, 1] == pytest.approx(2 * scipy.stats.t.sf(3, 3), rel=1e-9)


@every_test
def test_rounding_is_that_of_the_query(test):
    # Differences of 1e-16 are real for values of 1e-15, and none for values of 1.
    small = np.full((2, 9), 1e-15)
    small[1] += 1e-16 * np.arange(9)
    assert test(small)[0, 1] < 0.05
    assert (test(small + 1.0) == 1).all()


def test_p_is_never_0():
    values = np.random.default_rng(5).random(400)
    assert t_test(np.stack([values, values + 0.5]))[0, 1] == SMALLEST_P
    assert t_test(np.array([[1.0, 2.0], [2.0, 3.0]]))[0, 1] == SMALLEST_P
    almost = np.stack([values, values + 0.5 + 1e-9 * np.arange(400)])
    assert t_test(almost)[0, 1] == SMALLEST_P
    assert randomisation_test(almost, permutations=999)[0, 1] == 1 / 1000


def test_ties_of_tenths_are_ties():
    # 0.1 + 0.2 is not 0.3 for a computer. Differences are 0.3, 0.1, 0.2: the sum of 0.6 is
    # reached by two patterns; with -0.3, 0.1, 0.2 it is 0 and all eight patterns reach that.
    zero = [0.0, 0.0, 0.0]
    assert randomisation_test(np.array([[0.3, 0.1, 0.2], zero]))[0, 1] == 2 / 8
    assert randomisation_test(np.array([[-0.3, 0.1, 0.2], zero]))[0, 1] == 1.0


def test_false_alarms_are_as_rare_as_the_level_says():
    # 2,000 experiments in which two systems differ by chance only, on 200 queries: the number of
    # p-values up to 0.05 is binomial with mean 100 and deviation sqrt(2000 x 0.05 x 0.95) = 9.7.
    rng = np.random.default_rng(6)
    values = skewed(rng, 2000, 2, 200)
    alarms = {
        "t": (t_test(values)[:, 0, 1] <= 0.05).sum(),
        "randomisation": (randomisation_test(values, permutations=999)[:, 0, 1] <= 0.05).sum(),
    }
    for name, count in alarms.items():
        assert abs(count - 100) < 4 * 9.75, name


def test_another_seed_draws_other_patterns():
    values = skewed(np.random.default_rng(7), 2, 100)
    p_values = [randomisation_test(values, permutations=999, seed=s)[0, 1] for s in (0, 0, 1)]
    assert p_values[0] == p_values[1] != p_values[2]


def test_the_same_bytes_for_any_number_of_threads(on_threads):
    values = np.random.default_rng(0).beta(0.5, 2.0, (2, 5, 3000))

    def bytes_of_all():
        resampled = bootstrap(values, resamples=300)
        tests = [t_test(values), randomisation_test(values, permutations=20_000)]
        parts = (*tests, resampled.means, resampled.differences)
        return b"".join(part.tobytes() for part in parts)

    assert len(set(on_threads(bytes_of_all).values())) == 1
