"""A net: standardised features, layers of units with the hyperbolic tangent, and a score.

`Net` has the weights; it scores documents and is written to model files. `PerturbedScores` scores
a data set with weights that are moved along a line, for tests of local optimality.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import ModelFileError
from rankinite.core.jit import frozen, n_threads
from rankinite.core.types import Floats, Floats32
from rankinite.nets.kernels.forward import (
    BLOCK_DOCS,
    GROUP,
    LANES,
    Inputs,
    Layers,
    Workspace,
    first_layer_sums,
    perturbed_scores,
    score_documents,
    sums_by_block,
)

EVERY_ROW = np.zeros(0, np.int64)
# Sums go over a number of blocks that does not depend on the threads, so that neither do they.
SUM_BLOCKS = 64
# A constant feature seems to vary by up to this share of its mean, because sums are rounded.
ROUNDING = 1e-6
# Fewer documents are scored before another thread would have started.
DOCS_PER_THREAD = 4096
MOST_UNITS = 1 << 16


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Which features are inputs, and how they are scaled.

    Attributes
    ----------
    features
        Columns of the features that vary.
    means, scales
        Means of these features, and one over their standard deviations.
    """

    features: NDArray[np.int64]
    means: NDArray[np.float32]
    scales: NDArray[np.float32]

    @classmethod
    def fit(
        cls, X: NDArray[np.float32], rows: NDArray[np.int64] | None, n_docs: int
    ) -> Standardiser:
        """Find means and deviations over documents; missing values are left out."""
        index = frozen(EVERY_ROW if rows is None else rows)
        n_features = X.shape[1]
        centre = np.zeros(n_features)
        deviation = np.zeros(n_features)
        # The first pass finds the mean. Squares of differences from it, in the second pass, lose no
        # digits, as squares of large features would.
        for _ in range(2):
            shape = (min(SUM_BLOCKS, n_docs), n_features)
            counts, sums, squares = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape)
            sums_by_block(frozen(X), index, n_docs, centre, counts, sums, squares)
            n = np.maximum(counts.sum(axis=0), 1)
            centre = centre + sums.sum(axis=0) / n
            deviation = np.sqrt(squares.sum(axis=0) / n)
        means = centre.astype(np.float32)
        varies = deviation > ROUNDING * np.abs(centre)
        with np.errstate(divide="ignore", over="ignore"):
            scales = (1.0 / deviation).astype(np.float32)
        # One over a deviation of less than about 3e-39 is infinite in 32 bits.
        features = np.flatnonzero(varies & (deviation > 0.0) & np.isfinite(scales))
        return cls(features, means[features], scales[features])


@dataclass(frozen=True, eq=False)
class Net:
    """A net, with the standardiser of its inputs.

    Attributes
    ----------
    inputs
        How features become inputs.
    hidden
        Number of units of each hidden layer; empty for a linear net.
    weights
        For each layer the weights of its units, one unit behind the other, then their biases. The
        last is the bias of the score, which moves no document past another.
    """

    inputs: Standardiser
    hidden: tuple[int, ...]
    weights: Floats32

    @classmethod
    def draw(cls, inputs: Standardiser, hidden: Sequence[int], random: np.random.Generator) -> Net:
        """Return a net of random weights, such that each unit's sum has about deviation 1."""
        layers = []
        for n_inputs, n_units in pairwise((len(inputs.features), *hidden, 1)):
            weights = random.standard_normal(n_units * n_inputs) / np.sqrt(max(n_inputs, 1))
            layers += [weights, np.zeros(n_units)]
        return cls(inputs, tuple(hidden), np.concatenate(layers).astype(np.float32))

    @cached_property
    def layers(self) -> Layers:
        """Sizes of the layers."""
        units = (len(self.inputs.features), *self.hidden, 1)
        strides = [-(-n // LANES) * LANES for n in units[:-1]] + [1]
        return Layers(frozen(np.array(units, np.int64)), frozen(np.array(strides, np.int64)))

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """Position of each weight among the packed weights, whose rows are padded."""
        positions = []
        begin = 0
        for layer, stride in enumerate(self.layers.strides[:-1]):
            n_inputs, n_units = self.layers.units[layer], self.layers.units[layer + 1]
            rows = begin + stride * np.arange(n_units)[:, None] + np.arange(n_inputs)
            begin += n_units * stride
            positions += [rows.reshape(-1), np.arange(begin, begin + n_units)]
            begin += n_units
        return np.concatenate(positions)

    def packed(self) -> Floats32:
        """Return the weights as kernels take them: rows are padded with zeros."""
        units, strides = self.layers
        out = np.zeros(int((units[1:] * (strides[:-1] + 1)).sum()), np.float32)
        out[self.positions] = self.weights
        return out

    def with_packed(self, weights: Floats32) -> Net:
        """Return the net with other packed weights."""
        return replace(self, weights=weights[self.positions])

    def inputs_of(self, X: NDArray[np.float32], rows: NDArray[np.int64] | None) -> Inputs:
        """Return documents as kernels take them."""
        return Inputs(
            frozen(np.ascontiguousarray(X)),
            frozen(EVERY_ROW if rows is None else np.ascontiguousarray(rows)),
            frozen(self.inputs.features),
            frozen(self.inputs.means),
            frozen(self.inputs.scales),
        )

    def workspaces(self, n_docs: int, n_workspaces: int) -> Workspace:
        """Return memory for queries of n documents at most, several times in one array each."""
        strides = self.layers.strides
        n_padded = -(-n_docs // GROUP) * GROUP
        size = n_padded * int(strides.sum())
        # Of the widest layer behind the inputs, since inputs have no tangents.
        exponents = np.zeros((n_workspaces, 3, n_padded * int(strides[1:].max())))
        return Workspace(
            activations=np.zeros((n_workspaces, size), np.float32),
            deltas=np.zeros((n_workspaces, size), np.float32),
            exponents=exponents,
            exponent_bits=exponents.view(np.int64),
        )

    def workspace(self) -> Workspace:
        """Return memory for scoring a block of documents."""
        return workspace_at(self.workspaces(BLOCK_DOCS, 1), 0)

    def add_to(
        self, scores: Floats, X: NDArray[np.float32], rows: NDArray[np.int64] | None
    ) -> Floats:
        """Add the net's score of each document, on several threads if there are many.

        The threads are Python's, and the kernel is serial, because a server may call this
        concurrently, which numba's threads do not survive.
        """
        n_docs = len(scores)
        inputs, weights = self.inputs_of(X, rows), self.packed()

        def score_range(begin: int, end: int) -> None:
            score_documents(inputs, self.layers, weights, self.workspace(), begin, end, scores)

        _in_threads(score_range, n_docs, min(n_threads(), max(1, n_docs // DOCS_PER_THREAD)))
        return scores

    def slopes(self, n_features: int) -> Floats:
        """Return the largest slope of the score along each feature, in standard deviations.

        The absolute weights of a linear net; with hidden layers the product of the layers'
        absolute weights, since the slope of tanh is at most 1. A feature that is no input has 0.
        """
        units = self.layers.units
        ends = np.cumsum((units[:-1] + 1) * units[1:])
        slopes = np.ones(1)
        for n_inputs, n_units, end in reversed(list(zip(units, units[1:], ends, strict=False))):
            biases = end - n_units
            weights = self.weights[biases - n_inputs * n_units : biases].astype(np.float64)
            slopes = slopes @ np.abs(weights.reshape(n_units, n_inputs))
        out = np.zeros(n_features)
        out[self.inputs.features] = slopes
        return out

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the net as arrays of a model file."""
        return {
            "features": self.inputs.features,
            "means": self.inputs.means,
            "scales": self.inputs.scales,
            "hidden": np.array(self.hidden, np.int64),
            "weights": self.weights,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> Net:
        """Make a net of the arrays of a model file; all numbers are checked before use."""
        features = _checked(arrays, "features", np.int64)
        means = _checked(arrays, "means", np.float32)
        scales = _checked(arrays, "scales", np.float32)
        hidden = _checked(arrays, "hidden", np.int64)
        weights = _checked(arrays, "weights", np.float32)
        inside = ((features >= 0) & (features < n_features)).all()
        if not inside or (np.diff(features) <= 0).any():
            raise ModelFileError("the inputs of the net in the file are not features of its own")
        if not len(features) == len(means) == len(scales) or (scales <= 0.0).any():
            raise ModelFileError("the inputs of the net in the file do not fit together")
        if ((hidden < 1) | (hidden > MOST_UNITS)).any():
            raise ModelFileError("the layers of the net in the file have impossible sizes")
        sizes = (len(features), *(int(n) for n in hidden), 1)
        if len(weights) != sum((a + 1) * b for a, b in pairwise(sizes)):
            raise ModelFileError("the weights in the file are more or fewer than its net has")
        return cls(Standardiser(features, means, scales), sizes[1:-1], weights)


class PerturbedScores:
    """Scores of a data set by a net whose weights are moved, without a whole forward pass.

    The sums of the first layer, which cost nearly all, are linear in its weights: their value at
    the net plus step times their value at the direction. They are computed once per direction, for
    all steps.

    Parameters
    ----------
    net
        The net.
    X, rows
        Feature matrix, and the row of each document.
    start
        Scores that the net's are added to, one per document.
    """

    def __init__(
        self, net: Net, X: NDArray[np.float32], rows: NDArray[np.int64] | None, start: Floats
    ) -> None:
        self._net = net
        self._inputs = net.inputs_of(X, rows)
        self._start = np.ascontiguousarray(start)
        size = len(self._start) * int(net.layers.strides[1])
        # Memory is allocated once: the first touch of so much costs more than its use.
        self._sums, self._changes = np.empty(size, np.float32), np.empty(size, np.float32)
        self._scores = np.empty(len(self._start))
        self._write_sums(net, self._sums)

    @property
    def n_weights(self) -> int:
        """Number of weights that can be moved: all but the bias of the score."""
        return len(self._net.weights) - 1

    def along(self, direction: Floats) -> Callable[[float], Floats]:
        """Return the scores as a function of the step along a direction.

        The function returns the same array each time, and is valid until the next direction.

        Parameters
        ----------
        direction
            One number for each weight that can be moved.
        """
        net = self._net
        change = np.append(direction, 0.0).astype(np.float32)
        self._write_sums(Net(net.inputs, net.hidden, change), self._changes)

        def scores_at(step: float) -> Floats:
            weights = Net(net.inputs, net.hidden, net.weights + np.float32(step) * change).packed()

            def score_range(begin: int, end: int) -> None:
                perturbed_scores(
                    self._sums, self._changes, step, net.layers, weights, net.workspace(), begin,
                    end, self._start, self._scores,
                )  # fmt: skip

            _in_threads(score_range, len(self._start), n_threads())
            return self._scores

        return scores_at

    def _write_sums(self, net: Net, out: NDArray[np.float32]) -> None:
        weights = net.packed()

        def sum_range(begin: int, end: int) -> None:
            first_layer_sums(self._inputs, net.layers, weights, net.workspace(), begin, end, out)

        _in_threads(sum_range, len(self._start), n_threads())


def workspace_at(workspaces: Workspace, k: int) -> Workspace:
    """Return the k-th of several workspaces."""
    return Workspace(*(array[k] for array in workspaces))


def _in_threads(compute: Callable[[int, int], None], n_docs: int, n_workers: int) -> None:
    """Compute all documents, a range on each thread; results do not depend on the ranges."""
    bounds = [n_docs * k // n_workers for k in range(n_workers + 1)]
    if n_workers == 1:
        compute(0, n_docs)
        return
    with ThreadPoolExecutor(n_workers) as workers:
        # A list, because errors of the threads are raised only where their results are read.
        list(workers.map(compute, bounds, bounds[1:]))


def _checked(arrays: Mapping[str, NDArray[Any]], name: str, kind: type[np.generic]) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.ndim != 1 or array.dtype != kind:
        raise ModelFileError(f"the file lacks {name!r}, or it is not of the right kind")
    if not np.isfinite(array).all():
        raise ModelFileError(f"{name!r} in the file has a number that is not finite")
    return array.copy()
