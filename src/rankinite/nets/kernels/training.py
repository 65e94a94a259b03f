"""Train a net query by query: forward pass, lambdas, backward pass, then a step of the weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel
from rankinite.core.types import Floats
from rankinite.nets.kernels.backprop import (
    Inputs,
    Layers,
    Numbers,
    Workspace,
    backward,
    fill_inputs,
    forward,
    padded,
)
from rankinite.objectives.kernels.arrays import ObjectiveMixture
from rankinite.objectives.kernels.dispatch import (
    mixture_gradients,
    new_scratch,
    query_gradients,
)

# The kind of an objective whose gradients were computed before the kernel was called.
PRECOMPUTED = -1


class Documents(NamedTuple):
    """One number for each document of the data set.

    Attributes
    ----------
    start
        Scores that the net's are added to.
    scores, lambdas, hessians
        Scores, lambdas, and hessians, which nets do not use.
    spare
        Two rows of scratch if the objective is a mixture of several; otherwise empty.
    """

    start: Floats
    scores: Floats
    lambdas: Floats
    hessians: Floats
    spare: Floats


class Optimiser(NamedTuple):
    """Adam or plain gradient steps, with arrays of the weights' type.

    Attributes
    ----------
    first_moment, second_moment
        Adam's running means of the gradient and of its square; empty for plain gradient steps.
    coefficients
        Learning rate, the decay rates of both moments, what is added to the root, and what weights
        are multiplied by before a step.
    learning_rate
        Learning rate in 64 bits, which plain gradient steps multiply lambdas by.
    steps_per_query
        Whether each query makes a step; otherwise gradients are only added up.
    n_steps
        Number of steps taken before.
    """

    first_moment: Numbers
    second_moment: Numbers
    coefficients: Numbers
    learning_rate: float
    steps_per_query: bool
    n_steps: int


@kernel
def score_query(
    first: int,
    n: int,
    inputs: Inputs,
    layers: Layers,
    weights: Numbers,
    documents: Documents,
    workspace: Workspace,
) -> int:
    """Score the n documents of a query; return where in the workspace their deltas belong."""
    fill_inputs(inputs, first, n, workspace.activations, layers.strides[0])
    scores_at = forward(n, layers, weights, workspace)
    for i in range(n):
        documents.scores[first + i] = (
            documents.start[first + i] + workspace.activations[scores_at + i]
        )
    return scores_at


@kernel
def add_query_gradient(
    n: int,
    scores_at: int,
    layers: Layers,
    weights: Numbers,
    lambdas: Floats,
    rate: float,
    workspace: Workspace,
    target: Numbers,
) -> None:
    """Add the gradient of a query's weights, times a rate, to the target."""
    any_delta = False
    for i in range(padded(n)):
        delta = lambdas[i] * rate if i < n else 0.0
        workspace.deltas[scores_at + i] = delta
        any_delta |= delta != 0.0
    # Many queries, such as those with a single grade, have no lambdas at all.
    if any_delta:
        backward(n, layers, weights, workspace, target)


@kernel
def adam_step(weights: Numbers, gradient: Numbers, optimiser: Optimiser, n_steps: int) -> None:
    """Move the weights by a step of Adam, upwards, and clear the gradient.

    ``n_steps`` counts this step, too.
    """
    unity, zero = weights.dtype.type(1.0), weights.dtype.type(0.0)
    first_moment, second_moment = optimiser.first_moment, optimiser.second_moment
    coefficients = optimiser.coefficients
    rate, beta_1, beta_2 = coefficients[0], coefficients[1], coefficients[2]
    epsilon, keep = coefficients[3], coefficients[4]
    # Moments begin with 0: dividing by these removes the bias of the first steps.
    first_correction = unity - beta_1**n_steps
    second_correction = unity - beta_2**n_steps
    step = weights.dtype.type(rate / first_correction)
    root = weights.dtype.type(unity / second_correction)
    for k in range(len(weights)):
        g = gradient[k]
        first = beta_1 * first_moment[k] + (unity - beta_1) * g
        second = beta_2 * second_moment[k] + (unity - beta_2) * g * g
        first_moment[k] = first
        second_moment[k] = second
        weights[k] = keep * weights[k] + step * first / (np.sqrt(second * root) + epsilon)
        gradient[k] = zero


@kernel
def train_queries(
    queries: NDArray[np.int64],
    inputs: Inputs,
    layers: Layers,
    weights: Numbers,
    mixture: ObjectiveMixture,
    documents: Documents,
    workspace: Workspace,
    optimiser: Optimiser,
    gradient: Numbers,
) -> None:
    """Add up the gradients of queries, or take a step for each of them, in this order."""
    objective = mixture.parts[0]
    offsets, lambdas, hessians = objective.offsets, documents.lambdas, documents.hessians
    # Handing on a mixture for each query costs a reference count per array of all its parts.
    is_alone = mixture.mixture_weights[0] == 1.0
    scratch = new_scratch(len(objective.rank_weights))
    steps_per_query, n_steps = optimiser.steps_per_query, optimiser.n_steps
    # A plain gradient step needs no gradient array: the weights themselves are the target.
    is_plain = steps_per_query and len(optimiser.first_moment) == 0
    target = weights if is_plain else gradient
    rate = optimiser.learning_rate if is_plain else 1.0
    for q in queries:
        first, last = offsets[q], offsets[q + 1]
        n = last - first
        scores_at = score_query(first, n, inputs, layers, weights, documents, workspace)
        if not is_alone:
            mixture_gradients(
                q, documents.scores, mixture, scratch, documents.spare, lambdas, hessians
            )
        elif objective.kind != PRECOMPUTED:
            query_gradients(q, documents.scores, objective, scratch, lambdas, hessians)
        add_query_gradient(
            n, scores_at, layers, weights, lambdas[first:last], rate, workspace, target
        )
        if steps_per_query and not is_plain:
            n_steps += 1
            adam_step(weights, gradient, optimiser, n_steps)
