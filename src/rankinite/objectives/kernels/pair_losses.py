"""How far apart scores are, for kernels that go through pairs one by one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel, summing_kernel
from rankinite.objectives.kernels.pairwise import LANES, LEAST_DISTANCE, WIDEST_SPREAD, push
from rankinite.objectives.kernels.swaps import (
    INVERSE,
    LAMBDA,
    LOWER,
    SCALE,
    SCORE,
    UPPER,
    VALUE,
    WEIGHT,
    E,
    Ranked,
)


@kernel
def fill_exponentials(r: Ranked, n: int) -> bool:
    """Clear lambdas and weights; fill ``e``, and its inverse, unless scores spread too far."""
    for k in range(n + LANES):
        r[LAMBDA, k] = 0.0
        r[WEIGHT, k] = 0.0
    if r[SCORE, 0] - r[SCORE, n - 1] > WIDEST_SPREAD:
        return False
    for k in range(n):
        r[E, k] = math.exp(r[SCORE, k] - r[SCORE, 0])
        r[INVERSE, k] = 1.0 / r[E, k]
    return True


@kernel
def least_distance(r: Ranked, first: int, last: int, by_distance: bool) -> tuple[float, float]:
    """Return what distances are at least, and what they are multiplied by, as in `push_all`."""
    if by_distance and r[SCORE, first] > r[SCORE, last]:
        return LEAST_DISTANCE, 1.0
    return 1.0, 0.0


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


@kernel
def ranks_by_group(
    groups: NDArray[np.int64],
    start: int,
    order: NDArray[np.int64],
    n: int,
    ends: NDArray[np.int64],
    ranks: NDArray[np.int64],
) -> int:
    """Put the ranks of each group behind those of the group before; return how many there are.

    The ranks of group g are ``ranks[ends[g - 1]]`` to ``ranks[ends[g] - 1]``, from the top.
    """
    n_groups = 0
    for g in range(n):
        ends[g] = 0
    for k in range(n):
        group = groups[start + order[k]]
        if group >= 0:
            ends[group] += 1
            n_groups = max(n_groups, group + 1)
    total = 0
    for g in range(n_groups):
        count = ends[g]
        ends[g] = total
        total += count
    for k in range(n):
        group = groups[start + order[k]]
        if group >= 0:
            ranks[ends[group]] = k
            ends[group] += 1
    return n_groups


@kernel
def push_tied(
    r: Ranked,
    order: NDArray[np.int64],
    keys: NDArray[np.int64],
    groups: NDArray[np.int64],
    start: int,
    n: int,
    reach: int,
    by_distance: bool,
) -> float:
    """Set lambdas and weights; return the sum of the sizes of the pairs' lambdas."""
    ends, ranks = keys[0], keys[1]
    n_groups = ranks_by_group(groups, start, order, n, ends, ranks)
    near = fill_exponentials(r, n)
    first, last = n - 1, 0
    for i in range(ends[n_groups - 1] if n_groups > 0 else 0):
        first, last = min(first, ranks[i]), max(last, ranks[i])
    least, slope = least_distance(r, first, last, by_distance)
    total = 0.0
    begin = 0
    for g in range(n_groups):
        end = ends[g]
        for i in range(begin, end):
            u = ranks[i]
            if u >= reach:
                break
            for j in range(i + 1, end):
                v = ranks[j]
                more = r[VALUE, u] - r[VALUE, v]
                fall = more * (r[UPPER, u] - r[LOWER, v]) * r[SCALE, u]
                distance = r[SCORE, u] - r[SCORE, v]
                t = r[INVERSE, u] * r[E, v] if near else math.exp(-distance)
                a, b, c = push(more, fall, least + slope * distance, t)
                total += b
                r[LAMBDA, u] += a
                r[LAMBDA, v] -= a
                r[WEIGHT, u] += c
                r[WEIGHT, v] += c
        begin = end
    return total
