"""Epochs of training: the queries of a data set, in batches, through the kernels of a net.

With one query per step an epoch is a chain of steps, which a kernel takes by itself. With more, a
batch is divided into blocks whose gradients are added up on several threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import frozen
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Floats32, Integers
from rankinite.nets.inputs import Standardiser
from rankinite.nets.kernels.adam import BETA_1, BETA_2, EPSILON, AdamState, Optimiser, adam_step
from rankinite.nets.kernels.backprop import PRECOMPUTED, Documents, train_queries
from rankinite.nets.kernels.forward import score_documents
from rankinite.nets.net import Net, workspace_at
from rankinite.objectives.kernels.arrays import (
    NO_NUMBERS,
    NO_PLACES,
    ObjectiveArrays,
    single_mixture,
)
from rankinite.objectives.objective import Gradients, Targets
from rankinite.objectives.pairwise import RankNet

# A call of a kernel cannot be interrupted; this many documents take about half a second.
DOCS_PER_CALL = 1 << 17
# A batch is divided into blocks whose gradients are added up in parallel: at most this many, and
# one for this many of its queries. Their number must not depend on that of the threads.
MOST_BLOCKS = 32
QUERIES_PER_BLOCK = 4
# Numbers of all workspaces together at most: half a gigabyte of activations.
MOST_ACTIVATIONS = 1 << 27


class EpochRunner:
    """Runs epochs of training: forward pass, lambdas, backward pass and steps, query by query.

    Parameters
    ----------
    net
        Net with the layers and inputs that are trained.
    X, rows, offsets
        Feature matrix, row of each document, and the queries of the data set.
    gradients
        Prepared objective, with one output.
    start
        Scores that the net's are added to, one per document.
    queries_per_step
        Number of queries of a step; all if None.
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
        self._inputs = net.inputs_of(X, rows)
        self._gradients = gradients
        self._mixture = self._precomputed = single_mixture(_precomputed(offsets))
        # Numba compiles a kernel for the types of its arguments, so that arrays without use are
        # empty instead of None.
        spare = np.zeros((2, n_docs if len(gradients.parts) > 1 else 0))
        scores, lambdas, hessians = np.zeros((3, n_docs))
        self._documents = Documents(frozen(start), scores, lambdas, hessians, spare)
        self._sizes = np.diff(offsets)
        self._offsets = offsets
        self._queries_per_step = min(queries_per_step or n_queries, n_queries)
        longest = int(self._sizes.max())
        n_activations = longest * int(net.layers.strides.sum())
        # Only from these three, never from the number of threads, follows how sums are rounded.
        n_blocks = min(
            MOST_BLOCKS,
            self._queries_per_step // QUERIES_PER_BLOCK,
            MOST_ACTIVATIONS // max(n_activations, 1),
        )
        self._workspaces = net.workspaces(longest, max(n_blocks, 1))

    @property
    def scores(self) -> Floats:
        """Scores of the documents when their queries were last trained on."""
        return self._documents.scores

    def run(
        self,
        order: Integers,
        epoch: int,
        weights: Floats32,
        adam: AdamState,
        learning_rate: float,
        weight_decay: float = 0.0,
    ) -> AdamState:
        """Train on the queries in this order, changing the weights; return the state of Adam.

        Parameters
        ----------
        order
            Queries of the epoch.
        epoch
            Number of epochs run before.
        weights
            Packed weights, which are changed.
        adam
            State of Adam before the epoch, which is not changed.
        learning_rate
            Learning rate.
        weight_decay
            Share of the weights that a step removes, times the learning rate.
        """
        # The state before the epoch stays as it is: after an interrupt in its midst it is kept.
        adam = adam.copy()
        mixture = self._gradients.mixture(epoch)
        self._mixture = self._precomputed if mixture is None else mixture
        optimiser = self._optimiser(adam, learning_rate, weight_decay)
        gradients = np.zeros((len(self._workspaces.activations), len(weights)), np.float32)
        for queries in self._calls(order):
            if self._mixture is self._precomputed:
                self._precompute_lambdas(queries, epoch, weights)
            if optimiser.steps_per_query:
                self._train(queries, 0, weights, optimiser, gradients[0])
            else:
                self._train_batch(queries, weights, optimiser, gradients)
            n_new = len(queries) if optimiser.steps_per_query else 1
            adam = adam._replace(n_steps=adam.n_steps + n_new)
            optimiser = optimiser._replace(adam=adam)
        return adam

    def _optimiser(self, adam: AdamState, learning_rate: float, weight_decay: float) -> Optimiser:
        # A rate too large for 32 bits makes weights diverge, which the trainer notices.
        with np.errstate(over="ignore", invalid="ignore"):
            keep = max(1.0 - learning_rate * weight_decay, 0.0)
            coefficients = np.array([learning_rate, BETA_1, BETA_2, EPSILON, keep], np.float32)
        return Optimiser(adam, coefficients, float(learning_rate), self._queries_per_step == 1)

    def _train(
        self,
        queries: Integers,
        block: int,
        weights: Floats32,
        optimiser: Optimiser,
        gradient: Floats32,
    ) -> None:
        train_queries(
            queries, self._inputs, self._layers, weights, self._mixture, self._documents,
            workspace_at(self._workspaces, block), optimiser, gradient,
        )  # fmt: skip

    def _train_batch(
        self,
        queries: Integers,
        weights: Floats32,
        optimiser: Optimiser,
        gradients: Floats32,
    ) -> None:
        """Take one step for all these queries, which are divided into blocks.

        The gradients of the blocks are added in their order, whichever thread is done first.
        """
        n_blocks = len(gradients)
        bounds = [len(queries) * k // n_blocks for k in range(n_blocks + 1)]

        def train_blocks(first: int, last: int) -> None:
            for block in range(first, last):
                part = queries[bounds[block] : bounds[block + 1]]
                self._train(part, block, weights, optimiser, gradients[block])

        parallel_for(train_blocks, n_blocks)
        # Weights may diverge in the middle of an epoch; the learner looks at them after it.
        with np.errstate(over="ignore", invalid="ignore"):
            total = gradients.sum(axis=0)
            gradients[:] = 0.0
            if len(optimiser.adam.first_moment):
                adam_step(weights, total, optimiser, optimiser.adam.n_steps + 1)
            else:
                weights += optimiser.coefficients[0] * total

    def _calls(self, order: Integers) -> list[Integers]:
        """Divide an order into calls of the kernel: a batch, or many queries of a step each."""
        n_queries = self._queries_per_step
        # Gradients that no kernel computes must be of the weights after the step before, so that
        # every query then is a call.
        if n_queries == 1 and self._mixture is not self._precomputed:
            n_queries = max(1, int(DOCS_PER_CALL / max(self._sizes.mean(), 1.0)))
        return [order[begin : begin + n_queries] for begin in range(0, len(order), n_queries)]

    def _precompute_lambdas(self, queries: Integers, epoch: int, weights: Floats32) -> None:
        """Score some queries and compute their lambdas, for objectives that kernels cannot."""
        documents = self._documents
        workspace = workspace_at(self._workspaces, 0)
        for q in queries:
            first, last = int(self._offsets[q]), int(self._offsets[q + 1])
            documents.scores[first:last] = documents.start[first:last]
            score_documents(
                self._inputs, self._layers, weights, workspace, first, last, documents.scores
            )
        scores, lambdas, hessians = (
            array[np.newaxis] for array in (documents.scores, documents.lambdas, documents.hessians)
        )
        chosen = np.zeros(len(self._sizes), np.bool_)
        chosen[queries] = True
        self._gradients.gradients_of(chosen, scores, epoch, lambdas, hessians)


def compile_training() -> None:
    """Compile what training takes, by an epoch on the smallest data; see `compile_ahead`."""
    X = np.arange(4, dtype=np.float32)[:, None]
    offsets = np.array([0, 4])
    # Of RankNet, because measures would take another kernel.
    gradients = RankNet().prepare(Targets({None: np.arange(4.0)}, offsets, 4.0))
    net = Net.draw(Standardiser.fit(X, None, 4), (2,), "relu", np.random.default_rng(0))
    runner = EpochRunner(net, X, None, offsets, gradients, np.zeros(4), 1)
    weights = net.packed()
    runner.run(np.zeros(1, np.int64), 0, weights, AdamState.empty(), 0.1)


def _precomputed(offsets: Integers) -> ObjectiveArrays:
    """Return the arrays of an objective whose gradients are computed before the kernel runs."""
    none, places = frozen(NO_NUMBERS), frozen(NO_PLACES)
    return ObjectiveArrays(
        PRECOMPUTED, 0, 0, 0, 0.0, frozen(np.ascontiguousarray(offsets)), none, places, none, none,
        places, none, none,
    )  # fmt: skip
