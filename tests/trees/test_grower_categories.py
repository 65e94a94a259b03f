"""Categorical splits against trying every split, and against brute force over sets."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numba
import numpy as np
import pytest

from rankinite.core.errors import ModelFileError
from rankinite.trees import grower as grower_module
from rankinite.trees.binning import BinnedData
from rankinite.trees.forest import Forest
from rankinite.trees.grower import Grower
from tests.naive.categories import Problem, best_subset_gain, leaf_of
from tests.trees.cases import boost, bytes_of, growth, names

SCALE = 1 if numba.config.DISABLE_JIT else 4


def features(rng, n_docs: int) -> np.ndarray:
    """Make two categorical features, one of them with missing values, and a numerical one."""
    X = np.column_stack(
        [
            rng.integers(0, 6, n_docs) * 7,
            rng.normal(size=n_docs),
            rng.integers(0, 4, n_docs),
        ]
    ).astype(np.float32)
    X[rng.random(n_docs) < 0.2, 2] = np.nan
    return X


def bin_categories(X, categorical=(0, 2), **options) -> BinnedData:
    X = np.asarray(X, np.float32)
    return BinnedData.make(X, names(X.shape[1]), categorical=categorical, **options)


def forest_of(grower: Grower, *trees) -> Forest:
    binned = grower.binned
    return Forest(trees, np.zeros(1), len(binned.feature_names), binned.categories)


@pytest.mark.kernel
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 2.5])
@pytest.mark.parametrize("hessians", ["none", "packed", "separate"])
def test_trees_are_the_best_of_all_splits(symmetric, smoothing, hessians):
    for seed in range(SCALE):
        rng = np.random.default_rng(seed)
        n_docs = 24
        X = features(rng, n_docs)
        gradients = rng.normal(size=n_docs) + rng.normal(0, 2, 36)[X[:, 0].astype(int)]
        weights = np.ones(n_docs) if hessians == "none" else rng.uniform(0.5, 2.0, n_docs)
        l2, min_docs = float(seed % 2), 1 + seed % 3
        how = growth(
            8 if symmetric else 6,
            min_docs=min_docs,
            criterion="mse" if hessians == "none" else "newton",
            symmetric=symmetric,
            l2_regularization=l2,
            categorical_smoothing=smoothing,
        )
        most = 0 if hessians == "separate" else 1 << 18
        with mock.patch.object(grower_module, "MOST_DOCS_WITH_PACKED_HESSIANS", most):
            grower = Grower(bin_categories(X), None, how)
            split_hessians = None if hessians == "none" else weights
            tree = grower.grow(gradients, weights, split_hessians=split_hessians)
        unit = weights.mean()
        problem = Problem(
            X, gradients, weights, frozenset({0, 2}), smoothing * unit, l2 * unit, min_docs
        )
        most_leaves = min(how.n_leaves, max(2, n_docs // min_docs))
        grow = problem.by_levels if symmetric else problem.best_first
        leaves, gains = grow(most_leaves)
        grown = {tuple(np.flatnonzero(grower.leaves == leaf)) for leaf in range(tree.n_leaves)}
        assert grown == leaves
        assert sorted(tree.gain) == pytest.approx(sorted(gains), rel=1e-5)
        assert tree.categorical.any()
        # What predict does, with categories and missing values that training did not have.
        forest = forest_of(grower, tree)
        other = np.vstack([X, [[35, 0.1, 9], [3, -0.1, np.nan], [-1, 0, 0.5], [1e30, 9, 1]]])
        walked = [tree.value[leaf_of(forest, tree, document)] for document in other]
        assert forest.scores(other.astype(np.float32))[0].tolist() == walked
        scores = np.zeros(len(other))
        columns = grower.binned.columns_of(other.astype(np.float32))
        grower.add_elsewhere(tree, columns, None, scores)
        assert scores.tolist() == walked


@pytest.mark.kernel
def test_a_split_by_hand():
    """Gradients 1, 1 | 5, 5 | 2, 2 of the categories 3, 4 and 9: {4} gains most against the others.

    Sums 2, 10 and 4 of two documents each; 16^2 / 6 without a split. {4} | {3, 9} gains
    100 / 2 + 36 / 4 - 256 / 6 = 16.33, {4, 9} | {3} 196 / 4 + 4 / 2 - 42.67 = 8.33. With 2
    documents of smoothing, half of what a category has beyond the mean 8 / 3 is left: all gains are
    a quarter.
    """
    X = [[3], [3], [4], [4], [9], [9]]
    gradients = np.array([1.0, 1, 5, 5, 2, 2])
    for smoothing, gain in ((0.0, 49 / 3), (2.0, 49 / 12)):
        how = growth(2, categorical_smoothing=smoothing)
        grower = Grower(bin_categories(X, [0]), None, how)
        tree = grower.grow(gradients, np.ones(6))
        assert tree.left_categories(0, grower.binned.categories[0]).tolist() == [4.0]
        assert tree.gain.tolist() == pytest.approx([gain], rel=1e-12)
        assert tree.value.tolist() == [5.0, 1.5]
        # No document is without a category: one would go where more of them are.
        assert tree.missing_left.tolist() == [False]


@pytest.mark.kernel
@pytest.mark.parametrize("n_categories", [2, 5, 7])
def test_the_best_beginning_is_the_best_set(n_categories):
    """Fisher's result: without smoothing, no set of categories gains more."""
    for seed in range(2 * SCALE):
        rng = np.random.default_rng(seed)
        n_docs = 3 * n_categories
        codes = rng.permutation(np.arange(n_docs) % n_categories)
        gradients = rng.normal(size=n_docs)
        grower = Grower(bin_categories(codes[:, None], [0]), None, growth(2))
        tree = grower.grow(gradients, np.ones(n_docs))

        def gain(chosen, codes=codes, gradients=gradients):
            left = np.isin(codes, list(chosen))
            return sum(gradients[side].sum() ** 2 / side.sum() for side in (left, ~left)) - (
                gradients.sum() ** 2 / len(codes)
            )

        assert tree.gain[0] == pytest.approx(best_subset_gain(gain, range(n_categories)), rel=1e-9)


@pytest.mark.kernel
@pytest.mark.parametrize("symmetric", [False, True])
def test_constraints_hold_beside_categories(symmetric):
    """Scores rise with the second feature in every category; the third stands on paths alone."""
    rng = np.random.default_rng(3)
    X = features(rng, 120)
    target = rng.normal(size=120) + rng.normal(0, 2, 36)[X[:, 0].astype(int)] - X[:, 1] / 2
    how = growth(
        8,
        symmetric=symmetric,
        categorical_smoothing=1.0,
        path_smooth=2.0,
        max_delta_step=1.5,
        directions=(0, 1, 0),
        groups=((0, 1), (2,)),
    )
    grower = Grower(bin_categories(X), None, how)
    trees, scores = boost(grower, target, 3)
    forest = forest_of(grower, *trees)
    assert forest.scores(X)[0] == pytest.approx(scores, rel=1e-12)
    assert any(tree.categorical.any() for tree in trees)
    for code in np.unique(X[:, 0]):
        line = np.column_stack([np.full(50, code), np.linspace(-3, 3, 50), np.full(50, 1)])
        assert (np.diff(forest.scores(line.astype(np.float32))[0]) >= 0).all()
    for tree in trees:
        assert np.abs(tree.value).max() <= 1.5
        assert set(tree.feature) <= {0, 1} or set(tree.feature) == {2}


@pytest.mark.parametrize("symmetric", [False, True])
def test_names_of_categories_do_not_matter(symmetric):
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.integers(0, 40, 600), rng.normal(size=600), rng.integers(0, 9, 600)])
    target = rng.normal(size=40)[X[:, 0].astype(int)] + X[:, 1] + rng.normal(size=600)
    how = growth(8, min_docs=5, symmetric=symmetric, categorical_smoothing=3.0)
    renamed = X.copy()
    renamed[:, 0] = rng.permutation(1000)[:40][X[:, 0].astype(int)]
    renamed[:, 2] = 8 - X[:, 2]
    scores = [boost(Grower(bin_categories(Z), None, how), target, 5)[1] for Z in (X, renamed)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-12)
    assert np.corrcoef(scores[0], target)[0, 1] > 0.6


def test_threads_do_not_matter(on_threads):
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.integers(0, 300, 9000), rng.normal(size=9000), np.arange(9000) % 5])
    target = rng.normal(size=300)[X[:, 0].astype(int)] + X[:, 1]
    how = growth(16, min_docs=5, symmetric=True, categorical_smoothing=3.0)

    def grown():
        return bytes_of(boost(Grower(bin_categories(X), None, how), target, 3)[0])

    assert len(set(on_threads(grown).values())) == 1


def test_rare_categories_have_the_bin_of_missing_values():
    codes = np.repeat(np.arange(300), np.where(np.arange(300) % 2, 3, 1))
    binned = bin_categories(codes[:, None], [0], most_bins=100)
    assert binned.categories[0].tolist() == list(range(1, 200, 2))
    assert binned.main.columns[0].tolist() == [
        code // 2 if code % 2 and code < 200 else 100 for code in codes
    ]
    # As many as are possible unless a number is given; and none at all of missing values.
    assert len(bin_categories(codes[:, None], [0], most_bins=None).categories[0]) == 255
    assert len(bin_categories([[np.nan], [np.nan]], [0]).categories[0]) == 0


def test_categories_without_any_value_split_nothing():
    X = np.array([[np.nan, 1], [np.nan, 2]])
    grower = Grower(bin_categories(X, [0]), None, growth(2))
    tree = grower.grow(np.array([1.0, -1.0]), np.ones(2))
    assert tree.feature.tolist() == [1]
    assert forest_of(grower, tree).scores(np.float32([[3, 1]])).tolist() == [[1.0]]


@pytest.fixture
def forest() -> Forest:
    rng = np.random.default_rng(1)
    X = features(rng, 200)
    grower = Grower(bin_categories(X), None, growth(6))
    trees, _ = boost(grower, rng.normal(size=200) + X[:, 0] % 3, 3)
    return forest_of(grower, *trees)


def test_arrays_of_a_forest_are_restored(forest):
    arrays = forest.to_arrays()
    restored = Forest.from_arrays(arrays, 3)
    assert bytes_of(restored.trees) == bytes_of(forest.trees)
    assert {j: codes.tolist() for j, codes in restored.categories.items()} == {
        0: [0, 7, 14, 21, 28, 35],
        2: [0, 1, 2, 3],
    }
    X = features(np.random.default_rng(2), 50)
    assert restored.scores(X).tolist() == forest.scores(X).tolist()
    # A forest of numbers has the arrays that it always had.
    assert not {"categories", "n_categories", "left_sets"} & {
        *replace(forest, trees=(), categories={}).to_arrays()
    }


def damage(name, change):
    def changed(arrays):
        return {**arrays, name: change(arrays[name].copy())}

    return changed


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    "changed",
    [
        damage("left_sets", lambda sets: sets[1:]),
        damage("left_sets", lambda sets: sets[:, :8]),
        damage("left_sets", lambda sets: sets.astype(np.int16)),
        damage("left_sets", put((0, 31), 128)),
        damage("left_sets", lambda sets: ~sets),
        damage("missing_left", lambda left: ~left),
        damage("categories", put(1, 0.5)),
        damage("categories", put(1, -7)),
        damage("categories", put(1, 0)),
        damage("categories", put(5, np.inf)),
        damage("categories", put(5, np.nan)),
        damage("categories", lambda codes: codes[1:]),
        damage("n_categories", put(0, 256)),
        damage("n_categories", put(0, -2)),
        damage("n_categories", put(1, 0)),
        damage("n_categories", put([0, 2], [-1, 10])),
        damage("n_categories", lambda counts: counts[:2]),
        damage("threshold", lambda thresholds: np.zeros_like(thresholds)),
        damage("threshold", lambda thresholds: np.full_like(thresholds, np.nan)),
        lambda arrays: {k: v for k, v in arrays.items() if k != "left_sets"},
        lambda arrays: {k: v for k, v in arrays.items() if k != "n_categories"},
        lambda arrays: {k: v for k, v in arrays.items() if k != "categories"},
    ],
)
def test_damaged_arrays_are_refused(forest, changed):
    with pytest.raises(ModelFileError):
        Forest.from_arrays(changed(forest.to_arrays()), 3)
