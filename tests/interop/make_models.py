"""Make the models of other tools in ``models``, and the tools' own scores of some documents.

    python -m tests.interop.make_models

Needs xgboost and catboost, which tests do without.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import rankinite as rk

FOLDER = Path(__file__).parent / "models"
DOCUMENTS, SCORES = FOLDER / "documents.txt", FOLDER / "scores.json"
QUERIES, QUERY_DOCS, N_FEATURES, CATEGORICAL = 20, 25, 6, 5
TREES = 6


def main() -> None:
    """Make all models."""
    import catboost
    import lightgbm as lgb
    import pandas as pd
    import xgboost as xgb

    FOLDER.mkdir(exist_ok=True)
    rng = np.random.default_rng(7)
    n = QUERIES * QUERY_DOCS
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32).round(2)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = 0.0
    X[:, CATEGORICAL] = rng.integers(0, 7, n)
    X[rng.random(n) < 0.1, CATEGORICAL] = np.nan
    clean = np.nan_to_num(X)
    score = clean[:, 0] + clean[:, 1] * clean[:, 2] + 2 * (clean[:, 5] == 3) + rng.normal(size=n)
    y = np.digitize(score, [0.5, 1.5]).astype(float)
    qid = np.repeat(np.arange(QUERIES), QUERY_DOCS)
    kinds = ["c" if j == CATEGORICAL else "q" for j in range(N_FEATURES)]
    scores: dict[str, list[float]] = {}

    def matrix(features: Any, **more: Any) -> Any:
        return xgb.DMatrix(features, feature_types=kinds, enable_categorical=True, **more)

    ranking = {"objective": "rank:ndcg", "max_depth": 3, "max_cat_to_onehot": 1, "nthread": 1}
    models: dict[str, Any] = {
        "xgboost.json": xgb.train(ranking, matrix(X, label=y, qid=qid), TREES),
        "xgboost-dart.ubj": xgb.train(
            {**ranking, "booster": "dart", "rate_drop": 0.5}, matrix(X, label=y, qid=qid), TREES
        ),
        "xgboost-logistic.json": xgb.train(
            {**ranking, "objective": "binary:logistic"}, matrix(X, label=y > 0), TREES
        ),
    }
    frame = pd.DataFrame(X, columns=list("abcdef"))
    texts = dict(enumerate(["red", "blue", "green", "x", "y", "z", "w"]))
    frame["f"] = pd.Categorical(frame["f"].map(texts), list(texts.values()))
    frame["e"] = pd.Categorical((frame["e"].fillna(0).abs() * 10).astype(int) * 10)
    of_frame = xgb.DMatrix(frame, label=y, qid=qid, enable_categorical=True)
    models["xgboost-pandas.json"] = xgb.train(ranking, of_frame, TREES)
    settings = {"iterations": TREES, "depth": 3, "loss_function": "QueryRMSE", "verbose": False,
                "allow_writing_files": False, "thread_count": 1}  # fmt: skip
    numeric = X[:, :CATEGORICAL]
    for name, more in {
        "catboost.json": {},
        "catboost-above.json": {"nan_mode": "Max", "loss_function": "YetiRank"},
        "catboost-lossguide.json": {"grow_policy": "Lossguide", "max_leaves": 6},
    }.items():
        model = catboost.CatBoost({**settings, **more})
        models[name] = model.fit(catboost.Pool(numeric, y, group_id=qid))
    trees = {"objective": "lambdarank", "num_leaves": 6, "min_data_in_leaf": 5, "verbose": -1,
             "min_data_per_group": 5, "num_threads": 1}  # fmt: skip
    for name, more in {
        "lightgbm.txt": {"categorical_feature": [CATEGORICAL]},
        "lightgbm-zeros.txt": {"zero_as_missing": True},
    }.items():
        of_arrays = lgb.Dataset(X, y, group=[QUERY_DOCS] * QUERIES, params={**trees, **more})
        models[name] = lgb.train({**trees, **more}, of_arrays, TREES)
    for name, model in models.items():
        form = {"format": "json"} if name.startswith("catboost") else {}
        model.save_model(FOLDER / name, **form)
    documents = all_documents([FOLDER / name for name in models], X)
    np.savetxt(DOCUMENTS, documents, fmt="%.9g")
    documents = np.loadtxt(DOCUMENTS, dtype=np.float32)
    for name, model in models.items():
        if name == "xgboost-pandas.json":
            predicted = model.predict(of_frame, output_margin=True)
            frame.to_json(FOLDER / "frame.json", orient="split", double_precision=15)
        elif name.startswith("lightgbm"):
            predicted = model.predict(documents, raw_score=True)
        elif name.startswith("xgboost"):
            predicted = model.predict(matrix(documents), output_margin=True)
        else:
            predicted = model.predict(documents[:, :CATEGORICAL])
        scores[name] = np.asarray(predicted, np.float64).tolist()
    lines = (f"{json.dumps(name)}: {json.dumps(values)}" for name, values in scores.items())
    SCORES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def all_documents(paths: list[Path], X: np.ndarray) -> np.ndarray:
    """Return documents with all thresholds of the models, and their neighbours."""
    rng = np.random.default_rng(8)
    cuts: list[set[float]] = [set() for _ in range(N_FEATURES)]
    for path in paths:
        for tree in rk.load_model(path).forest_.trees:
            for feature, threshold in zip(tree.feature, tree.threshold, strict=True):
                if np.isfinite(threshold):
                    above = np.nextafter(threshold, np.float32(np.inf))
                    cuts[feature] |= {threshold, above, np.nextafter(above, np.float32(np.inf))}
    documents = X[rng.permutation(len(X))[:120]].copy()
    for j in range(CATEGORICAL):
        special = np.array([*sorted(cuts[j]), -0.0, 1e-36, -1e-36], np.float32)
        chosen = rng.random(len(documents)) < 0.7
        documents[chosen, j] = rng.choice(special, chosen.sum())
    documents[:4, CATEGORICAL] = 9, 254, np.nan, 6
    return documents


if __name__ == "__main__":
    main()
