"""Vespa: JSON as LightGBM's ``dump_model`` writes it, and a rank profile that uses it.

Vespa's importer writes ranking expressions: ``feature < t``, or ``!(feature >= t)`` where missing
values go left, although LightGBM's files mean ``<=``. Names of features become part of these
expressions.
"""

from __future__ import annotations

import json
import re

from rankinite.interop.exporter import DOUBLE, Order, nested
from rankinite.interop.sum_of_trees import Nodes
from rankinite.interop.thresholds import below, number

PRECISION = DOUBLE
# A rank feature, such as bm25(title) or fieldMatch(title).completeness; a number is none.
RANK_FEATURE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\([A-Za-z0-9_,. ()]*\))?(\.[A-Za-z0-9_]+)*")
INDENT = "    "


def write(order: Order) -> dict[str, bytes]:
    """Return the model, and the rank profile."""
    order.refuse_categories()
    order.check_names(is_possible_name, "rank features such as bm25(title) or attribute(price)")
    trees = [_tree(k, nodes) for k, nodes in enumerate(order.model.nodes)]
    if order.model.start != 0.0 or not trees:
        trees.append(_tree_text(len(trees), f'{{"leaf_value": {number(order.model.start)}}}', 1))
    text = (
        '{"name": "tree", "version": "v4", "num_class": 1, "num_tree_per_iteration": 1, '
        f'"label_index": 0, "max_feature_idx": {len(order.names) - 1}, '
        f'"objective": "lambdarank", "feature_names": {json.dumps(list(order.names))},\n'
        ' "pandas_categorical": [], "tree_info": [\n' + ",\n".join(trees) + "\n]}\n"
    )
    order.notes.append(
        "copy the model to models/ of the application package and the rank profile into the schema"
    )
    return {"": text.encode(), ".profile": _profile(order).encode()}


def is_possible_name(name: str) -> bool:
    """Tell whether a name can be part of a ranking expression."""
    return RANK_FEATURE.fullmatch(name) is not None


def _tree(k: int, nodes: Nodes) -> str:
    tree = nodes.tree
    thresholds = below(tree.threshold).tolist()

    def leaf(j: int) -> str:
        return f'{{"leaf_value": {number(tree.value[j])}, "leaf_count": {tree.leaf_docs[j]}}}'

    def split(k: int, left: str, right: str) -> str:
        default_left = "true" if tree.missing_left[k] else "false"
        # Behind the largest number of 32 bits there are others of 64 bits.
        threshold = number(min(thresholds[k], 2.0**128))
        return (
            f'{{"split_feature": {tree.feature[k]}, "threshold": {threshold}, "decision_type": '
            f'"<=", "default_left": {default_left}, "missing_type": "NaN", "internal_count": '
            f'{tree.docs[k]}, "left_child": {left}, "right_child": {right}}}'
        )

    return _tree_text(k, nested(nodes, leaf, split), tree.n_leaves)


def _tree_text(k: int, structure: str, n_leaves: int) -> str:
    return (
        f'{{"tree_index": {k}, "num_leaves": {n_leaves}, "num_cat": 0, "shrinkage": 1, '
        f'"tree_structure": {structure}}}'
    )


def _profile(order: Order) -> str:
    lines = [
        f"rank-profile {order.name} inherits default {{",
        f"{INDENT}second-phase {{",
        f'{INDENT * 2}expression: lightgbm("{order.name}.json")',
        f"{INDENT}}}",
    ]
    # A plain name is no rank feature, but may be that of a function.
    for name in order.names:
        if name.isidentifier():
            lines += [
                f"{INDENT}function {name}() {{",
                f"{INDENT * 2}expression: attribute({name})",
                f"{INDENT}}}",
            ]
    return "\n".join([*lines, "}", ""])
