"""The kernel of the sigmoid cost: pairs push each other most where their scores are close.

With o the better document's score less the other's and x = exp(o + mu), a pair's push is
x / (1 + x)^2 times what a swap changes (Objectives, Eqs. 14 and 15). For ranks u < v, with
t = exp(s_v - s_u) and m = exp(mu), that factor is m t / (m + t)^2 if the upper document is the
better one, and m t / (1 + m t)^2 if the lower one is.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import inlined_kernel, kernel, summing_kernel
from rankinite.objectives.distances import fill_exponentials, least_distance
from rankinite.objectives.kernels import LANES
from rankinite.objectives.swaps import (
    INVERSE,
    LAMBDA,
    LOWER,
    SCALE,
    SCORE,
    UPPER,
    VALUE,
    E,
    Ranked,
)


@inlined_kernel
def sigmoid_push(more: float, fall: float, distance: float, t: float, m: float) -> float:
    """Return what a pair adds to the lambda of its upper document."""
    below = m + t if more > 0.0 else 1.0 + m * t
    return fall * (m * t) / (below * below * distance)


@summing_kernel
def push_sigmoid_near(
    flat: NDArray[np.float64], width: int, n: int, reach: int, m: float, least: float, slope: float
) -> float:
    """Add up the lambdas of all pairs u < v with u < reach; the loop is that of `push_rows`."""
    total = 0.0
    if width < 0:  # never; but now the compiler knows that no index is negative
        return total
    for u in range(reach):
        value, upper = flat[VALUE * width + u], flat[UPPER * width + u]
        scale, inverse = flat[SCALE * width + u], flat[INVERSE * width + u]
        score = flat[SCORE * width + u]
        lam = 0.0
        size = 0.0
        for k in range((n - u + LANES - 2) // LANES * LANES):
            v = u + 1 + k
            more = value - flat[VALUE * width + v]
            fall = more * (upper - flat[LOWER * width + v])
            distance = least + slope * (score - flat[SCORE * width + v])
            a = sigmoid_push(more, fall, distance, inverse * flat[E * width + v], m)
            lam += a
            size += abs(a)
            flat[LAMBDA * width + v] -= a * scale
        flat[LAMBDA * width + u] += lam * scale
        total += size * scale
    return total


@kernel
def push_sigmoid(r: Ranked, n: int, reach: int, mu: float, by_distance: bool) -> float:
    """Set lambdas, and weights to 0; return the sum of the sizes of the pairs' lambdas."""
    least, slope = least_distance(r, 0, n - 1, by_distance)
    m = math.exp(mu)
    if fill_exponentials(r, n):
        for k in range(n, n + LANES):  # as in `kernels.push_all`: they push nobody
            r[VALUE, k] = -1.0
            r[LOWER, k] = 0.0
            r[SCORE, k] = r[SCORE, n - 1]
            r[E, k] = 0.0
        return push_sigmoid_near(r.reshape(r.size), r.shape[1], n, reach, m, least, slope)
    total = 0.0
    for u in range(reach):
        for v in range(u + 1, n):
            more = r[VALUE, u] - r[VALUE, v]
            fall = more * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
            apart = r[SCORE, u] - r[SCORE, v]
            a = sigmoid_push(more, fall, least + slope * apart, math.exp(-apart), m)
            total += abs(a)
            r[LAMBDA, u] += a
            r[LAMBDA, v] -= a
    return total
