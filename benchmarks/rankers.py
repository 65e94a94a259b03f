"""The systems of ``defaults.py``, ``quality.py`` and ``winner.py``: each trains, then scores.

All stop by NDCG@10 of the validation set, and keep the number of trees that was best there; without
a validation set, they keep all trees. What a plan leaves open has each system's own default.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import catboost
import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankinite as rk
from peers import BINS
from rankinite.models import RANKERS
from rankinite.rankers.tree_ranker import TreeRanker

Score = Callable[[rk.RankingData], NDArray[np.float64]]


@dataclass(frozen=True)
class Plan:
    """What all systems have in common.

    Attributes
    ----------
    n_trees, patience
        How many trees at most, and how many without a gain end training.
    threads
        How many threads each system has.
    n_leaves, depth, learning_rate
        The size of trees (depth for symmetric ones), and the step.
    ours
        Parameters of LambdaMART other than its defaults.
    """

    n_trees: int | None
    patience: int
    threads: int
    n_leaves: int | None = 15
    depth: int | None = 5
    learning_rate: float | None = 0.05
    ours: Mapping[str, Any] = field(default_factory=dict)


# What a user of each system gets who sets nothing; only early stopping is the same for all.
OWN_DEFAULTS = Plan(None, 100, 1, n_leaves=None, depth=None, learning_rate=None)
# The same for all; symmetric trees have the depth that is CatBoost's default.
EQUAL_SIZES = Plan(500, 100, 1, n_leaves=31, depth=6, learning_rate=0.1)


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
    is_ours: bool = False


def _without_none(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}


# Number of trees of LightGBM and XGBoost if nothing is set.
DEFAULT_TREES = 100


def _lightgbm(objective: str) -> System:
    def fit(plan: Plan, train: rk.RankingData, valid: Valid, seed: int) -> Fitted:
        parameters = _without_none(
            {
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
        )
        n_trees = plan.n_trees or DEFAULT_TREES
        dataset = lgb.Dataset(train.X, train.y, group=train.sizes, params=parameters)
        judged: dict[str, Any] = {}
        if valid is not None:
            judged["valid_sets"] = [
                lgb.Dataset(
                    valid.X, valid.y, group=valid.sizes, reference=dataset, params=parameters
                )
            ]
            judged["callbacks"] = [lgb.early_stopping(plan.patience, verbose=False)]
        model = lgb.train(parameters, dataset, n_trees, **judged)
        best = model.best_iteration if valid is not None else n_trees
        return Fitted(lambda data: model.predict(data.X, num_iteration=best), best)

    return System(fit, by_chance=objective == "rank_xendcg")


def _xgboost(objective: str) -> System:
    def fit(plan: Plan, train: rk.RankingData, valid: Valid, seed: int) -> Fitted:
        # Leaf by leaf, as LightGBM, if the number of leaves is set.
        leaf_wise = {"grow_policy": "lossguide", "max_leaves": plan.n_leaves, "max_depth": 0}
        parameters = _without_none(
            {
                "objective": objective,
                "eval_metric": "ndcg@10",
                "lambdarank_pair_method": "topk",
                "learning_rate": plan.learning_rate,
                "max_bin": BINS,
                "nthread": plan.threads,
                "seed": seed,
                "verbosity": 0,
                **(leaf_wise if plan.n_leaves is not None else {}),
            }
        )
        ours, *others = (
            xgb.DMatrix(_features(part), _labels(objective, part), qid=_query_numbers(part))
            for part in (train, valid)
            if part is not None
        )
        n_trees = plan.n_trees or DEFAULT_TREES
        model = xgb.train(
            parameters,
            ours,
            n_trees,
            evals=[(other, "valid") for other in others],
            early_stopping_rounds=plan.patience if others else None,
            verbose_eval=False,
        )
        kept = (0, model.best_iteration + 1 if others else n_trees)

        def score(data: rk.RankingData) -> NDArray[np.float64]:
            scores = model.predict(xgb.DMatrix(_features(data)), iteration_range=kept)
            return np.asarray(scores, np.float64)

        return Fitted(score, kept[1])

    return System(fit, by_chance=False)


def _labels(objective: str, data: rk.RankingData) -> NDArray[np.float64]:
    """Return the labels that an objective takes: MAP is one of relevant documents."""
    return (data.y > 0).astype(np.float64) if objective == "rank:map" else data.y


def _features(data: rk.RankingData) -> NDArray[np.float32]:
    return np.ascontiguousarray(data.X)


def _query_numbers(data: rk.RankingData) -> NDArray[np.int64]:
    return np.repeat(np.arange(data.n_queries), data.sizes)


def _catboost(loss: str) -> System:
    def fit(plan: Plan, train: rk.RankingData, valid: Valid, seed: int) -> Fitted:
        stopping = {"od_type": "Iter", "od_wait": plan.patience, "use_best_model": True}
        parameters = _without_none(
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
        model = catboost.CatBoost(parameters)
        ours, *others = (
            catboost.Pool(part.X, part.y, group_id=_query_numbers(part))
            for part in (train, valid)
            if part is not None
        )
        model.fit(ours, eval_set=others or None)
        return Fitted(lambda data: model.predict(data.X), model.tree_count_)

    return System(fit, by_chance=True)


def _net_of_sklearn(_plan: Plan, train: rk.RankingData, valid: Valid, seed: int) -> Fitted:
    """Train scikit-learn's net on grades, with its defaults; its own part of documents stops it."""
    net = make_pipeline(
        SimpleImputer(keep_empty_features=True),
        StandardScaler(),
        MLPRegressor(early_stopping=True, random_state=seed),
    )
    parts = [train] if valid is None else [train, valid]
    X, y = (np.concatenate([getattr(part, name) for part in parts]) for name in "Xy")
    net.fit(X, y)
    return Fitted(lambda data: net.predict(data.X), net[-1].n_iter_)


def _ours(kind: str, **options: Any) -> System:
    def fit(plan: Plan, train: rk.RankingData, valid: Valid, seed: int) -> Fitted:
        is_symmetric = getattr(RANKERS[kind](**options), "symmetric", False)
        n_leaves = 2**plan.depth if is_symmetric and plan.depth is not None else plan.n_leaves
        trees = {
            "n_trees": plan.n_trees,
            "n_leaves": n_leaves,
            "learning_rate": plan.learning_rate,
            "patience": plan.patience,
        }
        of_plan = {
            **(trees if issubclass(RANKERS[kind], TreeRanker) else {}),
            "valid_measure": STOP_BY,
            "random_state": seed,
            **(plan.ours if kind == OURS else {}),
        }
        model = RANKERS[kind](**{**_without_none(of_plan), **options}).fit(train, valid=valid)
        return Fitted(model.predict, model.best_round_)

    return System(fit, by_chance=True, is_ours=True)


STOP_BY = "NDCG@10"
OURS = "LambdaMART"
SYSTEMS = {
    OURS: _ours(OURS),
    "LambdaMART-ERR": _ours(OURS, measure="ERR"),
    "LambdaMART-MAP": _ours(OURS, measure="MAP"),
    "MART": _ours("MART"),
    "MART-centred": _ours("MART", loss="centred"),
    "McRank": _ours("McRank"),
    "LambdaRank": _ours("LambdaRank"),
    "LightGBM-lambdarank": _lightgbm("lambdarank"),
    "LightGBM-xendcg": _lightgbm("rank_xendcg"),
    "LightGBM-regression": _lightgbm("regression"),
    "XGBoost-ndcg": _xgboost("rank:ndcg"),
    "XGBoost-map": _xgboost("rank:map"),
    "XGBoost-pairwise": _xgboost("rank:pairwise"),
    "sklearn-MLP": System(_net_of_sklearn, by_chance=True),
    "CatBoost-YetiRank": _catboost("YetiRank"),
    "CatBoost-YetiRankPairwise": _catboost("YetiRankPairwise"),
    "CatBoost-QueryRMSE": _catboost("QueryRMSE"),
}


def system_of(text: str) -> System:
    """Return a system by its name, or a ranker of ours with parameters, as in ``MART n_leaves=9``.

    Raises
    ------
    ValueError
        If there is no such system.
    """
    if text in SYSTEMS:
        return SYSTEMS[text]
    kind, *options = text.split()
    pairs = [option.partition("=") for option in options]
    if kind not in RANKERS or not all(equals for _, equals, _ in pairs):
        known = f"{', '.join(SYSTEMS)}, and rankers with parameters, such as MART n_leaves=9"
        raise ValueError(f"there is no system {text!r}; known are {known}")
    return _ours(kind, **{name: _value(value) for name, _, value in pairs})


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
