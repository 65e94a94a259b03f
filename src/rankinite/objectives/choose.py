"""From what people write to an objective."""

from __future__ import annotations

from typing import Any, cast

from rankinite.objectives.lambdas import Lambdas, RankNet
from rankinite.objectives.objective import Objective

RANKNET = "ranknet"


def choose_objective(measure: Any, *, truncation: int | None, normalise: str) -> Objective:
    """Return the objective of a measure's lambda gradients.

    Parameters
    ----------
    measure
        A measure as text or value; ``"RankNet"`` for pairs that all count the same; or an
        objective, which is returned as it is.
    truncation, normalise
        See `Lambdas`.
    """
    if hasattr(measure, "prepare"):
        return cast(Objective, measure)
    if isinstance(measure, str) and measure.strip().lower() == RANKNET:
        return RankNet(truncation=truncation, normalise=normalise)
    return Lambdas(measure, truncation=truncation, normalise=normalise)
