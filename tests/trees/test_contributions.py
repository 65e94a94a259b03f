"""TreeSHAP: against Shapley values over all subsets, its sums, and the same bits by any route."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from rankinite.core.threads import threads
from rankinite.trees import contributions as module
from rankinite.trees.bins import SET_BYTES
from rankinite.trees.contributions import forest_contributions, gauss_legendre
from rankinite.trees.forest import Forest, Tree
from tests.naive import contributions as naive
from tests.trees.cases import chain, forest_of_lightgbm, leaf, random_tree

CATEGORIES = {1: np.array([0, 2, 5], np.float32), 3: np.zeros(0, np.float32)}


def with_categories(rng, tree: Tree) -> Tree:
    """Make the splits on categorical features categorical, with random sets."""
    categorical = np.isin(tree.feature, list(CATEGORIES))
    sets = []
    for split in np.flatnonzero(categorical):
        n_bins = max(1, len(CATEGORIES[int(tree.feature[split])]))
        goes_left = np.zeros(8 * SET_BYTES, np.bool_)
        goes_left[:n_bins] = rng.random(n_bins) < 0.5
        goes_left[n_bins] = tree.missing_left[split]
        sets.append(np.packbits(goes_left, bitorder="little"))
    return replace(
        tree,
        threshold=np.where(categorical, np.nan, tree.threshold).astype(np.float32),
        left_sets=np.array(sets, np.uint8).reshape(-1, SET_BYTES),
    )


def random_forest(rng, n_trees: int, n_features: int, *, categories: bool) -> Forest:
    trees = []
    for _ in range(n_trees):
        tree = random_tree(rng, int(rng.integers(2, 9)), n_features)
        # Few documents, so that many leaves have none.
        tree = replace(tree, leaf_docs=rng.integers(4, size=tree.n_leaves))
        trees.append(with_categories(rng, tree) if categories else tree)
    return Forest(tuple(trees), np.zeros(1), n_features, CATEGORIES if categories else {})


def random_documents(rng, n_docs: int, forest: Forest) -> np.ndarray:
    X = rng.normal(size=(n_docs, forest.n_features)).astype(np.float32)
    # Some values are thresholds: these go left.
    for tree in forest.trees:
        at = int(rng.integers(len(tree.feature)))
        X[int(rng.integers(n_docs)), tree.feature[at]] = tree.threshold[at]
    for feature in forest.categories:
        X[:, feature] = rng.integers(7, size=n_docs)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(6))
def test_contributions_are_shapley_values(seed):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, 20, n_features=4, categories=seed % 2 == 1)
    X = random_documents(rng, 3, forest)
    together, _ = forest_contributions(forest, X)
    sums = np.zeros(X.shape)
    for tree in forest.trees:
        single, means = forest_contributions(replace(forest, trees=(tree,)), X)
        for k, document in enumerate(X):
            expected = naive.contributions(tree, document, forest.n_features, forest.categories)
            np.testing.assert_allclose(
                single[0, k], [float(value) for value in expected], rtol=0, atol=1e-14
            )
            mean = naive.expected_value(tree, document, set(), forest.categories)
            assert means[0] == pytest.approx(float(mean), abs=1e-15)
        sums += single[0]
    np.testing.assert_allclose(together[0], sums, rtol=0, atol=1e-13)


@pytest.mark.long
def test_contributions_are_shapley_values_of_thousands_of_trees():
    for seed in range(100, 400):
        test_contributions_are_shapley_values(seed)


@pytest.mark.kernel
def test_a_long_path_of_many_features():
    n = 24
    tree = chain(range(n), np.zeros(n), np.arange(n + 1.0) ** 2, range(1, n + 2))
    forest = Forest((tree,), np.zeros(1), n)
    X = np.random.default_rng(0).normal(size=(5, n)).astype(np.float32)
    X[0] = 1.0
    values, expected = forest_contributions(forest, X)
    np.testing.assert_allclose(values.sum(axis=2) + expected, forest.scores(X), rtol=0, atol=1e-11)


@pytest.mark.kernel
def test_two_features_by_hand():
    two = Forest((chain([0, 1], [0.0, 0.0], [1.0, 2.0, 4.0], [2, 1, 1]),), np.zeros(1), 2)
    values, expected = forest_contributions(two, np.ones((1, 2), np.float32))
    # Means: nobody known 2, first 3, second 2.5, both 4.
    assert expected.tolist() == [2.0]
    np.testing.assert_allclose(values[0, 0], [1.25, 0.75], rtol=1e-15)


def test_every_route_gives_the_same_bits(monkeypatch):
    rng = np.random.default_rng(5)
    forest = random_forest(rng, 30, 5, categories=True)
    X = np.nan_to_num(random_documents(rng, 300, forest))
    whole = forest_contributions(forest, X)[0]
    with threads(3):
        assert forest_contributions(forest, X)[0].tobytes() == whole.tobytes()
    rows = rng.permutation(300)[:100]
    of_rows = whole[:, rows].tobytes()
    assert forest_contributions(forest, X, rows)[0].tobytes() == of_rows
    sparse = scipy.sparse.csr_array(X)
    assert forest_contributions(forest, sparse)[0].tobytes() == whole.tobytes()
    assert forest_contributions(forest, sparse, rows)[0].tobytes() == of_rows
    monkeypatch.setattr(module, "FACTORS_PER_PART", 40)
    parts = forest_contributions(forest, X)[0]
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-13)


def test_trees_of_several_outputs_add_to_their_own():
    rng = np.random.default_rng(6)
    forest = random_forest(rng, 6, 4, categories=False)
    both = replace(forest, start=np.array([0.5, -1.0]))
    X = random_documents(rng, 20, forest)
    values, expected = forest_contributions(both, X)
    for output in range(2):
        single = replace(forest, trees=forest.trees[output::2], start=both.start[[output]])
        assert values[output].tobytes() == forest_contributions(single, X)[0].tobytes()
    np.testing.assert_allclose(
        values.sum(axis=2) + expected[:, None], both.scores(X), rtol=0, atol=1e-12
    )


def test_forests_that_ask_for_nothing():
    X = np.ones((3, 2), np.float32)
    for trees in ((), (leaf(0.25), leaf(1.0))):
        forest = Forest(trees, np.array([0.5]), 2)
        values, expected = forest_contributions(forest, X)
        assert not values.any()
        assert expected.tolist() == forest.scores(X)[:, 0].tolist()
    assert forest_contributions(Forest((), np.zeros(1), 2), X[:0])[0].shape == (1, 0, 2)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 40])
def test_quadrature_is_exact_for_polynomials(n):
    nodes, weights = gauss_legendre(n)
    expected, numpy_weights = np.polynomial.legendre.leggauss(n)
    np.testing.assert_allclose(np.sort(nodes), (expected + 1) / 2, atol=1e-15)
    np.testing.assert_allclose(weights, numpy_weights[::-1] / 2, rtol=1e-11)
    for degree in range(2 * n):
        assert (weights * nodes**degree).sum() == pytest.approx(1 / (degree + 1), rel=1e-13)


@pytest.mark.parametrize("missing", [False, True])
def test_contributions_are_those_of_lightgbm(missing):
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 6)).astype(np.float32)
    X[:, 2] = rng.integers(6, size=400)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0] * X[:, 1]) + np.isin(X[:, 2], [1, 4]) + rng.normal(size=400) / 4
    parameters = {"num_leaves": 31, "min_data_in_leaf": 3, "num_threads": 1, "verbose": -1}
    data = lightgbm.Dataset(X, y, categorical_feature=[2], params={"min_data_per_group": 5})
    booster = lightgbm.train(parameters, data, 20)
    forest = forest_of_lightgbm(booster)
    np.testing.assert_allclose(forest.scores(X)[0], booster.predict(X), rtol=0, atol=1e-12)
    assert any(len(tree.left_sets) for tree in forest.trees)
    ours, expected = forest_contributions(forest, X)
    theirs = booster.predict(X, pred_contrib=True)
    np.testing.assert_allclose(ours[0], theirs[:, :-1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(theirs[:, -1], expected[0], rtol=0, atol=1e-11)
