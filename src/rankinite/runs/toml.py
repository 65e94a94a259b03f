"""TOML files: values of parameters, the lines of keys, and mistakes with the line of each.

TOML has no None, so ``"none"`` stands for None, in files and in flags. tomllib reads values without
their lines, so a file that it accepts is scanned once more for them.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rankinite.core.errors import RecipeError, UsageError
from rankinite.core.format import HIDDEN, some_of
from rankinite.core.params import Constraint, Either, OneOf, Real, Text

NONE = "none"


@dataclass(frozen=True)
class Texts:
    """A list of texts."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a list of texts."""
        return isinstance(value, list) and all(Text().allows(item) for item in value)

    def __str__(self) -> str:
        return "a list of texts"


@dataclass(frozen=True)
class AnyTable:
    """A table, whose content is checked separately."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a table."""
        return isinstance(value, dict)

    def __str__(self) -> str:
        return "a table"


@dataclass(frozen=True)
class OrNone:
    """What a constraint allows, or the text that stands for None."""

    first: Constraint

    def allows(self, value: Any) -> bool:
        """Tell whether the value is allowed, or stands for None."""
        return value == NONE or self.first.allows(value)

    def __str__(self) -> str:
        return f"{self.first}, or {NONE!r}"


def toml_constraint(constraint: Constraint) -> Constraint:
    """Return what a TOML file can set a parameter to that has this constraint."""
    if isinstance(constraint, Either) and constraint.second == OneOf([None]):
        return OrNone(constraint.first)
    return constraint


def from_toml(value: Any, constraint: Constraint) -> Any:
    """Return the value of a parameter from its value in a TOML file."""
    # TOML reads 1 as a whole number. Parameters are part of the keys of tasks, where 1 and 1.0
    # would be two trainings.
    if isinstance(constraint, Real):
        return float(value)
    return None if isinstance(constraint, OrNone) and value == NONE else value


def toml_of(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, Mapping):
        items = (f"{toml_of(str(key))} = {toml_of(item)}" for key, item in value.items())
        return "{" + ", ".join(items) + "}"
    # TOML's texts and lists are JSON's, but for hidden characters; its numbers are Python's.
    if isinstance(value, (bool, str, list, tuple)):
        return HIDDEN.sub(_escaped, json.dumps(value, ensure_ascii=False))
    return json.dumps(NONE) if value is None else repr(value)


def _escaped(hidden: re.Match[str]) -> str:
    if "\ud800" <= hidden[0] <= "\udfff":
        name = json.loads(hidden.string)
        raise UsageError(f"{name}: this name is not UTF-8, as TOML files must be; choose another")
    return f"\\u{ord(hidden[0]):04x}" if hidden[0] <= "\uffff" else f"\\U{ord(hidden[0]):08x}"


# Keys from the outermost to the innermost; an item of an array is its number, from 0.
KeyPath = tuple[str | int, ...]

# The text is valid, so the patterns need not recognise mistakes, and may match more than TOML.
BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
SPACES = re.compile(r"[ \t]*")
BARE = re.compile(r"[A-Za-z0-9_-]+")
TEXT = re.compile(
    # Three quotes before one: two of them would be an empty text.
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
PLAIN = re.compile(r"[^,\]}\n#]*")  # a number, a date, true or false


def key_lines(text: str) -> dict[KeyPath, int]:
    r"""Return the line of every key, counted from 1; a table's is where it is first mentioned.

    Parameters
    ----------
    text
        A TOML file that tomllib has read without complaint.

    Examples
    --------
    >>> key_lines("a = 1\n\n[b.c]\nd = [{e = 2},\n {e = 3}]")[("b", "c", "d", 1, "e")]
    5
    """
    return _Scanner(text).lines


@dataclass(frozen=True)
class Span:
    """Positions in a text: the start of a key, and the start and end of its value."""

    key: int
    value: int
    end: int


def key_positions(text: str) -> dict[KeyPath, Span]:
    r"""Return the positions of every key with a value in a valid TOML file.

    Examples
    --------
    >>> key_positions("[a]\nb = 12  # c")[("a", "b")]
    Span(key=4, value=8, end=10)
    """
    return _Scanner(text).spans


class _Scanner:
    """Scans a file that is known to be valid."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        # Positions of all line ends, in which a position is looked up: to count them anew for every
        # key would take quadratic time.
        self.ends = [k for k, letter in enumerate(text) if letter == "\n"]
        self.lines: dict[KeyPath, int] = {}
        self.spans: dict[KeyPath, Span] = {}
        # Number of tables so far of each array of tables.
        self.n_tables: dict[KeyPath, int] = {}
        self._scan()

    def _scan(self) -> None:
        table: KeyPath = ()
        self._skip(BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(BLANK)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def _note(self, path: KeyPath, line: int) -> None:
        for length in range(1, len(path) + 1):
            # The first mention counts, also one by a longer path, as [a.b] mentions a.
            self.lines.setdefault(path[:length], line)

    def _line(self) -> int:
        return bisect_left(self.ends, self.at) + 1

    def _header(self) -> KeyPath:
        line, brackets = self._line(), 1 + self.text.startswith("[[", self.at)
        self.at += brackets
        keys = self._key()
        self.at += brackets
        path: KeyPath = ()
        for number, key in enumerate(keys, 1):
            path = (*path, key)
            if number == len(keys) and brackets == 2:
                self.n_tables[path] = self.n_tables.get(path, 0) + 1
            # Below an array of tables a header speaks of its last table.
            if path in self.n_tables:
                path = (*path, self.n_tables[path] - 1)
        self._note(path, line)
        return path

    def _key(self) -> list[str]:
        """Read a dotted key and the spaces around it."""
        keys = []
        while True:
            self._skip(SPACES)
            quoted = self._skip(TEXT)
            # tomllib knows the escapes of quoted keys.
            keys.append(str(tomllib.loads(f"k = {quoted}")["k"]) if quoted else self._skip(BARE))
            self._skip(SPACES)
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def _pair(self, table: KeyPath) -> None:
        line, key = self._line(), self.at
        path = (*table, *self._key())
        self._note(path, line)
        self.at += 1  # =
        self._skip(SPACES)
        value = self.at
        self._value(path)
        # A plain value is read up to what ends it, with the spaces before that.
        end = value + len(self.text[value : self.at].rstrip())
        self.spans[path] = Span(key, value, end)

    def _value(self, path: KeyPath) -> None:
        opening = self.text[self.at]
        if opening == "{":
            self._several("}", lambda _: self._pair(path))
        elif opening == "[":
            self._several("]", lambda k: self._item((*path, k)))
        elif not self._skip(TEXT):
            self._skip(PLAIN)

    def _item(self, path: KeyPath) -> None:
        self._note(path, self._line())
        self._value(path)

    def _several(self, closing: str, read: Callable[[int], None]) -> None:
        """Read items in brackets, separated by commas."""
        self.at += 1
        self._skip(BLANK)
        number = 0
        while self.text[self.at] != closing:
            read(number)
            number += 1
            self._skip(BLANK)
            if self.text[self.at] == ",":
                self.at += 1
                self._skip(BLANK)
        self.at += 1


class Mistakes:
    """The mistakes of a file, all of which are reported at once.

    Parameters
    ----------
    owner
        Name of the file.
    text
        Its content.
    """

    def __init__(self, owner: str, text: str) -> None:
        self._owner = owner
        self._lines = key_lines(text)
        self._sentences: list[tuple[int, str]] = []
        self._paths: set[KeyPath] = set()

    def add(self, path: KeyPath, sentence: str) -> None:
        """Add a mistake of a key."""
        self._paths.add(path)
        # A missing key has no line; the table around it has.
        while path and path not in self._lines:
            path = path[:-1]
        self._sentences.append((self._lines.get(path, 1), sentence))

    def has(self, path: KeyPath) -> bool:
        """Tell whether a key has a mistake."""
        return path in self._paths

    def refuse(self) -> None:
        """Raise an error if there was a mistake; it lists all in the order of their lines."""
        if self._sentences:
            # Only by line: sentences about one line keep the order in which they were written.
            ordered = sorted(self._sentences, key=lambda mistake: mistake[0])
            raise RecipeError(*(f"{self._owner}:{line}: {sentence}" for line, sentence in ordered))

    def check(self, path: KeyPath, value: Any, constraint: Constraint) -> bool:
        """Tell whether a constraint allows a value; add a mistake if not."""
        allowed = constraint.allows(value)
        if not allowed:
            self.add(path, f"{spelled(path)} must be {constraint}; got {value!r}")
        return allowed

    def table(self, path: KeyPath, value: Any) -> Mapping[str, Any]:
        """Return a table; an empty one, and a mistake, if the value is something else."""
        return value if self.check(path, value, AnyTable()) else {}

    def values(
        self,
        path: KeyPath,
        table: Mapping[str, Any],
        known: Mapping[str, Constraint],
        defaults: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the values of a table with defaults, without values that are mistakes."""
        values = dict(defaults)
        for key, value in table.items():
            if key not in known:
                self.unknown((*path, key), "key", known)
            elif self.check((*path, key), value, known[key]):
                values[key] = value
        return values

    def unknown(self, path: KeyPath, word: str, known: Collection[str], name: str = "") -> None:
        """Add a mistake for an unknown name, which is the last key of the path by default."""
        name = name or str(path[-1])
        near = difflib.get_close_matches(name, known, 1)
        there = (
            f"expected one of {some_of(list(dict.fromkeys(known)), 20)}"
            if known
            else "there is none"
        )
        hint = f"did you mean {near[0]!r}?" if near else there
        self.add(path, f"there is no {word} {name!r}; {hint}")


def spelled(path: KeyPath) -> str:
    """Return keys as they are written in a file.

    Examples
    --------
    >>> spelled(("subsets", "All minus MARTs", 2))
    'subsets."All minus MARTs"[2]'
    """
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            bare = key if BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
            text += f".{bare}" if text else bare
    return text
