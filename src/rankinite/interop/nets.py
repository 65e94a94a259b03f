"""A net as other tools hold it: matrices, and for linear nets one weight per feature."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rankinite.core.errors import UsageError
from rankinite.core.types import Floats, Integers
from rankinite.rankers.lambdarank import LambdaRank


@dataclass(frozen=True)
class Layer:
    """A layer: weights, a row per unit, and biases."""

    weights: Floats
    biases: Floats


@dataclass(frozen=True)
class PlainNet:
    """A net whose inputs are features; missing ones, and those at the mean, are 0.

    Attributes
    ----------
    feature_names
        Names of the features.
    features, means, scales
        Features that are inputs; an input is (feature - mean) x scale, clipped.
    layers
        The layers; the last has one unit.
    activation
        ``"tanh"`` or ``"relu"``, of all layers but the last.
    start
        What is added to the last unit.
    """

    feature_names: tuple[str, ...]
    features: Integers
    means: Floats
    scales: Floats
    layers: tuple[Layer, ...]
    activation: str
    start: float

    @property
    def feature_weights(self) -> Floats:
        """Weights of all features, of a linear net, as if inputs were not clipped."""
        weights = np.zeros(len(self.feature_names))
        weights[self.features] = self.layers[0].weights[0] * self.scales
        return weights


def plain_net(model: LambdaRank, to: str, *, linear: bool) -> PlainNet:
    """Return a net in plain matrices; refuse one that a format cannot hold.

    Parameters
    ----------
    model
        A fitted net.
    to
        Name of the format.
    linear
        Whether the format holds linear nets only.
    """
    if model.base is not None:
        raise UsageError(
            f"export: the LambdaRank has a base, which {to} cannot hold beside a net; export its "
            "base and a net without one"
        )
    net = model.net_
    if net.inputs.ranks is not None:
        raise UsageError(
            f"export: the inputs of the LambdaRank are ranks of features, which {to} cannot hold; "
            "train it with rank_inputs=False (--no-rank-inputs)"
        )
    if linear and net.hidden:
        raise UsageError(
            f"export: the LambdaRank has hidden layers, and {to} holds linear nets only; train it "
            "with hidden=0, or export it to onnx"
        )
    units = (len(net.inputs.features), *net.hidden, 1)
    weights = net.weights.astype(np.float64)
    layers = []
    for n_inputs, n_units in pairwise(units):
        end = n_inputs * n_units
        layers.append(Layer(weights[:end].reshape(n_units, n_inputs), weights[end : end + n_units]))
        weights = weights[end + n_units :]
    doubles: Any = np.float64
    return PlainNet(
        tuple(model.feature_names_),
        net.inputs.features,
        net.inputs.means.astype(doubles),
        net.inputs.scales.astype(doubles),
        tuple(layers),
        net.activation,
        model.start_,
    )
