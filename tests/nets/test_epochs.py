"""Epochs against a naive loop: scores, lambdas, gradient, step."""

from __future__ import annotations

from itertools import product

import numba
import numpy as np
import pytest

from rankinite.nets.epochs import EpochRunner
from rankinite.nets.kernels.adam import AdamState
from rankinite.objectives.objective import Gradients, Targets
from rankinite.objectives.pairwise import Lambdas, RankNet
from rankinite.objectives.pointwise import SquaredError
from tests.naive import nets as naive_nets
from tests.nets.cases import ACTIVATIONS, sizes_of, some_features, some_net

JIT = not numba.config.DISABLE_JIT

pytestmark = pytest.mark.kernel

# One query without pairs, one of one document, one for which lambdas count twice.
QUERY_SIZES = [5, 1, 9, 3, 6, 2, 7, 4, 8, 3, 3, 4, 6] if JIT else [3, 1, 4, 2, 2]
N_QUERIES = len(QUERY_SIZES)
# Steps of Adam magnify what rounding leaves of small gradients.
CLOSE = {"rtol": 2e-4, "atol": 2e-5}


class Problem:
    """A net, a data set and an objective."""

    def __init__(self, objective, hidden, *, shared=False, activation="tanh"):
        rng = np.random.default_rng(8)
        self.offsets = np.concatenate([[0], np.cumsum(QUERY_SIZES)])
        n_docs = int(self.offsets[-1])
        self.X = some_features(rng, n_docs, 6, constant=[4])
        self.net = some_net(rng, self.X, hidden, activation)
        self.rows = rng.integers(n_docs, size=n_docs) if shared else None
        self.start = rng.normal(size=n_docs)
        labels = rng.integers(4, size=n_docs).astype(float)
        labels[: QUERY_SIZES[0]] = 1.0
        weight = None if isinstance(objective, SquaredError) else 1.0 + (np.arange(N_QUERIES) == 2)
        targets = Targets({None: labels}, self.offsets, 3.0, query_weight=weight)
        self.gradients = objective.prepare(targets)
        inputs = naive_nets.standardise(self.X)
        self.inputs = naive_nets.fill(inputs, self.X[self.rows] if shared else self.X)

    def runner(self, queries_per_step, gradients=None):
        return EpochRunner(
            self.net,
            self.X,
            self.rows,
            self.offsets,
            gradients or self.gradients,
            self.start,
            queries_per_step,
        )

    def order(self, epoch):
        return np.random.default_rng(epoch).permutation(N_QUERIES)

    def train(self, queries_per_step, adam, rate, n_epochs=2, gradients=None, decay=0.0):
        """Return the packed weights, the scores and the state of Adam after some epochs."""
        runner, weights = self.runner(queries_per_step, gradients), self.net.packed()
        for epoch in range(n_epochs):
            adam = runner.run(self.order(epoch), epoch, weights, adam, rate, decay)
        return weights, runner.scores, adam

    def naive_gradient(self, weights, queries, scores):
        """Write the scores of some queries, and return the gradient of the weights."""
        docs = np.concatenate([np.arange(*self.offsets[q : q + 2]) for q in queries])
        inputs, sizes = self.inputs[docs], sizes_of(self.net)
        scores[docs] = self.start[docs] + naive_nets.scores(
            weights, sizes, inputs, self.net.activation
        )
        out = np.zeros((2, 1, len(scores)))
        self.gradients.gradients(scores[np.newaxis], 0, out[0], out[1])
        return naive_nets.gradient(weights, sizes, inputs, self.net.activation, out[0, 0, docs])

    def train_naively(self, queries_per_step, step, n_epochs=2):
        """Return the weights and the scores if ``step`` updates the weights."""
        batch_size = queries_per_step or N_QUERIES
        weights, scores = self.net.weights.astype(np.float64), np.zeros(len(self.start))
        for epoch in range(n_epochs):
            order = self.order(epoch)
            for begin in range(0, N_QUERIES, batch_size):
                queries = order[begin : begin + batch_size]
                weights = step(weights, self.naive_gradient(weights, queries, scores))
        return weights, scores


OBJECTIVES = {
    "NDCG": Lambdas("NDCG"),
    "distance": Lambdas("ERR", normalise="distance", truncation=3),
    "RankNet": RankNet(),
    "squared": SquaredError(),
}
HIDDEN = [(), (5,), (3, 4)]
PER_STEP = [1, 3, 8, None, 1000] if JIT else [1, 2, None]
PROBLEMS = [*product(OBJECTIVES, HIDDEN)] if JIT else [("NDCG", (3, 2)), ("squared", ())]

every_problem = pytest.mark.parametrize(("objective", "hidden"), PROBLEMS, ids=str)
every_batch = pytest.mark.parametrize("queries_per_step", PER_STEP)


@every_problem
@every_batch
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_plain_steps_are_those_of_a_naive_loop(objective, hidden, queries_per_step, activation):
    problem = Problem(OBJECTIVES[objective], hidden, activation=activation)
    rate = 0.02
    weights, scores, adam = problem.train(queries_per_step, AdamState.empty(), rate)
    expected, naive_scores = problem.train_naively(
        queries_per_step, lambda weights, gradient: weights + rate * gradient
    )
    assert np.abs(expected - problem.net.weights).max() > 100 * CLOSE["atol"]
    np.testing.assert_allclose(problem.net.with_packed(weights).weights, expected, **CLOSE)
    np.testing.assert_allclose(scores, naive_scores, **CLOSE)
    assert len(adam.first_moment) == len(adam.second_moment) == 0


@every_problem
@every_batch
@pytest.mark.parametrize("decay", [0.0, 3.0])
def test_steps_of_adam_are_those_of_a_naive_loop(objective, hidden, queries_per_step, decay):
    problem = Problem(OBJECTIVES[objective], hidden)
    n_weights = len(problem.net.weights)
    naive = naive_nets.Adam(0.01, np.zeros(n_weights), np.zeros(n_weights), decay=decay)
    begin = AdamState.zeros(len(problem.net.packed()))
    weights, scores, adam = problem.train(queries_per_step, begin, naive.rate, decay=decay)
    expected, naive_scores = problem.train_naively(queries_per_step, naive.step)
    # The lambdas of pairs sum to 0 but for rounding, of which Adam makes steps of any size: with
    # the bias of the score, which moves no document past another.
    is_pointwise = objective == "squared"
    compared = slice(None) if is_pointwise else slice(-1)
    unpacked = problem.net.with_packed(weights).weights
    np.testing.assert_allclose(unpacked[compared], expected[compared], **CLOSE)
    np.testing.assert_allclose(scores, naive_scores, **CLOSE if is_pointwise else {"atol": 0.3})
    assert adam.n_steps == naive.n_steps
    pairs = ((adam.first_moment, naive.first), (adam.second_moment, naive.second))
    for packed, expected in pairs:
        size = np.abs(expected).max()
        moment = packed[problem.net.positions]
        np.testing.assert_allclose(
            moment[compared], expected[compared], rtol=1e-3, atol=1e-4 * size
        )


def test_rows_of_a_matrix():
    problem = Problem(OBJECTIVES["NDCG"], (5,), shared=True)
    weights, scores, _ = problem.train(1, AdamState.empty(), 0.02)
    expected, naive_scores = problem.train_naively(1, lambda w, gradient: w + 0.02 * gradient)
    np.testing.assert_allclose(problem.net.with_packed(weights).weights, expected, **CLOSE)
    np.testing.assert_allclose(scores, naive_scores, **CLOSE)


def test_the_state_of_adam_before_an_epoch_is_not_changed():
    problem = Problem(OBJECTIVES["NDCG"], (3,))
    runner, weights = problem.runner(2), problem.net.packed()
    begin = AdamState.zeros(len(weights))
    after = runner.run(problem.order(0), 0, weights, begin, 0.01)
    assert not begin.first_moment.any()
    assert not begin.second_moment.any()
    assert begin.n_steps == 0
    assert after.first_moment.any()
    assert after.second_moment.any()
    assert after.n_steps == -(-N_QUERIES // 2)


@pytest.mark.parametrize("queries_per_step", PER_STEP)
@pytest.mark.parametrize("adam", [False, True])
def test_padding_stays_0(queries_per_step, adam):
    problem = Problem(OBJECTIVES["NDCG"], (3, 5))
    positions = problem.net.positions
    begin = AdamState.zeros(len(problem.net.packed())) if adam else AdamState.empty()
    weights, _, state = problem.train(queries_per_step, begin, 0.05)
    assert not np.delete(weights, positions).any()
    if adam:
        assert not np.delete(state.first_moment, positions).any()
        assert not np.delete(state.second_moment, positions).any()


def test_an_epoch_trains_on_the_queries_of_its_order_only():
    problem = Problem(OBJECTIVES["RankNet"], (3,))
    chosen = np.array([3, 2])
    runner, weights = problem.runner(1), problem.net.packed()
    runner.run(chosen, 0, weights, AdamState.empty(), 0.1)
    docs = np.concatenate([np.arange(*problem.offsets[q : q + 2]) for q in chosen])
    assert runner.scores[docs].all()
    assert not np.delete(runner.scores, docs).any()
    expected = problem.net.weights.astype(np.float64)
    for q in chosen:
        gradient = problem.naive_gradient(expected, [q], np.zeros(len(problem.start)))
        expected = expected + 0.1 * gradient
    np.testing.assert_allclose(problem.net.with_packed(weights).weights, expected, **CLOSE)


class WithoutArrays(Gradients):
    """The gradients of an objective, without its arrays."""

    def __init__(self, inner):
        self.inner = inner
        self.start = inner.start
        self.iterations = []
        self.n_queries = []

    def gradients(self, scores, iteration, out_gradient, out_hessian):
        self.iterations.append(iteration)
        self.inner.gradients(scores, iteration, out_gradient, out_hessian)


class OfSomeWithoutArrays(WithoutArrays):
    """The same, for some queries; what is written for others has no meaning."""

    def gradients_of(self, queries, scores, iteration, out_gradient, out_hessian):
        self.n_queries.append(int(queries.sum()))
        self.gradients(scores, iteration, out_gradient, out_hessian)
        sizes = np.diff(self.inner.arrays.offsets)
        out_gradient[0, np.repeat(~queries, sizes)] = np.nan


@pytest.mark.parametrize("kind", [WithoutArrays, OfSomeWithoutArrays])
@pytest.mark.parametrize("objective", ["NDCG", "distance"])
@pytest.mark.parametrize("adam", [False, True])
@every_batch
def test_an_objective_without_a_plan_gives_the_same_weights(
    kind, objective, adam, queries_per_step
):
    problem = Problem(OBJECTIVES[objective], (5, 2))
    without = kind(problem.gradients)
    assert problem.gradients.mixture(0) is not None
    assert without.mixture(0) is None
    begin = AdamState.zeros(len(problem.net.packed())) if adam else AdamState.empty()
    planned = problem.train(queries_per_step, begin, 0.03)
    unplanned = problem.train(queries_per_step, begin, 0.03, gradients=without)
    assert unplanned[0].tobytes() == planned[0].tobytes()
    assert unplanned[1].tobytes() == planned[1].tobytes()
    assert unplanned[2].second_moment.tobytes() == planned[2].second_moment.tobytes()
    assert unplanned[2].n_steps == planned[2].n_steps
    assert sorted(set(without.iterations)) == [0, 1]
    if kind is OfSomeWithoutArrays:
        assert max(without.n_queries) == min(queries_per_step or N_QUERIES, N_QUERIES)
        assert sum(without.n_queries) == 2 * N_QUERIES


def test_a_query_longer_than_a_block_without_a_plan():
    """Queries are scored in blocks where there is no plan, and whole where there is one."""
    rng = np.random.default_rng(0)
    offsets = np.array([0, 2, 42, 45])
    X = some_features(rng, 45, 3)
    net = some_net(rng, X, (2,))
    labels = rng.integers(3, size=45).astype(float)
    planned = RankNet().prepare(Targets({None: labels}, offsets, 2.0))
    results = set()
    for gradients in (planned, WithoutArrays(planned)):
        runner = EpochRunner(net, X, None, offsets, gradients, np.zeros(45), 1)
        weights = net.packed()
        runner.run(np.arange(3), 0, weights, AdamState.empty(), 0.01)
        results.add(weights.tobytes())
    assert len(results) == 1
