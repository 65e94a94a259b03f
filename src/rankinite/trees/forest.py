"""A forest: trees one after the other, and the scores that they give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import ModelFileError
from rankinite.core.jit import frozen, n_threads
from rankinite.core.types import Floats
from rankinite.trees.binning import EVERY_ROW, SLOTS
from rankinite.trees.kernels.predict import BLOCK_DOCS, leaf_type, score

# The arrays of a tree: those with one value a split, and those with one a leaf.
OF_SPLITS: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "threshold": np.float32,
    "missing_left": np.bool_,
    "first": np.uint16,
    "right": np.uint16,
    "gain": np.float64,
    "docs": np.int64,
}
OF_LEAVES: dict[str, type[np.generic]] = {"value": np.float64, "leaf_docs": np.int64}


@dataclass(frozen=True)
class Tree:
    """One regression tree.

    Splits stand in the order parent, left subtree, right subtree; leaves are numbered from left
    to right, and ``first`` and ``right`` are the first leaves of a split's subtree and of its
    right subtree. These two say everything about the shape.

    Attributes
    ----------
    feature, threshold, missing_left
        A document goes left if its feature is at most the threshold, or missing where
        ``missing_left`` says so.
    first, right
        The first leaf of a split's subtree, and the first of its right subtree.
    gain, docs
        What a split gained, and how many documents it saw.
    value, leaf_docs
        What a leaf adds to the score, and how many documents it saw.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    first: NDArray[np.uint16]
    right: NDArray[np.uint16]
    gain: Floats
    docs: NDArray[np.int64]
    value: Floats
    leaf_docs: NDArray[np.int64]

    @property
    def n_leaves(self) -> int:
        """How many leaves there are: one more than splits."""
        return len(self.value)

    def is_sound(self, n_features: int) -> bool:
        """Tell whether features and shape are those of a tree, as a damaged file's may not be."""
        inside = (self.feature >= 0) & (self.feature < n_features) & (self.threshold > -np.inf)
        numbers = np.isfinite(self.value).all() and np.isfinite(self.gain).all()
        return bool(inside.all() and numbers) and self._is_tree()

    def _is_tree(self) -> bool:
        """Follow the order of splits: each takes its range of leaves apart, left before right."""
        ranges = [(0, self.n_leaves)]
        for first, right in zip(self.first.tolist(), self.right.tolist(), strict=True):
            while ranges and ranges[-1][1] - ranges[-1][0] == 1:
                ranges.pop()
            if not ranges:
                return False
            begin, end = ranges.pop()
            if first != begin or not begin < right < end:
                return False
            ranges += [(right, end), (begin, right)]
        return all(end - begin == 1 for begin, end in ranges)


# Fewer documents are scored before another thread would have begun.
DOCS_A_THREAD = 512
# As many as two bytes can number.
MOST_LEAVES = 65_536


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees that add up to a score.

    Attributes
    ----------
    trees
        Tree t adds to output ``t % len(start)``.
    start
        The scores before the first tree, one for each output.
    n_features
        How many features a document has.
    """

    trees: tuple[Tree, ...]
    start: Floats
    n_features: int

    def __len__(self) -> int:
        return len(self.trees)

    def first(self, n_rounds: int) -> Forest:
        """Return the forest of the first rounds; a round is one tree for each output."""
        n_trees = n_rounds * len(self.start)
        if n_trees >= len(self.trees):
            return self
        return Forest(self.trees[:n_trees], self.start, self.n_features)

    def scores(self, X: NDArray[np.float32], rows: NDArray[np.int64] | None = None) -> Floats:
        """Return the scores of the rows, one row of them for each output.

        Parameters
        ----------
        X
            Features.
        rows
            The rows to score; all if None.
        """
        n_docs = len(X) if rows is None else len(rows)
        return self.add_to(np.repeat(self.start[:, None], n_docs, axis=1), X, rows)

    def add_to(
        self, scores: Floats, X: NDArray[np.float32], rows: NDArray[np.int64] | None = None
    ) -> Floats:
        """Add the trees' values to the scores of the rows, and return these."""
        self._compiled.add_to(scores, X, EVERY_ROW if rows is None else rows)
        return scores

    @cached_property
    def _compiled(self) -> _Compiled:
        return _Compiled.of(self.trees)

    def importances(self, kind: str) -> Floats:
        """Return the sum of gains, or the number of splits, of every feature."""
        sums = np.zeros(self.n_features)
        for tree in self.trees:
            np.add.at(sums, tree.feature, tree.gain if kind == "gain" else 1.0)
        return sums

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a model file."""
        arrays = {
            field.name: np.concatenate([getattr(tree, field.name) for tree in self.trees])
            if self.trees
            else np.zeros(0)
            for field in fields(Tree)
        }
        arrays["n_leaves"] = np.array([tree.n_leaves for tree in self.trees], np.int64)
        return {**arrays, "start": self.start}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> Forest:
        """Make a forest of the arrays of a model file; every number is checked before use."""
        n_leaves = _checked(arrays, "n_leaves", np.int64)
        start = _checked(arrays, "start", np.float64)
        possible = (n_leaves >= 1) & (n_leaves <= MOST_LEAVES)
        if len(start) < 1 or len(n_leaves) % len(start) or not possible.all():
            raise ModelFileError("the numbers of trees and leaves in the file do not fit together")
        if not np.isfinite(start).all():
            raise ModelFileError("the scores to begin with in the file are not finite")
        values = {
            name: _checked(arrays, name, kind, n_leaves - 1) for name, kind in OF_SPLITS.items()
        } | {name: _checked(arrays, name, kind, n_leaves) for name, kind in OF_LEAVES.items()}
        trees = tuple(_cut_up(values, n_leaves))
        for number, tree in enumerate(trees):
            if not tree.is_sound(n_features):
                raise ModelFileError(f"tree {number} in the file is no tree")
        finite = np.isfinite(values["threshold"])
        pairs = np.stack([values["feature"][finite], values["threshold"][finite]])
        used = np.unique(pairs, axis=1)[0].astype(np.int64)
        if used.size and np.bincount(used).max() > SLOTS - 2:
            raise ModelFileError("a feature in the file has more thresholds than bins can have")
        return cls(trees, start, n_features)


def _checked(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    kind: type[np.generic],
    lengths: NDArray[np.int64] | None = None,
) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.ndim != 1 or (array.dtype != kind and array.size):
        raise ModelFileError(f"the file lacks {name!r}, or it is not of the right kind")
    if lengths is not None and len(array) != lengths.sum():
        raise ModelFileError(f"{name!r} in the file has {len(array)} values; more or fewer fit")
    return array.astype(kind)


def _cut_up(values: Mapping[str, NDArray[Any]], n_leaves: NDArray[np.int64]) -> Iterator[Tree]:
    leaf_ends = np.cumsum(n_leaves)
    split_ends = np.cumsum(n_leaves - 1)
    for leaf_end, split_end, n in zip(leaf_ends, split_ends, n_leaves, strict=True):
        parts = {name: values[name][split_end - n + 1 : split_end] for name in OF_SPLITS}
        parts |= {name: values[name][leaf_end - n : leaf_end] for name in OF_LEAVES}
        yield Tree(**parts)


@dataclass(frozen=True, eq=False)
class _Compiled:
    """Trees in terms of bytes: the thresholds of all trees are the cut points of bins."""

    features: NDArray[np.int64]
    cuts: NDArray[np.float32]
    n_bins: NDArray[np.int64]
    column: NDArray[np.int32]
    shift: NDArray[np.uint8]
    bound: NDArray[np.uint8]
    first: NDArray[Any]
    right: NDArray[Any]
    values: Floats
    split_offsets: NDArray[np.int64]
    value_offsets: NDArray[np.int64]
    leaf_type: type[np.generic]

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> _Compiled:
        n_leaves = np.array([tree.n_leaves for tree in trees], np.int64)
        feature, threshold, missing_left, first, right, value = (
            np.concatenate([getattr(tree, name) for tree in trees] or [np.zeros(0, kind)])
            for name, kind in (
                ("feature", np.int32),
                ("threshold", np.float32),
                ("missing_left", np.bool_),
                ("first", np.uint16),
                ("right", np.uint16),
                ("value", np.float64),
            )
        )
        features, column = np.unique(feature, return_inverse=True)
        cuts = np.full((len(features), SLOTS), np.inf, np.float32)
        n_bins = np.zeros(len(features), np.int64)
        cut = np.empty(len(feature), np.int64)
        for j in range(len(features)):
            here = column == j
            # Infinity, which parts missing values from all others, is no cut between bins.
            own = np.unique(threshold[here & np.isfinite(threshold)])
            cut[here] = np.searchsorted(own, threshold[here])
            cuts[j, : len(own)] = own
            n_bins[j] = len(own) + 1
        shift = np.where(missing_left, 256 - n_bins[column], 0)
        offsets = np.concatenate([[0], np.cumsum(n_leaves)])
        kind = leaf_type(int(n_leaves.max(initial=1)))
        return cls(
            features.astype(np.int64),
            cuts,
            n_bins,
            column.astype(np.int32),
            shift.astype(np.uint8),
            (cut + shift).astype(np.uint8),
            first.astype(kind),
            right.astype(kind),
            value,
            offsets - np.arange(len(offsets)),
            offsets,
            kind,
        )

    def add_to(self, scores: Floats, X: NDArray[np.float32], rows: NDArray[np.int64]) -> None:
        """Add the trees' values, on several threads if there are many documents.

        The threads are Python's, and the kernel is serial: a server may call this concurrently.
        """
        n_docs = scores.shape[1]
        n_workers = min(n_threads(), max(1, n_docs // DOCS_A_THREAD))
        cuts = [n_docs * k // n_workers for k in range(n_workers + 1)]
        ranges = list(pairwise(cuts))

        def work(part: tuple[int, int]) -> None:
            begin, end = part
            own = np.ascontiguousarray(scores[:, begin:end])
            score(
                frozen(X), frozen(rows), self.features, self.cuts, self.n_bins, self.column,
                self.shift, self.bound, self.first, self.right, self.values, self.split_offsets,
                self.value_offsets, np.empty(BLOCK_DOCS, self.leaf_type), begin, own,
            )  # fmt: skip
            scores[:, begin:end] = own

        if n_workers == 1:
            work(ranges[0])
            return
        with ThreadPoolExecutor(n_workers) as workers:
            list(workers.map(work, ranges))
