"""Contributions of features to the scores of trees: path-dependent TreeSHAP by exact quadrature.

A feature that a coalition knows sends a document the way of its value; one that it does not know
sends it both ways, in the shares of the training documents. A leaf of value v, on whose path are d
different features, then contributes to feature i

    v (o_i - z_i) times the sum over S without i of |S|! (d - |S| - 1)! / d! times
    the product of o_j over S and of z_j over the others,

where o_j is 1 if the document's value of feature j goes towards the leaf at all splits on it, else
0, and z_j the product of the shares of training documents that do. The factorials are the integral
of t^|S| (1 - t)^(d - |S| - 1) from 0 to 1, so that the sum is the integral of the product of
o_j t + z_j (1 - t) over all j but i, a polynomial of degree d - 1: Gauss-Legendre quadrature with
d / 2 nodes, rounded up, gives it exactly. All terms are positive, so nothing cancels.

The products are shared as paths are: a pass down the tree multiplies them, node by node, and a pass
up adds the leaves below every split. Both treat several documents at once, one in each lane.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel
from rankinite.core.lanes import in_all_lanes, load_lanes, n_lanes, select, store_lanes
from rankinite.trees.kernels.categories import side_of

DOC_LANES = n_lanes(np.float64)
# Values and sums of so many documents stay in the cache while all trees pass over them.
BLOCK_DOCS = 8 * DOC_LANES
NO_NODE = -1


class Paths(NamedTuple):
    """Trees one behind the other: the shares of training documents along their paths.

    The nodes of a tree are its splits, then its leaves. What is said of a node's edge, the one that
    leads to it, concerns the feature of the split above it.

    Attributes
    ----------
    split_offsets, node_offsets
        Where the splits and the nodes of each tree begin.
    left, right
        Nodes below each split, counted within the tree.
    earlier
        By split, the last node on its path whose edge is of the same feature; `NO_NODE` if none is.
    share, joint_share
        By node, the share of training documents that its edge leads to it; and its product with
        those of the same feature's earlier edges.
    n_unique
        By tree, the largest number of different features on a path.
    """

    split_offsets: NDArray[np.int64]
    node_offsets: NDArray[np.int64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    earlier: NDArray[np.int32]
    share: NDArray[np.float64]
    joint_share: NDArray[np.float64]
    n_unique: NDArray[np.int64]


class Splits(NamedTuple):
    """What the splits of trees ask for.

    Attributes
    ----------
    column
        Column of each split.
    threshold, missing_left
        As in `Tree`; NaN for a categorical split.
    set_of, left_sets
        Which set of bins goes left by a categorical split, and the sets.
    values
        Values of the leaves.
    """

    column: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    set_of: NDArray[np.int32]
    left_sets: NDArray[np.uint8]
    values: NDArray[np.float64]


class Quadrature(NamedTuple):
    """Numbers that a pass over trees multiplies with, for each node and quadrature node.

    Attributes
    ----------
    offsets
        By tree, where its numbers begin; each node has as many as the tree has quadrature nodes.
    known, leaves_path
        Factors of the product if the document follows the edge, and if it does so no longer.
    weight
        What a leaf below counts for the feature of the edge if the document follows it.
    weight_off_path, offsets_off_path
        The same if it does not, which only depends on the quadrature; and where it begins by tree.
    """

    offsets: NDArray[np.int64]
    known: NDArray[np.float64]
    leaves_path: NDArray[np.float64]
    weight: NDArray[np.float64]
    weight_off_path: NDArray[np.float64]
    offsets_off_path: NDArray[np.int64]


@kernel
def write_paths(
    first: int,
    last: int,
    column: NDArray[np.int32],
    leaf_docs: NDArray[np.int64],
    paths: Paths,
) -> None:
    """Write all of the paths of some trees but their offsets and children."""
    for tree in range(first, last):
        s = paths.split_offsets[tree]
        n = paths.node_offsets[tree]
        m = paths.split_offsets[tree + 1] - s
        parent = np.full(2 * m + 1, NO_NODE, np.int64)
        unique = np.zeros(2 * m + 1, np.int64)
        docs = np.empty(2 * m + 1, np.float64)
        for leaf in range(m + 1):
            # Leaves of all trees before this: one more than splits each.
            docs[m + leaf] = max(leaf_docs[s + tree + leaf], 0)
        for k in range(m - 1, -1, -1):
            docs[k] = docs[paths.left[s + k]] + docs[paths.right[s + k]]
        paths.share[n] = paths.joint_share[n] = 1.0
        deepest = 0
        for k in range(m):
            feature = column[s + k]
            node = k
            while node != 0 and column[s + parent[node]] != feature:
                node = parent[node]
            earlier = node if node != 0 else NO_NODE
            paths.earlier[s + k] = earlier
            for child in (paths.left[s + k], paths.right[s + k]):
                parent[child] = k
                # Where no training document came by, both ways are alike.
                share = docs[child] / docs[k] if docs[k] > 0.0 else 0.5
                paths.share[n + child] = share
                before = 1.0 if earlier < 0 else paths.joint_share[n + earlier]
                paths.joint_share[n + child] = before * share
                unique[child] = unique[k] + (1 if earlier < 0 else 0)
                deepest = max(deepest, unique[child])
        paths.n_unique[tree] = deepest


@kernel
def write_expected_values(
    first: int,
    last: int,
    values: NDArray[np.float64],
    paths: Paths,
    out: NDArray[np.float64],
) -> None:
    """Write the mean value of the leaves of each tree over its training documents."""
    for tree in range(first, last):
        s, n = paths.split_offsets[tree], paths.node_offsets[tree]
        m = paths.split_offsets[tree + 1] - s
        means = np.empty(2 * m + 1)
        for leaf in range(m + 1):
            means[m + leaf] = values[s + tree + leaf]
        for k in range(m - 1, -1, -1):
            left, right = paths.left[s + k], paths.right[s + k]
            means[k] = paths.share[n + left] * means[left] + paths.share[n + right] * means[right]
        out[tree] = means[0]


@kernel
def write_factors(
    first_tree: int,
    paths: Paths,
    t: NDArray[np.float64],
    weights: NDArray[np.float64],
    node_counts: NDArray[np.int64],
    quadrature: Quadrature,
) -> None:
    """Write the numbers of a quadrature for the trees from the first one on.

    ``t`` and ``weights`` are the nodes of quadrature and their weights, tree by tree, where
    `Quadrature.weight_off_path` has them, and ``node_counts`` their numbers.
    """
    for i in range(len(node_counts)):
        tree = first_tree + i
        s, n = paths.split_offsets[tree], paths.node_offsets[tree]
        m = paths.split_offsets[tree + 1] - s
        n_q, begin = node_counts[i], quadrature.offsets[i]
        q0 = quadrature.offsets_off_path[i]
        for q in range(n_q):
            quadrature.weight_off_path[q0 + q] = -weights[q0 + q] / (1.0 - t[q0 + q])
        for k in range(m):
            earlier = paths.earlier[s + k]
            before = 1.0 if earlier < 0 else paths.joint_share[n + earlier]
            for child in (paths.left[s + k], paths.right[s + k]):
                z = paths.joint_share[n + child]
                for q in range(n_q):
                    at, u, rest = begin + child * n_q + q, t[q0 + q], 1.0 - t[q0 + q]
                    old, new = u + before * rest, u + z * rest
                    quadrature.known[at] = new / old
                    quadrature.leaves_path[at] = z * rest / old
                    quadrature.weight[at] = (1.0 - z) * weights[q0 + q] / new


@kernel
def write_columns(
    X: NDArray[np.float32],
    rows: NDArray[np.int64],
    start: int,
    n: int,
    features: NDArray[np.int64],
    bins: NDArray[np.int64],
    categories: NDArray[np.float32],
    category_offsets: NDArray[np.int64],
    columns: NDArray[np.float64],
) -> None:
    """Write the features of n rows, column by column, categories as the numbers of their bins."""
    for j in range(len(features)):
        n_bins = bins[j]
        codes = categories[category_offsets[j] : category_offsets[j + 1]]
        for k in range(n):
            value = np.float64(X[start + k if len(rows) == 0 else rows[start + k], features[j]])
            if n_bins > 0:
                place = 0
                while place < len(codes) and codes[place] != value:
                    place += 1
                value = np.float64(place if place < len(codes) else n_bins)
            columns[j * BLOCK_DOCS + k] = value


@inlined_kernel
def left_lanes(
    columns: NDArray[np.float64], at: int, split: int, splits: Splits, sides: NDArray[np.float64]
) -> Any:
    """Return for each lane 1 if the document goes left at a split, else 0."""
    threshold = splits.threshold[split]
    if splits.set_of[split] >= 0:
        left_set = splits.left_sets[splits.set_of[split]]
        for k in range(DOC_LANES):
            sides[k] = 1.0 - side_of(int(columns[at + k]), left_set)
        return load_lanes(sides, 0)
    values = load_lanes(columns, at)
    # A comparison with NaN is false.
    to_the_right = select(values > threshold, 0.0, 1.0)
    if splits.missing_left[split]:
        return to_the_right
    return select(values < threshold, 1.0, to_the_right * select(abs(values) > -1.0, 1.0, 0.0))


@kernel
def pass_down(
    tree: int,
    i: int,
    n_q: int,
    at: int,
    paths: Paths,
    splits: Splits,
    quadrature: Quadrature,
    columns: NDArray[np.float64],
    sides: NDArray[np.float64],
    follows: NDArray[np.float64],
    products: NDArray[np.float64],
) -> None:
    """Write whether documents follow each edge, and the product along the path to each node.

    The products of leaves are multiplied by their values.
    """
    s, n = paths.split_offsets[tree], paths.node_offsets[tree]
    m = paths.split_offsets[tree + 1] - s
    for q in range(n_q):
        store_lanes(products, q * DOC_LANES, in_all_lanes(1.0))
    for k in range(m):
        goes_left = left_lanes(
            columns, splits.column[s + k] * BLOCK_DOCS + at, s + k, splits, sides
        )
        goes_right = 1.0 - goes_left
        earlier = paths.earlier[s + k]
        left, right = paths.left[s + k], paths.right[s + k]
        on_left, on_right = quadrature.offsets[i] + left * n_q, quadrature.offsets[i] + right * n_q
        here, to_left, to_right = k * n_q, left * n_q, right * n_q
        if earlier < 0:
            is_left = goes_left > 0.5
            for q in range(n_q):
                product = load_lanes(products, (here + q) * DOC_LANES)
                known, off = quadrature.known[on_left + q], quadrature.leaves_path[on_left + q]
                factor = select(is_left, known, off)
                store_lanes(products, (to_left + q) * DOC_LANES, product * factor)
                known, off = quadrature.known[on_right + q], quadrature.leaves_path[on_right + q]
                factor = select(is_left, off, known)
                store_lanes(products, (to_right + q) * DOC_LANES, product * factor)
        else:
            before = load_lanes(follows, earlier * DOC_LANES)
            goes_left, goes_right = goes_left * before, goes_right * before
            is_left, is_right, was_followed = goes_left > 0.5, goes_right > 0.5, before > 0.5
            left_share, right_share = paths.share[n + left], paths.share[n + right]
            for q in range(n_q):
                product = load_lanes(products, (here + q) * DOC_LANES)
                known, off = quadrature.known[on_left + q], quadrature.leaves_path[on_left + q]
                factor = select(is_left, known, select(was_followed, off, left_share))
                store_lanes(products, (to_left + q) * DOC_LANES, product * factor)
                known, off = quadrature.known[on_right + q], quadrature.leaves_path[on_right + q]
                factor = select(is_right, known, select(was_followed, off, right_share))
                store_lanes(products, (to_right + q) * DOC_LANES, product * factor)
        store_lanes(follows, left * DOC_LANES, goes_left)
        store_lanes(follows, right * DOC_LANES, goes_right)
    for leaf in range(m + 1):
        value = splits.values[s + tree + leaf]
        for q in range(n_q):
            place = ((m + leaf) * n_q + q) * DOC_LANES
            store_lanes(products, place, value * load_lanes(products, place))


@kernel
def pass_up(
    tree: int,
    i: int,
    n_q: int,
    at: int,
    paths: Paths,
    splits: Splits,
    quadrature: Quadrature,
    follows: NDArray[np.float64],
    products: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Add the contributions of a tree to the sums of the columns, from the last split to the root.

    What leaves below an edge count for its feature replaces what the earlier edge of the same
    feature will count for them, which is therefore subtracted.
    """
    s = paths.split_offsets[tree]
    weight, off_path = quadrature.weight, quadrature.weight_off_path
    begin, q0 = quadrature.offsets[i], quadrature.offsets_off_path[i]
    for k in range(paths.split_offsets[tree + 1] - s - 1, -1, -1):
        left, right, earlier = paths.left[s + k], paths.right[s + k], paths.earlier[s + k]
        is_left = load_lanes(follows, left * DOC_LANES) > 0.5
        is_right = load_lanes(follows, right * DOC_LANES) > 0.5
        here, from_left, from_right = k * n_q, left * n_q, right * n_q
        total = in_all_lanes(0.0)
        if earlier < 0:
            for q in range(n_q):
                below_left = load_lanes(products, (from_left + q) * DOC_LANES)
                below_right = load_lanes(products, (from_right + q) * DOC_LANES)
                off = off_path[q0 + q]
                total = total + below_left * select(is_left, weight[begin + from_left + q], off)
                total = total + below_right * select(is_right, weight[begin + from_right + q], off)
                store_lanes(products, (here + q) * DOC_LANES, below_left + below_right)
        else:
            was_followed = load_lanes(follows, earlier * DOC_LANES) > 0.5
            on_earlier = begin + earlier * n_q
            for q in range(n_q):
                below_left = load_lanes(products, (from_left + q) * DOC_LANES)
                below_right = load_lanes(products, (from_right + q) * DOC_LANES)
                off = off_path[q0 + q]
                total = total + below_left * select(is_left, weight[begin + from_left + q], off)
                total = total + below_right * select(is_right, weight[begin + from_right + q], off)
                below = below_left + below_right
                total = total - below * select(was_followed, weight[on_earlier + q], off)
                store_lanes(products, (here + q) * DOC_LANES, below)
        place = splits.column[s + k] * BLOCK_DOCS + at
        store_lanes(sums, place, load_lanes(sums, place) + total)


@kernel
def add_contributions(
    first: int,
    last: int,
    X: NDArray[np.float32],
    rows: NDArray[np.int64],
    features: NDArray[np.int64],
    bins: NDArray[np.int64],
    categories: NDArray[np.float32],
    category_offsets: NDArray[np.int64],
    first_tree: int,
    paths: Paths,
    splits: Splits,
    quadrature: Quadrature,
    node_counts: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Add the contributions of some trees, to the documents from first to last - 1.

    ``out`` has the outputs, the documents and the features that some split asks for. No ``rows``
    means that document i is row i of X.
    """
    n_outputs, n_features = out.shape[0], len(features)
    most_nodes = most_products = 1
    for i in range(len(node_counts)):
        tree = first_tree + i
        n_nodes = paths.node_offsets[tree + 1] - paths.node_offsets[tree]
        most_nodes = max(most_nodes, n_nodes)
        most_products = max(most_products, n_nodes * node_counts[i])
    columns = np.zeros(n_features * BLOCK_DOCS)
    sides = np.zeros(DOC_LANES)
    follows = np.empty(most_nodes * DOC_LANES)
    products = np.empty(most_products * DOC_LANES)
    sums = np.empty((n_outputs, n_features * BLOCK_DOCS))
    for start in range(first, last, BLOCK_DOCS):
        n = min(BLOCK_DOCS, last - start)
        write_columns(
            X, rows, start, n, features, bins, categories, category_offsets, columns
        )  # fmt: skip
        sums[:] = 0.0
        for i in range(len(node_counts)):
            tree = first_tree + i
            of_output = sums[tree % n_outputs]
            # Documents behind the last are computed along, and never read.
            for at in range(0, n, DOC_LANES):
                pass_down(
                    tree, i, node_counts[i], at, paths, splits, quadrature, columns, sides,
                    follows, products,
                )  # fmt: skip
                pass_up(
                    tree, i, node_counts[i], at, paths, splits, quadrature, follows, products,
                    of_output,
                )  # fmt: skip
        for output in range(n_outputs):
            for k in range(n):
                for j in range(n_features):
                    out[output, start + k, j] += sums[output, j * BLOCK_DOCS + k]
