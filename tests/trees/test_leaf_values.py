"""Values of leaves under limits: monotone, limited, smoothed; and which features share a path."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from rankinite.trees.grower import Grower
from rankinite.trees.kernels.leaf_values import monotone_values
from tests.naive import leaf_values as naive
from tests.naive.trees import leaf_of
from tests.trees.cases import bin_all, boost, grow_tree, growth, mixed_features

# Kernels' tests also run with the JIT off, where they must be small.
SCALE = 1 if numba.config.DISABLE_JIT else 10

pytestmark = pytest.mark.kernel


def in_order(order, weights, targets):
    n = len(targets)
    below = np.zeros((n, n), np.bool_)
    for a, b in order:
        below[a, b] = True
    values = np.array(targets, np.float64)
    monotone_values(below, np.array(weights, np.float64), values)
    assert all(values[a] <= values[b] for a, b in order)
    return values


@st.composite
def orders(draw):
    n = draw(st.integers(1, 7))
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    order = {pair for pair in pairs if draw(st.booleans())}
    place = draw(st.permutations(range(n)))
    weights = draw(st.lists(st.sampled_from([1.0, 2.0, 0.5, 1e-9]), min_size=n, max_size=n))
    targets = draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n))
    return {(place[a], place[b]) for a, b in order}, weights, targets


@settings(deadline=None, max_examples=20 + 20 * SCALE)
@given(problem=orders())
def test_values_in_any_order_are_the_nearest(problem):
    expected = naive.isotonic(*problem)
    np.testing.assert_allclose(in_order(*problem), expected, rtol=1e-9, atol=1e-9)


def test_values_in_a_row_are_those_of_isotonic_regression():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n = 10 + 9 * SCALE
        targets, weights = rng.normal(size=n) + np.arange(n) / n, rng.exponential(size=n)
        values = in_order({(a, a + 1) for a in range(n - 1)}, weights, targets)
        expected = IsotonicRegression().fit(np.arange(n), targets, weights).predict(np.arange(n))
        np.testing.assert_allclose(values, expected, rtol=1e-10)


def test_large_values_and_small_weights_keep_the_order():
    values = in_order({(0, 1), (1, 2)}, [1e-300, 1e300, 1.0], [1e120, -1e120, 3.0])
    assert values.tolist() == [-1e120, -1e120, 3.0]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("limits", [{}, {"max_delta_step": 0.7, "path_smooth": 2.0}])
def test_every_tree_is_monotone_for_all_inputs(symmetric, limits):
    """Raising a constrained feature on a grid of all thresholds never moves a value against it."""
    n_raised = 0
    for seed in range(2 * SCALE):
        rng = np.random.default_rng(seed)
        X = mixed_features(rng, 60, 4)
        directions = tuple(rng.choice([-1, 0, 1], 4).tolist())
        options = growth(8, symmetric=symmetric, directions=directions, **limits)
        # The target goes with and against the directions.
        target = np.nan_to_num(X) @ rng.normal(size=4) + rng.normal(size=60)
        trees, _ = boost(Grower(bin_all(X), None, options), target, 2)
        for tree in trees:
            pairs = naive.next_inputs(tree, 4, directions)
            for low, high in pairs[:: max(1, len(pairs) // 200)]:
                a, b = leaf_of(tree, low), leaf_of(tree, high)
                assert tree.value[a] <= tree.value[b]
                n_raised += a != b
    assert n_raised > 20 * SCALE


def test_a_monotone_tree_by_hand():
    """Gradients -3, 1, 5, 2 along one feature, which must not fall.

    The last cut would fall from 5 to 2, so leaves are {-3}, {1}, {5, 2}. Where a feature must not
    rise, every cut is against it: the first leaves 3 documents with a mean of 8 / 3.
    """
    X, gradients = [[0.0], [1.0], [2.0], [3.0]], [-3.0, 1.0, 5.0, 2.0]
    assert grow_tree(X, gradients, growth(4)).value.tolist() == [-3.0, 1.0, 5.0, 2.0]
    rising = grow_tree(X, gradients, growth(4, directions=(1,)))
    assert rising.value.tolist() == [-3.0, 1.0, 3.5]
    falling = grow_tree(X, gradients, growth(4, directions=(-1,)))
    assert falling.value.tolist() == [1.25]
    # Missing values have no order, and may be split off on any side.
    X[3][0] = math.nan
    apart = grow_tree(X, gradients, growth(2, directions=(-1,)))
    assert apart.threshold.tolist() == [math.inf]
    assert apart.value.tolist() == [1.0, 2.0]


def test_a_level_leaves_out_leaves_that_would_violate_a_constraint():
    """The second feature must not fall: -9, -9 | 4 rises, 7, 7 | 6 falls and stays whole: 20 / 3.

    Sums are -14 and 20 of three documents each: the root's cut by the first feature gains
    14^2 / 3 + 20^2 / 3 - 6^2 / 6 = 192.7, that by the second 10^2 / 2 + 4^2 / 4 - 6 = 48.
    """
    X = [[0, 0], [0, 0], [1, 0], [1, 0], [0, 1], [1, 1]]
    gradients = [-9.0, -9.0, 7.0, 7.0, 4.0, 6.0]
    for symmetric in (False, True):
        tree = grow_tree(X, gradients, growth(4, directions=(0, 1), symmetric=symmetric))
        assert tree.feature.tolist() == [0, 1]
        assert tree.value.tolist() == pytest.approx([-9.0, 4.0, 20 / 3])


def test_leaves_on_other_paths_are_put_in_order_by_hand():
    """The root is split by the constrained feature, and its left side by the other one.

    Left are six documents of -9 and one of 7, which the other feature tells apart; right are six
    of 5. The cut by the constrained feature gains 47^2 / 7 + 30^2 / 6 - 17^2 / 13 = 443.3, that by
    the other 39^2 / 9 + 22^2 / 4 - 22.2 = 267.8. Then 7 is below 5 in the order of inputs, but not
    in that of values: weighted by documents, they meet at (7 + 6 * 5) / 7.
    """
    X = [[0, 0]] * 6 + [[1, 0]] + [[0, 1], [1, 1]] * 3
    gradients = [-9.0] * 6 + [7.0] + [5.0] * 6
    assert grow_tree(X, gradients, growth(3)).value.tolist() == [-9.0, 7.0, 5.0]
    tree = grow_tree(X, gradients, growth(3, directions=(0, 1)))
    assert tree.feature.tolist() == [1, 0]
    assert tree.value.tolist() == pytest.approx([-9.0, 37 / 7, 37 / 7])


def test_the_largest_step_by_hand():
    """Gradients -1, 0, 9, 11 in two leaves: means -0.5 and 10, of which 10 becomes 2.

    The root's mean 4.75 becomes 2 as well: it has 2 * 19 * 2 - 4 * 2^2 = 60. The leaves have
    2 * (-1) * (-0.5) - 2 * 0.25 = 0.5 and 2 * 20 * 2 - 2 * 2^2 = 72, so the split gains 12.5.
    """
    X, gradients = [[0.0], [0.0], [1.0], [1.0]], [-1.0, 0.0, 9.0, 11.0]
    tree = grow_tree(X, gradients, growth(2, max_delta_step=2.0))
    assert tree.value.tolist() == [-0.5, 2.0]
    assert tree.gain.tolist() == pytest.approx([12.5])
    # Two leaves that would both have the largest value are one.
    tree = grow_tree(X, [8.0, 8.0, 9.0, 11.0], growth(2, max_delta_step=2.0))
    assert tree.value.tolist() == [2.0]


def test_path_smoothing_by_hand():
    """Gradients 0, 0, 3 | 12, with path_smooth 1: the root has 15 / 4 = 3.75.

    The right leaf, of one document, has (1 * 12 + 1 * 3.75) / 2 = 7.875. The left node, of three,
    has (3 * 1 + 3.75) / 4 = 1.6875; its leaves of two and one have (2 * 0 + 1.6875) / 3 = 0.5625
    and (3 + 1.6875) / 2 = 2.34375.
    """
    X, gradients = [[0.0], [0.0], [1.0], [2.0]], [0.0, 0.0, 3.0, 12.0]
    tree = grow_tree(X, gradients, growth(3, path_smooth=1.0))
    assert tree.threshold.tolist() == [1.5, 0.5]
    assert tree.value.tolist() == pytest.approx([0.5625, 2.34375, 7.875])
    # A node has 2 G v - H v^2; the root has 15^2 / 4.
    left, right = 2 * 3 * 1.6875 - 3 * 1.6875**2, 2 * 12 * 7.875 - 7.875**2
    assert tree.gain[0] == pytest.approx(left + right - 56.25)
    # A single leaf has no parent.
    assert grow_tree(X, gradients, growth(1, path_smooth=1.0)).value.tolist() == [3.75]


@pytest.mark.parametrize("symmetric", [False, True])
def test_features_of_different_groups_share_no_path(symmetric):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (120, 4)).astype(np.float32)
    gradients = X @ [5.0, 4.0, 3.0, 2.0] + X[:, 0] * X[:, 3] + rng.normal(size=120)
    groups = ((0, 1), (1, 2))
    tree = grow_tree(X, gradients, growth(16, symmetric=symmetric, groups=groups))
    # The first feature gains most, and only the second may follow.
    assert tree.feature[0] == 0
    assert set(tree.feature.tolist()) == {0, 1}
    # A feature in no group has paths of its own.
    alone = grow_tree(X, X @ [1.0, 1.0, 1.0, 9.0], growth(16, symmetric=symmetric, groups=groups))
    assert alone.feature.tolist() == [3]
