"""Gradients of one query by any objective, and weighted sums of several objectives."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel
from rankinite.objectives.kernels.arrays import (
    PAIRS,
    POINTWISE,
    ObjectiveArrays,
    ObjectiveMixture,
    Scratch,
)
from rankinite.objectives.kernels.constructions import construction_gradients
from rankinite.objectives.kernels.pairwise import BY_DEVIATION, LEAST_SQUARES, pairwise_gradients
from rankinite.objectives.kernels.pointwise import pointwise_gradients
from rankinite.objectives.kernels.swaps import new_scratch as new_scratch


class SumOptions(NamedTuple):
    """How the gradients of several objectives are added up.

    Attributes
    ----------
    offsets, blocks
        The queries, and the first query of each block.
    mixture_weights
        The weight of each objective.
    normalise
        How the sum is scaled, as in `pairwise`.
    query_weight
        One weight per query.
    """

    offsets: NDArray[np.int64]
    blocks: NDArray[np.int64]
    mixture_weights: NDArray[np.float64]
    normalise: int
    query_weight: NDArray[np.float64]


@kernel
def add_weighted(
    first: int,
    last: int,
    starts: bool,
    weight: float,
    gradients: NDArray[np.float64],
    hessians: NDArray[np.float64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Add the weighted gradients and hessians of a part to the sum, which may start with it."""
    if starts:
        for i in range(first, last):
            out_gradient[i] = 0.0
            out_hessian[i] = 0.0
    # The arrays of a part of weight 0 were never filled, and may hold NaN.
    if weight > 0.0:
        for i in range(first, last):
            out_gradient[i] += weight * gradients[i]
            out_hessian[i] += weight * hessians[i]


@kernel
def scale_query(
    first: int,
    last: int,
    normalise: int,
    weight: float,
    gradients: NDArray[np.float64],
    hessians: NDArray[np.float64],
) -> None:
    """Multiply a query's sums by its weight, over the deviation of the gradients if asked.

    Gradients without any deviation become 0.
    """
    factor = weight
    # Unlike in `pairwise.normaliser`, the mean is subtracted: the gradients of some constructions
    # do not sum to 0.
    if normalise == BY_DEVIATION:
        n = last - first
        total = 0.0
        for i in range(first, last):
            total += gradients[i]
        mean = total / n
        squares = 0.0
        for i in range(first, last):
            squares += (gradients[i] - mean) * (gradients[i] - mean)
        factor = weight * math.sqrt(n / squares) if squares > LEAST_SQUARES else 0.0
    for i in range(first, last):
        gradients[i] *= factor
        hessians[i] *= factor


@kernel
def add_mixture(
    first_block: int,
    last_block: int,
    selected: NDArray[np.bool_],
    options: SumOptions,
    gradients: NDArray[np.float64],
    hessians: NDArray[np.float64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write the weighted sums of the ``selected`` queries, or of all if that mask is empty.

    ``gradients`` and ``hessians`` have one row per part.
    """
    offsets, blocks, mixture_weights = options.offsets, options.blocks, options.mixture_weights
    for q in range(blocks[first_block], blocks[last_block]):
        if len(selected) > 0 and not selected[q]:
            continue
        first, last = offsets[q], offsets[q + 1]
        for p in range(len(mixture_weights)):
            add_weighted(
                first,
                last,
                p == 0,
                mixture_weights[p],
                gradients[p],
                hessians[p],
                out_gradient,
                out_hessian,
            )
        weight = options.query_weight[q]
        scale_query(first, last, options.normalise, weight, out_gradient, out_hessian)


@kernel
def query_gradients(
    q: int,
    scores: NDArray[np.float64],
    arrays: ObjectiveArrays,
    scratch: Scratch,
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write gradients and hessians of the documents of query q, whatever the objective.

    Scores and out arrays have one number for each document of the data set; only those of the
    query are read and written.
    """
    kind = arrays.kind
    if kind == PAIRS and len(arrays.better_weight) == 0:
        # A range of a single query: the kernel of trees, which unpacks its arguments once for many.
        every = scratch.every_query
        pairwise_gradients(q, q + 1, scores, arrays, scratch, every, out_gradient, out_hessian)
    elif kind in POINTWISE:
        first, last = arrays.offsets[q], arrays.offsets[q + 1]
        targets, weights = arrays.values, arrays.doc_weight
        pointwise_gradients(kind, first, last, scores, targets, weights, out_gradient, out_hessian)
    else:
        construction_gradients(q, scores, arrays, scratch, out_gradient, out_hessian)


@kernel
def mixture_gradients(
    q: int,
    scores: NDArray[np.float64],
    mixture: ObjectiveMixture,
    scratch: Scratch,
    spare: NDArray[np.float64],
    out_gradient: NDArray[np.float64],
    out_hessian: NDArray[np.float64],
) -> None:
    """Write gradients and hessians of the documents of query q by a mixture.

    ``spare`` has two rows like the out arrays, unless one part counts alone.
    """
    parts, mixture_weights = mixture.parts, mixture.mixture_weights
    if mixture_weights[0] == 1.0:
        query_gradients(q, scores, parts[0], scratch, out_gradient, out_hessian)
        return
    first, last = parts[0].offsets[q], parts[0].offsets[q + 1]
    gradients, hessians = spare[0], spare[1]
    # In the same order of operations as `add_mixture`: nets and trees get the same bits.
    for p in range(len(parts)):
        weight = mixture_weights[p]
        if weight > 0.0:
            query_gradients(q, scores, parts[p], scratch, gradients, hessians)
        add_weighted(first, last, p == 0, weight, gradients, hessians, out_gradient, out_hessian)
    query_weight = mixture.query_weight[q]
    scale_query(first, last, mixture.normalise, query_weight, out_gradient, out_hessian)
