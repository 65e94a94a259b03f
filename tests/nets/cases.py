"""Nets and data for the tests of nets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankinite.nets.inputs import Standardiser
from rankinite.nets.kernels.forward import GROUP, Inputs, Workspace, fill_inputs
from rankinite.nets.net import Net
from tests.naive import nets as naive_nets

ACTIVATIONS = tuple(naive_nets.ACTIVATIONS)


def some_features(
    rng: np.random.Generator, n_docs: int, n_features: int, constant: Sequence[int] = ()
) -> NDArray[np.float32]:
    """Make features of different sizes, a fifth of them missing in every third column."""
    X = rng.normal(size=(n_docs, n_features)) * 10.0 ** rng.integers(-3, 4, size=n_features)
    X += rng.normal(size=n_features)
    X[:, constant] = 0.1
    X[:, ::3][rng.random(X[:, ::3].shape) < 0.2] = np.nan
    return X.astype(np.float32)


def some_net(
    rng: np.random.Generator,
    X: NDArray[np.float32],
    hidden: Sequence[int],
    activation: str = "tanh",
) -> Net:
    """Draw a net with biases for these features."""
    net = Net.draw(Standardiser.fit(X, None, len(X)), hidden, activation, rng)
    biases = 0.3 * rng.normal(size=len(net.weights))
    if activation == "relu":
        # Of few rectified units all may be 0 everywhere, and such a net would test nothing.
        biases = np.abs(biases)
    return replace(net, weights=(net.weights + biases).astype(np.float32))


def sizes_of(net: Net) -> tuple[int, ...]:
    return (len(net.inputs.features), *net.hidden, 1)


def naive_scores(
    net: Net, train: NDArray[np.float32], X: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Score a matrix with the naive net; the inputs' means and deviations are those of train."""
    inputs = naive_nets.fill(naive_nets.standardise(train), X)
    return naive_nets.scores(net.weights.astype(np.float64), sizes_of(net), inputs, net.activation)


def scored(
    net: Net, X: NDArray[np.float32], rows: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    return net.add_to(np.zeros(len(X) if rows is None else len(rows)), X, rows)


def packed_as(net: Net, kind: type[np.floating]) -> NDArray[np.floating]:
    """Return the weights as kernels take them, in another precision."""
    return net.packed().astype(kind)


def workspace_of(net: Net, n_docs: int, kind: type[np.floating]) -> Workspace:
    """Make a workspace full of NaN: nothing may be read that was not written."""
    workspaces = net.workspaces(n_docs, 1)
    activations, deltas = (array[0].astype(kind) for array in workspaces[:2])
    activations[:] = deltas[:] = np.nan
    workspaces.exponents[:] = np.nan
    return Workspace(activations, deltas, workspaces.exponents[0], workspaces.exponent_bits[0])


def inputs_of(net: Net, X: NDArray[np.float32], kind: type[np.floating]) -> Inputs:
    """Return documents as kernels take them, in another precision."""
    inputs = net.inputs_of(X, None)
    means, scales = (array.astype(kind) for array in (inputs.means, inputs.scales))
    for array in (means, scales):
        array.flags.writeable = False
    return inputs._replace(means=means, scales=scales)


def filled_workspace(net: Net, X: NDArray[np.float32], kind: type[np.floating]) -> Workspace:
    """Return a workspace with the inputs of all rows of a matrix."""
    workspace = workspace_of(net, len(X), kind)
    inputs = inputs_of(net, X, kind)
    fill_inputs(inputs, 0, len(X), workspace.activations, net.layers.strides[0])
    return workspace


def put_lambdas(workspace: Workspace, scores_at: int, lambdas: NDArray[np.float64]) -> None:
    """Write lambdas as deltas of the scores, and zeros for documents that pad the last group."""
    n_padded = -(-len(lambdas) // GROUP) * GROUP
    workspace.deltas[scores_at : scores_at + n_padded] = 0.0
    workspace.deltas[scores_at : scores_at + len(lambdas)] = lambdas
