"""How long an epoch of a net takes, beside the same net in PyTorch.

    python benchmarks/nets.py [--queries 10000] [--docs 24] [--features 519] [--hidden 25]
        [--turns 3] [--threads 2] [--optimiser sgd]

One batch a query, lambdas of NDCG over all pairs, 32-bit numbers. Both start from the same weights
and see the queries in the same order; after an epoch of plain steps their weights are compared, so
that the two are known to do the same. PyTorch's side is written as its users would: modules,
autograd and an optimiser from torch.optim, its lambdas as tensor operations on all pairs at once,
with what stays the same for a query computed before. Each has its better number of threads (ours
needs one). Turns alternate; the times are the least of each.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np


def main() -> int:
    """Run both in turns and print the ratio."""
    chosen = _arguments()
    os.environ["RANKINITE_THREADS"] = str(chosen.threads)
    try:
        import torch
    except ImportError:
        print("nets: PyTorch is not installed (torch==2.13.0, the CPU build); skipped")
        return 0
    import rankinite as rk
    from rankinite.core.random import generator

    rng = generator(0, "nets benchmark")
    n_docs = chosen.queries * chosen.docs
    X = rng.standard_normal((n_docs, chosen.features), dtype=np.float32)
    y = rng.choice(5, n_docs, p=[0.22, 0.5, 0.22, 0.04, 0.02])
    data = rk.RankingData(
        X=X, y=y, qid=np.repeat(np.arange(chosen.queries), chosen.docs), top_grade=4
    )
    ours = Ours(data, chosen)
    theirs = {n: Theirs(torch, data, chosen, ours, n) for n in sorted({1, chosen.threads})}
    order = rng.permutation(chosen.queries)
    ours.epoch(order[:50])  # compiles, and warms up
    theirs[1].epoch(order[:50])
    off = theirs[1].distance(ours)
    print(f"after 50 queries the weights differ by at most {off:.2g} of the largest change")
    times: dict[str, list[float]] = {"rankinite": []}
    times |= {f"PyTorch, {n} threads": [] for n in theirs}
    for _ in range(chosen.turns):
        times["rankinite"].append(_timed(ours, order))
        for n, peer in theirs.items():
            times[f"PyTorch, {n} threads"].append(_timed(peer, order))
    for name, seconds in times.items():
        shown = ", ".join(f"{second:.2f}" for second in seconds)
        print(f"{name:20} {min(seconds):7.2f} s an epoch ({shown})")
    best = min(min(seconds) for name, seconds in times.items() if name != "rankinite")
    print(f"ratio: {min(times['rankinite']) / best:.3f} (must 0.5, goal 0.2)")
    return 0


def _timed(peer: Any, order: np.ndarray) -> float:
    begin = time.perf_counter()
    peer.epoch(order)
    return time.perf_counter() - begin


class Ours:
    """An epoch of rankinite's."""

    def __init__(self, data: Any, chosen: argparse.Namespace) -> None:
        from rankinite.core.random import generator
        from rankinite.nets.epochs import EpochRunner
        from rankinite.nets.kernels.adam import AdamState
        from rankinite.nets.net import Net, Standardiser
        from rankinite.objectives.objective import Targets
        from rankinite.objectives.pairwise import Lambdas

        inputs = Standardiser.fit(data.matrix, None, data.n_docs)
        self.net = Net.draw(inputs, [chosen.hidden], "tanh", generator(0, "weights"))
        self.plan = Lambdas("NDCG").prepare(
            Targets({None: data.y}, data.offsets, data.top_grade, seed=0)
        )
        self.runner = EpochRunner(
            self.net, data.matrix, None, data.offsets, self.plan, np.zeros(data.n_docs), 1
        )
        self.weights = self.net.packed()
        adam = chosen.optimiser == "adam"
        self.adam = AdamState.zeros(len(self.weights)) if adam else AdamState.empty()
        self.rate = chosen.rate

    def epoch(self, order: np.ndarray) -> None:
        """Go through the queries once."""
        self.adam = self.runner.run(order, 0, self.weights, self.adam, self.rate)


class Theirs:
    """An epoch of PyTorch's."""

    def __init__(
        self, torch: Any, data: Any, chosen: argparse.Namespace, ours: Ours, n_threads: int
    ) -> None:
        self.torch = torch
        self.n_threads = n_threads
        inputs = ours.net.inputs
        X = (data.X[:, inputs.features] - inputs.means) * inputs.scales
        self.first = ours.net.weights.copy()
        n_inputs, n_units = len(inputs.features), chosen.hidden
        self.model = torch.nn.Sequential(
            torch.nn.Linear(n_inputs, n_units), torch.nn.Tanh(), torch.nn.Linear(n_units, 1)
        )
        self._set(ours.net.weights)
        kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
        self.optimiser = kinds[chosen.optimiser](self.model.parameters(), lr=chosen.rate)
        self.queries = [self._query(X, data, q) for q in range(data.n_queries)]
        discounts = 1.0 / np.log2(2.0 + np.arange(chosen.docs))
        self.discounts = torch.tensor(discounts, dtype=torch.float32)

    def _set(self, weights: np.ndarray) -> None:
        """Give the model these weights, laid out as ours."""
        torch, begin = self.torch, 0
        with torch.no_grad():
            for part in self.model.parameters():
                part.copy_(torch.tensor(weights[begin : begin + part.numel()]).view(part.shape))
                begin += part.numel()

    def _query(self, X: np.ndarray, data: Any, q: int) -> tuple[Any, ...]:
        """Return inputs, which document of a pair is better, and by how much a swap counts."""
        torch = self.torch
        docs = slice(int(data.offsets[q]), int(data.offsets[q + 1]))
        gains = 2.0 ** np.asarray(data.y[docs]) - 1.0
        best = np.sort(gains)[::-1] @ (1.0 / np.log2(2.0 + np.arange(len(gains))))
        apart = (gains[:, None] - gains[None, :]) / max(best, 1e-30)
        better = torch.tensor(np.maximum(apart, 0.0), dtype=torch.float32)
        return torch.tensor(X[docs]), better

    def epoch(self, order: np.ndarray) -> None:
        """Go through the queries once."""
        torch = self.torch
        torch.set_num_threads(self.n_threads)
        for q in order.tolist():
            inputs, better = self.queries[q]
            scores = self.model(inputs)[:, 0]
            with torch.no_grad():
                places = torch.empty_like(self.discounts)
                places[torch.argsort(scores, descending=True)] = self.discounts
                change = better * (places[:, None] - places[None, :]).abs()
                pairs = change * torch.sigmoid(scores[None, :] - scores[:, None])
                lambdas = pairs.sum(1) - pairs.sum(0)
            self.optimiser.zero_grad()
            scores.backward(-lambdas)
            self.optimiser.step()

    def distance(self, ours: Ours) -> float:
        """Return how far the weights are from ours, in parts of the largest change."""
        mine = np.concatenate([part.detach().numpy().ravel() for part in self.model.parameters()])
        other = ours.weights[ours.net.places]
        return float(np.abs(mine - other).max() / np.abs(other - self.first).max())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--docs", type=int, default=24)
    parser.add_argument("--features", type=int, default=519)
    parser.add_argument("--hidden", type=int, default=25)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--optimiser", choices=["sgd", "adam"], default="sgd")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
