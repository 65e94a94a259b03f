"""Other constructions of a lambda gradient from a measure (Optimality, Sec. 7).

The paper tried several; `Lambdas`, its ``RankNetWeightPairs``, was the best for every measure, and
these four are its rivals. M is the measure. The unnormalised measure is M without its divisor: DCG
for NDCG, the sum of precisions for MAP, the number of relevant documents for P, M itself for
others.

A document without a label keeps its rank, where it is worth nothing, but takes no part: documents
are neighbours if no document with a label stands between them, and a document that moves from rank
to rank passes over those without one, which stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankinite.core.format import plain_number
from rankinite.core.params import Real, check
from rankinite.core.types import Floats
from rankinite.measures.measure import DEEPEST, Form, Measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives.kernels import arrays as plan
from rankinite.objectives.kernels import constructions as construction_kernels
from rankinite.objectives.kernels import swaps
from rankinite.objectives.kernels.arrays import SIGMOID_COST
from rankinite.objectives.objective import Targets, read_only
from rankinite.objectives.pairwise import (
    NORMALISE,
    Adjustable,
    PairGradients,
    longest_query,
    one_measure,
    scales_of,
    values_of,
)

USUAL_MARGIN = 1.0


class ConstructedGradients(PairGradients):
    """The lambdas of one data set by another construction."""

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
        construction_kernels.all_constructed(
            given, self.blocks, self.plan, queries, out_lambda[0], out_weight[0]
        )


def constructed(
    measure: Measure,
    targets: Targets,
    kind: int,
    *,
    values: Floats | None = None,
    truncation: int | None = None,
    normalise: str = "none",
    margin: float = 0.0,
    groups: NDArray[np.int64] = plan.NO_PLACES,
) -> ConstructedGradients:
    """Return the lambdas of a measure by a construction.

    Parameters
    ----------
    measure, targets
        What a swap is judged by, and the data set.
    kind, margin, groups
        As in `Plan`; groups in the order of documents.
    values
        What documents are worth, if it is not what the measure says of their labels.
    truncation, normalise
        As in `Lambdas`.
    """
    worth = values_of(measure, targets) if values is None else values
    return ConstructedGradients(
        targets,
        worth,
        measure.rank_weights(longest_query(targets.offsets)),
        scales_of(measure, worth, targets.offsets),
        form=int(measure.form),
        reach=min(truncation or DEEPEST, measure.depth or DEEPEST),
        normalise=NORMALISE[normalise],
        kind=kind,
        margin=margin,
        groups=groups,
    )


@dataclass(frozen=True)
class _Construction:
    """A way to make lambdas of a measure; its text is ``NAME(measure)``."""

    measure: Measure

    kind: ClassVar[int]

    def __init__(self, measure: str | Measure | TieredMeasure) -> None:
        object.__setattr__(self, "measure", one_measure(type(self).__name__, measure))

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.measure})"

    def prepare(self, targets: Targets) -> ConstructedGradients:
        """Check the labels and compute what stays the same while scores change."""
        margin = float(getattr(self, "margin", 0.0))
        return constructed(self.measure, targets, self.kind, margin=margin)


class SpringSmooth(_Construction):
    """Lambdas in which no pair counts less than if the unnormalised measure changed by 1.

    As in `Lambdas`, documents i and j of which i is worth more push each other by
    change / (1 + exp(s_i - s_j)); but change is max(1, |unnormalised change of a swap|), and then
    divided by the query's normaliser. So every pair counts, and those below the depth, too.

    A swap changes ERR, pFound, MRR and P, unnormalised, by 1 at most: for these this is RankNet
    among documents of different worth, for P over its depth.

    Parameters
    ----------
    measure
        What a swap is judged by, as a text or a value.

    Examples
    --------
    >>> str(SpringSmooth("ndcg@10"))
    'SpringSmooth(NDCG@10)'
    """

    kind = plan.SPRING_SMOOTH

    def prepare(self, targets: Targets) -> ConstructedGradients:
        """Check the labels and compute what stays the same while scores change."""
        measure = self.measure
        values = values_of(measure, targets)
        longest = longest_query(targets.offsets)
        at_most_1 = measure.form in (Form.CASCADE, Form.RECIPROCAL_RANK)
        return ConstructedGradients(
            targets,
            values,
            np.ones(longest) if at_most_1 else measure.rank_weights(longest),
            scales_of(measure, values, targets.offsets),
            form=swaps.EVERY_PAIR if at_most_1 else int(measure.form),
            reach=DEEPEST,
            kind=self.kind,
        )


class LocalCost(_Construction):
    """Lambdas of neighbours only: documents at adjacent ranks push each other as in `Lambdas`.

    Parameters
    ----------
    measure
        What a swap is judged by, as a text or a value.

    Examples
    --------
    >>> str(LocalCost("MAP"))
    'LocalCost(MAP)'
    """

    kind = plan.LOCAL_COST


@dataclass(frozen=True)
class LocalGradient(_Construction):
    """The slope of the measure by a document's score, estimated from its neighbours.

    For the document at rank k there are two estimates, towards rank k - 1 and towards k + 1:

        (M with k and k - 1 swapped - M) / (s_(k-1) - s_k + margin)
        (M - M with k and k + 1 swapped) / (s_k - s_(k+1) + margin)

    Lambda is their mean, or the one that there is at the first and the last rank. The weight is 1:
    a Newton step is a mean. A query's lambdas need not sum to 0.

    Parameters
    ----------
    measure
        What a swap is judged by, as a text or a value.
    margin
        Added to differences of scores, which may be 0; above 0. With 1, an estimate is half as
        large at a difference of 1 as at a tie, much as 1 / (1 + exp(difference)) in `Lambdas`,
        which falls from 0.5 to 0.27; and it is never larger than the change of the measure. With
        less, documents of nearly equal scores decide alone.

    Examples
    --------
    >>> str(LocalGradient("NDCG@10")), str(LocalGradient("NDCG@10", margin=0.5))
    ('LocalGradient(NDCG@10)', 'LocalGradient(NDCG@10, margin=0.5)')
    """

    margin: float = USUAL_MARGIN

    kind = plan.LOCAL_GRADIENT

    def __init__(
        self, measure: str | Measure | TieredMeasure, *, margin: float = USUAL_MARGIN
    ) -> None:
        super().__init__(measure)
        check("LocalGradient", "margin", margin, Real(0, low_open=True))
        object.__setattr__(self, "margin", float(margin))

    def __str__(self) -> str:
        if self.margin == USUAL_MARGIN:
            return super().__str__()
        return f"LocalGradient({self.measure}, margin={plain_number(self.margin)})"


class DiscreteBounded(_Construction):
    """What the measure would change if a document moved to its ideal rank, at most 1.

    The ideal order is by worth from high to low; documents of equal worth keep their present
    order. A document is taken out and put in at its ideal rank, and those between move by one.
    Lambda is min(1, |change of the unnormalised measure|) with a plus if the document moves up and
    a minus if down, even where, the others being as they are, the move itself would not pay. It is
    0 for a document at its ideal rank. The weight is 1: a Newton step is a mean. A query's lambdas
    need not sum to 0.

    Parameters
    ----------
    measure
        What a move is judged by, as a text or a value.

    Examples
    --------
    >>> str(DiscreteBounded("ERR@5"))
    'DiscreteBounded(ERR@5)'
    """

    kind = plan.DISCRETE_BOUNDED


CONSTRUCTIONS: dict[str, type[_Construction]] = {
    kind.__name__: kind for kind in (SpringSmooth, LocalCost, LocalGradient, DiscreteBounded)
}


# exp(mu) and its square are far from overflow.
LARGEST_MU = 100.0


@dataclass(frozen=True, repr=False)
class SigmoidCost(Adjustable):
    """The lambda gradient of a measure with a sigmoid as the cost of a pair (Objectives, Sec. 5.2).

    A pair whose better document i has the score s_i and the other s_j costs
    1 / (1 + exp(s_i - s_j + mu)). So they push each other by |change of the measure if they were
    swapped| times x / (1 + x)^2, with x = exp(s_i - s_j + mu): most, a quarter of the change, where
    s_i - s_j = -mu, and less and less the further apart they are, in the right order (which is
    well as it is) and in the wrong one (which is given up).

    With a depth, as in ``SigmoidCost("NDCG@3")``, only pairs with a document above it count.

    The cost is not convex, so that there is no Newton step: trees that follow it need
    ``step="gradient"``. Weights are 0.

    Parameters
    ----------
    measure
        What a swap is judged by, as a text or a value. Its depth is that of the lambdas.
    mu
        How far, in scores, a pair in the wrong order is from where it is pushed most.

    Examples
    --------
    >>> str(SigmoidCost("ndcg@3")), str(SigmoidCost("NDCG", mu=0.5))
    ('SigmoidCost(NDCG@3)', 'SigmoidCost(NDCG, mu=0.5)')
    """

    measure: Measure
    mu: float

    no_newton: ClassVar[str] = (
        "the sigmoid cost has a second derivative of both signs, and a Newton step divides by it"
    )

    def __init__(self, measure: str | Measure | TieredMeasure, *, mu: float = 0.0) -> None:
        check("SigmoidCost", "mu", mu, Real(-LARGEST_MU, LARGEST_MU))
        object.__setattr__(self, "measure", one_measure("SigmoidCost", measure))
        object.__setattr__(self, "mu", float(mu))

    def __str__(self) -> str:
        mu = f", mu={plain_number(self.mu)}" if self.mu else ""
        return f"SigmoidCost({self.measure}{mu})"

    def prepare(self, targets: Targets) -> ConstructedGradients:
        """Check the labels and compute what stays the same while scores change."""
        return constructed(
            self.measure,
            targets,
            SIGMOID_COST,
            truncation=self.truncation,
            normalise=self.normalise,
            margin=self.mu,
        )
