"""The plan of a recipe with LightGBM for its models of trees: the same units, another engine."""

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
from rankinite.ensembles.ensemble import Scaling
from rankinite.ensembles.score_features import FEATURE_NAMES, score_features
from rankinite.runs.folds import Stage
from rankinite.runs.graph import Member, Plan
from rankinite.runs.inputs import ADDED, MODEL, SCORES, Bench
from rankinite.runs.prepare import share
from rankinite.runs.recipe import Recipe
from rankinite.runs.scheduler import carry_out
from rankinite.runs.store import RunFolder
from rankinite.runs.tasks import Fit, GatherScores, HowWell, Unit
from rankinite.runs.workers import new_workers

Floats = NDArray[np.float64]

BOOSTER, BINNED = "booster.txt", "lightgbm.bin"


def carry_out_with_lightgbm(
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
        The folder, and how many units are done at once.
    """
    folder = RunFolder(out)
    folder.make()
    sets = {"train": train, "valid": valid, "test": test}
    share(sets, [], folder, Silent())
    lgb.Dataset(train.X, train.y, params={"max_bin": BINS, "verbosity": -1}).save_binary(
        folder.path / BINNED
    )
    plan = Plan(recipe, folder.digests["train"])
    workers = new_workers(jobs, None)
    translated = _Translation()
    first = [translated.score(plan.member(name, plan.first), "train", plan.first)
             for name in recipe.models]  # fmt: skip
    carry_out(first, folder, workers, Silent(), "first stage")
    units = {
        (name, data): translated.score(plan.member(name, plan.final), data, None)
        for name in chosen
        for data in ("valid", "test")
    }
    carry_out(units.values(), folder, workers, Silent(), "final training")
    workers.close(kill=False)
    rows = np.stack([np.load(folder.unit(units[name, "test"].key) / SCORES) for name in chosen])
    scaled = Scaling.fit(rows).apply("LightGBM", list(chosen), rows)
    return rk.evaluate(scaled.sum(axis=0), test, recipe.measures).mean


@dataclass(frozen=True)
class LightGBMFit:
    """A training of trees as in `Fit`, by LightGBM."""

    work: Fit

    def do(self, bench: Bench, key: str, into: Path) -> HowWell:
        """Train, and score the queries that were put aside."""
        work = self.work
        train, valid = work.cut.pair(bench.train)
        if work.samples is not None:
            train = rk.augment(train, work.samples.fraction, work.samples.times)
        parameters = _parameters(work)
        dataset, other = _datasets(bench, train, valid, work, parameters)
        model = lgb.train(
            parameters,
            dataset,
            work.parameters["n_trees"],
            [other],
            callbacks=[lgb.early_stopping(work.parameters["n_trees"], verbose=False)],
        )
        model.save_model(into / BOOSTER)
        if work.cut.left_out is not None:
            aside = work.cut.put_aside(bench.train)
            save_array(into / SCORES, model.predict(aside.X, num_threads=_threads()))
        return HowWell(f"{model.best_iteration} trees")


def _threads() -> int:
    return int(os.environ.get("NUMBA_NUM_THREADS", "2"))


def _parameters(work: Fit) -> dict[str, Any]:
    ours = work.parameters
    shares = {
        "bagging_fraction": ours["queries_per_tree"] * ours["docs_per_tree"],
        "bagging_freq": 1,
        "bagging_by_query": ours["queries_per_tree"] < 1,
        "feature_fraction": ours["features_per_tree"],
    }
    if shares["bagging_fraction"] == 1.0:
        del shares["bagging_freq"], shares["bagging_by_query"]
    if work.ranker == "LambdaMART":
        objective, metric = "lambdarank", "ndcg"
    else:
        objective = metric = "cross_entropy" if _is_logistic(work) else "l2"
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
    bench: Bench,
    train: rk.RankingData,
    valid: rk.RankingData,
    work: Fit,
    parameters: Mapping[str, Any],
) -> tuple[lgb.Dataset, lgb.Dataset]:
    """Return both sets in the way that costs LightGBM least.

    Bins are found once a run, and rows are taken from what was binned then. Samples have rows
    twice, which it cannot take: they are binned anew, by the same bins. With score features bins
    are found anew.
    """
    if work.features is not None:
        added = np.load(bench.folder.unit(work.features) / ADDED)
        dataset = _of_matrix(train, np.hstack([train.X, added[train.rows]]), work, parameters, None)
        wide = np.hstack([valid.X, added[valid.rows]])
        return dataset, _of_matrix(valid, wide, work, parameters, dataset)
    shared = lgb.Dataset(str(bench.folder.path / BINNED), params=dict(parameters)).construct()
    if work.samples is None:
        dataset = _of_rows(shared, train, work, parameters)
    else:
        dataset = _of_matrix(train, train.X, work, parameters, shared)
    return dataset, _of_rows(shared, valid, work, parameters)


def _of_rows(
    shared: lgb.Dataset, data: rk.RankingData, work: Fit, parameters: Mapping[str, Any]
) -> lgb.Dataset:
    """Return rows of the shared set; it wants them in order, and queries with them."""
    queries = np.argsort(data.rows[data.offsets[:-1]], kind="stable")
    ordered = data[queries]
    chosen = shared.subset(ordered.rows, params=dict(parameters))
    chosen.construct()
    chosen.set_label(_labels(ordered, work))
    chosen.set_group(ordered.sizes)
    return chosen


def _of_matrix(
    data: rk.RankingData,
    X: NDArray[np.float32],
    work: Fit,
    parameters: Mapping[str, Any],
    reference: lgb.Dataset | None,
) -> lgb.Dataset:
    labels = _labels(data, work)
    return lgb.Dataset(X, labels, group=data.sizes, reference=reference, params=dict(parameters))


def _labels(data: rk.RankingData, work: Fit) -> Floats:
    return (2.0**data.y - 1) / 2**data.top_grade if _is_logistic(work) else data.y


def _is_logistic(work: Fit) -> bool:
    return work.ranker == "MART" and work.parameters["loss"] == "logistic"


@dataclass(frozen=True)
class LightGBMFeatures:
    """Score features of left-out folds, as `GatherScores` makes them, without the wide matrix."""

    work: GatherScores
    folds: tuple[str, ...]

    def do(self, bench: Bench, key: str, into: Path) -> HowWell:
        """Write the four columns."""
        data = bench.train
        scores = np.full(data.n_docs, np.nan)
        for fold, cut in zip(self.folds, self.work.cuts, strict=True):
            scores[cut.put_aside(data).rows] = bench.scores(fold)
        inside = self.work.cuts[0].stage.inside(data)
        added = np.full((data.n_docs, len(FEATURE_NAMES)), np.nan, np.float32)
        added[inside.rows] = score_features(scores[inside.rows], inside.offsets)
        save_array(into / ADDED, added)
        return HowWell("done")


@dataclass(frozen=True)
class LightGBMScore:
    """Scores of a model for a data set."""

    fits: tuple[str, ...]
    scorer: str | None
    data: str
    outside: Stage | None

    def do(self, bench: Bench, key: str, into: Path) -> HowWell:
        """Score documents."""
        data = bench.data(self.data)
        if self.outside is not None:
            data = self.outside.outside(data)
        X = data.X
        if self.scorer is not None:
            scores = self._predict(bench, self.scorer, X)
            X = np.hstack([X, score_features(scores, data.offsets)])
        total = sum(self._predict(bench, fit, X, data) for fit in self.fits)
        save_array(into / SCORES, np.asarray(total) / len(self.fits))
        return HowWell("done")

    def _predict(
        self, bench: Bench, key: str, X: Any, data: rk.RankingData | None = None
    ) -> Floats:
        folder = bench.folder.unit(key)
        if not (folder / BOOSTER).exists():
            return rk.load_model(folder / MODEL).predict(data)
        booster = lgb.Booster(model_file=folder / BOOSTER)
        scores: Floats = booster.predict(X, num_threads=_threads())
        return scores


class _Translation:
    """Units of a plan as units with LightGBM; each once."""

    def __init__(self) -> None:
        self.known: dict[str, Unit] = {}

    def unit(self, unit: Unit) -> Unit:
        """Return the unit that stands for one of ours."""
        if unit.key not in self.known:
            self.known[unit.key] = self._translated(unit)
        return self.known[unit.key]

    def _translated(self, unit: Unit) -> Unit:
        needs = tuple(self.unit(need) for need in unit.needs)
        work: Any = unit.work
        if isinstance(work, GatherScores):
            work = LightGBMFeatures(work, tuple(need.key for need in needs))
        elif work.ranker == "LambdaRank":
            return unit
        else:
            features = needs[0].key if needs else None
            work = LightGBMFit(Fit(**{**vars(work), "features": features}))
        return Unit(unit.name, work, needs, unit.cost)

    def score(self, member: Member, data: str, outside: Stage | None) -> Unit:
        """Return the unit that scores a data set."""
        fits = tuple(self.unit(fit) for fit in member.fits)
        scorer = None if member.scorer is None else self.unit(member.scorer)
        work = LightGBMScore(
            tuple(fit.key for fit in fits), None if scorer is None else scorer.key, data, outside
        )
        needs = fits if scorer is None else (*fits, scorer)
        return Unit(f"scores of {member.model.name}", work, needs, 1.0)
