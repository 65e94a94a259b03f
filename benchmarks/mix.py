"""The exact best mix of two rankers against a global sort of all crossings in numpy.

    .venv/bin/python benchmarks/mix.py --queries 10000 --docs 50

The peer does what LambdaSMART, Sec. 4, says, without a loop over documents or crossings: all
crossings of all queries by broadcasting, one sort of them, ranks before every crossing by a second
sort, changes of NDCG@10, one cumulative sum. Both find the same best value. The time of the peer's
first sort alone is given too. Turns alternate.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

import rankinite as rk

Floats = NDArray[np.float64]
DEPTH = 10


def simulate(n_queries: int, n_docs: int) -> tuple[rk.RankingData, Floats, Floats]:
    """Return labels, and two rankers that see them through noise."""
    rng = np.random.default_rng(1)
    n = n_queries * n_docs
    y = rng.integers(0, 5, n).astype(float)
    qid = np.repeat(np.arange(n_queries), n_docs)
    data = rk.RankingData(np.zeros((n, 1), np.float32), y, qid, top_grade=4)
    return data, y + rng.normal(0, 3, n), y + rng.normal(0, 4, n)


def global_sort(y: Floats, a: Floats, b: Floats) -> tuple[float, float, float]:
    """Return the best value, its alpha, and the seconds that the sort of all crossings took.

    All arguments have one row a query; no documents tie.
    """
    n_queries, n = y.shape
    order = np.argsort(-a, axis=1)
    y, a, b = (np.take_along_axis(x, order, axis=1) for x in (y, a, b))
    upper, lower = np.triu_indices(n, 1)
    ahead, then = a[:, upper] - a[:, lower], b[:, upper] - b[:, lower]
    query, pair = np.nonzero(then < 0)
    alphas = (ahead / (ahead - then))[query, pair]
    began = time.perf_counter()
    sequence = np.argsort(alphas)
    sorting = time.perf_counter() - began
    alphas, query, pair = alphas[sequence], query[sequence], pair[sequence]
    falling, rising = query * n + upper[pair], query * n + lower[pair]
    rank = ranks_before(falling, rising, n)
    gains = (np.exp2(y) - 1).ravel()
    discounts = np.where(np.arange(n + 1) < DEPTH, 1 / np.log2(np.arange(n + 1) + 2), 0.0)
    ideal = (-np.sort(-(np.exp2(y) - 1), axis=1) * discounts[:n]).sum(axis=1)
    change = (gains[rising] - gains[falling]) * (discounts[rank] - discounts[rank + 1])
    values = np.cumsum(change / ideal[query])
    start = ((np.exp2(y) - 1) * discounts[:n]).sum(axis=1) / ideal
    best = int(np.argmax(values))
    return (start.sum() + values[best]) / n_queries, float(alphas[best]), sorting


def ranks_before(
    falling: NDArray[np.int64], rising: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    """Return the rank, from 0, of the document that falls, before every crossing in order."""
    docs = np.concatenate([falling, rising])
    times = np.concatenate([np.arange(len(falling))] * 2)
    moves = np.repeat([1, -1], len(falling))
    by_doc = np.lexsort((times, docs))
    sums = np.cumsum(moves[by_doc]) - moves[by_doc]
    first = np.flatnonzero(np.diff(docs[by_doc], prepend=-1))
    sums -= np.repeat(sums[first], np.diff(np.append(first, len(docs))))
    before = np.empty(len(docs), np.int64)
    before[by_doc] = sums
    return falling % n + before[: len(falling)]


def main() -> None:
    """Print seconds, the two values, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--docs", type=int, default=50)
    parser.add_argument("--turns", type=int, default=3)
    chosen = parser.parse_args()
    data, a, b = simulate(chosen.queries, chosen.docs)
    rows = [x.reshape(chosen.queries, chosen.docs) for x in (data.y, a, b)]
    rk.best_mix(a, b, data, f"NDCG@{DEPTH}")  # compiles
    ours, theirs, sorting = [], [], []
    for turn in range(chosen.turns):
        began = time.perf_counter()
        mix = rk.best_mix(a, b, data, f"NDCG@{DEPTH}")
        ours.append(time.perf_counter() - began)
        began = time.perf_counter()
        value, alpha, seconds = global_sort(*rows)
        theirs.append(time.perf_counter() - began)
        sorting.append(seconds)
        print(f"turn {turn + 1}: ours {ours[-1]:.3f} s, numpy {theirs[-1]:.3f} s")
    print(f"ours {mix.value:.12f} at {mix.alpha:.6f}; numpy {value:.12f} from {alpha:.6f} on")
    print(f"ratio of medians {np.median(ours) / np.median(theirs):.3f}")
    print(f"the sort of all crossings alone takes numpy {np.median(sorting):.3f} s")


if __name__ == "__main__":
    main()
