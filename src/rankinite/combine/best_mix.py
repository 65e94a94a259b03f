"""BestMix: members joined two by two, every two in the exactly best proportion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankinite.combine.combination import Gathered, MeasuredCombination, read_numbers
from rankinite.combine.mix_tree import MixTree, neighbours, parse_mix_tree
from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.params import Constraint
from rankinite.measures.along import Following, mixed
from rankinite.measures.text import one_measure
from rankinite.rankers.line_search import following_some
from rankinite.rankers.ranker import Ranker

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TextOrNone:
    """A text, or None."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a text, or None."""
        return value is None or isinstance(value, str)

    def __str__(self) -> str:
        return "a text such as '(((1 3)(2 4))(5 6))', or None"


@dataclass(frozen=True)
class MixNode:
    """An inner node of a mix tree.

    Attributes
    ----------
    text
        The members inside it, as the tree is written.
    alpha
        The share of the second part; 0 is all of the first.
    value
        The measure of the mix on the data it was fitted to.
    """

    text: str
    alpha: float
    value: float


class BestMix(MeasuredCombination):
    """Rankers joined two by two, each two in the best proportion for a measure.

    The proportion is exact: no other gives a larger mean of the measure on the data it is fitted
    to (LambdaSMART, Sec. 4). Which rankers are joined first is a binary tree (Ensemble,
    Sec. 4.3). All scores are first scaled, as in `Average`.

    Parameters
    ----------
    members
        Fitted rankers, as a list or by name. None if their scores are given to fit and predict.
    tree
        Which to join: ``"(((1 3)(2 4))(5 6))"``, of numbers from 1 or names. If None, neighbours,
        then neighbouring pairs, and so on.
    measure
        What the proportions are best for.

    Attributes
    ----------
    nodes_ : tuple of MixNode
        Every two that were joined, with the share of the second and the measure of the mix; the
        last is the whole.
    member_names_ : tuple of str
        The names of the members.
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

    def _learn(self, gathered: Gathered) -> None:
        tree = self._tree(gathered.names)
        measure = one_measure(self._name, self.measure)
        self.nodes_ = _join(gathered, tree, following_some(self._name, measure, gathered.data))
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


def _join(gathered: Gathered, tree: MixTree, measure: Following) -> tuple[MixNode, ...]:
    """Mix every two parts; a mix is a part for those above it."""
    parts = list(gathered.scaled)
    nodes = []
    texts = tree.texts[len(tree.names) :]
    for (left, right), text in zip(tree.pairs, texts, strict=True):
        mix = measure.best_mix(parts[left], parts[right])
        parts.append(mixed(parts[left], parts[right], mix.alpha))
        nodes.append(MixNode(text, mix.alpha, mix.value))
    return tuple(nodes)


def _weights(tree: MixTree, alphas: list[float]) -> Floats:
    """Return the product of shares from the root down to every member."""
    n = len(tree.names)
    shares = np.ones(n + len(tree.pairs))
    for k in reversed(range(len(tree.pairs))):
        left, right = tree.pairs[k]
        shares[left] = shares[n + k] * (1.0 - alphas[k])
        shares[right] = shares[n + k] * alphas[k]
    return shares[:n].copy()
