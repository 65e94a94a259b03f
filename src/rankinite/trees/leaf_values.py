"""Values of leaves: sums of gradients over divisors, limited, smoothed, and in monotone order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.types import Floats, Integers
from rankinite.trees.forest import Tree
from rankinite.trees.kernels.leaf_values import (
    find_boxes,
    find_order,
    limit_values,
    monotone_values,
)

# Trees of more leaves could take longer to be put in order than to grow.
MOST_ORDERED_LEAVES = 1024
# Squares of larger values would overflow.
LARGEST_ORDERED = 1e120
# A leaf without hessians counts this share of the others in the order, so that means exist.
LEAST_WEIGHT = 1e-12


def quotients(gradients: Floats, divisors: Floats) -> Floats:
    """Return sums of gradients over divisors; 0 where a quotient is no finite number."""
    with np.errstate(over="ignore"):
        values: Floats = np.divide(
            gradients, divisors, out=np.zeros_like(gradients), where=divisors > 0.0
        )
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)


def limited(
    tree: Tree, gradients: Floats, divisors: Floats, l2: float, max_step: float, path_smooth: float
) -> Floats:
    """Return values of leaves that are limited and smoothed along their paths.

    Parameters
    ----------
    tree
        The tree, whose values are not read.
    gradients, divisors
        Sums over the documents of each leaf.
    l2
        What is added to the divisor of every leaf, and of every node above.
    max_step
        Largest absolute value; 0 if there is none.
    path_smooth
        This many documents with the value of the parent are added to every leaf; the root is
        the only node that is not smoothed.
    """
    values = np.zeros(tree.n_leaves)
    sums = np.stack([gradients, divisors, tree.leaf_docs.astype(np.float64)])
    limit_values(tree.first, tree.right, sums, l2, max_step or np.inf, path_smooth, values)
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)


def in_monotone_order(tree: Tree, values: Floats, weights: Floats, directions: Integers) -> Floats:
    """Return the nearest values with which the tree is monotone for all inputs.

    Parameters
    ----------
    tree
        The tree, whose values are not read.
    values, weights
        What the leaves have by themselves, and what a change of each costs.
    directions
        By feature: 1 if scores must not fall as it rises, -1 if they must not rise, 0 for others.
    """
    # Missing values have no order: to divide them from the rest constrains nothing.
    ordered = (directions[tree.feature] != 0) & np.isfinite(tree.threshold)
    heaviest = weights.max()
    # Without any weight all values are 0.
    if not ordered.any() or heaviest <= 0.0:
        return values
    feature, threshold, directions = _with_sets_as_features(tree, directions)
    features, number = np.unique(feature, return_inverse=True)
    shape = (tree.n_leaves, len(features))
    lower, upper = np.empty(shape, np.float32), np.empty(shape, np.float32)
    missing = np.empty(shape, np.bool_)
    find_boxes(number, threshold, tree.missing_left, tree.first, tree.right, lower, upper, missing)
    below = np.empty((tree.n_leaves, tree.n_leaves), np.bool_)
    find_order(directions[features], lower, upper, missing, below)
    ordered_values = np.clip(values, -LARGEST_ORDERED, LARGEST_ORDERED)
    monotone_values(below, np.maximum(weights, LEAST_WEIGHT * heaviest), ordered_values)
    return ordered_values


def _with_sets_as_features(
    tree: Tree, directions: Integers
) -> tuple[Integers, NDArray[np.float32], Integers]:
    """Return features, thresholds and directions in which a categorical split asks for a side.

    Every set of categories is a feature of its own, 0 in it and 1 elsewhere: leaves on different
    sides have no category in common, and none is below the other.
    """
    categorical = tree.categorical
    feature = tree.feature.astype(np.int64)
    rows = np.column_stack([feature[categorical], tree.left_sets])
    _, number = np.unique(rows, axis=0, return_inverse=True)
    feature[categorical] = len(directions) + number.reshape(-1)
    threshold = np.where(categorical, np.float32(0.5), tree.threshold)
    sets = np.zeros(len(number), directions.dtype)
    return feature, threshold, np.concatenate([directions, sets])
