"""Kernels of pointwise losses, for all documents at once or those of one query."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel, parallel_kernel, prange

# Exponents are clipped to this size: exp(-700) is nearly 0, and exp(710) would overflow.
FARTHEST = 700.0


@kernel
def query_residuals(
    first: int,
    last: int,
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    weights: NDArray[np.float64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write weighted residuals of the documents from first to last - 1."""
    for i in range(first, last):
        out_gradient[i] = (labels[i] - scores[i]) * weights[i]
        out_hessian[i] = weights[i]


@kernel
def query_centred(
    first: int,
    last: int,
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    weights: NDArray[np.float64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write weighted residuals less the weighted mean residual of a query."""
    total = 0.0
    total_weight = 0.0
    for i in range(first, last):
        out_gradient[i] = labels[i] - scores[i]
        out_hessian[i] = weights[i]
        total += weights[i] * out_gradient[i]
        total_weight += weights[i]
    mean = total / total_weight if total_weight > 0.0 else 0.0
    for i in range(first, last):
        out_gradient[i] = weights[i] * (out_gradient[i] - mean)


@parallel_kernel
def centred(
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    weights: NDArray[np.float64],
    offsets: NDArray[np.int64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write weighted residuals less the weighted mean residual of each query."""
    for q in prange(len(offsets) - 1):
        first, last = offsets[q], offsets[q + 1]
        query_centred(first, last, scores, labels, weights, out_gradient, out_hessian)


@inlined_kernel
def logistic_gradient(score: float, chance: float, weight: float) -> tuple[float, float]:
    """Return weight x (target - predicted chance) and weight x p (1 - p) of a document."""
    # Computed from the smaller of p and 1 - p, so that neither loses digits by cancellation.
    small = math.exp(-min(abs(score), FARTHEST))
    large = 1.0 / (1.0 + small)
    p = large if score > 0.0 else small * large
    return weight * (chance - p), weight * small * large * large


@kernel
def query_logistic(
    first: int,
    last: int,
    scores: NDArray[np.float64],
    chances: NDArray[np.float64],
    weights: NDArray[np.float64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write gradients and hessians of the documents from first to last - 1."""
    for i in range(first, last):
        out_gradient[i], out_hessian[i] = logistic_gradient(scores[i], chances[i], weights[i])


@parallel_kernel
def logistic(
    scores: NDArray[np.float64],
    chances: NDArray[np.float64],
    weights: NDArray[np.float64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write weight x (target - predicted chance) and weight x p (1 - p)."""
    for i in prange(len(scores)):
        out_gradient[i], out_hessian[i] = logistic_gradient(scores[i], chances[i], weights[i])


@parallel_kernel
def multi_class(
    scores: NDArray[np.float64],
    classes: NDArray[np.int64],
    weights: NDArray[np.float64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write weight x (target - predicted chance) x (K - 1) / K and weight x p (1 - p)."""
    n_classes = len(scores)
    step = (n_classes - 1.0) / n_classes
    for i in prange(scores.shape[1]):
        largest = scores[0, i]
        for c in range(1, n_classes):
            largest = max(largest, scores[c, i])
        total = 0.0
        for c in range(n_classes):
            out_gradient[c, i] = math.exp(max(scores[c, i] - largest, -FARTHEST))
            total += out_gradient[c, i]
        for c in range(n_classes):
            p = out_gradient[c, i] / total
            others = (total - out_gradient[c, i]) / total
            target = 1.0 if classes[i] == c else 0.0
            out_gradient[c, i] = weights[i] * step * (target - p)
            out_hessian[c, i] = weights[i] * p * others
