"""Lambda gradients: sums over pairs of documents, weighted by how much a swap would matter.

For a pair whose document i has the higher label, lambda_ij = |change of the measure if i and j
were swapped| / (1 + exp(s_i - s_j)) is added to the gradient of i and subtracted from that of j,
and |change| rho (1 - rho) is added to the hessians of both (LambdaSMART, Sec. 3).

If documents have weights, those of a pair are multiplied by the product of the two. So a document
of weight 2 makes as many pairs as two documents, while it has one rank; and one of weight 0 makes
none, but keeps its rank, as a document without a label does.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from rankinite.core.errors import UsageError
from rankinite.core.params import Constraint, OneOf, SourceName, Whole, check, or_none
from rankinite.core.random import generator
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Integers, Mask
from rankinite.measures.measure import DEEPEST, Form, Measure
from rankinite.measures.scorer import best_sums
from rankinite.measures.text import MeasureLike
from rankinite.objectives.custom import SwapGradients
from rankinite.objectives.kernels import pairwise as kernels
from rankinite.objectives.kernels import swaps
from rankinite.objectives.kernels.arrays import (
    NO_NUMBERS,
    NO_PLACES,
    PAIRS,
    ObjectiveArrays,
    ObjectiveMixture,
    single_mixture,
)
from rankinite.objectives.kernels.constructions import all_construction_gradients
from rankinite.objectives.objective import (
    Call,
    Gradients,
    GradientsByQuery,
    NamedObjective,
    Targets,
    compiled_measure,
    named,
    pair_labels,
    read_only,
    single_measure,
)

NORMALISE = {
    "none": kernels.NOT_NORMALISED,
    "deviation": kernels.BY_DEVIATION,
    "distance": kernels.BY_DISTANCE,
}
TRUNCATION: Constraint = or_none(Whole(1, DEEPEST))
# Few enough that allocating scratch memory costs nothing, many enough for any number of threads.
MOST_BLOCKS = 128
# The time to rank a document, in units of the time of a pair; measured.
PAIRS_PER_DOCUMENT = 24
# Fewer are done by one thread before another has woken up.
PAIRS_PER_THREAD = 300_000


@named
@dataclass(frozen=True, init=False)
class Lambdas(NamedObjective):
    """The lambda gradient of a measure.

    Parameters
    ----------
    measure
        The measure that swaps change, as a text, a value or a function of ranked labels. Its depth
        is that of the lambdas.
    truncation
        Only pairs count that have a document among the first ``truncation`` ranks; all if None.
    normalise
        ``"none"`` as in the papers. ``"deviation"``: a query's gradients and hessians are divided
        by the standard deviation of its gradients (Objectives, Sec. 5.3). ``"distance"``: each
        pair's change is divided by ``0.01 + |s_i - s_j|`` (unless all scores of the query are
        equal), then a query's gradients and hessians are multiplied by log2(1 + S) / S, where S
        sums the sizes of the pairs' lambdas over both documents.
    gain_only
        For MRR: only swaps count that raise the measure (Optimality, Eq. 11).

    Examples
    --------
    >>> str(Lambdas("ndcg@10", truncation=30).measure)
    'NDCG@10'
    """

    is_of_lambdas: ClassVar[bool] = True

    measure: Measure
    truncation: int | None = None
    normalise: str = "none"
    gain_only: bool = False

    def __init__(
        self,
        measure: MeasureLike,
        *,
        truncation: int | None = None,
        normalise: str = "none",
        gain_only: bool = False,
    ) -> None:
        check_options("Lambdas", truncation, normalise)
        check("Lambdas", "gain_only", gain_only, OneOf([False, True]))
        single = single_measure("Lambdas", measure)
        if gain_only and single.form != Form.RECIPROCAL_RANK:
            raise UsageError(
                f"Lambdas: gain_only is for MRR, and the measure is {single}; leave it"
            )
        for name, value in (
            ("measure", single),
            ("truncation", truncation),
            ("normalise", normalise),
            ("gain_only", gain_only),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def from_call(cls, call: Call, *, truncation: int | None, normalise: str) -> Lambdas:
        """Return the objective of a text, with the options of a ranker."""
        measure = call.measure(call.name)
        # It has none: truncation and normalisation are parameters of the ranker. The message uses
        # the name as it was written, for there is an alias.
        call.options(call.name, 1, ())
        return cls(measure, truncation=truncation, normalise=normalise)

    def prepare(self, targets: Targets) -> Gradients:
        """Check the labels and compute what stays the same while scores change."""
        # Nothing is known of such a function but its values: each swap is tried.
        if self.measure.form == Form.FUNCTION:
            shuffle = shuffled(targets.offsets, targets.seed)
            return SwapGradients(self.measure, targets, shuffle, self.truncation, self.normalise)
        return self.pair_gradients(targets)

    def pair_gradients(self, targets: Targets) -> PairGradients:
        """Return the gradients of a measure with a form."""
        measure = compiled_measure("Lambdas", self.measure)
        return PairGradients.of_measure(
            measure,
            targets,
            form=swaps.RECIPROCAL_GAIN if self.gain_only else int(measure.form),
            truncation=self.truncation,
            normalise=self.normalise,
        )


@named
@dataclass(frozen=True)
class RankNet(NamedObjective):
    """The cost of RankNet: every pair counts the same, whatever its ranks.

    Parameters
    ----------
    source
        The label source; the data set's labels if None.
    truncation, normalise
        As in `Lambdas`.
    """

    is_of_lambdas: ClassVar[bool] = True

    source: str | None = None
    truncation: int | None = None
    normalise: str = "none"

    def __post_init__(self) -> None:
        check_options("RankNet", self.truncation, self.normalise)
        check("RankNet", "source", self.source, or_none(SourceName()))

    @classmethod
    def from_call(cls, call: Call, *, truncation: int | None, normalise: str) -> RankNet:
        """Return the objective of a text, with the options of a ranker."""
        call.options("RankNet", 0, ())  # it has none
        return cls(truncation=truncation, normalise=normalise)

    def prepare(self, targets: Targets) -> PairGradients:
        """Compute what stays the same while scores change."""
        labels = pair_labels("RankNet", self.source, targets)
        return PairGradients(
            targets,
            labels,
            np.ones(longest_query(targets.offsets)),
            np.ones(len(targets.offsets) - 1),
            form=swaps.EVERY_PAIR,
            n_top=self.truncation or DEEPEST,
            normalise=NORMALISE[self.normalise],
        )


@dataclass(frozen=True, repr=False)
class WithRankerOptions(NamedObjective):
    """An objective whose truncation and normalisation are those of the ranker that uses it."""

    is_of_lambdas: ClassVar[bool] = True

    truncation: int | None = field(default=None, init=False)
    normalise: str = field(default="none", init=False)

    def __repr__(self) -> str:
        return str(self)

    def with_options(self, *, truncation: int | None, normalise: str) -> Self:
        """Return the objective with the options of a ranker; see `Lambdas`."""
        check_options(type(self).__name__, truncation, normalise)
        # Not dataclasses.replace, which calls __init__: the options are no arguments of it.
        new = copy(self)
        object.__setattr__(new, "truncation", truncation)
        object.__setattr__(new, "normalise", normalise)
        return new


class PairGradients(GradientsByQuery):
    """Lambda gradients of one data set; what does not depend on scores is computed here, once.

    Parameters
    ----------
    targets
        The data set.
    values
        The value of each document; NaN without a label.
    rank_weights, scales, form, n_top, normalise, kind, margin, groups
        As in `ObjectiveArrays`; groups in the order of documents.

    Attributes
    ----------
    arrays
        The objective on this data set, for kernels.
    blocks
        Block b has the queries ``blocks[b]`` to ``blocks[b + 1] - 1``; about equal work each.
    """

    def __init__(
        self,
        targets: Targets,
        values: Floats,
        rank_weights: Floats,
        scales: Floats,
        *,
        form: int,
        n_top: int,
        normalise: int = kernels.NOT_NORMALISED,
        kind: int = PAIRS,
        margin: float = 0.0,
        groups: Integers = NO_PLACES,
    ) -> None:
        offsets = targets.offsets
        shuffle = shuffled(offsets, targets.seed)
        weight = targets.query_weight
        doc_weight = _unless_all_1(targets.doc_weight, shuffle)
        blocks, self._blocks_per_thread = _blocks(offsets, n_top)
        self.blocks = read_only(blocks, np.int64)
        # Values and groups in the order in which ties are ranked: kernels read them in sequence.
        self.arrays = ObjectiveArrays(
            kind=kind,
            form=form,
            n_top=n_top,
            normalise=normalise,
            margin=margin,
            offsets=read_only(offsets, np.int64),
            values=read_only(values[shuffle]),
            shuffle=read_only(shuffle, np.int64),
            rank_weights=read_only(rank_weights),
            scales=read_only(np.where(_has_pairs(values, offsets, groups), scales, 0.0)),
            groups=read_only(groups[shuffle] if len(groups) else groups, np.int64),
            query_weight=read_only(np.ones(len(offsets) - 1) if weight is None else weight),
            better_weight=doc_weight,
            worse_weight=doc_weight,
        )

    @classmethod
    def of_measure(
        cls,
        measure: Measure,
        targets: Targets,
        *,
        form: int | None = None,
        values: Floats | None = None,
        truncation: int | None = None,
        normalise: str = "none",
        **options: Any,
    ) -> Self:
        """Return the gradients of a measure with a form.

        Parameters
        ----------
        measure, targets
            The measure that swaps change, and the data set.
        form, values
            The form of swaps and the values of documents; those of the measure if None.
        truncation, normalise
            As in `Lambdas`.
        options
            ``kind``, ``margin`` and ``groups`` of other constructions.
        """
        doc_values = values_of(measure, targets) if values is None else values
        return cls(
            targets,
            doc_values,
            measure.rank_weights(longest_query(targets.offsets)),
            scales_of(measure, doc_values, targets.offsets),
            form=int(measure.form) if form is None else form,
            n_top=min(truncation or DEEPEST, measure.depth or DEEPEST),
            normalise=NORMALISE[normalise],
            **options,
        )

    @property
    def pairs(self) -> PairGradients:
        """These gradients, which are sums over pairs of documents."""
        return self

    def mixture(self, round: int) -> ObjectiveMixture:
        """Return arrays from which a net's kernel computes the gradients of a query."""
        return single_mixture(self.arrays)

    def scaled(self, normalise: int, *, weighted: bool = True) -> Self:
        """Return the same gradients, scaled otherwise, and without query weights if asked."""
        new = copy(self)
        new.arrays = self.arrays._replace(normalise=normalise)
        if not weighted:
            ones = read_only(np.ones(len(self.arrays.query_weight)))
            new.arrays = new.arrays._replace(query_weight=ones)
        return new

    def weighted(self, better_weight: Floats, worse_weight: Floats) -> Self:
        """Return the same gradients with other weights of the documents of pairs.

        Parameters
        ----------
        better_weight, worse_weight
            As in `ObjectiveArrays`, but in the order of documents.
        """
        new, shuffle = copy(self), self.arrays.shuffle
        new.arrays = self.arrays._replace(
            better_weight=read_only(better_weight[shuffle]),
            worse_weight=read_only(worse_weight[shuffle]),
        )
        return new

    def gradients_of(
        self,
        queries: Mask,
        scores: Floats,
        round: int,
        out_gradient: Floats,
        out_hessian: Floats,
    ) -> None:
        """Write gradients of the documents of some queries, or of all if the mask is empty."""
        # Two kernels, so that users of the first need not wait for the second to compile.
        usual = self.arrays.kind == PAIRS and len(self.arrays.better_weight) == 0
        write = kernels.all_pairwise_gradients if usual else all_construction_gradients
        parallel_for(
            write,
            len(self.blocks) - 1,
            read_only(scores[0]),
            self.blocks,
            self.arrays,
            queries,
            out_gradient[0],
            out_hessian[0],
            grain=self._blocks_per_thread,
        )


def check_options(owner: str, truncation: int | None, normalise: str) -> None:
    """Raise `UsageError` for a bad truncation or normalisation."""
    check(owner, "truncation", truncation, TRUNCATION)
    check(owner, "normalise", normalise, OneOf(list(NORMALISE)))


def values_of(measure: Measure, targets: Targets) -> Floats:
    """Check the labels and return the value of each document; NaN without a label."""
    labels = pair_labels(str(measure), measure.source, targets)
    measure.check_labels(labels, targets.top_grade)
    values = np.asarray(measure.document_values(labels, targets.top_grade))
    # Not all measures pass NaN on: NaN is not relevant to those that ask for a threshold.
    return np.where(np.isnan(labels), np.nan, values)


def _unless_all_1(doc_weight: Floats | None, shuffle: Integers) -> Floats:
    """Return weights of documents in the order of the shuffle; none if all are 1."""
    # Kernels without weights are faster, and give the same bits as before there were any.
    if doc_weight is None or (doc_weight == 1.0).all():
        return NO_NUMBERS
    return read_only(doc_weight[shuffle])


def longest_query(offsets: Integers) -> int:
    """Return the number of documents of the longest query."""
    return int(np.diff(offsets).max())


def scales_of(measure: Measure, values: Floats, offsets: Integers) -> Floats:
    """Return the factor of each query's sums; 0 where no document has a value."""
    n_queries = len(offsets) - 1
    if measure.form == Form.NORMALISED:
        return _reciprocals(best_sums(measure, np.nan_to_num(values), offsets))
    if measure.form in (Form.AVERAGE_PRECISION, Form.RECALL):
        return _reciprocals(np.add.reduceat(np.nan_to_num(values), offsets[:-1]))
    if measure.form == Form.PRECISION:
        sizes = np.diff(offsets).astype(np.float64)
        return 1.0 / (sizes if measure.depth is None else np.full(n_queries, float(measure.depth)))
    return np.ones(n_queries)


def _reciprocals(numbers: Floats) -> Floats:
    return np.divide(1.0, numbers, out=np.zeros_like(numbers), where=numbers > 0.0)


def _has_pairs(values: Floats, offsets: Integers, groups: Integers) -> Mask:
    """Tell which queries have documents of one group with different values; NaN is no value."""
    if len(groups) == 0:
        return _differ(values, offsets[:-1])
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((groups, query))
    order = order[groups[order] >= 0]  # documents of group -1 make no pairs
    has = np.zeros(len(offsets) - 1, np.bool_)
    if len(order):
        begins = np.flatnonzero(
            np.diff(groups[order], prepend=-1) | np.diff(query[order], prepend=-1)
        )
        has[query[order][begins][_differ(values[order], begins)]] = True
    return has


def _differ(values: Floats, begins: Integers) -> Mask:
    """Tell which ranges have different values; NaN is no value."""
    # A range without any value compares NaN with NaN, which is False.
    largest = np.fmax.reduceat(values, begins)
    return np.asarray(largest > np.fmin.reduceat(values, begins))


def shuffled(offsets: Integers, seed: int) -> Integers:
    """Return the documents of each query in random order, in which ties are ranked."""
    sizes = np.diff(offsets)
    draws = generator(seed, "ties").random(int(offsets[-1]))
    return np.lexsort((draws, np.repeat(np.arange(len(sizes)), sizes)))


def _blocks(offsets: Integers, n_top: int) -> tuple[Integers, int]:
    """Cut the queries into blocks of about equal work, and tell how many a thread is worth.

    The cuts depend on the data only.
    """
    sizes = np.diff(offsets).astype(np.float64)
    rows = np.minimum(sizes, n_top)
    # The pairs of r rows and n columns above the diagonal are r n - r^2 / 2, or about that.
    work = np.cumsum(rows * (sizes - rows / 2) + PAIRS_PER_DOCUMENT * sizes)
    n_blocks = min(len(sizes), MOST_BLOCKS)
    cuts = np.arange(1, n_blocks) / n_blocks * work[-1]
    blocks = np.concatenate([[0], np.searchsorted(work, cuts), [len(sizes)]])
    return blocks, int(PAIRS_PER_THREAD * n_blocks / work[-1]) + 1
