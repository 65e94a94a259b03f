"""From text to measures: ``NAME(option=value)@depth[source]``, tiers joined by `` > ``.

A tier may be followed by its tolerance: ``NDCG@3 ~0.002 > CNDCG@3[clicks]``. Functions of ranked
labels are measures wherever texts are; see `rankinite.measures.custom`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.core.numerals import number_or_text, parse_number, parse_whole
from rankinite.core.params import Real
from rankinite.measures.custom import FUNCTIONS, FunctionMeasure, RankedFunction
from rankinite.measures.definitions import MEASURES
from rankinite.measures.measure import DEEPEST, Measure
from rankinite.measures.tiers import DEFAULT_TOLERANCE, TieredMeasure, tiers_of

ALIASES = {"AP": "MAP", "RR": "MRR", "R": "Recall", "Success": "Hit"}
# What an option or a source may hold is checked later, for a better message.
PATTERN = re.compile(
    r"(?P<name>[A-Za-z_]+)"
    r"(?:\((?P<options>[^()]*)\))?"
    r"(?:@(?P<depth>[^\[\]@()]*))?"
    r"(?:\[(?P<source>[^\[\]]*)\])?"
)
# A label source may be called a~b.
TILDE = re.compile(r"~(?![^\[]*\])")
# A comma in brackets is one of a list.
COMMA_OF_OPTIONS = re.compile(r",(?![^\[]*\])")
FORM = "NAME(option=value)@depth[source], as in NDCG@10 or MAP(relevant=2)"
TIERS = "NDCG@3 ~0.002 > CNDCG@3[clicks]"

YOURS = "one of your own must be registered first (measures.register)"

MeasureLike = str | Measure | TieredMeasure | RankedFunction


def parse_measure(text: str) -> Measure | TieredMeasure:
    """Read a measure, or tiers of measures; the inverse of ``str``.

    Parameters
    ----------
    text
        Such as ``NDCG@10``, ``ERR``, ``MAP(relevant=2)`` or ``NDCG@3 > CNDCG@3[clicks]``; upper
        and lower case are the same in names, and AP, RR, R and Success are MAP, MRR, Recall and
        Hit. A number behind ``~`` is the tolerance of the tier before it, 0.001 by default.

    Examples
    --------
    >>> parse_measure("ndcg@10")
    NDCG(depth=10, source=None, empty='skip', gain='exp2')
    >>> str(parse_measure("AP( relevant = 2 )"))
    'MAP(relevant=2)'
    >>> str(parse_measure("ndcg@3~.002>err"))
    'NDCG@3 ~0.002 > ERR'
    """
    parts = [TILDE.split(part, maxsplit=1) for part in text.split(">")]
    tiers = [_parse_one(part[0].strip(), text) for part in parts]
    tolerances = [part[1].strip() if len(part) == 2 else None for part in parts]
    if tolerances[-1] is not None:
        raise UsageError(
            f"{text!r}: '~{tolerances[-1]}' stands behind the last measure, which decides by any "
            f"difference; leave it, or put it behind a tier that another follows, as in {TIERS}"
        )
    if len(tiers) == 1:
        return tiers[0]
    return TieredMeasure(tiers, [_tolerance(tolerance, text) for tolerance in tolerances[:-1]])


def parse_measures(measures: MeasureLike | Iterable[MeasureLike]) -> list[Measure]:
    """Return the measures of a text, a value or several of both; tiers become their measures.

    A text may hold several measures, separated by commas. Each is returned once.
    """
    return list(dict.fromkeys(tier for value in _listed(measures) for tier in tiers_of(value)))


def deciding_measure(measures: MeasureLike | Iterable[MeasureLike]) -> Measure | TieredMeasure:
    """Return the first of the measures that `parse_measures` takes, with its tiers together.

    Examples
    --------
    >>> str(deciding_measure("NDCG@3 > CNDCG@3[clicks], ERR"))
    'NDCG@3 > CNDCG@3[clicks]'
    """
    return _listed(measures)[0]


def one_measure(owner: str, measure: MeasureLike | Iterable[MeasureLike]) -> Measure:
    """Return the only measure of a text, a value or a list."""
    measures = parse_measures(measure)
    if len(measures) != 1:
        raise UsageError(f"{owner}: {measure!r} are {len(measures)} measures; give one")
    return measures[0]


def measure_value(measure: Any) -> Measure | TieredMeasure:
    """Return a measure that is given as a text, a value, a class or a function."""
    if isinstance(measure, str):
        return parse_measure(measure)
    if isinstance(measure, (Measure, TieredMeasure)):
        return measure
    if isinstance(measure, type) and issubclass(measure, Measure):
        return measure()
    if isinstance(measure, Callable) and not isinstance(measure, type):  # type: ignore[arg-type]
        return FunctionMeasure(measure)
    raise UsageError(f"{measure!r} is not a measure; expected {FORM}")


def is_measure_name(name: str) -> bool:
    """Tell whether there is a measure of this name, in upper or lower case."""
    return name.lower() in _names()


def _names() -> dict[str, str]:
    """Return the names of all measures, as they are registered now, by their lower case."""
    names = {name.lower(): name for name in (*MEASURES, *FUNCTIONS)}
    return names | {alias.lower(): name for alias, name in ALIASES.items()}


def _listed(measures: MeasureLike | Iterable[MeasureLike]) -> list[Measure | TieredMeasure]:
    several = isinstance(measures, Iterable) and not isinstance(measures, str)
    try:
        items: Any = list(measures) if several else [measures]  # type: ignore[arg-type]
    except TypeError:  # an array without dimensions says that it can be iterated over
        items = [measures]
    values = [value for item in items for value in _values(item)]
    if not values:
        raise UsageError(f"no measure is given; expected {FORM}")
    return values


def _values(item: MeasureLike) -> list[Measure | TieredMeasure]:
    if isinstance(item, str):
        # Commas inside of parentheses separate options.
        return [parse_measure(text) for text in re.split(r",(?![^(]*\))", item)]
    return [measure_value(item)]


def _parse_one(text: str, whole: str) -> Measure:
    match = PATTERN.fullmatch(text)
    if not text and ">" in whole:
        raise UsageError(
            f"{whole!r} is not a measure: nothing stands on one side of a >; expected {TIERS}"
        )
    if match is None:
        raise UsageError(f"{whole!r} is not a measure; expected {FORM}")
    name = _names().get(match["name"].lower())
    if name is None:
        known = ", ".join((*MEASURES, *FUNCTIONS))
        raise UsageError(
            f"{whole!r}: there is no measure {match['name']!r}; known are {known}; {YOURS}"
        )
    kind = MEASURES.get(name, FunctionMeasure)
    arguments: dict[str, object] = dict(_options(kind, name, match["options"], whole))
    if name in FUNCTIONS:
        arguments["function"] = FUNCTIONS[name]
    if match["depth"] is not None:
        arguments["depth"] = _depth(match["depth"].strip(), whole)
    if match["source"] is not None:
        if not match["source"].strip():
            raise UsageError(f"{whole!r}: the label source in [] is missing")
        arguments["source"] = match["source"].strip()
    return kind(**arguments)  # type: ignore[arg-type]


def _tolerance(text: str | None, whole: str) -> float:
    if text is None:
        return DEFAULT_TOLERANCE
    try:
        value = parse_number(text)
    except ValueError:
        value = -1.0
    if not Real(0).allows(value):
        raise UsageError(
            f"{whole!r}: {text!r} is not a tolerance; expected a finite number of at least 0 "
            f"behind ~, as in {TIERS}"
        )
    return value


def _depth(text: str, whole: str) -> int:
    try:
        depth = parse_whole(text, signed=False)
    except ValueError:
        depth = 0
    if not 1 <= depth <= DEEPEST:
        raise UsageError(
            f"{whole!r}: {text!r} is not a depth; expected a whole number from 1 to {DEEPEST}"
        )
    return depth


def _options(
    kind: type[Measure], name: str, text: str | None, whole: str
) -> Iterable[tuple[str, object]]:
    if text is None or not text.strip():
        return
    fields_by_option = {item.name.rstrip("_"): item.name for item in fields(kind)}
    seen = set()
    for part in COMMA_OF_OPTIONS.split(text):
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value or option not in kind.option_names() or option in seen:
            raise UsageError(
                f"{whole!r}: {part.strip()!r} is not an option of {name}; expected "
                f"option=value, each once, with {', '.join(kind.option_names())}"
            )
        seen.add(option)
        yield fields_by_option[option], _option_value(value)


def _option_value(text: str) -> object:
    """Return a number, a text, or the tuple of a list in brackets."""
    if text.startswith("[") and text.endswith("]"):
        return tuple(number_or_text(item.strip()) for item in text[1:-1].split(","))
    return number_or_text(text)
