"""Values of measures, where scores tie exact expectations over all orders of tied documents.

Documents are sorted by score and cut into groups of ties once per query; then every measure is
computed from these. Each one-query kernel gets the documents' values in ranked order and ``ends``:
group g of tied documents is at the positions ``ends[g - 1]`` to ``ends[g] - 1``. Within a group
every order is equally likely (McSherry & Najork 2008).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel
from rankinite.measures.measure import Form

# The forms of measures as plain integers, which kernels compile to constants. All kernels of the
# package, also those of objectives and of the line search, import these.
CUMULATED = int(Form.CUMULATED)
NORMALISED = int(Form.NORMALISED)
CASCADE = int(Form.CASCADE)
AVERAGE_PRECISION = int(Form.AVERAGE_PRECISION)
RECIPROCAL_RANK = int(Form.RECIPROCAL_RANK)
PRECISION = int(Form.PRECISION)
RECALL = int(Form.RECALL)
N_FORMS = len(Form)

LARGEST = np.iinfo(np.int64).max
# Sorting starts from runs of this length, which a sorting network puts in order.
RUN = 4
# Up to this many different values are selected one after the other instead of being sorted.
FEW = 8
# Queries are cut into this many blocks, each with scratch memory of its own: enough for any number
# of threads to be busy, few enough that allocation costs nothing.
N_BLOCKS = 64


class MeasureTable(NamedTuple):
    """Several measures as columns of numbers.

    Attributes
    ----------
    forms, depths, empty
        The form of each measure, its depth (0 for none), and its value of an empty query.
    rows
        The row of document values that each measure uses.
    rank_weights
        One row per measure, as long as the longest query.
    normalised
        For each row of document values, whether a measure needs them in the best order.
    """

    forms: NDArray[np.int64]
    depths: NDArray[np.int64]
    empty: NDArray[np.float64]
    rows: NDArray[np.int64]
    rank_weights: NDArray[np.float64]
    normalised: NDArray[np.bool_]


@kernel
def padded_length(n: int) -> int:
    """Return the power of two, at least four, that n keys are padded to."""
    length = RUN
    while length < n:
        length *= 2
    return length


@kernel
def sort_keys(keys: NDArray[np.int64], spare: NDArray[np.int64], n: int) -> None:
    """Sort n keys from small to large; n is a power of two, at least four.

    Runs of four are sorted by a network, then merged from both ends at once: two chains of
    comparisons that do not wait for each other.
    """
    for s in range(0, n, RUN):
        a, b, c, d = keys[s], keys[s + 1], keys[s + 2], keys[s + 3]
        a, b = min(a, b), max(a, b)
        c, d = min(c, d), max(c, d)
        a, c = min(a, c), max(a, c)
        b, d = min(b, d), max(b, d)
        b, c = min(b, c), max(b, c)
        keys[s], keys[s + 1], keys[s + 2], keys[s + 3] = a, b, c, d
    width = RUN
    while width < n:
        for s in range(0, n, 2 * width):
            i, j = s, s + width
            p, q = j - 1, j + width - 1
            end = q
            for k in range(width):
                x, y = keys[i], keys[j]
                left = x <= y
                spare[s + k] = x if left else y
                i += left
                j += not left
                x, y = keys[p], keys[q]
                right = x <= y
                spare[end - k] = y if right else x
                q -= right
                p -= not right
        for k in range(n):
            keys[k] = spare[k]
        width *= 2


@kernel
def order_documents(
    scores: NDArray[np.float64],
    bits: NDArray[np.int64],
    order: NDArray[np.int64],
    keys: NDArray[np.int64],
    spare: NDArray[np.int64],
) -> None:
    """Write the order of documents from the largest score to the smallest; ties keep theirs.

    ``bits`` are the scores viewed as integers, without a negative zero; the scratch arrays have
    the padded length.
    """
    n = len(scores)
    length = padded_length(n)
    number = length - 1
    for i in range(n):
        # As integers, negative floats sort in reverse; the complement sorts from large to small.
        # The lowest bits make room for the document's number, which breaks ties.
        upwards = bits[i] ^ ((bits[i] >> 63) & LARGEST)
        keys[i] = (~upwards & ~number) | i
    for i in range(n, length):
        keys[i] = LARGEST
    sort_keys(keys, spare, length)
    # Scores that differ only in the bits given up for the number are sorted by insertion.
    for k in range(n):
        item = keys[k] & number
        place = k
        while place > 0 and scores[order[place - 1]] < scores[item]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = item


@kernel
def find_ties(
    scores: NDArray[np.float64], order: NDArray[np.int64], ends: NDArray[np.int64]
) -> int:
    """Write where each group of tied documents ends in the order; return how many there are."""
    n = len(scores)
    n_groups = 0
    for k in range(n):
        if k == n - 1 or scores[order[k]] != scores[order[k + 1]]:
            ends[n_groups] = k + 1
            n_groups += 1
    return n_groups


@kernel
def sort_values(
    bits: NDArray[np.int64],
    out_bits: NDArray[np.int64],
    keys: NDArray[np.int64],
    spare: NDArray[np.int64],
) -> None:
    """Sort values of at least 0, viewed as integers, from large to small.

    Grades give few different values: these are selected one after the other.
    """
    n = len(bits)
    placed = 0
    bound = np.int64(LARGEST)
    for _ in range(FEW):
        top = np.int64(-1)
        for i in range(n):
            top = max(top, bits[i] if bits[i] < bound else np.int64(-1))
        count = 0
        for i in range(n):
            count += bits[i] == top
        for k in range(placed, placed + count):
            out_bits[k] = top
        placed += count
        bound = top
        if placed == n:
            return
    length = padded_length(n)
    for i in range(n):
        keys[i] = ~bits[i]
    for i in range(n, length):
        keys[i] = LARGEST
    sort_keys(keys, spare, length)
    for i in range(n):
        out_bits[i] = ~keys[i]


@kernel
def cumulated(
    values: NDArray[np.float64], ends: NDArray[np.int64], weights: NDArray[np.float64], depth: int
) -> float:
    """Return the expected sum of value x weight: a tied document has its group's mean weight."""
    total = 0.0
    start = 0
    for end in ends:
        if start >= depth:
            break
        if end - start == 1:  # most groups are single documents, which need no division
            total += values[start] * weights[start]
            start = end
            continue
        value = 0.0
        for i in range(start, end):
            value += values[i]
        weight = 0.0
        for i in range(start, min(end, depth)):
            weight += weights[i]
        total += value / (end - start) * weight
        start = end
    return total


@kernel
def best_cumulated(ideal: NDArray[np.float64], weights: NDArray[np.float64], depth: int) -> float:
    """Return the sum of value x weight for values from large to small."""
    total = 0.0
    for i in range(min(len(ideal), depth)):
        total += ideal[i] * weights[i]
    return total


@kernel
def cascade(
    values: NDArray[np.float64],
    ends: NDArray[np.int64],
    weights: NDArray[np.float64],
    depth: int,
    survival: NDArray[np.float64],
) -> float:
    """Return ERR or pFound: the expected weight of the rank where a user stops (Ensemble, Eq. 1).

    ``survival`` is scratch memory, one place longer than the longest query.
    """
    total = 0.0
    alive = 1.0
    start = 0
    for end in ends:
        if start >= depth:  # what is below counts nothing, and ties there would take long
            break
        size = end - start
        if size == 1:
            total += alive * values[start] * weights[start]
            alive *= 1.0 - values[start]
            start = end
            continue
        reach = min(size, depth - start)
        fill_survival(survival, values[start:end], reach)
        for p in range(reach):
            total += alive * (survival[p] - survival[p + 1]) * weights[start + p]
        alive *= survival[reach]
        start = end
    return total


@kernel
def fill_survival(survival: NDArray[np.float64], values: NDArray[np.float64], reach: int) -> None:
    """Write the expected chance to continue past 0 to ``reach`` of tied documents.

    When one more document joins n others, it is among the first p of the n + 1 with chance
    p / (n + 1).
    """
    survival[0] = 1.0
    for p in range(1, reach + 1):
        survival[p] = 0.0
    for n in range(len(values)):
        continues = 1.0 - values[n]
        # From the last place upwards: each needs the one before it as it was with n documents.
        for p in range(min(n + 1, reach), 0, -1):
            survival[p] = ((n + 1 - p) * survival[p] + p * continues * survival[p - 1]) / (n + 1)


@kernel
def average_precision(relevant: NDArray[np.float64], ends: NDArray[np.int64], depth: int) -> float:
    """Return the expected average precision.

    A relevant document at place p of a group of n has, of the group's other r - 1 relevant ones,
    (p - 1)(r - 1) / (n - 1) above itself.
    """
    total = 0.0
    above = 0.0
    start = 0
    for end in ends:
        size = end - start
        if size == 1:
            above += relevant[start]
            if relevant[start] > 0.0 and start < depth:
                total += above / end
            start = end
            continue
        here = 0.0
        for i in range(start, end):
            here += relevant[i]
        if here > 0.0:
            share = (here - 1.0) / (size - 1.0)
            for i in range(start, min(end, depth)):
                total += here / size * (above + 1.0 + (i - start) * share) / (i + 1.0)
        above += here
        start = end
    return total / above  # all relevant ones, also below the depth; there is one at least


@kernel
def reciprocal_rank(
    relevant: NDArray[np.float64], ends: NDArray[np.int64], weights: NDArray[np.float64], depth: int
) -> float:
    """Return the expected weight / rank of the first relevant rank: in the first group with one."""
    start = 0
    for end in ends:
        here = 0.0
        for i in range(start, end):
            here += relevant[i]
        if here > 0.0:
            total = 0.0
            none_yet = 1.0
            for i in range(start, min(end, depth)):
                # Of the places that remain, ``here`` are relevant if none was yet. The ratio is
                # above 1 where fewer remain than are relevant: none_yet is 0 there.
                chance = min(here / (end - i), 1.0)
                total += none_yet * chance * weights[i] / (i + 1.0)
                none_yet *= 1.0 - chance
            return total
        start = end
    return 0.0


@kernel
def precision(relevant: NDArray[np.float64], ends: NDArray[np.int64], depth: int) -> float:
    """Return the expected number of relevant documents down to the depth."""
    total = 0.0
    start = 0
    for end in ends:
        if start >= depth:
            break
        here = 0.0
        for i in range(start, end):
            here += relevant[i]
        total += here * (min(end, depth) - start) / (end - start)
        start = end
    return total


@kernel
def measure_all(
    first_query: int,
    last_query: int,
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    values: NDArray[np.float64],
    measures: MeasureTable,
    best_known: bool,
    best: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Evaluate several measures on some queries with a single sort of the scores of each.

    ``values`` has rows of document values, which measures may share. ``best`` has the divisors of
    normalised measures, and is filled unless it is known. Scores have no negative zero.
    """
    forms, depths, empty = measures.forms, measures.depths, measures.empty
    rows, weights, normalised = measures.rows, measures.rank_weights, measures.normalised
    # Integers compare like floats of one sign, and make room for a document's number in their last
    # bits: see `order_documents`. Values are at least 0, so that their bits sort as they are.
    score_bits = scores.view(np.int64)
    value_bits = values.view(np.int64)
    longest = weights.shape[1]
    keys = np.empty(padded_length(longest), np.int64)
    spare = np.empty(padded_length(longest), np.int64)
    order = np.empty(longest, np.int64)
    ends = np.empty(longest, np.int64)
    survival = np.empty(longest + 1, np.float64)
    ranked = np.empty((values.shape[0], longest), np.float64)
    ideal = np.empty((values.shape[0], longest), np.float64)
    ideal_bits = ideal.view(np.int64)
    has_value = np.empty(values.shape[0], np.bool_)
    for q in range(first_query, last_query):
        start, end = offsets[q], offsets[q + 1]
        n = end - start
        order_documents(scores[start:end], score_bits[start:end], order, keys, spare)
        n_groups = find_ties(scores[start:end], order, ends)
        for v in range(values.shape[0]):
            has_value[v] = False
            for i in range(n):
                ranked[v, i] = values[v, start + order[i]]
                has_value[v] |= ranked[v, i] > 0.0
            if normalised[v] and has_value[v] and not best_known:
                sort_values(value_bits[v, start:end], ideal_bits[v], keys, spare)
        for m in range(len(forms)):
            v = rows[m]
            if not has_value[v]:
                out[m, q] = empty[m]
                continue
            depth = n if depths[m] == 0 else depths[m]
            documents = ranked[v, :n]
            groups = ends[:n_groups]
            if forms[m] == CUMULATED:
                out[m, q] = cumulated(documents, groups, weights[m], depth)
            elif forms[m] == NORMALISED:
                if not best_known:
                    best[m, q] = best_cumulated(ideal[v, :n], weights[m], depth)
                ratio = cumulated(documents, groups, weights[m], depth) / best[m, q]
                out[m, q] = min(ratio, 1.0)  # means over ties may round to above 1
            elif forms[m] == CASCADE:
                chance = cascade(documents, groups, weights[m], depth, survival)
                out[m, q] = min(chance, 1.0)  # sums of chances may round likewise
            elif forms[m] == AVERAGE_PRECISION:
                out[m, q] = average_precision(documents, groups, depth)
            elif forms[m] == RECIPROCAL_RANK:
                chance = reciprocal_rank(documents, groups, weights[m], depth)
                out[m, q] = min(chance, 1.0)
            else:
                divisor = float(depth if forms[m] == PRECISION else min(depth, n))
                if forms[m] == RECALL:  # of all ranks: all relevant documents
                    divisor = precision(documents, groups, n)
                out[m, q] = precision(documents, groups, depth) / divisor
