"""Seconds of training until a ranker is as good as LightGBM becomes with its own best parameters.

    python benchmarks/time_to_quality.py [--size 0.1] [--rounds 400] [--threads 2] [--seed 0]
        [--peers lightgbm,xgboost,catboost]

On the simulated challenge. The clock begins with the arrays, so that it counts the bins, and no
system evaluates while it runs: scores after every few rounds are computed afterwards. The target
is the best NDCG@10 of the validation part that LightGBM reaches with any of its parameters, so the
part chooses for LightGBM only. Peers are shown with their parameters that get there first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import catboost
import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

import rankinite as rk
from rankinite.data.simulate.markets import MARKETS
from shapes import Arrays

EVERY = 5  # rounds between two looks at the quality
RATES = (0.05, 0.1)
LEAVES = (31, 63)
Scores = NDArray[np.float64]


@dataclass
class Curve:
    """Seconds from the start to the end of rounds, and the quality of validation after them."""

    what: str
    seconds: list[float]
    quality: list[float]

    def until(self, target: float) -> float:
        """Return the seconds until the quality is reached; infinity if it never is."""
        reached = [s for s, q in zip(self.seconds, self.quality, strict=True) if q >= target]
        return reached[0] if reached else float("inf")

    def __str__(self) -> str:
        return f"{self.what}: at best {max(self.quality):.4f}, {self.seconds[-1]:.1f} s in all"


@dataclass
class Task:
    """What all systems train on."""

    train: Arrays
    valid: Arrays
    n_rounds: int
    threads: int

    def curve(self, what: str, fit: Callable[[list[float]], Any], scores: Any) -> Curve:
        """Train, then look at the quality after every few rounds.

        Parameters
        ----------
        what
            The name of the system and its parameters.
        fit
            Trains, and appends the time to a list after each round.
        scores
            Takes what was trained; iterates over scores after every few rounds.
        """
        ends: list[float] = []
        start = time.perf_counter()
        model = fit(ends)
        data = self.valid.data()
        quality = [rk.evaluate(s, data, "NDCG@10").mean["NDCG@10"] for s in scores(model)]
        curve = Curve(what, [ends[k] - start for k in range(EVERY - 1, len(ends), EVERY)], quality)
        print(curve, flush=True)
        return curve


def ours(task: Task) -> list[Curve]:
    def fit(ends: list[float]) -> rk.LambdaMART:
        model = rk.LambdaMART(n_trees=task.n_rounds)
        return model.fit(task.train.data(), callbacks=[lambda _: ends.append(time.perf_counter())])

    def scores(model: rk.LambdaMART) -> Iterator[Scores]:
        return model.staged_predict(task.valid.X, every=EVERY)

    return [task.curve("LambdaMART with its defaults", fit, scores)]


def lightgbm(task: Task) -> list[Curve]:
    def one(rate: float, n_leaves: int, truncation: int) -> Curve:
        parameters = {
            "objective": "lambdarank", "learning_rate": rate, "num_leaves": n_leaves,
            "lambdarank_truncation_level": truncation, "num_threads": task.threads,
            "verbosity": -1,
        }  # fmt: skip

        def fit(ends: list[float]) -> lgb.Booster:
            train = task.train
            data = lgb.Dataset(train.X, train.y, group=train.sizes, params=parameters)
            clock = lambda _: ends.append(time.perf_counter())  # noqa: E731
            return lgb.train(parameters, data, task.n_rounds, callbacks=[clock])

        def scores(model: lgb.Booster) -> Iterator[Scores]:
            total = np.zeros(len(task.valid.X))
            for begin in range(0, task.n_rounds, EVERY):
                total += model.predict(
                    task.valid.X, start_iteration=begin, num_iteration=EVERY, raw_score=True
                )
                yield total

        return task.curve(
            f"LightGBM, rate {rate}, {n_leaves} leaves, top {truncation}", fit, scores
        )

    return [one(*choice) for choice in product(RATES, LEAVES, (30, 100))]


def xgboost(task: Task) -> list[Curve]:
    def one(rate: float, n_leaves: int) -> Curve:
        parameters = {
            "objective": "rank:ndcg", "tree_method": "hist", "grow_policy": "lossguide",
            "max_leaves": n_leaves, "max_depth": 0, "learning_rate": rate, "nthread": task.threads,
            "lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": 30,
            "min_child_weight": 1e-3, "verbosity": 0,
        }  # fmt: skip

        def fit(ends: list[float]) -> xgb.Booster:
            train = task.train
            data = xgb.QuantileDMatrix(train.X, train.y, qid=train.qid, nthread=task.threads)
            booster = xgb.Booster(parameters, [data])
            for number in range(task.n_rounds):
                booster.update(data, number)
                ends.append(time.perf_counter())
            return booster

        def scores(model: xgb.Booster) -> Iterator[Scores]:
            matrix = xgb.DMatrix(task.valid.X)
            for end in range(EVERY, task.n_rounds + 1, EVERY):
                yield model.predict(matrix, iteration_range=(0, end), output_margin=True)

        return task.curve(f"XGBoost, rate {rate}, {n_leaves} leaves", fit, scores)

    return [one(*choice) for choice in product((0.1, 0.2), LEAVES)]


class _Clock:
    def __init__(self, ends: list[float]) -> None:
        self.ends = ends

    def after_iteration(self, _info: Any) -> bool:
        """Take the time; go on."""
        self.ends.append(time.perf_counter())
        return True


def catboosts(task: Task) -> list[Curve]:
    def one(loss: str, rate: float) -> Curve:
        def fit(ends: list[float]) -> catboost.CatBoost:
            train = task.train
            model = catboost.CatBoost(
                {
                    "loss_function": loss,
                    "learning_rate": rate,
                    "iterations": task.n_rounds,
                    "thread_count": task.threads,
                    "random_seed": 0,
                    "logging_level": "Silent",
                    "allow_writing_files": False,
                }
            )
            pool = catboost.Pool(train.X, train.y, group_id=train.qid)
            return model.fit(pool, callbacks=[_Clock(ends)])

        def scores(model: catboost.CatBoost) -> Iterator[Scores]:
            pool = catboost.Pool(task.valid.X)
            staged = model.staged_predict(
                pool, prediction_type="RawFormulaVal", eval_period=EVERY, ntree_start=EVERY - 1
            )
            for _ in range(task.n_rounds // EVERY):
                yield np.asarray(next(staged))

        return task.curve(f"CatBoost {loss}, rate {rate}", fit, scores)

    return [one("QueryRMSE", rate) for rate in RATES] + [one("YetiRank", 0.1)]


PEERS = {"lightgbm": lightgbm, "xgboost": xgboost, "catboost": catboosts}


def main() -> None:
    """Train all, and print how long each takes to the quality of LightGBM's best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", default=",".join(PEERS), type=lambda text: text.split(","))
    chosen = parser.parse_args()
    rk.set_threads(chosen.threads)
    train, valid = (
        rk.challenge(round(MARKETS[1].queries[part] * chosen.size), part=part, seed=chosen.seed)
        for part in ("train", "valid")
    )
    print(f"train {train}\nvalid {valid}", flush=True)
    task = Task(Arrays.of(train), Arrays.of(valid), chosen.rounds, chosen.threads)
    ours(Task(Arrays.of(train[:50]), Arrays.of(valid), EVERY, chosen.threads))  # loads kernels
    curves = {name: PEERS[name](task) for name in dict.fromkeys(["lightgbm", *chosen.peers])}
    target = max(max(curve.quality) for curve in curves["lightgbm"])
    our_seconds = min(curve.until(target) for curve in ours(task))
    print(
        f"target, LightGBM's best NDCG@10: {target:.4f}; ours reaches it after {our_seconds:.1f} s"
    )
    for name, of_peer in curves.items():
        first = min(of_peer, key=lambda curve: curve.until(target))
        seconds = first.until(target)
        print(
            f"  {name}: {seconds:.1f} s ({first.what}); ours / theirs {our_seconds / seconds:.2f} "
            "(must 0.3)"
        )


if __name__ == "__main__":
    main()
