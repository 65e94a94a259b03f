"""An epoch against a naive one: score, ask for lambdas, and follow them."""

from __future__ import annotations

from itertools import product

import numba
import numpy as np
import pytest

from rankinite.nets.epochs import Moments, Teacher
from rankinite.objectives.objective import Gradients, Targets
from rankinite.objectives.pairwise import Lambdas, RankNet
from rankinite.objectives.pointwise import SquaredError
from tests.naive import nets as naive_nets
from tests.nets.cases import sizes_of, some_features, some_net

JIT = not numba.config.DISABLE_JIT

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("one_thread")]

# One query without pairs, one of one document, one for which lambdas count twice.
QUERY_SIZES = [5, 1, 9, 3, 6, 2, 7, 4, 8, 3, 3, 4, 6] if JIT else [3, 1, 4, 2, 2]
N_QUERIES = len(QUERY_SIZES)
# Steps of Adam magnify what rounding leaves of small gradients.
CLOSE = {"rtol": 2e-4, "atol": 2e-5}


class School:
    """A net, a data set and an objective."""

    def __init__(self, objective, hidden, *, shared=False):
        rng = np.random.default_rng(8)
        self.offsets = np.concatenate([[0], np.cumsum(QUERY_SIZES)])
        n_docs = int(self.offsets[-1])
        self.X = some_features(rng, n_docs, 6, constant=[4])
        self.net = some_net(rng, self.X, hidden)
        self.rows = rng.integers(n_docs, size=n_docs) if shared else None
        self.start = rng.normal(size=n_docs)
        labels = rng.integers(4, size=n_docs).astype(float)
        labels[: QUERY_SIZES[0]] = 1.0
        weight = None if isinstance(objective, SquaredError) else 1.0 + (np.arange(N_QUERIES) == 2)
        targets = Targets({None: labels}, self.offsets, 3.0, query_weight=weight)
        self.gradients = objective.prepare(targets)
        inputs = naive_nets.standardise(self.X)
        self.given = naive_nets.fill(inputs, self.X[self.rows] if shared else self.X)

    def teacher(self, queries_per_step, gradients=None):
        return Teacher(
            self.net,
            self.X,
            self.rows,
            self.offsets,
            gradients or self.gradients,
            self.start,
            queries_per_step,
        )

    def order(self, number):
        return np.random.default_rng(number).permutation(N_QUERIES)

    def taught(self, queries_per_step, moments, rate, n_epochs=2, gradients=None, decay=0.0):
        """Return the packed weights, the scores and the moments after some epochs."""
        teacher, weights = self.teacher(queries_per_step, gradients), self.net.packed()
        for number in range(n_epochs):
            moments = teacher.epoch(self.order(number), number, weights, moments, rate, decay)
        return weights, teacher.scores, moments

    def naive_gradient(self, weights, queries, scores):
        """Write the scores of some queries, and return what their lambdas ask for."""
        docs = np.concatenate([np.arange(*self.offsets[q : q + 2]) for q in queries])
        own, sizes = self.given[docs], sizes_of(self.net)
        scores[docs] = self.start[docs] + naive_nets.scores(weights, sizes, own)
        out = np.zeros((2, 1, len(scores)))
        self.gradients.gradients(scores[np.newaxis], 0, out[0], out[1])
        return naive_nets.gradient(weights, sizes, own, out[0, 0, docs])

    def naively_taught(self, queries_per_step, step, n_epochs=2):
        """Return the weights and the scores if ``step`` makes weights better."""
        together = queries_per_step or N_QUERIES
        weights, scores = self.net.weights.astype(np.float64), np.zeros(len(self.start))
        for number in range(n_epochs):
            order = self.order(number)
            for begin in range(0, N_QUERIES, together):
                queries = order[begin : begin + together]
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
SCHOOLS = [*product(OBJECTIVES, HIDDEN)] if JIT else [("NDCG", (3, 2)), ("squared", ())]

every_school = pytest.mark.parametrize(("objective", "hidden"), SCHOOLS, ids=str)
every_batch = pytest.mark.parametrize("queries_per_step", PER_STEP)


@every_school
@every_batch
def test_plain_steps_are_those_of_a_naive_loop(objective, hidden, queries_per_step):
    school = School(OBJECTIVES[objective], hidden)
    rate = 0.02
    weights, scores, moments = school.taught(queries_per_step, Moments.none(), rate)
    expected, naive_scores = school.naively_taught(
        queries_per_step, lambda weights, gradient: weights + rate * gradient
    )
    assert np.abs(expected - school.net.weights).max() > 100 * CLOSE["atol"]
    np.testing.assert_allclose(school.net.with_packed(weights).weights, expected, **CLOSE)
    np.testing.assert_allclose(scores, naive_scores, **CLOSE)
    assert len(moments.first) == len(moments.second) == 0


@every_school
@every_batch
@pytest.mark.parametrize("decay", [0.0, 3.0])
def test_steps_of_adam_are_those_of_a_naive_loop(objective, hidden, queries_per_step, decay):
    school = School(OBJECTIVES[objective], hidden)
    n_weights = len(school.net.weights)
    naive = naive_nets.Adam(0.01, np.zeros(n_weights), np.zeros(n_weights), decay=decay)
    begin = Moments.begin(len(school.net.packed()))
    weights, scores, moments = school.taught(queries_per_step, begin, naive.rate, decay=decay)
    expected, naive_scores = school.naively_taught(queries_per_step, naive.step)
    # The lambdas of pairs sum to 0 but for rounding, of which Adam makes steps of any size: with
    # the bias of the score, which moves no document past another.
    is_pointwise = objective == "squared"
    those = slice(None) if is_pointwise else slice(-1)
    found = school.net.with_packed(weights).weights
    np.testing.assert_allclose(found[those], expected[those], **CLOSE)
    np.testing.assert_allclose(scores, naive_scores, **CLOSE if is_pointwise else {"atol": 0.3})
    assert moments.n_steps == naive.n_steps
    for own, wanted in ((moments.first, naive.first), (moments.second, naive.second)):
        size = np.abs(wanted).max()
        kept = own[school.net.places]
        np.testing.assert_allclose(kept[those], wanted[those], rtol=1e-3, atol=1e-4 * size)


def test_rows_of_a_matrix():
    school = School(OBJECTIVES["NDCG"], (5,), shared=True)
    weights, scores, _ = school.taught(1, Moments.none(), 0.02)
    expected, naive_scores = school.naively_taught(1, lambda w, gradient: w + 0.02 * gradient)
    np.testing.assert_allclose(school.net.with_packed(weights).weights, expected, **CLOSE)
    np.testing.assert_allclose(scores, naive_scores, **CLOSE)


def test_moments_that_are_given_stay_as_they_are():
    school = School(OBJECTIVES["NDCG"], (3,))
    teacher, weights = school.teacher(2), school.net.packed()
    begin = Moments.begin(len(weights))
    after = teacher.epoch(school.order(0), 0, weights, begin, 0.01)
    assert not begin.first.any()
    assert not begin.second.any()
    assert begin.n_steps == 0
    assert after.first.any()
    assert after.second.any()
    assert after.n_steps == -(-N_QUERIES // 2)


@pytest.mark.parametrize("queries_per_step", PER_STEP)
@pytest.mark.parametrize("adam", [False, True])
def test_what_fills_rows_stays_0(queries_per_step, adam):
    school = School(OBJECTIVES["NDCG"], (3, 5))
    places = school.net.places
    begin = Moments.begin(len(school.net.packed())) if adam else Moments.none()
    weights, _, moments = school.taught(queries_per_step, begin, 0.05)
    assert not np.delete(weights, places).any()
    if adam:
        assert not np.delete(moments.first, places).any()
        assert not np.delete(moments.second, places).any()


def test_an_epoch_goes_through_the_queries_of_its_order_only():
    school = School(OBJECTIVES["RankNet"], (3,))
    chosen = np.array([3, 2])
    teacher, weights = school.teacher(1), school.net.packed()
    teacher.epoch(chosen, 0, weights, Moments.none(), 0.1)
    docs = np.concatenate([np.arange(*school.offsets[q : q + 2]) for q in chosen])
    assert teacher.scores[docs].all()
    assert not np.delete(teacher.scores, docs).any()
    expected = school.net.weights.astype(np.float64)
    for q in chosen:
        asked = school.naive_gradient(expected, [q], np.zeros(len(school.start)))
        expected = expected + 0.1 * asked
    np.testing.assert_allclose(school.net.with_packed(weights).weights, expected, **CLOSE)


class Hidden(Gradients):
    """The gradients of an objective, without its arrays."""

    def __init__(self, inner):
        self.inner = inner
        self.start = inner.start
        self.iterations = []
        self.asked = []

    def gradients(self, scores, iteration, out_gradient, out_hessian):
        self.iterations.append(iteration)
        self.inner.gradients(scores, iteration, out_gradient, out_hessian)


class HiddenOfSome(Hidden):
    """The same, for some queries; what is written for others has no meaning."""

    def gradients_of(self, queries, scores, iteration, out_gradient, out_hessian):
        self.asked.append(int(queries.sum()))
        self.gradients(scores, iteration, out_gradient, out_hessian)
        sizes = np.diff(self.inner.arrays.offsets)
        out_gradient[0, np.repeat(~queries, sizes)] = np.nan


@pytest.mark.parametrize("kind", [Hidden, HiddenOfSome])
@pytest.mark.parametrize("objective", ["NDCG", "distance"])
@pytest.mark.parametrize("adam", [False, True])
@every_batch
def test_an_objective_without_a_plan_gives_the_same_weights(
    kind, objective, adam, queries_per_step
):
    school = School(OBJECTIVES[objective], (5, 2))
    without = kind(school.gradients)
    assert school.gradients.mixture(0) is not None
    assert without.mixture(0) is None
    begin = Moments.begin(len(school.net.packed())) if adam else Moments.none()
    planned = school.taught(queries_per_step, begin, 0.03)
    found = school.taught(queries_per_step, begin, 0.03, gradients=without)
    assert found[0].tobytes() == planned[0].tobytes()
    assert found[1].tobytes() == planned[1].tobytes()
    assert found[2].second.tobytes() == planned[2].second.tobytes()
    assert found[2].n_steps == planned[2].n_steps
    assert sorted(set(without.iterations)) == [0, 1]
    if kind is HiddenOfSome:
        assert max(without.asked) == min(queries_per_step or N_QUERIES, N_QUERIES)
        assert sum(without.asked) == 2 * N_QUERIES


def test_a_query_longer_than_a_block_without_a_plan():
    """Queries are scored in blocks where there is no plan, and whole where there is one."""
    rng = np.random.default_rng(0)
    offsets = np.array([0, 2, 42, 45])
    X = some_features(rng, 45, 3)
    net = some_net(rng, X, (2,))
    labels = rng.integers(3, size=45).astype(float)
    planned = RankNet().prepare(Targets({None: labels}, offsets, 2.0))
    found = set()
    for gradients in (planned, Hidden(planned)):
        teacher = Teacher(net, X, None, offsets, gradients, np.zeros(45), 1)
        weights = net.packed()
        teacher.epoch(np.arange(3), 0, weights, Moments.none(), 0.01)
        found.add(weights.tobytes())
    assert len(found) == 1
