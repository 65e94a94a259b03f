"""Nodes of a tree: names, parents and children, means of splits, and what conditions say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankinite.trees.nodes import COLUMNS, condition_text, tree_nodes
from tests.naive import trees as naive_trees
from tests.trees.cases import chain, leaf, random_tree

NAMES = ["bm25", "age", "clicks"]


def test_nodes_of_a_tree_by_hand():
    """bm25 <= 1.5: L0; else age <= 2: L1, L2. Four documents, of which one is in L0."""
    nodes = list(tree_nodes(chain([0, 1], [1.5, 2.0], [-1.0, 0.5, 2.0], [1, 2, 1]), NAMES))
    assert [(node.name, node.depth, node.parent) for node in nodes] == [
        ("S0", 1, None),
        ("L0", 2, "S0"),
        ("S1", 2, "S0"),
        ("L1", 3, "S1"),
        ("L2", 3, "S1"),
    ]
    root, first, inner, *_, last = nodes
    assert (root.left, root.right, inner.left, inner.right) == ("L0", "S1", "L1", "L2")
    assert (root.feature, root.threshold, root.missing, root.count) == ("bm25", 1.5, "left", 4)
    assert root.value == pytest.approx((-1.0 + 2 * 0.5 + 2.0) / 4)
    assert inner.value == pytest.approx((2 * 0.5 + 2.0) / 3)
    assert (first.value, last.value) == (-1.0, 2.0)
    assert first.is_leaf
    assert (first.feature, first.threshold, first.left, first.gain) == (None,) * 4
    row = inner.as_row(7)
    assert tuple(row) == COLUMNS
    assert row["node_index"] == "7-S1"
    assert row["parent_index"] == "7-S0"
    assert (row["left_child"], row["right_child"]) == ("7-L1", "7-L2")
    assert (row["decision_type"], first.as_row(7)["decision_type"]) == ("<=", None)


def test_a_tree_without_splits_is_a_leaf():
    (node,) = tree_nodes(leaf(0.25), NAMES)
    assert (node.name, node.depth, node.parent, node.value) == ("L0", 1, None, 0.25)


@pytest.mark.parametrize("n_leaves", [2, 3, 10, 64])
def test_walking_by_names_ends_in_the_leaf_of_the_arrays(n_leaves):
    rng = np.random.default_rng(n_leaves)
    tree = random_tree(rng, n_leaves, len(NAMES))
    nodes = {node.name: node for node in tree_nodes(tree, NAMES)}
    assert len(nodes) == 2 * n_leaves - 1
    for node in nodes.values():
        for child in (node.left, node.right):
            if child is not None:
                assert (nodes[child].parent, nodes[child].depth) == (node.name, node.depth + 1)
    for document in rng.choice([math.nan, -1.0, 0.0, 0.5, 2.0], size=(50, len(NAMES))):
        node = nodes.get("S0", nodes["L0"])
        while not node.is_leaf:
            value = document[NAMES.index(node.feature)]
            left = node.missing == "left" if math.isnan(value) else value <= node.threshold
            node = nodes[node.left if left else node.right]
        assert node.name == f"L{naive_trees.leaf_of(tree, document)}"


def test_a_file_without_counts_has_means_of_leaves():
    root = next(tree_nodes(chain([0], [0.0], [1.0, 2.0], [0, 0]), NAMES))
    assert root.value == 1.5


def test_the_condition_of_a_split_that_only_asks_for_missing_values():
    root = next(tree_nodes(chain([2], [math.inf], [1.0, 2.0], [1, 1]), NAMES))
    assert condition_text(root) == "clicks is not missing"


def test_the_condition_of_a_feature_without_a_name():
    root = next(tree_nodes(chain([1], [0.25], [1.0, 2.0], [1, 1]), ["1", "2"]))
    assert condition_text(root) == "feature 2 <= 0.25"
