"""Where the keys of a TOML file stand, for error messages; tomllib does not tell."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

# Keys from the outermost to the innermost; an item of an array is its number, from 0.
KeyPath = tuple[str | int, ...]

BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
SPACES = re.compile(r"[ \t]*")
BARE = re.compile(r"[A-Za-z0-9_-]+")
TEXT = re.compile(
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
    """Where a key stands in a text: where it begins, and where its value begins and ends."""

    key: int
    value: int
    end: int


def key_spans(text: str) -> dict[KeyPath, Span]:
    r"""Return where every key with a value stands in a TOML file that is sound.

    Examples
    --------
    >>> key_spans("[a]\nb = 12  # c")[("a", "b")]
    Span(key=4, value=8, end=10)
    """
    return _Scanner(text).spans


class _Scanner:
    """Goes through a file that is known to be sound."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.ends = [k for k, letter in enumerate(text) if letter == "\n"]
        self.lines: dict[KeyPath, int] = {}
        self.spans: dict[KeyPath, Span] = {}
        # How many tables each array of tables has by now.
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
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def _note(self, path: KeyPath, line: int) -> None:
        for length in range(1, len(path) + 1):
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
            if path in self.n_tables:
                path = (*path, self.n_tables[path] - 1)
        self._note(path, line)
        return path

    def _key(self) -> list[str]:
        """Read a key, and what stands between it and what follows."""
        keys = []
        while True:
            self._skip(SPACES)
            quoted = self._skip(TEXT)
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
        """Read what stands in brackets, with commas between."""
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
