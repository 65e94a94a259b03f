"""Weights and scores of nets are the same to the last bit for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from rankinite.nets.epochs import EpochRunner
from rankinite.nets.inputs import Standardiser
from rankinite.nets.kernels.adam import AdamState
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas
from tests.nets.cases import scored, some_features, some_net

RNG = np.random.default_rng(0)
SIZES = RNG.integers(1, 40, size=600)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
N_DOCS = int(OFFSETS[-1])
X = some_features(RNG, N_DOCS, 11, constant=[3])
LABELS = RNG.integers(5, size=N_DOCS).astype(float)
NET = some_net(RNG, X, (7, 4))
ROWS = RNG.permutation(N_DOCS)


def trained(queries_per_step, with_adam):
    gradients = Lambdas("NDCG").prepare(Targets({None: LABELS}, OFFSETS, 4.0))
    weights, start = NET.packed(), np.zeros(N_DOCS)
    adam = AdamState.zeros(len(weights)) if with_adam else AdamState.empty()
    runner = EpochRunner(NET, X, None, OFFSETS, gradients, start, queries_per_step)
    for epoch in range(2):
        order = np.random.default_rng(epoch).permutation(len(SIZES))
        adam = runner.run(order, epoch, weights, adam, 0.01)
    assert np.isfinite(weights).all()
    assert (weights != NET.packed()).any()
    return weights.tobytes() + adam.second_moment.tobytes() + runner.scores.tobytes()


@pytest.mark.parametrize(
    ("queries_per_step", "with_adam"), [(1, False), (50, False), (37, True), (None, True)]
)
def test_training(on_threads, queries_per_step, with_adam):
    results = on_threads(lambda: trained(queries_per_step, with_adam))
    assert len(results) == 4
    assert len(set(results.values())) == 1


def test_inputs_and_scores(on_threads):
    assert N_DOCS > 2 * 4096  # more than one range of documents on every thread

    def bytes_of_all():
        fitted = Standardiser.fit(X, ROWS, N_DOCS)
        return b"".join(
            array.tobytes()
            for array in (fitted.means, fitted.scales, scored(NET, X), scored(NET, X, ROWS))
        )

    assert len(set(on_threads(bytes_of_all).values())) == 1
