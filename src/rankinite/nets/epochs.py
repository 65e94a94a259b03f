"""Teaching a net on one data set: what stays the same from epoch to epoch, and an epoch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import frozen, n_threads
from rankinite.core.types import Floats, Floats32, Integers
from rankinite.nets.kernels.forward import Room, score_documents
from rankinite.nets.kernels.training import GIVEN, Adam, Documents, adam_step, go_through
from rankinite.nets.net import Net
from rankinite.objectives.kernels.arrays import (
    NO_NUMBERS,
    NO_PLACES,
    ObjectiveArrays,
    single_mixture,
)
from rankinite.objectives.objective import Gradients

# A call of a kernel cannot be interrupted; this many documents take about half a second.
DOCS_A_CALL = 1 << 17
# A batch is shared out in at most so many blocks, and one for so many of its queries.
MOST_BLOCKS = 32
QUERIES_A_BLOCK = 4
# So many numbers may be scratch.
MOST_ROOM = 1 << 27

BETA, GAMMA, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True, eq=False)
class Moments:
    """The running means of Adam, and how many steps they are of.

    Attributes
    ----------
    first, second
        Of the gradient and of its square; empty if steps go straight along the lambdas.
    n_steps
        How many steps were taken.
    """

    first: Floats32
    second: Floats32
    n_steps: int = 0

    @classmethod
    def none(cls) -> Moments:
        """Return the moments of steps that have none."""
        return cls(np.zeros(0, np.float32), np.zeros(0, np.float32))

    @classmethod
    def begin(cls, n_weights: int) -> Moments:
        """Return the moments before the first step."""
        return cls(np.zeros(n_weights, np.float32), np.zeros(n_weights, np.float32))

    def copy(self) -> Moments:
        """Return moments that can be changed without changing these."""
        return Moments(self.first.copy(), self.second.copy(), self.n_steps)


class Teacher:
    """One data set, and what its lambdas ask of a net.

    Parameters
    ----------
    net
        A net of the layers and inputs to be taught.
    X, rows, offsets
        The features of the data set, and its queries.
    gradients
        An objective, prepared; with one output.
    start
        The scores that the net's are added to, one a document.
    queries_per_step
        How many queries a step is for; all if None.
    """

    def __init__(
        self,
        net: Net,
        X: NDArray[np.float32],
        rows: Integers | None,
        offsets: Integers,
        gradients: Gradients,
        start: Floats,
        queries_per_step: int | None,
    ) -> None:
        n_queries, n_docs = len(offsets) - 1, len(start)
        self._layers = net.layers
        self._source = net.source(X, rows)
        self._gradients = gradients
        self._mixture = self._precomputed = single_mixture(_precomputed(offsets))
        spare = np.zeros((2, n_docs if len(gradients.parts) > 1 else 0))
        scores, lambdas, slopes = np.zeros((3, n_docs))
        self._documents = Documents(frozen(start), scores, lambdas, slopes, spare)
        self.sizes = np.diff(offsets)
        self._offsets = offsets
        self._together = min(queries_per_step or n_queries, n_queries)
        longest = int(self.sizes.max())
        room = longest * int(net.layers.strides.sum())
        blocks = min(MOST_BLOCKS, self._together // QUERIES_A_BLOCK, MOST_ROOM // max(room, 1))
        self._rooms = net.rooms(longest, max(blocks, 1))

    def epoch(
        self,
        order: Integers,
        number: int,
        weights: Floats32,
        moments: Moments,
        rate: float,
        decay: float = 0.0,
    ) -> Moments:
        """Go through the queries in this order and change the weights; return the moments.

        Parameters
        ----------
        order
            The queries.
        number
            How many epochs were before.
        weights, moments
            As kernels take them; the weights are changed.
        rate, decay
            The learning rate; and the share of the weights that is taken away a step, times it.
        """
        moments = moments.copy()
        mixture = self._gradients.mixture(number)
        self._mixture = self._precomputed if mixture is None else mixture
        # What is too large for 32 bits makes weights run away, which `Climb` notices.
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = np.array(
                [rate, BETA, GAMMA, EPSILON, max(1.0 - rate * decay, 0.0)], np.float32
            )
        adam = Adam(moments.first, moments.second, numbers)
        n_steps = moments.n_steps
        gradients = np.zeros((len(self._rooms.activity), len(weights)), np.float32)
        with ThreadPoolExecutor(n_threads()) as workers:
            for queries in self._calls(order):
                if self._mixture is self._precomputed:
                    self._ask(queries, number, weights)
                if self._together == 1:
                    self._go_through(queries, 0, weights, True, rate, adam, n_steps, gradients[0])
                    n_steps += len(queries)
                else:
                    self._add_up(queries, weights, rate, adam, n_steps, gradients, workers)
                    n_steps += 1
        return Moments(moments.first, moments.second, n_steps)

    def _go_through(
        self,
        queries: Integers,
        room: int,
        weights: Floats32,
        by_query: bool,
        rate: float,
        adam: Adam,
        n_steps: int,
        gradient: Floats32,
    ) -> None:
        own = Room(*(array[room] for array in self._rooms))
        go_through(
            queries, self._source, self._layers, weights, self._mixture, self._documents, own,
            by_query, rate, adam, n_steps, gradient,
        )  # fmt: skip

    def _add_up(
        self,
        queries: Integers,
        weights: Floats32,
        rate: float,
        adam: Adam,
        n_steps: int,
        gradients: Floats32,
        workers: ThreadPoolExecutor,
    ) -> None:
        """Take one step for all these queries, which are shared out in blocks.

        How many blocks there are does not depend on the number of threads, and their gradients
        are added in their order.
        """
        n_blocks = len(gradients)
        cuts = [len(queries) * k // n_blocks for k in range(n_blocks + 1)]

        def work(block: int) -> None:
            part = queries[cuts[block] : cuts[block + 1]]
            self._go_through(part, block, weights, False, rate, adam, n_steps, gradients[block])

        list(workers.map(work, range(n_blocks)))
        with np.errstate(over="ignore", invalid="ignore"):
            total = gradients.sum(axis=0)
            gradients[:] = 0.0
            if len(adam.first):
                adam_step(weights, total, adam, n_steps + 1)
            else:
                weights += adam.numbers[0] * total

    @property
    def scores(self) -> Floats:
        """The scores that documents had when their queries were last gone through."""
        return self._documents.scores

    def _calls(self, order: Integers) -> list[Integers]:
        """Cut an order into what is done at once: a batch, or many queries that are one each."""
        n_queries = self._together
        if n_queries == 1 and self._mixture is not self._precomputed:
            n_queries = max(1, int(DOCS_A_CALL / max(self.sizes.mean(), 1.0)))
        return [order[begin : begin + n_queries] for begin in range(0, len(order), n_queries)]

    def _ask(self, queries: Integers, number: int, weights: Floats32) -> None:
        """Score some queries and ask the objective for their lambdas."""
        scores, lambdas, slopes = (
            array[np.newaxis]
            for array in (self._documents.scores, self._documents.lambdas, self._documents.slopes)
        )
        room = Room(*(array[0] for array in self._rooms))
        for q in queries:
            first, last = int(self._offsets[q]), int(self._offsets[q + 1])
            scores[0, first:last] = self._documents.start[first:last]
            score_documents(self._source, self._layers, weights, room, first, last, scores[0])
        chosen = np.zeros(len(self.sizes), np.bool_)
        chosen[queries] = True
        self._gradients.gradients_of(chosen, scores, number, lambdas, slopes)


def _precomputed(offsets: Integers) -> ObjectiveArrays:
    """Return the arrays of an objective whose gradients were computed before."""
    none, places = frozen(NO_NUMBERS), frozen(NO_PLACES)
    return ObjectiveArrays(
        GIVEN, 0, 0, 0, 0.0, frozen(np.ascontiguousarray(offsets)), none, places, none, none,
        places, none, none,
    )  # fmt: skip
