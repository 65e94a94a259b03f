"""ONNX: a TreeEnsembleRegressor, or a net of matrices, that takes features of 64 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankinite.core.errors import MissingExtraError
from rankinite.interop.exporter import DOUBLE, Order
from rankinite.interop.nets import PlainNet
from rankinite.interop.thresholds import at_most
from rankinite.nets.kernels.forward import INPUT_LIMIT

PRECISION = DOUBLE
INPUT, OUTPUT = "features", "scores"
ML_VERSION, ONNX_VERSION, IR_VERSION = 3, 18, 8


def write(order: Order) -> dict[str, bytes]:
    """Return the bytes of a model file."""
    order.refuse_categories()
    try:
        import onnx
        from onnx import helper
    except ImportError:
        raise MissingExtraError("onnx", "export") from None
    nodes, constants = _net(order.net, helper) if order.net else _trees(order, helper)
    graph = helper.make_graph(
        nodes,
        order.name,
        [helper.make_tensor_value_info(INPUT, onnx.TensorProto.DOUBLE, [None, len(order.names)])],
        # Of TreeEnsembleRegressor scores are of 32 bits, whatever its input.
        [helper.make_tensor_value_info(OUTPUT, onnx.TensorProto.FLOAT, [None, 1])],
        initializer=constants,
    )
    versions = [
        helper.make_opsetid("", ONNX_VERSION),
        helper.make_opsetid("ai.onnx.ml", ML_VERSION),
    ]
    model = helper.make_model(graph, opset_imports=versions, producer_name="rankinite")
    model.ir_version = IR_VERSION
    helper.set_model_props(model, {"features": "\n".join(order.names)})
    onnx.checker.check_model(model)
    order.notes.append(
        "features are numbers of 64 bits (double), in the order of the model; scores are added up "
        "in 64 bits and returned in 32"
    )
    return {"": model.SerializeToString(deterministic=True)}


def _trees(order: Order, helper: Any) -> tuple[list[Any], list[Any]]:
    """Return the node of all trees."""
    return [
        helper.make_node(
            "TreeEnsembleRegressor",
            [INPUT],
            [OUTPUT],
            domain="ai.onnx.ml",
            **_attributes(order, helper),
        )
    ], []


def _net(net: PlainNet, helper: Any) -> tuple[list[Any], list[Any]]:
    """Return the nodes of a net, and its constants.

    In 64 bits; we compute in 32, so that scores differ in the seventh digit.
    """
    from onnx import numpy_helper

    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, value: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def apply(operation: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        name = out or f"v{len(nodes)}"
        nodes.append(helper.make_node(operation, list(inputs), [name], **attributes))
        return name

    values = apply("Gather", INPUT, constant("inputs", net.features), axis=1)
    centred = apply("Sub", values, constant("means", net.means))
    scaled = apply("Mul", centred, constant("scales", net.scales))
    # Missing values are at the mean.
    known = apply("Where", apply("IsNaN", scaled), constant("zero", np.zeros(1)), scaled)
    limit = float(INPUT_LIMIT)
    current = apply("Clip", known, constant("least", -limit), constant("largest", limit))
    for k, layer in enumerate(net.layers):
        product = apply("MatMul", current, constant(f"weights{k}", layer.weights.T.copy()))
        current = apply("Add", product, constant(f"biases{k}", layer.biases))
        if k + 1 < len(net.layers):
            current = apply("Tanh" if net.activation == "tanh" else "Relu", current)
    score = apply("Add", current, constant("start", np.array([net.start])))
    apply("Cast", score, out=OUTPUT, to=1)  # to 32 bits
    return nodes, constants


def _attributes(order: Order, helper: Any) -> dict[str, Any]:
    lists: dict[str, list[Any]] = {
        name: []
        for name in (
            "nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes",
            "nodes_truenodeids", "nodes_falsenodeids", "nodes_missing_value_tracks_true",
            "target_treeids", "target_nodeids",
        )
    }  # fmt: skip
    thresholds: list[float] = []
    values: list[float] = []
    for k, nodes in enumerate(order.model.nodes):
        tree, n = nodes.tree, len(nodes.left)
        n_leaves = tree.n_leaves
        lists["nodes_treeids"] += [k] * (n + n_leaves)
        lists["nodes_nodeids"] += range(n + n_leaves)
        lists["nodes_featureids"] += [*tree.feature.tolist(), *[0] * n_leaves]
        lists["nodes_modes"] += ["BRANCH_LEQ"] * n + ["LEAF"] * n_leaves
        for name, children in (("true", nodes.left), ("false", nodes.right)):
            numbers = np.where(children >= 0, children, n + ~children)
            lists[f"nodes_{name}nodeids"] += [*numbers.tolist(), *[0] * n_leaves]
        lists["nodes_missing_value_tracks_true"] += [
            *tree.missing_left.astype(int).tolist(), *[0] * n_leaves
        ]  # fmt: skip
        thresholds += [*at_most(tree.threshold).tolist(), *[0.0] * n_leaves]
        lists["target_treeids"] += [k] * n_leaves
        lists["target_nodeids"] += range(n, n + n_leaves)
        values += tree.value.tolist()
    from onnx import TensorProto

    def tensor(name: str, numbers: list[float]) -> Any:
        return helper.make_tensor(name, TensorProto.DOUBLE, [len(numbers)], numbers)

    return {
        **lists,
        "nodes_values_as_tensor": tensor("nodes_values", thresholds),
        "target_ids": [0] * len(values),
        "target_weights_as_tensor": tensor("target_weights", values),
        "base_values_as_tensor": tensor("base_values", [order.model.start]),
        "n_targets": 1,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
    }
