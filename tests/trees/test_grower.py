"""Grown trees against trying every split, on small data."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.trees import grower as grower_module
from rankinite.trees.forest import Forest
from rankinite.trees.grower import EVERY_DOC, Grower
from tests.naive import trees as naive_trees
from tests.naive.trees import Problem, assert_grown_best_first, assert_grown_by_levels
from tests.trees.cases import (
    bin_all,
    bundled_at_any_size,
    bytes_of,
    grow_tree,
    growth,
    mixed_features,
)

# Kernels' tests also run with the JIT off, where they must be small.
SCALE = 1 if numba.config.DISABLE_JIT else 10

NAN = math.nan


# What rounding to integers may change about a gain; packed hessians leave it fewer bits.
ROUNDING = {"packed": Fraction(1, 10**7), "separate": Fraction(1, 10**12)}


def check(X, gradients, how, hessians=None, split_hessians=None, **options):
    """Grow a tree, check it against trying every split, and its scores against walking the tree.

    If it is grown by hessians, once with packed ones, and once with histograms of their own.
    """
    X = np.asarray(X, np.float32)
    gradients = np.asarray(gradients, np.float64)
    hessians = np.ones(len(X)) if hessians is None else np.asarray(hessians, np.float64)
    if split_hessians is None:
        return check_grown(X, gradients, how, hessians, None, ROUNDING["separate"], **options)
    split_hessians = np.asarray(split_hessians, np.float64)
    with mock.patch.object(grower_module, "MOST_DOCS_WITH_PACKED_HESSIANS", 0):
        rounding = ROUNDING["separate"]
        check_grown(X, gradients, how, hessians, split_hessians, rounding, **options)
    rounding = ROUNDING["packed"]
    return check_grown(X, gradients, how, hessians, split_hessians, rounding, **options)


def check_grown(
    X,
    gradients,
    how,
    hessians,
    split_hessians,
    rounding,
    chosen=EVERY_DOC,
    features=None,
    **options,
):
    arguments = {"split_hessians": split_hessians, "chosen": chosen, "features": features}
    grower = Grower(bin_all(X, **options), None, how)
    tree = grower.grow(gradients, hessians, **arguments)
    with bundled_at_any_size():
        bundled = Grower(bin_all(X, **options), None, how).grow(gradients, hessians, **arguments)
    assert bytes_of([bundled]) == bytes_of([tree])
    problem = Problem(
        X=X,
        gradients=gradients.tolist(),
        hessians=hessians.tolist(),
        split_hessians=None if split_hessians is None else split_hessians.tolist(),
        cuts=[naive_trees.cut_points(x.tolist(), options.get("most_bins", 255)) for x in X.T],
        options=how,
        docs=tuple(np.flatnonzero(chosen).tolist() if len(chosen) else range(len(X))),
        features=tuple(range(X.shape[1]) if features is None else features.tolist()),
        rounding=rounding,
    )
    (assert_grown_by_levels if how.symmetric else assert_grown_best_first)(tree, problem)
    scores = np.zeros(len(X))
    grower.add(tree, scores)
    walked = [tree.value[naive_trees.leaf_of(tree, document)] for document in X]
    assert scores.tolist() == walked
    assert Forest((tree,), np.zeros(1), X.shape[1]).scores(X).tolist() == [walked]
    return tree


values = st.sampled_from([0.0, -0.0, 1.0, 2.0, -3.5, 1e-40, NAN])


@st.composite
def constraints(draw, n_features):
    """Draw options that limit values, features or both; often none."""
    options = {}
    if draw(st.booleans()):
        options["directions"] = tuple(draw(st.sampled_from([-1, 0, 1])) for _ in range(n_features))
    if draw(st.integers(0, 3)) == 0:
        feature = st.integers(0, n_features - 1)
        group = st.lists(feature, min_size=1, max_size=3).map(tuple)
        options["groups"] = tuple(draw(st.lists(group, min_size=1, max_size=2)))
    # Numbers by which no two values of small whole numbers become equal.
    options["max_delta_step"] = draw(st.sampled_from([0.0, 0.0, 0.0, 1.7]))
    options["path_smooth"] = draw(st.sampled_from([0.0, 0.0, 0.0, 1.3]))
    return options


@st.composite
def problems(draw):
    n_docs = draw(st.integers(1, 11))
    n_features = draw(st.integers(1, 3))
    column = st.lists(values, min_size=n_docs, max_size=n_docs)
    columns = [draw(column) for _ in range(n_features)]
    if draw(st.booleans()):
        columns.append(draw(st.sampled_from(columns)))
    gradients = draw(st.lists(st.integers(-9, 9), min_size=n_docs, max_size=n_docs))
    hessians = draw(st.lists(st.integers(0, 3), min_size=n_docs, max_size=n_docs))
    chosen = draw(
        st.just([]) | st.lists(st.booleans(), min_size=n_docs, max_size=n_docs).filter(any)
    )
    how = growth(
        n_leaves=draw(st.integers(1, 7)),
        max_depth=draw(st.sampled_from([None, None, 1, 2, 3])),
        min_docs=draw(st.sampled_from([1, 1, 2, 4])),
        min_gain=draw(st.sampled_from([0.0, 0.0, 1.0, 17.5])),
        criterion=draw(st.sampled_from(["mse", "newton"])),
        step=draw(st.sampled_from(["newton", "gradient"])),
        symmetric=draw(st.booleans()),
        l2_regularization=draw(st.sampled_from([0.0, 0.0, 0.5, 3.0])),
        **draw(constraints(len(columns))),
    )
    return np.array(columns).T, gradients, hessians, np.array(chosen, np.bool_), how


@pytest.mark.kernel
@settings(deadline=None, max_examples=60 + 24 * SCALE)
@given(problem=problems())
def test_any_small_tree_is_the_best(problem):
    X, gradients, hessians, chosen, how = problem
    split_hessians = hessians if how.criterion == "newton" else None
    check(X, gradients, how, hessians, split_hessians, chosen=chosen)


@pytest.mark.kernel
@pytest.mark.parametrize("criterion", ["mse", "newton"])
@pytest.mark.parametrize("step", ["newton", "gradient"])
@pytest.mark.parametrize("most_bins", [255, 4])
@pytest.mark.parametrize("symmetric", [False, True])
def test_trees_of_more_documents_are_the_best(criterion, step, most_bins, symmetric):
    for seed in range(max(1, SCALE // 5)):
        rng = np.random.default_rng(seed)
        n_docs = 12 + 2 * SCALE
        X = mixed_features(rng, n_docs, 10)
        hessians = rng.integers(1, 9, size=n_docs)
        check(
            X,
            rng.integers(-500, 500, size=n_docs),
            growth(
                8 if symmetric else 7,
                criterion=criterion,
                step=step,
                min_docs=int(rng.integers(1, 4)),
                symmetric=symmetric,
                l2_regularization=float(rng.integers(0, 3)),
            ),
            hessians,
            hessians if criterion == "newton" else None,
            chosen=rng.random(n_docs) < 0.8,
            features=np.sort(rng.choice(10, 5, replace=False)) if seed else None,
            most_bins=most_bins,
        )


@pytest.mark.kernel
def test_a_tree_by_hand():
    """Gradients 0, 0, 9 | 3, 3: sums 9 of 3 and 6 of 2; the root's sum is 15 of 5.

    Root: cutting off the 9 gains 9^2 / 1 + 6^2 / 4 - 15^2 / 5 = 45. Then {0, 0} and {3, 3} are
    left of and beside it: splitting them gains 0 + 6^2 / 2 - 6^2 / 4 = 9.
    """
    X = [[1, 0], [2, 0], [3, 0], [1, 1], [2, 1]]
    tree = grow_tree(X, [0, 0, 9, 3, 3], growth(3))
    assert tree.feature.tolist() == [0, 1]
    assert tree.threshold.tolist() == [2.5, 0.5]
    assert tree.gain.tolist() == pytest.approx([45.0, 9.0], rel=1e-12)
    assert tree.docs.tolist() == [5, 4]
    assert tree.value.tolist() == [0.0, 3.0, 9.0]
    assert tree.leaf_docs.tolist() == [2, 2, 1]
    # All went left of 0.5 and right of it alike, and more documents left of 2.5.
    assert tree.missing_left.tolist() == [True, True]


@pytest.mark.kernel
def test_a_symmetric_tree_by_hand():
    """Both halves are split by the second feature, though the third would do for the left one.

    Gradients 0, 8 | 10, 30, with sums 8 and 40, after the root was split by the first feature:
    48^2 / 4 = 576 against 8^2 / 2 + 40^2 / 2 = 832, a gain of 256. The second feature splits both
    halves: 0 + 64 - 32 = 32 and 100 + 900 - 800 = 200. The third splits the left one alone.
    """
    X = [[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 0]]
    tree = grow_tree(X, [0, 8, 10, 30], growth(4, symmetric=True))
    assert tree.feature.tolist() == [0, 1, 1]
    assert tree.gain.tolist() == pytest.approx([256.0, 32.0, 200.0], rel=1e-12)
    assert tree.value.tolist() == [0.0, 8.0, 10.0, 30.0]
    # Three leaves are not four: a level is split whole or not at all.
    assert grow_tree(X, [0, 8, 10, 30], growth(3, symmetric=True)).n_leaves == 2
    # A leaf that would have no document on a side stays whole.
    X = [[0, 0], [0, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 0]]
    tree = grow_tree(X, [0, 0, 4, 4, 30, 30, 30], growth(4, symmetric=True))
    assert tree.feature.tolist() == [0, 1]
    assert tree.value.tolist() == [0.0, 4.0, 30.0]


@pytest.mark.kernel
def test_the_criteria_differ():
    """By count {4} | {4, 0} gains 2.67 and {4, 4} | {0} gains 10.67; by hessian the first wins.

    Hessians 1, 8, 1: 16 / 1 + 16 / 9 - 64 / 10 = 11.4 against 64 / 9 + 0 - 64 / 10 = 0.7.
    """
    X, gradients, hessians = [[1.0], [2.0], [3.0]], np.array([4.0, 4.0, 0.0]), [1.0, 8.0, 1.0]
    assert grow_tree(X, gradients, growth(2)).threshold.tolist() == [2.5]
    newton = grow_tree(X, gradients, growth(2), split_hessians=np.array(hessians))
    assert newton.threshold.tolist() == [1.5]
    assert newton.gain.tolist() == pytest.approx([16 + 16 / 9 - 6.4], rel=1e-7)


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("missing_gradient", "missing_left", "values"),
    [(0.0, True, [0.0, 6.0]), (6.0, False, [0.0, 6.0])],
)
def test_missing_values_learn_their_side(missing_gradient, missing_left, values):
    X = [[1], [1], [NAN], [5], [5]]
    tree = grow_tree(X, [0, 0, missing_gradient, 6, 6], growth(2))
    assert tree.threshold.tolist() == [3.0]
    assert tree.missing_left.tolist() == [missing_left]
    assert tree.value.tolist() == values


@pytest.mark.kernel
@pytest.mark.parametrize(("n_low", "left"), [(3, True), (2, True), (1, False)])
def test_missing_values_that_training_did_not_see_go_with_the_majority(n_low, left):
    X = [[0.0]] * n_low + [[1.0]] * (4 - n_low)
    tree = grow_tree(X, [-1] * n_low + [1] * (4 - n_low), growth(2))
    assert tree.missing_left.tolist() == [left]
    score = Forest((tree,), np.zeros(1), 1).scores(np.array([[NAN]], np.float32))
    assert score.tolist() == [[-1.0 if left else 1.0]]


@pytest.mark.kernel
@pytest.mark.parametrize("n_bins", [2, 254, 255])
def test_missing_against_the_rest(n_bins):
    X = np.repeat(np.append(np.arange(n_bins), NAN), 2)[:, None]
    gradients = np.where(np.isnan(X[:, 0]), 255.0, -1.0)
    tree = grow_tree(X, gradients, growth(2))
    assert tree.threshold.tolist() == [math.inf]
    assert tree.missing_left.tolist() == [False]
    assert tree.value.tolist() == [-1.0, 255.0]
    # Whatever is not missing goes left, also beyond the values that training saw.
    unseen = np.array([[3e38], [-3e38], [NAN]], np.float32)
    scores = Forest((tree,), np.zeros(1), 1).scores(unseen)
    assert scores.tolist() == [[-1.0, -1.0, 255.0]]


@pytest.mark.kernel
def test_growth_stops_at_its_limits():
    rng = np.random.default_rng(0)
    n_docs = 40
    X, gradients = rng.normal(size=(n_docs, 2)), rng.integers(-99, 99, size=n_docs)
    for n_leaves in (1, 2, 3, 9, 40, 300):
        tree = grow_tree(X, gradients, growth(n_leaves))
        assert tree.n_leaves == min(n_leaves, n_docs)
    for max_depth in (1, 2, 3):
        deep = check(X, gradients, growth(40, max_depth=max_depth))
        assert 1 < deep.n_leaves <= 2**max_depth
    for min_docs in (2, 7, 20):
        tree = grow_tree(X, gradients, growth(40, min_docs=min_docs))
        assert min_docs <= tree.leaf_docs.min()
        assert tree.n_leaves > 1
    assert grow_tree(X, gradients, growth(40, min_docs=21)).n_leaves == 1
    assert grow_tree(X, gradients, growth(40, min_docs=1000)).n_leaves == 1
    gains = grow_tree(X, gradients, growth(40)).gain
    some = grow_tree(X, gradients, growth(40, min_gain=float(np.median(gains))))
    assert some.gain.min() > np.median(gains)
    assert grow_tree(X, gradients, growth(40, min_gain=1e9)).n_leaves == 1


@pytest.mark.kernel
def test_only_features_that_take_part_are_split():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 20))
    for features in ([0], [19], [3, 4, 11]):
        tree = grow_tree(X, X @ np.ones(20), growth(8), features=np.array(features))
        assert set(tree.feature.tolist()) <= set(features)
        assert tree.n_leaves == 8


@pytest.mark.kernel
def test_only_chosen_documents_count():
    """The tree of the chosen documents is that of data without the others."""
    rng = np.random.default_rng(2)
    X = rng.integers(5, size=(60, 4)).astype(np.float32)
    gradients = rng.integers(-99, 99, size=60).astype(np.float64)
    chosen = rng.random(60) < 0.5
    assert all(set(X[chosen, j]) == set(X[:, j]) for j in range(4))  # equal cut points
    whole = Grower(bin_all(X), None, growth(6))
    tree = whole.grow(gradients, np.ones(60), chosen=chosen)
    alone = grow_tree(X[chosen], gradients[chosen], growth(6))
    for name in ("feature", "threshold", "missing_left", "first", "right", "docs", "leaf_docs"):
        assert getattr(tree, name).tolist() == getattr(alone, name).tolist()
    assert tree.value.tolist() == alone.value.tolist()
    # The others have a leaf all the same.
    scores = np.zeros(60)
    whole.add(tree, scores)
    assert scores.tolist() == [tree.value[naive_trees.leaf_of(tree, document)] for document in X]


@pytest.mark.kernel
def test_no_document_chosen_is_an_empty_leaf():
    tree = grow_tree([[1.0], [2.0]], [1, -1], growth(2), chosen=np.zeros(2, np.bool_))
    assert tree.value.tolist() == [0.0]
    assert tree.leaf_docs.tolist() == [0]


@pytest.mark.kernel
def test_a_grower_does_not_remember():
    """Trees grown before, of other sizes and criteria, change nothing about the next."""
    rng = np.random.default_rng(3)
    X = mixed_features(rng, 40, 9)
    binned = bin_all(X)
    used = Grower(binned, None, growth(6))
    for _ in range(4):
        gradients, hessians = rng.integers(-9, 9, size=40) * 1.0, rng.integers(1, 4, size=40) * 1.0
        for split_hessians in (None, hessians):
            chosen = rng.random(40) < 0.5
            ours = used.grow(gradients, hessians, split_hessians=split_hessians, chosen=chosen)
            fresh = Grower(binned, None, growth(6))
            theirs = fresh.grow(gradients, hessians, split_hessians=split_hessians, chosen=chosen)
            assert ours.value.tobytes() == theirs.value.tobytes()
            assert ours.gain.tobytes() == theirs.gain.tobytes()
            assert used.leaves.tolist() == fresh.leaves.tolist()


@pytest.mark.kernel
def test_trees_are_added_again_and_elsewhere_as_at_first():
    rng = np.random.default_rng(4)
    X, other = mixed_features(rng, 50, 9), mixed_features(rng, 30, 9)
    binned = bin_all(X)
    grower = Grower(binned, None, growth(7))
    trees = [grower.grow(rng.normal(size=50), np.ones(50)) for _ in range(3)]
    again, elsewhere, scratch = np.zeros(50), np.zeros(30), None
    for tree in (replace(tree, value=tree.value * 0.1) for tree in trees):
        grower.add_again(tree, again)
        scratch = grower.add_elsewhere(tree, binned.columns_of(other), scratch, elsewhere)
    forest = Forest(tuple(replace(tree, value=tree.value * 0.1) for tree in trees), np.zeros(1), 9)
    assert forest.scores(X)[0].tobytes() == again.tobytes()
    assert forest.scores(other)[0].tobytes() == elsewhere.tobytes()


@pytest.mark.kernel
def test_split_hessians_count_as_repeated_documents():
    """A document of hessian h is the same as h documents, for splits and for values."""
    rng = np.random.default_rng(5)
    n_docs = 40
    X = rng.integers(12, size=(n_docs, 5)).astype(np.float32)
    target = rng.normal(size=n_docs)
    times = rng.integers(1, 5, size=n_docs)
    hessians = times.astype(np.float64)
    weighed = Grower(bin_all(X), None, growth(8)).grow(
        hessians * target, hessians, split_hessians=hessians
    )
    repeated = grow_tree(np.repeat(X, times, axis=0), np.repeat(target, times), growth(8))
    for name in ("feature", "threshold", "first", "right"):
        assert getattr(weighed, name).tolist() == getattr(repeated, name).tolist()
    np.testing.assert_allclose(weighed.value, repeated.value, rtol=1e-9)
    # Gains are made of packed integers, in which hessians leave fewer bits to gradients.
    np.testing.assert_allclose(weighed.gain, repeated.gain, rtol=1e-6)
    assert repeated.leaf_docs.sum() == times.sum()
    assert weighed.leaf_docs.sum() == n_docs


@pytest.mark.kernel
@pytest.mark.parametrize("symmetric", [False, True])
def test_packed_hessians_grow_the_trees_of_hessians_in_histograms_of_their_own(
    symmetric, monkeypatch
):
    rng = np.random.default_rng(6)
    n_docs = 60 * SCALE
    # No two features of this kind have nearly the same gain, which rounding could turn around.
    X = rng.normal(size=(n_docs, 5)).astype(np.float32)
    gradients, hessians = rng.normal(size=n_docs), rng.exponential(size=n_docs)
    how = growth(8, criterion="newton", symmetric=symmetric, l2_regularization=3.0)

    def grown():
        return Grower(bin_all(X), None, how).grow(gradients, hessians, split_hessians=hessians)

    packed = grown()
    monkeypatch.setattr("rankinite.trees.grower.MOST_DOCS_WITH_PACKED_HESSIANS", 0)
    separate = grown()
    for name in ("feature", "threshold", "missing_left", "first", "right", "docs", "value"):
        assert getattr(packed, name).tolist() == getattr(separate, name).tolist()
    np.testing.assert_allclose(packed.gain, separate.gain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("symmetric", [False, True])
def test_noise_decides_between_features_that_gain_nearly_the_same(symmetric):
    """Two copies of a feature gain the same, and a third that is not one of them hardly less."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 60).astype(np.float32)
    X = np.stack([x, x, np.where(np.arange(60) == 7, 1 - x, x), rng.random(60) < 0.5], axis=1)
    gradients = 10.0 * x - 5.0 + rng.normal(size=60)
    chosen = []
    for seed in range(80):
        noise = np.random.default_rng(seed).standard_normal((8, 4))
        how = growth(2, symmetric=symmetric, random_strength=1.0)
        chosen.append(int(grow_tree(X, gradients, how, noise=noise).feature[0]))
    assert set(chosen) == {0, 1, 2}
    # Without strength noise is nothing, and of equal gains the first feature wins.
    how = growth(2, symmetric=symmetric)
    assert grow_tree(X, gradients, how, noise=noise).feature.tolist() == [0]


def test_noise_of_a_feature_by_hand():
    """Gradients -1, 1, 1, 1: feature 0 gains 1 / 1 + 9 / 3 - 4 / 4 = 3, feature 1 gains 1.

    Their mean square and all hessians are 1, so noise is added to the roots of gains as it is.
    """
    X = [[0, 0], [1, 0], [1, 1], [1, 1]]
    gradients, how = [-1.0, 1.0, 1.0, 1.0], growth(2, random_strength=1.0)
    gains = grow_tree(X, gradients, growth(2)).gain, grow_tree(X, gradients, how).gain
    assert gains[0] == gains[1] == pytest.approx([3.0])
    difference = math.sqrt(3.0) - 1.0
    for margin, feature in ((-1e-6, 0), (1e-6, 1)):
        noise = np.array([[0.0, difference + margin]])
        assert grow_tree(X, gradients, how, noise=noise).feature.tolist() == [feature]
