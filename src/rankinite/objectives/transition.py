"""A transition from one objective to another during training (Objectives, Sec. 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankinite.core.elementary import exp
from rankinite.core.errors import UsageError
from rankinite.core.format import plain_number
from rankinite.core.params import Real, check
from rankinite.core.types import Floats
from rankinite.measures.measure import Measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives.objective import (
    Call,
    Gradients,
    Objective,
    Targets,
    named,
    parse_call,
    value_of,
)
from rankinite.objectives.pairwise import PairGradients, WithRankerOptions
from rankinite.objectives.parse import parse_objective
from rankinite.objectives.tiers import MixtureGradients

WEIGHT = Real(0, 1)
# Schedules that are functions are told apart by this many weights, when training is resumed.
N_COMPARED = 1_000
EXAMPLE = "Transition(NDCG, SigmoidCost(NDCG@3), linear(start=0.1, eta=0.01))"


@dataclass(frozen=True)
class _Growth:
    """A weight that starts at ``start`` and never falls, nor rises above 1."""

    start: float
    eta: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check(type(self).__name__, "start", self.start, WEIGHT)
        check(type(self).__name__, "eta", self.eta, Real(0))

    def __str__(self) -> str:
        start, eta = plain_number(float(self.start)), plain_number(float(self.eta))
        return f"{self.name}(start={start}, eta={eta})"

    def __call__(self, round: int) -> float:
        """Return the weight of a round, which counts from 1."""
        return min(1.0, self.start + self._grown(round))

    def _grown(self, round: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} does not define how it grows")


class LinearGrowth(_Growth):
    """A weight that grows by ``eta`` every round, up to 1.

    Parameters
    ----------
    start
        The weight before the first round.
    eta
        Growth per round.

    Examples
    --------
    >>> schedule = LinearGrowth(0.1, 0.25)
    >>> str(schedule), [schedule(m) for m in (1, 2, 3, 4)]
    ('linear(start=0.1, eta=0.25)', [0.35, 0.6, 0.85, 1.0])
    """

    name = "linear"

    def _grown(self, round: int) -> float:
        return self.eta * round


class ExponentialGrowth(_Growth):
    """A weight that grows by exp(-eta / m) in round m, up to 1; the paper's exponential.

    Steps become as large as 1 in the end: with ``eta`` 100 it has grown by 1 after 42 rounds.

    Parameters
    ----------
    start
        The weight before the first round.
    eta
        The larger, the later the weight grows.
    """

    name = "exponential"

    def _grown(self, round: int) -> float:
        # Added up from the start in every round: a schedule is a value and keeps no state, so that
        # resumed training gets the same weights.
        return float(np.cumsum(exp(-self.eta / np.arange(1, round + 1)))[-1])


class LevellingGrowth(_Growth):
    """A weight of ``start`` + exp(-eta / m) in round m, up to 1.

    It has grown by 0.37 after ``eta`` rounds, by 0.61 after twice as many, and levels off.

    Parameters
    ----------
    start
        The weight before the first round.
    eta
        The larger, the later the weight grows.
    """

    name = "levelling"

    def _grown(self, round: int) -> float:
        return float(exp(-self.eta / round))


SCHEDULES = {kind.name: kind for kind in (LinearGrowth, ExponentialGrowth, LevellingGrowth)}

Schedule = float | Callable[[int], float]


def check_schedule(owner: str, schedule: Any) -> None:
    """Raise `UsageError` for what is neither a weight nor a function of the round."""
    is_function = callable(schedule) and not isinstance(schedule, type)
    if not is_function and not WEIGHT.allows(schedule):
        hint = " (a model file keeps a function's name only)" if isinstance(schedule, str) else ""
        raise UsageError(
            f"{owner}: the schedule must be a weight in [0, 1], one of {', '.join(SCHEDULES)} with "
            f"start and eta, or a function of the round; got {schedule!r}{hint}"
        )


def weight_of(owner: str, schedule: Schedule, round: int) -> float:
    """Return the weight that a schedule gives to a round, which counts from 1."""
    weight = schedule(round) if callable(schedule) else schedule
    if not WEIGHT.allows(weight):
        raise UsageError(
            f"{owner}: the schedule gives round {round} the weight {weight!r}; expected a "
            "number in [0, 1]"
        )
    return float(weight)


def parse_schedule(text: str) -> Schedule:
    """Return a schedule from its text, or the weight of all rounds."""
    call = parse_call(text)
    if call is None or call.name.lower() not in SCHEDULES:
        weight: Schedule = value_of(text)
        return weight
    name = call.name.lower()
    options = call.options(name, 0, ("start", "eta"))
    if len(options) < 2:
        raise UsageError(f"{text!r}: a schedule needs both; write {name}(start=0.1, eta=0.01)")
    return SCHEDULES[name](**options)


def fingerprint(schedule: Schedule) -> tuple[Floats, ...]:
    """Return the first weights of a function, which has no text that tells it from others."""
    if not callable(schedule) or isinstance(schedule, _Growth):
        return ()
    weights = np.full(N_COMPARED, np.nan)
    for k in range(N_COMPARED):
        try:
            weights[k] = schedule(k + 1)
        except Exception:  # it may end with the last round; what follows stays NaN
            break
    return (weights,)


def schedule_text(schedule: Schedule) -> str:
    """Return the text of a schedule; a function by its name."""
    if not callable(schedule):
        return plain_number(float(schedule))
    if isinstance(schedule, _Growth):
        return str(schedule)
    return str(getattr(schedule, "__qualname__", type(schedule).__name__))


@named
@dataclass(frozen=True, repr=False)
class Transition(WithRankerOptions):
    """Two lambda gradients, the second of which counts more and more (Objectives, Eq. 12).

    In round m, which counts from 1 and is a tree or an epoch, the gradients are (1 - w) those of
    the first + w those of the last, with the w that the schedule gives to m. Where w is 0 or 1 one
    of them counts alone. A net that draws new weights starts with m = 1 again.

    Truncation and normalisation are those of the ranker. By deviation, the sum is normalised
    (Sec. 5.3).

    Parameters
    ----------
    first, last
        The objective at the start and in the end: a measure, or an objective that sums over pairs,
        as a text or a value. The paper's are ``"NDCG"`` and ``"SigmoidCost(NDCG)"``.
    schedule
        The weight of the last one: `LinearGrowth`, `ExponentialGrowth`, `LevellingGrowth`, any
        function from the round to a number in [0, 1], or one number for all rounds.

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
        # Kept as they were written, and parsed again with the options that the ranker has then.
        for name, value in (("first", first), ("last", last)):
            objective = parse_objective(value)
            tiered = isinstance(objective.measure, TieredMeasure)
            if tiered or isinstance(objective, Transition):
                raise _no_single_gradient(name, objective)
            object.__setattr__(self, name, value)
        check_schedule("Transition", schedule)
        object.__setattr__(self, "schedule", schedule)

    def __str__(self) -> str:
        return f"Transition({self.first}, {self.last}, {schedule_text(self.schedule)})"

    @classmethod
    def from_call(cls, call: Call, *, truncation: int | None, normalise: str) -> Transition:
        """Return the objective of a text, with the options of a ranker."""
        if len(call.arguments) != 3 or not all(call.arguments):
            raise UsageError(
                f"{call.text!r}: Transition needs two objectives and a schedule; write {EXAMPLE}"
            )
        first, last, schedule = call.arguments
        transition = cls(first, last, parse_schedule(schedule))
        return transition.with_options(truncation=truncation, normalise=normalise)

    @property
    def measure(self) -> Measure | TieredMeasure | None:  # type: ignore[override]
        """The measure of the first one, if it has one."""
        return self._objectives()[0].measure

    @property
    def source(self) -> str | None:
        """The label source of the first one."""
        return self._objectives()[0].source

    @property
    def no_newton(self) -> str:  # type: ignore[override]
        """Why there is no Newton step; empty if there is one."""
        reasons = (part.no_newton for part in self._objectives())
        return next((reason for reason in reasons if reason), "")

    def prepare(self, targets: Targets) -> MixtureGradients:
        """Check the labels and compute what stays the same while scores change."""
        parts = []
        for name, objective in zip(("first", "last"), self._objectives(), strict=True):
            pairs = objective.prepare(targets).pairs
            if pairs is None:
                raise _no_single_gradient(name, objective)
            parts.append(pairs)
        return MixtureGradients(
            parts,
            self._mixture_weights,
            self.normalise,
            checkpoint_arrays=lambda: fingerprint(self.schedule),
        )

    def compared(self, gradients: Gradients, targets: Targets) -> dict[str, PairGradients]:
        """Return by name the gradients of the last objective."""
        last = gradients.parts[1].pairs
        return {} if last is None else {str(self.last): last}

    def _objectives(self) -> tuple[Objective, Objective]:
        options: Mapping[str, Any] = {"truncation": self.truncation, "normalise": self.normalise}
        return parse_objective(self.first, **options), parse_objective(self.last, **options)

    def _mixture_weights(self, round: int) -> tuple[float, float]:
        # Rounds before this one are counted from 0, the paper's m from 1.
        weight = weight_of("Transition", self.schedule, round + 1)
        return 1.0 - weight, weight


def _no_single_gradient(name: str, objective: Objective) -> UsageError:
    return UsageError(
        f"Transition: the {name} objective, {objective}, is not a single lambda gradient; give a "
        "measure, RankNet, SigmoidCost or another construction"
    )
