"""From what people write to an objective that stays the same while a ranker learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from rankinite.core.errors import UsageError
from rankinite.measures.graded import GradedMeasure
from rankinite.measures.measure import MEASURES, Measure
from rankinite.measures.text import KNOWN, parse_measure
from rankinite.objectives.calls import Call, parse_call
from rankinite.objectives.constructions import CONSTRUCTIONS
from rankinite.objectives.graded import Graded
from rankinite.objectives.lambdas import Adjustable, Lambdas, RankNet
from rankinite.objectives.objective import Objective
from rankinite.objectives.sigmoid import SigmoidCost

RANKNET = "ranknet"
LAMBDAS = ("Lambdas", "RankNetWeightPairs")
# What stands around a measure, with its options.
AROUND: dict[str, Callable[..., Objective]] = {
    **CONSTRUCTIONS,
    "SigmoidCost": SigmoidCost,
    "Graded": Graded,
}
OPTIONS = {
    "LocalGradient": ("margin",),
    "SigmoidCost": ("mu",),
    "Graded": ("weights", "train_depth", "pairs_of"),
}
NAMES = {name.lower(): name for name in (*LAMBDAS, *AROUND)}


def simple_objective(measure: Any, *, truncation: int | None, normalise: str) -> Objective:
    """Return the objective that is meant; see `choose_objective`."""
    if hasattr(measure, "prepare"):
        return _adjusted(cast(Objective, measure), truncation, normalise)
    if isinstance(measure, str):
        if measure.strip().lower() == RANKNET:
            return RankNet(truncation=truncation, normalise=normalise)
        call = parse_call(measure)
        name = "" if call is None else _name_around(call)
        if call is not None and name:
            inner = _inner_measure(call, name)
            options = call.options(name, 1, OPTIONS.get(name, ()))
            if name in AROUND:
                return _adjusted(AROUND[name](inner, **options), truncation, normalise)
            measure = inner
    value = parse_measure(measure) if isinstance(measure, str) else measure
    if isinstance(value, GradedMeasure):
        return Graded(value).adjusted(truncation=truncation, normalise=normalise)
    return Lambdas(value, truncation=truncation, normalise=normalise)


def _adjusted(objective: Objective, truncation: int | None, normalise: str) -> Objective:
    if isinstance(objective, Adjustable):
        return cast(Objective, objective.adjusted(truncation=truncation, normalise=normalise))
    return objective


def _name_around(call: Call) -> str:
    """Return what stands around a measure; "" if nothing does."""
    name = call.name.lower()
    if name in NAMES:
        return NAMES[name]
    if call.inside is not None and name not in KNOWN:
        raise UsageError(
            f"{call.text!r}: there is no measure or construction {call.name!r}; known are the "
            f"measures {', '.join(MEASURES)} and, around one of them, "
            f"{', '.join(NAMES.values())}; or around two, Transition"
        )
    return ""


def _inner_measure(call: Call, name: str) -> Measure | GradedMeasure:
    """Return the measure in the parentheses."""
    example = "NDCG@3 > CNDCG@3[clicks]" if name == "Graded" else "NDCG@10"
    if not call.arguments or not call.arguments[0]:
        raise UsageError(f"{call.text!r}: {name} needs a measure; write {name}({example})")
    try:
        return parse_measure(call.arguments[0])
    except UsageError as problem:
        raise UsageError(
            f"{call.text!r}: {name} needs a measure in its parentheses; {problem}"
        ) from None
