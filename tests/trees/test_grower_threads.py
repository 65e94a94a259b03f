"""Trees and scores are the same to the last bit for any number of threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rankinite.core.threads import n_threads
from rankinite.trees.forest import Forest
from rankinite.trees.grower import Grower
from tests.trees.cases import bin_all, boost, bytes_of, growth, mixed_features, names

N_DOCS = 12_000
RNG = np.random.default_rng(0)
X = mixed_features(RNG, N_DOCS, 21)
TARGET, HESSIANS = RNG.normal(size=N_DOCS), RNG.random(N_DOCS) + 0.1
ROWS = RNG.integers(N_DOCS, size=2 * N_DOCS)
MSE, NEWTON = growth(31, min_docs=10), growth(300, criterion="newton")
WHOLE, NARROW, APPENDED = "whole", "narrow", "appended"
CONSTRAINTS = {
    "directions": (1, 0, -1) * 7,
    "groups": (tuple(range(15)), tuple(range(10, 21))),
    "max_delta_step": 2.0,
    "path_smooth": 5.0,
}
# Bins, options of growth, and options of sampling.
CASES = {
    "mse": (WHOLE, MSE, {}),
    "newton": (WHOLE, NEWTON, {}),
    "sampled": (WHOLE, MSE, {"sample": 0.5, "n_features": 5}),
    "newton sampled": (WHOLE, NEWTON, {"sample": 0.6}),
    "second block": (APPENDED, MSE, {}),
    "second block newton": (APPENDED, NEWTON, {"sample": 0.6, "n_features": 15}),
    "one word of columns": (NARROW, MSE, {}),
    "shared rows": (WHOLE, MSE, {"rows": ROWS, "sample": 0.7}),
    "symmetric": (WHOLE, replace(MSE, n_leaves=32, symmetric=True), {}),
    "symmetric newton": (
        APPENDED,
        replace(NEWTON, n_leaves=64, symmetric=True),
        {"sample": 0.6, "n_features": 15},
    ),
    "constrained": (WHOLE, replace(NEWTON, n_leaves=40, **CONSTRAINTS), {}),
    "symmetric constrained": (
        APPENDED,
        replace(MSE, n_leaves=64, symmetric=True, **CONSTRAINTS),
        {"sample": 0.6},
    ),
}


@pytest.fixture(scope="module")
def bins():
    return {
        WHOLE: bin_all(X),
        NARROW: bin_all(X[:, 5:8]),
        APPENDED: bin_all(X[:, :10]).append(X[:, 10:], names(21)[10:]),
    }


def grown(binned, features, how, rows=None, **options):
    docs = slice(None) if rows is None else rows
    grower = Grower(binned, rows, how)
    trees, scores = boost(grower, TARGET[docs], 3, hessians=HESSIANS[docs], **options)
    forest = Forest(trees, np.zeros(1), features.shape[1])
    assert all(tree.n_leaves == how.n_leaves or how.symmetric for tree in trees)
    assert all(tree.n_leaves > 16 for tree in trees)
    assert forest.scores(features, rows)[0].tobytes() == scores.tobytes()
    return bytes_of(trees) + scores.tobytes()


@pytest.mark.parametrize("name", CASES)
def test_large_trees_are_the_same(bins, on_threads, name):
    kind, how, options = CASES[name]
    features = X[:, 5:8].copy() if kind == NARROW else X
    results = on_threads(lambda: grown(bins[kind], features, how, **options))
    assert len(results) == 4
    assert len(set(results.values())) == 1


def test_bins_are_the_same(on_threads):
    def bytes_of_bins():
        block = bin_all(X).main
        return block.cuts.tobytes() + block.bundled.tobytes() + block.columns.tobytes()

    assert len(set(on_threads(bytes_of_bins).values())) == 1


def test_splits_that_gain_nearly_alike_are_chosen_alike(on_threads):
    """The same split up to rounding in several words of columns: x, -x, x + 1 gain nearly alike."""
    small = np.random.default_rng(1).integers(20, size=(60, 8)).astype(np.float32)
    grower = Grower(bin_all(np.hstack([small, -small, small + 1, -small])), None, growth(8))

    def ties():
        rng = np.random.default_rng(2)
        return [bytes_of([grower.grow(rng.normal(size=60), np.ones(60))]) for _ in range(300)]

    results = on_threads(ties)
    assert all(result == results[1] for result in results.values())


def test_a_number_of_threads_takes_effect(on_threads):
    assert on_threads(n_threads) == {1: 1, 2: 2, 3: 3, 4: 4}
