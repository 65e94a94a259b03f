"""Lambda gradients: pairs of documents push each other, as hard as a swap would matter.

For a pair whose document i has the higher label, lambda_ij = |change of the measure if i and j
were swapped| / (1 + exp(s_i - s_j)) is added to i and taken from j, and |change| rho (1 - rho)
is added to the weights of both (LambdaSMART, Sec. 3).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import Constraint, Either, OneOf, SourceName, Whole, check
from rankinite.core.random import generator
from rankinite.core.types import Floats
from rankinite.measures import kernels as measure_kernels
from rankinite.measures.measure import DEEPEST, Form, Measure
from rankinite.measures.text import parse_measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives.kernels import pairwise as kernels
from rankinite.objectives.kernels import swaps
from rankinite.objectives.kernels.arrays import NO_NUMBERS, NO_PLACES, PAIRS, Plan
from rankinite.objectives.kernels.diagnostics import count_pairs
from rankinite.objectives.objective import EVERY_QUERY, Gradients, Targets, labels_of, read_only

NORMALISE = {
    "none": kernels.AS_IT_IS,
    "deviation": kernels.BY_DEVIATION,
    "distance": kernels.BY_DISTANCE,
}
TRUNCATION: Constraint = Either(Whole(1, DEEPEST), OneOf([None]))
# Few enough that scratch arrays cost nothing, many enough for any number of threads.
MOST_BLOCKS = 128
# What ranking a document costs, counted in pairs.
PAIRS_A_DOCUMENT = 24


@dataclass(frozen=True)
class Lambdas:
    """The lambda gradient of a measure.

    Parameters
    ----------
    measure
        What a swap is judged by, as a text or a value. Its depth is that of the lambdas.
    truncation
        Only pairs count that have a document among the first so many ranks; all if None.
    normalise
        ``"none"`` as in the papers. ``"deviation"``: a query's lambdas, and with them its
        weights, are divided by the lambdas' standard deviation (Objectives, Sec. 5.3).
        ``"distance"``: each pair's change is divided by 0.01 + |s_i - s_j| (unless all scores
        of the query are equal), then a query's lambdas and weights are multiplied by
        log2(1 + S) / S, where S sums the sizes of the pairs' lambdas over both documents.
    gain_only
        For MRR: only swaps count that raise the measure (Optimality, Eq. 11).

    Examples
    --------
    >>> str(Lambdas("ndcg@10", truncation=30).measure)
    'NDCG@10'
    """

    measure: Measure
    truncation: int | None = None
    normalise: str = "none"
    gain_only: bool = False

    def __init__(
        self,
        measure: str | Measure | TieredMeasure,
        *,
        truncation: int | None = None,
        normalise: str = "none",
        gain_only: bool = False,
    ) -> None:
        check_options("Lambdas", truncation, normalise)
        check("Lambdas", "gain_only", gain_only, OneOf([False, True]))
        one = one_measure("Lambdas", measure)
        if gain_only and one.form != Form.RECIPROCAL_RANK:
            raise UsageError(f"Lambdas: gain_only is for MRR, and the measure is {one}; leave it")
        for name, value in (
            ("measure", one),
            ("truncation", truncation),
            ("normalise", normalise),
            ("gain_only", gain_only),
        ):
            object.__setattr__(self, name, value)

    def prepare(self, targets: Targets) -> PairGradients:
        """Check the labels and compute what stays the same while scores change."""
        measure = self.measure
        values = values_of(measure, targets)
        return PairGradients(
            targets,
            values,
            measure.rank_weights(longest_query(targets.offsets)),
            scales_of(measure, values, targets.offsets),
            form=swaps.RECIPROCAL_GAIN if self.gain_only else int(measure.form),
            reach=min(self.truncation or DEEPEST, measure.depth or DEEPEST),
            normalise=NORMALISE[self.normalise],
        )


@dataclass(frozen=True)
class RankNet:
    """The cost of RankNet: every pair counts the same, wherever it stands.

    Parameters
    ----------
    source
        The label source; the data set's labels if None.
    truncation, normalise
        As in `Lambdas`.
    """

    source: str | None = None
    truncation: int | None = None
    normalise: str = "none"

    def __post_init__(self) -> None:
        check_options("RankNet", self.truncation, self.normalise)
        check("RankNet", "source", self.source, Either(SourceName(), OneOf([None])))

    def prepare(self, targets: Targets) -> PairGradients:
        """Compute what stays the same while scores change."""
        labels = labels_of("RankNet", self.source, targets)
        return PairGradients(
            targets,
            labels,
            np.ones(longest_query(targets.offsets)),
            np.ones(len(targets.offsets) - 1),
            form=swaps.EVERY_PAIR,
            reach=self.truncation or DEEPEST,
            normalise=NORMALISE[self.normalise],
        )


@dataclass(frozen=True, repr=False)
class Adjustable:
    """An objective whose truncation and normalisation are those of the ranker that follows it."""

    truncation: int | None = field(default=None, init=False)
    normalise: str = field(default="none", init=False)

    def __repr__(self) -> str:
        return str(self)

    def adjusted(self, *, truncation: int | None, normalise: str) -> Self:
        """Return the objective with these; see `Lambdas`."""
        check_options(type(self).__name__, truncation, normalise)
        new = copy(self)
        object.__setattr__(new, "truncation", truncation)
        object.__setattr__(new, "normalise", normalise)
        return new


class PairGradients:
    """The lambdas of one data set; what does not depend on scores is computed here, once.

    Attributes
    ----------
    plan
        All that stays the same, for kernels.
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
        reach: int,
        normalise: int = kernels.AS_IT_IS,
        kind: int = PAIRS,
        margin: float = 0.0,
        groups: NDArray[np.int64] = NO_PLACES,
    ) -> None:
        if targets.doc_weight is not None:
            raise UsageError(
                "lambda gradients: pairs of documents have no document weights; "
                "give query_weight, one weight a query"
            )
        offsets = targets.offsets
        shuffle = _shuffled(offsets, targets.seed)
        weight = targets.query_weight
        self.start = np.zeros(1)
        self.blocks = read_only(_blocks(offsets, reach), np.int64)
        self.plan = Plan(
            kind=kind,
            form=form,
            reach=reach,
            normalise=normalise,
            margin=margin,
            offsets=read_only(offsets, np.int64),
            values=read_only(values[shuffle]),
            shuffle=read_only(shuffle, np.int64),
            rank_weights=read_only(rank_weights),
            scales=read_only(np.where(_has_pairs(values, offsets, groups), scales, 0.0)),
            groups=read_only(groups[shuffle] if len(groups) else groups, np.int64),
            query_weight=read_only(np.ones(len(offsets) - 1) if weight is None else weight),
            doc_weight=read_only(NO_NUMBERS),
        )

    def scaled(self, normalise: int, *, weighted: bool = True) -> Self:
        """Return the same lambdas, scaled in another way, and without queries' weights if asked."""
        new = copy(self)
        new.plan = self.plan._replace(normalise=normalise)
        if not weighted:
            ones = read_only(np.ones(len(self.plan.query_weight)))
            new.plan = new.plan._replace(query_weight=ones)
        return new

    def gradients(
        self, scores: Floats, iteration: int, out_lambda: Floats, out_weight: Floats
    ) -> None:
        """Write lambda and weight of every document at these scores."""
        self.gradients_of(EVERY_QUERY, scores, iteration, out_lambda, out_weight)

    def gradients_of(
        self,
        queries: NDArray[np.bool_],
        scores: Floats,
        iteration: int,
        out_lambda: Floats,
        out_weight: Floats,
    ) -> None:
        """Write lambda and weight of the documents of some queries."""
        given = read_only(scores[0])
        kernels.all_lambdas(given, self.blocks, self.plan, queries, out_lambda[0], out_weight[0])


def check_options(owner: str, truncation: int | None, normalise: str) -> None:
    """Refuse a truncation or a way to normalise that there is not."""
    check(owner, "truncation", truncation, TRUNCATION)
    check(owner, "normalise", normalise, OneOf(list(NORMALISE)))


def one_measure(owner: str, measure: str | Measure | TieredMeasure) -> Measure:
    """Return the one measure that is meant.

    Parameters
    ----------
    owner
        Who asks, for the message if it is none.
    """
    value = parse_measure(measure) if isinstance(measure, str) else measure
    if isinstance(value, TieredMeasure):
        raise UsageError(
            f"{owner}: {value} has several tiers; give one measure, such as {value.tiers[0]}, or "
            f"use Tiered({value}), whose lambdas are those of all tiers"
        )
    if not isinstance(value, Measure):
        raise UsageError(f"{owner}: {value!r} is not a measure; give one, such as 'NDCG@10'")
    return value


def values_of(measure: Measure, targets: Targets) -> Floats:
    """Check the labels and return what each document is worth; NaN without a label."""
    labels = labels_of(str(measure), measure.source, targets)
    measure.check_labels(labels, targets.top_grade)
    values = np.asarray(measure.document_values(labels, targets.top_grade))
    return np.where(np.isnan(labels), np.nan, values)


def longest_query(offsets: NDArray[np.int64]) -> int:
    """Return how many documents the longest query has."""
    return int(np.diff(offsets).max())


def scales_of(measure: Measure, values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return what each query's sums are multiplied by; 0 where no document is worth anything."""
    n_queries = len(offsets) - 1
    if measure.form == Form.NORMALISED:
        return _reciprocals(_best(measure, np.nan_to_num(values), offsets))
    if measure.form == Form.AVERAGE_PRECISION:
        return _reciprocals(np.add.reduceat(np.nan_to_num(values), offsets[:-1]))
    if measure.form == Form.PRECISION:
        sizes = np.diff(offsets).astype(np.float64)
        return 1.0 / (sizes if measure.depth is None else np.full(n_queries, float(measure.depth)))
    return np.ones(n_queries)


def _reciprocals(numbers: Floats) -> Floats:
    return np.divide(1.0, numbers, out=np.zeros_like(numbers), where=numbers > 0.0)


def _best(measure: Measure, values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return the largest sum that any order of each query's documents gives."""
    best = np.zeros((1, len(offsets) - 1))
    measure_kernels.measure_all(
        values + 0.0,
        offsets.copy(),  # one that can be written, as evaluation gives: no second compilation
        values[np.newaxis],
        np.ones(1, np.bool_),
        np.array([int(Form.NORMALISED)]),
        np.zeros(1, np.int64),
        np.array([measure.depth or 0]),
        measure.rank_weights(longest_query(offsets))[np.newaxis],
        np.zeros(1),
        False,
        best,
        np.empty_like(best),
    )
    return np.asarray(best[0])


def _has_pairs(
    values: Floats, offsets: NDArray[np.int64], groups: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell which queries have documents of different values, in one group; NaN is none."""
    if len(groups) == 0:
        return _differ(values, offsets[:-1])
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((groups, query))
    order = order[groups[order] >= 0]
    has = np.zeros(len(offsets) - 1, np.bool_)
    if len(order):
        begins = np.flatnonzero(
            np.diff(groups[order], prepend=-1) | np.diff(query[order], prepend=-1)
        )
        has[query[order][begins][_differ(values[order], begins)]] = True
    return has


def _differ(values: Floats, begins: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which stretches have different values; NaN is none."""
    largest = np.fmax.reduceat(values, begins)
    return np.asarray(largest > np.fmin.reduceat(values, begins))


def _shuffled(offsets: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return the documents of each query in an order drawn at random: that of ties."""
    sizes = np.diff(offsets)
    draws = generator(seed, "ties").random(int(offsets[-1]))
    return np.lexsort((draws, np.repeat(np.arange(len(sizes)), sizes)))


def _blocks(offsets: NDArray[np.int64], reach: int) -> NDArray[np.int64]:
    """Cut the queries into blocks of about equal work; the cuts depend on the data only."""
    sizes = np.diff(offsets).astype(np.float64)
    rows = np.minimum(sizes, reach)
    work = np.cumsum(rows * (sizes - rows / 2) + PAIRS_A_DOCUMENT * sizes)
    n_blocks = min(len(sizes), MOST_BLOCKS)
    shares = np.arange(1, n_blocks) / n_blocks * work[-1]
    return np.concatenate([[0], np.searchsorted(work, shares), [len(sizes)]])


def effective_pairs(gradients: Gradients, scores: ArrayLike) -> int:
    """Return how many pairs of documents have a lambda that is not 0, in all queries together.

    These are the pairs whose documents differ in worth and whose swap changes the measure, one of
    them being above the truncation. A query of weight 0 has none.

    Parameters
    ----------
    gradients
        What `Lambdas` or `RankNet` made of a data set.
    scores
        One finite score a document.

    Examples
    --------
    Of three documents the second is the relevant one. It can change places with two others; the
    precision among the first two only changes if it goes to rank 3.

    >>> from rankinite.objectives.pairwise import Lambdas
    >>> from rankinite.objectives.objective import Targets
    >>> targets = Targets({None: np.array([0.0, 1.0, 0.0])}, np.array([0, 3]), top_grade=1.0)
    >>> [
    ...     effective_pairs(Lambdas(measure).prepare(targets), [3.0, 2.0, 1.0])
    ...     for measure in ("MAP", "P@2")
    ... ]
    [2, 1]
    """
    if not isinstance(gradients, PairGradients) or gradients.plan.kind != PAIRS:
        raise UsageError(
            f"effective_pairs: {type(gradients).__name__} are not made of all pairs; "
            "give what Lambdas or RankNet made of a data set"
        )
    given = read_only(scores)
    n_docs = int(gradients.plan.offsets[-1])
    if given.shape != (n_docs,):
        raise DataError(
            f"effective_pairs: the scores have the shape {given.shape}; expected ({n_docs},), "
            "one a document"
        )
    if not np.isfinite(given).all():
        doc = int(np.isfinite(given).argmin())
        raise DataError(
            f"effective_pairs: document {doc} has the score {given[doc]}; expected a finite number"
        )
    counts = np.empty(len(gradients.blocks) - 1, np.int64)
    count_pairs(given, gradients.blocks, gradients.plan, counts)
    return int(counts.sum())
