"""Arguments and scratch memory of the line search, and the values of lines of documents.

The score of a document is a line over t. A sweep visits the crossings of lines in the order of t,
and keeps the measure up to date by the change of every swap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel
from rankinite.core.types import Floats, Integers
from rankinite.measures.kernels.values_with_ties import (
    AVERAGE_PRECISION,
    CASCADE,
    CUMULATED,
    cascade,
)

# Crossings closer than this, relative to t, are a single point: rounding moves apart lines that
# cross in the same point.
NEAR = 1e-12


class MeasureArrays(NamedTuple):
    """A measure on one data set; the same for all scores.

    Attributes
    ----------
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    values
        The value of each document.
    norms
        Divisor of each query's measure; 0 for a query whose measure does not change.
    rank_weights, weight_sums
        The weight of each rank, 0 beyond the depth, and the sums of these from the first rank.
    depth
        How many ranks count.
    form
        How values and weights combine: ``CUMULATED``, ``CASCADE`` or ``AVERAGE_PRECISION``.
    scale
        Factor that makes a query's measure an integer: sums of integers do not depend on their
        order, and so not on the number of threads.
    """

    offsets: Integers
    values: Floats
    norms: Floats
    rank_weights: Floats
    weight_sums: Floats
    depth: int
    form: int
    scale: float


class Lines(NamedTuple):
    """The scores of documents along t from 0 to the end: (1 - t) first + t second, or the sum.

    Attributes
    ----------
    first, second
        Scores, or with ``convex`` 0 a score and its slope.
    convex
        1.0 for (1 - t) first + t second, 0.0 for first + t second.
    end
        How far t goes.
    near
        How close crossings must be, besides `NEAR`, to count as a single point: by how much
        rounding of the scores moves a crossing.
    """

    first: Floats
    second: Floats
    convex: float
    end: float
    near: float


class BucketStats(NamedTuple):
    """What happens in each bucket of t (columns), by block of queries (rows).

    Attributes
    ----------
    changes, rises
        The sum of all changes of the measure, and of the positive ones.
    peaks
        The sum of what the measure at single points exceeds the mean of their two sides by.
    counts
        How many changes there are.
    firsts, lasts
        Where the first and the last change are.
    """

    changes: Integers
    rises: Integers
    peaks: Integers
    counts: Integers
    firsts: Floats
    lasts: Floats


class Changes(NamedTuple):
    """Single changes: where, how large, and by how much the point itself exceeds the mean."""

    times: Floats
    changes: Integers
    peaks: Integers


class LineScratch(NamedTuple):
    """Scratch memory of a block of queries.

    Documents with the same line are joined into a single line. Lines are in their present order:
    position 0 has the largest score.

    Attributes
    ----------
    first, second
        The line at each position.
    value, size, begin, rank
        The sum of its documents' values, how many they are, where they begin in ``values``, and
        the rank that the first of them has.
    carry
        What the lines above leave: the chance that a user comes here, or relevant documents + 1.
    times
        A tree of minima over the times at which each position swaps with the next; ``times[1]``
        is the least.
    touched
        Which positions swapped with the next at the present point.
    values, survival
        The values of documents, line by line; the chances to continue past 0, 1, ... of a
        line's documents, for every line that has several. They start at twice the line's begin: a
        line of n documents needs n + 1 places, and lines of a single document need none.
    ranked, chances, ends
        Documents that tie at a point, for the kernels of measures.
    order, inner, keys, spare, scores
        For sorting documents.
    """

    first: Floats
    second: Floats
    value: Floats
    size: Integers
    begin: Integers
    rank: Integers
    carry: Floats
    times: Floats
    touched: NDArray[np.bool_]
    values: Floats
    survival: Floats
    ranked: Floats
    chances: Floats
    ends: Integers
    order: Integers
    inner: Integers
    keys: Integers
    spare: Integers
    scores: Floats


@inlined_kernel
def carried(scratch: LineScratch, form: int, at: int, carry: float) -> float:
    """Return what the line at a position leaves of the carry, for the line below."""
    left = 1.0
    if form == CASCADE:
        size = scratch.size[at]
        left = (
            1.0 - scratch.value[at] if size == 1 else scratch.survival[2 * scratch.begin[at] + size]
        )
        left *= carry
    elif form == AVERAGE_PRECISION:
        left = carry + scratch.value[at]
    return left


@kernel
def line_value(
    scratch: LineScratch, measure: MeasureArrays, at: int, rank: int, carry: float
) -> float:
    """Return what a line adds to the measure if its first document has this rank."""
    size, value, weights = scratch.size[at], scratch.value[at], measure.rank_weights
    total = 0.0
    if size == 1:
        total = carry * value * weights[rank]
    elif measure.form == CUMULATED:
        total = value / size * (measure.weight_sums[rank + size] - measure.weight_sums[rank])
    elif measure.form == CASCADE:
        survival = scratch.survival[2 * scratch.begin[at] : 2 * scratch.begin[at] + size + 1]
        for p in range(size):
            total += carry * (survival[p] - survival[p + 1]) * weights[rank + p]
    else:
        # As in `values_with_ties.average_precision`; the carry is 1 + the relevant ones above.
        above_each = (value - 1.0) / (size - 1.0)
        for p in range(size):
            total += value / size * (carry + p * above_each) * weights[rank + p]
    return total


@kernel
def swap_lines(scratch: LineScratch, measure: MeasureArrays, at: int) -> float:
    """Swap the line at a position with the next; return the change of the measure."""
    # Nothing above or below these two lines changes: all of their documents stay between the same.
    below = at + 1
    rank, carry = scratch.rank[at], scratch.carry[at]
    before = line_value(scratch, measure, at, rank, carry)
    before += line_value(scratch, measure, below, scratch.rank[below], scratch.carry[below])
    scratch.first[at], scratch.first[below] = scratch.first[below], scratch.first[at]
    scratch.second[at], scratch.second[below] = scratch.second[below], scratch.second[at]
    scratch.value[at], scratch.value[below] = scratch.value[below], scratch.value[at]
    scratch.size[at], scratch.size[below] = scratch.size[below], scratch.size[at]
    scratch.begin[at], scratch.begin[below] = scratch.begin[below], scratch.begin[at]
    scratch.rank[below] = rank + scratch.size[at]
    scratch.carry[below] = carried(scratch, measure.form, at, carry)
    after = line_value(scratch, measure, at, rank, carry)
    after += line_value(scratch, measure, below, scratch.rank[below], scratch.carry[below])
    return after - before


@kernel
def tied_value(scratch: LineScratch, measure: MeasureArrays, start: int, end: int) -> float:
    """Return what the lines from one position to before another add if they tie."""
    size = 0
    value = 0.0
    for at in range(start, end):
        for k in range(scratch.size[at]):
            scratch.ranked[size] = scratch.values[scratch.begin[at] + k]
            value += scratch.ranked[size]
            size += 1
    rank, carry = scratch.rank[start], scratch.carry[start]
    total = 0.0
    if measure.form == CUMULATED:
        total = value / size * (measure.weight_sums[rank + size] - measure.weight_sums[rank])
    elif measure.form == CASCADE:
        if rank < measure.depth:
            scratch.ends[0] = size
            weights, depth = measure.rank_weights[rank:], measure.depth - rank
            ranked, ends = scratch.ranked[:size], scratch.ends[:1]
            total = carry * cascade(ranked, ends, weights, depth, scratch.chances)
    else:
        above_each = (value - 1.0) / (size - 1.0)
        for p in range(size):
            total += value / size * (carry + p * above_each) * measure.rank_weights[rank + p]
    return total


@kernel
def gain_of_ties(scratch: LineScratch, measure: MeasureArrays, low: int, high: int) -> float:
    """Return by how much the measure is larger where lines that were just swapped tie.

    Those at ``touched`` positions from low to high tie with the next.
    """
    total = 0.0
    at = low
    while at <= high:
        start = at
        while scratch.touched[at]:
            at += 1
        if at > start:
            total += tied_value(scratch, measure, start, at + 1)
            for k in range(start, at + 1):
                total -= line_value(scratch, measure, k, scratch.rank[k], scratch.carry[k])
        at += 1
    return total
