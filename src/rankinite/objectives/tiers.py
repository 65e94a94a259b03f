"""Several lambda gradients at once: a weighted sum, with weights that may change by iteration."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.core.format import plain_number
from rankinite.core.params import Either, OneOf, Real, Whole, check
from rankinite.core.types import Floats, Integers
from rankinite.measures.measure import DEEPEST, Form, Measure
from rankinite.measures.text import parse_measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives.constructions import ConstructedGradients, constructed
from rankinite.objectives.kernels import pairwise as kernels
from rankinite.objectives.kernels.arrays import TIED_PAIRS, Blend, alone
from rankinite.objectives.kernels.dispatch import add_shares
from rankinite.objectives.objective import EVERY_QUERY, Targets, labels_of, read_only
from rankinite.objectives.pairwise import (
    NORMALISE,
    Adjustable,
    Lambdas,
    PairGradients,
    values_of,
)

Shares = Callable[[int], Sequence[float]]


class CombinedGradients:
    """The weighted sum of the lambdas, and of the weights, of several parts.

    Where a part has the share 1 it is followed alone, and gives the bits that it would give by
    itself. The sum of several is divided by its standard deviation in each query if that is how
    lambdas are normalised (Objectives, Sec. 5.3); by distance each part is normalised by itself.

    Parameters
    ----------
    parts
        Two or more of the same data set; how they are normalised does not matter.
    shares
        From the iteration to what each part is multiplied by; they sum to 1.
    normalise
        How lambdas are normalised, as in `Lambdas`.
    fixed
        Gives what the shares depend on, if it has no text by which it is told from others.

    Attributes
    ----------
    parts
        Each part as it is alone.
    start
        The score to begin with.
    """

    def __init__(
        self,
        parts: Sequence[PairGradients],
        shares: Shares,
        normalise: str,
        fixed: Callable[[], Sequence[Floats]] = tuple,
    ) -> None:
        self._normalise = NORMALISE[normalise]
        self.parts = tuple(part.scaled(self._normalise) for part in parts)
        self.start = np.zeros(1)
        self._fixed = fixed
        self._shares = shares
        by_distance = self._normalise == kernels.BY_DISTANCE
        own = kernels.BY_DISTANCE if by_distance else kernels.AS_IT_IS
        self._parts = tuple(part.scaled(own, weighted=False) for part in parts)
        self._room = np.zeros((2, len(parts), 0))

    @property
    def fixed(self) -> Sequence[Floats]:
        """What a checkpoint is to know of the shares."""
        return self._fixed()

    def blend(self, iteration: int) -> Blend:
        """Return what a kernel follows in an iteration."""
        shares = np.array(self._shares(iteration), np.float64)
        whole = np.flatnonzero(shares == 1.0)
        if len(whole):
            return alone(self.parts[whole[0]].plan)
        plans = tuple(part.plan for part in self._parts)
        return Blend(plans, read_only(shares), self._normalise, self.parts[0].plan.query_weight)

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
        shares = np.array(self._shares(iteration), np.float64)
        whole = np.flatnonzero(shares == 1.0)
        if len(whole):
            part = self.parts[whole[0]]
            part.gradients_of(queries, scores, iteration, out_lambda, out_weight)
            return
        if self._room.shape[-1] != scores.shape[1]:
            self._room = np.zeros((2, len(self.parts), scores.shape[1]))
        lambdas, weights = self._room
        for p in np.flatnonzero(shares):
            row = slice(p, p + 1)
            self._parts[p].gradients_of(queries, scores, iteration, lambdas[row], weights[row])
        first = self.parts[0]
        add_shares(
            first.plan.offsets,
            first.blocks,
            queries,
            read_only(shares),
            self._normalise,
            first.plan.query_weight,
            lambdas,
            weights,
            out_lambda[0],
            out_weight[0],
        )


log = logging.getLogger("rankinite")


DEFAULT_WEIGHT = 0.3
SHARE = Real(0, 1)
POSITIVE, LABELLED, ALL = "positive", "labelled", "all"
# Weights that were meant to sum to 1 may miss it by rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class Tiered(Adjustable):
    """The lambda gradients of a graded measure (Objectives, Sec. 4.2).

    The first tier has the lambdas that it would have alone. In each tier below, two documents push
    each other if they are tied in all tiers above, where they are worth the same: as hard as
    swapping them would change the tier's own measure, at the ranks that they have among all
    documents. With one weight w the lambdas are (1 - w) those of the first tier + w those of the
    second, and the Newton weights likewise.

    A document without a label in a source makes no pairs there, but does in the other tiers: two
    documents that both lack a label in a tier above are tied in it, and a document with one and a
    document without one are not.

    Truncation and normalisation are those of the ranker. Normalised by deviation, the sum is.

    Parameters
    ----------
    measure
        Two tiers or more, as a text or a value: ``"NDCG@3 > CNDCG@3[clicks]"``. Depths govern
        evaluation and early stopping, not the lambdas; those of P, which without one never changes,
        govern both.
    weights
        The weight of the second tier, or one for every tier but the first, which has the rest up to
        1. With 0 nothing is changed by a tier, with 1 it is followed alone. One number for several
        tiers is shared out among them.
    train_depth
        The depth of the lambdas of all tiers; None is the whole list.
    pairs_of
        Which documents make pairs in the tiers below the first: ``"positive"`` ones, which are
        worth something there, for no click may mean that nobody saw the document; all
        ``"labelled"`` ones; or ``"all"``, where no label counts as 0. Others keep their ranks.

    Examples
    --------
    >>> str(Tiered("NDCG@3 > CNDCG@3[clicks]", weights=0.1))
    'Tiered(NDCG@3 > CNDCG@3[clicks], weights=0.1)'
    """

    measure: TieredMeasure
    weights: tuple[float, ...]
    train_depth: int | None
    pairs_of: str

    def __init__(
        self,
        measure: str | TieredMeasure,
        *,
        weights: float | Sequence[float] = DEFAULT_WEIGHT,
        train_depth: int | None = None,
        pairs_of: str = POSITIVE,
    ) -> None:
        tiers = _graded(measure)
        check("Tiered", "train_depth", train_depth, Either(Whole(1, DEEPEST), OneOf([None])))
        for tier in tiers.tiers:
            if tier.form == Form.PRECISION and tier.depth is None and train_depth is None:
                raise UsageError(
                    f"Tiered: {tier} of a whole list is the same in any order; give it a depth, "
                    "such as P@10, or give train_depth"
                )
        check("Tiered", "pairs_of", pairs_of, OneOf([POSITIVE, LABELLED, ALL]))
        for name, value in (
            ("measure", tiers),
            ("weights", _weights(weights, tiers)),
            ("train_depth", train_depth),
            ("pairs_of", pairs_of),
        ):
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        options = [] if self.weights == _weights(DEFAULT_WEIGHT, self.measure) else [self._shown()]
        options += [] if self.train_depth is None else [f"train_depth={self.train_depth}"]
        options += [] if self.pairs_of == POSITIVE else [f"pairs_of={self.pairs_of}"]
        return f"Tiered({', '.join([str(self.measure), *options])})"

    def _shown(self) -> str:
        numbers = [plain_number(weight) for weight in self.weights]
        return f"weights={numbers[0] if len(numbers) == 1 else '(' + ', '.join(numbers) + ')'}"

    def prepare(self, targets: Targets) -> CombinedGradients:
        """Check the labels of all tiers and compute what stays the same while scores change."""
        for tier in self.measure.tiers:
            labels_of(str(tier), tier.source, targets)  # told of by its own name
        tiers = [self._trained(tier) for tier in self.measure.tiers]
        first = Lambdas(tiers[0], truncation=self.truncation, normalise=self.normalise)
        parts = [first.prepare(targets)]
        above = [values_of(tiers[0], targets)]
        for tier, text, weight in zip(tiers[1:], self.measure.tiers[1:], self.weights, strict=True):
            parts.append(self._lower_tier(tier, above, targets))
            above.append(values_of(tier, targets))
            if weight > 0.0 and not parts[-1].plan.scales.any():
                self._warn(text)
        shares = (max(0.0, 1.0 - sum(self.weights)), *self.weights)
        return CombinedGradients(parts, lambda _iteration: shares, self.normalise)

    def _trained(self, tier: Measure) -> Measure:
        """Return a tier at the depth of its lambdas."""
        if self.train_depth is None and tier.form == Form.PRECISION:
            return tier
        return replace(tier, depth=self.train_depth)

    def _warn(self, tier: Measure) -> None:
        """Tell of a tier without pairs."""
        log.warning(
            "%s has nothing to teach: no two %s documents of a query are tied in the tiers above "
            "and differ in it%s",
            tier,
            {POSITIVE: "positive", LABELLED: "labelled"}.get(self.pairs_of, ""),
            "; see pairs_of=labelled" if self.pairs_of == POSITIVE else "",
        )

    def _lower_tier(
        self, tier: Measure, above: Sequence[Floats], targets: Targets
    ) -> ConstructedGradients:
        """Return the lambdas of pairs that are tied in the tiers above."""
        values = values_of(tier, targets)
        if self.pairs_of == ALL:
            values = np.nan_to_num(values)
        takes_part = values > 0.0 if self.pairs_of == POSITIVE else ~np.isnan(values)
        groups = np.where(takes_part, tied_groups(above, targets.offsets), -1)
        return constructed(
            tier,
            targets,
            TIED_PAIRS,
            values=values,
            truncation=self.truncation,
            normalise=self.normalise,
            groups=groups,
        )


def tied_groups(values: Sequence[Floats], offsets: Integers) -> Integers:
    """Return the group of every document: those of one query with equal values, from 0.

    Parameters
    ----------
    values
        What documents are worth in one tier or several; NaN is as good as any value.
    offsets
        The queries.

    Examples
    --------
    >>> tied_groups([np.array([3.0, 0.0, 3.0, 1.0])], np.array([0, 3, 4]))
    array([1, 0, 1, 0])
    """
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((*reversed(values), query))
    begins = np.diff(query[order], prepend=-1) != 0
    differs = begins.copy()
    for column in values:
        ranked = column[order]
        same = (ranked[1:] == ranked[:-1]) | (np.isnan(ranked[1:]) & np.isnan(ranked[:-1]))
        differs[1:] |= ~same
    number = np.cumsum(differs) - 1
    groups = np.empty(len(order), np.int64)
    groups[order] = number - np.repeat(number[begins], np.diff(offsets))
    return groups


def _graded(measure: str | TieredMeasure) -> TieredMeasure:
    value: Any = parse_measure(measure) if isinstance(measure, str) else measure
    if not isinstance(value, TieredMeasure):
        raise UsageError(
            f"Tiered: {value!s} is no measure with tiers; give two measures or more, the most "
            "important first, as in NDCG@3 > CNDCG@3[clicks]"
        )
    return value


def _weights(weights: float | Sequence[float], measure: TieredMeasure) -> tuple[float, ...]:
    """Check the weights of the tiers below the first, and share out a single one."""
    n_lower = len(measure.tiers) - 1
    given: Any = weights.tolist() if isinstance(weights, np.ndarray) else weights
    if not isinstance(given, (list, tuple)):
        check("Tiered", "weights", given, SHARE)
        return (float(given) / n_lower,) * n_lower
    for weight in given:
        check("Tiered", "weights", weight, SHARE)
    if len(given) != n_lower:
        raise UsageError(
            f"Tiered: there are {len(given)} weights, {tuple(given)!r}, and {n_lower} tiers below "
            f"the first in {measure}; give one for each of them"
        )
    if sum(given) > 1.0 + ROUNDING:
        raise UsageError(
            f"Tiered: the weights {tuple(given)!r} sum to {sum(given):g}; expected 1 at most, for "
            "the first tier has the rest"
        )
    return tuple(float(weight) for weight in given)
