"""Threads that train and score at once, beside forks of the process, agree to the last bit."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rankinite as rk

N_CALLERS = 8
TRAIN = rk.polynomials(60, part="train", n_features=8, n_docs=30)
TEST = rk.polynomials(20, part="test", n_features=8, n_docs=30)
RANKERS = {
    "LambdaMART": lambda: rk.LambdaMART(n_trees=4, n_leaves=7),
    "LambdaRank": lambda: rk.LambdaRank(n_epochs=1, hidden=4, queries_per_step=20),
}


def results(name: str) -> tuple[bytes, float]:
    """Train, score and evaluate on several threads."""
    with rk.threads(3):
        scores = RANKERS[name]().fit(TRAIN).predict(TEST)
        value = rk.evaluate(scores, TEST, ["NDCG@10"]).mean["NDCG@10"]
    return np.asarray(scores).tobytes(), value


def agrees_in_child(name: str, expected: tuple[bytes, float]) -> bool:
    """Tell whether a child of a fork gets the same results."""
    child = os.fork()
    if child == 0:
        # Whatever happens, the child must not go on with the tests.
        try:
            os._exit(0 if results(name) == expected else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("n_rounds", [2, pytest.param(1000, marks=pytest.mark.long)])
def test_threads_and_forks_agree(n_rounds):
    expected = {name: results(name) for name in RANKERS}
    names = [list(RANKERS)[k % len(RANKERS)] for k in range(N_CALLERS)]
    with ThreadPoolExecutor(N_CALLERS) as callers:
        for _ in range(n_rounds):
            at_work = [callers.submit(results, name) for name in names]
            assert all(agrees_in_child(name, expected[name]) for name in RANKERS)
            assert [done.result() for done in at_work] == [expected[name] for name in names]
