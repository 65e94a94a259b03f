"""Stages before, in and after training: binning, lambda gradients, scoring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np

import rankinite as rk
from peers import lightgbm_binning, lightgbm_parameters
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas
from shapes import TOP_GRADE, Arrays, Shape, simulate
from training.settings import Settings
from turns import Results, fastest, in_turns, per_call, print_times

MEASURES = ("NDCG", "ERR", "MAP", "MRR")
GRADIENT_REPEATS = 5
N_TREES, N_LEAVES = 500, 31
ONE_QUERY = 24
# One query takes microseconds.
SCORING_REPEATS = 200


def binning(settings: Settings, results: Results) -> None:
    """Compare our bins of the training set of every shape with LightGBM's data set."""
    for shape in settings.shapes:
        train, _ = settings.simulate(shape)
        data = train.data()
        what = f"preparing the data, {settings.fitted(shape)}"
        print(f"{what}:", flush=True)
        rivals = {
            "ours": per_call(lambda data=data: _make(data)),
            "ours, with the checks of RankingData": per_call(lambda t=train: _make(t.data())),
            "LightGBM": per_call(lambda t=train: _construct(t, settings.threads)),
        }
        for rival in rivals.values():
            rival()
        measured = in_turns(rivals, settings.turns)
        print_times(measured)
        theirs = measured["LightGBM"]
        results.ratio(f"{what}, against LightGBM's construct", measured["ours"], theirs, 0.5, 0.2)
        checked = measured["ours, with the checks of RankingData"]
        results.ratio(f"{what}, with the checks of RankingData", checked, theirs)


def _make(data: rk.RankingData) -> rk.BinnedData:
    return rk.BinnedData.make(data.matrix, data.feature_names)


def _construct(train: Arrays, threads: int) -> Any:
    parameters = lightgbm_binning(threads)
    return lgb.Dataset(train.X, train.y, group=train.sizes, params=parameters).construct()


def lambdas(settings: Settings, results: Results) -> None:
    """Compare all-pairs lambda gradients of ERR, MAP and MRR with those of NDCG."""
    for shape in settings.shapes:
        shape = settings.fitted(shape)
        what = f"all-pairs lambda gradient, {shape.n_queries:,} x {shape.n_docs}"
        print(f"{what}:", flush=True)
        rivals = {name: per_call(_gradients(name, shape), GRADIENT_REPEATS) for name in MEASURES}
        for rival in rivals.values():
            rival()
        measured = in_turns(rivals, settings.turns)
        print_times(measured)
        for name in MEASURES[1:]:
            asked = (2.0, 1.2) if name == "ERR" else (None, None)
            results.ratio(f"{what}, {name} over NDCG", measured[name], measured["NDCG"], *asked)


def _gradients(measure: str, shape: Shape) -> Callable[[], None]:
    """Prepare the objective; return what computes its gradients at some scores."""
    rng = np.random.default_rng(0)
    n_docs = shape.n_queries * shape.n_docs
    labels = rng.choice(TOP_GRADE + 1, n_docs, p=[0.5, 0.25, 0.15, 0.07, 0.03]).astype(np.float64)
    scores = (0.3 * labels + rng.standard_normal(n_docs))[np.newaxis]
    offsets = np.arange(0, n_docs + 1, shape.n_docs)
    prepared = Lambdas(measure).prepare(Targets({None: labels}, offsets, TOP_GRADE))
    lambdas, weights = np.empty((2, *scores.shape))
    return lambda: prepared.gradients(scores, 0, lambdas, weights)


def scoring(settings: Settings, results: Results) -> None:
    """Compare scoring with 500 trees of 31 leaves: many documents, and one query.

    Both models are trained on few documents, and score others.
    """
    n_docs = 100_000 // settings.smaller
    train, _ = simulate(Shape("train", 200, 100, 136))
    many, _ = simulate(Shape("many", n_docs // 100, 100, 136), seed=1)
    ours, theirs = _our_model(train), _their_model(train, settings)
    _many(f"{len(many.X):,} documents", many.X, ours, theirs, settings, results)
    _one(np.ascontiguousarray(many.X[:ONE_QUERY]), ours, theirs, settings, results)


def _our_model(train: Arrays) -> rk.LambdaMART:
    model = rk.LambdaMART(preset="paper", n_trees=N_TREES, n_leaves=N_LEAVES, min_docs_in_leaf=5)
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
    rivals = {"ours": per_call(lambda: ours.predict(X), SCORING_REPEATS)}
    for threads in sorted({1, settings.threads}):
        rivals[f"LightGBM, {threads} threads"] = per_call(
            lambda threads=threads: theirs.predict(X, num_threads=threads), SCORING_REPEATS
        )
    for rival in rivals.values():
        rival()
    measured = in_turns(rivals, settings.turns)
    print_times(measured, "us", 1e6)
    best = fastest(measured, [name for name in rivals if name != "ours"])
    what = f"scoring one query of {ONE_QUERY} documents, against LightGBM"
    results.ratio(what, measured["ours"], measured[best], 0.5, 0.25)
