"""BestMix: members joined two by two in the best proportion, along a binary tree of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import Constraint
from rankinite.core.types import Floats
from rankinite.ensembles.ensemble import LinearEnsemble, MemberScores, read_numbers
from rankinite.measures.line_search import MeasureAlongLine
from rankinite.measures.score_line import mixed
from rankinite.measures.text import one_measure
from rankinite.rankers.line_search import checked_measure_along_line
from rankinite.rankers.ranker import Ranker

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
    def texts(self) -> list[str]:
        """Text of each node, with names; with numbers if a name has spaces or parentheses."""
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
        if token in self.names:
            member = self.names.index(token)
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
        shown = self.text if len(self.text) <= 60 else self.text[:60] + "..."
        return UsageError(f"the mix tree {shown!r}: {problem}; {FORM}")


@dataclass(frozen=True)
class TextOrNone:
    """A text, or None."""

    def allows(self, value: Any) -> bool:
        """Return whether the value is a text or None."""
        return value is None or isinstance(value, str)

    def __str__(self) -> str:
        return "a text such as '(((1 3)(2 4))(5 6))', or None"


@dataclass(frozen=True)
class MixNode:
    """An inner node of a mix tree.

    Attributes
    ----------
    text
        Text of the node, with the members below it.
    alpha
        Share of the right child; 0 is all of the left one.
    value
        Measure of the mix on the data it was fitted to.
    """

    text: str
    alpha: float
    value: float


class BestMix(LinearEnsemble):
    """Rankers joined two by two, each two in the best proportion for a measure.

    The proportion is exact: no other gives a larger mean of the measure on the data it is fitted
    to (LambdaSMART, Sec. 4). Which rankers are joined first is a binary tree (Ensemble,
    Sec. 4.3). All scores are first scaled, as in `Average`.

    Parameters
    ----------
    members
        Fitted rankers, as a list or by name. None if fit and predict get their scores.
    tree
        Order of joining, such as ``"(((1 3)(2 4))(5 6))"``, with numbers from 1 or names. If
        None, neighbours are joined, then neighbouring pairs, and so on.
    measure
        Measure to maximise.

    Attributes
    ----------
    nodes_ : tuple of MixNode
        Inner nodes of the tree, with the share of the right child and the measure of the mix; the
        last is the root.
    member_names_ : tuple of str
        Names of the members.
    means_, scales_, weights_ : arrays
        A document's score is the sum over members of weight * (score - mean) / scale.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.RankingData([[0.0], [1.0], [2.0]], [0, 1, 2], [1, 1, 1])
    >>> scores = {"a": [2, 1, 0], "b": [0, 1, 2]}
    >>> mix = rk.BestMix(tree="(a b)", measure="NDCG").fit(data, member_scores=scores)
    >>> mix.nodes_[0].value
    1.0
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {"tree": TextOrNone()}

    nodes_: tuple[MixNode, ...]

    def __init__(
        self, members: Any = None, *, tree: str | None = None, measure: Any = "NDCG@10"
    ) -> None:
        self.members = members
        self.tree = tree
        self.measure = measure

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_measure(self._name, self.measure)

    def _learn(self, scores: MemberScores) -> None:
        tree = self._tree(scores.names)
        measure = one_measure(self._name, self.measure)
        self.nodes_ = _join(
            scores, tree, checked_measure_along_line(self._name, measure, scores.data)
        )
        self.weights_ = _weights(tree, [node.alpha for node in self.nodes_])

    def _tree(self, names: tuple[str, ...]) -> MixTree:
        return neighbours(names) if self.tree is None else parse_mix_tree(self.tree, names)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        alphas = np.array([node.alpha for node in self.nodes_], np.float64)
        values = np.array([node.value for node in self.nodes_], np.float64)
        return {**super()._arrays(), "alphas": alphas, "values": values}

    def _set_arrays(self, content: Content, inner: Ranker | None) -> None:
        super()._set_arrays(content, inner)
        try:
            tree = self._tree(self.member_names_)
        except UsageError as problem:
            raise ModelFileError(f"the manifest of the file is not understood: {problem}") from None
        n = len(tree.pairs)
        alphas, values = (read_numbers(content, name, n) for name in ("alphas", "values"))
        if not ((alphas >= 0.0) & (alphas <= 1.0)).all():
            raise ModelFileError("the file has shares of members that are not between 0 and 1")
        texts = tree.texts[len(self.member_names_) :]
        self.nodes_ = tuple(
            MixNode(*of) for of in zip(texts, alphas.tolist(), values.tolist(), strict=True)
        )


def _join(scores: MemberScores, tree: MixTree, measure: MeasureAlongLine) -> tuple[MixNode, ...]:
    """Mix the children of each inner node, from the leaves up."""
    node_scores = list(scores.scaled)
    nodes = []
    texts = tree.texts[len(tree.names) :]
    for (left, right), text in zip(tree.pairs, texts, strict=True):
        mix = measure.best_mix(node_scores[left], node_scores[right])
        node_scores.append(mixed(node_scores[left], node_scores[right], mix.alpha))
        nodes.append(MixNode(text, mix.alpha, mix.value))
    return tuple(nodes)


def _weights(tree: MixTree, alphas: list[float]) -> Floats:
    """Return the product of shares on the path from the root to each member."""
    n = len(tree.names)
    shares = np.ones(n + len(tree.pairs))
    # Parents come after their children, so from the last pair, the root, down.
    for k in reversed(range(len(tree.pairs))):
        left, right = tree.pairs[k]
        shares[left] = shares[n + k] * (1.0 - alphas[k])
        shares[right] = shares[n + k] * alphas[k]
    return shares[:n].copy()
