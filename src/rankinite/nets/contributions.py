"""Contributions of features to the score of a net: what each adds to that of the mean document.

The score is followed from the mean training document, all of whose inputs are 0, to the document. A
unit passes its change on in the shares of its inputs; its slope is the quotient of the changes of
its value and of its sum. Without hidden layers a feature adds weight times input. With one hidden
layer the quotient is the mean slope along the straight line between both documents, and what
features add is exactly what integrated gradients define; with more layers it is the rescale rule of
DeepLIFT. In any case it adds up to the change of the score without an error of approximation,
which sums over steps along the line, or over drawn orders of features, do not.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankinite.core.elementary import exp
from rankinite.core.types import Floats, Floats32, Integers
from rankinite.data.sparse import dense_rows
from rankinite.nets.kernels.forward import INPUT_LIMIT, TANH_LIMIT
from rankinite.nets.net import Net

# Documents whose inputs are made at once.
DOCS_PER_CHUNK = 2048
# Where the sum of a unit hardly changes, the quotient would be one of rounding errors.
LEAST_CHANGE = 1e-6


def net_contributions(
    net: Net, X: Floats32, rows: Integers | None, n_features: int
) -> tuple[Floats, Floats]:
    """Return contributions, documents x features, and the score of the mean training document.

    Computed in 64 bits, they add up to the score, which has 32, within its rounding.

    Parameters
    ----------
    net
        The net.
    X, rows
        Feature matrix, and the row of each document; all rows if None.
    n_features
        Number of features; the contributions of a value and of its rank are added.
    """
    n_docs = X.shape[0] if rows is None else len(rows)
    layers = _layers(net)
    sums, values = _forward(net, layers, np.zeros((1, len(net.inputs.features))))
    out = np.zeros((n_docs, n_features))
    for begin in range(0, n_docs, DOCS_PER_CHUNK):
        docs = slice(begin, min(begin + DOCS_PER_CHUNK, n_docs))
        block = dense_rows(X, docs if rows is None else rows[docs])
        inputs = _standardised(net, block)
        added = inputs * _slopes(net, layers, inputs, sums, values)
        for k, feature in enumerate(net.inputs.features % max(n_features, 1)):
            out[docs, feature] += added[:, k]
    return out, sums[-1][0]


def _layers(net: Net) -> list[tuple[Floats, Floats]]:
    """Return the weights, units x inputs, and the biases of each layer."""
    layers, begin = [], 0
    for n_inputs, n_units in pairwise((len(net.inputs.features), *net.hidden, 1)):
        end = begin + n_inputs * n_units
        weights = net.weights[begin:end].astype(np.float64).reshape(n_units, n_inputs)
        layers.append((weights, net.weights[end : end + n_units].astype(np.float64)))
        begin = end + n_units
    return layers


def _standardised(net: Net, X: NDArray[np.float32]) -> Floats:
    """Return the inputs of documents in 64 bits: the mean, 0, where a feature is missing."""
    columns = X if net.inputs.ranks is None else net.inputs.ranks.beside_values(X, None)[0]
    chosen = columns[:, net.inputs.features].astype(np.float64)
    inputs = (chosen - net.inputs.means) * net.inputs.scales
    return np.clip(np.nan_to_num(inputs, nan=0.0), -INPUT_LIMIT, INPUT_LIMIT)


def _product(values: Floats, weights: Floats) -> Floats:
    """Return the product of two matrices; BLAS would add up otherwise on other processors."""
    out = np.zeros((len(values), weights.shape[1]))
    for k, row in enumerate(weights):
        out += values[:, k, np.newaxis] * row
    return out


def _forward(
    net: Net, layers: list[tuple[Floats, Floats]], inputs: Floats
) -> tuple[list[Floats], list[Floats]]:
    """Return the sums of the units of each layer, and their values; the last sums are scores."""
    sums, values = [], [inputs]
    for weights, biases in layers:
        sums.append(_product(values[-1], np.ascontiguousarray(weights.T)) + biases)
        values.append(_activation(net, sums[-1]))
    return sums, values[1:]


def _activation(net: Net, sums: Floats) -> Floats:
    if net.activation == "relu":
        return np.maximum(sums, 0.0)
    exponentials: Floats = exp(2.0 * np.clip(sums, -TANH_LIMIT, TANH_LIMIT))
    return 1.0 - 2.0 / (exponentials + 1.0)


def _slopes(
    net: Net,
    layers: list[tuple[Floats, Floats]],
    inputs: Floats,
    mean_sums: list[Floats],
    mean_values: list[Floats],
) -> Floats:
    """Return the slope of the score along each input of each document, from the mean document."""
    sums, values = _forward(net, layers, inputs)
    slopes = np.repeat(layers[-1][0], len(inputs), axis=0)
    for layer in reversed(range(len(layers) - 1)):
        change = sums[layer] - mean_sums[layer]
        is_small = np.abs(change) < LEAST_CHANGE
        quotient = (values[layer] - mean_values[layer]) / np.where(is_small, 1.0, change)
        slope = np.where(is_small, _derivative(net, mean_sums[layer], mean_values[layer]), quotient)
        slopes = _product(slopes * slope, layers[layer][0])
    return slopes


def _derivative(net: Net, sums: Floats, values: Floats) -> Floats:
    if net.activation == "relu":
        return (sums > 0.0).astype(np.float64)
    return 1.0 - values * values
