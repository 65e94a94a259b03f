"""The sweep along the lines of a query, from one crossing to the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel
from rankinite.core.types import Floats, Integers
from rankinite.measures.kernels.line_values import (
    NEAR,
    BucketStats,
    Changes,
    Lines,
    LineScratch,
    MeasureArrays,
    carried,
    gain_of_ties,
    line_value,
    swap_lines,
)
from rankinite.measures.kernels.values_with_ties import (
    AVERAGE_PRECISION,
    CASCADE,
    N_BLOCKS,
    fill_survival,
    find_ties,
    order_documents,
    padded_length,
)

# Unsigned indexes need no check whether they are negative and count from the end.
ZERO = np.uint64(0)
ONE = np.uint64(1)


class Buckets(NamedTuple):
    """Intervals of t in which changes are added up.

    Attributes
    ----------
    edges
        Where buckets start and end.
    opened
        The buckets whose changes are also written one by one.
    places
        The changes of block b are written from ``places[b]`` to ``places[b + 1] - 1``.
    with_peaks
        Whether the value of the crossing points themselves is computed.
    """

    edges: Floats
    opened: NDArray[np.bool_]
    places: Integers
    with_peaks: bool


@kernel
def new_scratch(longest: int) -> LineScratch:
    """Allocate scratch memory for queries of up to ``longest`` documents."""
    padded = padded_length(longest)
    return LineScratch(
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
def order_just_after(first: Floats, second: Floats, scratch: LineScratch) -> None:
    """Write the order of documents just after t = 0: by score, those that tie by where they go."""
    n = len(first)
    order, scores = scratch.order, scratch.scores
    for i in range(n):
        scores[i] = first[i] + 0.0  # no negative zero, whose bits would not tie
    order_documents(scores[:n], scores.view(np.int64)[:n], order, scratch.keys, scratch.spare)
    n_groups = find_ties(scores[:n], order, scratch.ends)
    start = 0
    for g in range(n_groups):
        end = scratch.ends[g]
        size = end - start
        if size > 1:
            for k in range(size):
                scores[k] = second[order[start + k]] + 0.0
            bits = scores.view(np.int64)[:size]
            order_documents(scores[:size], bits, scratch.inner, scratch.keys, scratch.spare)
            for k in range(size):
                scratch.begin[k] = order[start + scratch.inner[k]]
            for k in range(size):
                order[start + k] = scratch.begin[k]
        start = end


@kernel
def join_lines(first: Floats, second: Floats, values: Floats, scratch: LineScratch) -> int:
    """Make one line of documents whose lines are the same; return how many lines there are."""
    n_lines = 0
    for k in range(len(first)):
        doc = scratch.order[k]
        scratch.values[k] = values[doc]
        at = n_lines - 1
        if n_lines and scratch.first[at] == first[doc] and scratch.second[at] == second[doc]:
            scratch.value[at] += values[doc]
            scratch.size[at] += 1
            continue
        scratch.first[n_lines] = first[doc]
        scratch.second[n_lines] = second[doc]
        scratch.value[n_lines] = values[doc]
        scratch.size[n_lines] = 1
        scratch.begin[n_lines] = k
        n_lines += 1
    return n_lines


@inlined_kernel
def meeting(first: Floats, second: Floats, at: np.uint64, lines: Lines, now: float) -> float:
    """Return when the line at a position meets the next: not before now, or never."""
    ahead = first[at] - first[at + ONE]
    rise = ahead * lines.convex - (second[at] - second[at + ONE])
    # Whether two lines meet is unpredictable: a branch would be mispredicted half of the time.
    t = ahead / (rise if rise > 0.0 else 1.0)
    t = t if t > now else now
    return t if (rise > 0.0) & (t < lines.end) else np.inf


@kernel
def start_query(
    q: int, lines: Lines, measure: MeasureArrays, scratch: LineScratch
) -> tuple[int, int, float]:
    """Sort the lines of a query by their order just after t = 0.

    Return the number of lines, of leaves of the tree of times, and the measure before division.
    """
    start, end = measure.offsets[q], measure.offsets[q + 1]
    first, second = lines.first[start:end], lines.second[start:end]
    order_just_after(first, second, scratch)
    n_lines = join_lines(first, second, measure.values[start:end], scratch)
    total = 0.0
    rank = 0
    carry = 1.0
    for at in range(n_lines):
        if measure.form == CASCADE and scratch.size[at] > 1:
            begin, size = scratch.begin[at], scratch.size[at]
            values = scratch.values[begin : begin + size]
            fill_survival(scratch.survival[2 * begin :], values, size)
        scratch.rank[at] = rank
        scratch.carry[at] = carry
        total += line_value(scratch, measure, at, rank, carry)
        carry = carried(scratch, measure.form, at, carry)
        rank += scratch.size[at]
    # The next crossing is always one of neighbours: n - 1 times are enough, in a tree of minima.
    leaves = 1
    while leaves < n_lines - 1:
        leaves *= 2
    for at in range(leaves):
        scratch.times[leaves + at] = np.inf
    for at in range(n_lines - 1):
        scratch.times[leaves + at] = meeting(
            scratch.first, scratch.second, np.uint64(at), lines, 0.0
        )
    for node in range(leaves - 1, 0, -1):
        scratch.times[node] = min(scratch.times[2 * node], scratch.times[2 * node + 1])
    return n_lines, leaves, total


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
    """Update the tree of times after the swap of a position with the next."""
    left = at - np.uint64(at > ZERO)
    right = at + np.uint64(at + ONE < np.uint64(n_lines - 1))
    # Two lines meet only once. The swap gave both of them new neighbours.
    times[leaves + at] = np.inf
    times[leaves + left] = meeting(first, second, left, lines, now)
    times[leaves + right] = meeting(first, second, right, lines, now)
    # Two paths up the tree in one loop. The leaf between is a sibling of one of theirs, so that its
    # own path is among them.
    left, right = (left + leaves) >> ONE, (right + leaves) >> ONE
    while left >= ONE:
        a, b = times[left + left], times[left + left + ONE]
        times[left] = a if a < b else b
        a, b = times[right + right], times[right + right + ONE]
        times[right] = a if a < b else b
        left, right = left >> ONE, right >> ONE


@inlined_kernel
def add_to_bucket(
    stats: BucketStats, block: int, edges: Floats, b: int, t: float, step: np.int64, peak: np.int64
) -> int:
    """Add a change to its bucket, which is bucket b or a later one; return which."""
    while edges[b + 1] <= t:
        b += 1
    stats.changes[block, b] += step
    stats.rises[block, b] += max(step, 0)
    stats.peaks[block, b] += max(peak, 0)
    stats.counts[block, b] += 1
    stats.firsts[block, b] = min(stats.firsts[block, b], t)
    stats.lasts[block, b] = max(stats.lasts[block, b], t)
    return b


@inlined_kernel
def swap_single(
    first: Floats,
    second: Floats,
    line_values: Floats,
    begins: Integers,
    carries: Floats,
    form: int,
    at: np.uint64,
) -> None:
    """Swap the lines at a position and the next, which have one document each."""
    below = at + ONE
    first[at], first[below] = first[below], first[at]
    second[at], second[below] = second[below], second[at]
    line_values[at], line_values[below] = line_values[below], line_values[at]
    begins[at], begins[below] = begins[below], begins[at]
    if form == CASCADE:
        carries[below] = carries[at] * (1.0 - line_values[at])
    elif form == AVERAGE_PRECISION:
        carries[below] = carries[at] + line_values[at]


@kernel
def sweep_query(
    q: int,
    lines: Lines,
    measure: MeasureArrays,
    buckets: Buckets,
    scratch: LineScratch,
    block: int,
    place: int,
    stats: BucketStats,
    changes: Changes,
) -> tuple[int, int]:
    """Sweep a query to the end; return its measure just after 0, and the next free place.

    The arrays of a swap are local variables: to pass them on together costs more than a swap.
    """
    n_lines, n_leaves, value = start_query(q, lines, measure, scratch)
    first, second, line_values, begins = scratch.first, scratch.second, scratch.value, scratch.begin
    sizes, ranks, carries, weights = scratch.size, scratch.rank, scratch.carry, measure.rank_weights
    times, touched = scratch.times, scratch.touched
    limit = buckets.places[block + 1]
    leaves = np.uint64(n_leaves)
    unit = measure.scale / measure.norms[q]
    start = np.int64(np.rint(value * unit))
    whole = start
    b = 0
    while times[1] < np.inf:
        t = times[1]
        # Crossings within rounding are one point, in which all of their documents tie.
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
                rank, gain = np.uint64(ranks[at]), line_values[at + ONE] - line_values[at]
                change += carries[at] * gain * (weights[rank] - weights[rank + ONE])
                swap_single(first, second, line_values, begins, carries, measure.form, at)
            else:
                change += swap_lines(scratch, measure, upper)
            renew(first, second, times, leaves, n_lines, at, lines, t)
        peak = np.int64(0)
        # If only two documents tie, either order is equally likely: the value is the mean.
        if buckets.with_peaks and n_swaps > 1:
            gain = gain_of_ties(scratch, measure, low, high)
            peak = np.int64(np.rint((gain + 0.5 * change) * unit))
        for k in range(low, high + 1):
            touched[k] = False
        value += change
        # The sum is rounded rather than the change: rounding errors do not add up.
        now = np.int64(np.rint(value * unit))
        step = now - whole
        whole = now
        if step == 0 and peak == 0:
            continue
        b = add_to_bucket(stats, block, buckets.edges, b, t, step, peak)
        if buckets.opened[b]:
            # Counted even where there is no room, to tell how many places are needed.
            if place < limit:
                changes.times[place] = t
                changes.changes[place] = step
                changes.peaks[place] = peak
            place += 1
    return start, place


@kernel
def sweep_block(
    block: int,
    lines: Lines,
    measure: MeasureArrays,
    buckets: Buckets,
    stats: BucketStats,
    changes: Changes,
) -> tuple[int, int]:
    """Sweep the queries of a block; return their measures just after 0, and the next place."""
    place = buckets.places[block]
    scratch = new_scratch(len(measure.rank_weights) - 1)
    total = np.int64(0)
    for q in range(block, len(measure.offsets) - 1, N_BLOCKS):
        if measure.norms[q] == 0.0:
            continue
        start, place = sweep_query(
            q, lines, measure, buckets, scratch, block, place, stats, changes
        )
        total += start
    return total, place


@kernel
def sweep_all(
    first_block: int,
    last_block: int,
    lines: Lines,
    measure: MeasureArrays,
    buckets: Buckets,
    stats: BucketStats,
    changes: Changes,
    starts: Integers,
    needed: Integers,
) -> None:
    """Sweep the queries of some blocks, and add up the changes in each bucket.

    ``starts`` gets the measure just after 0, ``needed`` how many places each block would need.
    """
    for block in range(first_block, last_block):
        starts[block], reached = sweep_block(block, lines, measure, buckets, stats, changes)
        needed[block] = reached - buckets.places[block]
