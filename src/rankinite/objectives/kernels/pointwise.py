"""Kernels of pointwise losses, for all documents at once or those of one query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.elementary import exponential
from rankinite.core.jit import inlined_kernel, kernel
from rankinite.objectives.kernels.arrays import CENTRED_SQUARED_ERROR, LOGISTIC, ObjectiveArrays

# Exponents are clipped to this size: exp(-700) is nearly 0, and exp(710) would overflow.
FARTHEST = 700.0


@kernel
def all_pointwise_gradients(
    first_query: int,
    last_query: int,
    scores: NDArray[np.float64],
    arrays: ObjectiveArrays,
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write gradients and hessians of all documents, by a loss of one output."""
    kind, offsets, targets, weights = arrays.kind, arrays.offsets, arrays.values, arrays.doc_weight
    for q in range(first_query, last_query):
        first, last = offsets[q], offsets[q + 1]
        pointwise_gradients(kind, first, last, scores, targets, weights, out_gradient, out_hessian)


@kernel
def add_regression(
    first_query: int,
    last_query: int,
    scores: NDArray[np.float64],
    arrays: ObjectiveArrays,
    selected: NDArray[np.bool_],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Add the centred residuals of the ``selected`` queries, or of all if that mask is empty."""
    offsets, targets, weights = arrays.offsets, arrays.values, arrays.doc_weight
    for q in range(first_query, last_query):
        if len(selected) > 0 and not selected[q]:
            continue
        first, last = offsets[q], offsets[q + 1]
        mean = mean_residual(first, last, scores, targets, weights)
        for i in range(first, last):
            out_gradient[i] += weights[i] * (targets[i] - scores[i] - mean)
            out_hessian[i] += weights[i]


@kernel
def mean_residual(
    first: int,
    last: int,
    scores: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> float:
    """Return the weighted mean of target less score from first to last - 1; 0 without weight."""
    total = 0.0
    total_weight = 0.0
    for i in range(first, last):
        total += weights[i] * (targets[i] - scores[i])
        total_weight += weights[i]
    return total / total_weight if total_weight > 0.0 else 0.0


@kernel
def pointwise_gradients(
    kind: int,
    first: int,
    last: int,
    scores: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write gradients and hessians of the documents of a query, from first to last - 1.

    They are weighted residuals, less the weighted mean residual of the query if the squared error
    is centred; or weight x (target - predicted chance), and weight x p (1 - p).
    """
    if kind == LOGISTIC:
        for i in range(first, last):
            out_gradient[i], out_hessian[i] = logistic_gradient(scores[i], targets[i], weights[i])
        return
    mean = 0.0
    if kind == CENTRED_SQUARED_ERROR:
        mean = mean_residual(first, last, scores, targets, weights)
    for i in range(first, last):
        out_gradient[i] = weights[i] * (targets[i] - scores[i] - mean)
        out_hessian[i] = weights[i]


@inlined_kernel
def logistic_gradient(score: float, chance: float, weight: float) -> tuple[float, float]:
    """Return weight x (target - predicted chance) and weight x p (1 - p) of a document."""
    # Computed from the smaller of p and 1 - p, so that neither loses digits by cancellation.
    small = exponential(-min(abs(score), FARTHEST))
    large = 1.0 / (1.0 + small)
    p = large if score > 0.0 else small * large
    return weight * (chance - p), weight * small * large * large


@kernel
def multi_class(
    first_doc: int,
    last_doc: int,
    scores: NDArray[np.float64],
    classes: NDArray[np.int64],
    weights: NDArray[np.float64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write weight x (target - predicted chance) x (K - 1) / K and weight x p (1 - p)."""
    n_classes = len(scores)
    # The factor that Friedman's multi-class boosting has in its step.
    step = (n_classes - 1.0) / n_classes
    for i in range(first_doc, last_doc):
        # Less the largest score, so that no exponential overflows and their sum is at least 1.
        largest = scores[0, i]
        for c in range(1, n_classes):
            largest = max(largest, scores[c, i])
        total = 0.0
        for c in range(n_classes):
            out_gradient[c, i] = exponential(max(scores[c, i] - largest, -FARTHEST))
            total += out_gradient[c, i]
        for c in range(n_classes):
            p = out_gradient[c, i] / total
            others = (total - out_gradient[c, i]) / total
            target = 1.0 if classes[i] == c else 0.0
            out_gradient[c, i] = weights[i] * step * (target - p)
            out_hessian[c, i] = weights[i] * p * others
