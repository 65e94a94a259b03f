"""The arguments of gradient kernels: an objective on one data set as arrays, and scratch memory.

They are named tuples, which numba compiles to plain arguments. An argument has one type, whichever
objective it describes: so objectives that need fewer arrays have empty ones, and kernels are
compiled once for all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import frozen

# Kinds of objectives: which kernel computes the gradients.
PAIRS, SPRING_SMOOTH, LOCAL_COST, LOCAL_GRADIENT, DISCRETE_BOUNDED = range(5)
SQUARED_ERROR, CENTRED_SQUARED_ERROR, LOGISTIC = POINTWISE = (5, 6, 7)
SIGMOID_COST, TIED_PAIRS = range(8, 10)

NO_NUMBERS = frozen(np.zeros(0))
NO_PLACES = frozen(np.zeros(0, np.int64))
ONLY_FIRST = frozen(np.array([1.0, 0.0]))


class ObjectiveArrays(NamedTuple):
    """An objective of one output on one data set; the arrays are read-only and contiguous.

    Attributes
    ----------
    kind
        Which kernel computes the gradients: ``PAIRS`` or another of the kinds.
    form
        How the values of documents combine, as in `swaps`.
    n_top
        Only pairs count that have a document among the first ``n_top`` ranks.
    normalise
        How a query's gradients are scaled, as in `pairwise`.
    margin
        Added to differences of scores by the local gradient and the sigmoid cost.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    values
        The value of each document, NaN without a label, in the order of ``shuffle``; for
        pointwise losses the target of each document, in the order of the data set.
    shuffle
        The documents of each query in the order in which ties are ranked.
    rank_weights
        The weight of each rank, as many as the longest query has documents.
    scales
        Factor of a query's unnormalised measure; 0 where the query has no pairs.
    groups
        Only documents of the same group make pairs, and those of group -1 make none; in the order
        of ``shuffle``, and empty if all documents are in one group.
    query_weight
        One weight per query.
    doc_weight
        One weight per document, for pointwise losses.
    better_weight, worse_weight
        What a pair is multiplied by for its better document, and for the other one: the weight of
        a document, over its propensity if positions are corrected for. In the order of ``shuffle``,
        and empty if all are 1.
    """

    kind: int
    form: int = 0
    n_top: int = 0
    normalise: int = 0
    margin: float = 0.0
    offsets: NDArray[np.int64] = NO_PLACES
    values: NDArray[np.float64] = NO_NUMBERS
    shuffle: NDArray[np.int64] = NO_PLACES
    rank_weights: NDArray[np.float64] = NO_NUMBERS
    scales: NDArray[np.float64] = NO_NUMBERS
    groups: NDArray[np.int64] = NO_PLACES
    query_weight: NDArray[np.float64] = NO_NUMBERS
    doc_weight: NDArray[np.float64] = NO_NUMBERS
    better_weight: NDArray[np.float64] = NO_NUMBERS
    worse_weight: NDArray[np.float64] = NO_NUMBERS


class ObjectiveMixture(NamedTuple):
    """A weighted sum of objectives, which is scaled query by query.

    Attributes
    ----------
    parts
        Two or more, of the same documents. A single objective stands there twice, so that kernels
        are compiled for one tuple type only.
    mixture_weights
        The weight of each part. If the first is 1 the first part counts alone, and is scaled as
        it says itself.
    normalise
        How the sum is scaled, as in `pairwise`.
    query_weight
        One weight per query.
    """

    parts: tuple[ObjectiveArrays, ...]
    mixture_weights: NDArray[np.float64]
    normalise: int
    query_weight: NDArray[np.float64]


class SortScratch(NamedTuple):
    """Memory for sorting the documents of one query; see `swaps.rank_documents`.

    Attributes
    ----------
    order
        The result: documents from the first rank to the last.
    keys
        Two rows of sort keys, padded to a power of two.
    rounded, above
        Scores of 32 bits and counts, for short queries.
    """

    order: NDArray[np.int64]
    keys: NDArray[np.int64]
    rounded: NDArray[np.float32]
    above: NDArray[np.int32]


class Scratch(NamedTuple):
    """Memory for one query at a time, allocated once for many by `swaps.new_scratch`.

    Attributes
    ----------
    usual, wide
        Rows of documents by rank, as in `swaps`, for most queries and for the longest.
    usual_bits, wide_bits
        The same memory viewed as integers.
    sorting
        For sorting documents.
    every_query
        An empty mask, which selects all queries.
    """

    usual: NDArray[np.float64]
    usual_bits: NDArray[np.int64]
    wide: NDArray[np.float64]
    wide_bits: NDArray[np.int64]
    sorting: SortScratch
    every_query: NDArray[np.bool_]


def single_mixture(arrays: ObjectiveArrays) -> ObjectiveMixture:
    """Return a mixture in which one objective counts alone."""
    return ObjectiveMixture((arrays, arrays), ONLY_FIRST, arrays.normalise, arrays.query_weight)
