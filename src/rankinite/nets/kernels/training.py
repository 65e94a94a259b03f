"""The kernels that teach a net: forward, lambdas and backward of a query, then better weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel
from rankinite.core.types import Floats
from rankinite.nets.kernels.forward import (
    Layers,
    Room,
    Source,
    backward,
    fill_inputs,
    filled,
    forward,
)
from rankinite.objectives.kernels.arrays import ObjectiveMixture
from rankinite.objectives.kernels.dispatch import (
    mixture_gradients,
    new_scratch,
    query_gradients,
)

# The kind of an objective whose gradients were computed before.
GIVEN = -1

Numbers = NDArray[Any]


class Documents(NamedTuple):
    """One number for each document of the data set.

    Attributes
    ----------
    start
        The scores that the net's are added to.
    scores, lambdas, slopes
        The scores, the lambdas, and how fast these fall when scores rise.
    spare
        Two rows, if the objective is a mixture of several; else nothing.
    """

    start: Floats
    scores: Floats
    lambdas: Floats
    slopes: Floats
    spare: Floats


class Adam(NamedTuple):
    """The moments of Adam, and its numbers, as arrays of the weights' kind.

    Attributes
    ----------
    first, second
        Running means of the gradient and of its square.
    numbers
        The learning rate, the two rates of decay, what is added to the root, and what weights are
        multiplied by before a step.
    """

    first: Numbers
    second: Numbers
    numbers: Numbers


@kernel
def query_scores(
    first: int,
    n: int,
    source: Source,
    layers: Layers,
    weights: Numbers,
    documents: Documents,
    room: Room,
) -> int:
    """Score the documents of a query; return where its pushes are to be put."""
    fill_inputs(source, first, n, room.activity, layers.strides[0])
    at = forward(n, layers, weights, room)
    for i in range(n):
        documents.scores[first + i] = documents.start[first + i] + room.activity[at + i]
    return at


@kernel
def query_gradient(
    first: int,
    n: int,
    at: int,
    layers: Layers,
    weights: Numbers,
    lambdas: Floats,
    room: Room,
    rate: float,
    target: Numbers,
) -> None:
    """Add what the lambdas of a query ask of the weights to the target."""
    moves = False
    for i in range(filled(n)):
        push = lambdas[first + i] * rate if i < n else 0.0
        room.pushes[at + i] = push
        moves |= push != 0.0
    if moves:
        backward(n, layers, weights, room, target)


@kernel
def adam_step(weights: Numbers, gradient: Numbers, adam: Adam, n_steps: int) -> None:
    """Move the weights by a step of Adam, upwards, and clear the gradient."""
    one, zero = weights.dtype.type(1.0), weights.dtype.type(0.0)
    numbers = adam.numbers
    rate, beta, gamma, epsilon, keep = (
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    )  # fmt: skip
    first_left = one - beta**n_steps
    second_left = one - gamma**n_steps
    step = weights.dtype.type(rate / first_left)
    root = weights.dtype.type(one / second_left)
    for k in range(len(weights)):
        g = gradient[k]
        first = beta * adam.first[k] + (one - beta) * g
        second = gamma * adam.second[k] + (one - gamma) * g * g
        adam.first[k] = first
        adam.second[k] = second
        weights[k] = keep * weights[k] + step * first / (np.sqrt(second * root) + epsilon)
        gradient[k] = zero


@kernel
def go_through(
    queries: NDArray[np.int64],
    source: Source,
    layers: Layers,
    weights: Numbers,
    mixture: ObjectiveMixture,
    documents: Documents,
    room: Room,
    by_query: bool,
    rate: float,
    adam: Adam,
    n_steps: int,
    gradient: Numbers,
) -> None:
    """Add up the gradients of queries; or take one step a query, in this order.

    Without moments steps go straight along the lambdas.
    """
    objective = mixture.parts[0]
    offsets, lambdas, slopes = objective.offsets, documents.lambdas, documents.slopes
    is_alone = (
        mixture.mixture_weights[0] == 1.0
    )  # then the others need not be handed on for every query
    scratch = new_scratch(len(objective.rank_weights))
    straight = by_query and len(adam.first) == 0
    target = weights if straight else gradient
    for q in queries:
        first = offsets[q]
        n = offsets[q + 1] - first
        at = query_scores(first, n, source, layers, weights, documents, room)
        if not is_alone:
            mixture_gradients(
                q, documents.scores, mixture, scratch, documents.spare, lambdas, slopes
            )
        elif objective.kind != GIVEN:
            query_gradients(q, documents.scores, objective, scratch, lambdas, slopes)
        query_gradient(
            first, n, at, layers, weights, lambdas, room, rate if straight else 1.0, target
        )
        if by_query and not straight:
            n_steps += 1
            adam_step(weights, gradient, adam, n_steps)
