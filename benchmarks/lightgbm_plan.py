"""The graph of a recipe with LightGBM for its models of trees: the same tasks, another engine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

import rankinite as rk
from peers import BINS
from rankinite.core.files import save_array
from rankinite.core.progress import Silent
from rankinite.ensembles.members import Scaling
from rankinite.ensembles.score_features import FEATURE_NAMES, score_features
from rankinite.runs.graph import Graph, StageModel
from rankinite.runs.recipe import Recipe
from rankinite.runs.scheduler import execute
from rankinite.runs.store import ADDED, MODEL, SCORES, Store, TaskInputs, share
from rankinite.runs.tasks import Fit, GatherScores, Stage, Task, TaskSummary
from rankinite.runs.workers import new_workers

Floats = NDArray[np.float64]

BOOSTER, BINNED = "booster.txt", "lightgbm.bin"


def run_with_lightgbm(
    recipe: Recipe,
    train: rk.RankingData,
    valid: rk.RankingData,
    test: rk.RankingData,
    chosen: Sequence[str],
    out: Path,
    *,
    jobs: int,
) -> dict[str, float]:
    """Train all that a run of the recipe trains, and return what the ensemble is worth.

    Parameters
    ----------
    recipe, train, valid, test
        As in `run_recipe`.
    chosen
        The models that are trained on all parts; a run chooses them itself.
    out, jobs
        The folder, and how many tasks are done at once.
    """
    store = Store(out)
    store.make()
    sets = {"train": train, "valid": valid, "test": test}
    share(sets, [], store, Silent())
    lgb.Dataset(train.X, train.y, params={"max_bin": BINS, "verbosity": -1}).save_binary(
        store.path / BINNED
    )
    graph = Graph(recipe, store.digests["train"])
    workers = new_workers(jobs, None)
    translated = _Translation()
    first = [translated.score(graph.model(name, graph.first), "train", graph.first)
             for name in recipe.models]  # fmt: skip
    execute(first, store, workers, Silent(), "first stage")
    tasks = {
        (name, data): translated.score(graph.model(name, graph.final), data, None)
        for name in chosen
        for data in ("valid", "test")
    }
    execute(tasks.values(), store, workers, Silent(), "final training")
    workers.close(kill=False)
    rows = np.stack([np.load(store.task(tasks[name, "test"].key) / SCORES) for name in chosen])
    scaled = Scaling.fit(rows).apply("LightGBM", list(chosen), rows)
    return rk.evaluate(scaled.sum(axis=0), test, recipe.measures).mean


@dataclass(frozen=True)
class LightGBMFit:
    """A training of trees as in `Fit`, by LightGBM."""

    function: Fit

    def __call__(self, inputs: TaskInputs, key: str, folder: Path) -> TaskSummary:
        """Train, and score the queries that were put aside."""
        function = self.function
        train, valid = function.split.train_and_valid(inputs.train)
        if function.samples is not None:
            train = rk.augment(train, function.samples.fraction, function.samples.times)
        parameters = _parameters(function)
        dataset, other = _datasets(inputs, train, valid, function, parameters)
        model = lgb.train(
            parameters,
            dataset,
            function.parameters["n_trees"],
            [other],
            callbacks=[lgb.early_stopping(function.parameters["n_trees"], verbose=False)],
        )
        model.save_model(folder / BOOSTER)
        if function.split.left_out is not None:
            aside = function.split.left_out_queries(inputs.train)
            save_array(folder / SCORES, model.predict(aside.X, num_threads=_threads()))
        return TaskSummary(f"{model.best_iteration} trees")


def _threads() -> int:
    return int(os.environ.get("RANKINITE_THREADS", "2"))


def _parameters(function: Fit) -> dict[str, Any]:
    ours = function.parameters
    shares = {
        "bagging_fraction": ours["queries_per_tree"] * ours["docs_per_tree"],
        "bagging_freq": 1,
        "bagging_by_query": ours["queries_per_tree"] < 1,
        "feature_fraction": ours["features_per_tree"],
    }
    if shares["bagging_fraction"] == 1.0:
        del shares["bagging_freq"], shares["bagging_by_query"]
    if function.ranker == "LambdaMART":
        objective, metric = "lambdarank", "ndcg"
    else:
        objective = metric = "cross_entropy" if _is_logistic(function) else "l2"
    return {
        "objective": objective,
        "metric": metric,
        "eval_at": [10],
        "num_leaves": ours["n_leaves"],
        "learning_rate": ours["learning_rate"],
        "min_data_in_leaf": ours["min_docs_in_leaf"],
        "max_bin": BINS,
        "num_threads": _threads(),
        "force_col_wise": True,
        "seed": ours["random_state"] % 2**31,
        "verbosity": -1,
        **shares,
    }


def _datasets(
    inputs: TaskInputs,
    train: rk.RankingData,
    valid: rk.RankingData,
    function: Fit,
    parameters: Mapping[str, Any],
) -> tuple[lgb.Dataset, lgb.Dataset]:
    """Return both sets in the way that costs LightGBM least.

    Bins are found once a run, and rows are taken from what was binned then. Samples have rows
    twice, which it cannot take: they are binned anew, by the same bins. With score features bins
    are found anew.
    """
    if function.features is not None:
        added = np.load(inputs.store.task(function.features) / ADDED)
        dataset = _of_matrix(
            train, np.hstack([train.X, added[train.rows]]), function, parameters, None
        )
        wide = np.hstack([valid.X, added[valid.rows]])
        return dataset, _of_matrix(valid, wide, function, parameters, dataset)
    shared = lgb.Dataset(str(inputs.store.path / BINNED), params=dict(parameters)).construct()
    if function.samples is None:
        dataset = _of_rows(shared, train, function, parameters)
    else:
        dataset = _of_matrix(train, train.X, function, parameters, shared)
    return dataset, _of_rows(shared, valid, function, parameters)


def _of_rows(
    shared: lgb.Dataset, data: rk.RankingData, function: Fit, parameters: Mapping[str, Any]
) -> lgb.Dataset:
    """Return rows of the shared set; it wants them in order, and queries with them."""
    queries = np.argsort(data.rows[data.offsets[:-1]], kind="stable")
    ordered = data[queries]
    chosen = shared.subset(ordered.rows, params=dict(parameters))
    chosen.construct()
    chosen.set_label(_labels(ordered, function))
    chosen.set_group(ordered.sizes)
    return chosen


def _of_matrix(
    data: rk.RankingData,
    X: NDArray[np.float32],
    function: Fit,
    parameters: Mapping[str, Any],
    reference: lgb.Dataset | None,
) -> lgb.Dataset:
    labels = _labels(data, function)
    return lgb.Dataset(X, labels, group=data.sizes, reference=reference, params=dict(parameters))


def _labels(data: rk.RankingData, function: Fit) -> Floats:
    return (2.0**data.y - 1) / 2**data.top_grade if _is_logistic(function) else data.y


def _is_logistic(function: Fit) -> bool:
    return function.ranker == "MART" and function.parameters["loss"] == "logistic"


@dataclass(frozen=True)
class LightGBMFeatures:
    """Score features of left-out folds, as `GatherScores` makes them, without the wide matrix."""

    function: GatherScores
    folds: tuple[str, ...]

    def __call__(self, inputs: TaskInputs, key: str, folder: Path) -> TaskSummary:
        """Write the four columns."""
        data = inputs.train
        scores = np.full(data.n_docs, np.nan)
        for fold, split in zip(self.folds, self.function.splits, strict=True):
            scores[split.left_out_queries(data).rows] = inputs.scores(fold)
        inside = self.function.splits[0].stage.inside(data)
        added = np.full((data.n_docs, len(FEATURE_NAMES)), np.nan, np.float32)
        added[inside.rows] = score_features(scores[inside.rows], inside.offsets)
        save_array(folder / ADDED, added)
        return TaskSummary("done")


@dataclass(frozen=True)
class LightGBMScore:
    """Scores of a model for a data set."""

    fits: tuple[str, ...]
    scorer: str | None
    data: str
    outside: Stage | None

    def __call__(self, inputs: TaskInputs, key: str, folder: Path) -> TaskSummary:
        """Score documents."""
        data = inputs.data(self.data)
        if self.outside is not None:
            data = self.outside.outside(data)
        X = data.X
        if self.scorer is not None:
            scores = self._predict(inputs, self.scorer, X)
            X = np.hstack([X, score_features(scores, data.offsets)])
        total = sum(self._predict(inputs, fit, X, data) for fit in self.fits)
        save_array(folder / SCORES, np.asarray(total) / len(self.fits))
        return TaskSummary("done")

    def _predict(
        self, inputs: TaskInputs, key: str, X: Any, data: rk.RankingData | None = None
    ) -> Floats:
        folder = inputs.store.task(key)
        if not (folder / BOOSTER).exists():
            return rk.load_model(folder / MODEL).predict(data)
        booster = lgb.Booster(model_file=folder / BOOSTER)
        scores: Floats = booster.predict(X, num_threads=_threads())
        return scores


class _Translation:
    """Tasks of a graph as tasks with LightGBM; each once."""

    def __init__(self) -> None:
        self.known: dict[str, Task] = {}

    def task(self, task: Task) -> Task:
        """Return the task that stands for one of ours."""
        if task.key not in self.known:
            self.known[task.key] = self._translated(task)
        return self.known[task.key]

    def _translated(self, task: Task) -> Task:
        dependencies = tuple(self.task(dependency) for dependency in task.dependencies)
        function: Any = task.function
        if isinstance(function, GatherScores):
            function = LightGBMFeatures(
                function, tuple(dependency.key for dependency in dependencies)
            )
        elif function.ranker == "LambdaRank":
            return task
        else:
            features = dependencies[0].key if dependencies else None
            function = LightGBMFit(Fit(**{**vars(function), "features": features}))
        return Task(task.name, function, dependencies, task.cost)

    def score(self, model: StageModel, data: str, outside: Stage | None) -> Task:
        """Return the task that scores a data set."""
        fits = tuple(self.task(fit) for fit in model.fits)
        scorer = None if model.scorer is None else self.task(model.scorer)
        function = LightGBMScore(
            tuple(fit.key for fit in fits), None if scorer is None else scorer.key, data, outside
        )
        dependencies = fits if scorer is None else (*fits, scorer)
        return Task(f"scores of {model.model.name}", function, dependencies, 1.0)
