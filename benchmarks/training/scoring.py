"""Scoring with 500 trees of 31 leaves: many documents, and one query."""

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np

import rankinite as rk
from peers import lightgbm_parameters
from shapes import Arrays, Shape, simulate
from training.settings import Settings
from verdicts import Results, fastest, in_turns, per_call, print_times

N_TREES, N_LEAVES = 500, 31
ONE_QUERY = 24
REPEATS = 200


def run(settings: Settings, results: Results) -> None:
    """Train both models on few documents, and score others."""
    n_docs = 100_000 // settings.smaller
    train, _ = simulate(Shape("train", 200, 100, 136))
    many, _ = simulate(Shape("many", n_docs // 100, 100, 136), seed=1)
    ours, theirs = _our_model(train), _their_model(train, settings)
    _many(f"{len(many.X):,} documents", many.X, ours, theirs, settings, results)
    _one(np.ascontiguousarray(many.X[:ONE_QUERY]), ours, theirs, settings, results)


def _our_model(train: Arrays) -> rk.LambdaMART:
    model = rk.LambdaMART(n_trees=N_TREES, n_leaves=N_LEAVES, min_docs_in_leaf=5)
    model.fit(train.data())
    leaves = np.mean([tree.n_leaves for tree in model.forest_.trees])
    print(f"scoring: our model has {model.n_trees_} trees, {leaves:.1f} leaves", flush=True)
    return model


def _their_model(train: Arrays, settings: Settings) -> lgb.Booster:
    parameters = lightgbm_parameters(settings.task(N_LEAVES, 30), 100, {})
    parameters |= {"min_data_in_leaf": 5, "metric": "none"}
    model = lgb.train(parameters, lgb.Dataset(train.X, train.y, group=train.sizes), N_TREES)
    leaves = np.mean([tree["num_leaves"] for tree in model.dump_model()["tree_info"]])
    print(f"scoring: LightGBM's has {model.num_trees()} trees, {leaves:.1f} leaves", flush=True)
    return model


def _many(
    what: str,
    X: Any,
    ours: rk.LambdaMART,
    theirs: lgb.Booster,
    settings: Settings,
    results: Results,
) -> None:
    rivals = {
        "ours": per_call(lambda: ours.predict(X)),
        "LightGBM": per_call(lambda: theirs.predict(X, num_threads=settings.threads)),
    }
    for rival in rivals.values():
        rival()
    measured = in_turns(rivals, settings.turns)
    print_times(measured)
    what = f"scoring {what} with {N_TREES} trees of {N_LEAVES} leaves, against LightGBM"
    results.ratio(what, measured["ours"], measured["LightGBM"], 0.2, 0.08)


def _one(
    X: Any, ours: rk.LambdaMART, theirs: lgb.Booster, settings: Settings, results: Results
) -> None:
    rivals = {"ours": per_call(lambda: ours.predict(X), REPEATS)}
    for threads in sorted({1, settings.threads}):
        rivals[f"LightGBM, {threads} threads"] = per_call(
            lambda threads=threads: theirs.predict(X, num_threads=threads), REPEATS
        )
    for rival in rivals.values():
        rival()
    measured = in_turns(rivals, settings.turns)
    print_times(measured, "us", 1e6)
    best = fastest(measured, [name for name in rivals if name != "ours"])
    what = f"scoring one query of {ONE_QUERY} documents, against LightGBM"
    results.ratio(what, measured["ours"], measured[best], 0.5, 0.25)
