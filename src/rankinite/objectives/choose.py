"""From what people write to an objective."""

from __future__ import annotations

import re
from typing import Any, cast

from rankinite.core.errors import UsageError
from rankinite.measures.measure import MEASURES, GradedMeasure, Measure
from rankinite.measures.text import KNOWN, parse_measure
from rankinite.objectives.constructions import CONSTRUCTIONS
from rankinite.objectives.lambdas import Lambdas, RankNet
from rankinite.objectives.objective import Objective

RANKNET = "ranknet"
LAMBDAS = ("Lambdas", "RankNetWeightPairs")
OPTIONS = {"LocalGradient": ("margin",)}
NAMES = {name.lower(): name for name in (*LAMBDAS, *CONSTRUCTIONS)}

AROUND = re.compile(r"(?P<name>[A-Za-z]+)\s*(?:\((?P<inside>.*)\))?")
# Commas that separate options of the measure stand in its parentheses.
OUTER_COMMA = re.compile(r",(?![^(]*\))")


def choose_objective(measure: Any, *, truncation: int | None, normalise: str) -> Objective:
    """Return the objective of a measure's lambda gradients.

    Parameters
    ----------
    measure
        A measure as text or value; ``"RankNet"`` for pairs that all count the same; the text of
        another construction around a measure, such as ``"LocalCost(NDCG@10)"``, where
        ``Lambdas`` and ``RankNetWeightPairs`` mean the usual one; or an objective, which is
        returned as it is.
    truncation, normalise
        See `Lambdas`. Other constructions have neither.

    Examples
    --------
    >>> str(choose_objective("localcost(ndcg(gain=linear)@10)", truncation=None, normalise="none"))
    'LocalCost(NDCG(gain=linear)@10)'
    """
    if hasattr(measure, "prepare"):
        return cast(Objective, measure)
    if isinstance(measure, str):
        if measure.strip().lower() == RANKNET:
            return RankNet(truncation=truncation, normalise=normalise)
        name, inside = _construction(measure)
        if name in CONSTRUCTIONS:
            inner, options = _inner_measure(measure, name, inside)
            return CONSTRUCTIONS[name](inner, **options)
        if name in LAMBDAS:
            measure, _ = _inner_measure(measure, name, inside)
    return Lambdas(measure, truncation=truncation, normalise=normalise)


def _construction(text: str) -> tuple[str, str]:
    """Return the name of a construction and what stands in its parentheses; "" for none."""
    match = AROUND.fullmatch(text.strip())
    if match is None:
        return "", ""
    name, inside = match["name"].lower(), match["inside"]
    if name in NAMES:
        return NAMES[name], inside or ""
    if inside is not None and name not in KNOWN:
        raise UsageError(
            f"{text!r}: there is no measure or construction {match['name']!r}; known are the "
            f"measures {', '.join(MEASURES)} and, around one of them, {', '.join(NAMES.values())}"
        )
    return "", ""


def _inner_measure(
    text: str, name: str, inside: str
) -> tuple[Measure | GradedMeasure, dict[str, Any]]:
    """Return the measure and the options in a construction's parentheses."""
    inner, *rest = (part.strip() for part in OUTER_COMMA.split(inside))
    if not inner:
        raise UsageError(f"{text!r}: {name} needs a measure; write {name}(NDCG@10)")
    try:
        measure = parse_measure(inner)
    except UsageError as problem:
        raise UsageError(
            f"{text!r}: {name} needs a measure in its parentheses; {problem}"
        ) from None
    options: dict[str, Any] = {}
    for part in rest:
        option, _, value = (piece.strip() for piece in part.partition("="))
        if option not in OPTIONS.get(name, ()) or option in options:
            known = " and ".join(f"{known}=value" for known in OPTIONS.get(name, ()))
            raise UsageError(
                f"{text!r}: {part!r} is not an option of {name}; "
                + (f"expected {known}, once" if known else "it has none, leave it")
            )
        options[option] = _number(value)
    return measure, options


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
