"""Grow trees on binned data: from gradients of documents to a tree and the values of its leaves."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.core.jit import frozen
from rankinite.core.threads import n_threads, parallel_for
from rankinite.core.types import Floats, Integers, Mask
from rankinite.trees.binning import BinnedData
from rankinite.trees.bins import SET_BYTES
from rankinite.trees.forest import NO_SETS, Tree
from rankinite.trees.kernels.gain import Limits
from rankinite.trees.kernels.grow import (
    N_SPLITS,
    SPLIT_COLUMN,
    SPLIT_CUT,
    SPLIT_FIELDS,
    STATE_FIELDS,
    Frontier,
    GrownTree,
    grow,
)
from rankinite.trees.kernels.histogram import (
    BUNDLES_PER_WORD,
    LEAF_FIELDS,
    SUM_BLOCKS,
    TILE_ROWS,
    TILE_STRIDE,
    Packing,
    TreeData,
    Workspace,
    absolute_sums,
    pack_docs,
    rows_with_docs,
    square_sum,
    sum_shares,
)
from rankinite.trees.kernels.predict import (
    BinnedSplits,
    Layout,
    add_values,
    find_leaves,
    find_thresholds,
    lay_out,
    leaf_type,
    sum_leaves,
)
from rankinite.trees.kernels.split import CANDIDATE_FIELDS
from rankinite.trees.leaf_values import in_monotone_order, limited, quotients
from rankinite.trees.scoring import set_numbers

EVERY_DOC = np.zeros(0, np.bool_)
NO_NOISE = np.zeros((1, 0))
NO_INDEX = frozen(np.zeros(0, np.int32))  # document i is row i
# Sums stay below 2^51, where integers are floats too; one bit is left for rounding.
SUM_BITS = 50
# Gradient, hessian and count share an int64, whose sign and one bit of carry are left alone.
PACKED_BITS = 62
# With more documents, hessians have histograms of their own: the mean one would have less than 8
# units in the bits that are left, and most hessians are far below the mean.
MOST_DOCS_WITH_PACKED_HESSIANS = 1 << 18
UNLIMITED_DEPTH = 1 << 30
# Rounding gradients to integers makes gains of about 1 where there is nothing to gain.
ROUNDING_GAIN = 4.0
# Fewer documents than this are counted or added up by one thread before another has woken up.
DOCS_PER_THREAD = 100_000
# The squares of smaller sums, by which gains are measured, would underflow.
SMALLEST_SUM = 1e-100
# Gains are squares of sums, which must be finite.
LARGEST_SUM = 1e140


@dataclass(frozen=True)
class GrowthOptions:
    """How trees grow.

    Attributes
    ----------
    n_leaves, max_depth
        Number of leaves and depth at most; any depth if None.
    min_docs_in_leaf
        Number of documents in a leaf at least.
    min_gain
        A split must gain more than this.
    criterion
        ``"mse"``: splits fit the gradients by least squares; ``"newton"``: splits promise most by
        the second-order approximation of the cost, which uses hessians.
    step
        Value of a leaf: ``"newton"`` is the sum of gradients over the sum of hessians,
        ``"gradient"`` the mean gradient.
    symmetric
        Whether all leaves of a level get the same split; otherwise the leaf with the largest gain
        is split next.
    l2_regularization
        This many documents of mean hessian, whose gradients are 0, are added to every leaf.
    random_strength
        How much chance there is in the choice of features: the standard deviation of what is added
        to the root of a gain, in units of that of a split of pure noise.
    categorical_smoothing
        This many documents of mean hessian, whose gradients are the mean of their leaf, are added
        to every category before categories are compared.
    max_delta_step
        Largest absolute value of a leaf; 0 if there is none.
    path_smooth
        This many documents with the value of the parent are added to every leaf but the root.
    directions
        Monotone constraint of each feature: 1, 0 or -1; none if empty.
    groups
        Features that may stand on one path, by group; no path is constrained if empty. A feature
        in no group shares its paths with none.
    """

    n_leaves: int
    max_depth: int | None
    min_docs_in_leaf: int
    min_gain: float
    criterion: str
    step: str
    symmetric: bool = False
    l2_regularization: float = 0.0
    random_strength: float = 0.0
    categorical_smoothing: float = 0.0
    max_delta_step: float = 0.0
    path_smooth: float = 0.0
    directions: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        # Kernels would be compiled anew for other kinds of numbers, or not at all.
        for name, value in vars(self).items():
            if isinstance(value, numbers.Real) and not isinstance(value, (bool, int, float)):
                plain = int(value) if isinstance(value, numbers.Integral) else float(value)
                object.__setattr__(self, name, plain)


class Grower:
    """Grows trees for the documents of one training set.

    Parameters
    ----------
    binned
        Binned features.
    rows
        Row of each document; None if document i is row i.
    options
        How trees grow.
    """

    def __init__(self, binned: BinnedData, rows: Integers | None, options: GrowthOptions) -> None:
        self.binned = binned
        self.options = options
        self.rows = NO_INDEX if rows is None else frozen(rows.astype(np.int32))
        self.n_docs = binned.n_rows if rows is None else len(rows)
        self._n_bins = np.concatenate([binned.main.n_bins, binned.more.n_bins])
        self._cuts = np.concatenate([binned.main.cuts, binned.more.cuts])
        self._categorical = np.concatenate([binned.main.categorical, binned.more.categorical])
        self._splittable = np.concatenate([binned.main.splittable, binned.more.splittable])
        self._bin_offsets = _bin_offsets(self._splittable)
        # Trees of small data take less than a millisecond: what is the same for all is made once.
        self._directions = np.array(options.directions, np.int64)
        self._groups = _memberships(options.groups, len(self._n_bins))
        self._bundles = binned.main.bundles.append(binned.more.bundles)
        self._shared_codes = self._bundles.shared_codes
        self._bundle_offsets = self._bundles.offsets(self._splittable, self._bin_offsets)
        # Enough for the count of all documents, so that no sum of counts reaches the gradient.
        self._count_bits = int(self.n_docs).bit_length()
        # Scratch is made for this many threads, also if another number is set later.
        self._n_threads = n_threads()
        # No tree has more leaves than there are documents for.
        most_leaves = max(2, self.n_docs // max(1, options.min_docs_in_leaf))
        self._n_leaves = min(options.n_leaves, most_leaves)
        self.leaves: NDArray[Any] = np.empty(binned.n_rows, leaf_type(self._n_leaves))
        self._gradients = np.empty(binned.n_rows, np.int64)
        self._hessians = np.empty(0, np.int64)
        # Documents that share a row are added up by several threads at once.
        n_shared = 0 if rows is None else binned.n_rows
        self._share_sums = np.empty((self._n_threads, n_shared), np.int64)
        self._workspace = self._new_workspace()

    def _new_workspace(self) -> Workspace:
        # Memory is allocated once: the first touch of so much costs more than many trees.
        n_words = len(self._bundles.n_codes) // BUNDLES_PER_WORD
        tile_size = (n_words // self._n_threads + 1) * TILE_STRIDE
        width = int(self._bin_offsets[-1])
        # Behind the histograms of leaves, so that one base serves all additions to a word.
        n_scratch = -(-int(self._shared_codes.sum()) // max(width, 1))
        # `rows_with_docs` writes one row behind the last.
        rows = np.empty((2, self.binned.n_rows + 1), np.int32)
        return Workspace(
            rows=rows[0],
            right_rows=rows[1],
            histograms=np.empty((self._n_leaves + n_scratch, width), np.int64),
            # Only if hessians are not packed; then the first tree makes room.
            hessian_histograms=np.empty((1, 0), np.int64),
            tiles=np.empty((self._n_threads, tile_size), np.uint64),
            tile_values=np.empty((self._n_threads, TILE_ROWS), np.int64),
            sides=np.empty(self.binned.n_rows if self._categorical.any() else 0, np.uint8),
        )

    def grow(
        self,
        gradients: Floats,
        hessians: Floats,
        *,
        split_hessians: Floats | None = None,
        chosen: Mask = EVERY_DOC,
        features: Integers | None = None,
        noise: Floats = NO_NOISE,
    ) -> Tree:
        """Return a tree that follows the gradients; `leaves` then has the leaf of each row.

        Parameters
        ----------
        gradients, hessians
            One per document, for the values of leaves.
        split_hessians
            What each document counts in the gain of a split: its hessian by the Newton criterion,
            its weight by least squares. 1 if None.
        chosen
            Whether each document takes part; all do if empty.
        features
            Features that may be split; all if None.
        noise
            Standard normal numbers for ``random_strength``: one per feature in every row, and a row
            for each depth of the tree, over and over.
        """
        packing = self._packing(uses_hessians=split_hessians is not None)
        # The more documents there are to count, the fewer bits are left to their gradients.
        shift = packing.count_bits + packing.hessian_bits
        bits = min(SUM_BITS, PACKED_BITS - shift)
        scale = self._pack(gradients, bits, shift, chosen, self._gradients)
        # Documents, not what they weigh: on any scale of weights, regularisation is the same.
        n_chosen = int(np.count_nonzero(chosen)) if len(chosen) else self.n_docs
        hessian_scale, hessian_per_doc = 1.0, 1.0
        if split_hessians is not None:
            self._make_room_for_hessians(packing)
            bits = packing.hessian_bits or SUM_BITS
            hessian_scale = self._pack(split_hessians, bits, 0, chosen, self._hessians)
            # What a document has at the mean, if the scaled hessians add up to that many bits.
            hessian_per_doc = 2.0 ** (bits - 1) / max(n_chosen, 1)
            if packing.hessian_bits > 0:
                self._gradients += self._hessians << packing.count_bits
        # Gains are squares of gradients over hessians.
        gain_unit = hessian_scale / scale**2
        limits = Limits(
            n_leaves=self._n_leaves,
            max_depth=int(self.options.max_depth or UNLIMITED_DEPTH),
            min_docs=self.options.min_docs_in_leaf,
            min_gain=max(self.options.min_gain / gain_unit, ROUNDING_GAIN / hessian_per_doc),
            l2=self.options.l2_regularization * hessian_per_doc,
            category_smoothing=self.options.categorical_smoothing * hessian_per_doc,
            symmetric=self.options.symmetric,
            max_step=(self.options.max_delta_step or math.inf) * scale / hessian_scale,
            path_smooth=self.options.path_smooth,
            limits_values=self._limits_values,
        )
        tree = GrownTree(
            splits=np.empty((self._n_leaves - 1, SPLIT_FIELDS), np.int64),
            gains=np.empty(self._n_leaves - 1),
            docs=np.empty(self._n_leaves - 1, np.int64),
            leaf_docs=np.empty(self._n_leaves, np.int64),
            left_sets=np.empty(
                (self._n_leaves - 1 if self._categorical.any() else 0, SET_BYTES), np.uint8
            ),
        )
        data = self._tree_data(features, packing)
        if noise.size:
            # A split of pure noise gains the mean square of gradients over the mean hessian.
            square = square_sum(gradients, scale, chosen) / max(n_chosen, 1)
            data = data._replace(noise=self._noise(noise, math.sqrt(square / hessian_per_doc)))
        n_splits = self._grow(data, limits, tree)
        grown = GrownTree(
            splits=tree.splits[:n_splits],
            gains=tree.gains[:n_splits] * gain_unit,
            docs=tree.docs[:n_splits],
            leaf_docs=tree.leaf_docs[: n_splits + 1],
            left_sets=tree.left_sets[:n_splits],
        )
        return self._finish(grown, gradients, hessians, chosen, n_chosen)

    def _grow(self, data: TreeData, limits: Limits, tree: GrownTree) -> int:
        """Grow the tree; return its number of splits."""
        n_leaves, n_shares = self._n_leaves, self._n_threads
        frontier = Frontier(
            state=np.zeros(STATE_FIELDS, np.int64),
            leaves=np.zeros((n_leaves, LEAF_FIELDS), np.int64),
            best=np.zeros((n_leaves, CANDIDATE_FIELDS)),
            siblings=np.zeros((n_leaves, 2), np.int64),
            candidates=np.zeros((n_shares, 2, CANDIDATE_FIELDS)),
            values=np.zeros(n_leaves),
            open_groups=np.ones((n_leaves, len(data.groups)), np.bool_),
            allowed=np.ones((n_leaves, data.groups.shape[1]), np.bool_),
        )
        arguments = data, limits, self._rows_with_docs(), frontier, tree
        while grow(0, 0, *arguments):
            parallel_for(grow, n_shares, *arguments)
        return int(frontier.state[N_SPLITS])

    def _packing(self, *, uses_hessians: bool) -> Packing:
        separate = uses_hessians and self.n_docs > MOST_DOCS_WITH_PACKED_HESSIANS
        # Half of the bits that are left, and one more: small hessians are many, and what rounding
        # takes from them does not cancel out, as it does with gradients of both signs.
        half = (PACKED_BITS - self._count_bits) // 2 + 1
        return Packing(self._count_bits, half if uses_hessians and not separate else 0, separate)

    def _pack(self, values: Floats, bits: int, shift: int, chosen: Mask, out: Integers) -> float:
        """Write the packed value of each row; return what the values were multiplied by."""
        sums = np.empty(SUM_BLOCKS)
        self._over_blocks(absolute_sums, values, chosen, sums)
        # One after the other, which is not how numpy adds.
        scale = _scale(sum(sums.tolist()), bits)
        if len(self.rows):
            sums_by_row = self.rows, self._share_sums
            parallel_for(sum_shares, self._n_threads, values, scale, shift, chosen, *sums_by_row)
            np.sum(self._share_sums, axis=0, out=out)
        else:
            packed = values, scale, shift, chosen, out
            parallel_for(pack_docs, self.n_docs, *packed, grain=DOCS_PER_THREAD)
        return scale

    def _over_blocks(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """Call a kernel for the blocks of documents that sums are made of."""
        blocks_per_thread = SUM_BLOCKS * DOCS_PER_THREAD // max(self.n_docs, 1) + 1
        parallel_for(kernel, SUM_BLOCKS, *arguments, grain=blocks_per_thread)

    def _noise(self, noise: Floats, gain_root: float) -> Floats:
        """Return what is added to the score of each feature."""
        added: Floats = noise * (self.options.random_strength * gain_root)
        return added

    def _make_room_for_hessians(self, packing: Packing) -> None:
        if not self._hessians.size:
            self._hessians = np.empty_like(self._gradients)
        if packing.separate_hessians and not self._workspace.hessian_histograms.size:
            histograms = np.empty_like(self._workspace.histograms)
            self._workspace = self._workspace._replace(hessian_histograms=histograms)

    def _rows_with_docs(self) -> Workspace:
        """Return the workspace with the rows that the tree is grown on."""
        workspace = self._workspace
        n_rows = rows_with_docs(self._gradients, self._count_bits, workspace.rows)
        return workspace._replace(
            rows=workspace.rows[:n_rows],
            right_rows=workspace.right_rows[:n_rows],
        )

    def _tree_data(self, features: Integers | None, packing: Packing) -> TreeData:
        split_bins, bin_offsets = self._splittable, self._bin_offsets
        bundles, bundle_offsets = self._bundles, self._bundle_offsets
        if features is not None:
            split_bins = np.zeros_like(self._splittable)
            split_bins[features] = self._splittable[features]
            bin_offsets = _bin_offsets(split_bins)
            bundle_offsets = bundles.offsets(split_bins, bin_offsets)
        main, more = self.binned.main, self.binned.more
        return TreeData(
            bundled=main.bundled.reshape(-1),
            more_bundled=more.bundled.reshape(-1),
            n_bundles=main.bundled.shape[1],
            n_more_bundles=more.bundled.shape[1],
            bundle_columns=bundles.columns,
            bundle_codes=self._shared_codes,
            bundle_offsets=bundle_offsets,
            strides=bundles.strides,
            columns=main.columns,
            more_columns=more.columns,
            n_bins=self._n_bins,
            split_bins=split_bins,
            categorical=self._categorical,
            bin_offsets=bin_offsets,
            gradients=self._gradients,
            hessians=self._hessians,
            **packing._asdict(),
            noise=NO_NOISE,
            directions=self._directions,
            groups=self._groups,
        )

    @property
    def _limits_values(self) -> bool:
        return self.options.max_delta_step > 0.0 or self.options.path_smooth > 0.0

    def _finish(
        self,
        grown: GrownTree,
        gradients: Floats,
        hessians: Floats,
        chosen: Mask,
        n_chosen: int,
    ) -> Tree:
        """Return the tree in its final order, with values of leaves from unrounded gradients."""
        n = len(grown.splits)
        layout = Layout(
            order=np.empty(n, np.int64),
            leaf_order=np.empty(n + 1, np.int64),
            missing_left=np.empty(n, np.bool_),
            first=np.empty(n, np.uint16),
            right=np.empty(n, np.uint16),
        )
        lay_out(grown, layout)
        column, cut = grown.splits[layout.order][:, [SPLIT_COLUMN, SPLIT_CUT]].T
        leaf_docs = grown.leaf_docs[layout.leaf_order]
        threshold, left_sets = self._cuts[column, cut], NO_SETS
        if len(grown.left_sets):
            categorical = self._categorical[column]
            threshold[categorical] = np.nan
            left_sets = grown.left_sets[layout.order][categorical]
        tree = Tree(
            feature=column.astype(np.int32),
            threshold=threshold,
            missing_left=layout.missing_left,
            first=layout.first,
            right=layout.right,
            gain=grown.gains[layout.order],
            docs=grown.docs[layout.order],
            value=np.zeros(n + 1),
            leaf_docs=leaf_docs,
            left_sets=left_sets,
        )
        # The rows that were not chosen need their leaves, too: the tree adds to the scores of all
        # documents. And the integers of the histograms were rounded, so the sums are taken anew.
        self._find_leaves(tree, column, cut, self._columns, self.leaves)
        by_block = np.empty((SUM_BLOCKS, 2, n + 1))
        arguments = self.leaves, self.rows, gradients, hessians, chosen, by_block
        self._over_blocks(sum_leaves, *arguments)
        sums = by_block.sum(axis=0)
        divisors = sums[1] if self.options.step == "newton" else leaf_docs.astype(np.float64)
        return replace(tree, value=self._values(tree, sums[0], divisors, n_chosen))

    def _values(self, tree: Tree, gradients: Floats, divisors: Floats, n_chosen: int) -> Floats:
        """Return the values of leaves from the sums over their documents."""
        options, l2 = self.options, 0.0
        if options.l2_regularization > 0.0:
            l2 = options.l2_regularization * (divisors.sum() / max(n_chosen, 1))
        if self._limits_values:
            max_step, path_smooth = options.max_delta_step, options.path_smooth
            values = limited(tree, gradients, divisors, l2, max_step, path_smooth)
        else:
            values = quotients(gradients, divisors + l2)
        if len(self._directions):
            values = in_monotone_order(tree, values, divisors + l2, self._directions)
        return values

    def add(self, tree: Tree, scores: Floats) -> None:
        """Add the values of the tree just grown to the scores of the documents."""
        _add_values(self.leaves, self.rows, tree, scores)

    def add_again(self, tree: Tree, scores: Floats) -> None:
        """Add the values of any tree of this training set to the scores of the documents."""
        self._find_leaves(tree, *self._columns_and_cuts(tree), self._columns, self.leaves)
        self.add(tree, scores)

    def add_elsewhere(
        self,
        tree: Tree,
        columns: tuple[NDArray[np.uint8], NDArray[np.uint8]],
        leaves: NDArray[Any] | None,
        scores: Floats,
    ) -> NDArray[Any]:
        """Add the values of a tree to the scores of other rows, binned by the same cut points.

        ``leaves`` is scratch from an earlier call; the scratch for the next is returned.
        """
        scratch = np.empty(len(scores), self.leaves.dtype) if leaves is None else leaves
        self._find_leaves(tree, *self._columns_and_cuts(tree), columns, scratch)
        _add_values(scratch, NO_INDEX, tree, scores)
        return scratch

    def can_follow(self, tree: Tree) -> bool:
        """Tell whether a tree is like those grown here: by these cut points, and no larger."""
        if tree.n_leaves > self._n_leaves:
            return False
        column, cut = self._columns_and_cuts(tree)
        return bool((tree.categorical | (self._cuts[column, cut] == tree.threshold)).all())

    @property
    def _columns(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        return self.binned.main.columns, self.binned.more.columns

    def _columns_and_cuts(self, tree: Tree) -> tuple[Integers, Integers]:
        """Return the column of each split, and which of its cut points the threshold is."""
        column = tree.feature.astype(np.int64)
        cut = np.empty(len(column), np.int64)
        find_thresholds(tree.threshold, column, self._cuts, cut)
        return column, cut

    def _find_leaves(
        self,
        tree: Tree,
        column: Integers,
        cut: Integers,
        columns: tuple[NDArray[np.uint8], NDArray[np.uint8]],
        out: NDArray[Any],
    ) -> None:
        # As `missing_shift` of a single split, for all splits at once. A categorical one compares
        # sides, 0 and 1.
        categorical = tree.categorical
        shift = np.where(tree.missing_left & ~categorical, 256 - self._n_bins[column], 0)
        cut = np.where(categorical, 0, cut)
        splits = BinnedSplits(
            column=np.ascontiguousarray(column),
            shift=shift.astype(np.uint8),
            bound=(cut + shift).astype(np.uint8),
            first=tree.first.astype(out.dtype),
            right=tree.right.astype(out.dtype),
            set_of=set_numbers(categorical),
            left_sets=frozen(tree.left_sets),
        )
        # So many splits of a row take the time of a document elsewhere.
        grain = 4 * DOCS_PER_THREAD // (len(column) + 1)
        parallel_for(find_leaves, len(out), *columns, splits, out, grain=grain)


def compile_growth() -> None:
    """Compile what growing trees takes, by a tree on the smallest data; see `compile_ahead`."""
    X = np.arange(8, dtype=np.float32)[:, None]
    options = GrowthOptions(2, None, 1, 0.0, "newton", "newton")
    Grower(BinnedData.make(X, ["x"]), None, options).grow(np.arange(8.0) - 4.0, np.ones(8))


def _add_values(leaves: NDArray[Any], rows: NDArray[np.int32], tree: Tree, scores: Floats) -> None:
    arguments = leaves, rows, tree.value, scores
    parallel_for(add_values, len(scores), *arguments, grain=DOCS_PER_THREAD)


def _bin_offsets(split_bins: Integers) -> Integers:
    """Return where each column's bins begin in a histogram, the one for missing values last."""
    return np.concatenate([[0], np.cumsum(np.where(split_bins > 0, split_bins + 1, 0))])


def _scale(total: float, bits: int) -> float:
    """Return the factor by which the sum of absolute values gets a number of bits.

    Parameters
    ----------
    total
        Sum of the absolute values.
    bits
        Bits of the scaled sum.
    """
    if not np.isfinite(total):
        raise UsageError(
            "training: the gradients are not finite; a smaller learning_rate keeps scores in reach"
        )
    if total > LARGEST_SUM:
        raise UsageError(
            f"training: the gradients are too large for trees, {total:.3g} in all; smaller labels "
            "or weights, or a smaller learning_rate, keep them in reach"
        )
    return 2.0 ** (bits - 1) / max(total, SMALLEST_SUM) if total > 0.0 else 1.0


def _memberships(groups: Sequence[Sequence[int]], n_features: int) -> Mask:
    """Return whether each feature is in each group; nothing at all if there are no groups."""
    members = np.zeros((len(groups), n_features if groups else 0), np.bool_)
    for row, group in zip(members, groups, strict=True):
        row[list(group)] = True
    return members
