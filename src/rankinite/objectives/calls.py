"""Texts of the form ``NAME(argument, option=value)``, which name objectives and schedules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankinite.core.errors import UsageError

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
