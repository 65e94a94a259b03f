"""How far BM25F-SD, a linear RankSVM and boosted trees are apart on the simulated challenge.

    python benchmarks/challenge.py [--size 1] [--trees 2400] [--rate 0.05] [--market 1] [--seed 0]

Beside it, for Set 1, the same of the real one (Challenge, Table 5). Boosted trees are as in the
paper: squared error of R, 20 leaves, half of the documents a tree. RankSVM minimises the squared
hinge over sampled pairs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import rankinite as rk
from rankinite.data.simulate.markets import MARKETS

BM25F = 636
TABLE_5 = """\
Challenge, Table 5  ERR      NDCG@10
BM25F-SD            0.42853  0.73214
RankSVM             0.43680  0.75924
GBDT                0.46201  0.79013"""
PAIRS = 200_000
PENALTY = 1e-4

Floats = NDArray[np.float64]


def main() -> None:
    """Simulate, train both rankers, and compare all three on the test part."""
    chosen = _arguments()
    train, test = (_simulate(part, chosen) for part in ("train", "test"))
    print(f"train {train}\ntest  {test}", flush=True)
    systems = {
        "BM25F-SD": test.X[:, BM25F],
        "RankSVM": _timed("RankSVM", lambda: rank_svm(train, test)),
        "GBDT": _timed("GBDT", lambda: boosted(train, chosen).predict(test)),
    }
    print(rk.compare(systems, test, ["ERR", "NDCG@10"]))
    if chosen.market == 1:
        print(TABLE_5)


def _simulate(part: str, chosen: argparse.Namespace) -> rk.RankingData:
    n_queries = max(1, round(MARKETS[chosen.market].queries[part] * chosen.size))
    return rk.challenge(n_queries, part=part, market=chosen.market, seed=chosen.seed)


def boosted(train: rk.RankingData, chosen: argparse.Namespace) -> rk.MART:
    """Fit the regression of R that the challenge's organisers call GBDT."""
    targets = (2.0**train.y - 1) / 2**train.top_grade
    data = rk.RankingData(train.matrix, targets, qid=train.qid, top_grade=1)
    mart = rk.MART(preset="paper", n_trees=chosen.trees, learning_rate=chosen.rate)
    return mart.fit(data)


def rank_svm(train: rk.RankingData, test: rk.RankingData) -> Floats:
    """Score the test part by a linear ranker."""
    centre, scale = train.X.mean(axis=0), train.X.std(axis=0)
    used = scale > 0
    better, worse = _pairs(train)
    gaps = (train.X[better][:, used] - train.X[worse][:, used]) / scale[used]

    def loss(weights: Floats) -> tuple[float, Floats]:
        hinge = np.maximum(1 - gaps @ weights.astype(np.float32), 0)
        slope = -2 / len(gaps) * (hinge @ gaps) + 2 * PENALTY * weights
        return float(np.mean(hinge**2) + PENALTY * weights @ weights), slope.astype(np.float64)

    start = np.zeros(int(used.sum()))
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 100})
    scores: Floats = ((test.X[:, used] - centre[used]) / scale[used]) @ optimum.x
    return scores


def _pairs(data: rk.RankingData) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw pairs of documents of one query with different grades, the better one first."""
    rng = np.random.default_rng(0)
    query = rng.integers(0, data.n_queries, 3 * PAIRS)
    first, second = (
        data.offsets[query] + (rng.random(len(query)) * data.sizes[query]).astype(np.int64)
        for _ in range(2)
    )
    better = np.where(data.y[first] > data.y[second], first, second)
    worse = np.where(data.y[first] > data.y[second], second, first)
    differ = np.flatnonzero(data.y[first] != data.y[second])[:PAIRS]
    return better[differ], worse[differ]


def _timed(name: str, work: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    done = work()
    print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    return done


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the share of the queries")
    parser.add_argument("--trees", type=int, default=2_400)
    parser.add_argument("--rate", type=float, default=0.05, help="the learning rate")
    parser.add_argument("--market", type=int, default=1, choices=(1, 2))
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
