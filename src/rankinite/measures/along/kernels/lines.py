"""The lines of a query: joined where they are the same, in their order just after the start."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import inlined_kernel, kernel
from rankinite.measures.along.kernels.worth import (
    CASCADE,
    carried,
    fill_survival,
    worth_of_line,
)
from rankinite.measures.along.parts import Lines, Room, Worth
from rankinite.measures.order import find_ties, order_documents, padded_length

# Indexes that cannot be negative need no check whether they count from the end.
ONE = np.uint64(1)

Floats = NDArray[np.float64]


@kernel
def new_room(longest: int) -> Room:
    """Make room for queries of at most so many documents."""
    padded = padded_length(longest)
    return Room(
        np.empty(longest, np.float64),
        np.empty(longest, np.float64),
        np.empty(longest, np.float64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest + 1, np.float64),
        np.empty(2 * padded, np.float64),
        np.zeros(longest, np.bool_),
        np.empty(longest, np.float64),
        np.empty(2 * longest, np.float64),
        np.empty(longest, np.float64),
        np.empty(longest + 1, np.float64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(padded, np.int64),
        np.empty(padded, np.int64),
        np.empty(longest, np.float64),
    )


@kernel
def order_just_after(first: Floats, second: Floats, room: Room) -> None:
    """Write the order of documents just after t = 0: by score, those that tie by where they go."""
    n = len(first)
    order, scores = room.order, room.scores
    for i in range(n):
        scores[i] = first[i] + 0.0
    order_documents(scores[:n], scores.view(np.int64)[:n], order, room.keys, room.spare)
    n_groups = find_ties(scores[:n], order, room.ends)
    start = 0
    for g in range(n_groups):
        end = room.ends[g]
        size = end - start
        if size > 1:
            for k in range(size):
                scores[k] = second[order[start + k]] + 0.0
            bits = scores.view(np.int64)[:size]
            order_documents(scores[:size], bits, room.inner, room.keys, room.spare)
            for k in range(size):
                room.begin[k] = order[start + room.inner[k]]
            for k in range(size):
                order[start + k] = room.begin[k]
        start = end


@kernel
def join_lines(first: Floats, second: Floats, values: Floats, room: Room) -> int:
    """Make one line of documents whose lines are the same; return how many lines there are."""
    n_lines = 0
    for k in range(len(first)):
        doc = room.order[k]
        room.values[k] = values[doc]
        at = n_lines - 1
        if n_lines and room.first[at] == first[doc] and room.second[at] == second[doc]:
            room.worth[at] += values[doc]
            room.size[at] += 1
            continue
        room.first[n_lines] = first[doc]
        room.second[n_lines] = second[doc]
        room.worth[n_lines] = values[doc]
        room.size[n_lines] = 1
        room.begin[n_lines] = k
        n_lines += 1
    return n_lines


@inlined_kernel
def meeting(first: Floats, second: Floats, at: np.uint64, lines: Lines, now: float) -> float:
    """Return when the line at a position meets the next: not before now, or never."""
    ahead = first[at] - first[at + ONE]
    rise = ahead * lines.convex - (second[at] - second[at + ONE])
    # Whether they ever meet is as good as random: nothing here is left to a branch.
    t = ahead / (rise if rise > 0.0 else 1.0)
    t = t if t > now else now
    return t if (rise > 0.0) & (t < lines.end) else np.inf


@kernel
def set_out(q: int, lines: Lines, worth: Worth, room: Room) -> tuple[int, int, float]:
    """Put the lines of a query in their order just after 0.

    Return how many there are, the number of leaves of the tree of times, and the measure, not yet
    divided.
    """
    start, end = worth.offsets[q], worth.offsets[q + 1]
    first, second = lines.first[start:end], lines.second[start:end]
    order_just_after(first, second, room)
    n_lines = join_lines(first, second, worth.values[start:end], room)
    total = 0.0
    rank = 0
    carry = 1.0
    for at in range(n_lines):
        if worth.form == CASCADE and room.size[at] > 1:
            fill_survival(room, room.begin[at], room.size[at])
        room.rank[at] = rank
        room.carry[at] = carry
        total += worth_of_line(room, worth, at, rank, carry)
        carry = carried(room, worth.form, at, carry)
        rank += room.size[at]
    leaves = 1
    while leaves < n_lines - 1:
        leaves *= 2
    for at in range(leaves):
        room.times[leaves + at] = np.inf
    for at in range(n_lines - 1):
        room.times[leaves + at] = meeting(room.first, room.second, np.uint64(at), lines, 0.0)
    for node in range(leaves - 1, 0, -1):
        room.times[node] = min(room.times[2 * node], room.times[2 * node + 1])
    return n_lines, leaves, total
