"""Treelite: a checkpoint, which GTIL and NVIDIA's FIL read."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.errors import MissingExtraError
from rankinite.interop.exporter import DOUBLE, Order
from rankinite.interop.thresholds import at_most

PRECISION = DOUBLE


def write(order: Order) -> dict[str, bytes]:
    """Return a checkpoint of treelite's installed version."""
    try:
        import treelite
        from treelite import model_builder as builders
    except ImportError:
        raise MissingExtraError("treelite", "export") from None
    model = order.model
    builder: Any = builders.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=builders.Metadata(
            num_feature=len(order.names),
            task_type="kRegressor",
            average_tree_output=False,
            num_target=1,
            num_class=[1],
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=builders.TreeAnnotation(
            num_tree=max(1, len(model.trees)),
            target_id=[0] * max(1, len(model.trees)),
            class_id=[0] * max(1, len(model.trees)),
        ),
        postprocessor=builders.PostProcessorFunc(name="identity"),
        base_scores=[model.start],
    )
    for nodes in model.nodes:
        _add_tree(builder, order, nodes)
    if not model.trees:
        builder.start_tree()
        _add_leaf(builder, 0, 0.0)
        builder.end_tree()
    built: treelite.Model = builder.commit()
    order.notes.append(f"written for treelite {treelite.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        built.serialize(str(path))
        return {"": path.read_bytes()}


def _add_tree(builder: Any, order: Order, nodes: Any) -> None:
    tree, n = nodes.tree, len(nodes.left)
    thresholds = at_most(np.nan_to_num(tree.threshold)).tolist()
    builder.start_tree()
    for k in range(n):
        left, right = (
            int(child) if child >= 0 else n + ~int(child)
            for child in (nodes.left[k], nodes.right[k])
        )
        builder.start_node(k)
        if tree.categorical[k]:
            codes = tree.left_categories(k, order.model.categories[int(tree.feature[k])])
            every = order.model.categories[int(tree.feature[k])]
            missing_left = bool(tree.missing_left[k])
            # What is not in the list goes to the other child, unknown categories as well.
            listed = np.setdiff1d(every, codes) if missing_left else codes
            builder.categorical_test(
                feature_id=int(tree.feature[k]),
                default_left=missing_left,
                category_list=listed.astype(np.uint32).tolist(),
                category_list_right_child=missing_left,
                left_child_key=left,
                right_child_key=right,
            )
        else:
            builder.numerical_test(
                feature_id=int(tree.feature[k]),
                threshold=thresholds[k],
                default_left=bool(tree.missing_left[k]),
                opname="<=",
                left_child_key=left,
                right_child_key=right,
            )
        builder.end_node()
    for j in range(tree.n_leaves):
        _add_leaf(builder, n + j, float(tree.value[j]))
    builder.end_tree()


def _add_leaf(builder: Any, key: int, value: float) -> None:
    builder.start_node(key)
    builder.leaf(value)
    builder.end_node()
