"""The forward pass of a net: from features of documents to scores, for one query or one block.

Documents are computed in groups of four and units in pairs: each input that is loaded serves two
units and each weight four documents, which is what makes the loops faster than memory. Rows of
weights and activations are padded with zeros to whole vectors, and groups of documents to whole
groups, so that no loop has a remainder.

The first layer, which costs nearly all, is a kernel of its own: its sums are linear in its weights,
and where weights are moved along a line, they need not be computed at every step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.elementary import exponentials
from rankinite.core.jit import inlined_kernel, kernel
from rankinite.core.lanes import LANE_BYTES, in_all_lanes, load_lanes, sum_of_lanes
from rankinite.core.types import Floats

# Documents that are computed together.
GROUP = 4
# Documents that are scored at once: their activations stay in the cache.
BLOCK_DOCS = 32
# Rows are padded to a multiple of this, a whole number of vectors on any processor.
LANES = 16
# The hyperbolic tangent of anything farther from 0 is 1 to the last bit.
TANH_LIMIT = 20.0
# Inputs are clipped at this many standard deviations: one outlier should not saturate all units.
INPUT_LIMIT = 10.0

# The activation functions of hidden units, as kernels know them.
TANH, RELU = 0, 1

# Kernels are compiled for 32 bits, which training uses, and for 64 bits, which tests use.
Numbers = NDArray[Any]


class Inputs(NamedTuple):
    """Features of documents, and how they become inputs of a net.

    Attributes
    ----------
    X
        Feature matrix.
    rows
        Row of each document; its own number if this is empty.
    features
        Columns that are inputs.
    means, scales
        An input is (feature - mean) x scale.
    """

    X: NDArray[np.float32]
    rows: NDArray[np.int64]
    features: NDArray[np.int64]
    means: Numbers
    scales: Numbers


class Layers(NamedTuple):
    """Sizes of the layers, from the inputs to the score.

    Attributes
    ----------
    units
        Number of units of each layer.
    strides
        Length of a row of each layer, which is padded with zeros.
    activation
        The activation function of hidden units, `TANH` or `RELU`.
    """

    units: NDArray[np.int64]
    strides: NDArray[np.int64]
    activation: int


class Workspace(NamedTuple):
    """Memory for the documents of one query at a time.

    Attributes
    ----------
    activations
        Output of each unit for each document, layer behind layer; the inputs come first, the
        scores last.
    deltas
        Derivative by each unit's sum, laid out like the activations.
    exponents, exponent_bits
        Three rows of scratch for `exponentials`, and the same memory seen as integers.
    """

    activations: Numbers
    deltas: Numbers
    exponents: NDArray[np.float64]
    exponent_bits: NDArray[np.int64]


class LayerLayout(NamedTuple):
    """Where a layer's numbers begin in the flat arrays.

    Attributes
    ----------
    n_docs, n_units
        Number of documents, padded to whole groups, and of the layer's units.
    stride, out_stride
        Length of a row of inputs and of a row of outputs.
    weights
        Where the layer's weights begin, a row per unit; the biases are behind them.
    inputs, outputs
        Where its inputs and outputs begin in the activations and deltas.
    """

    n_docs: int
    n_units: int
    stride: int
    out_stride: int
    weights: int
    inputs: int
    outputs: int


@inlined_kernel
def padded(n: int) -> int:
    """Return the number of documents padded to whole groups."""
    return (n + GROUP - 1) // GROUP * GROUP


@kernel
def sums_by_block(
    first_block: int,
    last_block: int,
    X: NDArray[np.float32],
    rows: NDArray[np.int64],
    n_docs: int,
    centre: NDArray[np.float64],
    counts: NDArray[np.int64],
    sums: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Write, for blocks of documents, the sums and squares of features minus their centres.

    Missing values do not count.
    """
    n_blocks = len(counts)
    for block in range(first_block, last_block):
        for i in range(block * n_docs // n_blocks, (block + 1) * n_docs // n_blocks):
            row = X[rows[i] if len(rows) > 0 else i]
            for j in range(len(row)):
                x = np.float64(row[j]) - centre[j]
                # NaN is not equal to itself.
                is_known = x == x
                counts[block, j] += is_known
                sums[block, j] += x if is_known else 0.0
                squares[block, j] += x * x if is_known else 0.0


@inlined_kernel
def clip_inputs(row: Numbers, n: int) -> None:
    """Clip n inputs, and let them be 0, their mean, where they are missing.

    Written with comparisons that the compiler can vectorise: NaN is neither larger nor smaller
    than anything, so it passes both, and is not equal to itself.
    """
    limit, zero = row.dtype.type(INPUT_LIMIT), row.dtype.type(0.0)
    for j in range(n):
        x = row[j]
        x = limit if x > limit else x
        x = -limit if x < -limit else x
        row[j] = x if x == x else zero


@kernel
def fill_inputs(inputs: Inputs, first: int, n: int, activations: Numbers, stride: int) -> None:
    """Write the standardised features of n documents from ``first`` on; a missing one is 0."""
    zero = activations.dtype.type(0.0)
    means, scales = inputs.means, inputs.scales
    for i in range(n):
        features = inputs.X[inputs.rows[first + i] if len(inputs.rows) > 0 else first + i]
        row = activations[i * stride : (i + 1) * stride]
        # Without gaps between the features the loop is vectorised.
        if len(inputs.features) == len(features):
            for j in range(len(means)):
                row[j] = (features[j] - means[j]) * scales[j]
        else:
            for j in range(len(means)):
                row[j] = (features[np.uint64(inputs.features[j])] - means[j]) * scales[j]
        clip_inputs(row, len(means))
        for j in range(len(means), stride):
            row[j] = zero
    for k in range(n * stride, padded(n) * stride):
        activations[k] = zero


@inlined_kernel
def dot_four(
    weights: Numbers, w: int, inputs: Numbers, x: int, stride: int
) -> tuple[float, float, float, float]:
    """Return the sums of weight x input of one unit for four documents in consecutive rows."""
    a = b = c = d = in_all_lanes(weights.dtype.type(0.0))
    for j in range(0, stride, LANE_BYTES // weights.itemsize):
        weight = load_lanes(weights, w + j)
        a = a + weight * load_lanes(inputs, x + j)
        b = b + weight * load_lanes(inputs, x + stride + j)
        c = c + weight * load_lanes(inputs, x + 2 * stride + j)
        d = d + weight * load_lanes(inputs, x + 3 * stride + j)
    return sum_of_lanes(a), sum_of_lanes(b), sum_of_lanes(c), sum_of_lanes(d)


@inlined_kernel
def dot_eight(
    weights: Numbers, w: int, inputs: Numbers, x: int, stride: int
) -> tuple[float, float, float, float, float, float, float, float]:
    """Return the sums of two units in consecutive rows for four documents."""
    a = b = c = d = e = f = g = h = in_all_lanes(weights.dtype.type(0.0))
    for j in range(0, stride, LANE_BYTES // weights.itemsize):
        u, v = load_lanes(weights, w + j), load_lanes(weights, w + stride + j)
        p, q = load_lanes(inputs, x + j), load_lanes(inputs, x + stride + j)
        r, s = load_lanes(inputs, x + 2 * stride + j), load_lanes(inputs, x + 3 * stride + j)
        a, b, c, d = a + u * p, b + u * q, c + u * r, d + u * s
        e, f, g, h = e + v * p, f + v * q, g + v * r, h + v * s
    return (
        sum_of_lanes(a), sum_of_lanes(b), sum_of_lanes(c), sum_of_lanes(d),
        sum_of_lanes(e), sum_of_lanes(f), sum_of_lanes(g), sum_of_lanes(h),
    )  # fmt: skip


@kernel
def tanh_in_place(values: Numbers, start: int, n: int, workspace: Workspace) -> None:
    """Replace n values by their hyperbolic tangents, 1 - 2 / (1 + exp(2 x)).

    In 64 bits, so that the difference from 1 is exact enough for results near 0.
    """
    exponents = workspace.exponents
    for i in range(n):
        x = np.float64(values[start + i])
        exponents[0, i] = 2.0 * min(max(x, -TANH_LIMIT), TANH_LIMIT)
    exponentials(exponents[0], 0.0, n, exponents[1], workspace.exponent_bits[1], exponents[2])
    for i in range(n):
        values[start + i] = 1.0 - 2.0 / (1.0 + exponents[2, i])


@inlined_kernel
def relu_in_place(values: Numbers, start: int, n: int) -> None:
    """Replace negative values among n by 0; NaN stays, so that divergence is noticed."""
    zero = values.dtype.type(0.0)
    for i in range(start, start + n):
        x = values[i]
        values[i] = zero if x < zero else x


@kernel
def layer_forward(layer: LayerLayout, weights: Numbers, activations: Numbers) -> None:
    """Write the sums of a layer's units, with their biases."""
    stride, out, n_units = layer.stride, layer.out_stride, layer.n_units
    biases = layer.weights + n_units * stride
    for i in range(0, layer.n_docs, GROUP):
        x = layer.inputs + i * stride
        y = layer.outputs + i * out
        for unit in range(0, n_units - 1, 2):
            a, b, c, d, e, f, g, h = dot_eight(
                weights, layer.weights + unit * stride, activations, x, stride
            )
            bias, next_bias = weights[biases + unit], weights[biases + unit + 1]
            activations[y + unit] = a + bias
            activations[y + out + unit] = b + bias
            activations[y + 2 * out + unit] = c + bias
            activations[y + 3 * out + unit] = d + bias
            activations[y + unit + 1] = e + next_bias
            activations[y + out + unit + 1] = f + next_bias
            activations[y + 2 * out + unit + 1] = g + next_bias
            activations[y + 3 * out + unit + 1] = h + next_bias
        if n_units % 2 == 1:
            unit = n_units - 1
            a, b, c, d = dot_four(weights, layer.weights + unit * stride, activations, x, stride)
            bias = weights[biases + unit]
            activations[y + unit] = a + bias
            activations[y + out + unit] = b + bias
            activations[y + 2 * out + unit] = c + bias
            activations[y + 3 * out + unit] = d + bias


@kernel
def first_layer_forward(n: int, layers: Layers, weights: Numbers, activations: Numbers) -> None:
    """Write the sums of the first layer's units for n documents, whose inputs are written."""
    n_docs, stride = padded(n), layers.strides[0]
    # A literal 0 would be a type of its own, for which `layer_forward` is compiled again.
    zero = int(np.int64(0))
    layer = LayerLayout(
        n_docs, layers.units[1], stride, layers.strides[1], zero, zero, n_docs * stride
    )
    layer_forward(layer, weights, activations)


@kernel
def later_layers_forward(n: int, layers: Layers, weights: Numbers, workspace: Workspace) -> int:
    """Compute the layers behind the sums of the first; return where the scores begin."""
    units, strides, activations = layers.units, layers.strides, workspace.activations
    n_docs = padded(n)
    w = int(units[1] * (strides[0] + 1))
    x = int(n_docs * strides[0])
    for k in range(1, len(units) - 1):
        n_units, stride, out = units[k + 1], strides[k], strides[k + 1]
        # The weights of padding are 0, but what an earlier query left there may not be finite.
        for i in range(n_docs):
            for unit in range(units[k], stride):
                activations[x + i * stride + unit] = 0.0
        if layers.activation == RELU:
            relu_in_place(activations, x, n_docs * stride)
        else:
            tanh_in_place(activations, x, n_docs * stride, workspace)
        y = int(x + n_docs * stride)
        layer = LayerLayout(n_docs, n_units, stride, out, w, x, y)
        layer_forward(layer, weights, activations)
        w += n_units * (stride + 1)
        x = y
    return x


@kernel
def forward(n: int, layers: Layers, weights: Numbers, workspace: Workspace) -> int:
    """Compute the activations of n documents, whose inputs are in the workspace already.

    Return where in the activations the scores begin.
    """
    first_layer_forward(n, layers, weights, workspace.activations)
    return later_layers_forward(n, layers, weights, workspace)


@kernel
def score_documents(
    inputs: Inputs,
    layers: Layers,
    weights: Numbers,
    workspace: Workspace,
    begin: int,
    end: int,
    scores: NDArray[np.float64],
) -> None:
    """Add the net's scores of the documents from begin to end - 1 to ``scores``.

    The workspace is for `BLOCK_DOCS` documents. A document's score does not depend on the others.
    """
    for first in range(begin, end, BLOCK_DOCS):
        n = min(BLOCK_DOCS, end - first)
        fill_inputs(inputs, first, n, workspace.activations, layers.strides[0])
        scores_at = forward(n, layers, weights, workspace)
        for i in range(n):
            scores[first + i] += np.float64(workspace.activations[scores_at + i])


@kernel
def first_layer_sums(
    inputs: Inputs,
    layers: Layers,
    weights: Numbers,
    workspace: Workspace,
    begin: int,
    end: int,
    out: Numbers,
) -> None:
    """Write the sums of the first layer of the documents from begin to end - 1."""
    width = layers.strides[1]
    for first in range(begin, end, BLOCK_DOCS):
        n = min(BLOCK_DOCS, end - first)
        fill_inputs(inputs, first, n, workspace.activations, layers.strides[0])
        first_layer_forward(n, layers, weights, workspace.activations)
        sums_at = padded(n) * layers.strides[0]
        for k in range(n * width):
            out[first * width + k] = workspace.activations[sums_at + k]


@kernel
def perturbed_scores(
    sums: Numbers,
    changes: Numbers,
    step: float,
    layers: Layers,
    weights: Numbers,
    workspace: Workspace,
    begin: int,
    end: int,
    start: Floats,
    scores: Floats,
) -> None:
    """Write the scores of the documents from begin to end - 1 with sums + step x changes.

    ``weights`` are those of the moved net; only the layers behind the first are read.
    """
    width = layers.strides[1]
    # In the type of the weights: a step of 64 bits would make all sums 64 bits.
    factor = weights.dtype.type(step)
    for first in range(begin, end, BLOCK_DOCS):
        n = min(BLOCK_DOCS, end - first)
        sums_at = padded(n) * layers.strides[0]
        for k in range(n * width):
            j = first * width + k
            workspace.activations[sums_at + k] = sums[j] + factor * changes[j]
        # Documents that pad the last group are computed like the others.
        for k in range(n * width, padded(n) * width):
            workspace.activations[sums_at + k] = 0.0
        scores_at = later_layers_forward(n, layers, weights, workspace)
        for i in range(n):
            scores[first + i] = start[first + i] + np.float64(workspace.activations[scores_at + i])
