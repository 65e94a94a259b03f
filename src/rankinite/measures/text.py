"""From text to measures: ``NAME(option=value)@depth[source]``, tiers joined by `` > ``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.measures.measure import DEEPEST, MEASURES, GradedMeasure, Measure

ALIASES = {"AP": "MAP", "RR": "MRR"}
KNOWN = {name.lower(): name for name in MEASURES} | {a.lower(): n for a, n in ALIASES.items()}
PATTERN = re.compile(
    r"(?P<name>[A-Za-z]+)"
    r"(?:\((?P<options>[^()]*)\))?"
    r"(?:@(?P<depth>[^\[\]@()]*))?"
    r"(?:\[(?P<source>[^\[\]]*)\])?"
)
FORM = "NAME(option=value)@depth[source], as in NDCG@10 or MAP(relevant=2)"

MeasureLike = str | Measure | GradedMeasure


def parse_measure(text: str) -> Measure | GradedMeasure:
    """Read a measure, or tiers of measures; the inverse of ``str``.

    Parameters
    ----------
    text
        Such as ``NDCG@10``, ``ERR``, ``MAP(relevant=2)`` or ``NDCG@3 > CNDCG@3[clicks]``; upper
        and lower case are the same in names, and AP and RR are MAP and MRR.

    Examples
    --------
    >>> parse_measure("ndcg@10")
    NDCG(depth=10, source=None, empty='skip', gain='exp2')
    >>> str(parse_measure("AP( relevant = 2 )"))
    'MAP(relevant=2)'
    """
    tiers = [_parse_one(part.strip(), text) for part in text.split(">")]
    return tiers[0] if len(tiers) == 1 else GradedMeasure(tuple(tiers))


def parse_measures(measures: MeasureLike | Iterable[MeasureLike]) -> list[Measure]:
    """Return the measures of a text, a value or several of both; tiers become their measures.

    A text may hold several measures, separated by commas. None comes twice.
    """
    several = isinstance(measures, Iterable) and not isinstance(measures, str)
    given: Any = measures if several else [measures]
    found: list[Measure] = []
    for item in given:
        for value in _values(item):
            found.extend(value.tiers if isinstance(value, GradedMeasure) else [value])
    if not found:
        raise UsageError(f"no measure is given; expected {FORM}")
    return list(dict.fromkeys(found))


def one_measure(owner: str, given: MeasureLike | Iterable[MeasureLike]) -> Measure:
    """Return the one measure that was given, as a text or a value."""
    found = parse_measures(given)
    if len(found) != 1:
        raise UsageError(f"{owner}: {given!r} are {len(found)} measures; give one")
    return found[0]


def _values(item: MeasureLike) -> list[Measure | GradedMeasure]:
    if isinstance(item, str):
        return [parse_measure(text) for text in re.split(r",(?![^(]*\))", item)]
    if isinstance(item, (Measure, GradedMeasure)):
        return [item]
    raise UsageError(f"{item!r} is not a measure; expected {FORM}")


def _parse_one(text: str, whole: str) -> Measure:
    match = PATTERN.fullmatch(text)
    if match is None:
        raise UsageError(f"{whole!r} is not a measure; expected {FORM}")
    name = KNOWN.get(match["name"].lower())
    if name is None:
        raise UsageError(
            f"{whole!r}: there is no measure {match['name']!r}; known are {', '.join(MEASURES)}"
        )
    kind = MEASURES[name]
    arguments: dict[str, object] = dict(_options(kind, match["options"], whole))
    if match["depth"] is not None:
        arguments["depth"] = _depth(match["depth"].strip(), whole)
    if match["source"] is not None:
        if not match["source"].strip():
            raise UsageError(f"{whole!r}: the label source in [] is missing")
        arguments["source"] = match["source"].strip()
    return kind(**arguments)  # type: ignore[arg-type]


def _depth(text: str, whole: str) -> int:
    if not text.isdecimal() or len(text) > len(str(DEEPEST)) or int(text) == 0:
        raise UsageError(
            f"{whole!r}: {text!r} is not a depth; expected a whole number from 1 to {DEEPEST}"
        )
    return int(text)


def _options(kind: type[Measure], text: str | None, whole: str) -> Iterable[tuple[str, object]]:
    if text is None or not text.strip():
        return
    names = {item.name.rstrip("_"): item.name for item in fields(kind)}
    seen = set()
    for part in text.split(","):
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value or option not in kind.option_names() or option in seen:
            raise UsageError(
                f"{whole!r}: {part.strip()!r} is not an option of {kind.name}; expected "
                f"option=value, each once, with {', '.join(kind.option_names())}"
            )
        seen.add(option)
        yield names[option], _option_value(value)


def _option_value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
