"""Weights and scores of nets are the same to the last bit for any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TRAIN = """
import hashlib
import sys

sys.path[:0] = sys.argv[1:]
import numba
import numpy as np
from tests.nets.cases import scored, some_features, some_net

from rankinite.nets.inputs import Standardiser
from rankinite.nets.epochs import EpochRunner
from rankinite.nets.kernels.adam import AdamState
from rankinite.objectives.pairwise import Lambdas
from rankinite.objectives.objective import Targets

rng = np.random.default_rng(0)
sizes = rng.integers(1, 40, size=600)
offsets = np.concatenate([[0], np.cumsum(sizes)])
n_docs = int(offsets[-1])
X = some_features(rng, n_docs, 11, constant=[3])
labels = rng.integers(5, size=n_docs).astype(float)
gradients = Lambdas("NDCG").prepare(Targets({None: labels}, offsets, 4.0))
net = some_net(rng, X, (7, 4))
rows = rng.permutation(n_docs)
fit = Standardiser.fit(X, rows, n_docs)
assert n_docs > 2 * 4096


def train(queries_per_step, adam):
    weights = net.packed()
    start = np.zeros(n_docs)
    runner = EpochRunner(net, X, None, offsets, gradients, start, queries_per_step)
    for epoch in range(2):
        order = np.random.default_rng(epoch).permutation(len(sizes))
        adam = runner.run(order, epoch, weights, adam, 0.01)
    assert np.isfinite(weights).all()
    assert (weights != net.packed()).any()
    return weights.tobytes() + adam.second_moment.tobytes() + runner.scores.tobytes()


zeros = AdamState.zeros(len(net.packed()))
cases = {
    "inputs": fit.means.tobytes() + fit.scales.tobytes(),
    "scores": scored(net, X).tobytes(),
    "scores of rows": scored(net, X, rows).tobytes(),
    "one": train(1, AdamState.empty()),
    "batches": train(50, AdamState.empty()),
    "batches of adam": train(37, zeros),
    "all": train(None, zeros),
}
sys.stdout.write(f"{numba.get_num_threads()}\\n")
for name, value in cases.items():
    sys.stdout.write(f"{name}: {len(value)} bytes, {hashlib.sha256(value).hexdigest()}\\n")
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def outputs() -> dict[int, list[str]]:
    """Return one line per case, by number of threads: numba fixes that at import."""
    return {
        n_threads: subprocess.run(
            [sys.executable, "-W", "error", "-c", TRAIN, str(ROOT)],
            env={**os.environ, "NUMBA_NUM_THREADS": str(n_threads)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.splitlines()
        for n_threads in (1, 2, 4)
    }


def test_every_number_of_threads_was_tried(outputs):
    assert {n: lines[0] for n, lines in outputs.items()} == {1: "1", 2: "2", 4: "4"}
    assert {len(lines) for lines in outputs.values()} == {8}


@pytest.mark.parametrize("n_threads", [2, 4])
def test_nets_are_the_same(outputs, n_threads):
    assert outputs[n_threads][1:] == outputs[1][1:]
