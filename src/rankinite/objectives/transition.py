"""An objective that becomes another one while a ranker learns (Objectives, Sec. 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.core.format import plain_number
from rankinite.core.params import Real, check
from rankinite.measures.measure import Measure
from rankinite.objectives.objective import Objective, Targets
from rankinite.objectives.pairwise import Adjustable, PairGradients
from rankinite.objectives.parse import simple_objective
from rankinite.objectives.tiers import CombinedGradients, Tiered

SHARE = Real(0, 1)
# So many weights tell functions apart.
N_COMPARED = 1_000


@dataclass(frozen=True)
class _Growth:
    """A weight that begins at ``start`` and never falls, nor rises above 1."""

    start: float
    eta: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check(type(self).__name__, "start", self.start, SHARE)
        check(type(self).__name__, "eta", self.eta, Real(0))

    def __str__(self) -> str:
        start, eta = plain_number(float(self.start)), plain_number(float(self.eta))
        return f"{self.name}(start={start}, eta={eta})"

    def __call__(self, iteration: int) -> float:
        """Return the weight of an iteration, which counts from 1."""
        return min(1.0, self.start + self._grown(iteration))

    def _grown(self, iteration: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} does not grow")  # an abstract method


class LinearGrowth(_Growth):
    """A weight that grows by ``eta`` every iteration, up to 1.

    Parameters
    ----------
    start
        The weight before the first iteration.
    eta
        By how much it grows.

    Examples
    --------
    >>> schedule = LinearGrowth(0.1, 0.25)
    >>> str(schedule), [schedule(m) for m in (1, 2, 3, 4)]
    ('linear(start=0.1, eta=0.25)', [0.35, 0.6, 0.85, 1.0])
    """

    name = "linear"

    def _grown(self, iteration: int) -> float:
        return self.eta * iteration


class ExponentialGrowth(_Growth):
    """A weight that grows by exp(-eta / m) in iteration m, up to 1; the paper's exponential.

    Steps become as large as 1 in the end: with ``eta`` 100 it has grown by 1 after 42 iterations.

    Parameters
    ----------
    start
        The weight before the first iteration.
    eta
        The larger, the later it grows.
    """

    name = "exponential"

    def _grown(self, iteration: int) -> float:
        grown = 0.0
        for m in range(1, iteration + 1):
            grown += math.exp(-self.eta / m)
            if grown >= 1.0:
                break
        return grown


class LevellingGrowth(_Growth):
    """A weight of ``start`` + exp(-eta / m) in iteration m, up to 1.

    It has grown by 0.37 after ``eta`` iterations, by 0.61 after twice as many, and levels off.

    Parameters
    ----------
    start
        The weight before the first iteration.
    eta
        The larger, the later it grows.
    """

    name = "levelling"

    def _grown(self, iteration: int) -> float:
        return math.exp(-self.eta / iteration)


SCHEDULES = {kind.name: kind for kind in (LinearGrowth, ExponentialGrowth, LevellingGrowth)}

Schedule = float | Callable[[int], float]


def check_schedule(owner: str, schedule: Any) -> None:
    """Refuse what is neither a weight nor a function of the iteration."""
    is_function = callable(schedule) and not isinstance(schedule, type)
    if not is_function and not SHARE.allows(schedule):
        told = " (a file keeps a function's name alone)" if isinstance(schedule, str) else ""
        raise UsageError(
            f"{owner}: the schedule must be a weight in [0, 1], one of {', '.join(SCHEDULES)} with "
            f"start and eta, or a function of the iteration; got {schedule!r}{told}"
        )


def weight_of(owner: str, schedule: Schedule, iteration: int) -> float:
    """Return the weight that a schedule gives an iteration, which counts from 1."""
    weight = schedule(iteration) if callable(schedule) else schedule
    if not SHARE.allows(weight):
        raise UsageError(
            f"{owner}: the schedule gives iteration {iteration} the weight {weight!r}; expected a "
            "number in [0, 1]"
        )
    return float(weight)


def fingerprint(schedule: Schedule) -> tuple[NDArray[np.float64], ...]:
    """Return the first weights of a function, which has no text to be told from others by."""
    if not callable(schedule) or isinstance(schedule, _Growth):
        return ()
    weights = np.full(N_COMPARED, np.nan)
    for k in range(N_COMPARED):
        try:
            weights[k] = schedule(k + 1)
        except Exception:
            break
    return (weights,)


def schedule_text(schedule: Schedule) -> str:
    """Return a schedule as people write it; a function by its name."""
    if not callable(schedule):
        return plain_number(float(schedule))
    if isinstance(schedule, _Growth):
        return str(schedule)
    return str(getattr(schedule, "__qualname__", type(schedule).__name__))


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
    >>> from rankinite.objectives.transition import LinearGrowth
    >>> str(Transition("NDCG", "SigmoidCost(NDCG@3)", LinearGrowth(0.1, 0.01)))
    'Transition(NDCG, SigmoidCost(NDCG@3), linear(start=0.1, eta=0.01))'
    """

    first: Any
    last: Any
    schedule: Schedule

    def __init__(self, first: Any, last: Any, schedule: Schedule) -> None:
        for name, value in (("first", first), ("last", last)):
            objective = simple_objective(value, truncation=None, normalise="none")
            if isinstance(objective, Tiered):
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
