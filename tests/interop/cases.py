"""Models of every kind, documents that lie at their thresholds, and what reads exported files."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import secrets
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankinite as rk
from rankinite.interop.sum_of_trees import SumOfTrees

N_FEATURES = 6
CATEGORICAL = "f1"
LARGEST = np.finfo(np.float32).max


NO_MISSING = {"ranklib", "solr"}
# JSON has no infinity, behind which a threshold for "missing or not" would be.
DUMPS = {"xgboost-dump", "opensearch", "elasticsearch"}
NO_CATEGORIES = {*DUMPS, *NO_MISSING, "onnx", "vespa"}
ENDINGS = {"lightgbm": ".txt", "onnx": ".onnx", "c": ".c", "python": ".py"}


def data(*, missing: bool = True, categories: bool = False) -> rk.RankingData:
    """Make queries whose grades follow numbers, a few values, missing values and categories."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(600, N_FEATURES)).astype(np.float32)
    X[:, 2] = np.round(X[:, 2] * 2)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
        # Present or missing is all that this one tells.
        X[:, 4] = np.where(rng.random(600) < 0.3, np.nan, 1.0)
    if categories:
        X[:, 1] = np.where(rng.random(600) < 0.05, np.nan, rng.integers(0, 40, 600))
    gain = np.nan_to_num(X[:, 0]) + np.isnan(X[:, 4]) + np.nan_to_num(X[:, 2])
    gain += np.isin(X[:, 1], [3, 5, 7, 22, 38]) * 2
    y = np.digitize(gain + rng.normal(size=600) * 0.3, [0, 1, 2])
    names = [f"f{j}" for j in range(N_FEATURES)]
    return rk.RankingData(X, y, qid=np.repeat(np.arange(30), 20), feature_names=names)


def _of_trees() -> rk.LambdaMART:
    return rk.LambdaMART(n_trees=12, n_leaves=15, min_docs_in_leaf=5).fit(data())


def _constant() -> rk.MART:
    """A tree of a single leaf, and a start."""
    X, y = np.zeros((4, 1)), [0, 1, 1, 2]
    flat = rk.RankingData(X, y, qid=[1, 1, 2, 2], feature_names=["f0"])
    return rk.MART(n_trees=2).fit(flat)


def _deep() -> rk.MART:
    return rk.MART(n_trees=2, n_leaves=400, min_docs_in_leaf=1, docs_per_tree=1.0).fit(data())


def _average() -> rk.Average:
    members = {"trees": model("trees"), "deep": model("deep")}
    return rk.Average(members).fit(data())


def _mix() -> rk.BestMix:
    return rk.BestMix({"average": model("average"), "trees": model("trees")}).fit(data())


MODELS: dict[str, Callable[[], Any]] = {
    "trees": _of_trees,
    "categories": lambda: rk.LambdaMART(
        n_trees=12, n_leaves=15, min_docs_in_leaf=5, categorical_features=[CATEGORICAL]
    ).fit(data(categories=True)),
    "no missing values": lambda: rk.LambdaMART(n_trees=12, n_leaves=15).fit(data(missing=False)),
    "base": lambda: rk.LambdaMART(n_trees=5, base=model("trees")).fit(data()),
    "deep": _deep,
    "constant": _constant,
    "average": _average,
    "mix of averages": _mix,
}


@cache
def model(name: str) -> Any:
    """Return a fitted model."""
    return MODELS[name]()


def documents(trees: SumOfTrees, n: int) -> np.ndarray:
    """Make documents of all thresholds, their neighbours, zeros, extremes and missing values."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, len(trees.feature_names))).astype(np.float32)
    for j in range(X.shape[1]):
        if j in trees.categories:
            values = [trees.categories[j], np.arange(60), [np.nan]]
        else:
            used = [t.threshold[(t.feature == j) & np.isfinite(t.threshold)] for t in trees.trees]
            t = np.unique(np.concatenate([np.zeros(0, np.float32), *used]))
            up, down = np.nextafter(t, np.float32(np.inf)), np.nextafter(t, np.float32(-np.inf))
            extremes = [0.0, -0.0, np.nan, LARGEST, -LARGEST, 1e-45, -1e-45, 1e-38]
            values = [t, up, down, extremes]
        pool = np.concatenate(values).astype(np.float32)
        # Each value of the pool occurs, in a random order.
        chosen = rng.permutation(np.resize(pool, n))
        X[:, j] = (
            chosen if j in trees.categories else np.where(rng.random(n) < 0.8, chosen, X[:, j])
        )
    return X


def documents_for(to: str, trees: SumOfTrees, n: int) -> np.ndarray:
    """Return documents without what a format cannot tell: missing values, or the largest number."""
    X = documents(trees, n)
    if to in NO_MISSING:
        return np.where(np.isnan(X), np.float32(0.5), X)
    return np.where(X == LARGEST, np.float32(0.5), X) if to in DUMPS else X


# What other tools score, by their own code


def by_lightgbm(path: Path, X: np.ndarray) -> np.ndarray:
    booster = pytest.importorskip("lightgbm").Booster(model_file=str(path))
    return booster.predict(X.astype(np.float64), raw_score=True)


def by_xgboost(path: Path, X: np.ndarray) -> np.ndarray:
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.Booster()
    booster.load_model(path)
    matrix = xgboost.DMatrix(
        X,
        feature_names=booster.feature_names,
        feature_types=booster.feature_types,
        enable_categorical=True,
    )
    return booster.predict(matrix, output_margin=True)


def by_onnx(path: Path, X: np.ndarray) -> np.ndarray:
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path))
    return session.run(None, {"features": X.astype(np.float64)})[0][:, 0]


def by_treelite(path: Path, X: np.ndarray) -> np.ndarray:
    treelite = pytest.importorskip("treelite")
    checkpoint = treelite.Model.deserialize(str(path))
    return treelite.gtil.predict(checkpoint, X.astype(np.float64)).reshape(-1)


GCC = ["gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]


def by_c(path: Path, X: np.ndarray) -> np.ndarray:
    # A library of the same name would not be loaded again.
    library = path.resolve().with_name(f"{secrets.token_hex(8)}.so")
    subprocess.run([*GCC, "-o", str(library), str(path)], check=True, timeout=120)
    loaded = ctypes.CDLL(str(library))
    scores = np.empty(len(X))
    loaded.model_score_batch(
        np.ascontiguousarray(X).ctypes.data_as(ctypes.c_void_p),
        ctypes.c_size_t(len(X)),
        scores.ctypes.data_as(ctypes.c_void_p),
    )
    return scores


def by_python(path: Path, X: np.ndarray) -> np.ndarray:
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.score(X)


# What search engines would score: their rules, on the exported files


def walk(node: Any, goes_left: Callable, X: np.ndarray, out: np.ndarray, kind: type) -> None:
    """Add the value of its leaf to each document, for nested nodes of any format.

    ``goes_left`` takes a node and documents; it returns the value of a leaf, or which documents go
    left and both children.
    """
    stack = [(node, np.arange(len(X)))]
    while stack:
        node, docs = stack.pop()
        answer = goes_left(node, X[docs])
        if isinstance(answer, tuple):
            is_left, left, right = answer
            stack += [(left, docs[is_left]), (right, docs[~is_left])]
        else:
            out[docs] += kind(answer)


def columns_of(names: list[str]) -> dict[str, int]:
    return {name: j for j, name in enumerate(names)}


def by_xgboost_rule(path: Path, X: np.ndarray) -> np.ndarray:
    """In 32 bits left if x < t; categories of the set go right, others left."""
    learner = json.loads(path.read_text())["learner"]
    start = np.float32(float(learner["learner_model_param"]["base_score"]))
    scores = np.full(len(X), start, np.float32)
    for tree in learner["gradient_booster"]["model"]["trees"]:
        bounds = zip(tree["categories_segments"], tree["categories_sizes"], strict=True)
        sets = {
            node: tree["categories"][begin : begin + size]
            for node, (begin, size) in zip(tree["categories_nodes"], bounds, strict=True)
        }

        def goes_left(node, X, tree=tree, sets=sets):
            left, right = tree["left_children"][node], tree["right_children"][node]
            if left == -1:
                return tree["split_conditions"][node]
            assert right == left + 1
            assert tree["parents"][left] == tree["parents"][right] == node
            x = X[:, tree["split_indices"][node]]
            if tree["split_type"][node]:
                is_left = ~np.isin(x, sets[node])
            else:
                is_left = x < np.float32(tree["split_conditions"][node])
            return np.where(np.isnan(x), bool(tree["default_left"][node]), is_left), left, right

        walk(0, goes_left, X, scores, np.float32)
    return scores


def by_dump_rule(trees: Any, X: np.ndarray, names: list[str]) -> np.ndarray:
    """In 32 bits the "yes" child if x < t, "missing" if there is none."""
    columns, scores = columns_of(names), np.zeros(len(X), np.float32)

    def goes_left(node, X):
        if "leaf" in node:
            return node["leaf"]
        yes, no = node["children"]
        assert (yes["nodeid"], no["nodeid"]) == (node["yes"], node["no"])
        x = X[:, columns[node["split"]]]
        is_left = x < np.float32(node["split_condition"])
        return np.where(np.isnan(x), node["missing"] == node["yes"], is_left), yes, no

    for tree in trees:
        walk(tree, goes_left, X, scores, np.float32)
    return scores


def by_dump(path: Path, X: np.ndarray) -> np.ndarray:
    return by_dump_rule(json.loads(path.read_text()), X, [f"f{j}" for j in range(N_FEATURES)])


def by_plugin(path: Path, X: np.ndarray) -> np.ndarray:
    names = features_of(path.with_suffix(".featureset.json"))
    uploaded = json.loads(path.read_text())["model"]["model"]
    assert uploaded["type"] == "model/xgboost+json"
    return by_dump_rule(json.loads(uploaded["definition"]), X, names)


def features_of(path: Path) -> list[str]:
    return [feature["name"] for feature in json.loads(path.read_text())["featureset"]["features"]]


def by_ranklib(path: Path, X: np.ndarray) -> np.ndarray:
    """In 32 bits left if x <= t."""
    columns = columns_of(features_of(path.with_suffix(".featureset.json")))
    uploaded = json.loads(path.read_text())["model"]["model"]
    assert uploaded["type"] == "model/ranklib"
    scores = np.zeros(len(X), np.float32)

    def goes_left(node, X):
        if (output := node.find("output")) is not None:
            return float(output.text)
        x = X[:, columns[node.find("feature").text.strip()]]
        children = {child.get("pos"): child for child in node.findall("split")}
        is_left = x <= np.float32(node.find("threshold").text)
        return is_left, children["left"], children["right"]

    text = uploaded["definition"].removeprefix("## LambdaMART")
    for tree in ElementTree.fromstring(text).findall("tree"):
        walk(tree.find("split"), goes_left, X, scores, np.float32)
    return scores


def by_solr(path: Path, X: np.ndarray) -> np.ndarray:
    """In 32 bits left if x <= t + 1e-6."""
    content = json.loads(path.read_text())
    columns = columns_of([feature["name"] for feature in content["features"]])
    scores = np.zeros(len(X), np.float32)

    def goes_left(node, X):
        if "value" in node:
            return float(node["value"])
        threshold = np.float32(node["threshold"]) + np.float32(1e-6)
        return X[:, columns[node["feature"]]] <= threshold, node["left"], node["right"]

    for tree in content["params"]["trees"]:
        assert tree["weight"] == "1"
        walk(tree["root"], goes_left, X, scores, np.float32)
    return scores


def by_vespa(path: Path, X: np.ndarray) -> np.ndarray:
    """In 64 bits left if x < t, or if not x >= t where missing values go left."""
    content = json.loads(path.read_text())
    assert content["pandas_categorical"] == []
    scores = np.zeros(len(X))

    def goes_left(node, X):
        if "leaf_value" in node:
            return node["leaf_value"]
        assert node["decision_type"] == "<="
        x, threshold = X[:, node["split_feature"]].astype(np.float64), float(node["threshold"])
        is_left = ~(x >= threshold) if node["default_left"] else x < threshold
        return is_left, node["left_child"], node["right_child"]

    for tree in content["tree_info"]:
        walk(tree["tree_structure"], goes_left, X, scores, np.float64)
    return scores


SCORED_BY: dict[str, list[Callable[[Path, np.ndarray], np.ndarray]]] = {
    "lightgbm": [by_lightgbm],
    "xgboost": [by_xgboost_rule, by_xgboost],
    "xgboost-dump": [by_dump],
    "onnx": [by_onnx],
    "opensearch": [by_plugin],
    "elasticsearch": [by_plugin],
    "ranklib": [by_ranklib],
    "solr": [by_solr],
    "vespa": [by_vespa],
    "treelite": [by_treelite],
    "c": [by_c],
    "python": [by_python],
}


# A model of RankLib, written by hand.
RANKLIB = """## {name}
## No. of trees = 2

{ensembles}"""
ENSEMBLE = """<ensemble>
	<tree id="1" weight="0.1">
		<split>
			<feature> 2 </feature>
			<threshold> 0.5 </threshold>
			<split pos="left">
				<feature> 1 </feature>
				<threshold> -1.0 </threshold>
				<split pos="left">
					<output> -2.0 </output>
				</split>
				<split pos="right">
					<output> 1.5 </output>
				</split>
			</split>
			<split pos="right">
				<output> 4.0 </output>
			</split>
		</split>
	</tree>
	<tree id="2" weight="0.5">
		<split>
			<output> 0.25 </output>
		</split>
	</tree>
</ensemble>
"""
