"""CatBoost's models in JSON.

A document goes right if its value is above the border, compared in 32 bits. Missing values are
below all borders, or above all, as the file says for each feature. In a symmetric tree, bit k of a
leaf's number is the result of split k.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import ModelFileError
from rankinite.interop.readers.fields import (
    MOST_FEATURES,
    ForeignForest,
    distinct,
    entry,
    numbers,
    real,
    shown,
    whole,
)
from rankinite.interop.readers.nodes import LEAF, Nodes, at_most, build_forest
from rankinite.trees.forest import MAX_LEAVES

TOOL = "CatBoost"
OTHER_FEATURES = ("categorical_features", "text_features", "embedding_features")
BELOW, ABOVE = ("AsFalse", "AsIs"), "AsTrue"
DEEPEST = MAX_LEAVES.bit_length() - 1


def read(document: Mapping[str, Any]) -> ForeignForest:
    """Read a model that ``save_model(path, format="json")`` wrote.

    Parameters
    ----------
    document
        The object in the file.
    """
    features = _Features(entry(document, "features_info", dict))
    scale, start = _scale_and_start(document.get("scale_and_bias", [1, [0]]))
    if "trees" in document:
        trees = [_tree(tree, features, scale) for tree in entry(document, "trees", list)]
    else:
        listed = entry(document, "oblivious_trees", list)
        trees = [_symmetric_tree(tree, features, scale) for tree in listed]
    objective = _objective(document)
    return ForeignForest(
        tool=TOOL,
        forest=build_forest(trees, features.n, start),
        names=features.names,
        objective=objective,
    )


class _Features:
    """The features of the file, all of numbers, by the index that splits have."""

    def __init__(self, info: Mapping[str, Any]) -> None:
        for name in OTHER_FEATURES:
            if info.get(name):
                raise ModelFileError(
                    f"has {name.replace('_', ' ')}, which CatBoost turns into numbers by rules "
                    "that are not trees; rankinite imports models of numeric features"
                )
        self.columns: dict[int, int] = {}
        self.missing_left: dict[int, bool] = {}
        names: dict[int, str] = {}
        for feature in entry(info, "float_features", list):
            number = whole(entry(feature, "feature_index", int), "feature_index", 0, MOST_FEATURES)
            flat = feature.get("flat_feature_index", number)
            column = whole(flat, "flat_feature_index", 0, MOST_FEATURES - 1)
            if number in self.columns or column in names:
                raise ModelFileError(f"has two features of the number {column}")
            treatment = feature.get("nan_value_treatment", BELOW[0])
            if treatment not in (*BELOW, ABOVE):
                raise ModelFileError(f"has {shown(treatment)} as 'nan_value_treatment'")
            names[column] = str(feature.get("feature_id", ""))
            self.columns[number] = column
            self.missing_left[number] = treatment != ABOVE
        if not names:
            raise ModelFileError("has no features")
        self.n = max(names) + 1
        # Features without names have an empty one, or their number.
        is_default = all(name in ("", str(column)) for column, name in names.items())
        self.names = None
        if not is_default:
            self.names = distinct([names.get(j) or str(j) for j in range(self.n)])

    def split(self, split: Any) -> tuple[int, float, bool]:
        """Return the column of a split, its border, and whether missing values go left."""
        number = entry(split, "float_feature_index", int)
        kind = split.get("split_type", "FloatFeature")
        if kind != "FloatFeature":
            raise ModelFileError(
                f"has a split of the type {shown(kind)}; rankinite imports models of numeric "
                "features"
            )
        if number not in self.columns:
            raise ModelFileError(f"has a split by feature {shown(number)}, which is not listed")
        return self.columns[number], real(split.get("border"), "border"), self.missing_left[number]


def _objective(document: Mapping[str, Any]) -> str:
    """Return the loss function, which is text within a text."""
    value: Any = document.get("model_info", {})
    for name in ("params", "loss_function", "type"):
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _scale_and_start(values: Any) -> tuple[float, float]:
    if not isinstance(values, list) or len(values) != 2:
        raise ModelFileError(f"has {shown(values)} as 'scale_and_bias'")
    biases = values[1] if isinstance(values[1], list) else [values[1]]
    if len(biases) > 1:
        raise ModelFileError("has several scores for a document; a ranker has a single one")
    start = real(biases[0], "scale_and_bias") if biases else 0.0
    return real(values[0], "scale_and_bias"), start


def _borders(values: list[float]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return at_most(np.array(values, np.float64).astype(np.float32))


def _symmetric_tree(tree: Any, features: _Features, scale: float) -> Nodes:
    """Return the nodes of a symmetric tree level by level, the last split at the root."""
    listed = tree.get("splits") if isinstance(tree, dict) else None
    splits = [features.split(split) for split in (listed if isinstance(listed, list) else [])]
    depth = len(splits)
    if depth > DEEPEST:
        raise ModelFileError(f"has a tree of {depth} levels; rankinite has at most {DEEPEST}")
    n_leaves = 1 << depth
    n_splits = n_leaves - 1
    values = numbers(entry(tree, "leaf_values", list), "leaf_values")
    if len(values) != n_leaves:
        raise ModelFileError(
            f"has {len(values):,} values for {n_leaves:,} leaves; a ranker has a single score"
        )
    docs = numbers(tree.get("leaf_weights", [0.0] * n_leaves), "leaf_weights", n_leaves)
    # The level of each split: 0 for the first, 1 for the next two, and so on.
    level = np.repeat(np.arange(depth), 1 << np.arange(depth))
    columns, borders, missing_left = zip(*splits[::-1], strict=True) if splits else ((), (), ())
    thresholds = _borders(list(borders))
    inner, no_leaf = np.arange(n_splits), np.zeros(n_leaves, np.int64)
    children = np.full((2, n_splits + n_leaves), LEAF)
    children[:, :n_splits] = 2 * inner + 1, 2 * inner + 2
    return Nodes(
        left=children[0],
        right=children[1],
        feature=np.concatenate([np.array(columns, np.int64)[level], no_leaf]),
        threshold=np.concatenate([thresholds[level], no_leaf]).astype(np.float32),
        missing_left=np.concatenate([np.array(missing_left, np.bool_)[level], no_leaf > 0]),
        gain=np.zeros(n_splits + n_leaves),
        value=np.concatenate([np.zeros(n_splits), values * scale]),
        docs=np.concatenate([np.zeros(n_splits), docs]),
    )


def _tree(tree: Any, features: _Features, scale: float) -> Nodes:
    """Return the nodes of a tree whose nodes are inside each other."""
    nodes: list[Any] = [tree]
    children: list[tuple[int, int]] = []
    splits: list[tuple[int, float, bool]] = []
    values, docs = [], []
    # Nodes are added behind those that are read; objects of JSON make no circles.
    for node in nodes:
        if isinstance(node, dict) and "split" in node:
            children.append((len(nodes), len(nodes) + 1))
            nodes += [entry(node, "left", dict), entry(node, "right", dict)]
            splits.append(features.split(entry(node, "split", dict)))
            values.append(0.0)
            docs.append(0.0)
        else:
            children.append((LEAF, LEAF))
            splits.append((0, 0.0, False))
            value = node.get("value") if isinstance(node, dict) else None
            values.append(real(value[0] if isinstance(value, list) and len(value) == 1 else value,
                               "value") * scale)  # fmt: skip
            docs.append(real(node.get("weight", 0.0), "weight"))
    left, right = np.array(children).T
    columns, borders, missing_left = zip(*splits, strict=True)
    return Nodes(
        left=left,
        right=right,
        feature=np.array(columns, np.int64),
        threshold=_borders(list(borders)),
        missing_left=np.array(missing_left, np.bool_),
        gain=np.zeros(len(nodes)),
        value=np.array(values),
        docs=np.array(docs),
    )
