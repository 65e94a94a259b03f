"""From what people write to an objective."""

from __future__ import annotations

from typing import Any

from rankinite.core.errors import UsageError
from rankinite.objectives.objective import Objective
from rankinite.objectives.parse import Call, parse_call, simple_objective, value_of
from rankinite.objectives.transition import SCHEDULES, Schedule, Transition

TRANSITION = "transition"
NUMBERS = ("start", "eta")
EXAMPLE = "Transition(NDCG, SigmoidCost(NDCG@3), linear(start=0.1, eta=0.01))"


def choose_objective(measure: Any, *, truncation: int | None, normalise: str) -> Objective:
    """Return the objective that a ranker is to follow.

    Parameters
    ----------
    measure
        A measure as text or value, for its lambda gradients; tiers of measures, as in
        ``"NDCG@3 > CNDCG@3[clicks]"``, for those of `Tiered`; ``"RankNet"`` for pairs that all
        count the same; the text of another construction around a measure, such as
        ``"LocalCost(NDCG@10)"``, where ``Lambdas`` and ``RankNetWeightPairs`` mean the usual one;
        the text of a `Transition`; or an objective, which is returned as it is.
    truncation, normalise
        See `Lambdas`. Some constructions have neither; `Tiered`, `SigmoidCost` and `Transition`
        have these.

    Examples
    --------
    >>> str(choose_objective("localcost(ndcg(gain=linear)@10)", truncation=None, normalise="none"))
    'LocalCost(NDCG(gain=linear)@10)'
    """
    call = parse_call(measure) if isinstance(measure, str) else None
    if call is not None and call.name.lower() == TRANSITION:
        measure = _transition(call)
    return simple_objective(measure, truncation=truncation, normalise=normalise)


def _transition(call: Call) -> Transition:
    if len(call.arguments) != 3 or not all(call.arguments):
        raise UsageError(
            f"{call.text!r}: Transition needs two objectives and a schedule; write {EXAMPLE}"
        )
    first, last, schedule = call.arguments
    return Transition(first, last, _schedule(schedule))


def _schedule(text: str) -> Schedule:
    """Return a schedule, or the weight for all iterations."""
    call = parse_call(text)
    if call is None or call.name.lower() not in SCHEDULES:
        weight: Schedule = value_of(text)
        return weight
    name = call.name.lower()
    options = call.options(name, 0, NUMBERS)
    if len(options) < len(NUMBERS):
        raise UsageError(f"{text!r}: a schedule needs both; write {name}(start=0.1, eta=0.01)")
    return SCHEDULES[name](**options)
