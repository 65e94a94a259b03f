"""The kernels that teach a net: forward, lambdas and backward of a query, then better weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import kernel
from rankinite.nets.kernels import backward, fill_inputs, filled, forward
from rankinite.nets.parts import Layers, Room, Source
from rankinite.objectives.plan import Blend, Scratch
from rankinite.objectives.plan_kernels import blend_lambdas, new_scratch

# The kind of a plan whose lambdas were computed before.
GIVEN = -1

Numbers = NDArray[Any]
Floats = NDArray[np.float64]


class Documents(NamedTuple):
    """One number for each document of the data set.

    Attributes
    ----------
    start
        The scores that the net's are added to.
    scores, lambdas, slopes
        The scores, the lambdas, and how fast these fall when scores rise.
    spare
        Two rows, if several plans are followed; else nothing.
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
def query_gradient(
    q: int,
    source: Source,
    layers: Layers,
    weights: Numbers,
    blend: Blend,
    documents: Documents,
    room: Room,
    scratch: Scratch,
    rate: float,
    target: Numbers,
) -> None:
    """Score a query, find its lambdas, and add what they ask of the weights to the target."""
    plan = blend.plans[0]
    first = plan.offsets[q]
    n = plan.offsets[q + 1] - first
    fill_inputs(source, first, n, room.activity, layers.strides[0])
    at = forward(n, layers, weights, room)
    for i in range(n):
        documents.scores[first + i] = documents.start[first + i] + room.activity[at + i]
    if plan.kind != GIVEN:
        blend_lambdas(
            q, documents.scores, blend, scratch, documents.spare, documents.lambdas,
            documents.slopes,
        )  # fmt: skip
    moves = False
    for i in range(filled(n)):
        push = documents.lambdas[first + i] * rate if i < n else 0.0
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
    blend: Blend,
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
    scratch = new_scratch(len(blend.plans[0].rank_weights))
    straight = by_query and len(adam.first) == 0
    target = weights if straight else gradient
    for q in queries:
        query_gradient(
            q, source, layers, weights, blend, documents, room, scratch, rate if straight else 1.0,
            target,
        )  # fmt: skip
        if by_query and not straight:
            n_steps += 1
            adam_step(weights, gradient, adam, n_steps)
