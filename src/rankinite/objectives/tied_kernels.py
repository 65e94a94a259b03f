"""The kernel of tied pairs: only documents of one group push each other (Objectives, Sec. 4.2).

What a swap costs depends on true ranks; who makes pairs with whom is another matter. So rows are
filled as for `Lambdas`, and only then the pairs of each group are gone through.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import kernel
from rankinite.objectives.distances import fill_exponentials, least_distance
from rankinite.objectives.kernels import push
from rankinite.objectives.swaps import (
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
