"""Naive reference of nets: matrices of 64 bits, one layer after the other.

Weights are in one array: for each layer those of its units, one unit behind the other, then their
biases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

INPUT_LIMIT = 10.0


@dataclass
class Inputs:
    """The columns that vary, their means and standard deviations."""

    features: list[int]
    means: list[float]
    deviations: list[float]


def standardise(X: NDArray[np.float32]) -> Inputs:
    """Find the columns that vary by more than a millionth of their mean."""
    inputs = Inputs([], [], [])
    for j in range(X.shape[1]):
        known = X[:, j][~np.isnan(X[:, j])].astype(np.float64)
        if len(known) and np.std(known) > 1e-6 * abs(np.mean(known)):
            inputs.features.append(j)
            inputs.means.append(float(np.mean(known)))
            inputs.deviations.append(float(np.std(known)))
    return inputs


def fill(inputs: Inputs, X: NDArray[np.float32]) -> Floats:
    """Return the inputs of each row; the mean where a feature is missing."""
    columns = np.zeros((len(X), len(inputs.features)))
    for k, j in enumerate(inputs.features):
        for i in range(len(X)):
            if not np.isnan(X[i, j]):
                deviation = (float(X[i, j]) - inputs.means[k]) / inputs.deviations[k]
                columns[i, k] = min(max(deviation, -INPUT_LIMIT), INPUT_LIMIT)
    return columns


def split(weights: Floats, sizes: Sequence[int]) -> list[tuple[Floats, Floats]]:
    """Return matrix and biases of each layer, as views."""
    layers = []
    for n_inputs, n_units in pairwise(sizes):
        matrix, weights = weights[: n_units * n_inputs], weights[n_units * n_inputs :]
        biases, weights = weights[:n_units], weights[n_units:]
        layers.append((matrix.reshape(n_units, n_inputs), biases))
    assert len(weights) == 0
    return layers


# Each activation function, and its derivative by its value.
ACTIVATIONS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "tanh": (np.tanh, lambda value: 1.0 - value**2),
    "relu": (lambda x: np.maximum(x, 0.0), lambda value: (value > 0.0).astype(np.float64)),
}


def activations(
    weights: Floats, sizes: Sequence[int], inputs: Floats, activation: str
) -> list[Floats]:
    """Return the outputs of each layer, from the inputs to the scores: one row per document."""
    layers = [inputs]
    for layer, (matrix, biases) in enumerate(split(weights, sizes)):
        sums = layers[-1] @ matrix.T + biases
        layers.append(sums if layer == len(sizes) - 2 else ACTIVATIONS[activation][0](sums))
    return layers


def scores(weights: Floats, sizes: Sequence[int], inputs: Floats, activation: str) -> Floats:
    """Return the score of each document."""
    return activations(weights, sizes, inputs, activation)[-1][:, 0]


def gradient(
    weights: Floats, sizes: Sequence[int], inputs: Floats, activation: str, lambdas: Floats
) -> Floats:
    """Return the derivative of the sum of lambda x score by each weight."""
    layers = activations(weights, sizes, inputs, activation)
    out = np.zeros(len(weights))
    deltas = lambdas[:, np.newaxis]
    parameters, gradients = split(weights, sizes), split(out, sizes)
    for layer in reversed(range(len(parameters))):
        gradients[layer][0][:] = deltas.T @ layers[layer]
        gradients[layer][1][:] = deltas.sum(axis=0)
        slope = ACTIVATIONS[activation][1]
        deltas = (deltas @ parameters[layer][0]) * slope(layers[layer])
    return out


def by_differences(cost: Callable[[Floats], float], weights: Floats, step: float = 1e-5) -> Floats:
    """Return the derivative of a cost by each weight, from its values on both sides."""
    out = np.zeros(len(weights))
    for k in range(len(weights)):
        above, below = weights.copy(), weights.copy()
        above[k] += step
        below[k] -= step
        out[k] = (cost(above) - cost(below)) / (2.0 * step)
    return out


def pair_cost(scores: Floats, labels: Floats) -> float:
    """Return RankNet's cost: log(1 + exp(s_j - s_i)) for each i with a higher label than j."""
    return sum(
        float(np.log1p(np.exp(scores[j] - scores[i])))
        for i in range(len(labels))
        for j in range(len(labels))
        if labels[i] > labels[j]
    )


@dataclass
class Adam:
    """Adam as published (Kingma and Ba, 2015, Algorithm 1), but upwards, and with decay.

    Decay removes its share, times the rate, of the weights before a step (Loshchilov and Hutter,
    2019, Algorithm 2).
    """

    rate: float
    first: Floats
    second: Floats
    n_steps: int = 0
    decay: float = 0.0

    def step(self, weights: Floats, gradient: Floats) -> Floats:
        """Return the weights after one more step."""
        self.n_steps += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        mean = self.first / (1.0 - 0.9**self.n_steps)
        square = self.second / (1.0 - 0.999**self.n_steps)
        kept = (1.0 - self.rate * self.decay) * weights
        return kept + self.rate * mean / (np.sqrt(square) + 1e-8)
