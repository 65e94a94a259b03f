"""Training of a net, query by query: scores, lambdas, backpropagation, then a step of the weights.

Lambdas come from the objective's kernels, so that an epoch of many small queries is one call. The
backward pass groups documents and units as the forward pass does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel
from rankinite.core.types import Floats
from rankinite.nets.kernels.adam import Optimiser, adam_step
from rankinite.nets.kernels.forward import (
    GROUP,
    RELU,
    Inputs,
    LayerLayout,
    Layers,
    Numbers,
    Workspace,
    fill_inputs,
    forward,
    padded,
)
from rankinite.objectives.kernels.arrays import ObjectiveMixture
from rankinite.objectives.kernels.dispatch import (
    mixture_gradients,
    new_scratch,
    query_gradients,
)

# The kind of an objective whose gradients were computed before the kernel was called.
PRECOMPUTED = -1


class Documents(NamedTuple):
    """One number for each document of the data set.

    Attributes
    ----------
    start
        Scores that the net's are added to.
    scores, lambdas, hessians
        Scores, lambdas, and hessians, which nets do not use.
    spare
        Two rows of scratch if the objective is a mixture of several; otherwise empty.
    """

    start: Floats
    scores: Floats
    lambdas: Floats
    hessians: Floats
    spare: Floats


@inlined_kernel
def add_four(
    target: Numbers,
    t: int,
    inputs: Numbers,
    x: int,
    stride: int,
    factors: tuple[float, float, float, float],
) -> None:
    """Add the rows of four documents, each times a factor, to the row of a unit."""
    a, b, c, d = factors
    unit = np.uint64(t)
    first, second = np.uint64(x), np.uint64(x + stride)
    third, fourth = np.uint64(x + 2 * stride), np.uint64(x + 3 * stride)
    for j in range(np.uint64(stride)):
        target[unit + j] += (
            a * inputs[first + j]
            + b * inputs[second + j]
            + c * inputs[third + j]
            + d * inputs[fourth + j]
        )


@inlined_kernel
def add_eight(
    target: Numbers,
    t: int,
    inputs: Numbers,
    x: int,
    stride: int,
    factors: tuple[float, float, float, float],
    other_factors: tuple[float, float, float, float],
) -> None:
    """Add the rows of four documents, each times a factor, to the rows of two units."""
    a, b, c, d = factors
    e, f, g, h = other_factors
    unit, other = np.uint64(t), np.uint64(t + stride)
    first, second = np.uint64(x), np.uint64(x + stride)
    third, fourth = np.uint64(x + 2 * stride), np.uint64(x + 3 * stride)
    for j in range(np.uint64(stride)):
        p, q = inputs[first + j], inputs[second + j]
        r, s = inputs[third + j], inputs[fourth + j]
        target[unit + j] += a * p + b * q + c * r + d * s
        target[other + j] += e * p + f * q + g * r + h * s


@inlined_kernel
def add_row(target: Numbers, t: int, inputs: Numbers, x: int, stride: int, factor: float) -> None:
    """Add a row, times a factor, to a row of the target."""
    unit, first = np.uint64(t), np.uint64(x)
    for j in range(np.uint64(stride)):
        target[unit + j] += factor * inputs[first + j]


@kernel
def propagate_deltas(
    layer: LayerLayout, activation: int, weights: Numbers, workspace: Workspace
) -> None:
    """Write the deltas of the units below a layer from the deltas of its own units."""
    activations, deltas = workspace.activations, workspace.deltas
    # A literal 1.0 has 64 bits, and would make the products of 32-bit numbers 64 bits.
    unity, zero = weights.dtype.type(1.0), weights.dtype.type(0.0)
    begin, stride = layer.inputs, layer.stride
    end = begin + layer.n_docs * stride
    for k in range(begin, end):
        deltas[k] = 0.0
    for i in range(layer.n_docs):
        for unit in range(layer.n_units):
            delta = deltas[layer.outputs + i * layer.out_stride + unit]
            add_row(
                deltas, begin + i * stride, weights, layer.weights + unit * stride, stride, delta
            )
    if activation == RELU:
        for k in range(begin, end):
            deltas[k] = deltas[k] if activations[k] > zero else zero
        return
    # The derivative of tanh by its argument is 1 - tanh^2.
    for k in range(begin, end):
        deltas[k] *= unity - activations[k] * activations[k]


@kernel
def add_layer_gradient(layer: LayerLayout, workspace: Workspace, target: Numbers) -> None:
    """Add a layer's gradient to its weights and biases in the target."""
    activations, deltas = workspace.activations, workspace.deltas
    stride, out, n_units, w = layer.stride, layer.out_stride, layer.n_units, layer.weights
    biases = w + n_units * stride
    for i in range(0, layer.n_docs, GROUP):
        x = layer.inputs + i * stride
        y = layer.outputs + i * out
        for unit in range(0, n_units - 1, 2):
            k = y + unit
            a, b, c, d = deltas[k], deltas[k + out], deltas[k + 2 * out], deltas[k + 3 * out]
            target[biases + unit] += (a + b) + (c + d)
            k += 1
            e, f, g, h = deltas[k], deltas[k + out], deltas[k + 2 * out], deltas[k + 3 * out]
            target[biases + unit + 1] += (e + f) + (g + h)
            add_eight(target, w + unit * stride, activations, x, stride, (a, b, c, d), (e, f, g, h))
        if n_units % 2 == 1:
            k = y + n_units - 1
            a, b, c, d = deltas[k], deltas[k + out], deltas[k + 2 * out], deltas[k + 3 * out]
            target[biases + n_units - 1] += (a + b) + (c + d)
            add_four(target, w + (n_units - 1) * stride, activations, x, stride, (a, b, c, d))


@kernel
def backward(
    n: int, layers: Layers, weights: Numbers, workspace: Workspace, target: Numbers
) -> None:
    """Backpropagation: add the gradient of the weights for n documents to ``target``.

    The deltas have the documents' lambdas in the place of the scores, and zeros for documents that
    pad the last group. The target may be the weights themselves: the deltas below a layer are
    computed before its weights change.
    """
    units, strides = layers.units, layers.strides
    n_docs = padded(n)
    # Deltas come from the scores down, so both positions begin behind the last layer.
    w = 0
    x = 0
    for k in range(len(units) - 1):
        w += units[k + 1] * (strides[k] + 1)
        x += n_docs * strides[k]
    for k in range(len(units) - 2, -1, -1):
        n_units, stride, out = units[k + 1], strides[k], strides[k + 1]
        y = x
        x -= n_docs * stride
        w -= n_units * (stride + 1)
        layer = LayerLayout(n_docs, n_units, stride, out, w, x, y)
        # Inputs have no weights below them.
        if k > 0:
            propagate_deltas(layer, layers.activation, weights, workspace)
        add_layer_gradient(layer, workspace, target)


@kernel
def score_query(
    first: int,
    n: int,
    inputs: Inputs,
    layers: Layers,
    weights: Numbers,
    documents: Documents,
    workspace: Workspace,
) -> int:
    """Score the n documents of a query; return where in the workspace their deltas belong."""
    fill_inputs(inputs, first, n, workspace.activations, layers.strides[0])
    scores_at = forward(n, layers, weights, workspace)
    for i in range(n):
        documents.scores[first + i] = (
            documents.start[first + i] + workspace.activations[scores_at + i]
        )
    return scores_at


@kernel
def add_query_gradient(
    n: int,
    scores_at: int,
    layers: Layers,
    weights: Numbers,
    lambdas: Floats,
    rate: float,
    workspace: Workspace,
    target: Numbers,
) -> None:
    """Add the gradient of a query's weights, times a rate, to the target."""
    # Padding gets deltas of 0, so that its documents add nothing to the gradient.
    any_delta = False
    for i in range(padded(n)):
        delta = lambdas[i] * rate if i < n else 0.0
        workspace.deltas[scores_at + i] = delta
        any_delta |= delta != 0.0
    # Many queries, such as those with a single grade, have no lambdas at all.
    if any_delta:
        backward(n, layers, weights, workspace, target)


@kernel
def train_queries(
    queries: NDArray[np.int64],
    inputs: Inputs,
    layers: Layers,
    weights: Numbers,
    mixture: ObjectiveMixture,
    documents: Documents,
    workspace: Workspace,
    optimiser: Optimiser,
    gradient: Numbers,
) -> None:
    """Add up the gradients of queries, or take a step for each of them, in this order."""
    # All parts of a mixture have the same queries.
    objective = mixture.parts[0]
    offsets, lambdas, hessians = objective.offsets, documents.lambdas, documents.hessians
    # Handing on a mixture for each query costs a reference count per array of all its parts.
    is_alone = mixture.mixture_weights[0] == 1.0
    scratch = new_scratch(len(objective.rank_weights))
    steps_per_query, n_steps = optimiser.steps_per_query, optimiser.adam.n_steps
    # A plain gradient step needs no gradient array: the weights themselves are the target.
    is_plain = steps_per_query and len(optimiser.adam.first_moment) == 0
    target = weights if is_plain else gradient
    rate = optimiser.learning_rate if is_plain else 1.0
    for q in queries:
        first, last = offsets[q], offsets[q + 1]
        n = last - first
        scores_at = score_query(first, n, inputs, layers, weights, documents, workspace)
        if not is_alone:
            mixture_gradients(
                q, documents.scores, mixture, scratch, documents.spare, lambdas, hessians
            )
        elif objective.kind != PRECOMPUTED:
            query_gradients(q, documents.scores, objective, scratch, lambdas, hessians)
        add_query_gradient(
            n, scores_at, layers, weights, lambdas[first:last], rate, workspace, target
        )
        if steps_per_query and not is_plain:
            n_steps += 1
            adam_step(weights, gradient, optimiser, n_steps)
