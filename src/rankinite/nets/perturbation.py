"""Scores of a net whose weights are moved along a direction, without a whole forward pass.

The sums of the first layer, which cost nearly all, are linear in its weights: their value at the
net plus step times their value at the direction. They are computed once per direction, for all
steps.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel, n_threads
from rankinite.core.types import Floats
from rankinite.nets.kernels.backprop import (
    BLOCK_DOCS,
    Inputs,
    Layers,
    Numbers,
    Workspace,
    fill_inputs,
    first_layer_forward,
    later_layers_forward,
    padded,
)
from rankinite.nets.net import Net


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
    factor = weights.dtype.type(step)
    for first in range(begin, end, BLOCK_DOCS):
        n = min(BLOCK_DOCS, end - first)
        sums_at = padded(n) * layers.strides[0]
        for k in range(n * width):
            j = first * width + k
            workspace.activations[sums_at + k] = sums[j] + factor * changes[j]
        for k in range(n * width, padded(n) * width):
            workspace.activations[sums_at + k] = 0.0
        scores_at = later_layers_forward(n, layers, weights, workspace)
        for i in range(n):
            scores[first + i] = start[first + i] + np.float64(workspace.activations[scores_at + i])


class PerturbedScores:
    """Scores of a data set by a net whose weights are moved.

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

            def score_range(begin: int, end: int, workspace: Workspace) -> None:
                perturbed_scores(
                    self._sums, self._changes, step, net.layers, weights, workspace, begin, end,
                    self._start, self._scores,
                )  # fmt: skip

            self._in_threads(score_range)
            return self._scores

        return scores_at

    def _write_sums(self, net: Net, out: NDArray[np.float32]) -> None:
        weights = net.packed()

        def sum_range(begin: int, end: int, workspace: Workspace) -> None:
            first_layer_sums(self._inputs, net.layers, weights, workspace, begin, end, out)

        self._in_threads(sum_range)

    def _in_threads(self, compute: Callable[[int, int, Workspace], None]) -> None:
        """Compute all documents, a range on each thread; results do not depend on the ranges."""
        n_docs, n_workers = len(self._start), n_threads()
        bounds = pairwise(n_docs * k // n_workers for k in range(n_workers + 1))

        def compute_range(bound: tuple[int, int]) -> None:
            compute(*bound, self._net.workspace())

        with ThreadPoolExecutor(n_workers) as workers:
            list(workers.map(compute_range, bounds))
