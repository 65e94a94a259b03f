"""Tiers of measures as one objective: a weighted sum of the lambda gradients of each tier.

`MixtureGradients` are such sums, with weights that may change by round; those of `Tiered` stay the
same, those of `rankinite.objectives.transition` do not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankinite.core.errors import UsageError
from rankinite.core.format import plain_number
from rankinite.core.params import OneOf, Real, Whole, check, or_none
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Integers, Mask
from rankinite.measures.measure import DEEPEST, Measure
from rankinite.measures.text import parse_measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives.kernels import pairwise as kernels
from rankinite.objectives.kernels.arrays import TIED_PAIRS, ObjectiveMixture
from rankinite.objectives.kernels.dispatch import SumOptions, add_mixture
from rankinite.objectives.objective import (
    Gradients,
    GradientsByQuery,
    Targets,
    compiled_measure,
    labels_of,
    named,
    read_only,
)
from rankinite.objectives.pairwise import (
    NORMALISE,
    Lambdas,
    PairGradients,
    WithRankerOptions,
    values_of,
)

MixtureWeights = Callable[[int], Sequence[float]]

log = logging.getLogger("rankinite")


class MixtureGradients(GradientsByQuery):
    """The weighted sum of the gradients, and of the hessians, of several parts.

    Where a part has the weight 1 it counts alone, and gives the same bits as by itself. The sum of
    several is divided by its standard deviation in each query if gradients are normalised by
    deviation (Objectives, Sec. 5.3); by distance each part is normalised by itself.

    Parameters
    ----------
    parts
        Two or more of the same data set; how they are normalised does not matter.
    mixture_weights
        From the round to the weight of each part; they sum to 1.
    normalise
        How gradients are normalised, as in `Lambdas`.
    checkpoint_arrays
        Gives what the weights depend on, if no parameter of the ranker tells.
    """

    def __init__(
        self,
        parts: Sequence[PairGradients],
        mixture_weights: MixtureWeights,
        normalise: str,
        checkpoint_arrays: Callable[[], Sequence[Floats]] = tuple,
    ) -> None:
        self._normalise = NORMALISE[normalise]
        self._alone = tuple(part.scaled(self._normalise) for part in parts)
        self._checkpoint_arrays = checkpoint_arrays
        self._mixture_weights = mixture_weights
        by_distance = self._normalise == kernels.BY_DISTANCE
        of_parts = kernels.BY_DISTANCE if by_distance else kernels.NOT_NORMALISED
        # Query weights multiply the sum, and so must not multiply the parts.
        self._in_sum = tuple(part.scaled(of_parts, weighted=False) for part in parts)
        # Allocated when the number of documents is known, and kept from round to round.
        self._scratch = np.zeros((2, len(parts), 0))

    @property
    def parts(self) -> Sequence[PairGradients]:
        """Each part as it is alone."""
        return self._alone

    @property
    def checkpoint_arrays(self) -> Sequence[Floats]:
        """What the weights depend on."""
        return self._checkpoint_arrays()

    def mixture(self, round: int) -> ObjectiveMixture:
        """Return arrays from which a net's kernel computes the gradients of a query."""
        weights = self._mixture_weights(round)
        if 1.0 in weights:
            return self._alone[weights.index(1.0)].mixture(round)
        arrays = tuple(part.arrays for part in self._in_sum)
        query_weight = self._alone[0].arrays.query_weight
        return ObjectiveMixture(arrays, read_only(weights), self._normalise, query_weight)

    def gradients_of(
        self,
        queries: Mask,
        scores: Floats,
        round: int,
        out_gradient: Floats,
        out_hessian: Floats,
    ) -> None:
        """Write gradients of the documents of some queries, or of all if the mask is empty."""
        weights = self._mixture_weights(round)
        if 1.0 in weights:
            part = self._alone[weights.index(1.0)]
            part.gradients_of(queries, scores, round, out_gradient, out_hessian)
            return
        if self._scratch.shape[-1] != scores.shape[1]:
            self._scratch = np.zeros((2, len(self._in_sum), scores.shape[1]))
        gradients, hessians = self._scratch
        # The kernel does not read the rows of parts without weight.
        for p in np.flatnonzero(weights):
            row = slice(p, p + 1)
            self._in_sum[p].gradients_of(queries, scores, round, gradients[row], hessians[row])
        first = self._alone[0]
        options = SumOptions(
            first.arrays.offsets,
            first.blocks,
            read_only(weights),
            self._normalise,
            first.arrays.query_weight,
        )
        arguments = queries, options, gradients, hessians, out_gradient[0], out_hessian[0]
        parallel_for(add_mixture, len(options.blocks) - 1, *arguments)


DEFAULT_WEIGHT = 0.3
WEIGHT = Real(0, 1)
POSITIVE, LABELLED, ALL = "positive", "labelled", "all"
# Weights that were meant to sum to 1 may miss it by rounding.
ROUNDING = 1e-9
# Diagnostics compare a tier also with the lambdas of all its pairs, tied above or not.
ALL_PAIRS = ", all pairs"


@named
@dataclass(frozen=True, repr=False, init=False)
class Tiered(WithRankerOptions):
    """The lambda gradients of a measure with tiers (Objectives, Sec. 4.2).

    The first tier has the same lambdas as alone. In each tier below, pairs count whose documents
    are tied in all tiers above, where they have the same value: by how much swapping them would
    change the tier's own measure, at the ranks that they have among all documents. With one weight
    w the gradients are (1 - w) those of the first tier + w those of the second, and the hessians
    likewise.

    A document without a label in a source makes no pairs there, but does in the other tiers: two
    documents that both lack a label in a tier above are tied in it, and a document with one and a
    document without one are not.

    Truncation and normalisation are those of the ranker. With ``normalise="deviation"`` it is the
    sum over tiers that is scaled, not each tier.

    Parameters
    ----------
    measure
        Two tiers or more, as a text or a value: ``"NDCG@3 > CNDCG@3[clicks]"``. Depths govern
        evaluation and early stopping, not the lambdas; those of P, which without one never changes,
        govern both.
    weights
        The weight of the second tier, or one for every tier but the first, which has the rest up to
        1. With 0 a tier changes nothing, with 1 it counts alone. A single number for several tiers
        is divided among them.
    train_depth
        The depth of the lambdas of all tiers; None is the whole list.
    pairs_of
        Which documents make pairs in the tiers below the first: ``"positive"`` ones, which have a
        value there, for no click may mean that nobody saw the document; all ``"labelled"`` ones; or
        ``"all"``, where no label counts as 0. Others keep their ranks.

    Examples
    --------
    >>> str(Tiered("NDCG@3 > CNDCG@3[clicks]", weights=0.1))
    'Tiered(NDCG@3 > CNDCG@3[clicks], weights=0.1)'
    """

    measure: TieredMeasure
    weights: tuple[float, ...]
    train_depth: int | None
    pairs_of: str

    text_options = ("weights", "train_depth", "pairs_of")
    text_example = "NDCG@3 > CNDCG@3[clicks]"

    def __init__(
        self,
        measure: str | TieredMeasure,
        *,
        weights: float | Sequence[float] = DEFAULT_WEIGHT,
        train_depth: int | None = None,
        pairs_of: str = POSITIVE,
    ) -> None:
        tiers = _with_tiers(measure)
        check("Tiered", "train_depth", train_depth, or_none(Whole(1, DEEPEST)))
        for tier in tiers.tiers:
            compiled_measure("Tiered", tier)
            if tier.needs_depth and tier.depth is None and train_depth is None:
                raise UsageError(
                    f"Tiered: {tier} of a whole list is the same in any order; give it a depth, "
                    f"such as {tier.name}@10, or give train_depth"
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
        options = (
            [] if self.weights == _weights(DEFAULT_WEIGHT, self.measure) else [self._weights_text()]
        )
        options += [] if self.train_depth is None else [f"train_depth={self.train_depth}"]
        options += [] if self.pairs_of == POSITIVE else [f"pairs_of={self.pairs_of}"]
        return f"Tiered({', '.join([str(self.measure), *options])})"

    def _weights_text(self) -> str:
        numbers = [plain_number(weight) for weight in self.weights]
        return f"weights={numbers[0] if len(numbers) == 1 else '(' + ', '.join(numbers) + ')'}"

    def prepare(self, targets: Targets) -> MixtureGradients:
        """Check the labels of all tiers and compute what stays the same while scores change."""
        for tier in self.measure.tiers:
            labels_of(str(tier), tier.source, targets)  # the message names the tier as it was given
        tiers = [self._trained(tier) for tier in self.measure.tiers]
        first = Lambdas(tiers[0], truncation=self.truncation, normalise=self.normalise)
        parts = [first.pair_gradients(targets)]
        above = [values_of(tiers[0], targets)]
        # The warning names a tier as the user wrote it, not at the depth of its lambdas.
        for tier, text, weight in zip(tiers[1:], self.measure.tiers[1:], self.weights, strict=True):
            parts.append(self._lower_tier(tier, above, targets))
            above.append(values_of(tier, targets))
            if weight > 0.0 and not parts[-1].arrays.scales.any():
                self._warn(text)
        # Weights that sum to 1 may do so up to rounding: the first tier must not get less than 0.
        mixture_weights = (max(0.0, 1.0 - sum(self.weights)), *self.weights)
        return MixtureGradients(parts, lambda _round: mixture_weights, self.normalise)

    def compared(self, gradients: Gradients, targets: Targets) -> dict[str, PairGradients]:
        """Return by name the gradients of the tiers below the first, and those of all pairs."""
        tiers = self.measure.tiers[1:]
        lower = [part.pairs for part in gradients.parts[1:]]
        by_tier = {str(t): p for t, p in zip(tiers, lower, strict=True) if p is not None}
        return by_tier | {f"{t}{ALL_PAIRS}": self._all_pairs(t, targets) for t in tiers}

    def _all_pairs(self, tier: Measure, targets: Targets) -> PairGradients:
        """Return the gradients of all pairs of a tier, tied above or not; no label counts as 0."""
        labels = np.nan_to_num(labels_of(str(tier), tier.source, targets))
        deep = replace(tier, depth=self.train_depth)
        lambdas = Lambdas(deep, truncation=self.truncation, normalise=self.normalise)
        known = replace(targets, labels={**targets.labels, tier.source: labels})
        return lambdas.pair_gradients(known)

    def _trained(self, tier: Measure) -> Measure:
        """Return a tier at the depth of its lambdas."""
        # A measure that is the same for any order of a whole list has no lambdas there.
        if self.train_depth is None and tier.needs_depth:
            return tier
        return replace(tier, depth=self.train_depth)

    def _warn(self, tier: Measure) -> None:
        """Warn of a tier without pairs."""
        log.warning(
            "%s has nothing to teach: no two %s documents of a query are tied in the tiers above "
            "and differ in it%s",
            tier,
            {POSITIVE: "positive", LABELLED: "labelled"}.get(self.pairs_of, ""),
            "; see pairs_of=labelled" if self.pairs_of == POSITIVE else "",
        )

    def _lower_tier(
        self, tier: Measure, above: Sequence[Floats], targets: Targets
    ) -> PairGradients:
        """Return the gradients of pairs that are tied in the tiers above."""
        values = values_of(tier, targets)
        if self.pairs_of == ALL:
            values = np.nan_to_num(values)  # no label counts as 0
        takes_part = values > 0.0 if self.pairs_of == POSITIVE else ~np.isnan(values)
        groups = np.where(takes_part, tied_groups(above, targets.offsets), -1)
        return PairGradients.of_measure(
            tier,
            targets,
            values=values,
            truncation=self.truncation,
            normalise=self.normalise,
            kind=TIED_PAIRS,
            groups=groups,
        )


def tied_groups(values: Sequence[Floats], offsets: Integers) -> Integers:
    """Return the group of every document: those of one query with equal values, from 0.

    Parameters
    ----------
    values
        The values of documents in one tier or several; NaN is equal to NaN.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.

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
    # Numbered through all queries first, then from 0 in each: kernels count by group.
    number = np.cumsum(differs) - 1
    groups = np.empty(len(order), np.int64)
    groups[order] = number - np.repeat(number[begins], np.diff(offsets))
    return groups


def _with_tiers(measure: str | TieredMeasure) -> TieredMeasure:
    value: Any = parse_measure(measure) if isinstance(measure, str) else measure
    if not isinstance(value, TieredMeasure):
        raise UsageError(
            f"Tiered: {value!s} is no measure with tiers; give two measures or more, the most "
            "important first, as in NDCG@3 > CNDCG@3[clicks]"
        )
    return value


def _weights(weights: float | Sequence[float], measure: TieredMeasure) -> tuple[float, ...]:
    """Check the weights of the tiers below the first, and divide a single one among them."""
    n_lower = len(measure.tiers) - 1
    values: Any = weights.tolist() if isinstance(weights, np.ndarray) else weights
    if not isinstance(values, (list, tuple)):
        check("Tiered", "weights", values, WEIGHT)
        return (float(values) / n_lower,) * n_lower
    for weight in values:
        check("Tiered", "weights", weight, WEIGHT)
    if len(values) != n_lower:
        raise UsageError(
            f"Tiered: there are {len(values)} weights, {tuple(values)!r}, and {n_lower} tiers "
            f"below the first in {measure}; give one for each of them"
        )
    if sum(values) > 1.0 + ROUNDING:
        raise UsageError(
            f"Tiered: the weights {tuple(values)!r} sum to {sum(values):g}; expected 1 at most, "
            "for the first tier has the rest"
        )
    return tuple(float(weight) for weight in values)
