"""Data and options for the tests of the tree engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any
from unittest import mock

import numpy as np

from rankinite.trees import bundles
from rankinite.trees.binning import BinnedData
from rankinite.trees.bins import SET_BYTES
from rankinite.trees.forest import Forest, Tree
from rankinite.trees.grower import EVERY_DOC, Grower, GrowthOptions


def growth(
    n_leaves: int = 8, max_depth: int | None = None, min_docs: int = 1, **others: Any
) -> GrowthOptions:
    usual = {"min_gain": 0.0, "criterion": "mse", "step": "newton"}
    return GrowthOptions(n_leaves, max_depth, min_docs, **{**usual, **others})


def names(n_features: int) -> list[str]:
    return [f"f{j}" for j in range(n_features)]


def bin_all(X, **options) -> BinnedData:
    X = np.asarray(X, np.float32)
    return BinnedData.make(X, names(X.shape[1]), **options)


def bundled_at_any_size() -> Any:
    """Return a context in which columns are bundled also where that is not worth while."""
    return mock.patch.object(bundles, "ROWS_PER_CODE", 0.001)


def mixed_features(rng, n_rows: int, n_features: int) -> np.ndarray:
    """Make counts, real numbers, copies of columns, a constant, and missing values."""
    X = rng.normal(size=(n_rows, n_features))
    X[:, ::3] = rng.integers(6, size=X[:, ::3].shape)
    X[:, 1::5] = X[:, :1]
    X[:, 4::7] = 2.5
    missing = rng.random(X.shape) < rng.choice([0.0, 0.2], size=n_features)
    return np.where(missing, np.nan, X).astype(np.float32)


def grow_tree(X, gradients, how: GrowthOptions, **options) -> Tree:
    """Grow a tree on a matrix, all hessians 1."""
    gradients = np.asarray(gradients, np.float64)
    return Grower(bin_all(X), None, how).grow(gradients, np.ones(len(gradients)), **options)


def boost(
    grower: Grower,
    target: np.ndarray,
    n_trees: int,
    *,
    hessians: np.ndarray | None = None,
    sample: float = 1.0,
    n_features: int | None = None,
) -> tuple[tuple[Tree, ...], np.ndarray]:
    """Boost trees for the squared error; return the trees and the scores after the last."""
    rng = np.random.default_rng(len(target))
    hessians = np.ones(len(target)) if hessians is None else hessians
    scores = np.zeros(len(target))
    trees = []
    for _ in range(n_trees):
        chosen = rng.random(len(target)) < sample if sample < 1.0 else EVERY_DOC
        n_all = len(grower.binned.feature_names)
        tree = grower.grow(
            hessians * (target - scores),
            hessians,
            split_hessians=hessians if grower.options.criterion == "newton" else None,
            chosen=chosen,
            features=np.sort(rng.choice(n_all, n_features, replace=False)) if n_features else None,
        )
        grower.add(tree, scores)
        trees.append(tree)
    return tuple(trees), scores


def bytes_of(trees: Sequence[Tree]) -> bytes:
    return b"".join(getattr(tree, field.name).tobytes() for tree in trees for field in fields(Tree))


def leaf(value: float) -> Tree:
    """Return a tree without splits."""
    return chain([], [], [value], [4])


def chain(
    features: Sequence[int],
    thresholds: Sequence[float],
    values: Sequence[float],
    leaf_docs: Sequence[int],
) -> Tree:
    """Return a tree whose left children are all leaves; missing values go left, gains are 1."""
    n = len(features)
    return Tree(
        feature=np.array(features, np.int32),
        threshold=np.array(thresholds, np.float32),
        missing_left=np.ones(n, np.bool_),
        first=np.arange(n).astype(np.uint16),
        right=np.arange(1, n + 1).astype(np.uint16),
        gain=np.ones(n),
        docs=np.array([sum(leaf_docs[k:]) for k in range(n)], np.int64),
        value=np.array(values, np.float64),
        leaf_docs=np.array(leaf_docs, np.int64),
    )


def random_tree(rng, n_leaves: int, n_features: int) -> Tree:
    """Return a tree of a random shape with random splits."""
    splits: list[tuple[int, int]] = []
    ranges = [(0, n_leaves)]
    while ranges:
        begin, end = ranges.pop()
        if end - begin > 1:
            right = int(rng.integers(begin + 1, end))
            splits.append((begin, right))
            ranges += [(right, end), (begin, right)]
    first, right_leaf = np.array(splits, np.uint16).reshape(-1, 2).T
    return Tree(
        feature=rng.integers(n_features, size=len(splits)).astype(np.int32),
        threshold=rng.normal(size=len(splits)).astype(np.float32),
        missing_left=rng.random(len(splits)) < 0.5,
        first=first.copy(),
        right=right_leaf.copy(),
        gain=rng.random(len(splits)),
        docs=rng.integers(1, 9999, size=len(splits)),
        value=rng.normal(size=n_leaves),
        leaf_docs=rng.integers(1, 9999, size=n_leaves),
    )


def forest_of_lightgbm(booster: Any) -> Forest:
    """Return the trees of a LightGBM model that was trained on 32-bit numbers."""
    dump = booster.dump_model()
    categories: dict[int, np.ndarray] = {}
    trees = [_tree_of(info["tree_structure"], categories) for info in dump["tree_info"]]
    n_features = dump["max_feature_idx"] + 1
    for feature in categories:
        categories[feature] = np.arange(8 * SET_BYTES - 1, dtype=np.float32)
    return Forest(tuple(trees), np.zeros(1), n_features, categories)


def _tree_of(root: dict[str, Any], categories: dict[int, np.ndarray]) -> Tree:
    splits: list[tuple[Any, ...]] = []
    sets, leaves = [], []

    def visit(node: dict[str, Any]) -> None:
        if "leaf_value" in node:
            leaves.append((node["leaf_value"], node.get("leaf_count", 0)))
            return
        feature, place, first = node["split_feature"], len(splits), len(leaves)
        missing_left = node["missing_type"] == "NaN" and node["default_left"]
        if node["decision_type"] == "==":
            categories[feature] = np.zeros(0)
            goes_left = np.zeros(8 * SET_BYTES, np.bool_)
            goes_left[[int(code) for code in node["threshold"].split("||")]] = True
            sets.append(np.packbits(goes_left, bitorder="little"))
            threshold, missing_left = np.float32(np.nan), False
        else:
            # The largest 32-bit number that is not above: 32-bit numbers are compared alike.
            threshold = np.float32(node["threshold"])
            if float(threshold) > node["threshold"]:
                threshold = np.nextafter(threshold, np.float32(-np.inf))
        splits.append(())
        visit(node["left_child"])
        right = len(leaves)
        visit(node["right_child"])
        splits[place] = (feature, threshold, missing_left, first, right, node["internal_count"])

    visit(root)
    feature, threshold, missing_left, first, right, docs = zip(*splits, strict=True)
    value, leaf_docs = zip(*leaves, strict=True)
    return Tree(
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float32),
        missing_left=np.array(missing_left, np.bool_),
        first=np.array(first, np.uint16),
        right=np.array(right, np.uint16),
        gain=np.ones(len(splits)),
        docs=np.array(docs, np.int64),
        value=np.array(value, np.float64),
        leaf_docs=np.array(leaf_docs, np.int64),
        left_sets=np.array(sets, np.uint8).reshape(-1, SET_BYTES),
    )
