"""The space of a sweep: for every parameter a list of values, evenly spaced ones, or a range.

A space is read from texts such as ``n_leaves=50:400:30`` and checked as a whole before anything is
trained; in the end one of its points is written into the recipe.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from rankinite.core.errors import RecipeError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import Constraint
from rankinite.models import RANKERS
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.runs.recipe import Model, Recipe
from rankinite.runs.recipe_models import ADVICE, MODELS, OWN, recipe_parameters
from rankinite.runs.recipe_reader import recipe_of
from rankinite.runs.toml import KeyPath, Span, from_toml, key_positions, toml_of
from rankinite.runs.training import unknown_key

# Ensemble, Sec. 4.2.
TREES = {"n_leaves": "50:400:30", "learning_rate": "0.01,0.05,0.1,0.3,0.5"}
NETS = {"hidden": "10:30:5", "learning_rate": "1e-4..1e-2"}
NETS_GRID = {**NETS, "learning_rate": "1e-4,3e-4,1e-3,3e-3,1e-2"}

# A range whose ends have at least this ratio is searched on a log scale.
LOG_FROM = 100.0
MOST_VALUES = 10_000  # of evenly spaced ones, which are all checked
RANKER = "ranker"
LAST_KEY = re.compile(rf"""["']?{RANKER}["']?([ \t]*=[ \t]*)$""")
SYNTAX = "expected values a,b,c, or low:high:step, or a range low..high"


@dataclass(frozen=True)
class Choice:
    """A few values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ",".join(_text_of(value) for value in self.values)


@dataclass(frozen=True)
class Steps:
    """Evenly spaced numbers; the last is the highest that is not above ``high``.

    >>> Steps(50, 400, 30, whole=True).values[-2:]
    (350, 380)
    """

    low: float
    high: float
    step: float
    whole: bool

    @property
    def values(self) -> tuple[Any, ...]:
        """All of them."""
        # In decimals, as they were written: 0.1 + 2 * 0.1 is 0.30000000000000004 in floats.
        low, high, step = (Decimal(repr(number)) for number in (self.low, self.high, self.step))
        return tuple(self._number(low + k * step) for k in range(int((high - low) / step) + 1))

    def _number(self, value: Decimal) -> int | float:
        return int(value) if self.whole else float(value)

    def __str__(self) -> str:
        return f"{self.low}:{self.high}:{self.step}"


@dataclass(frozen=True)
class Range:
    """All numbers from ``low`` to ``high``."""

    low: float
    high: float
    whole: bool

    @property
    def values(self) -> None:
        """None: there are too many to list."""
        return

    @property
    def is_log(self) -> bool:
        """Whether it is searched on a log scale: if its ends are a factor of 100 or more apart."""
        # The tolerance is for ends such as 3e-6 and 3e-4, whose quotient is 99.99999999999999.
        return self.low > 0 and self.high / self.low >= LOG_FROM * (1 - 1e-9)

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


def _text_of(value: Any) -> str:
    """Return a value as `space_of` reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else str(value)


Domain = Choice | Steps | Range
Space = Mapping[str, Domain]


def papers_space(ranker: str, search: str) -> dict[str, str]:
    """Return the space of the paper for trees or nets (Ensemble, Sec. 4.2), as texts.

    It gives only the ends of the nets' learning rates: a grid has five values.
    """
    if issubclass(RANKERS[ranker], TreeRanker):
        return dict(TREES)
    return dict(NETS_GRID if search == "grid" else NETS)


def space_of(model: Model, values: Mapping[str, Any]) -> dict[str, Domain]:
    """Return the space of a sweep, all of it checked.

    Parameters
    ----------
    model
        The model, whose ranker constrains its parameters.
    values
        By parameter: a text such as ``"50:400:30"``, or a list of values.

    Raises
    ------
    UsageError
        Lists all mistakes.
    """
    known = recipe_parameters(model.ranker)
    mistakes: list[str] = []
    space: dict[str, Domain] = {}
    for name, choice in values.items():
        try:
            if name not in known:
                raise UsageError(_unknown(name, model.ranker, known))
            space[name] = _domain(name, choice, known[name])
            for value in extremes_of(space[name]):
                _try(model, {name: value})
        except UsageError as problem:
            mistakes.append(str(problem))
    # Pairs of values are tried only if each is valid alone: otherwise one mistake would be told
    # once more for every other parameter.
    if not mistakes:
        mistakes += _clashes(model, space)
    if not values:
        mistakes.append("there is nothing to try; name a parameter, as in learning_rate=0.05,0.1")
    if mistakes:
        head = "sweep: " if len(mistakes) == 1 else f"sweep: {len(mistakes)} mistakes:\n"
        raise UsageError(head + "\n".join(mistakes))
    return space


def read_over(texts: Sequence[str]) -> dict[str, str]:
    """Return the texts of flags such as ``n_leaves=50:400:30``, by parameter.

    >>> read_over(["n_leaves=10,20", "learning-rate = 0.1..0.5"])
    {'n_leaves': '10,20', 'learning_rate': '0.1..0.5'}
    """
    values: dict[str, str] = {}
    for text in texts:
        name, sign, rest = text.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or not name or not rest.strip():
            raise UsageError(
                f"sweep: --over {text!r} has no values; write it as n_leaves=50:400:30 or "
                "learning_rate=0.05,0.1"
            )
        if name in values:
            raise UsageError(f"sweep: --over names {name!r} twice; give all its values at once")
        values[name] = rest.strip()
    return values


def points_of(space: Space) -> Iterator[dict[str, Any]]:
    """Go through all points of a space without ranges."""
    values = [domain.values or () for domain in space.values()]
    return (dict(zip(space, point, strict=True)) for point in itertools.product(*values))


def n_points(space: Space) -> float:
    """Return the number of points; infinity if there is a range."""
    sizes = (math.inf if d.values is None else len(d.values) for d in space.values())
    return math.prod(sizes)


def refuse_ranges(space: Space) -> None:
    """Refuse ranges, of which there is no grid."""
    for name, domain in space.items():
        if isinstance(domain, Range):
            raise UsageError(
                f"sweep: a grid needs values of {name}, and {domain} is a range; give "
                "low:high:step or a,b,c, or search by tpe or random"
            )


def _unknown(name: str, ranker: str, known: Mapping[str, Constraint]) -> str:
    if name in ADVICE or name in OWN:
        return f"{name!r} cannot be swept; {ADVICE.get(name, 'it is no parameter of a ranker')}"
    advice = unknown_key(name, name, ranker, known)
    if advice is not None:
        return advice
    return f"{ranker} has no parameter {name!r}; expected one of {some_of(list(known), 20)}"


def _domain(name: str, choice: Any, constraint: Constraint) -> Domain:
    if not isinstance(choice, str):
        if not isinstance(choice, Sequence):
            raise UsageError(f"{name} is {choice!r}; {SYNTAX}")
        return _choice(name, choice, constraint)
    if ".." in choice:
        return _range(name, choice, constraint)
    if choice.count(":") == 2:
        return _steps(name, choice, constraint)
    return _choice(name, _items(name, choice), constraint)


def _items(name: str, text: str) -> list[Any]:
    """Return the values of a text with commas, as TOML reads them, or as texts if it cannot."""
    parts = [part.strip() for part in _apart(text)]
    if not all(parts):
        raise UsageError(f"{name}={text} has an empty value; {SYNTAX}")
    return [_item(part) for part in parts]


def _apart(text: str) -> list[str]:
    """Split a text at its commas, except within brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _item(text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, bool | int | float | str | list) else text


def _choice(name: str, items: Sequence[Any], constraint: Constraint) -> Choice:
    values = tuple(_checked(name, item, constraint) for item in items)
    if not values or len(set(map(repr, values))) < len(values):
        what = "one of its values twice" if values else "no values"
        raise UsageError(f"{name} has {what}; {SYNTAX}")
    return Choice(values)


def _steps(name: str, text: str, constraint: Constraint) -> Steps:
    low, high, step = _numbers(name, text, text.split(":"))
    if not (low < high and step > 0):
        raise UsageError(f"{name}={text}: the first number must be below the second, the third > 0")
    if (high - low) / step >= MOST_VALUES:
        raise UsageError(f"{name}={text} are more than {MOST_VALUES:,} values; give a larger step")
    whole = all(isinstance(number, int) for number in (low, high, step))
    steps = Steps(low, high, step, whole and _is_whole(constraint, low))
    for value in steps.values:
        _checked(name, value, constraint)
    return steps


def _range(name: str, text: str, constraint: Constraint) -> Range:
    low, high = _numbers(name, text, text.split(".."))
    if not low < high:
        raise UsageError(f"{name}={text}: the first number must be below the second")
    low, high = (_checked(name, end, constraint) for end in (low, high))
    return Range(low, high, _is_whole(constraint, low))


def _numbers(name: str, text: str, parts: Sequence[str]) -> list[Any]:
    numbers: list[Any] = []
    for part in parts:
        try:
            number = Decimal(part.strip())
        except InvalidOperation:
            raise UsageError(f"{name}={text}: {part.strip()!r} is no number; {SYNTAX}") from None
        if not number.is_finite():
            raise UsageError(f"{name}={text}: {part.strip()!r} is not finite; {SYNTAX}")
        plain = part.strip().lstrip("+-").isdigit()
        numbers.append(int(number) if plain else float(number))
    wanted = 2 if ".." in text else 3
    if len(numbers) != wanted:
        raise UsageError(f"{name}={text}: {SYNTAX}")
    return numbers


def _is_whole(constraint: Constraint, low: float) -> bool:
    """Tell whether a parameter allows whole numbers only."""
    return not constraint.allows(low + 0.5)


def _checked(name: str, value: Any, constraint: Constraint) -> Any:
    if not constraint.allows(value):
        raise UsageError(f"{name} must be {constraint}; got {value!r}")
    # A list, as the file of trials returns it.
    return list(value) if isinstance(value, tuple) else from_toml(value, constraint)


def extremes_of(domain: Domain) -> tuple[Any, ...]:
    """Return the ends of a range or of evenly spaced numbers, and all values of a list."""
    if isinstance(domain, Choice):
        return domain.values
    return (domain.low, domain.high if isinstance(domain, Range) else domain.values[-1])


def _clashes(model: Model, space: Space) -> Iterator[str]:
    """Go through sentences on values of two parameters that are not compatible."""
    for name, other in itertools.combinations(space, 2):
        for pair in itertools.product(extremes_of(space[name]), extremes_of(space[other])):
            try:
                _try(model, dict(zip((name, other), pair, strict=True)))
            except UsageError as problem:
                yield (
                    f"{name}={pair[0]} does not go with {other}={pair[1]}: {problem}; sweep one of "
                    "them at a time"
                )
                break


def _try(model: Model, varied: Mapping[str, Any]) -> None:
    """Refuse values that are not compatible with the model's other parameters."""
    ranker = RANKERS[model.ranker](**{**model.parameters, **varied})
    ranker.check_parameters()
    ranker.check_objective()


def with_parameters(recipe: Recipe, model: str, parameters: Mapping[str, Any]) -> str:
    """Return the text of a recipe in which a model has other parameters.

    Parameters
    ----------
    recipe
        The recipe.
    model
        Name of the model.
    parameters
        The new parameters; all others, and all comments, stay.
    """
    text = recipe.text
    # In reverse, as each new one is inserted directly after the ranker. The text is edited, not
    # written anew from its tables: people keep their comments and their layout.
    for name, value in reversed(list(parameters.items())):
        text = _with_parameter(text, model, name, toml_of(value))
    changes = ", ".join(f"{name} = {toml_of(value)}" for name, value in parameters.items())
    try:
        changed = recipe_of(recipe.name, text).models[model].parameters
    except RecipeError as problem:
        raise UsageError(
            f"sweep: with {changes} of {model} the recipe is invalid: {problem}"
        ) from None
    # TOML can be written in ways that the editing does not foresee: nothing is written unchecked.
    if dict(changed) != {**recipe.models[model].parameters, **parameters}:
        raise UsageError(
            f"sweep: the recipe cannot be edited automatically; write {changes} into "
            f"[models.{model}]"
        )
    return text


def _with_parameter(text: str, model: str, name: str, value: str) -> str:
    positions = key_positions(text)
    path: KeyPath = (MODELS, model, name)
    if path in positions:
        span = positions[path]
        return text[: span.value] + value + text[span.end :]
    # Every model that is trained has a ranker, after which new parameters stand.
    return _after_ranker(text, positions[MODELS, model, RANKER], name, value)


def _after_ranker(text: str, ranker: Span, name: str, value: str) -> str:
    key = LAST_KEY.sub(rf"{name}\1", text[ranker.key : ranker.value])
    begin = text.rfind("\n", 0, ranker.key) + 1
    indent = text[begin : ranker.key]
    if indent.strip():  # within an inline table
        return f"{text[: ranker.end]}, {key}{value}{text[ranker.end :]}"
    end = text.find("\n", ranker.end)
    head, rest = (text, "") if end < 0 else (text[:end], text[end:])
    return f"{head}\n{indent}{key}{value}{rest}"
