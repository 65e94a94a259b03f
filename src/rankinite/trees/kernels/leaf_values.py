"""Values of leaves under limits: a largest step, smoothing along the path, monotone constraints.

A leaf is a box: an interval of every feature, perhaps with missing values. Leaf a is below leaf b
if some input of a becomes one of b by moving constrained features in their directions only, all
others being equal. The score is monotone for all inputs if no leaf has a larger value than one that
it is below; where training saw no document does not matter.

Of all such values, those of `monotone_values` are nearest to what the leaves have by themselves, by
weighted least squares, which is isotonic regression on a partial order. They are found by dividing
sets of leaves: if some of a set want more than its mean, on balance, and nothing that is above
them is left out, these may be split off, and otherwise all have the mean (Maxwell and Muckstadt
1985; Spouge, Wan and Wilbur 2003). Which leaves those are is a question of maximum flow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel
from rankinite.trees.kernels.gain import limited_value

# What is left of a flow after rounding, as a share of all that wants to flow.
ROUNDING = 1e-13
NOWHERE = -2
SOURCE = -1


@kernel
def subtree_ends(
    first: NDArray[np.uint16], right: NDArray[np.uint16], n_leaves: int, ends: NDArray[np.int64]
) -> None:
    """Write the leaf behind the last one of each split's subtree."""
    open_ends = np.empty(len(first) + 1, np.int64)
    open_ends[0] = n_leaves
    top = 0
    for k in range(len(first)):
        while open_ends[top] <= first[k]:
            top -= 1
        ends[k] = open_ends[top]
        top += 1
        open_ends[top] = right[k]


@kernel
def limit_values(
    first: NDArray[np.uint16],
    right: NDArray[np.uint16],
    sums: NDArray[np.float64],
    l2: float,
    max_step: float,
    path_smooth: float,
    values: NDArray[np.float64],
) -> None:
    """Write the value of each leaf, limited and smoothed from the root to the leaf.

    ``sums`` has the gradients, the divisors without the L2 term, and the numbers of documents.
    """
    n_leaves = len(values)
    ends = np.empty(len(first), np.int64)
    subtree_ends(first, right, n_leaves, ends)
    n_splits = len(first)
    # Until the end, each leaf holds the value of the last split on its path.
    for k in range(n_splits + n_leaves):
        is_split = k < n_splits
        start = np.int64(first[k]) if is_split else k - n_splits
        end = ends[k] if is_split else start + 1
        gradient, divisor, n_docs = 0.0, l2, 0.0
        for leaf in range(start, end):
            gradient += sums[0, leaf]
            divisor += sums[1, leaf]
            n_docs += sums[2, leaf]
        smooth = path_smooth if k > 0 else 0.0
        value = 0.0
        if divisor > 0.0:
            value = limited_value(gradient, divisor, n_docs, values[start], max_step, smooth)
        values[start:end] = value


@kernel
def find_boxes(
    feature: NDArray[np.int64],
    threshold: NDArray[np.float32],
    missing_left: NDArray[np.bool_],
    first: NDArray[np.uint16],
    right: NDArray[np.uint16],
    lower: NDArray[np.float32],
    upper: NDArray[np.float32],
    missing: NDArray[np.bool_],
) -> None:
    """Write the interval of each leaf in each feature, and whether missing values get there.

    Features are numbered among those that the tree splits. The lower end is not included.
    """
    lower[:], upper[:], missing[:] = -np.inf, np.inf, True
    ends = np.empty(len(first), np.int64)
    subtree_ends(first, right, len(lower), ends)
    for k in range(len(first)):
        j, middle = feature[k], np.int64(right[k])
        for leaf in range(np.int64(first[k]), ends[k]):
            if leaf < middle:
                upper[leaf, j] = min(upper[leaf, j], threshold[k])
                missing[leaf, j] &= missing_left[k]
            else:
                lower[leaf, j] = max(lower[leaf, j], threshold[k])
                missing[leaf, j] &= not missing_left[k]


@kernel
def is_below(
    directions: NDArray[np.int64],
    lower: NDArray[np.float32],
    upper: NDArray[np.float32],
    missing: NDArray[np.bool_],
    a: int,
    b: int,
) -> bool:
    """Return whether leaf a is below leaf b: in no feature an input of a has to move against it."""
    for j in range(len(directions)):
        if missing[a, j] and missing[b, j]:
            continue
        if lower[a, j] >= upper[a, j] or lower[b, j] >= upper[b, j]:
            return False  # only missing values get there
        if directions[j] <= 0 and lower[b, j] >= upper[a, j]:
            return False
        if directions[j] >= 0 and lower[a, j] >= upper[b, j]:
            return False
    return True


@kernel
def find_order(
    directions: NDArray[np.int64],
    lower: NDArray[np.float32],
    upper: NDArray[np.float32],
    missing: NDArray[np.bool_],
    below: NDArray[np.bool_],
) -> None:
    """Write which leaves are below which."""
    for a in range(len(below)):
        for b in range(len(below)):
            below[a, b] = a != b and is_below(directions, lower, upper, missing, a, b)


@kernel
def push(
    a: int, b: int, surplus: NDArray[np.float64], origin: NDArray[np.int64],
    flow: NDArray[np.float64],
) -> None:  # fmt: skip
    """Send as much as possible from a to b, along the path that ``origin`` has back from b."""
    amount = min(surplus[a], -surplus[b])
    leaf = b
    while leaf != a:
        before = origin[leaf]
        # Against the order, only what came from there can be sent back.
        if flow[leaf, before] > 0.0:
            amount = min(amount, flow[leaf, before])
        leaf = before
    leaf = b
    while leaf != a:
        before = origin[leaf]
        if flow[leaf, before] > 0.0:
            flow[leaf, before] -= amount
        else:
            flow[before, leaf] += amount
        leaf = before
    surplus[a] -= amount
    surplus[b] += amount


@kernel
def find_upper_set(
    leaves: NDArray[np.int64],
    below: NDArray[np.bool_],
    surplus: NDArray[np.float64],
    flow: NDArray[np.float64],
    origin: NDArray[np.int64],
    queue: NDArray[np.int64],
) -> None:
    """Find the leaves whose surpluses those above them cannot take: they have an origin then.

    A leaf's surplus flows to leaves that it is below and that lack something. ``flow`` is 0 at
    first, and what flows along the order is undone where that makes another path possible.
    """
    n = len(leaves)
    total = 0.0
    for k in range(n):
        total += abs(surplus[leaves[k]])
    least = ROUNDING * total
    searching = True
    while searching:
        searching = False
        end = 0
        for k in range(n):
            origin[leaves[k]] = NOWHERE
            if surplus[leaves[k]] > least:
                origin[leaves[k]] = SOURCE
                queue[end] = leaves[k]
                end += 1
        start = 0
        while start < end and not searching:
            a = queue[start]
            start += 1
            for k in range(n):
                b = leaves[k]
                if origin[b] != NOWHERE or not (below[a, b] or flow[b, a] > 0.0):
                    continue
                origin[b] = a
                queue[end] = b
                end += 1
                if surplus[b] < -least:
                    source = a
                    while origin[source] != SOURCE:
                        source = origin[source]
                    push(source, b, surplus, origin, flow)
                    searching = True
                    break


@kernel
def is_in_order(below: NDArray[np.bool_], values: NDArray[np.float64]) -> bool:
    """Return whether no leaf has a larger value than one that it is below."""
    for a in range(len(values)):
        for b in range(len(values)):
            if below[a, b] and values[a] > values[b]:
                return False
    return True


@kernel
def monotone_values(
    below: NDArray[np.bool_], weights: NDArray[np.float64], values: NDArray[np.float64]
) -> None:
    """Move values as little as possible, by weighted least squares, so that the order holds.

    It holds to the last bit: what is split off a set is bounded by its mean.
    """
    if is_in_order(below, values):
        return
    n = len(values)
    targets = values.copy()
    lowest, highest = np.full(n, -np.inf), np.full(n, np.inf)
    set_of = np.zeros(n, np.int64)
    leaves, origin, queue = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    surplus, flow = np.empty(n), np.zeros((n, n))
    n_sets = 1
    current = 0
    while current < n_sets:
        size = 0
        weight, mean = 0.0, 0.0
        for leaf in range(n):
            if set_of[leaf] == current:
                leaves[size] = leaf
                size += 1
                weight += weights[leaf]
                # Updated, not divided in the end: sums of large values could overflow.
                mean += (targets[leaf] - mean) * (weights[leaf] / weight)
        members = leaves[:size]
        for a in members:
            surplus[a] = weights[a] * (targets[a] - mean)
            for b in members:
                flow[a, b] = 0.0
        find_upper_set(members, below, surplus, flow, origin, queue)
        n_upper = 0
        for leaf in members:
            n_upper += origin[leaf] != NOWHERE
        if n_upper == 0 or n_upper == size:
            for leaf in members:
                values[leaf] = min(max(mean, lowest[current]), highest[current])
            current += 1
            continue
        for leaf in members:
            if origin[leaf] != NOWHERE:
                set_of[leaf] = n_sets
        middle = min(max(mean, lowest[current]), highest[current])
        lowest[n_sets], highest[n_sets] = middle, highest[current]
        highest[current] = middle
        n_sets += 1
