"""What the tests of the tree engine grow trees on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from rankinite.trees.binning import BinnedData
from rankinite.trees.forest import Tree
from rankinite.trees.grower import EVERY_DOC, Grower, GrowthOptions


def growth(
    n_leaves: int = 8,
    max_depth: int | None = None,
    min_docs: int = 1,
    min_gain: float = 0.0,
    criterion: str = "mse",
    step: str = "newton",
    symmetric: bool = False,
) -> GrowthOptions:
    return GrowthOptions(n_leaves, max_depth, min_docs, min_gain, criterion, step, symmetric)


def names(n_features: int) -> list[str]:
    return [f"f{j}" for j in range(n_features)]


def bin_all(X, **options) -> BinnedData:
    X = np.asarray(X, np.float32)
    return BinnedData.make(X, names(X.shape[1]), **options)


def mixed_features(rng, n_rows: int, n_features: int) -> np.ndarray:
    """Make counts, real numbers, copies of columns, a constant, and missing values."""
    X = rng.normal(size=(n_rows, n_features))
    X[:, ::3] = rng.integers(6, size=X[:, ::3].shape)
    X[:, 1::5] = X[:, :1]
    X[:, 4::7] = 2.5
    missing = rng.random(X.shape) < rng.choice([0.0, 0.2], size=n_features)
    return np.where(missing, np.nan, X).astype(np.float32)


def grow_one(X, gradients, how: GrowthOptions, **options) -> Tree:
    """Grow one tree on a matrix, all weights 1."""
    gradients = np.asarray(gradients, np.float64)
    return Grower(bin_all(X), None, how).grow(gradients, np.ones(len(gradients)), **options)


def boost(
    grower: Grower,
    target: np.ndarray,
    n_trees: int,
    *,
    weights: np.ndarray | None = None,
    sample: float = 1.0,
    n_features: int | None = None,
) -> tuple[tuple[Tree, ...], np.ndarray]:
    """Follow the squared error to a target; return the trees and the scores after the last."""
    rng = np.random.default_rng(len(target))
    weights = np.ones(len(target)) if weights is None else weights
    scores = np.zeros(len(target))
    trees = []
    for _ in range(n_trees):
        chosen = rng.random(len(target)) < sample if sample < 1.0 else EVERY_DOC
        every = len(grower.binned.feature_names)
        tree = grower.grow(
            weights * (target - scores),
            weights,
            split_hessians=weights if grower.options.criterion == "newton" else None,
            chosen=chosen,
            features=np.sort(rng.choice(every, n_features, replace=False)) if n_features else None,
        )
        grower.add(tree, scores)
        trees.append(tree)
    return tuple(trees), scores


def bytes_of(trees: Sequence[Tree]) -> bytes:
    return b"".join(getattr(tree, field.name).tobytes() for tree in trees for field in fields(Tree))
