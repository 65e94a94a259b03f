"""Objectives by name, and the grammar of texts such as ``SigmoidCost(NDCG@3, mu=0.5)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from rankinite.core.errors import UsageError
from rankinite.measures.measure import Measure
from rankinite.measures.text import parse_measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives.objective import Objective

CALL = re.compile(r"(?P<name>[A-Za-z_]+)\s*(?:\((?P<inside>.*)\))?", re.DOTALL)
# Equal signs inside of parentheses are not those of an option.
OPTION = re.compile(r"(?P<name>\w+)\s*=(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """A name with arguments in parentheses.

    Attributes
    ----------
    text
        The whole text.
    name
        The name, as it was written.
    inside
        The text in the parentheses; None if there are none.
    arguments
        The parts of it that commas separate.
    """

    text: str
    name: str
    inside: str | None
    arguments: Sequence[str]

    def options(self, owner: str, first: int, known: Sequence[str]) -> Mapping[str, Any]:
        """Return the arguments from the first one on as options, with numbers or texts as values.

        Parameters
        ----------
        owner
            Whose options they are, for the error message.
        first
            The number of arguments before them.
        known
            The names of options.
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

    def measure(self, owner: str, example: str = "NDCG@10") -> Measure | TieredMeasure:
        """Return the first argument as a measure."""
        if not self.arguments or not self.arguments[0]:
            raise UsageError(f"{self.text!r}: {owner} needs a measure; write {owner}({example})")
        try:
            return parse_measure(self.arguments[0])
        except UsageError as problem:
            raise UsageError(
                f"{self.text!r}: {owner} needs a measure in its parentheses; {problem}"
            ) from None


def parse_call(text: str) -> Call | None:
    """Read a name with or without parentheses; None if the text is something else."""
    match = CALL.fullmatch(text.strip())
    if match is None:
        return None
    inside = match["inside"]
    return Call(text, match["name"], inside, split(inside) if inside and inside.strip() else ())


def split(text: str) -> list[str]:
    """Return the parts of a text between commas that are not inside of parentheses.

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
    """Return a number, a tuple of numbers in parentheses, or the text itself."""
    if text.startswith("(") and text.endswith(")"):
        return tuple(value_of(part) for part in split(text[1:-1]) if part)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class NamedObjective(Objective):
    """An objective with a text ``NAME(measure, option=value)``.

    Attributes
    ----------
    text_options
        The options that its text may have.
    text_example
        A measure for the error message if there is none.
    """

    text_options: ClassVar[tuple[str, ...]] = ()
    text_example: ClassVar[str] = "NDCG@10"

    @classmethod
    def from_call(cls, call: Call, *, truncation: int | None, normalise: str) -> Objective:
        """Return the objective of a text, with the options of a ranker."""
        measure = call.measure(cls.__name__, cls.text_example)
        options = call.options(cls.__name__, 1, cls.text_options)
        make: Callable[..., Objective] = cls
        return make(measure, **options).with_options(truncation=truncation, normalise=normalise)


Named = TypeVar("Named", bound=type[NamedObjective])

# All classes of objectives with a text, by name.
OBJECTIVES: dict[str, type[NamedObjective]] = {}


def named(kind: Named) -> Named:
    """Register a class of objectives by its name; a class decorator."""
    OBJECTIVES[kind.__name__] = kind
    return kind
