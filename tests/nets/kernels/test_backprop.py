"""Forward and backward in 64 bits, against costs that change when weights do; tangents."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.nets.kernels.backprop import backward
from rankinite.nets.kernels.forward import Workspace, forward, tanh_in_place
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import RankNet
from rankinite.objectives.pointwise import SquaredError
from tests.naive import nets as naive_nets
from tests.nets.cases import (
    ACTIVATIONS,
    filled_workspace,
    packed_as,
    put_lambdas,
    sizes_of,
    some_features,
    some_net,
)

JIT = not numba.config.DISABLE_JIT

pytestmark = pytest.mark.kernel

HIDDEN = [(), (1,), (4,), (3, 2), (2, 5)]
KINDS = (np.float32, np.float64)

every_activation = pytest.mark.parametrize("activation", ACTIVATIONS)


class Case:
    """A net, and a query with labels."""

    def __init__(self, hidden, n_docs=7, n_features=5, activation="tanh"):
        rng = np.random.default_rng(n_docs)
        train = some_features(rng, 30, n_features, constant=[1])
        self.net = some_net(rng, train, hidden, activation)
        self.X = some_features(rng, n_docs, n_features)
        self.labels = rng.integers(3, size=n_docs).astype(float)
        self.targets = Targets({None: self.labels}, np.array([0, n_docs]), 2.0)
        self.sizes = sizes_of(self.net)
        inputs = self.net.inputs
        deviations = 1.0 / inputs.scales.astype(np.float64)
        known = naive_nets.Inputs(inputs.features.tolist(), inputs.means.tolist(), deviations)
        self.inputs = naive_nets.fill(known, self.X)
        self.weights = self.net.weights.astype(np.float64)

    def scores(self, weights):
        return naive_nets.scores(weights, self.sizes, self.inputs, self.net.activation)

    def forward(self, kind):
        """Return the workspace, where scores begin, and the scores."""
        workspace = filled_workspace(self.net, self.X, kind)
        begin = forward(len(self.X), self.net.layers, packed_as(self.net, kind), workspace)
        return workspace, begin, workspace.activations[begin : begin + len(self.X)]

    def backward(self, lambdas, kind):
        """Return the gradient of the packed weights."""
        workspace, scores_at, _ = self.forward(kind)
        put_lambdas(workspace, scores_at, lambdas)
        weights = packed_as(self.net, kind)
        target = np.zeros_like(weights)
        backward(len(self.X), self.net.layers, weights, workspace, target)
        return target

    def lambdas(self, objective):
        out = np.zeros((2, 1, len(self.X)))
        scores = self.forward(np.float64)[2].astype(np.float64)
        objective.prepare(self.targets).gradients(scores[np.newaxis], 0, out[0], out[1])
        return out[0, 0]


COSTS = {
    "squared error": (SquaredError(), lambda s, y: 0.5 * float(((y - s) ** 2).sum())),
    "pairs": (RankNet(), naive_nets.pair_cost),
}


@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
@pytest.mark.parametrize("n_docs", [1, 4, 7])
@every_activation
def test_forward(hidden, n_docs, activation):
    case = Case(hidden, n_docs, activation=activation)
    expected = case.scores(case.weights)
    np.testing.assert_allclose(case.forward(np.float64)[2], expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(case.forward(np.float32)[2], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
@every_activation
def test_the_gradient_lowers_the_cost(hidden, name, activation):
    case = Case(hidden, activation=activation)
    objective, cost = COSTS[name]
    expected = -naive_nets.by_differences(
        lambda weights: cost(case.scores(weights), case.labels), case.weights
    )
    assert (np.abs(expected[:-1]) > 1e-4).any()
    lambdas = case.lambdas(objective)
    gradient = case.backward(lambdas, np.float64)[case.net.positions]
    size = np.abs(expected).max()
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8 * size)
    rough = case.backward(lambdas, np.float32)[case.net.positions]
    np.testing.assert_allclose(rough, expected, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("hidden", [*HIDDEN, (5, 3, 4)], ids=str)
@pytest.mark.parametrize("n_docs", [1, 2, 8, 9])
@every_activation
def test_backward_against_the_naive_net(hidden, n_docs, activation):
    case = Case(hidden, n_docs, activation=activation)
    lambdas = np.random.default_rng(3).normal(size=n_docs)
    expected = naive_nets.gradient(case.weights, case.sizes, case.inputs, activation, lambdas)
    gradient = case.backward(lambdas, np.float64)
    np.testing.assert_allclose(gradient[case.net.positions], expected, rtol=1e-10, atol=1e-12)
    assert (np.delete(gradient, case.net.positions) == 0.0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_target_may_be_the_weights(kind):
    """The gradient is computed with the weights as they were."""
    case = Case((3, 4))
    lambdas = np.linspace(-1.0, 1.0, len(case.X))
    workspace, scores_at, _ = case.forward(kind)
    put_lambdas(workspace, scores_at, lambdas)
    weights = packed_as(case.net, kind)
    before = weights.copy()
    backward(len(case.X), case.net.layers, weights, workspace, weights)
    slack = 1e-13 if kind is np.float64 else 1e-5
    np.testing.assert_allclose(weights, before + case.backward(lambdas, kind), atol=slack)


def tangents(numbers, kind):
    """Replace numbers in the middle of an array, all others of which must stay."""
    values = np.full(len(numbers) + 5, 7.0, kind)
    values[3:-2] = numbers
    exponents = np.full((3, len(numbers) + 1), np.nan)
    unused = np.zeros(0, kind)
    workspace = Workspace(unused, unused, exponents, exponents.view(np.int64))
    tanh_in_place(values, 3, len(numbers), workspace)
    assert (values[:3] == 7.0).all()
    assert (values[-2:] == 7.0).all()
    return values[3:-2]


def assert_tangents(numbers):
    """Compare with math.tanh; what is near 0 is as exact as what is near 1."""
    for kind, most in ((np.float64, 4e-16), (np.float32, 3.1e-8)):
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.array(numbers, np.float64).astype(kind)
        expected = np.array([math.tanh(number) for number in rounded])
        assert np.abs(tangents(rounded, kind) - expected).max() <= most, kind


def test_tangents_of_all_sizes():
    sizes = 10.0 ** np.linspace(-300, 300, 200 if not JIT else 20_000)
    assert_tangents([*sizes, *-sizes, 0.0, -0.0, np.inf, -np.inf])


def test_tangents_where_they_bend():
    assert_tangents(np.linspace(-25.0, 25.0, 501 if not JIT else 100_001))
    assert tangents([0.0, 30.0, -30.0, 1e300, -1e300], np.float64).tolist() == [0, 1, -1, 1, -1]


@settings(deadline=None, max_examples=200 if JIT else 20)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=9))
def test_tangents_of_any_numbers(numbers):
    assert_tangents(numbers)
