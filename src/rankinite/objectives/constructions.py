"""Other constructions of a lambda gradient from a measure (Optimality, Sec. 7).

The paper tried several; `Lambdas`, its ``RankNetWeightPairs``, was the best for every measure, and
the first four here are its competitors. M is the measure. The unnormalised measure is M without its
divisor: DCG for NDCG, the sum of precisions for MAP, the number of relevant documents for P, M
itself for others.

A document without a label keeps its rank, where its value is 0, but has no gradient: documents are
neighbours if no document with a label is between them, and a document that moves from rank to rank
passes over those without a label, which stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankinite.core.format import plain_number
from rankinite.core.params import Real, check
from rankinite.measures.measure import DEEPEST, Form, Measure
from rankinite.measures.text import MeasureLike
from rankinite.objectives.kernels import swaps
from rankinite.objectives.kernels.arrays import (
    DISCRETE_BOUNDED,
    LOCAL_COST,
    LOCAL_GRADIENT,
    SIGMOID_COST,
    SPRING_SMOOTH,
)
from rankinite.objectives.objective import NamedObjective, Targets, compiled_measure, named
from rankinite.objectives.pairwise import (
    PairGradients,
    WithRankerOptions,
    longest_query,
    scales_of,
    values_of,
)

DEFAULT_MARGIN = 1.0


@dataclass(frozen=True, init=False)
class _Construction(NamedObjective):
    """A construction of a lambda gradient from a measure; its text is ``NAME(measure)``."""

    measure: Measure

    kind: ClassVar[int]
    margin: ClassVar[float] = 0.0

    def __init__(self, measure: MeasureLike) -> None:
        object.__setattr__(self, "measure", compiled_measure(type(self).__name__, measure))

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.measure})"

    def prepare(self, targets: Targets) -> PairGradients:
        """Check the labels and compute what stays the same while scores change."""
        return PairGradients.of_measure(
            self.measure, targets, kind=self.kind, margin=float(self.margin)
        )


@named
class SpringSmooth(_Construction):
    """Lambdas in which every pair counts at least as if the unnormalised measure changed by 1.

    As in `Lambdas`, documents i and j of which i has the larger value get gradients of
    change / (1 + exp(s_i - s_j)); but change is ``max(1, |unnormalised change of a swap|)``, and
    then divided by the query's normaliser. So every pair counts, also those below the depth.

    A swap changes ERR, pFound, MRR and P, unnormalised, by 1 at most: for these this is RankNet
    among documents of different value, for P over its depth.

    Parameters
    ----------
    measure
        The measure that swaps change, as a text or a value.

    Examples
    --------
    >>> str(SpringSmooth("ndcg@10"))
    'SpringSmooth(NDCG@10)'
    """

    kind = SPRING_SMOOTH

    def prepare(self, targets: Targets) -> PairGradients:
        """Check the labels and compute what stays the same while scores change."""
        measure = self.measure
        values = values_of(measure, targets)
        longest = longest_query(targets.offsets)
        # Where no change is above 1, all are raised to 1: those are the pairs of RankNet.
        at_most_1 = measure.form in (Form.CASCADE, Form.RECIPROCAL_RANK)
        return PairGradients(
            targets,
            values,
            np.ones(longest) if at_most_1 else measure.rank_weights(longest),
            scales_of(measure, values, targets.offsets),
            form=swaps.EVERY_PAIR if at_most_1 else int(measure.form),
            n_top=DEEPEST,  # below the depth a swap changes nothing, but counts as 1
            kind=self.kind,
        )


@named
class LocalCost(_Construction):
    """Lambdas of neighbours only: of the pairs of `Lambdas`, those at adjacent ranks count.

    Parameters
    ----------
    measure
        The measure that swaps change, as a text or a value.

    Examples
    --------
    >>> str(LocalCost("MAP"))
    'LocalCost(MAP)'
    """

    kind = LOCAL_COST


@named
@dataclass(frozen=True, init=False)
class LocalGradient(_Construction):
    """The slope of the measure by a document's score, estimated from its neighbours.

    For the document at rank k there are two estimates, towards rank k - 1 and towards k + 1:

        (M with k and k - 1 swapped - M) / (s_(k-1) - s_k + margin)
        (M - M with k and k + 1 swapped) / (s_k - s_(k+1) + margin)

    The gradient is their mean, or the only one at the first and the last rank. The hessian is 1:
    a Newton step is a mean. A query's gradients need not sum to 0.

    Parameters
    ----------
    measure
        The measure that swaps change, as a text or a value.
    margin
        Added to differences of scores, which may be 0; above 0. With 1, an estimate is half as
        large at a difference of 1 as at a tie, much as 1 / (1 + exp(difference)) in `Lambdas`,
        which falls from 0.5 to 0.27; and it is never larger than the change of the measure. With
        less, documents of nearly equal scores dominate.

    Examples
    --------
    >>> str(LocalGradient("NDCG@10")), str(LocalGradient("NDCG@10", margin=0.5))
    ('LocalGradient(NDCG@10)', 'LocalGradient(NDCG@10, margin=0.5)')
    """

    margin: float = DEFAULT_MARGIN  # type: ignore[misc]

    kind = LOCAL_GRADIENT
    text_options = ("margin",)

    def __init__(self, measure: MeasureLike, *, margin: float = DEFAULT_MARGIN) -> None:
        super().__init__(measure)
        check("LocalGradient", "margin", margin, Real(0, low_open=True))
        object.__setattr__(self, "margin", float(margin))

    def __str__(self) -> str:
        if self.margin == DEFAULT_MARGIN:
            return super().__str__()
        return f"LocalGradient({self.measure}, margin={plain_number(self.margin)})"


@named
class DiscreteBounded(_Construction):
    """The change of the measure if a document moved to its ideal rank, at most 1.

    The ideal order is by value from high to low; documents of equal value keep their present order.
    A document is removed and inserted at its ideal rank, and those between move by one rank. The
    gradient is ``min(1, |change of the unnormalised measure|)``, positive if the document moves up
    and negative if down, even where the move itself, with all others unchanged, lowers the measure.
    It is 0 for a document at its ideal rank. The hessian is 1: a Newton step is a mean. A query's
    gradients need not sum to 0.

    Parameters
    ----------
    measure
        The measure that moves change, as a text or a value.

    Examples
    --------
    >>> str(DiscreteBounded("ERR@5"))
    'DiscreteBounded(ERR@5)'
    """

    kind = DISCRETE_BOUNDED


# exp(mu) and its square are far from overflow.
LARGEST_MU = 100.0


@named
@dataclass(frozen=True, repr=False, init=False)
class SigmoidCost(WithRankerOptions):
    """The lambda gradient of a measure with a sigmoid as the cost of a pair (Objectives, Sec. 5.2).

    A pair whose better document i has the score s_i and the other s_j costs
    1 / (1 + exp(s_i - s_j + mu)). So the gradient of a pair is the absolute change of the measure
    if they were swapped, times x / (1 + x)^2, with x = exp(s_i - s_j + mu): it is largest, a
    quarter of the change, where s_i - s_j = -mu, and falls the further apart they are, in the right
    order (which needs no change) and in the wrong one (which is given up).

    With a depth, as in ``SigmoidCost("NDCG@3")``, only pairs with a document above it count.

    The cost is not convex, so that there is no Newton step: trees need ``step="gradient"``.
    Hessians are 0.

    Parameters
    ----------
    measure
        The measure that swaps change, as a text or a value. Its depth is that of the lambdas.
    mu
        By how much the score of the better document is lower where the gradient is largest.

    Examples
    --------
    >>> str(SigmoidCost("ndcg@3")), str(SigmoidCost("NDCG", mu=0.5))
    ('SigmoidCost(NDCG@3)', 'SigmoidCost(NDCG, mu=0.5)')
    """

    measure: Measure
    mu: float

    no_newton: ClassVar[str] = (  # type: ignore[misc]
        "the sigmoid cost has a second derivative of both signs, and a Newton step divides by it"
    )
    text_options = ("mu",)

    def __init__(self, measure: MeasureLike, *, mu: float = 0.0) -> None:
        check("SigmoidCost", "mu", mu, Real(-LARGEST_MU, LARGEST_MU))
        object.__setattr__(self, "measure", compiled_measure("SigmoidCost", measure))
        object.__setattr__(self, "mu", float(mu))

    def __str__(self) -> str:
        mu = f", mu={plain_number(self.mu)}" if self.mu else ""
        return f"SigmoidCost({self.measure}{mu})"

    def prepare(self, targets: Targets) -> PairGradients:
        """Check the labels and compute what stays the same while scores change."""
        return PairGradients.of_measure(
            self.measure,
            targets,
            truncation=self.truncation,
            normalise=self.normalise,
            kind=SIGMOID_COST,
            margin=self.mu,
        )
