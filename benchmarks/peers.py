"""Rivals in training: each runs some iterations with a validation set and tells their seconds.

Every run starts from nothing, skips its first iterations, and times the next ones. Binning is not
counted. All evaluate NDCG@10 on the validation set after every iteration.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import catboost
import lightgbm as lgb
import numpy as np
import xgboost as xgb

import rankinite as rk
from shapes import Arrays

BINS = 255
LIGHTGBM_MODES: dict[str, dict[str, Any]] = {
    "column-wise": {"force_col_wise": True},
    "row-wise": {"force_row_wise": True},
    "column-wise, quantised": {"force_col_wise": True, "use_quantized_grad": True},
    "row-wise, quantised": {"force_row_wise": True, "use_quantized_grad": True},
}
UNQUANTISED = [mode for mode in LIGHTGBM_MODES if "quantised" not in mode]


@dataclass(frozen=True)
class Task:
    """What all rivals train: the size of trees, the step, the pairs, and for how long."""

    n_leaves: int
    learning_rate: float
    truncation: int | None
    threads: int
    n_warm: int
    n_timed: int

    @property
    def n_rounds(self) -> int:
        """How many iterations a run has."""
        return self.n_warm + self.n_timed

    def typical(self, ends: list[float]) -> float:
        """Return the median seconds of the timed iterations, from the ends of all."""
        return statistics.median(b - a for a, b in itertools.pairwise(ends[-self.n_timed - 1 :]))


class Ours:
    """LambdaMART with its defaults, apart from what the task and the options say."""

    def __init__(
        self,
        train: rk.RankingData,
        valid: rk.RankingData,
        binned: rk.BinnedData,
        task: Task,
        **options: Any,
    ) -> None:
        self.sets = {"X": train, "valid": valid, "binned": binned}
        self.task = task
        # Trees like LightGBM's: kernels are compared at the same work, not defaults.
        self.model = rk.LambdaMART(
            preset="paper",
            n_trees=task.n_rounds,
            n_leaves=task.n_leaves,
            learning_rate=task.learning_rate,
            truncation=task.truncation,
            valid_measure="NDCG@10",
            patience=None,
            **options,
        )

    def __call__(self) -> float:
        """Train, and return the seconds of an iteration."""
        ends: list[float] = []
        self.model.fit(**self.sets, callbacks=[lambda _: ends.append(time.perf_counter())])
        return self.task.typical(ends)

    @property
    def leaves(self) -> float:
        """How many leaves a tree of the last run has in the mean."""
        return float(np.mean([tree.n_leaves for tree in self.model.forest_.trees]))


def lightgbm_sets(train: Arrays, valid: Arrays, threads: int) -> tuple[lgb.Dataset, lgb.Dataset]:
    """Return constructed data sets, which all modes can share."""
    binning = lightgbm_binning(threads)
    dataset = lgb.Dataset(train.X, train.y, group=train.sizes, params=binning)
    other = lgb.Dataset(valid.X, valid.y, group=valid.sizes, reference=dataset, params=binning)
    return dataset.construct(), other.construct()


def lightgbm_binning(threads: int) -> dict[str, Any]:
    """Return the parameters of a LightGBM data set."""
    return {"max_bin": BINS, "num_threads": threads, "verbosity": -1}


def lightgbm_parameters(task: Task, longest: int, mode: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of LightGBM's lambdarank; all pairs if there is no truncation."""
    return {
        **lightgbm_binning(task.threads),
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [10],
        "num_leaves": task.n_leaves,
        "learning_rate": task.learning_rate,
        "lambdarank_truncation_level": longest if task.truncation is None else task.truncation,
        **mode,
    }


class LightGBM:
    """LightGBM's lambdarank in one of its modes."""

    def __init__(
        self, sets: tuple[lgb.Dataset, lgb.Dataset], task: Task, mode: Mapping[str, Any]
    ) -> None:
        self.sets = sets
        self.task = task
        self.parameters = lightgbm_parameters(task, int(sets[0].get_group().max()), mode)
        self.leaves = float("nan")

    def __call__(self) -> float:
        """Train, and return the seconds of an iteration."""
        booster = lgb.Booster(self.parameters, self.sets[0])
        booster.add_valid(self.sets[1], "valid")
        ends = []
        for _ in range(self.task.n_rounds):
            booster.update()
            booster.eval_valid()
            ends.append(time.perf_counter())
        if np.isnan(self.leaves):
            trees = booster.dump_model()["tree_info"]
            self.leaves = float(np.mean([tree["num_leaves"] for tree in trees]))
        return self.task.typical(ends)


class XGBoost:
    """XGBoost's rank:ndcg with histograms, leaf by leaf, pairs with the first 30 documents."""

    def __init__(self, train: Arrays, valid: Arrays, task: Task) -> None:
        common = {"max_bin": BINS, "nthread": task.threads}
        self.train = xgb.QuantileDMatrix(train.X, train.y, qid=train.qid, **common)
        self.valid = xgb.QuantileDMatrix(valid.X, valid.y, qid=valid.qid, ref=self.train, **common)
        self.task = task
        self.parameters = {
            **xgboost_parameters(task.n_leaves, task.learning_rate),
            **common,
            "lambdarank_num_pair_per_sample": task.truncation,
        }
        self.leaves = float("nan")

    def __call__(self) -> float:
        """Train, and return the seconds of an iteration."""
        booster = xgb.Booster(self.parameters, [self.train, self.valid])
        ends = []
        for number in range(self.task.n_rounds):
            booster.update(self.train, number)
            booster.eval_set([(self.valid, "valid")], number)
            ends.append(time.perf_counter())
        if np.isnan(self.leaves):
            self.leaves = float(np.mean([text.count("leaf=") for text in booster.get_dump()]))
        return self.task.typical(ends)


def xgboost_parameters(n_leaves: int, learning_rate: float) -> dict[str, Any]:
    """Return the parameters of XGBoost's rank:ndcg that benchmarks share."""
    return {
        "objective": "rank:ndcg",
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": n_leaves,
        "max_depth": 0,
        "learning_rate": learning_rate,
        "lambdarank_pair_method": "topk",
        "eval_metric": "ndcg@10",
        # Weights of pairs are far below 1, its default: no tree would come near its leaves.
        "min_child_weight": 1e-3,
        "verbosity": 0,
    }


class CatBoost:
    """CatBoost's YetiRank, symmetric trees of about as many leaves."""

    def __init__(self, train: Arrays, valid: Arrays, task: Task) -> None:
        self.train, self.valid = (
            catboost.Pool(part.X, part.y, group_id=part.qid) for part in (train, valid)
        )
        _quantise(self.train, self.valid)
        self.task = task
        self.depth = round(np.log2(task.n_leaves))
        self.leaves = float(2**self.depth)
        self.parameters = {
            "loss_function": "YetiRank",
            "eval_metric": "NDCG:top=10;type=Exp;hints=skip_train~true",
            "iterations": task.n_rounds,
            "depth": self.depth,
            "learning_rate": task.learning_rate,
            "border_count": BINS - 1,
            "thread_count": task.threads,
            "random_seed": 0,
            "use_best_model": False,
            "allow_writing_files": False,
            "logging_level": "Silent",
        }

    def __call__(self) -> float:
        """Train, and return the seconds of an iteration."""
        clock = _Clock()
        model = catboost.CatBoost(self.parameters)
        model.fit(self.train, eval_set=self.valid, callbacks=[clock])
        return self.task.typical(clock.ends)


class _Clock:
    def __init__(self) -> None:
        self.ends: list[float] = []

    def after_iteration(self, _info: Any) -> bool:
        """Take the time; go on."""
        self.ends.append(time.perf_counter())
        return True


def _quantise(train: catboost.Pool, valid: catboost.Pool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        borders = str(Path(folder) / "borders")
        train.quantize(border_count=BINS - 1)
        train.save_quantization_borders(borders)
        valid.quantize(input_borders=borders)
