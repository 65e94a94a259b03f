"""Adam: its running moments, its step, and how it is told apart from plain gradient steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankinite.core.jit import kernel
from rankinite.nets.kernels.forward import Numbers

# Adam's usual decay rates of the first and second moment, and its guard against division by 0.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """Running moments of Adam, and the number of steps taken.

    Attributes
    ----------
    first_moment, second_moment
        Running means of the gradient and of its square; empty for plain gradient steps.
    n_steps
        Number of steps taken.
    """

    first_moment: Numbers
    second_moment: Numbers
    n_steps: int = 0

    @classmethod
    def zeros(cls, n_weights: int) -> AdamState:
        """Return the state before the first step."""
        return cls(np.zeros(n_weights, np.float32), np.zeros(n_weights, np.float32))

    @classmethod
    def empty(cls) -> AdamState:
        """Return the state of plain gradient steps, which have no moments."""
        return cls.zeros(0)

    def copy(self) -> AdamState:
        """Return a state that can be changed without changing this one."""
        return AdamState(self.first_moment.copy(), self.second_moment.copy(), self.n_steps)


class Optimiser(NamedTuple):
    """Adam or plain gradient steps, with arrays of the weights' type.

    Attributes
    ----------
    adam
        The state of Adam before the call; the kernels change its moments.
    coefficients
        Learning rate, the decay rates of both moments, what is added to the root, and what weights
        are multiplied by before a step.
    learning_rate
        Learning rate in 64 bits, which plain gradient steps multiply lambdas by.
    steps_per_query
        Whether each query makes a step; otherwise gradients are only added up.
    """

    adam: AdamState
    coefficients: Numbers
    learning_rate: float
    steps_per_query: bool


@kernel
def adam_step(weights: Numbers, gradient: Numbers, optimiser: Optimiser, n_steps: int) -> None:
    """Move the weights by a step of Adam, upwards, and clear the gradient.

    ``n_steps`` counts this step, too.
    """
    unity, zero = weights.dtype.type(1.0), weights.dtype.type(0.0)
    first_moment, second_moment = optimiser.adam.first_moment, optimiser.adam.second_moment
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
