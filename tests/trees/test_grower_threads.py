"""Trees and scores are the same to the last bit for any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GROW = """
import hashlib
import sys
from dataclasses import replace

sys.path[:0] = [sys.argv[1]]
import numba
import numpy as np
from tests.trees.cases import bin_all, boost, bytes_of, growth, mixed_features, names

from rankinite.trees.forest import Forest
from rankinite.trees.grower import Grower

rng = np.random.default_rng(0)
n_docs = 12_000
X = mixed_features(rng, n_docs, 21)
target, hessians = rng.normal(size=n_docs), rng.random(n_docs) + 0.1
rows = rng.integers(n_docs, size=2 * n_docs)
whole = bin_all(X)
appended = bin_all(X[:, :10]).append(X[:, 10:], names(21)[10:])
narrow = bin_all(X[:, 5:8])


def case(binned, how, features, rows=None, **options):
    docs = slice(None) if rows is None else rows
    grower = Grower(binned, rows, how)
    trees, scores = boost(grower, target[docs], 3, hessians=hessians[docs], **options)
    forest = Forest(trees, np.zeros(1), features.shape[1])
    assert all(tree.n_leaves == how.n_leaves or how.symmetric for tree in trees)
    assert all(tree.n_leaves > 16 for tree in trees)
    assert forest.scores(features, rows)[0].tobytes() == scores.tobytes()
    return bytes_of(trees) + scores.tobytes()


mse, newton = growth(31, min_docs=10), growth(300, criterion="newton")
cases = {
    "cuts": whole.main.cuts.tobytes() + whole.main.bins.tobytes() + whole.main.columns.tobytes(),
    "mse": case(whole, mse, X),
    "newton": case(whole, newton, X),
    "sampled": case(whole, mse, X, sample=0.5, n_features=5),
    "newton sampled": case(whole, newton, X, sample=0.6),
    "second block": case(appended, mse, X),
    "second block newton": case(appended, newton, X, sample=0.6, n_features=15),
    "one word of columns": case(narrow, mse, X[:, 5:8].copy()),
    "shared rows": case(whole, mse, X, rows=rows, sample=0.7),
    "symmetric": case(whole, replace(mse, n_leaves=32, symmetric=True), X),
    "symmetric newton": case(
        appended, replace(newton, n_leaves=64, symmetric=True), X, sample=0.6, n_features=15
    ),
}

# The same split up to rounding in several words of columns: x, -x, x + 1, ... gain nearly alike.
small = rng.integers(20, size=(60, 8)).astype(np.float32)
mirrored = np.hstack([small, -small, small + 1, -small])
grower = Grower(bin_all(mirrored), None, growth(8))
ties = b""
for _ in range(300):
    gradients = rng.normal(size=60)
    ties += bytes_of([grower.grow(gradients, np.ones(60))])
cases["ties"] = ties

sys.stdout.write(f"{numba.get_num_threads()}\\n")
for name, value in cases.items():
    sys.stdout.write(f"{name}: {len(value)} bytes, {hashlib.sha256(value).hexdigest()}\\n")
"""


@pytest.fixture(scope="module")
def outputs() -> dict[int, list[str]]:
    """Return one line per case, by number of threads: numba fixes that at import."""
    return {
        n_threads: subprocess.run(
            [sys.executable, "-W", "error", "-c", GROW, str(Path(__file__).parents[2])],
            env={**os.environ, "NUMBA_NUM_THREADS": str(n_threads)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.splitlines()
        for n_threads in (1, 2, 4)
    }


def test_every_number_of_threads_was_tried(outputs):
    assert {n: lines[0] for n, lines in outputs.items()} == {1: "1", 2: "2", 4: "4"}
    assert {len(lines) for lines in outputs.values()} == {13}


@pytest.mark.parametrize("n_threads", [2, 4])
def test_large_trees_are_the_same(outputs, n_threads):
    assert outputs[n_threads][1:-1] == outputs[1][1:-1]


@pytest.mark.parametrize("n_threads", [2, 4])
def test_splits_that_gain_nearly_alike_are_chosen_alike(outputs, n_threads):
    assert outputs[n_threads][-1] == outputs[1][-1]
