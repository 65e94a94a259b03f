"""XGBoost's JSON: the whole model, as ``Booster.load_model`` takes it.

XGBoost compares in 32 bits, ``x < t``, and adds up leaves in 32 bits. By a categorical split the
categories of the set go right, and unknown ones left; where ours go right, the children change
places.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rankinite.interop.exporter import SINGLE, Order, float32_sum_note
from rankinite.interop.sum_of_trees import Nodes
from rankinite.interop.thresholds import below

PRECISION = SINGLE
VERSION = [2, 1, 0]
NO_PARENT = 2**31 - 1


def write(order: Order) -> dict[str, bytes]:
    """Return the text of a model file."""
    order.check_names(is_possible_name, "names without [, ] and <")
    model = order.model
    trees = [_tree(order, k, nodes) for k, nodes in enumerate(model.nodes)]
    types = ["c" if j in model.categories else "float" for j in range(len(order.names))]
    float32_sum_note(order)
    content = {
        "version": VERSION,
        "learner": {
            "attributes": {},
            "feature_names": list(order.names),
            "feature_types": types,
            "gradient_booster": {
                "name": "gbtree",
                "model": {
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                    "iteration_indptr": list(range(len(trees) + 1)),
                    "tree_info": [0] * len(trees),
                    "trees": trees,
                },
            },
            "learner_model_param": {
                "base_score": repr(float(np.float32(model.start))),
                "boost_from_average": "1",
                "num_class": "0",
                "num_feature": str(len(order.names)),
                "num_target": "1",
            },
            # Its scores are sums; those of rank:ndcg have a start of their own in older versions.
            "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        },
    }
    return {"": json.dumps(content).encode()}


def is_possible_name(name: str) -> bool:
    """Tell whether XGBoost takes a name."""
    return bool(name) and not set("[]<") & set(name)


def _tree(order: Order, k: int, nodes: Nodes) -> dict[str, Any]:
    """Return a tree, whose nodes are numbered such that siblings follow each other."""
    tree = nodes.tree
    # Unknown categories go left in XGBoost; ours go where missing values do.
    is_swapped = tree.categorical & ~tree.missing_left
    left = np.where(is_swapped, nodes.right, nodes.left)
    right = np.where(is_swapped, nodes.left, nodes.right)
    # XGBoost takes the node behind the left child for the right one.
    n = len(left)
    number_of_split, number_of_leaf = np.zeros(n, np.int64), np.zeros(tree.n_leaves, np.int64)
    parents = np.full(n + tree.n_leaves, NO_PARENT, np.int64)
    for split, children in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        for side, child in enumerate(children):
            number = 2 * split + 1 + side
            if child >= 0:
                number_of_split[child] = number
            else:
                number_of_leaf[~child] = number
    for split in range(n):
        parents[2 * split + 1 : 2 * split + 3] = number_of_split[split]
    sets = {
        int(number_of_split[split]): _goes_right(
            order, nodes, split, swapped=bool(is_swapped[split])
        )
        for split in np.flatnonzero(tree.categorical).tolist()
    }
    sets = dict(sorted(sets.items()))
    sizes = [len(codes) for codes in sets.values()]

    def by_number(of_splits: Any, of_leaves: Any, kind: type) -> list[Any]:
        values: Any = np.zeros(n + tree.n_leaves, kind)
        values[number_of_split], values[number_of_leaf] = of_splits, of_leaves
        listed: list[Any] = values.tolist()
        return listed

    left_children = 2 * np.arange(n) + 1
    # In a leaf the condition is its value.
    conditions = by_number(below(np.nan_to_num(tree.threshold)), np.float32(tree.value), np.float64)
    return {
        "id": k,
        "base_weights": by_number(0.0, np.float32(tree.value), np.float64),
        "categories": [code for codes in sets.values() for code in codes],
        "categories_nodes": list(sets),
        "categories_segments": (np.cumsum(sizes) - sizes).tolist() if sizes else [],
        "categories_sizes": sizes,
        "default_left": by_number(tree.missing_left | tree.categorical, 0, np.int64),
        "left_children": by_number(left_children, -1, np.int64),
        "right_children": by_number(left_children + 1, -1, np.int64),
        "loss_changes": by_number(np.float32(tree.gain), 0.0, np.float64),
        "parents": parents.tolist(),
        # Behind the largest number of 32 bits is infinity, which XGBoost reads as JSON of Python.
        "split_conditions": conditions,
        "split_indices": by_number(tree.feature, 0, np.int64),
        "split_type": by_number(tree.categorical, 0, np.int64),
        "sum_hessian": by_number(np.float32(tree.docs), np.float32(tree.leaf_docs), np.float64),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(len(order.names)),
            "num_nodes": str(n + tree.n_leaves),
            "size_leaf_vector": "1",
        },
    }


def _goes_right(order: Order, nodes: Nodes, split: int, *, swapped: bool) -> list[int]:
    """Return the categories that XGBoost shall send right: our right ones, or left if swapped."""
    tree = nodes.tree
    every = order.model.categories[int(tree.feature[split])]
    left = tree.left_categories(split, every)
    codes = left if swapped else np.setdiff1d(every, left)
    numbers: list[int] = codes.astype(np.int64).tolist()
    return numbers
