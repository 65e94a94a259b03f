"""A net: standardised features, layers of units with an activation function, and a score.

`Net` has the weights; it scores documents and is written to model files. `PerturbedScores` scores
a data set with weights that are moved along a line, for tests of local optimality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.cached import cached_property
from rankinite.core.container import LARGEST, checked_array
from rankinite.core.errors import ModelFileError
from rankinite.core.jit import frozen
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Floats32, Integers
from rankinite.data.sparse import dense_rows, is_sparse
from rankinite.nets.inputs import Standardiser
from rankinite.nets.kernels.forward import (
    BLOCK_DOCS,
    GROUP,
    INPUT_LIMIT,
    LANES,
    RELU,
    TANH,
    Inputs,
    Layers,
    Workspace,
    first_layer_sums,
    perturbed_scores,
    score_documents,
)

# Fewer documents are scored before another thread would have started.
DOCS_PER_THREAD = 4096
# Documents whose ranks are made at once.
DOCS_PER_CHUNK = 1 << 16
MOST_UNITS = 1 << 16
# Weights that reach this have diverged.
LARGEST_WEIGHT = 1e15
# Half of the largest number of 32 bits: the rest is for rounding.
LARGEST_SUM = 1.7e38
ACTIVATIONS = {"relu": RELU, "tanh": TANH}
# The first scores of a net of rectified units have about this deviation. Random scores are noise
# that training has to undo first, which with many features and few queries it hardly can.
FIRST_SCORES = 0.1


@dataclass(frozen=True, eq=False)
class Net:
    """A net, with the standardiser of its inputs.

    Attributes
    ----------
    inputs
        How features become inputs.
    hidden
        Number of units of each hidden layer; empty for a linear net.
    activation
        The activation function of hidden units: one of `ACTIVATIONS`.
    weights
        For each layer the weights of its units, one unit behind the other, then their biases. The
        last is the bias of the score, which moves no document past another.
    """

    inputs: Standardiser
    hidden: tuple[int, ...]
    activation: str
    weights: Floats32

    @classmethod
    def draw(
        cls,
        inputs: Standardiser,
        hidden: Sequence[int],
        activation: str,
        random: np.random.Generator,
    ) -> Net:
        """Return a net of random weights, such that each unit's sum has about deviation 1.

        That of the score is smaller if hidden units are rectified, see `FIRST_SCORES`.
        """
        layers = []
        for n_inputs, n_units in pairwise((len(inputs.features), *hidden, 1)):
            weights = random.standard_normal(n_units * n_inputs) / np.sqrt(max(n_inputs, 1))
            layers += [weights, np.zeros(n_units)]
        if hidden and activation == "relu":
            layers[-2] = layers[-2] * FIRST_SCORES
        return cls(inputs, tuple(hidden), activation, np.concatenate(layers).astype(np.float32))

    @cached_property
    def layers(self) -> Layers:
        """Sizes of the layers."""
        units = (len(self.inputs.features), *self.hidden, 1)
        strides = [-(-n // LANES) * LANES for n in units[:-1]] + [1]
        return Layers(
            frozen(np.array(units, np.int64)),
            frozen(np.array(strides, np.int64)),
            ACTIVATIONS[self.activation],
        )

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
        units, strides = self.layers.units, self.layers.strides
        out = np.zeros(int((units[1:] * (strides[:-1] + 1)).sum()), np.float32)
        out[self.positions] = self.weights
        return out

    def with_packed(self, weights: Floats32) -> Net:
        """Return the net with other packed weights."""
        return replace(self, weights=weights[self.positions])

    def inputs_of(self, X: Floats32, rows: Integers | None) -> Inputs:
        """Return documents as kernels take them."""
        return self.inputs.inputs_of(X, rows)

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

    def add_to(self, scores: Floats, X: Floats32, rows: Integers | None) -> Floats:
        """Add the net's score of each document."""
        if self.inputs.ranks is None and not is_sparse(X):
            return self.add_scores(scores, self.inputs_of(X, rows))
        # Values and ranks of all documents at once would take twice the memory of the features.
        for begin in range(0, len(scores), DOCS_PER_CHUNK):
            docs = slice(begin, begin + DOCS_PER_CHUNK)
            part = dense_rows(X, docs if rows is None else rows[docs])
            self.add_scores(scores[docs], self.inputs_of(part, None))
        return scores

    def add_scores(self, scores: Floats, inputs: Inputs) -> Floats:
        """Add the net's score of each document, on several threads if there are many."""
        n_docs, weights = len(scores), self.packed()

        def score_range(begin: int, end: int) -> None:
            score_documents(inputs, self.layers, weights, self.workspace(), begin, end, scores)

        parallel_for(score_range, n_docs, grain=DOCS_PER_THREAD)
        return scores

    def _sizes_of_weights(self) -> Iterator[tuple[Floats, Floats]]:
        """Iterate over the absolute weights of the layers, a row per unit, and biases."""
        end = 0
        for n_inputs, n_units in pairwise((len(self.inputs.features), *self.hidden, 1)):
            begin, biases, end = end, end + n_inputs * n_units, end + (n_inputs + 1) * n_units
            sizes = np.abs(self.weights[begin:end].astype(np.float64))
            yield sizes[: biases - begin].reshape(n_units, n_inputs), sizes[biases - begin :]

    @property
    def is_bounded(self) -> bool:
        """Whether no sum of any unit can overflow, for any document.

        Inputs are bounded, and so are the sums of units by the absolute weights. They are computed
        in 32 bits; training takes weights for diverged that are not bounded.
        """
        # Written so that NaN is not bounded, either.
        if not (np.abs(self.weights) < LARGEST_WEIGHT).all():
            return False
        largest = np.full(len(self.inputs.features), INPUT_LIMIT)
        for weights, biases in self._sizes_of_weights():
            sums = (weights * largest).sum(axis=1) + biases
            if (sums > LARGEST_SUM).any():
                return False
            largest = np.minimum(sums, 1.0) if self.activation == "tanh" else sums
        return True

    def slopes(self, n_features: int) -> Floats:
        """Return the largest slope of the score along each feature, in standard deviations.

        The absolute weights of a linear net; with hidden layers the product of the layers'
        absolute weights, since no activation function is steeper than 1. Those of a value and of
        its rank are added. A feature that is no input has 0.
        """
        slopes = np.ones(1)
        for weights, _ in reversed(list(self._sizes_of_weights())):
            # No product of matrices: sums by BLAS depend on the processor in their last bits.
            slopes = (slopes[:, None] * weights).sum(axis=0).clip(max=LARGEST)
        out = np.zeros(n_features)
        np.add.at(out, self.inputs.features % max(n_features, 1), slopes)
        return out

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the net as arrays of a model file."""
        return {
            **self.inputs.to_arrays(),
            "hidden": np.array(self.hidden, np.int64),
            "weights": self.weights,
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        n_features: int,
        activation: str,
        *,
        rank_inputs: bool,
    ) -> Net:
        """Make a net of the arrays of a model file; all numbers are checked before use."""
        inputs = Standardiser.from_arrays(arrays, n_features, rank_inputs=rank_inputs)
        hidden = checked_array(arrays, "hidden", np.int64, None, low=1, high=MOST_UNITS)
        sizes = (len(inputs.features), *(int(n) for n in hidden), 1)
        n_weights = sum((a + 1) * b for a, b in pairwise(sizes))
        weights = checked_array(arrays, "weights", np.float32, n_weights)
        net = cls(inputs, sizes[1:-1], activation, weights.copy())
        if not net.is_bounded:
            raise ModelFileError(
                "the weights of the net in the file are so large that scores could be infinite"
            )
        return net


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
        self._write_sums(replace(net, weights=change), self._changes)

        def scores_at(step: float) -> Floats:
            weights = replace(net, weights=net.weights + np.float32(step) * change).packed()

            def score_range(begin: int, end: int) -> None:
                perturbed_scores(
                    self._sums, self._changes, step, net.layers, weights, net.workspace(), begin,
                    end, self._start, self._scores,
                )  # fmt: skip

            parallel_for(score_range, len(self._start))
            return self._scores

        return scores_at

    def _write_sums(self, net: Net, out: NDArray[np.float32]) -> None:
        weights = net.packed()

        def sum_range(begin: int, end: int) -> None:
            first_layer_sums(self._inputs, net.layers, weights, net.workspace(), begin, end, out)

        parallel_for(sum_range, len(self._start))


def workspace_at(workspaces: Workspace, k: int) -> Workspace:
    """Return the k-th of several workspaces."""
    return Workspace(*(array[k] for array in workspaces))
