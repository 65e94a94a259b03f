"""The systems of ``quality.py`` and ``winner.py``: each trains and returns how it scores.

All stop by NDCG@10 of the validation set, and keep the number of trees that was best there; without
a validation set, they keep all trees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import catboost
import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

import rankinite as rk
from peers import BINS, xgboost_parameters

Score = Callable[[rk.RankingData], NDArray[np.float64]]


@dataclass(frozen=True)
class Plan:
    """What all systems have in common.

    Attributes
    ----------
    n_trees, patience
        How many trees at most, and how many without a gain end training.
    n_leaves, depth, learning_rate
        The size of trees (depth for symmetric ones), and the step.
    threads
        How many threads each system has.
    ours
        Parameters of LambdaMART other than its defaults.
    """

    n_trees: int
    patience: int
    threads: int
    n_leaves: int = 15
    depth: int = 5
    learning_rate: float = 0.05
    ours: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fitted:
    """A model: how it scores, and how many trees it kept."""

    score: Score
    n_trees: int


Valid = rk.RankingData | None
Fit = Callable[[Plan, rk.RankingData, Valid, int], Fitted]


@dataclass(frozen=True)
class System:
    """A way to train; without chance, every seed gives the same model."""

    fit: Fit
    by_chance: bool


def _lightgbm(objective: str) -> System:
    def fit(plan: Plan, train: rk.RankingData, valid: Valid, seed: int) -> Fitted:
        parameters = {
            "objective": objective,
            "metric": "ndcg",
            "eval_at": [10],
            "num_leaves": plan.n_leaves,
            "learning_rate": plan.learning_rate,
            "max_bin": BINS,
            "num_threads": plan.threads,
            "seed": seed,
            "verbosity": -1,
        }
        dataset = lgb.Dataset(train.X, train.y, group=train.sizes, params=parameters)
        judged: dict[str, Any] = {}
        if valid is not None:
            judged["valid_sets"] = [
                lgb.Dataset(
                    valid.X, valid.y, group=valid.sizes, reference=dataset, params=parameters
                )
            ]
            judged["callbacks"] = [lgb.early_stopping(plan.patience, verbose=False)]
        model = lgb.train(parameters, dataset, plan.n_trees, **judged)
        best = model.best_iteration if valid is not None else plan.n_trees
        return Fitted(lambda data: model.predict(data.X, num_iteration=best), best)

    return System(fit, by_chance=objective == "rank_xendcg")


def _xgboost(plan: Plan, train: rk.RankingData, valid: Valid, seed: int) -> Fitted:
    parameters = {
        **xgboost_parameters(plan.n_leaves, plan.learning_rate),
        "max_bin": BINS,
        "nthread": plan.threads,
        "seed": seed,
    }
    # Quality is measured with its own default; see there why speed is not.
    del parameters["min_child_weight"]
    ours, *others = (
        xgb.DMatrix(part.X, part.y, qid=np.repeat(np.arange(part.n_queries), part.sizes))
        for part in (train, valid)
        if part is not None
    )
    model = xgb.train(
        parameters,
        ours,
        plan.n_trees,
        evals=[(other, "valid") for other in others],
        early_stopping_rounds=plan.patience if others else None,
        verbose_eval=False,
    )
    kept = (0, model.best_iteration + 1 if others else plan.n_trees)
    return Fitted(
        lambda data: model.predict(xgb.DMatrix(data.X), iteration_range=kept).astype(np.float64),
        kept[1],
    )


def _catboost(loss: str) -> System:
    def fit(plan: Plan, train: rk.RankingData, valid: Valid, seed: int) -> Fitted:
        stopping = {"od_type": "Iter", "od_wait": plan.patience, "use_best_model": True}
        model = catboost.CatBoost(
            {
                **(stopping if valid is not None else {}),
                "loss_function": loss,
                "eval_metric": "NDCG:top=10;type=Exp;hints=skip_train~true",
                "iterations": plan.n_trees,
                "depth": plan.depth,
                "learning_rate": plan.learning_rate,
                "border_count": BINS - 1,
                "random_seed": seed,
                "thread_count": plan.threads,
                "allow_writing_files": False,
                "logging_level": "Silent",
            }
        )
        ours, *others = (
            catboost.Pool(part.X, part.y, group_id=np.repeat(np.arange(part.n_queries), part.sizes))
            for part in (train, valid)
            if part is not None
        )
        model.fit(ours, eval_set=others or None)
        return Fitted(lambda data: model.predict(data.X), model.tree_count_)

    return System(fit, by_chance=True)


def _common(plan: Plan, seed: int) -> dict[str, Any]:
    return {
        "n_trees": plan.n_trees,
        "n_leaves": plan.n_leaves,
        "learning_rate": plan.learning_rate,
        "valid_measure": "NDCG@10",
        "patience": plan.patience,
        "random_state": seed,
    }


def _lambdamart(measure: str | None) -> System:
    def fit(plan: Plan, train: rk.RankingData, valid: Valid, seed: int) -> Fitted:
        measures = {} if measure is None else {"measure": measure}
        model = rk.LambdaMART(**{**_common(plan, seed), **plan.ours, **measures})
        model.fit(train, valid=valid)
        return Fitted(model.predict, model.n_trees_)

    return System(fit, by_chance=True)


def _pointwise(kind: type[Any], **options: Any) -> System:
    def fit(plan: Plan, train: rk.RankingData, valid: Valid, seed: int) -> Fitted:
        model = kind(**_common(plan, seed), **options).fit(train, valid=valid)
        return Fitted(model.predict, model.n_trees_)

    return System(fit, by_chance=True)


OURS = "LambdaMART"
SYSTEMS = {
    OURS: _lambdamart(None),
    "LambdaMART-ERR": _lambdamart("ERR"),
    "LambdaMART-MAP": _lambdamart("MAP"),
    "MART-squared": _pointwise(rk.MART, loss="squared"),
    "MART-centred": _pointwise(rk.MART, loss="centred"),
    "McRank": _pointwise(rk.McRank),
    "LightGBM-lambdarank": _lightgbm("lambdarank"),
    "LightGBM-xendcg": _lightgbm("rank_xendcg"),
    "LightGBM-regression": _lightgbm("regression"),
    "XGBoost-ndcg": System(_xgboost, by_chance=False),
    "CatBoost-YetiRank": _catboost("YetiRank"),
    "CatBoost-QueryRMSE": _catboost("QueryRMSE"),
}
