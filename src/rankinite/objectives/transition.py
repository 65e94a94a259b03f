"""An objective that becomes another one while a ranker learns (Objectives, Sec. 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.measures.measure import Measure
from rankinite.objectives.combined import CombinedGradients
from rankinite.objectives.graded import Graded
from rankinite.objectives.lambdas import Adjustable, PairGradients
from rankinite.objectives.objective import Objective, Targets
from rankinite.objectives.schedules import (
    Schedule,
    check_schedule,
    fingerprint,
    schedule_text,
    weight_of,
)
from rankinite.objectives.simple import simple_objective


@dataclass(frozen=True, repr=False)
class Transition(Adjustable):
    """Two lambda gradients, the second of which counts more and more (Objectives, Eq. 12).

    In iteration m, which counts from 1 and is a tree or an epoch, the lambdas are (1 - w) those of
    the first + w those of the last, with the w that the schedule gives m. Where w is 0 or 1 one of
    them is followed alone. A net that draws new weights begins with m = 1 again.

    Truncation and normalisation are those of the ranker. Normalised by deviation, the sum is
    (Sec. 5.3).

    Parameters
    ----------
    first, last
        What to follow in the beginning and in the end: a measure, or an objective made of pairs,
        as a text or a value. The paper's are ``"NDCG"`` and ``"SigmoidCost(NDCG)"``.
    schedule
        The weight of the last one: `LinearGrowth`, `ExponentialGrowth`, `LevellingGrowth`, any
        function from the iteration to a number in [0, 1], or one number for all iterations.

    Examples
    --------
    >>> from rankinite.objectives.schedules import LinearGrowth
    >>> str(Transition("NDCG", "SigmoidCost(NDCG@3)", LinearGrowth(0.1, 0.01)))
    'Transition(NDCG, SigmoidCost(NDCG@3), linear(start=0.1, eta=0.01))'
    """

    first: Any
    last: Any
    schedule: Schedule

    def __init__(self, first: Any, last: Any, schedule: Schedule) -> None:
        for name, value in (("first", first), ("last", last)):
            objective = simple_objective(value, truncation=None, normalise="none")
            if isinstance(objective, Graded):
                raise _not_one(name, objective)
            object.__setattr__(self, name, value)
        check_schedule("Transition", schedule)
        object.__setattr__(self, "schedule", schedule)

    def __str__(self) -> str:
        return f"Transition({self.first}, {self.last}, {schedule_text(self.schedule)})"

    @property
    def begins_with(self) -> Objective:
        """The first one as an objective."""
        return self._objectives()[0]

    @property
    def measure(self) -> Measure:
        """The measure of the first one, if it has one."""
        first: Any = self.begins_with
        measure: Measure = first.measure
        return measure

    @property
    def no_newton(self) -> str:
        """Why there is no Newton step; "" if there is one."""
        reasons = (getattr(part, "no_newton", "") for part in self._objectives())
        return next((reason for reason in reasons if reason), "")

    def prepare(self, targets: Targets) -> CombinedGradients:
        """Check the labels and compute what stays the same while scores change."""
        parts = []
        for name, objective in zip(("first", "last"), self._objectives(), strict=True):
            part = objective.prepare(targets)
            if not isinstance(part, PairGradients):
                raise _not_one(name, objective)
            parts.append(part)
        return CombinedGradients(
            parts, self._shares, self.normalise, fixed=lambda: fingerprint(self.schedule)
        )

    def _objectives(self) -> tuple[Objective, Objective]:
        options: Mapping[str, Any] = {"truncation": self.truncation, "normalise": self.normalise}
        return simple_objective(self.first, **options), simple_objective(self.last, **options)

    def _shares(self, iteration: int) -> tuple[float, float]:
        weight = weight_of("Transition", self.schedule, iteration + 1)
        return 1.0 - weight, weight


def _not_one(name: str, objective: Objective) -> UsageError:
    return UsageError(
        f"Transition: the {name} objective, {objective}, is not one lambda gradient; give a "
        "measure, RankNet, SigmoidCost or another construction"
    )
