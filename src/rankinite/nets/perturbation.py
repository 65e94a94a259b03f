"""Scores of a net whose weights are moved along a direction, without going through it anew.

The sums of the first layer, which cost nearly all, are straight lines: their value at the net plus
step times their value for the direction. They are computed once a direction, for all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel, n_threads
from rankinite.core.types import Floats
from rankinite.nets.kernels.forward import (
    BLOCK_DOCS,
    Layers,
    Room,
    Source,
    fill_inputs,
    filled,
    first_sums,
    rest_forward,
)
from rankinite.nets.net import Net


@kernel
def sums_of_documents(
    source: Source,
    layers: Layers,
    weights: NDArray[Any],
    room: Room,
    begin: int,
    end: int,
    out: NDArray[Any],
) -> None:
    """Write the sums of the first layer of the documents from begin to end - 1."""
    width = layers.strides[1]
    for first in range(begin, end, BLOCK_DOCS):
        n = min(BLOCK_DOCS, end - first)
        fill_inputs(source, first, n, room.activity, layers.strides[0])
        first_sums(n, layers, weights, room)
        at = filled(n) * layers.strides[0]
        for k in range(n * width):
            out[first * width + k] = room.activity[at + k]


@kernel
def shifted_scores(
    sums: NDArray[Any],
    shifts: NDArray[Any],
    step: float,
    layers: Layers,
    weights: NDArray[Any],
    room: Room,
    begin: int,
    end: int,
    start: Floats,
    scores: Floats,
) -> None:
    """Write the scores of the documents from begin to end - 1 with sums + step x shifts.

    ``weights`` are those of the net that was moved, of which the layers behind the first count.
    """
    width = layers.strides[1]
    factor = weights.dtype.type(step)
    for first in range(begin, end, BLOCK_DOCS):
        n = min(BLOCK_DOCS, end - first)
        at = filled(n) * layers.strides[0]
        for k in range(n * width):
            place = first * width + k
            room.activity[at + k] = sums[place] + factor * shifts[place]
        for k in range(n * width, filled(n) * width):
            room.activity[at + k] = 0.0
        scores_at = rest_forward(n, layers, weights, room)
        for i in range(n):
            scores[first + i] = start[first + i] + np.float64(room.activity[scores_at + i])


class Shifts:
    """The documents of a data set, for a net that is moved.

    Parameters
    ----------
    net
        The net.
    X, rows
        The features of the documents.
    start
        The scores that the net's are added to, one a document.
    """

    def __init__(
        self, net: Net, X: NDArray[np.float32], rows: NDArray[np.int64] | None, start: Floats
    ) -> None:
        self._net = net
        self._source = net.source(X, rows)
        self._start = np.ascontiguousarray(start)
        size = len(self._start) * int(net.layers.strides[1])
        # Memory is made once: the first touch of so much costs more than what is done with it.
        self._sums, self._shifts = np.empty(size, np.float32), np.empty(size, np.float32)
        self._scores = np.empty(len(self._start))
        self._write_sums(net, self._sums)

    @property
    def n_weights(self) -> int:
        """How many weights can be moved: all but the bias of the score."""
        return len(self._net.weights) - 1

    def along(self, direction: Floats) -> Callable[[float], Floats]:
        """Return the scores as a function of the step along a direction.

        It gives the same array every time, and ends with the next direction.

        Parameters
        ----------
        direction
            One number for each weight that can be moved.
        """
        net = self._net
        moved = np.append(direction, 0.0).astype(np.float32)
        self._write_sums(Net(net.inputs, net.hidden, moved), self._shifts)

        def scores_at(step: float) -> Floats:
            weights = Net(net.inputs, net.hidden, net.weights + np.float32(step) * moved).packed()

            def work(begin: int, end: int, room: Room) -> None:
                shifted_scores(
                    self._sums, self._shifts, step, net.layers, weights, room, begin, end,
                    self._start, self._scores,
                )  # fmt: skip

            self._share_out(work)
            return self._scores

        return scores_at

    def _write_sums(self, net: Net, out: NDArray[np.float32]) -> None:
        weights = net.packed()

        def work(begin: int, end: int, room: Room) -> None:
            sums_of_documents(self._source, net.layers, weights, room, begin, end, out)

        self._share_out(work)

    def _share_out(self, work: Callable[[int, int, Room], None]) -> None:
        """Let every thread do a part of the documents; what each gives does not depend on it."""
        n_docs, n_workers = len(self._start), n_threads()
        cuts = [n_docs * k // n_workers for k in range(n_workers + 1)]

        def part(bounds: tuple[int, int]) -> None:
            work(*bounds, Room(*(array[0] for array in self._net.rooms(BLOCK_DOCS, 1))))

        with ThreadPoolExecutor(n_workers) as workers:
            list(workers.map(part, pairwise(cuts)))
