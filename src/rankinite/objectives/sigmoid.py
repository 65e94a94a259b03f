"""The sigmoid cost: a lambda gradient that leaves alone what is well or hopelessly ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankinite.core.params import Real, check
from rankinite.core.wording import plain_number
from rankinite.measures.graded import GradedMeasure
from rankinite.measures.measure import Measure
from rankinite.objectives.constructions import ConstructedGradients, constructed
from rankinite.objectives.lambdas import (
    Adjustable,
    one_measure,
)
from rankinite.objectives.objective import Targets
from rankinite.objectives.plan import SIGMOID_COST

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

    def __init__(self, measure: str | Measure | GradedMeasure, *, mu: float = 0.0) -> None:
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
