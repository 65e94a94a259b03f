"""How much swapping two documents changes a measure, for each form of measure.

Whatever the measure, swapping the documents at ranks u < v lowers it by

    (value_u - value_v) x (upper_u - lower_v) x scale_u

with rows of numbers that are filled once per query, here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel
from rankinite.measures.kernels import AVERAGE_PRECISION, CASCADE, N_FORMS, RECIPROCAL_RANK

# Two forms of swaps belong to no measure; they are numbered behind the forms of measures.
RECIPROCAL_GAIN = N_FORMS  # Optimality, Eq. 11: swaps that lower the reciprocal rank do not count
EVERY_PAIR = N_FORMS + 1  # RankNet: every swap changes the measure by 1

# Where a document satisfies for certain, the chance to continue would be 0, and it is a divisor.
LEAST_CHANCE = 1e-30

# The rows of the array r, whose columns are a query's documents by rank.
SPARE, SCORE, VALUE, UPPER, LOWER, SCALE, DISTANCE, E, INVERSE, GRADIENT, HESSIAN = range(11)
N_ROWS = 11

Ranked = NDArray[np.float64]


@kernel
def cumulated_swaps(r: Ranked, n: int, rank_weights: NDArray[np.float64], scale: float) -> None:
    """Fill the rows for sums of value x rank weight: DCG, NDCG, precision."""
    for k in range(n):
        r[UPPER, k] = rank_weights[k]
        r[LOWER, k] = rank_weights[k]
        r[SCALE, k] = scale


@kernel
def cascade_swaps(r: Ranked, n: int, rank_weights: NDArray[np.float64]) -> None:
    """Fill the rows for ERR and pFound (Ensemble, Sec. 3).

    With T = 1 - R, pi_k = T_1 ... T_k and w the rank weights, the three terms of the paper add up
    to (R_u - R_v) / T_u times the sum of pi_k (w_k - w_(k+1)) over u <= k < v. Summed from the
    last rank upwards the differences are exact where they are small, and never negative: this is
    the paper's Theorem 1.
    """
    alive = 1.0
    for k in range(n):
        continues = max(1.0 - r[VALUE, k], LEAST_CHANCE)
        alive *= continues
        r[SCALE, k] = 1.0 / continues
        r[LOWER, k] = alive
    below = 0.0
    for k in range(n - 1, -1, -1):
        if k < n - 1:
            below += r[LOWER, k] * (rank_weights[k] - rank_weights[k + 1])
        r[UPPER, k] = below
        r[LOWER, k] = below


@kernel
def average_precision_swaps(
    r: Ranked, n: int, rank_weights: NDArray[np.float64], scale: float
) -> None:
    """Fill the rows for average precision (Optimality, Sec. 4.2).

    The document that moves up to rank u gains (relevant above u + 1) / u, the one that leaves
    rank v loses (relevant down to v) / v, and each relevant one between gains 1 / rank.
    """
    above = 0.0
    between = 0.0
    for k in range(n):
        weight = rank_weights[k] / (k + 1.0)
        r[LOWER, k] = (above + r[VALUE, k]) * weight - between
        between += r[VALUE, k] * weight
        r[UPPER, k] = (above + 1.0) * weight - between
        above += r[VALUE, k]
        r[SCALE, k] = scale


@kernel
def reciprocal_rank_swaps(
    r: Ranked, n: int, rank_weights: NDArray[np.float64], gain_only: bool
) -> int:
    """Fill the rows for the reciprocal rank and return how many ranks u can change it.

    An irrelevant document above the first relevant one changes places with any relevant one; the
    first relevant one goes down to rank v, unless the second then stands above it.
    """
    first = 0
    while r[VALUE, first] == 0.0:
        first += 1
    second = first + 1
    while second < n and r[VALUE, second] == 0.0:
        second += 1
    for k in range(n):
        r[UPPER, k] = rank_weights[k] / (k + 1.0)
        r[SCALE, k] = 1.0
    for k in range(n):
        first_after = first if r[VALUE, k] > 0.0 else min(k, second)
        r[LOWER, k] = r[UPPER, first_after]
    return first if gain_only else first + 1


@kernel
def fill_swaps(
    r: Ranked, n: int, form: int, rank_weights: NDArray[np.float64], scale: float
) -> int:
    """Fill the rows for a form of measure and return how many ranks u can change it."""
    if form == CASCADE:
        cascade_swaps(r, n, rank_weights)
    elif form == AVERAGE_PRECISION:
        average_precision_swaps(r, n, rank_weights, scale)
    elif form == RECIPROCAL_RANK:
        return reciprocal_rank_swaps(r, n, rank_weights, False)
    elif form == RECIPROCAL_GAIN:
        return reciprocal_rank_swaps(r, n, rank_weights, True)
    else:
        cumulated_swaps(r, n, rank_weights, scale)
    return n
