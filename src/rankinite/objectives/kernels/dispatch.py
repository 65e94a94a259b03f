"""The kernels that add up the lambdas of several plans, query by query."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel, parallel_kernel, prange
from rankinite.objectives.kernels.arrays import (
    CENTRED_SQUARED_ERROR,
    LOGISTIC,
    PAIRS,
    SQUARED_ERROR,
    Blend,
    Plan,
    Scratch,
)
from rankinite.objectives.kernels.constructions import query_constructed
from rankinite.objectives.kernels.pairwise import BY_DEVIATION, LEAST_SQUARES, lambdas_between
from rankinite.objectives.kernels.pairwise import new_scratch as new_scratch
from rankinite.objectives.kernels.pointwise import query_centred, query_logistic, query_residuals


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


@kernel
def plan_lambdas(
    q: int,
    scores: NDArray[np.float64],
    plan: Plan,
    scratch: Scratch,
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Write lambdas and weights of the documents of query q, whatever kind the plan is of.

    Scores and out arrays have one number for each document of the data set; only those of the
    query are read and written.
    """
    first, last = plan.offsets[q], plan.offsets[q + 1]
    labels, weights = plan.values, plan.doc_weight
    if plan.kind == PAIRS:
        every = scratch.every
        lambdas_between(q, q + 1, scores, plan, scratch, every, out_lambda, out_weight)
    elif plan.kind == SQUARED_ERROR:
        query_residuals(first, last, scores, labels, weights, out_lambda, out_weight)
    elif plan.kind == CENTRED_SQUARED_ERROR:
        query_centred(first, last, scores, labels, weights, out_lambda, out_weight)
    elif plan.kind == LOGISTIC:
        query_logistic(first, last, scores, labels, weights, out_lambda, out_weight)
    else:
        query_constructed(q, scores, plan, scratch, out_lambda, out_weight)


@kernel
def blend_lambdas(
    q: int,
    scores: NDArray[np.float64],
    blend: Blend,
    scratch: Scratch,
    spare: NDArray[np.float64],
    out_lambda: NDArray[np.float64],
    out_weight: NDArray[np.float64],
) -> None:
    """Write lambdas and weights of the documents of query q by all plans together.

    ``spare`` has two rows like the out arrays, unless one plan is followed alone.
    """
    plans, shares = blend.plans, blend.shares
    if shares[0] == 1.0:
        plan_lambdas(q, scores, plans[0], scratch, out_lambda, out_weight)
        return
    first, last = plans[0].offsets[q], plans[0].offsets[q + 1]
    lambdas, weights = spare[0], spare[1]
    for p in range(len(plans)):
        if shares[p] > 0.0:
            plan_lambdas(q, scores, plans[p], scratch, lambdas, weights)
        add_share(first, last, p == 0, shares[p], lambdas, weights, out_lambda, out_weight)
    scale_blended(first, last, blend.normalise, blend.query_weight[q], out_lambda, out_weight)
