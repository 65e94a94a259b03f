"""Flags of ``rankinite train`` for the rankers' parameters, made from their declarations.

A flag that is not given is None, and the ranker's default counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import typer

from rankinite.core.params import (
    YES_OR_NO,
    Bounds,
    Constraint,
    Either,
    OneOf,
    Parameter,
    Real,
    Whole,
)
from rankinite.rankers.parameters import RANKER_PARAMETERS, LayerSizes, file_parameters

# The declarations of one parameter, by ranker.
Declarations = Mapping[str, Parameter]


def _whole(text: str) -> int | str:
    """Return a whole number if the text is one; the ranker checks other texts."""
    try:
        return int(text)
    except ValueError:
        return text


def _wholes(text: str) -> int | list[int] | str:
    """Return a whole number, or several that commas separate; the ranker checks other texts."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def _numbers(text: str) -> list[float] | str:
    """Return numbers that commas separate; the ranker checks other texts."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


def _value_type(constraint: Constraint | None) -> tuple[Any, dict[str, Any]]:
    """Return the type of a flag's value, and how to parse it where typer does not know."""
    if isinstance(constraint, LayerSizes):
        return Any, {"parser": _wholes, "metavar": "<int[,int]>"}
    if isinstance(constraint, Bounds):
        return Any, {"parser": _numbers, "metavar": "<float,float>"}
    if isinstance(constraint, Either) and isinstance(constraint.first, Whole):
        other = str(constraint.second).removeprefix("one of ").strip("'").lower()
        return Any, {"parser": _whole, "metavar": f"<int|{other}>"}
    if isinstance(constraint, Whole):
        return int | None, {}
    if isinstance(constraint, Real):
        return float | None, {}
    return (bool if constraint == YES_OR_NO else str) | None, {}


def _option(name: str, declarations: Declarations) -> inspect.Parameter:
    """Return the flag of a parameter as an argument of a command."""
    first = next(iter(declarations.values()))
    value_type, settings = _value_type(first.file_constraint)
    # With further names typer does not make the first by itself.
    names = [f"--{name.replace('_', '-')}", *first.flags] if first.flags else []
    # Brackets would be markup.
    text = _help(declarations).replace("[", "\\[")
    option = typer.Option(*names, rich_help_panel=_panel(declarations), help=text, **settings)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=Annotated[value_type, option])


def _panel(declarations: Declarations) -> str:
    if len(declarations) == len(RANKER_PARAMETERS):
        return "Parameters of all rankers"
    *others, last = declarations
    return "Parameters of " + (f"{', '.join(others)} and {last}" if others else last)


def _help(declarations: Declarations) -> str:
    """Return what a parameter means, which values it has, and its defaults."""
    meanings: dict[str, list[str]] = {}
    choices: dict[str, None] = {}
    for ranker, declared in declarations.items():
        meanings.setdefault(declared.help, []).append(ranker)
        choices |= dict.fromkeys(_choices(declared.constraint))
    sentences = list(meanings)
    if len(meanings) > 1:
        sentences = [f"{', '.join(rankers)}: {text}" for text, rankers in meanings.items()]
    if choices:
        sentences.append(f"One of {', '.join(choices)}.")
    return " ".join([*sentences, _defaults(declarations)])


def _choices(constraint: Constraint | None) -> Sequence[str]:
    is_choice = isinstance(constraint, OneOf) and constraint != YES_OR_NO
    return constraint.values if isinstance(constraint, OneOf) and is_choice else ()


def _defaults(declarations: Declarations) -> str:
    """Return the default of the first ranker, and those of others where they differ."""
    rankers: dict[str, list[str]] = {}
    for ranker, declared in declarations.items():
        rankers.setdefault(_as_typed(declared.default), []).append(ranker)
    (first, _), *others = rankers.items()
    parts = [first, *(f"{', '.join(names)}: {default}" for default, names in others)]
    return f"(Default: {'; '.join(parts)}.)"


def _as_typed(value: Any) -> str:
    """Return a value as one would type it behind its flag."""
    if value is None or isinstance(value, bool):
        return {None: "none", False: "no", True: "yes"}[value]
    if isinstance(value, (list, tuple)):
        return ",".join(map(_as_typed, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _options() -> list[inspect.Parameter]:
    """Return the flags of all parameters, those of the same rankers together."""
    parameters = file_parameters()
    panels = list(dict.fromkeys(_panel(declarations) for declarations in parameters.values()))
    return sorted(
        (_option(name, declarations) for name, declarations in parameters.items()),
        key=lambda option: panels.index(_panel(parameters[option.name])),
    )


class Parameters:
    """Values of the rankers' parameters that flags were given for, by name.

    The signature has one argument for each parameter of any ranker.
    """

    __signature__: ClassVar[inspect.Signature] = inspect.Signature(_options())

    def __init__(self, **values: Any) -> None:
        self.values = {name: value for name, value in values.items() if value is not None}
