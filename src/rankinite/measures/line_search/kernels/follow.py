"""The lines of a query: joined where they are the same, in their order just after the start."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel, parallel_kernel, prange
from rankinite.core.types import Floats, Integers
from rankinite.measures.kernels import find_ties, order_documents, padded_length
from rankinite.measures.line_search.kernels.values import (
    AVERAGE_PRECISION,
    CASCADE,
    N_BLOCKS,
    NEAR,
    Lines,
    Room,
    Taken,
    Tally,
    Worth,
    carried,
    fill_survival,
    gain_of_ties,
    swap_lines,
    worth_of_line,
)

# Indexes that cannot be negative need no check whether they count from the end.
ONE = np.uint64(1)


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


ZERO = np.uint64(0)


@inlined_kernel
def next_swap(times: Floats, leaves: np.uint64) -> np.uint64:
    """Return the leaf of the tree that has the least time."""
    node = ONE
    while node < leaves:
        node += node
        node += np.uint64(times[node] > times[node + ONE])
    return node


@inlined_kernel
def renew(
    first: Floats,
    second: Floats,
    times: Floats,
    leaves: np.uint64,
    n_lines: int,
    at: np.uint64,
    lines: Lines,
    now: float,
) -> None:
    """Bring the tree of times up to date after the swap of a position with the next."""
    left = at - np.uint64(at > ZERO)
    right = at + np.uint64(at + ONE < np.uint64(n_lines - 1))
    times[leaves + at] = np.inf
    times[leaves + left] = meeting(first, second, left, lines, now)
    times[leaves + right] = meeting(first, second, right, lines, now)
    left, right = (left + leaves) >> ONE, (right + leaves) >> ONE
    while left >= ONE:
        one, other = times[left + left], times[left + left + ONE]
        times[left] = one if one < other else other
        one, other = times[right + right], times[right + right + ONE]
        times[right] = one if one < other else other
        left, right = left >> ONE, right >> ONE


@inlined_kernel
def tally_change(
    tally: Tally, block: int, edges: Floats, b: int, t: float, step: np.int64, peak: np.int64
) -> int:
    """Add a change to its bucket, this one or one behind it; return which."""
    while edges[b + 1] <= t:
        b += 1
    tally.changes[block, b] += step
    tally.rises[block, b] += max(step, 0)
    tally.peaks[block, b] += max(peak, 0)
    tally.counts[block, b] += 1
    tally.firsts[block, b] = min(tally.firsts[block, b], t)
    tally.lasts[block, b] = max(tally.lasts[block, b], t)
    return b


@inlined_kernel
def swap_single(
    first: Floats,
    second: Floats,
    worths: Floats,
    begins: Integers,
    carries: Floats,
    form: int,
    at: np.uint64,
) -> None:
    """Swap the lines at a position and the next, which have one document each."""
    below = at + ONE
    first[at], first[below] = first[below], first[at]
    second[at], second[below] = second[below], second[at]
    worths[at], worths[below] = worths[below], worths[at]
    begins[at], begins[below] = begins[below], begins[at]
    if form == CASCADE:
        carries[below] = carries[at] * (1.0 - worths[at])
    elif form == AVERAGE_PRECISION:
        carries[below] = carries[at] + worths[at]


@kernel
def follow_query(
    q: int,
    lines: Lines,
    worth: Worth,
    with_peaks: bool,
    edges: Floats,
    opened: NDArray[np.bool_],
    room: Room,
    block: int,
    place: int,
    limit: int,
    tally: Tally,
    taken: Taken,
) -> tuple[int, int]:
    """Follow a query to the end; return its measure just after 0, and the next place.

    The arrays of a swap have names of their own: to pass them on together costs more than a swap.
    """
    n_lines, n_leaves, value = set_out(q, lines, worth, room)
    first, second, worths, begins = room.first, room.second, room.worth, room.begin
    sizes, ranks, carries, weights = room.size, room.rank, room.carry, worth.weights
    times, touched = room.times, room.touched
    leaves = np.uint64(n_leaves)
    unit = worth.scale / worth.norms[q]
    start = np.int64(np.rint(value * unit))
    whole = start
    b = 0
    while times[1] < np.inf:
        t = times[1]
        reach = t + NEAR * t + lines.near
        change = 0.0
        n_swaps = 0
        low, high = n_lines, 0
        while times[1] <= reach:
            at = next_swap(times, leaves) - leaves
            upper: int = np.int64(at)
            touched[at] = True
            low, high = min(low, upper), max(high, upper)
            n_swaps += sizes[at] * sizes[at + ONE]
            if sizes[at] == 1 and sizes[at + ONE] == 1:
                rank, gain = np.uint64(ranks[at]), worths[at + ONE] - worths[at]
                change += carries[at] * gain * (weights[rank] - weights[rank + ONE])
                swap_single(first, second, worths, begins, carries, worth.form, at)
            else:
                change += swap_lines(room, worth, upper)
            renew(first, second, times, leaves, n_lines, at, lines, t)
        peak = np.int64(0)
        if with_peaks and n_swaps > 1:
            # Two documents alone are as likely in either order, which is the mean.
            gain = gain_of_ties(room, worth, low, high)
            peak = np.int64(np.rint((gain + 0.5 * change) * unit))
        for k in range(low, high + 1):
            touched[k] = False
        value += change
        now = np.int64(np.rint(value * unit))
        step = now - whole
        whole = now
        if step == 0 and peak == 0:
            continue
        b = tally_change(tally, block, edges, b, t, step, peak)
        if opened[b]:
            if place < limit:
                taken.times[place] = t
                taken.changes[place] = step
                taken.peaks[place] = peak
            place += 1
    return start, place


@kernel
def follow_block(
    block: int,
    lines: Lines,
    worth: Worth,
    with_peaks: bool,
    edges: Floats,
    opened: NDArray[np.bool_],
    place: int,
    limit: int,
    tally: Tally,
    taken: Taken,
) -> tuple[int, int]:
    """Follow the queries of a block; return their measures just after 0, and the next place."""
    room = new_room(len(worth.weights) - 1)
    total = np.int64(0)
    for q in range(block, len(worth.offsets) - 1, N_BLOCKS):
        if worth.norms[q] == 0.0:
            continue
        start, place = follow_query(
            q, lines, worth, with_peaks, edges, opened, room, block, place, limit, tally, taken
        )
        total += start
    return total, place


@parallel_kernel
def follow_all(
    lines: Lines,
    worth: Worth,
    with_peaks: bool,
    edges: Floats,
    opened: NDArray[np.bool_],
    places: Integers,
    starts: Integers,
    wanted: Integers,
    tally: Tally,
    taken: Taken,
) -> None:
    """Follow all queries, and tally what happens in each bucket.

    ``edges`` are where buckets begin and end. What happens in opened ones is also taken one by
    one; that of a block goes between its place and the next. ``starts`` gets the measure just
    after 0, ``wanted`` how many places a block would need.
    """
    for block in prange(N_BLOCKS):
        place, limit = places[block], places[block + 1]
        starts[block], reached = follow_block(
            block, lines, worth, with_peaks, edges, opened, place, limit, tally, taken
        )
        wanted[block] = reached - place
