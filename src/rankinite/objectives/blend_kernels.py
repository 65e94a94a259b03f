"""The kernels that add up the lambdas of several plans, query by query."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import kernel, parallel_kernel, prange
from rankinite.objectives.kernels import BY_DEVIATION, LEAST_SQUARES


@kernel
def add_share(
    first: int,
    last: int,
    begins: bool,
    share: float,
    lambdas: NDArray[np.float64],
    weights: NDArray[np.float64],
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Add a share of a plan's lambdas and weights to the sum, which may begin with it."""
    if begins:
        for i in range(first, last):
            out_lambda[i] = 0.0
            out_weight[i] = 0.0
    if share > 0.0:
        for i in range(first, last):
            out_lambda[i] += share * lambdas[i]
            out_weight[i] += share * weights[i]


@kernel
def scale_blended(
    first: int,
    last: int,
    normalise: int,
    weight: float,
    lambdas: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> None:
    """Multiply a query's lambdas and weights by its weight, over the lambdas' deviation if asked.

    Lambdas without any deviation become 0.
    """
    factor = weight
    if normalise == BY_DEVIATION:
        n = last - first
        total = 0.0
        for i in range(first, last):
            total += lambdas[i]
        mean = total / n
        squares = 0.0
        for i in range(first, last):
            squares += (lambdas[i] - mean) * (lambdas[i] - mean)
        factor = weight * math.sqrt(n / squares) if squares > LEAST_SQUARES else 0.0
    for i in range(first, last):
        lambdas[i] *= factor
        weights[i] *= factor


@parallel_kernel
def add_shares(
    offsets: NDArray[np.int64],
    blocks: NDArray[np.int64],
    wanted: NDArray[np.bool_],
    shares: NDArray[np.float64],
    normalise: int,
    query_weight: NDArray[np.float64],
    lambdas: NDArray[np.float64],
    weights: NDArray[np.float64],
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Write the sums of all queries that are ``wanted``, or of all if that is empty.

    ``lambdas`` and ``weights`` have one row a plan.
    """
    for block in prange(len(blocks) - 1):
        for q in range(blocks[block], blocks[block + 1]):
            if len(wanted) > 0 and not wanted[q]:
                continue
            first, last = offsets[q], offsets[q + 1]
            for p in range(len(shares)):
                add_share(
                    first, last, p == 0, shares[p], lambdas[p], weights[p], out_lambda, out_weight
                )
            scale_blended(first, last, normalise, query_weight[q], out_lambda, out_weight)
