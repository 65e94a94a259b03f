"""LightGBM's text format, which LightGBM, treelite, Vespa's and other importers read.

LightGBM compares in 64 bits, ``x <= t``. A split's ``decision_type`` has a bit for categories, one
for missing values that go left, and 2 in the bits above for "missing is NaN". By a categorical
split missing and unknown categories go right; where ours go left, the children change places and
the set is that of the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rankinite.interop.exporter import DOUBLE, Order
from rankinite.interop.sum_of_trees import Nodes
from rankinite.interop.thresholds import at_most, number

CATEGORICAL, DEFAULT_LEFT, MISSING_IS_NAN = 1, 2, 8
PRECISION = DOUBLE
# Characters that separate names and values in the file, or that LightGBM refuses in names.
RESERVED = set('",:[]{}')
WORD_BITS = 32


def write(order: Order) -> dict[str, bytes]:
    """Return the text of a model file."""
    order.check_names(is_possible_name, 'names without spaces, control characters and ",:[]{}')
    model = order.model
    trees = [_tree_text(order, k, nodes) for k, nodes in enumerate(model.nodes)]
    if model.start != 0.0 or not trees:
        trees.append(_constant_text(len(trees), model.start))
    header = _lines(
        "tree",
        version="v4",
        num_class=1,
        num_tree_per_iteration=1,
        label_index=0,
        max_feature_idx=len(order.names) - 1,
        # Without one, importers take the model for a classifier.
        objective="lambdarank",
        feature_names=" ".join(order.names),
        feature_infos=" ".join(_feature_infos(order)),
        tree_sizes=" ".join(str(len(text.encode())) for text in trees),
    )
    ending = "end of trees\n\nfeature_importances:\n\nparameters:\n\nend of parameters\n"
    text = f"{header}\n{''.join(trees)}{ending}\npandas_categorical:null\n"
    return {"": text.encode()}


def is_possible_name(name: str) -> bool:
    """Tell whether LightGBM's files can hold a name."""
    return bool(name) and name.isprintable() and " " not in name and not RESERVED & set(name)


def _feature_infos(order: Order) -> Iterable[str]:
    """Return the ranges of features, which nobody needs but all readers expect."""
    used = {int(feature) for tree in order.model.trees for feature in tree.feature}
    for j in range(len(order.names)):
        if j in order.model.categories:
            codes = order.model.categories[j].astype(np.int64).tolist()
            yield ":".join(map(str, codes)) or "none"
        else:
            yield "[-3.4e+38:3.4e+38]" if j in used else "none"


def _constant_text(k: int, value: float) -> str:
    text = _lines(f"Tree={k}", num_leaves=1, num_cat=0, leaf_value=number(value), shrinkage=1)
    return f"{text}\n\n"


def _tree_text(order: Order, k: int, nodes: Nodes) -> str:
    tree = nodes.tree
    if not len(tree.feature):
        return _constant_text(k, float(tree.value[0]))
    missing_left = tree.missing_left
    left, right = nodes.left.copy(), nodes.right.copy()
    is_swapped = tree.categorical & missing_left
    left[is_swapped], right[is_swapped] = nodes.right[is_swapped], nodes.left[is_swapped]
    types = np.where(missing_left, DEFAULT_LEFT | MISSING_IS_NAN, MISSING_IS_NAN)
    types[tree.categorical] = CATEGORICAL | MISSING_IS_NAN
    thresholds = [number(t) for t in at_most(np.nan_to_num(tree.threshold))]
    sets: list[Any] = []
    for split in np.flatnonzero(tree.categorical).tolist():
        thresholds[split] = str(len(sets))
        sets.append(
            _words(
                _right_of(order, tree, split) if is_swapped[split] else _left_of(order, tree, split)
            )
        )
    categories: dict[str, Any] = {}
    if sets:
        ends = np.cumsum([0, *map(len, sets)])
        categories = {
            "cat_boundaries": _joined(ends),
            "cat_threshold": _joined(np.concatenate(sets)),
        }
    text = _lines(
        f"Tree={k}",
        num_leaves=tree.n_leaves,
        num_cat=len(sets),
        split_feature=_joined(tree.feature),
        split_gain=" ".join(f"{gain:.6g}" for gain in tree.gain.tolist()),
        threshold=" ".join(thresholds),
        decision_type=_joined(types),
        left_child=_joined(left),
        right_child=_joined(right),
        leaf_value=" ".join(number(value) for value in tree.value.tolist()),
        leaf_weight=_joined(tree.leaf_docs),
        leaf_count=_joined(tree.leaf_docs),
        internal_value=_joined(np.zeros(len(tree.feature), np.int64)),
        internal_weight=_joined(tree.docs),
        internal_count=_joined(tree.docs),
        **categories,
        is_linear=0,
        shrinkage=1,
    )
    return f"{text}\n\n"


def _left_of(order: Order, tree: Any, split: int) -> Any:
    return tree.left_categories(split, order.model.categories[int(tree.feature[split])])


def _right_of(order: Order, tree: Any, split: int) -> Any:
    every = order.model.categories[int(tree.feature[split])]
    return np.setdiff1d(every, _left_of(order, tree, split))


def _words(codes: Any) -> Any:
    """Return a set of whole numbers as bits of words."""
    numbers = codes.astype(np.int64)
    words = np.zeros(int(numbers.max(initial=0)) // WORD_BITS + 1, np.uint32)
    np.bitwise_or.at(
        words, numbers // WORD_BITS, np.uint32(1) << (numbers % WORD_BITS).astype(np.uint32)
    )
    return words


def _joined(numbers: Any) -> str:
    return " ".join(map(str, np.asarray(numbers).tolist()))


def _lines(first: str, **values: Any) -> str:
    return "\n".join([first, *(f"{name}={value}" for name, value in values.items())]) + "\n"
