"""From nodes with children, as other tools write trees, to the arrays of our forests.

Nothing of the nodes is believed: children may be any numbers, and lead to a node twice, or in a
circle. All trees are followed at once, level by level, as in `find_levels`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import LARGEST as LARGEST_SUMMAND
from rankinite.core.errors import ModelFileError
from rankinite.core.jit import frozen
from rankinite.core.types import Floats
from rankinite.data.categories import MOST_CODES
from rankinite.trees.bins import MOST_BINS, SET_BYTES
from rankinite.trees.forest import LARGEST_GAIN, MAX_LEAVES, Categories, Forest, TreeArrays
from rankinite.trees.scoring import n_category_bins

# Deeper trees are chains that no tool grows, and take time for every level.
MOST_LEVELS = 10_000
LARGEST = float(np.finfo(np.float32).max)
LEAF = -1
NO_CODES = frozen(np.zeros(0, np.float32))


# Thresholds


def at_most(thresholds: ArrayLike) -> NDArray[np.float32]:
    """Return 32-bit thresholds that divide 32-bit numbers as ``x <= t`` does in 64 bits.

    Infinity is the threshold that all numbers are at most, minus infinity the one that none is.

    Examples
    --------
    >>> at_most([0.5, 0.1, 1e300, -1e300]).tolist()
    [0.5, 0.09999999403953552, inf, -inf]
    """
    exact = np.asarray(thresholds, np.float64)
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    # The largest number of 32 bits that is not above.
    below = np.nextafter(rounded, np.float32(-np.inf))
    chosen = np.where(rounded > exact, below, rounded)
    return np.where(exact >= LARGEST, np.float32(np.inf), chosen).astype(np.float32)


def less_than(thresholds: ArrayLike) -> NDArray[np.float32]:
    """Return thresholds that divide 32-bit numbers by ``x <= t`` as these do by ``x < t``.

    Examples
    --------
    >>> less_than([1.0, 0.0, np.inf]).tolist()
    [0.9999999403953552, -1.401298464324817e-45, inf]
    """
    with np.errstate(over="ignore", under="ignore"):
        exact = np.asarray(thresholds, np.float64).astype(np.float32)
        below = np.nextafter(exact, np.float32(-np.inf))
    return np.where(exact == np.inf, exact, below).astype(np.float32)


# Nodes


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes of a tree, the root first; children are numbers of nodes.

    Attributes
    ----------
    left, right
        The children of each split; both -1 for a leaf.
    feature, threshold, missing_left
        A document goes left if its feature is at most the threshold, or missing where
        ``missing_left`` says so. As `at_most` and `less_than` return thresholds.
    gain
        Gain of each split.
    value, docs
        Value of each leaf, and its number of training documents, or what the tool has instead.
    left_codes
        By categorical split, the categories that go left.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    gain: Floats
    value: Floats
    docs: Floats
    left_codes: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True)
class Shape:
    """Where the nodes of several trees, one behind the other, stand in the arrays of a forest.

    Attributes
    ----------
    splits, leaves
        The nodes in the order of `Tree`, of all trees.
    first, right
        First leaf of each split's subtree, and first leaf of its right subtree, by node.
    n_leaves
        Number of leaves of each tree.
    docs
        Documents below each node.
    """

    splits: NDArray[np.int64]
    leaves: NDArray[np.int64]
    first: NDArray[np.int64]
    right: NDArray[np.int64]
    n_leaves: NDArray[np.int64]
    docs: Floats


def build_forest(
    trees: Sequence[Nodes],
    n_features: int,
    start: float,
    known: Mapping[int, NDArray[np.int64]] | None = None,
    categorical_features: Iterable[int] = (),
) -> Forest:
    """Return the forest of some trees, or refuse them.

    Parameters
    ----------
    trees
        The trees, in the order in which they are added up.
    n_features
        Number of features.
    start
        The score before the first tree.
    known
        If categories that no split names go right where missing values go left: those that there
        are, by feature, as far as they are known.
    categorical_features
        Features that are categorical, also if no split asks for them.
    """
    if not abs(start) <= LARGEST_SUMMAND:
        raise ModelFileError("the score before the first tree is not finite, or too large")
    unused: Categories = dict.fromkeys(categorical_features, NO_CODES)
    if not all(0 <= j < n_features for j in unused):
        raise ModelFileError(f"a categorical feature is none of the {n_features}")
    if not trees:
        return Forest((), np.array([start]), n_features, unused)
    nodes, roots = _joined(trees)
    shape = _shape(nodes, roots)
    splits, leaves = shape.splits, shape.leaves
    feature, threshold = nodes.feature[splits], nodes.threshold[splits]
    if ((feature < 0) | (feature >= n_features)).any():
        raise ModelFileError(f"a split asks for a feature that is none of the {n_features}")
    is_categorical = np.zeros(len(nodes.left), np.bool_)
    is_categorical[list(nodes.left_codes)] = True
    categorical = is_categorical[splits]
    if np.isnan(threshold[~categorical]).any():
        raise ModelFileError("a split has a threshold that is no number")
    # As in our model files, where numbers that are added up must not become infinite.
    if not (np.abs(nodes.value[leaves]) <= LARGEST_SUMMAND).all():
        raise ModelFileError("a leaf has a value that is not finite, or too large to be added up")
    codes = {k: nodes.left_codes[int(n)] for k, n in enumerate(splits) if is_categorical[n]}
    missing_left = nodes.missing_left[splits]
    others: dict[int, NDArray[np.int64] | None] = {}
    if known is not None:
        others = {j: known.get(j) for j in feature[categorical & missing_left].tolist()}
    categories = {**unused, **_categories(feature, codes, others)}
    if not (np.isin(feature, list(categories)) == categorical).all():
        raise ModelFileError("a feature is categorical in some splits, and a number in others")
    values = {
        "feature": feature.astype(np.int32),
        "threshold": np.where(categorical, np.float32(np.nan), threshold),
        "missing_left": missing_left,
        "first": shape.first[splits].astype(np.uint16),
        "right": shape.right[splits].astype(np.uint16),
        "gain": np.where(np.abs(nodes.gain[splits]) <= LARGEST_GAIN, nodes.gain[splits], 0.0),
        "docs": shape.docs[splits].astype(np.int64),
        "value": nodes.value[leaves],
        "leaf_docs": shape.docs[leaves].astype(np.int64),
    }
    left_sets = _left_sets(feature, missing_left, codes, categories)
    separate = TreeArrays(values, shape.n_leaves, left_sets)
    return Forest(separate, np.array([start]), n_features, categories)


def _joined(trees: Sequence[Nodes]) -> tuple[Nodes, NDArray[np.int64]]:
    """Return the nodes of all trees as if they were one tree's, and the roots."""
    sizes = np.array([len(tree.left) for tree in trees])
    offsets = np.cumsum(sizes) - sizes
    by_name: dict[str, Any] = {
        name: np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("feature", "threshold", "missing_left", "gain", "value", "docs")
    }
    children = []
    for name in ("left", "right"):
        tree_children = [getattr(tree, name) for tree in trees]
        for number, (of_tree, size) in enumerate(zip(tree_children, sizes, strict=True)):
            if ((of_tree < LEAF) | (of_tree >= size)).any():
                raise ModelFileError(f"tree {number} has a split whose child is no node of it")
        offset = np.repeat(offsets, sizes)
        joined = np.concatenate(tree_children)
        children.append(np.where(joined == LEAF, LEAF, joined + offset))
    left, right = children
    if ((left == LEAF) != (right == LEAF)).any():
        raise ModelFileError("a split has only a single child")
    # A threshold that nothing is at most: the children change places, and everything is at most it.
    never = by_name["threshold"] == -np.inf
    by_name["threshold"] = np.where(never, np.float32(np.inf), by_name["threshold"])
    by_name["missing_left"] = by_name["missing_left"] ^ never
    left_codes = {
        int(offset) + split: codes
        for offset, tree in zip(offsets, trees, strict=True)
        for split, codes in tree.left_codes.items()
    }
    nodes = Nodes(
        left=np.where(never, right, left),
        right=np.where(never, left, right),
        left_codes=left_codes,
        **by_name,
    )
    return nodes, offsets


def _shape(nodes: Nodes, roots: NDArray[np.int64]) -> Shape:
    """Follow all trees from their roots, and find the order of their splits and leaves."""
    n_nodes, left, right = len(nodes.left), nodes.left, nodes.right
    visits = np.zeros(n_nodes, np.int64)
    visits[roots] = 1
    levels: list[NDArray[np.int64]] = []
    tree_of = np.empty(n_nodes, np.int64)
    tree_of[roots] = np.arange(len(roots))
    reached = [roots]
    splits = roots[left[roots] != LEAF]
    while len(splits):
        if len(levels) == MOST_LEVELS:
            raise ModelFileError(f"a tree is more than {MOST_LEVELS:,} levels deep")
        levels.append(splits)
        children = np.concatenate([left[splits], right[splits]])
        np.add.at(visits, children, 1)
        if (visits[children] > 1).any():
            number = int(tree_of[np.tile(splits, 2)[visits[children] > 1][0]])
            raise ModelFileError(f"tree {number} is no tree: two splits lead to the same node")
        tree_of[children] = np.tile(tree_of[splits], 2)
        reached.append(children)
        splits = children[left[children] != LEAF]
    n_leaves = np.ones(n_nodes, np.int64)
    docs = np.maximum(np.nan_to_num(nodes.docs, posinf=0.0, neginf=0.0), 0.0)
    for splits in reversed(levels):
        n_leaves[splits] = n_leaves[left[splits]] + n_leaves[right[splits]]
        docs[splits] = docs[left[splits]] + docs[right[splits]]
    if (n_leaves[roots] > MAX_LEAVES).any():
        raise ModelFileError(
            f"a tree has {int(n_leaves[roots].max()):,} leaves; rankinite has at most "
            f"{MAX_LEAVES:,} in a tree"
        )
    if docs.max() >= 2.0**62:
        raise ModelFileError("the numbers of documents in the leaves are too large")
    # Splits are numbered parent, left subtree, right subtree; leaves from left to right.
    first, position = np.zeros((2, n_nodes), np.int64)
    for splits in levels:
        leaves_left = n_leaves[left[splits]]
        first[left[splits]], position[left[splits]] = first[splits], position[splits] + 1
        # A left subtree has one split less than leaves.
        first[right[splits]] = first[splits] + leaves_left
        position[right[splits]] = position[splits] + leaves_left
    every = np.concatenate(reached)
    leaves = every[left[every] == LEAF]
    inner = every[left[every] != LEAF]
    middle = np.zeros(n_nodes, np.int64)
    middle[inner] = first[right[inner]]
    return Shape(
        splits=inner[np.lexsort((position[inner], tree_of[inner]))],
        leaves=leaves[np.lexsort((first[leaves], tree_of[leaves]))],
        first=first,
        right=middle,
        n_leaves=n_leaves[roots],
        docs=docs,
    )


# Categories


def _categories(
    feature: NDArray[np.int64],
    codes: Mapping[int, NDArray[np.int64]],
    others: Mapping[int, NDArray[np.int64] | None],
) -> Categories:
    """Return the categories of each feature that some split names, in increasing order.

    Of some features other categories have bins, too: those that are known; or, if these are not,
    the first ones.
    """
    named: dict[int, list[NDArray[np.int64]]] = {}
    for split, of_split in codes.items():
        named.setdefault(int(feature[split]), []).append(of_split)
    categories = {}
    for j, sets in named.items():
        every = np.unique(np.concatenate([np.zeros(0, np.int64), *sets]))
        if len(every) and (every[0] < 0 or every[-1] >= MOST_CODES):
            raise ModelFileError(f"a split names a category that is none from 0 to {MOST_CODES:,}")
        more = others.get(j, every)
        if more is not None:
            every = np.union1d(every, more)
        if len(every) > MOST_BINS:
            raise ModelFileError(
                f"feature {j} (from 0 on) has {len(every):,} categories that splits tell "
                f"apart; rankinite has at most {MOST_BINS} of a feature"
            )
        if more is None:
            first = np.setdiff1d(np.arange(MOST_BINS), every)
            every = np.union1d(every, first[: MOST_BINS - len(every)])
        categories[j] = frozen(every.astype(np.float32))
    return categories


def _left_sets(
    feature: NDArray[np.int64],
    missing_left: NDArray[np.bool_],
    codes: Mapping[int, NDArray[np.int64]],
    categories: Categories,
) -> NDArray[np.uint8]:
    """Return a set of bins for each categorical split, in their order."""
    goes_left = np.zeros((len(codes), SET_BYTES * 8), np.bool_)
    for row, (split, of_split) in zip(goes_left, sorted(codes.items()), strict=True):
        known = categories[int(feature[split])]
        row[np.searchsorted(known, of_split.astype(np.float32))] = True
        row[n_category_bins(known)] = missing_left[split]
    return np.packbits(goes_left, axis=1, bitorder="little")
