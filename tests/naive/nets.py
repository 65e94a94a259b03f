"""The slow, obvious twins of nets: matrices of 64 bits, one layer after the other.

Weights stand in one array, for every layer those of its units, one unit behind the other, then
their biases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FARTHEST = 10.0


@dataclass
class Inputs:
    """The columns that vary, their means and standard deviations."""

    features: list[int]
    means: list[float]
    deviations: list[float]


def standardise(X: NDArray[np.float32]) -> Inputs:
    """Find the columns that vary by more than a millionth of their mean."""
    found = Inputs([], [], [])
    for j in range(X.shape[1]):
        known = X[:, j][~np.isnan(X[:, j])].astype(np.float64)
        if len(known) and np.std(known) > 1e-6 * abs(np.mean(known)):
            found.features.append(j)
            found.means.append(float(np.mean(known)))
            found.deviations.append(float(np.std(known)))
    return found


def fill(inputs: Inputs, X: NDArray[np.float32]) -> Floats:
    """Return what a net is given for every row; the mean where a feature is missing."""
    columns = np.zeros((len(X), len(inputs.features)))
    for k, j in enumerate(inputs.features):
        for i in range(len(X)):
            if not np.isnan(X[i, j]):
                away = (float(X[i, j]) - inputs.means[k]) / inputs.deviations[k]
                columns[i, k] = min(max(away, -FARTHEST), FARTHEST)
    return columns


def split(weights: Floats, sizes: Sequence[int]) -> list[tuple[Floats, Floats]]:
    """Return matrix and biases of every layer, as views."""
    parts = []
    for n_inputs, n_units in pairwise(sizes):
        matrix, weights = weights[: n_units * n_inputs], weights[n_units * n_inputs :]
        biases, weights = weights[:n_units], weights[n_units:]
        parts.append((matrix.reshape(n_units, n_inputs), biases))
    assert len(weights) == 0
    return parts


def activities(weights: Floats, sizes: Sequence[int], given: Floats) -> list[Floats]:
    """Return what every layer gives, from the inputs to the scores: one row a document."""
    layers = [given]
    for layer, (matrix, biases) in enumerate(split(weights, sizes)):
        sums = layers[-1] @ matrix.T + biases
        layers.append(sums if layer == len(sizes) - 2 else np.tanh(sums))
    return layers


def scores(weights: Floats, sizes: Sequence[int], given: Floats) -> Floats:
    """Return the score of every document."""
    return activities(weights, sizes, given)[-1][:, 0]


def gradient(weights: Floats, sizes: Sequence[int], given: Floats, lambdas: Floats) -> Floats:
    """Return the derivative of the sum of lambda x score by every weight."""
    layers = activities(weights, sizes, given)
    out = np.zeros(len(weights))
    pushes = lambdas[:, np.newaxis]
    own, asked = split(weights, sizes), split(out, sizes)
    for layer in reversed(range(len(own))):
        asked[layer][0][:] = pushes.T @ layers[layer]
        asked[layer][1][:] = pushes.sum(axis=0)
        pushes = (pushes @ own[layer][0]) * (1.0 - layers[layer] ** 2)
    return out


def by_differences(cost: Callable[[Floats], float], weights: Floats, step: float = 1e-5) -> Floats:
    """Return the derivative of a cost by every weight, from its values on both sides."""
    out = np.zeros(len(weights))
    for k in range(len(weights)):
        one, other = weights.copy(), weights.copy()
        one[k] += step
        other[k] -= step
        out[k] = (cost(one) - cost(other)) / (2.0 * step)
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

    Decay takes its share, times the rate, of the weights before a step (Loshchilov and Hutter,
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
