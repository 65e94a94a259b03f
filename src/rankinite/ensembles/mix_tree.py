"""MixTree: the order in which members are joined two by two, and its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rankinite.core.errors import UsageError
from rankinite.core.format import some_of

TOKEN = re.compile(r"[()]|[^()\s]+")
FORM = "expected pairs of pairs, as in (((1 3)(2 4))(5 6))"


@dataclass(frozen=True)
class MixTree:
    """A binary tree whose leaves are members, each once; its text is ``(((1 3)(2 4))(5 6))``.

    Attributes
    ----------
    names
        Names of the members; node k is the member k, from 0.
    pairs
        Children of each inner node, in an order in which children come before their parents. Pair
        k is the node ``len(names) + k``, and the last pair is the root.
    """

    names: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def depth(self) -> int:
        """Number of pairs within pairs."""
        depths = [0] * len(self.names)
        for left, right in self.pairs:
            depths.append(1 + max(depths[left], depths[right]))
        return depths[-1]

    @property
    def texts(self) -> list[str]:
        """Text of each node, with names; with numbers if a name has spaces or parentheses."""
        # Any other name would not be read back as one token.
        plain = all(TOKEN.fullmatch(name) and name not in "()" for name in self.names)
        texts = list(self.names) if plain else [str(k + 1) for k in range(len(self.names))]
        for left, right in self.pairs:
            space = "" if texts[left].endswith(")") or texts[right].startswith("(") else " "
            texts.append(f"({texts[left]}{space}{texts[right]})")
        return texts

    def __str__(self) -> str:
        return self.texts[-1]


def neighbours(names: Sequence[str]) -> MixTree:
    """Return the tree that pairs neighbours, then pairs of neighbours, and so on.

    Examples
    --------
    >>> str(neighbours(["1", "2", "3", "4", "5", "6"]))
    '(((1 2)(3 4))(5 6))'
    """
    level = list(range(len(names)))
    pairs: list[tuple[int, int]] = []
    while len(level) > 1:
        above = []
        for k in range(0, len(level) - 1, 2):
            above.append(len(names) + len(pairs))
            pairs.append((level[k], level[k + 1]))
        # An odd one out has no neighbour yet, and moves up behind the pairs.
        level = above + level[2 * len(above) :]
    return MixTree(tuple(names), tuple(pairs))


def parse_mix_tree(text: str, names: Sequence[str]) -> MixTree:
    """Parse a tree of members; the inverse of ``str``.

    Parameters
    ----------
    text
        Text such as ``(((1 3)(2 4))(5 6))``: members by name, or by number from 1 if no member
        has the number as its name.
    names
        Names of the members.

    Examples
    --------
    >>> parse_mix_tree("((a c)b)", ["a", "b", "c"]).pairs
    ((0, 2), (3, 1))
    """
    parser = _TreeParser(text, names)
    for match in TOKEN.finditer(text):
        parser.take(match[0], match.start() + 1)
    return parser.result()


class _TreeParser:
    """Parser of a tree: a stack of open parentheses with the nodes inside them so far."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.text = text
        self.names = tuple(names)
        self.places = {name: k for k, name in enumerate(names)}
        self.pairs: list[tuple[int, int]] = []
        self.used: set[int] = set()
        # Place of each open parenthesis, and the nodes behind it; the first is the whole text.
        self.open: list[tuple[int, list[int]]] = [(0, [])]

    def take(self, token: str, place: int) -> None:
        """Take the next token, a parenthesis or a member."""
        if token == "(":
            self.open.append((place, []))
        elif token == ")":
            self._close(place)
        else:
            self.open[-1][1].append(self._member(token, place))

    def result(self) -> MixTree:
        """Return the tree when all tokens are taken."""
        if len(self.open) > 1:
            raise self._error(f"the parenthesis at place {self.open[-1][0]} is never closed")
        parts = self.open[0][1]
        if not parts:
            raise self._error("names no member")
        if len(parts) > 1:
            raise self._error(f"has {len(parts)} trees side by side; put each two in parentheses")
        left_out = [name for k, name in enumerate(self.names) if k not in self.used]
        if left_out:
            raise self._error(f"leaves out the members {some_of(left_out)}; name every member once")
        return MixTree(self.names, tuple(self.pairs))

    def _close(self, place: int) -> None:
        if len(self.open) == 1:
            raise self._error(f"the parenthesis at place {place} closes nothing")
        start, parts = self.open.pop()
        if len(parts) != 2:
            raise self._error(
                f"{self.text[start - 1 : place]!r} has {len(parts)} "
                f"part{'' if len(parts) == 1 else 's'}; a mix is of two"
            )
        self.open[-1][1].append(len(self.names) + len(self.pairs))
        self.pairs.append((parts[0], parts[1]))

    def _member(self, token: str, place: int) -> int:
        # Names first: members may be called by numbers that are not their places.
        if token in self.places:
            member = self.places[token]
        # int() of very long texts takes long, and is refused by Python.
        elif token.isdecimal() and len(token) < 10 and 1 <= int(token) <= len(self.names):
            member = int(token) - 1
        else:
            raise self._error(
                f"there is no member {token!r} (at place {place}) among {some_of(self.names)}"
                + self._hint(token)
            )
        if member in self.used:
            raise self._error(f"the member {token!r} comes twice; name every member once")
        self.used.add(member)
        return member

    def _hint(self, token: str) -> str:
        """Return a hint if the token is digits without spaces, as the paper prints them."""
        if len(token) > 1 and token.isdecimal():
            return f"; did you mean {' '.join(token)}, with spaces between?"
        return ""

    def _error(self, problem: str) -> UsageError:
        # The place in the text is part of most messages, so its beginning is enough.
        shown = self.text if len(self.text) <= 60 else self.text[:60] + "..."
        return UsageError(f"the mix tree {shown!r}: {problem}; {FORM}")
