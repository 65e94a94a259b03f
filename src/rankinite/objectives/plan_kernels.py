"""The one kernel that follows any plan: the lambdas of a query, inside a kernel of one's own.

A net scores a query, asks for its lambdas and goes backwards through its layers in one kernel;
it makes scratch once, with `new_scratch`, and calls `plan_lambdas` once a query.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import kernel
from rankinite.objectives.construction_kernels import query_constructed
from rankinite.objectives.kernels import lambdas_between
from rankinite.objectives.kernels import new_scratch as new_scratch
from rankinite.objectives.plan import (
    CENTRED_SQUARED_ERROR,
    LOGISTIC,
    PAIRS,
    SQUARED_ERROR,
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
