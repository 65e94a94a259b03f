"""From text to measures: ``NAME(option=value)@depth[source]``, tiers joined by `` > ``.

Behind a tier may stand its tolerance: ``NDCG@3 ~0.002 > CNDCG@3[clicks]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.core.params import Real
from rankinite.measures.measure import DEEPEST, MEASURES, Measure
from rankinite.measures.tiers import DEFAULT_TOLERANCE, TieredMeasure, tiers_of

ALIASES = {"AP": "MAP", "RR": "MRR"}
KNOWN = {name.lower(): name for name in MEASURES} | {a.lower(): n for a, n in ALIASES.items()}
PATTERN = re.compile(
    r"(?P<name>[A-Za-z]+)"
    r"(?:\((?P<options>[^()]*)\))?"
    r"(?:@(?P<depth>[^\[\]@()]*))?"
    r"(?:\[(?P<source>[^\[\]]*)\])?"
)
# A label source may be called a~b.
TILDE = re.compile(r"~(?![^\[]*\])")
FORM = "NAME(option=value)@depth[source], as in NDCG@10 or MAP(relevant=2)"
TIERS = "NDCG@3 ~0.002 > CNDCG@3[clicks]"

MeasureLike = str | Measure | TieredMeasure


def parse_measure(text: str) -> Measure | TieredMeasure:
    """Read a measure, or tiers of measures; the inverse of ``str``.

    Parameters
    ----------
    text
        Such as ``NDCG@10``, ``ERR``, ``MAP(relevant=2)`` or ``NDCG@3 > CNDCG@3[clicks]``; upper
        and lower case are the same in names, and AP and RR are MAP and MRR. A number behind ``~``
        is the tolerance of the tier before it, 0.001 if there is none.

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
    return TieredMeasure(tiers, [_tolerance(one, text) for one in tolerances[:-1]])


def parse_measures(measures: MeasureLike | Iterable[MeasureLike]) -> list[Measure]:
    """Return the measures of a text, a value or several of both; tiers become their measures.

    A text may hold several measures, separated by commas. None comes twice.
    """
    return list(dict.fromkeys(tier for value in _given(measures) for tier in tiers_of(value)))


def deciding_measure(measures: MeasureLike | Iterable[MeasureLike]) -> Measure | TieredMeasure:
    """Return the first of the measures that `parse_measures` takes, with its tiers together.

    Examples
    --------
    >>> str(deciding_measure("NDCG@3 > CNDCG@3[clicks], ERR"))
    'NDCG@3 > CNDCG@3[clicks]'
    """
    return _given(measures)[0]


def one_measure(owner: str, given: MeasureLike | Iterable[MeasureLike]) -> Measure:
    """Return the one measure that was given, as a text or a value."""
    found = parse_measures(given)
    if len(found) != 1:
        raise UsageError(f"{owner}: {given!r} are {len(found)} measures; give one")
    return found[0]


def _given(measures: MeasureLike | Iterable[MeasureLike]) -> list[Measure | TieredMeasure]:
    several = isinstance(measures, Iterable) and not isinstance(measures, str)
    given: Any = measures if several else [measures]
    found = [value for item in given for value in _values(item)]
    if not found:
        raise UsageError(f"no measure is given; expected {FORM}")
    return found


def _values(item: MeasureLike) -> list[Measure | TieredMeasure]:
    if isinstance(item, str):
        return [parse_measure(text) for text in re.split(r",(?![^(]*\))", item)]
    if isinstance(item, (Measure, TieredMeasure)):
        return [item]
    raise UsageError(f"{item!r} is not a measure; expected {FORM}")


def _parse_one(text: str, whole: str) -> Measure:
    match = PATTERN.fullmatch(text)
    if not text and ">" in whole:
        raise UsageError(
            f"{whole!r} is not a measure: nothing stands on one side of a >; expected {TIERS}"
        )
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


def _tolerance(text: str | None, whole: str) -> float:
    if text is None:
        return DEFAULT_TOLERANCE
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not Real(0).allows(value):
        raise UsageError(
            f"{whole!r}: {text!r} is not a tolerance; expected a finite number of at least 0 "
            f"behind ~, as in {TIERS}"
        )
    return value


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
