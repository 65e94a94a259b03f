"""The plugins of OpenSearch and Elasticsearch, and Solr: trees as nested JSON or XML.

The plugins read XGBoost's dump, which compares in 32 bits, ``x < t``, and RankLib's XML, which
compares ``x <= t``. Solr compares ``x <= t + 1e-6`` in 32 bits. Missing values: newer versions of
the plugins send them where ``missing`` says, older ones right; Solr right.
"""

from __future__ import annotations

import json
from xml.sax.saxutils import escape

import numpy as np

from rankinite.interop.exporter import SINGLE, Order, float32_sum_note, nested
from rankinite.interop.sum_of_trees import Nodes
from rankinite.interop.thresholds import LARGEST, at_most, below, number, with_slack

PRECISION = SINGLE
# Numbers of 32 bits between two that are the same for all purposes.
FEW_NUMBERS = 16
SOLR_TREES = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
SOLR_LINEAR = "org.apache.solr.ltr.model.LinearModel"
ADVICE = (
    "train without missing values (write a number in their place, in training and in the engine "
    "alike)"
)


def dump(order: Order) -> str:
    """Return the trees as XGBoost's ``dump_model`` writes them in JSON."""
    trees = [_dumped(order, nodes) for nodes in order.model.nodes]
    if order.model.start != 0.0 or not trees:
        trees.append(f'{{"nodeid": 0, "leaf": {number(order.model.start)}}}')
    return "[\n" + ",\n".join(trees) + "\n]"


def write_dump(order: Order) -> dict[str, bytes]:
    """Return XGBoost's dump alone."""
    _prepare(order)
    return {"": f"{dump(order)}\n".encode()}


def write_plugin(order: Order) -> dict[str, bytes]:
    """Return the request that uploads a model to the plugin, and the one that makes its features.

    The model is ``model/xgboost+json``.
    """
    if order.net is not None:
        weights = dict(zip(order.names, _linear_weights(order), strict=True))
        return _requests(order, "model/linear", json.dumps(weights))
    _prepare(order)
    if order.model.n_missing_left:
        order.notes.append(
            f"{order.model.n_missing_left:,} splits send documents without a value left; versions "
            "of the plugin that do not know 'missing' send them right"
        )
    return _requests(order, "model/xgboost+json", dump(order))


def write_ranklib(order: Order) -> dict[str, bytes]:
    """Return the same requests with a model of type ``model/ranklib``, in XML."""
    order.refuse_categories()
    order.differs_by_missing(
        order.model.n_learned_missing_left,
        "RankLib knows no missing values",
        f"{ADVICE}; or choose opensearch or elasticsearch",
    )
    float32_sum_note(order)
    trees = []
    for k, nodes in enumerate(order.model.nodes):
        thresholds = at_most(nodes.tree.threshold)

        def leaf(j: int, nodes: Nodes = nodes) -> str:
            return f"<output>{number(nodes.tree.value[j])}</output>"

        def split(k: int, left: str, right: str, n: Nodes = nodes, t: object = thresholds) -> str:
            feature = escape(order.names[int(n.tree.feature[k])])
            return (
                f"<feature>{feature}</feature><threshold>{number(t[k])}</threshold>"  # type: ignore[index]
                f'<split pos="left">{left}</split><split pos="right">{right}</split>'
            )

        text = nested(nodes, leaf, split)
        trees.append(f'<tree id="{k + 1}" weight="1.0"><split>{text}</split></tree>')
    if order.model.start != 0.0 or not trees:
        constant = f"<output>{number(order.model.start)}</output>"
        trees.append(f'<tree id="{len(trees) + 1}" weight="1.0"><split>{constant}</split></tree>')
    xml = "## LambdaMART\n\n<ensemble>\n" + "\n".join(trees) + "\n</ensemble>\n"
    return _requests(order, "model/ranklib", xml)


def _single(value: float) -> float:
    return float(np.float32(value))


def _prepare(order: Order) -> None:
    order.refuse_categories()
    float32_sum_note(order)
    n_inf = sum(int(np.isinf(below(tree.threshold)).sum()) for tree in order.model.trees)
    if n_inf:
        order.notes.append(
            f"{n_inf:,} splits only separate missing values; documents whose feature is "
            f"{LARGEST:.8g}, the largest number of 32 bits, go the other way"
        )


def _dumped(order: Order, nodes: Nodes) -> str:
    tree, n = nodes.tree, len(nodes.left)
    # JSON has no infinity.
    thresholds = np.minimum(below(tree.threshold), LARGEST)

    def number_of(child: int) -> int:
        return child if child >= 0 else n + ~child

    def leaf(j: int) -> str:
        return f'{{"nodeid": {n + j}, "leaf": {number(_single(tree.value[j]))}}}'

    def split(k: int, left: str, right: str) -> str:
        yes, no = number_of(int(nodes.left[k])), number_of(int(nodes.right[k]))
        name = json.dumps(order.names[int(tree.feature[k])])
        return (
            f'{{"nodeid": {k}, "depth": {nodes.depth[k]}, "split": {name}, "split_condition": '
            f'{number(thresholds[k])}, "yes": {yes}, "no": {no}, "missing": '
            f'{yes if tree.missing_left[k] else no}, "children": [{left}, {right}]}}'
        )

    return nested(nodes, leaf, split)


def _requests(order: Order, kind: str, definition: str) -> dict[str, bytes]:
    """Return the bodies of ``POST _ltr/_featureset/NAME/_createmodel`` and of the feature set."""
    model = {"model": {"name": order.name, "model": {"type": kind, "definition": definition}}}
    features = [
        {"name": name, "params": ["keywords"], "template": {"match": {"TODO": "{{keywords}}"}}}
        for name in order.names
    ]
    feature_set = {"featureset": {"name": f"{order.name}_features", "features": features}}
    order.notes.append(
        "the queries of the feature set are placeholders: write the query of every feature, upload "
        f"it with PUT _ltr/_featureset/{order.name}_features, then the model with POST "
        f"_ltr/_featureset/{order.name}_features/_createmodel"
    )
    return {
        "": f"{json.dumps(model, indent=1)}\n".encode(),
        ".featureset.json": f"{json.dumps(feature_set, indent=1)}\n".encode(),
    }


# Linear nets


def _linear_weights(order: Order) -> list[float]:
    """Return the weight of each feature of a linear net."""
    if order.net is None:
        raise AssertionError("the model is no net")
    order.changes(
        "the inputs of a net are clipped at 10 standard deviations, and those that are missing are "
        f"at their mean; {order.to} does neither",
        "export to onnx",
    )
    weights: list[float] = order.net.feature_weights.tolist()
    return weights


# Solr


def write_solr(order: Order) -> dict[str, bytes]:
    """Return a MultipleAdditiveTreesModel, or a LinearModel, and its features as a stub."""
    if order.net is not None:
        return _solr_files(order, _solr_linear(order))
    order.refuse_categories()
    order.differs_by_missing(order.model.n_learned_missing_left, "Solr sends them right", ADVICE)
    by_tree = [with_slack(nodes.tree.threshold) for nodes in order.model.nodes]
    off = np.concatenate([np.zeros(0, np.int64), *(numbers for _, numbers in by_tree)])
    order.differs(
        int((off > FEW_NUMBERS).sum()),
        "have thresholds so near 0 that the 1e-6 which Solr adds to them hides the difference",
        "scale these features",
    )
    if n_off := int(((off > 0) & (off <= FEW_NUMBERS)).sum()):
        order.notes.append(
            f"{n_off:,} thresholds are off by a few of the smallest steps of 32 bits, because Solr "
            "adds 1e-6 to them"
        )
    float32_sum_note(order)
    trees = [
        f'{{"weight": "1", "root": {_solr_tree(order, nodes, thresholds.tolist())}}}'
        for nodes, (thresholds, _) in zip(order.model.nodes, by_tree, strict=True)
    ]
    if order.model.start != 0.0 or not trees:
        trees.append(f'{{"weight": "1", "root": {{"value": "{number(order.model.start)}"}}}}')
    return _solr_files(
        order, _solr_model(order, SOLR_TREES, '{"trees": [\n' + ",\n".join(trees) + "\n]}")
    )


def _solr_linear(order: Order) -> str:
    weights = dict(zip(order.names, map(number, _linear_weights(order)), strict=True))
    return _solr_model(order, SOLR_LINEAR, json.dumps({"weights": weights}))


def _solr_model(order: Order, kind: str, params: str) -> str:
    names = ", ".join(f'{{"name": {json.dumps(name)}}}' for name in order.names)
    return (
        f'{{"class": "{kind}", "name": {json.dumps(order.name)}, "features": [{names}],\n'
        f' "params": {params}}}\n'
    )


def _solr_files(order: Order, text: str) -> dict[str, bytes]:
    """Return a model and the stub of its feature store."""
    store = [
        {
            "name": name,
            "class": "org.apache.solr.ltr.feature.SolrFeature",
            "params": {"q": "{!func}TODO"},
        }
        for name in order.names
    ]
    order.notes.append(
        "the queries of the feature store are placeholders: write the query of every feature, then "
        "upload it to /schema/feature-store and the model to /schema/model-store"
    )
    return {"": text.encode(), ".features.json": f"{json.dumps(store, indent=1)}\n".encode()}


def _solr_tree(order: Order, nodes: Nodes, thresholds: list[float]) -> str:
    tree = nodes.tree

    def leaf(j: int) -> str:
        return f'{{"value": "{number(_single(tree.value[j]))}"}}'

    def split(k: int, left: str, right: str) -> str:
        name = json.dumps(order.names[int(tree.feature[k])])
        return (
            f'{{"feature": {name}, "threshold": "{number(thresholds[k])}", "left": {left}, '
            f'"right": {right}}}'
        )

    return nested(nodes, leaf, split)
