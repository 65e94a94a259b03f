"""What the kernels that follow a measure along a line are given, and what they work with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel, parallel_kernel, prange
from rankinite.core.types import Floats, Integers
from rankinite.measures.kernels import best_cumulated, cascade, padded_length, sort_values

# Queries are followed in so many blocks, whatever the number of threads.
N_BLOCKS = 64
# Crossings that are nearer than this, relative to t, are one point: rounding tears apart what
# crosses in one.
NEAR = 1e-12


class Worth(NamedTuple):
    """What documents and ranks are worth; the same for all scores.

    Attributes
    ----------
    offsets
        The queries.
    values
        What each document is worth.
    norms
        What each query's measure is divided by; 0 for a query whose measure does not change.
    weights, sums
        What each rank is worth, 0 beyond the depth, and the sums of these from the first rank on.
    depth
        How many ranks count.
    form
        How values and weights combine; see `kernels`.
    scale
        What a query's measure is multiplied by to make it a whole number: sums of whole numbers
        do not depend on their order.
    """

    offsets: Integers
    values: Floats
    norms: Floats
    weights: Floats
    sums: Floats
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
        How near crossings must be, besides `NEAR`, to be one point: what rounding of the scores
        does to the place of a crossing.
    """

    first: Floats
    second: Floats
    convex: float
    end: float
    near: float


class Tally(NamedTuple):
    """What happens in each bucket of t (columns), by block of queries (rows).

    Attributes
    ----------
    changes, rises
        The sum of all changes of the measure, and of the positive ones.
    peaks
        The sum of what points are worth beyond the mean of their two sides.
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


class Taken(NamedTuple):
    """Changes one by one: where, how large, and what the point itself is worth beyond the mean."""

    times: Floats
    changes: Integers
    peaks: Integers


class Room(NamedTuple):
    """Scratch arrays of one block of queries.

    Documents whose lines are the same are one line. Lines stand in their present order: position
    0 has the largest score.

    Attributes
    ----------
    first, second
        The line at each position.
    worth, size, begin, rank
        The sum of its documents' values, how many they are, where they begin in ``values``, and
        the rank that the first of them has.
    carry
        What the lines above leave: the chance that a user comes here, or relevant documents + 1.
    times
        A tree of minima over when each position changes places with the next; ``times[1]`` is the
        least.
    touched
        Which positions changed places with the next at the present point.
    values, survival
        The values of documents, line by line; the chances to go on past some of a line's
        documents, for every line that has several.
    ranked, chances, ends
        Documents that tie at a point, for the kernels of measures.
    order, inner, keys, spare, scores
        For putting documents in order.
    """

    first: Floats
    second: Floats
    worth: Floats
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


# Forms; a reciprocal rank is a cascade in which every relevant document satisfies.
CUMULATED = 0
CASCADE = 1
AVERAGE_PRECISION = 2


@kernel
def fill_survival(room: Room, begin: int, size: int) -> None:
    """Write the chance to go on past 0, 1, ... documents of a line, in random order.

    It stands at twice the line's begin, where lines with several documents have room for it. See
    `rankinite.measures.kernels.cascade`.
    """
    survival = room.survival[2 * begin : 2 * begin + size + 1]
    survival[0] = 1.0
    for p in range(1, size + 1):
        survival[p] = 0.0
    for n in range(size):
        going_on = 1.0 - room.values[begin + n]
        for p in range(n + 1, 0, -1):
            survival[p] = ((n + 1 - p) * survival[p] + p * going_on * survival[p - 1]) / (n + 1)


@inlined_kernel
def carried(room: Room, form: int, at: int, carry: float) -> float:
    """Return what the line at a position leaves of the carry, for the line below."""
    left = 1.0
    if form == CASCADE:
        size = room.size[at]
        left = 1.0 - room.worth[at] if size == 1 else room.survival[2 * room.begin[at] + size]
        left *= carry
    elif form == AVERAGE_PRECISION:
        left = carry + room.worth[at]
    return left


@kernel
def worth_of_line(room: Room, worth: Worth, at: int, rank: int, carry: float) -> float:
    """Return what a line adds to the measure if its first document has this rank."""
    size, own, weights = room.size[at], room.worth[at], worth.weights
    total = 0.0
    if size == 1:
        total = carry * own * weights[rank]
    elif worth.form == CUMULATED:
        total = own / size * (worth.sums[rank + size] - worth.sums[rank])
    elif worth.form == CASCADE:
        survival = room.survival[2 * room.begin[at] : 2 * room.begin[at] + size + 1]
        for p in range(size):
            total += carry * (survival[p] - survival[p + 1]) * weights[rank + p]
    else:
        share = (own - 1.0) / (size - 1.0)
        for p in range(size):
            total += own / size * (carry + p * share) * weights[rank + p]
    return total


@kernel
def swap_lines(room: Room, worth: Worth, at: int) -> float:
    """Swap the line at a position with the next; return the change of the measure."""
    below = at + 1
    rank, carry = room.rank[at], room.carry[at]
    before = worth_of_line(room, worth, at, rank, carry)
    before += worth_of_line(room, worth, below, room.rank[below], room.carry[below])
    room.first[at], room.first[below] = room.first[below], room.first[at]
    room.second[at], room.second[below] = room.second[below], room.second[at]
    room.worth[at], room.worth[below] = room.worth[below], room.worth[at]
    room.size[at], room.size[below] = room.size[below], room.size[at]
    room.begin[at], room.begin[below] = room.begin[below], room.begin[at]
    room.rank[below] = rank + room.size[at]
    room.carry[below] = carried(room, worth.form, at, carry)
    after = worth_of_line(room, worth, at, rank, carry)
    after += worth_of_line(room, worth, below, room.rank[below], room.carry[below])
    return after - before


@kernel
def worth_of_tied(room: Room, worth: Worth, start: int, end: int) -> float:
    """Return what the lines from one position to before another add if they tie."""
    size = 0
    value = 0.0
    for at in range(start, end):
        for k in range(room.size[at]):
            room.ranked[size] = room.values[room.begin[at] + k]
            value += room.ranked[size]
            size += 1
    rank, carry = room.rank[start], room.carry[start]
    total = 0.0
    if worth.form == CUMULATED:
        total = value / size * (worth.sums[rank + size] - worth.sums[rank])
    elif worth.form == CASCADE:
        if rank < worth.depth:
            room.ends[0] = size
            weights, depth = worth.weights[rank:], worth.depth - rank
            ranked, ends = room.ranked[:size], room.ends[:1]
            total = carry * cascade(ranked, ends, weights, depth, room.chances)
    else:
        share = (value - 1.0) / (size - 1.0)
        for p in range(size):
            total += value / size * (carry + p * share) * worth.weights[rank + p]
    return total


@kernel
def gain_of_ties(room: Room, worth: Worth, low: int, high: int) -> float:
    """Return by how much the measure is larger where lines that were just swapped tie.

    Those at ``touched`` positions from low to high tie with the next.
    """
    total = 0.0
    at = low
    while at <= high:
        start = at
        while room.touched[at]:
            at += 1
        if at > start:
            total += worth_of_tied(room, worth, start, at + 1)
            for k in range(start, at + 1):
                total -= worth_of_line(room, worth, k, room.rank[k], room.carry[k])
        at += 1
    return total


@parallel_kernel
def best_of_all(offsets: Integers, values: Floats, weights: Floats, out: Floats) -> None:
    """Write the sum of value x weight of each query in its best order."""
    bits = values.view(np.int64)
    longest = len(weights) - 1
    for block in prange(N_BLOCKS):
        keys = np.empty(padded_length(longest), np.int64)
        spare = np.empty(padded_length(longest), np.int64)
        ideal = np.empty(longest, np.float64)
        for q in range(block, len(offsets) - 1, N_BLOCKS):
            n = offsets[q + 1] - offsets[q]
            sort_values(bits[offsets[q] : offsets[q + 1]], ideal.view(np.int64), keys, spare)
            out[q] = best_cumulated(ideal[:n], weights, n)
