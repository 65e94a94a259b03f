"""The nodes of a tree one by one: rows of a table, and where a drawing starts from.

The arrays of a `Tree` are made for scoring. Here splits are called S0, S1, ... and leaves L0, L1,
... in the order of these arrays; the number of a leaf is the one that `Forest.leaves` returns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from rankinite.core.types import Floats
from rankinite.trees.forest import Tree

# Those of LightGBM's `trees_to_dataframe`, so that code which reads one reads the other.
COLUMNS = (
    *("tree_index", "node_depth", "node_index", "left_child", "right_child", "parent_index"),
    *("split_feature", "split_gain", "threshold", "decision_type", "missing_direction"),
    *("value", "count"),
)
NO_CATEGORIES: Mapping[int, tuple[str, ...]] = MappingProxyType({})
# Categories of a split that are written out.
SHOWN = 3


@dataclass(frozen=True)
class Node:
    """A split or a leaf of a tree; what a leaf does not have is None.

    Attributes
    ----------
    name, parent, left, right
        The node, the split above it, and those below it, by name; the root has no parent.
    depth
        1 for the root, one more than that of the parent otherwise.
    feature, threshold, missing
        A document goes left if this feature is at most the threshold, or if it is one of these
        categories, a tuple; ``missing`` is ``"left"`` or ``"right"``, where documents without a
        value go, and those of categories that training has not seen.
    gain
        How much the split gained.
    value
        What a leaf adds to the score; of a split the mean of that over its training documents.
    count
        Number of training documents.
    """

    name: str
    depth: int
    parent: str | None
    left: str | None
    right: str | None
    feature: str | None
    threshold: float | tuple[str, ...] | None
    missing: str | None
    gain: float | None
    value: float
    count: int

    @property
    def is_leaf(self) -> bool:
        """Whether this is a leaf."""
        return self.feature is None

    def as_row(self, tree: int) -> dict[str, Any]:
        """Return the node by `COLUMNS`.

        Parameters
        ----------
        tree
            The number of the tree, which becomes part of the names of nodes.
        """
        names = (self.name, self.left, self.right, self.parent)
        node, left, right, parent = (name and f"{tree}-{name}" for name in names)
        decision = None if self.is_leaf else "<="
        threshold: float | str | None
        if isinstance(self.threshold, tuple):
            decision, threshold = "==", "||".join(self.threshold)
        else:
            threshold = self.threshold
        values = (
            *(tree, self.depth, node, left, right, parent),
            *(self.feature, self.gain, threshold, decision, self.missing),
            *(self.value, self.count),
        )
        return dict(zip(COLUMNS, values, strict=True))


def tree_nodes(
    tree: Tree, feature_names: Sequence[str], left: Mapping[int, tuple[str, ...]] = NO_CATEGORIES
) -> Iterator[Node]:
    """Iterate over the nodes of a tree: a split, its left subtree, its right subtree.

    Parameters
    ----------
    tree
        The tree.
    feature_names
        One name per feature of the forest.
    left
        The categories that go left, by the number of each categorical split.
    """
    n_splits = 0
    # Subtrees as ranges of leaves, with the depth of their roots and the splits above.
    ranges: list[tuple[int, int, int, str | None]] = [(0, tree.n_leaves, 1, None)]
    while ranges:
        begin, end, depth, parent = ranges.pop()
        if end - begin == 1:
            yield _leaf(tree, begin, depth, parent)
            continue
        k, right = n_splits, int(tree.right[n_splits])
        n_splits += 1
        # The left subtree has a split less than leaves, all of which stand between the two.
        left_name = f"L{begin}" if right - begin == 1 else f"S{k + 1}"
        right_name = f"L{right}" if end - right == 1 else f"S{k + right - begin}"
        yield Node(
            name=f"S{k}",
            depth=depth,
            parent=parent,
            left=left_name,
            right=right_name,
            feature=feature_names[tree.feature[k]],
            threshold=left[k] if k in left else float(tree.threshold[k]),
            missing="left" if tree.missing_left[k] else "right",
            gain=float(tree.gain[k]),
            value=_mean(tree.value[begin:end], tree.leaf_docs[begin:end]),
            count=int(tree.docs[k]),
        )
        ranges += [(right, end, depth + 1, f"S{k}"), (begin, right, depth + 1, f"S{k}")]


def _leaf(tree: Tree, number: int, depth: int, parent: str | None) -> Node:
    return Node(
        name=f"L{number}",
        depth=depth,
        parent=parent,
        left=None,
        right=None,
        feature=None,
        threshold=None,
        missing=None,
        gain=None,
        value=float(tree.value[number]),
        count=int(tree.leaf_docs[number]),
    )


def _mean(values: Floats, counts: Any) -> float:
    """Return the mean over training documents; over leaves if a file says that there are none."""
    return float(np.average(values, weights=counts if counts.sum() > 0 else None))


def condition_text(node: Node, digits: int = 4) -> str:
    """Return the condition under which documents go left, without the missing ones.

    Examples
    --------
    >>> split = Node("S0", 1, None, "L0", "L1", "bm25", 12.34567, "left", 1.0, 0.0, 9)
    >>> condition_text(split)
    'bm25 <= 12.35'
    """
    # Features without names are numbered, and "4 <= 0.2" would be wrong.
    feature = f"feature {node.feature}" if str(node.feature).isdecimal() else node.feature
    threshold = node.threshold
    if isinstance(threshold, tuple):
        more = f", and {len(threshold) - SHOWN} more" if len(threshold) > SHOWN else ""
        return f"{feature} in {{{', '.join(threshold[:SHOWN])}{more}}}"
    # Infinity separates missing values from all others.
    if threshold is not None and math.isinf(threshold):
        return f"{feature} is not missing"
    return f"{feature} <= {threshold:.{digits}g}"
