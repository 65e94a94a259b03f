"""Texts of the form ``NAME(argument, option=value)``, which name objectives and schedules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rankinite.core.errors import UsageError
from rankinite.measures.measure import MEASURES, Measure
from rankinite.measures.text import KNOWN, parse_measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives.constructions import CONSTRUCTIONS, SigmoidCost
from rankinite.objectives.objective import Objective
from rankinite.objectives.pairwise import Adjustable, Lambdas, RankNet
from rankinite.objectives.tiers import Tiered

CALL = re.compile(r"(?P<name>[A-Za-z]+)\s*(?:\((?P<inside>.*)\))?", re.DOTALL)
# Equal signs of what stands in parentheses are not those of an option.
OPTION = re.compile(r"(?P<name>\w+)\s*=(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """A name, and what stands in the parentheses behind it.

    Attributes
    ----------
    text
        The whole.
    name
        The name, as it was written.
    inside
        What stands in the parentheses; None if there are none.
    arguments
        What stands between its commas.
    """

    text: str
    name: str
    inside: str | None
    arguments: Sequence[str]

    def options(self, owner: str, first: int, known: Sequence[str]) -> Mapping[str, Any]:
        """Return the arguments from the first on, which are to be options, as numbers or texts.

        Parameters
        ----------
        owner
            Whose options these are, for the message if one is none.
        first
            How many arguments stand before them.
        known
            What options there are.
        """
        options: dict[str, Any] = {}
        for argument in self.arguments[first:]:
            match = OPTION.fullmatch(argument)
            name = match["name"] if match else argument
            if name not in known or name in options:
                expected = " or ".join(f"{option}=value" for option in known)
                raise UsageError(
                    f"{self.text!r}: {argument!r} is not an option of {owner}; "
                    + (f"expected {expected}, once" if known else "it has none, leave it")
                )
            options[name] = value_of(match["value"].strip() if match else "")
        return options


def parse_call(text: str) -> Call | None:
    """Read a name with or without parentheses; None if the text is something else."""
    match = CALL.fullmatch(text.strip())
    if match is None:
        return None
    inside = match["inside"]
    return Call(text, match["name"], inside, split(inside) if inside and inside.strip() else ())


def split(text: str) -> list[str]:
    """Return what stands between the commas that are in no parentheses.

    Examples
    --------
    >>> split("NDCG(gain=linear, empty=0)@3 > ERR, weights=(0.1, 0.2)")
    ['NDCG(gain=linear, empty=0)@3 > ERR', 'weights=(0.1, 0.2)']
    """
    parts, begin, depth = [], 0, 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()]


def value_of(text: str) -> Any:
    """Return a number, several numbers in parentheses, or the text itself."""
    if text.startswith("(") and text.endswith(")"):
        return tuple(value_of(part) for part in split(text[1:-1]) if part)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


RANKNET = "ranknet"
LAMBDAS = ("Lambdas", "RankNetWeightPairs")
# What stands around a measure, with its options.
AROUND: dict[str, Callable[..., Objective]] = {
    **CONSTRUCTIONS,
    "SigmoidCost": SigmoidCost,
    "Tiered": Tiered,
}
OPTIONS = {
    "LocalGradient": ("margin",),
    "SigmoidCost": ("mu",),
    "Tiered": ("weights", "train_depth", "pairs_of"),
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
    if isinstance(value, TieredMeasure):
        return Tiered(value).adjusted(truncation=truncation, normalise=normalise)
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


def _inner_measure(call: Call, name: str) -> Measure | TieredMeasure:
    """Return the measure in the parentheses."""
    example = "NDCG@3 > CNDCG@3[clicks]" if name == "Tiered" else "NDCG@10"
    if not call.arguments or not call.arguments[0]:
        raise UsageError(f"{call.text!r}: {name} needs a measure; write {name}({example})")
    try:
        return parse_measure(call.arguments[0])
    except UsageError as problem:
        raise UsageError(
            f"{call.text!r}: {name} needs a measure in its parentheses; {problem}"
        ) from None
