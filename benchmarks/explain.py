"""Contributions of features against LightGBM's `pred_contrib`, of the same trees.

    python benchmarks/explain.py [--docs 10000] [--features 136] [--trees 500] [--leaves 31]

LightGBM trains the trees, and ours are read from its model. Both explain the same documents on two
threads, in turns, and the fastest of each counts.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import lightgbm
import numpy as np

import rankinite as rk
from rankinite.trees.contributions import forest_contributions
from turns import in_turns, per_call, print_times

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.trees.cases import forest_of_lightgbm

MUST, GOAL = 0.5, 0.2
THREADS = 2


def compare(n_docs: int, n_features: int, n_trees: int, n_leaves: int, turns: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_docs, n_features)).astype(np.float32)
    y = X[:, :20].sum(axis=1) + X[:, 20] * X[:, 21] + rng.normal(size=n_docs)
    parameters = {"num_leaves": n_leaves, "num_threads": THREADS, "verbose": -1}
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, y), n_trees)
    forest = forest_of_lightgbm(booster)
    rk.set_threads(THREADS)
    ours, _ = forest_contributions(forest, X[:500])
    theirs = booster.predict(X[:500], pred_contrib=True)
    difference = np.abs(ours[0] - theirs[:, :-1]).max()
    print(f"largest difference of a contribution: {difference:.2g}")
    assert difference < 1e-9
    rivals = {
        "ours": per_call(lambda: forest_contributions(forest, X)),
        "theirs": per_call(lambda: booster.predict(X, pred_contrib=True)),
    }
    measured = in_turns(rivals, turns)
    print_times(measured, "s", 1.0)
    ratio = min(measured["ours"]) / min(measured["theirs"])
    verdict = "goal met" if ratio <= GOAL else "must met" if ratio <= MUST else "MISSED"
    print(f"ours / theirs, the fastest of each: {ratio:.3f}; must {MUST}, goal {GOAL}: {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--turns", type=int, default=3)
    chosen = parser.parse_args()
    compare(chosen.docs, chosen.features, chosen.trees, chosen.leaves, chosen.turns)
