"""Grow trees on binned data: from gradients of documents to a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.core.jit import frozen, n_threads
from rankinite.core.types import Floats, Integers, Mask
from rankinite.trees.binning import BinnedData
from rankinite.trees.forest import Tree
from rankinite.trees.kernels import gradients as kernels
from rankinite.trees.kernels.grow import grow
from rankinite.trees.kernels.histogram import COLUMNS_A_WORD, TILE_ROWS, TILE_STRIDE
from rankinite.trees.kernels.predict import add_values, cuts_of, lay_out, leaf_type, place_all
from rankinite.trees.kernels.symmetric import grow_levels

EVERY_DOC = np.zeros(0, np.bool_)
DOC_BY_DOC = frozen(np.zeros(0, np.int32))  # document i is row i
# Sums stay below 2^51, where integers are floats too; one more bit for rounding.
SUM_BITS = 50
PACKED_BITS = 62
DEEP = 1 << 30
# Rounding gradients to integers makes gains of about 1 where there is nothing to gain.
NOISE = 4.0
# The squares of smaller sums, in which gains are measured, would be no numbers any more.
SMALLEST_SUM = 1e-100


@dataclass(frozen=True)
class Growth:
    """How trees grow.

    Attributes
    ----------
    n_leaves, max_depth
        Where growth stops; any depth if None.
    min_docs_in_leaf
        A leaf has at least so many documents.
    min_gain
        A split gains more than this.
    criterion
        ``"mse"``: the tree that is nearest to the gradients; ``"newton"``: the tree whose Newton
        steps promise most.
    step
        The value of a leaf: ``"newton"`` is the sum of gradients over the sum of weights,
        ``"gradient"`` their mean.
    symmetric
        Whether all leaves of a level are split alike; otherwise the leaf that gains most is split.
    """

    n_leaves: int
    max_depth: int | None
    min_docs_in_leaf: int
    min_gain: float
    criterion: str
    step: str
    symmetric: bool = False


class Grower:
    """Grows trees for the documents of one training set.

    Parameters
    ----------
    binned
        The features.
    rows
        The row of every document; None if document i is row i.
    growth
        How trees grow.
    """

    def __init__(self, binned: BinnedData, rows: Integers | None, growth: Growth) -> None:
        self.binned = binned
        self.rows = DOC_BY_DOC if rows is None else frozen(rows.astype(np.int32))
        self.n_docs = binned.n_rows if rows is None else len(rows)
        self.growth = growth
        self.n_bins = np.concatenate([binned.main.n_bins, binned.more.n_bins])
        self.cuts = np.concatenate([binned.main.cuts, binned.more.cuts])
        self.splittable = np.concatenate([binned.main.splittable, binned.more.splittable])
        self.count_bits = int(self.n_docs).bit_length()
        self.gradient_bits = min(SUM_BITS, PACKED_BITS - self.count_bits)
        self.n_parts = n_threads()
        most = min(growth.n_leaves, max(2, self.n_docs // max(1, growth.min_docs_in_leaf)))
        self.n_leaves = most
        self.pool = np.empty((most, _slots(self.splittable)[-1]), np.int64)
        self.mass_pool = np.empty((1, 0), np.int64)
        n_words = len(self.n_bins) // COLUMNS_A_WORD
        self.tiles = np.empty(
            (self.n_parts, (n_words // self.n_parts + 1) * TILE_STRIDE), np.uint64
        )
        self.tile_amounts = np.empty((self.n_parts, TILE_ROWS), np.int64)
        self.node_rows = np.empty((3, binned.n_rows + 1), np.int32)
        self.leaves: NDArray[Any] = np.empty(binned.n_rows, leaf_type(most))
        self.amounts = np.empty((2, binned.n_rows), np.int64)
        self.row_parts = np.empty((self.n_parts, 0 if rows is None else binned.n_rows), np.int64)

    def grow(
        self,
        gradients: Floats,
        weights: Floats,
        *,
        masses: Floats | None = None,
        chosen: Mask = EVERY_DOC,
        features: Integers | None = None,
    ) -> Tree:
        """Return a tree that follows the gradients; `leaves` then tells every row's leaf.

        Parameters
        ----------
        gradients, weights
            One a document, for the values of leaves.
        masses
            What a document counts in a split; 1 if None.
        chosen
            The documents that take part; all if empty.
        features
            The features that take part; all if None.
        """
        amounts, scale = self._pack(
            gradients, self.gradient_bits, self.count_bits, chosen, self.amounts[0]
        )
        rows = self.node_rows
        n_rows = kernels.rows_with(amounts, self.count_bits, rows[0])
        by_mass = masses is not None
        mass_amounts, mass_scale, mass_of_a_doc = np.zeros(0, np.int64), 1.0, 1.0
        if masses is not None:
            if not self.mass_pool.size:
                self.mass_pool = np.empty_like(self.pool)
            mass_amounts, mass_scale = self._pack(masses, SUM_BITS, 0, chosen, self.amounts[1])
            mass_of_a_doc = 2.0 ** (SUM_BITS - 1) / self.n_docs
        growth = self.growth
        unit = mass_scale / scale**2
        taking_part = self._taking_part(features)
        n_splits = (grow_levels if growth.symmetric else grow)(
            self.binned.main.bins.reshape(-1),
            self.binned.more.bins.reshape(-1),
            self.binned.main.columns,
            self.binned.more.columns,
            _slots(taking_part),
            self.n_bins,
            taking_part,
            rows[0, :n_rows],
            rows[1, :n_rows],
            rows[2, :n_rows],
            amounts,
            mass_amounts,
            by_mass,
            self.count_bits,
            self.n_leaves,
            DEEP if growth.max_depth is None else growth.max_depth,
            growth.min_docs_in_leaf,
            max(growth.min_gain / unit, NOISE / mass_of_a_doc),
            self.n_parts,
            self.pool,
            self.mass_pool,
            self.tiles,
            self.tile_amounts,
            split := np.empty((self.n_leaves - 1, 5), np.int64),
            gain := np.empty(self.n_leaves - 1),
            docs := np.empty(self.n_leaves - 1, np.int64),
            leaf_docs := np.empty(self.n_leaves, np.int64),
        )
        return self._finish(
            split[:n_splits],
            gain[:n_splits] * unit,
            docs[:n_splits],
            leaf_docs[: n_splits + 1],
            (gradients, weights, chosen),
        )

    def _pack(
        self, numbers: Floats, bits: int, count_bits: int, chosen: Mask, out: Integers
    ) -> tuple[Integers, float]:
        """Write the amount of every row; return it, and what the numbers were multiplied by."""
        scale = _scale(kernels.sum_of_sizes(numbers, chosen), bits)
        if len(self.rows):
            parts = self.row_parts
            kernels.pack_rows(numbers, scale, count_bits, chosen, self.rows, parts, out)
        else:
            kernels.pack(numbers, scale, count_bits, chosen, out)
        return out, scale

    def _taking_part(self, features: Integers | None) -> Integers:
        if features is None:
            return self.splittable
        part = np.zeros_like(self.splittable)
        columns = self.binned.column_of[features]
        part[columns] = self.splittable[columns]
        return part

    def _finish(
        self,
        split: Integers,
        gain: Floats,
        docs: Integers,
        leaf_docs: Integers,
        sources: tuple[Floats, Floats, Mask],
    ) -> Tree:
        n = len(split)
        order = np.empty(n, np.int64)
        leaf_order = np.empty(n + 1, np.int64)
        missing_left = np.empty(n, np.bool_)
        first = np.empty(n, np.uint16)
        right = np.empty(n, np.uint16)
        stack = np.empty(n + 3, np.int64)
        lay_out(split, docs, leaf_docs, stack, order, leaf_order, missing_left, first, right)
        shape = Shape(split[order, 0], split[order, 1], missing_left, first, right)
        self._place(shape, self._columns, self.leaves)
        sums = kernels.sum_leaves(self.leaves, self.rows, *sources, n + 1)
        return Tree(
            feature=np.searchsorted(self.binned.column_of, shape.column).astype(np.int32),
            threshold=self.cuts[shape.column, shape.cut],
            missing_left=missing_left,
            first=first,
            right=right,
            gain=gain[order],
            docs=docs[order],
            value=_leaf_values(sums, leaf_docs[leaf_order], self.growth.step),
            leaf_docs=leaf_docs[leaf_order],
        )

    def add(self, tree: Tree, scores: Floats) -> None:
        """Add the values of the tree just grown to the scores of the documents."""
        add_values(self.leaves, self.rows, tree.value, scores)

    def add_again(self, tree: Tree, scores: Floats) -> None:
        """Add the values of any tree of this training set to the scores of the documents."""
        self._place(self._shape(tree), self._columns, self.leaves)
        self.add(tree, scores)

    def add_elsewhere(
        self,
        tree: Tree,
        columns: tuple[NDArray[np.uint8], NDArray[np.uint8]],
        leaves: NDArray[Any] | None,
        scores: Floats,
    ) -> NDArray[Any]:
        """Add the values of a tree to the scores of other rows, binned by the same cut points.

        ``leaves`` is scratch from an earlier call, and what is returned is for the next.
        """
        own = np.empty(len(scores), self.leaves.dtype) if leaves is None else leaves
        self._place(self._shape(tree), columns, own)
        add_values(own, DOC_BY_DOC, tree.value, scores)
        return own

    @property
    def _columns(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        return self.binned.main.columns, self.binned.more.columns

    def _shape(self, tree: Tree) -> Shape:
        column = self.binned.column_of[tree.feature]
        cut = np.empty(len(column), np.int64)
        cuts_of(tree.threshold, column, self.cuts, cut)
        return Shape(column, cut, tree.missing_left, tree.first, tree.right)

    def _place(
        self,
        shape: Shape,
        columns: tuple[NDArray[np.uint8], NDArray[np.uint8]],
        out: NDArray[Any],
    ) -> None:
        shift = np.where(shape.missing_left, 256 - self.n_bins[shape.column], 0)
        bound = (shape.cut + shift).astype(np.uint8)
        place_all(
            *columns,
            shape.column,
            shift.astype(np.uint8),
            bound,
            shape.first.astype(out.dtype),
            shape.right.astype(out.dtype),
            out,
        )  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """A tree in terms of columns and bins."""

    column: Integers
    cut: Integers
    missing_left: Mask
    first: NDArray[np.uint16]
    right: NDArray[np.uint16]


def _slots(n_bins: Integers) -> Integers:
    """Return where every column's slots begin: one a bin and one for missing values, or none."""
    return np.concatenate([[0], np.cumsum(np.where(n_bins > 0, n_bins + 1, 0))])


def _scale(total: float, bits: int) -> float:
    """Return what to multiply numbers by so that the sum of their sizes has so many bits."""
    if not np.isfinite(total):
        raise UsageError(
            "training: the gradients are not finite; a smaller learning_rate keeps scores in reach"
        )
    return 2.0 ** (bits - 1) / max(total, SMALLEST_SUM) if total > 0.0 else 1.0


def _leaf_values(sums: Floats, docs: Integers, step: str) -> Floats:
    above, weight = sums
    below = weight if step == "newton" else docs.astype(np.float64)
    with np.errstate(over="ignore"):
        values: Floats = np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
