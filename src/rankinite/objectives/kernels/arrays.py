"""What kernels of gradients are given: all that stays the same for a data set, and scratch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import frozen

# The kinds of plans: which kernel gives the lambdas.
PAIRS, SPRING_SMOOTH, LOCAL_COST, LOCAL_GRADIENT, DISCRETE_BOUNDED = range(5)
SQUARED_ERROR, CENTRED_SQUARED_ERROR, LOGISTIC = range(5, 8)
SIGMOID_COST, TIED_PAIRS = range(8, 10)

NO_NUMBERS = np.zeros(0)
NO_PLACES = np.zeros(0, np.int64)
ALONE = np.array([1.0, 0.0])


class Plan(NamedTuple):
    """How lambdas follow from scores on one data set; the arrays are read-only and contiguous.

    Attributes
    ----------
    kind
        Which construction: ``PAIRS`` or another of the kinds.
    form
        How the values of documents combine, as in `swaps`.
    reach
        Only pairs count that have a document among the first so many ranks.
    normalise
        How a query's lambdas are scaled, as in `kernels`.
    margin
        What a local gradient and the sigmoid cost add to differences of scores.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    values
        What each document is worth, NaN without a label, in the order of ``shuffle``; for
        pointwise losses what each document's score or chance should be, in their own order.
    shuffle
        The documents of each query in the order in which ties are ranked.
    rank_weights
        What each rank is worth, as many as the longest query has documents.
    scales
        What a query's unnormalised measure is multiplied by; 0 where it has no pairs.
    groups
        Only documents of one group make pairs, and those of group -1 make none; in the order of
        ``shuffle``, and empty if all do.
    query_weight
        One weight a query.
    doc_weight
        One weight a document, for pointwise losses.
    """

    kind: int
    form: int
    reach: int
    normalise: int
    margin: float
    offsets: NDArray[np.int64]
    values: NDArray[np.float64]
    shuffle: NDArray[np.int64]
    rank_weights: NDArray[np.float64]
    scales: NDArray[np.float64]
    groups: NDArray[np.int64]
    query_weight: NDArray[np.float64]
    doc_weight: NDArray[np.float64]


class Blend(NamedTuple):
    """Plans that are followed together: a weighted sum of their lambdas, scaled query by query.

    Attributes
    ----------
    plans
        Two or more, of the same documents; a plan that is followed alone stands there twice, so
        that kernels need not be compiled for it and for two.
    shares
        What the lambdas of each plan are multiplied by. If the first share is 1 its plan is
        followed alone, scaled as it says itself.
    normalise
        How the sum is scaled, as in `kernels`.
    query_weight
        One weight a query.
    """

    plans: tuple[Plan, ...]
    shares: NDArray[np.float64]
    normalise: int
    query_weight: NDArray[np.float64]


class Scratch(NamedTuple):
    """Memory for one query at a time, made once for many by `kernels.new_scratch`.

    Attributes
    ----------
    usual, wide
        Rows of documents by rank, as in `swaps`, for most queries and for the longest.
    usual_bits, wide_bits
        The same memory seen as integers.
    order, keys, rounded, above
        For putting documents in order.
    every
        Empty; it stands for all queries where those that are wanted can be named.
    """

    usual: NDArray[np.float64]
    usual_bits: NDArray[np.int64]
    wide: NDArray[np.float64]
    wide_bits: NDArray[np.int64]
    order: NDArray[np.int64]
    keys: NDArray[np.int64]
    rounded: NDArray[np.float32]
    above: NDArray[np.int32]
    every: NDArray[np.bool_]


def alone(plan: Plan) -> Blend:
    """Return a plan as kernels take it that could follow several."""
    return Blend((plan, plan), frozen(ALONE), plan.normalise, plan.query_weight)
