"""What lines of documents add to a measure, and what a swap of two changes.

In all forms a swap of two single documents i (upper, at rank r) and j changes the measure by
carry (x_j - x_i) (w_r - w_(r+1)), where carry is 1, the chance that a user comes to r (cascade), or
one more than the relevant documents above r (average precision).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import inlined_kernel, kernel, parallel_kernel, prange
from rankinite.measures.along.parts import N_BLOCKS, Room, Worth
from rankinite.measures.kernels import best_cumulated, cascade
from rankinite.measures.order import padded_length, sort_values

# Forms; a reciprocal rank is a cascade in which every relevant document satisfies.
CUMULATED = 0
CASCADE = 1
AVERAGE_PRECISION = 2

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
