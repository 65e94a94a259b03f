"""Imported models against the tools that trained them: scores of a million documents, and seconds.

    .venv/bin/python benchmarks/imports.py [NAME...] [--docs 1000000] [--time-docs 100000]

The documents hold every threshold of the model, both 32-bit numbers beside it, missing values,
zeros of both signs and numbers that are almost 0. A document counts as moved if its rank in a query
of 100 documents differs. Where a tool adds up numbers of 32 bits, so do we in a second comparison
("in 32 bits"): if every document is at the same leaves, all bits are the same. RankLib is Java; its
rules, written down once more in numpy, stand for it. Turns alternate, and the least time counts.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

import rankinite as rk
from rankinite.rankers.imported import ImportedForest

Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]
N_FEATURES, CATEGORICAL = 20, (18, 19)
QUERIES, QUERY_DOCS = 200, 100
THREADS = 2
# OpenMP's threads that wait would take the cores from the others.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@dataclass(frozen=True)
class Case:
    """A model of a tool, in a file, and its scores of documents."""

    path: Path
    scores: Callable[[Matrix], Floats]
    in_32_bits: bool = False


@dataclass(frozen=True)
class Training:
    """What all models are trained on."""

    X: Matrix
    y: Floats
    folder: Path

    @property
    def sizes(self) -> list[int]:
        """Sizes of the queries."""
        return [QUERY_DOCS] * QUERIES

    @property
    def qid(self) -> NDArray[np.int64]:
        """The query of each document."""
        return np.repeat(np.arange(QUERIES), QUERY_DOCS)


def training_data(folder: Path) -> Training:
    rng = np.random.default_rng(1)
    n = QUERIES * QUERY_DOCS
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2:4] = np.maximum(X[:, 2:4], 0)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = 0.0
    X[:, CATEGORICAL[0]] = rng.integers(0, 8, n)
    X[:, CATEGORICAL[1]] = rng.integers(0, 60, n)
    X[rng.random(n) < 0.1, CATEGORICAL[0]] = np.nan
    clean = np.nan_to_num(X)
    score = clean[:, 0] + clean[:, 1] * clean[:, 2] + np.sin(3 * clean[:, 4]) + (clean[:, 18] == 3)
    score += clean[:, 19] % 7 / 3 + rng.normal(size=n)
    return Training(
        X, np.digitize(score, np.quantile(score, [0.5, 0.75, 0.9])).astype(float), folder
    )


# Tools


def lightgbm_case(
    training: Training, n_trees: int = 100, categories: bool = False, **parameters: Any
) -> Case:
    import lightgbm as lgb

    settings = {"objective": "lambdarank", "num_leaves": 31, "verbose": -1, "num_threads": THREADS,
                "deterministic": True} | parameters  # fmt: skip
    data = lgb.Dataset(
        training.X,
        training.y,
        group=training.sizes,
        categorical_feature=list(CATEGORICAL) if categories else [],
        params=settings,
    )
    path = training.folder / "model.txt"
    lgb.train(settings, data, n_trees).save_model(path)
    booster = lgb.Booster(model_file=path)
    # Of a random forest the raw score is the sum, and ours the mean.
    raw = settings.get("boosting") != "rf"
    return Case(path, lambda X: booster.predict(X, raw_score=raw, num_threads=THREADS))


def xgboost_case(
    training: Training,
    n_trees: int = 100,
    categories: bool = False,
    form: str = "json",
    **parameters: Any,
) -> Case:
    import xgboost as xgb

    kinds = ["c" if categories and j in CATEGORICAL else "q" for j in range(N_FEATURES)]
    settings = {"objective": "rank:ndcg", "max_depth": 6, "nthread": THREADS} | parameters
    logistic = str(settings["objective"]).startswith("binary")

    def matrix(X: Matrix, **more: Any) -> Any:
        return xgb.DMatrix(X, feature_types=kinds, enable_categorical=True, nthread=THREADS, **more)

    y = (training.y > 1).astype(float) if logistic else training.y
    data = matrix(training.X, label=y, qid=training.qid)
    path = training.folder / f"model.{form}"
    xgb.train(settings, data, n_trees).save_model(path)
    booster = xgb.Booster(model_file=path)
    booster.set_param({"nthread": THREADS})

    def scores(X: Matrix) -> Floats:
        if categories:
            return booster.predict(matrix(X), output_margin=True).astype(np.float64)
        return booster.inplace_predict(X, predict_type="margin").astype(np.float64)

    return Case(path, scores, in_32_bits=True)


def catboost_case(training: Training, **parameters: Any) -> Case:
    import catboost

    settings = {"iterations": 100, "loss_function": "QueryRMSE", "verbose": False,
                "allow_writing_files": False, "thread_count": THREADS} | parameters  # fmt: skip
    model = catboost.CatBoost(settings)
    model.fit(catboost.Pool(training.X, training.y, group_id=training.qid))
    path = training.folder / "model.json"
    model.save_model(path, format="json")
    again = catboost.CatBoost().load_model(path, format="json")
    return Case(path, lambda X: again.predict(X, thread_count=THREADS))


def ranklib_case(training: Training, n_ensembles: int = 1, n_trees: int = 100) -> Case:
    """Write random trees as RankLib writes its own."""
    rng = np.random.default_rng(2)
    forest = n_ensembles > 1

    def split(depth: int) -> str:
        if depth == 0 or rng.random() < 0.1:
            return f"<output> {np.float32(rng.normal())} </output>"
        j = int(rng.integers(N_FEATURES))
        threshold = rng.choice(training.X[~np.isnan(training.X[:, j]), j])
        return (
            f"<feature> {j + 1} </feature>\n<threshold> {threshold} </threshold>\n"
            f'<split pos="left">\n{split(depth - 1)}\n</split>\n'
            f'<split pos="right">\n{split(depth - 1)}\n</split>\n'
        )

    trees = [
        [
            f'\t<tree id="{k + 1}" weight="0.1">\n<split>\n{split(6)}</split>\n\t</tree>\n'
            for k in range(n_trees // n_ensembles)
        ]
        for _ in range(n_ensembles)
    ]
    header = f"## {'Random Forests' if forest else 'LambdaMART'}\n## No. of trees = {n_trees}\n\n"
    text = "\n".join(f"<ensemble>\n{''.join(of_ensemble)}</ensemble>" for of_ensemble in trees)
    path = training.folder / "model.xml"
    path.write_text(header + text)
    return Case(path, lambda X: ranklib_scores(text, X), in_32_bits=not forest)


def ranklib_scores(text: str, X: Matrix) -> Floats:
    """Return the scores by RankLib's rules: sums of 32 bits, means of ensembles in 64."""
    numbers = np.nan_to_num(X)
    sums = []
    for ensemble in ElementTree.fromstring(f"<all>{text}</all>"):
        total = np.zeros(len(X), np.float32)
        for tree in ensemble:
            values = np.empty(len(X))
            follow(tree[0], numbers, np.arange(len(X)), values)
            total = (total + values * float(np.float32(tree.get("weight")))).astype(np.float32)
        sums.append(total.astype(np.float64))
    return np.sum(sums, axis=0) / len(sums)


def follow(node: Any, X: Matrix, docs: NDArray[np.int64], values: Floats) -> None:
    output = node.find("output")
    if output is not None:
        values[docs] = np.float32(output.text)
        return
    feature, threshold = int(node.find("feature").text) - 1, np.float32(node.find("threshold").text)
    goes_left = X[docs, feature] <= threshold
    left, right = node.findall("split")
    follow(left, X, docs[goes_left], values)
    follow(right, X, docs[~goes_left], values)


CASES: dict[str, Callable[[Training], Case]] = {
    "LightGBM, lambdarank": lightgbm_case,
    "LightGBM, no missing values": lambda t: lightgbm_case(t, use_missing=False),
    "LightGBM, zeros missing": lambda t: lightgbm_case(t, zero_as_missing=True),
    "LightGBM, categories": lambda t: lightgbm_case(t, categories=True),
    "LightGBM, dart": lambda t: lightgbm_case(t, boosting="dart"),
    "LightGBM, random forest": lambda t: lightgbm_case(
        t, boosting="rf", bagging_freq=1, bagging_fraction=0.6, objective="regression"
    ),
    "LightGBM, 1,000 leaves": lambda t: lightgbm_case(
        t, n_trees=50, num_leaves=1000, min_data_in_leaf=1, objective="regression"
    ),
    "LightGBM, 5,000 bins": lambda t: lightgbm_case(
        t, num_leaves=255, max_bin=5000, min_data_in_bin=1, min_data_in_leaf=1
    ),
    "LightGBM, binary": lambda t: lightgbm_case(
        Training(t.X, (t.y > 1).astype(float), t.folder), objective="binary", categories=True
    ),
    "XGBoost, rank:ndcg": xgboost_case,
    "XGBoost, rank:ndcg, UBJSON": lambda t: xgboost_case(t, form="ubj"),
    "XGBoost, categories": lambda t: xgboost_case(t, categories=True),
    "XGBoost, dart": lambda t: xgboost_case(t, booster="dart", rate_drop=0.2),
    "XGBoost, random forest": lambda t: xgboost_case(
        t,
        n_trees=2,
        num_parallel_tree=50,
        subsample=0.6,
        colsample_bynode=0.5,
        learning_rate=1,
        objective="reg:squarederror",
    ),
    "XGBoost, exact, depth 14": lambda t: xgboost_case(
        t, tree_method="exact", max_depth=14, objective="reg:squarederror"
    ),
    "XGBoost, 300 leaves": lambda t: xgboost_case(
        t, max_depth=0, max_leaves=300, grow_policy="lossguide", tree_method="hist"
    ),
    "XGBoost, binary:logistic": lambda t: xgboost_case(t, objective="binary:logistic"),
    "CatBoost, QueryRMSE": catboost_case,
    "CatBoost, missing above": lambda t: catboost_case(t, nan_mode="Max"),
    "CatBoost, depth 10, 5,000 borders": lambda t: catboost_case(
        t, depth=10, border_count=5000, iterations=50
    ),
    "CatBoost, YetiRank": lambda t: catboost_case(t, loss_function="YetiRank", iterations=30),
    "CatBoost, Lossguide": lambda t: catboost_case(t, grow_policy="Lossguide", max_leaves=64),
    "CatBoost, Depthwise": lambda t: catboost_case(t, grow_policy="Depthwise"),
    "RankLib, LambdaMART": ranklib_case,
    "RankLib, random forest": lambda t: ranklib_case(t, n_ensembles=10),
}


# Documents


def documents(model: ImportedForest, n: int, with_categories: bool) -> Matrix:
    """Return documents with every threshold of a model, and what else is easily mistaken."""
    rng = np.random.default_rng(3)
    trees = model.forest_.trees
    feature = np.concatenate([tree.feature for tree in trees])
    threshold = np.concatenate([tree.threshold for tree in trees])
    X = rng.normal(scale=1.5, size=(n, model.n_features_in_)).astype(np.float32)
    for j in range(X.shape[1]):
        if with_categories and j in CATEGORICAL:
            X[:, j] = rng.integers(0, 70, n)
            X[rng.random(n) < 0.1, j] = np.nan
            continue
        cuts = np.unique(threshold[(feature == j) & np.isfinite(threshold)])
        special = np.concatenate([cuts, *beside(cuts), *beside(beside(cuts)[1]), EXTREMES])
        special = special[~np.isinf(special)]
        chosen = rng.random(n) < 0.6
        X[chosen, j] = rng.choice(special, chosen.sum())
        # Every one at least once, wherever the others are.
        places = rng.permutation(n)[: len(special)]
        X[places, j] = special[: len(places)]
    return X


def beside(numbers: Matrix) -> tuple[Matrix, Matrix]:
    with np.errstate(under="ignore"):
        below = np.nextafter(numbers, np.float32(-np.inf))
        return below, np.nextafter(numbers, np.float32(np.inf))


LARGEST = np.finfo(np.float32).max
TINY = np.array([0.0, -0.0, 1e-35, -1e-35, 1e-36, -1e-36, 1.4e-45, -1.4e-45, 1.2e-38], np.float32)
EXTREMES = np.concatenate(
    [TINY, *beside(TINY), np.array([np.nan] * 20, np.float32), [LARGEST, -LARGEST]]
).astype(np.float32)


# Comparisons


def moved(ours: Floats, theirs: Floats) -> int:
    """Return how many documents have another rank in queries of 100 documents."""
    n = len(ours) // QUERY_DOCS * QUERY_DOCS
    orders = [
        np.argsort(-scores[:n].reshape(-1, QUERY_DOCS), axis=1, kind="stable")
        for scores in (ours, theirs)
    ]
    return int((orders[0] != orders[1]).sum())


def sums_in_32_bits(model: ImportedForest, X: Matrix) -> Iterator[Floats]:
    """Yield the scores as numbers of 32 bits, the start added first, and last."""
    trees = model.forest_.trees
    start = np.float32(model.forest_.start[0])
    for first in (True, False):
        parts = []
        for begin in range(0, len(X), 50_000):
            leaves = model.predict_leaf(X[begin : begin + 50_000])
            total = np.full(len(leaves), start if first else 0.0, np.float32)
            for number, tree in enumerate(trees):
                total = (total + tree.value[leaves[:, number]]).astype(np.float32)
            parts.append(total if first else total + start)
        yield np.concatenate(parts).astype(np.float64)


def seconds(predict: Callable[[Matrix], Floats], X: Matrix) -> float:
    begin = time.perf_counter()
    predict(X)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases that begin so; all if none")
    parser.add_argument("--docs", type=int, default=1_000_000)
    parser.add_argument("--time-docs", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=5)
    chosen = parser.parse_args()
    rk.set_threads(THREADS)
    print(f"{'model':34} {'trees':>5} {'cuts':>6} {'documents':>9} {'difference':>10} {'moved':>6} "
          f"{'in 32 bits':>10} {'ours s':>7} {'theirs':>7} {'ratio':>6}")  # fmt: skip
    for name, make in CASES.items():
        if chosen.names and not any(name.startswith(wanted) for wanted in chosen.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            case = make(training_data(Path(folder)))
            model = rk.load_model(case.path)
        assert isinstance(model, ImportedForest)
        X = documents(model, chosen.docs, "categories" in name or "binary" in name)
        ours, theirs = model.predict(X), case.scores(X)
        same = ""
        if case.in_32_bits:
            differences = [(np.abs(sums - theirs) > 0).sum() for sums in sums_in_32_bits(model, X)]
            same = f"{min(differences)} differ"
        timed = X[: chosen.time_docs]
        turns = [
            (seconds(model.predict, timed), seconds(case.scores, timed))
            for _ in range(chosen.turns)
        ]
        least = np.min(turns, axis=0)
        cuts = [
            len(
                np.unique(
                    np.concatenate([t.threshold[t.feature == j] for t in model.forest_.trees])
                )
            )
            for j in range(model.n_features_in_)
        ]
        difference = np.abs(ours - theirs).max()
        print(f"{name:34} {model.n_trees_:5} {max(cuts):6,} {len(X):9,} {difference:10.2g} "
              f"{moved(ours, theirs):6,} {same:>10} {least[0]:7.3f} {least[1]:7.3f} "
              f"{least[0] / least[1]:6.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
