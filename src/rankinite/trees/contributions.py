"""Contributions of features to the scores of a forest: path-dependent TreeSHAP.

The kernels of ``kernels/contributions.py`` say what is computed, and how.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from rankinite.core.cached import cached_property
from rankinite.core.elementary import cospi
from rankinite.core.jit import frozen
from rankinite.core.memory import require_memory
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Integers
from rankinite.data.sparse import dense_rows, is_sparse, row_blocks
from rankinite.trees.forest import Forest
from rankinite.trees.kernels.contributions import (
    BLOCK_DOCS,
    NO_NODE,
    Paths,
    Quadrature,
    Splits,
    add_contributions,
    write_expected_values,
    write_factors,
    write_paths,
)
from rankinite.trees.scoring import find_levels, n_category_bins, set_numbers

EVERY_ROW = frozen(np.zeros(0, np.int64))
# Factors of the trees that documents pass at a time: few enough for the cache of the second level,
# as many trees as are worth a copy of the documents' columns.
FACTORS_PER_PART = 1 << 18
NEWTON_STEPS = 8


def forest_contributions(
    forest: Forest, X: NDArray[np.float32], rows: Integers | None = None
) -> tuple[Floats, Floats]:
    """Return contributions, outputs x documents x features, and the expected value of each output.

    They are Shapley values of the game in which a feature that is not known sends a document both
    ways, in the shares of the training documents. A document's contributions and the expected value
    add up to its score, but for rounding.

    Parameters
    ----------
    forest
        The forest.
    X, rows
        Feature matrix, and the row of each document; all rows if None.
    """
    n_docs, n_outputs = X.shape[0] if rows is None else len(rows), len(forest.start)
    require_memory(
        "contributions",
        f"contributions of {n_docs:,} documents x {forest.n_features:,} features",
        8 * n_outputs * n_docs * forest.n_features,
        "explain fewer documents at a time",
    )
    explainer = _Explainer(forest)
    used = np.zeros((n_outputs, n_docs, len(explainer.features)))
    if is_sparse(X):
        columns = X[:, explainer.features]
        places = np.arange(len(explainer.features))
        for docs in row_blocks(n_docs, len(explainer.features)):
            block = dense_rows(columns, docs if rows is None else rows[docs])
            used[:, docs] = explainer.contributions(block, EVERY_ROW, places, used[:, docs])
    else:
        every = EVERY_ROW if rows is None else frozen(np.ascontiguousarray(rows))
        used = explainer.contributions(frozen(X), every, explainer.features, used)
    values = np.zeros((n_outputs, n_docs, forest.n_features))
    values[:, :, explainer.features] = used
    sums = [math.fsum(explainer.expected[output::n_outputs]) for output in range(n_outputs)]
    return values, forest.start + np.array(sums)


class _Explainer:
    """The paths of a forest, and what its splits ask for."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.features, column = np.unique(
            np.concatenate([np.zeros(0, np.int32), *(tree.feature for tree in forest.trees)]),
            return_inverse=True,
        )
        self.features = self.features.astype(np.int64)
        self.column = column.astype(np.int32)

    @cached_property
    def paths(self) -> Paths:
        trees = self.forest.trees
        n_leaves = np.array([tree.n_leaves for tree in trees], np.int64)
        first = np.concatenate([np.zeros(0, np.uint16), *(tree.first for tree in trees)])
        right = np.concatenate([np.zeros(0, np.uint16), *(tree.right for tree in trees)])
        levels = find_levels(first, right, n_leaves)
        leaf_offsets = np.concatenate([[0], np.cumsum(n_leaves)])
        number = np.arange(len(leaf_offsets))
        split_offsets = leaf_offsets - number  # one split less than leaves
        node_offsets = leaf_offsets + split_offsets
        tree = np.repeat(number[:-1], n_leaves - 1)
        # Within a tree, leaves come behind the splits.
        n_splits = n_leaves[tree] - 1
        left, right_child = (
            np.where(
                child >= 0,
                child - split_offsets[tree],
                ~child - leaf_offsets[tree] + n_splits,
            ).astype(np.int32)
            for child in (levels.left, levels.right)
        )
        paths = Paths(
            split_offsets,
            node_offsets,
            left,
            right_child,
            earlier=np.full(len(first), NO_NODE, np.int32),
            share=np.empty(node_offsets[-1]),
            joint_share=np.empty(node_offsets[-1]),
            n_unique=np.zeros(len(trees), np.int64),
        )
        docs = np.concatenate([np.zeros(0, np.int64), *(tree.leaf_docs for tree in trees)])
        write_paths(0, len(trees), self.column, docs, paths)
        return paths

    @cached_property
    def splits(self) -> Splits:
        trees = self.forest.trees
        threshold = np.concatenate([np.zeros(0), *(tree.threshold for tree in trees)])
        sets = [np.zeros((0, 32), np.uint8), *(tree.left_sets for tree in trees)]
        return Splits(
            self.column,
            threshold.astype(np.float64),
            np.concatenate([np.zeros(0, np.bool_), *(tree.missing_left for tree in trees)]),
            set_numbers(np.isnan(threshold)),
            np.concatenate(sets),
            np.concatenate([np.zeros(0), *(tree.value for tree in trees)]),
        )

    @cached_property
    def expected(self) -> Floats:
        """The mean value of each tree's leaves over its training documents."""
        values = np.zeros(len(self.forest))
        write_expected_values(0, len(values), self.splits.values, self.paths, values)
        return values

    def contributions(
        self, X: NDArray[np.float32], rows: Integers, columns: Integers, out: Floats
    ) -> Floats:
        """Add the contributions of all trees to an array: outputs x documents x features in use.

        ``columns`` are those of X that have the features in use.
        """
        out = np.ascontiguousarray(out)
        known = [self.forest.categories.get(int(j)) for j in self.features]
        bins = np.array([0 if c is None else n_category_bins(c) for c in known], np.int64)
        codes = [np.zeros(0, np.float32) if c is None else c for c in known]
        offsets = np.concatenate([[0], np.cumsum([len(c) for c in codes])]).astype(np.int64)
        categories = np.concatenate([np.zeros(0, np.float32), *codes])
        for first_tree, node_counts, quadrature in self._parts():
            parallel_for(
                add_contributions, out.shape[1], X, rows, columns, bins, categories, offsets,
                first_tree, self.paths, self.splits, quadrature, node_counts, out,
                grain=BLOCK_DOCS,
            )  # fmt: skip
        return out

    def _parts(self) -> Iterator[tuple[int, Integers, Quadrature]]:
        """Iterate over the trees, so many at a time that their factors stay in the cache."""
        paths = self.paths
        node_counts = np.maximum(1, (paths.n_unique + 1) // 2)
        sizes = np.diff(paths.node_offsets) * node_counts
        begin = 0
        while begin < len(sizes):
            total = np.cumsum(sizes[begin:])
            end = begin + max(1, int(np.searchsorted(total, FACTORS_PER_PART, side="right")))
            counts = node_counts[begin:end]
            rules = [gauss_legendre(int(n)) for n in counts]
            offsets = np.concatenate([[0], np.cumsum(sizes[begin:end])])
            off_path = np.concatenate([[0], np.cumsum(counts)])
            known, leaves_path, weight = (np.empty(offsets[-1]) for _ in range(3))
            quadrature = Quadrature(
                offsets,
                known,
                leaves_path,
                weight,
                weight_off_path=np.empty(off_path[-1]),
                offsets_off_path=off_path,
            )
            t, weights = (np.concatenate(parts) for parts in zip(*rules, strict=True))
            write_factors(begin, paths, t, weights, counts, quadrature)
            yield begin, counts, quadrature
            begin = end


@cache
def gauss_legendre(n: int) -> tuple[Floats, Floats]:
    """Return nodes and weights that integrate polynomials of degree 2 n - 1 from 0 to 1 exactly.

    Examples
    --------
    >>> nodes, weights = gauss_legendre(2)
    >>> bool(abs((weights * nodes**3).sum() - 0.25) < 1e-15)
    True
    """
    # By Newton's steps, of plain arithmetic, which give the same bits on every processor; numpy has
    # them from an eigenvalue problem.
    x = np.array([cospi((k + 0.75) / (n + 0.5)) for k in range(n)])
    slope = np.ones(n)
    for _ in range(NEWTON_STEPS):
        before, value = np.ones(n), x.copy()
        for degree in range(2, n + 1):
            before, value = value, ((2 * degree - 1) * x * value - (degree - 1) * before) / degree
        slope = n * (x * value - before) / (x * x - 1.0)
        x = x - value / slope
    return frozen((1.0 - x) / 2.0), frozen(1.0 / ((1.0 - x * x) * slope * slope))
