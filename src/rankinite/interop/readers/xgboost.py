"""XGBoost's models, from JSON or UBJSON.

A document goes left if its value is less than the threshold, compared in 32 bits; missing values go
the default way of the split. By a categorical split the categories of a set go right, others left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.elementary import log
from rankinite.core.errors import ModelFileError
from rankinite.core.types import Floats
from rankinite.interop.readers.fields import (
    MOST_FEATURES,
    ForeignForest,
    category_codes,
    distinct,
    entry,
    integers,
    numbers,
    real,
    shown,
    texts,
    whole,
)
from rankinite.interop.readers.nodes import LEAF, Nodes, build_forest, less_than

TOOL = "XGBoost"
# Objectives whose base score is a probability, or a mean that is positive.
LOGISTIC = ("reg:logistic", "binary:logistic", "binary:logitraw")
EXPONENTIAL = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
# Sums of hessians may be tiny; documents are counted in whole numbers.
LARGEST_SCALE = 1e6


def read(document: Mapping[str, Any]) -> ForeignForest:
    """Read a model that ``save_model`` wrote.

    Parameters
    ----------
    document
        The object in the file.
    """
    learner = entry(document, "learner", dict)
    parameters = entry(learner, "learner_model_param", dict)
    n_features = whole(parameters.get("num_feature"), "num_feature", 1, MOST_FEATURES)
    objective = str(entry(entry(learner, "objective", dict), "name", str))
    model, weights = _booster(entry(learner, "gradient_booster", dict))
    listed = entry(model, "trees", list)
    _refuse_several_scores(parameters, model, len(listed))
    scale = np.ones(len(listed)) if weights is None else numbers(weights, "weight_drop")
    if len(scale) != len(listed):
        raise ModelFileError(f"has {len(scale):,} weights for {len(listed):,} trees")
    categories = _Categories(model)
    trees = [_nodes(tree, weight, categories) for tree, weight in zip(listed, scale, strict=True)]
    names = texts(learner.get("feature_names", []), "feature_names")
    if names and len(names) != n_features:
        raise ModelFileError(f"has {len(names):,} names for {n_features:,} features")
    is_default = all(name == f"f{k}" for k, name in enumerate(names))
    return ForeignForest(
        tool=TOOL,
        # A category that no split names goes left, which missing values need not.
        forest=build_forest(
            _with_documents(trees),
            n_features,
            _start(parameters, objective),
            categories.codes,
            categorical_features=[*categories.codes, *_categorical(learner, n_features)],
        ),
        names=None if is_default else distinct(names),
        objective=objective,
        categories=categories.texts,
        notes=_notes(learner, objective, len(listed)),
    )


def _categorical(learner: Mapping[str, Any], n_features: int) -> list[int]:
    """Return the features that are categorical, also if no split asks for them."""
    kinds = texts(learner.get("feature_types", []), "feature_types")
    return [j for j, kind in enumerate(kinds[:n_features]) if kind == "c"]


def _notes(learner: Mapping[str, Any], objective: str, n_trees: int) -> list[str]:
    notes = []
    if objective in ("binary:logistic", "reg:logistic", *EXPONENTIAL):
        notes.append(
            "scores are those of predict(output_margin=True), before the objective "
            f"{objective!r} transforms them, which keeps their order"
        )
    attributes = learner.get("attributes")
    best = attributes.get("best_iteration") if isinstance(attributes, dict) else None
    if isinstance(best, str) and best.isdecimal() and len(best) < 10 and int(best) + 1 < n_trees:
        notes.append(
            f"early stopping named iteration {best} the best, and the file has all {n_trees:,} "
            "trees, which predict uses unless n_trees says otherwise"
        )
    return notes


def _booster(booster: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the model of the trees, and their weights if there are any."""
    name = entry(booster, "name", str)
    if name == "gbtree":
        return entry(booster, "model", dict), None
    if name == "dart":
        inner = entry(booster, "gbtree", dict)
        return entry(inner, "model", dict), booster.get("weight_drop")
    raise ModelFileError(
        f"has the booster {shown(name)}, which has no trees; rankinite imports gbtree and dart"
    )


def _refuse_several_scores(
    parameters: Mapping[str, Any], model: Mapping[str, Any], n_trees: int
) -> None:
    classes = whole(parameters.get("num_class", "0"), "num_class", 0, 1 << 30)
    targets = whole(parameters.get("num_target", "1"), "num_target", 0, 1 << 30)
    groups = integers(model.get("tree_info", [0] * n_trees), "tree_info")
    if classes > 1 or targets > 1 or groups.any():
        raise ModelFileError("has several scores for a document; a ranker has a single one")


def _start(parameters: Mapping[str, Any], objective: str) -> float:
    """Return the score before the first tree, on the scale of the trees."""
    text = parameters.get("base_score", "0")
    # Newer files have a list, one number for each score.
    listed = text[1:-1] if isinstance(text, str) and text[:1] == "[" and text[-1:] == "]" else text
    base = real(listed, "base_score")
    if objective in LOGISTIC:
        if not 0.0 < base < 1.0:
            raise ModelFileError(f"has {base} as 'base_score'; expected a probability")
        return float(log(base / (1.0 - base)))
    if objective in EXPONENTIAL:
        if base <= 0.0:
            raise ModelFileError(f"has {base} as 'base_score'; expected a positive number")
        return float(log(base))
    return base


def _nodes(tree: Any, weight: float, categories: _Categories) -> Nodes:
    """Return the nodes of a tree, whose values count by a weight."""
    left = integers(_field(tree, "left_children"), "left_children")
    n = len(left)
    if n == 0:
        raise ModelFileError("has a tree without a root")
    parameters = tree.get("tree_param", {})
    size = parameters.get("size_leaf_vector", "1") if isinstance(parameters, dict) else None
    if whole(size, "size_leaf_vector", 0, 1 << 30) > 1:
        raise ModelFileError("has several scores for a document; a ranker has a single one")
    right = integers(_field(tree, "right_children"), "right_children", n)
    conditions = numbers(_field(tree, "split_conditions"), "split_conditions", n)
    default_left = integers(_field(tree, "default_left"), "default_left", n) != 0
    kinds = integers(tree.get("split_type", np.zeros(n, np.int64)), "split_type", n)
    is_leaf = left == LEAF
    sets = dict(_right_codes(tree, n))
    categorical = (kinds == 1) & ~is_leaf
    if set(np.flatnonzero(categorical).tolist()) - sets.keys():
        raise ModelFileError("has a categorical split without categories")
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        # As the tool adds them up: numbers of 32 bits, and their products.
        value = (conditions.astype(np.float32) * np.float32(weight)).astype(np.float64)
    feature = integers(_field(tree, "split_indices"), "split_indices", n)
    return Nodes(
        # The categories of a set go left here.
        left=np.where(categorical, right, left),
        right=np.where(categorical, left, right),
        feature=feature,
        threshold=np.where(categorical, np.float32(0), less_than(conditions)),
        missing_left=default_left ^ categorical,
        gain=_optional(tree, "loss_changes", n),
        value=value,
        docs=_optional(tree, "sum_hessian", n),
        left_codes={
            split: categories.renamed(int(feature[split]), sets[split])
            for split in np.flatnonzero(categorical).tolist()
        },
    )


def _field(tree: Any, name: str) -> Any:
    if not isinstance(tree, dict) or name not in tree:
        raise ModelFileError(f"has a tree without {name!r}")
    return tree[name]


def _optional(tree: Mapping[str, Any], name: str, n: int) -> Floats:
    return numbers(tree[name], name, n) if name in tree else np.zeros(n)


def _right_codes(tree: Mapping[str, Any], n: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Go through the nodes with categories, and these."""
    nodes = integers(tree.get("categories_nodes", []), "categories_nodes")
    begins = integers(tree.get("categories_segments", []), "categories_segments", len(nodes))
    sizes = integers(tree.get("categories_sizes", []), "categories_sizes", len(nodes))
    codes = integers(tree.get("categories", []), "categories")
    fits = (nodes >= 0) & (nodes < n) & (begins >= 0) & (sizes >= 0)
    # Sets may not share codes: so a file cannot hold more of them than it has bytes.
    ends = np.concatenate([begins[1:], [len(codes)]])
    if not fits.all() or (begins > len(codes)).any() or (sizes > ends - begins).any():
        raise ModelFileError("has a tree with unsound sets of categories")
    for node, begin, size in zip(nodes.tolist(), begins.tolist(), sizes.tolist(), strict=True):
        yield node, codes[begin : begin + size]


def _with_documents(trees: Sequence[Nodes]) -> list[Nodes]:
    """Return trees whose sums of hessians are large enough to be whole numbers."""
    sums = [tree.docs[(tree.left == LEAF) & (tree.docs > 0)] for tree in trees]
    least = min((float(of_tree.min()) for of_tree in sums if len(of_tree)), default=1.0)
    scale = min(max(1.0, 1.0 / least), LARGEST_SCALE)
    with np.errstate(over="ignore"):
        return [replace(tree, docs=np.rint(tree.docs * scale)) for tree in trees]


class _Categories:
    """The categories of pandas in the file, by feature: texts, or whole numbers."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        self.texts: dict[int, Mapping[str, int]] = {}
        # The codes that stand for the numbers of categories in the file.
        self.codes: dict[int, NDArray[np.int64]] = {}
        listed = model.get("cats", {})
        encoded = listed.get("enc", []) if isinstance(listed, dict) else []
        if not isinstance(encoded, list):
            raise ModelFileError("has no list of categories by feature")
        for j, of_feature in enumerate(encoded):
            words = _words(of_feature)
            if words:
                self.texts[j], self.codes[j] = category_codes(words, j)

    def renamed(self, feature: int, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the codes that stand for those of the file."""
        if feature not in self.codes:
            return codes
        known = self.codes[feature]
        if ((codes < 0) | (codes >= len(known))).any():
            raise ModelFileError("has a split by a category that the file does not list")
        return known[codes]


def _words(encoded: Any) -> list[str]:
    """Return the categories of a feature as texts; none if the file has only their numbers."""
    listed = encoded.get("values", []) if isinstance(encoded, dict) else []
    values = integers(listed, "values")
    if len(values) == 0:
        return []
    if "offsets" not in encoded:
        return [str(value) for value in values.tolist()]
    offsets = integers(encoded["offsets"], "offsets")
    is_sound = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(values)
    if not is_sound or (np.diff(offsets) < 0).any() or ((values < -128) | (values > 255)).any():
        raise ModelFileError("has unsound texts of categories")
    characters = values.astype(np.uint8).tobytes()
    bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    return [characters[begin:end].decode("utf-8", "replace") for begin, end in bounds]
