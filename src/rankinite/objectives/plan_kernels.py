"""The kernels that follow any plan, and several: the lambdas of a query, inside a kernel.

A net scores a query, asks for its lambdas and goes backwards through its layers in one kernel;
it makes scratch once, with `new_scratch`, and calls `blend_lambdas` once a query.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import kernel
from rankinite.objectives.blend_kernels import add_share, scale_blended
from rankinite.objectives.construction_kernels import query_constructed
from rankinite.objectives.kernels import lambdas_between
from rankinite.objectives.kernels import new_scratch as new_scratch
from rankinite.objectives.plan import (
    CENTRED_SQUARED_ERROR,
    LOGISTIC,
    PAIRS,
    SQUARED_ERROR,
    Blend,
    Plan,
    Scratch,
)
from rankinite.objectives.pointwise_kernels import query_centred, query_logistic, query_residuals


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
