"""The best mix of two rankers, and of many: `best_mix`, and the ensemble `BestMix`.

Along a line between two rankers' scores a measure is a step function, whose best step is found
exactly (LambdaSMART, Sec. 4). `best_mix` does that for two rankers. `BestMix` does it again and
again: members are joined two by two along a binary tree, a `MixTree`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content, checked_array
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.figures import save_figure, subplots
from rankinite.core.params import Bounds, Constraint, OneOf, check
from rankinite.core.types import Floats
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.ensemble import LinearEnsemble
from rankinite.ensembles.members import MemberScores
from rankinite.ensembles.mix_tree import MixTree, neighbours, parse_mix_tree
from rankinite.evaluation.evaluate import evaluate_all
from rankinite.measures.line_search import LineOptimum, MeasureAlongLine
from rankinite.measures.measure import Measure
from rankinite.measures.score_line import ScoreLine, mixed
from rankinite.measures.text import MeasureLike, one_measure
from rankinite.rankers.base import given_scores, is_model, model_scores
from rankinite.rankers.line_search import checked_measure_along_line
from rankinite.rankers.ranker import Ranker
from rankinite.stats.paired_tests import gain_and_p

CONVEX, ADDITIVE = "convex", "additive"
BOUNDS = (0.0, 100.0)
# Pairs within pairs of a mix tree.
DEEPEST = 500


@dataclass(frozen=True)
class Mix(LineOptimum):
    """The best mix of two rankers; see `LineOptimum` for its other attributes.

    Attributes
    ----------
    measure
        Measure that was maximised, as a text.
    form
        ``"convex"`` for (1 - alpha) a + alpha b, ``"additive"`` for a + alpha b.
    """

    measure: str
    form: str

    def scores(self, a: ArrayLike, b: ArrayLike) -> Floats:
        """Return the mix of other scores of the same two rankers.

        Parameters
        ----------
        a, b
            Scores of the two, one per document.
        """
        # Any number of documents, but the same of both.
        first = given_scores("Mix", "a", a, np.size(a))
        second = given_scores("Mix", "b", b, len(first))
        return ScoreLine(first, second, 0.0, 0.0, convex=self.form == CONVEX).scores(self.alpha)

    def draw(self, path: str | Path, names: tuple[str, str] = ("a", "b")) -> None:
        """Draw the measure against alpha.

        Parameters
        ----------
        path
            PNG file to write.
        names
            Names of the two rankers.
        """
        figure, (axes,) = subplots()
        course = self.course
        # The measure is constant between two crossings: each value is drawn from its begin to its
        # end.
        alphas = np.stack([course.begins, course.ends], axis=1).ravel()
        axes.plot(alphas, np.repeat(course.values, 2), linewidth=1)
        axes.plot([self.alpha], [self.value], "o", color="C1")
        axes.annotate(
            f"{self.value:.4f} at {self.alpha:.4g}",
            (self.alpha, self.value),
            textcoords="offset points",
            xytext=(0, 8),
            ha="center",
        )
        axes.margins(y=0.12)
        formula = "(1 - alpha) a + alpha b" if self.form == CONVEX else "a + alpha b"
        axes.set_xlabel(f"alpha in {formula}; a is {names[0]}, b is {names[1]}")
        axes.set_ylabel(self.measure)
        save_figure(figure, path)


def best_mix(
    a: Any,
    b: Any,
    data: RankingData,
    measure: MeasureLike = "NDCG@10",
    *,
    form: str = CONVEX,
    bounds: tuple[float, float] | None = None,
    whole_course: bool = False,
) -> Mix:
    """Find the exact best mix of two rankers (LambdaSMART, Sec. 4).

    The measure changes only where two documents of a query tie. The best value is taken over the
    open intervals between such points, and the two ends. Points whose relative difference is at
    most 10^-12 are merged, so the scales of the two rankers should not differ by nearly as much.

    Parameters
    ----------
    a, b
        Fitted rankers, or one score per document.
    data
        Queries with labels that neither ranker was trained on, of 32,768 documents at most.
    measure
        Measure to maximise; any measure.
    form
        ``"convex"``: (1 - alpha) a + alpha b, with alpha from 0 to 1. ``"additive"``: a + alpha b,
        with alpha within the bounds.
    bounds
        Smallest and largest alpha of the additive form; 0 and 100 by default.
    whole_course
        Return every interval of the course, even if there are millions.

    Examples
    --------
    >>> data = RankingData(X=[[0.0]] * 3, y=[0, 2, 1], qid=[1, 1, 1])
    >>> mix = best_mix([3.0, 2.0, 1.0], [0.0, 2.0, 1.0], data, "NDCG")
    >>> mix.alpha, mix.value, mix.interval
    (0.8333333333333333, 1.0, (0.6666666666666666, 1.0))
    """
    owner = "best_mix"
    checks.require_data_set(owner, data)
    check(owner, "form", form, OneOf([CONVEX, ADDITIVE]))
    chosen = one_measure(owner, measure)
    low, high = _bounds(owner, form, bounds)
    first, second = _scores(owner, "a", a, data), _scores(owner, "b", b, data)
    measure_of = checked_measure_along_line(owner, chosen, data)
    if form == CONVEX:
        best = measure_of.best_mix(first, second, whole=whole_course)
    else:
        best = measure_of.best_step(first, second, low, high, whole=whole_course)
    return Mix(**vars(best), measure=str(chosen), form=form)


def _bounds(owner: str, form: str, bounds: tuple[float, float] | None) -> tuple[float, float]:
    if bounds is None:
        return BOUNDS
    if form == CONVEX:
        raise UsageError(
            f"{owner}: bounds are for the additive form; in the convex one alpha lies between 0 "
            "and 1"
        )
    check(owner, "bounds", bounds, Bounds())
    low, high = bounds
    return float(low), float(high)


def _scores(owner: str, name: str, ranker: Any, data: RankingData) -> Floats:
    if is_model(ranker):
        return model_scores(owner, ranker, data, None, data.n_docs, called=name)
    return given_scores(owner, name, ranker, data.n_docs)


@dataclass(frozen=True)
class MixComparison:
    """The best mix of two rankers, compared with the better of the two ends of alpha.

    Attributes
    ----------
    names
        Names of the two rankers.
    mix
        Their best mix.
    bounds
        Smallest and largest alpha.
    scores
        The mixed scores.
    n_queries
        Number of queries that count.
    better
        Index of the better end of alpha, 0 or 1.
    gain, p_value
        Mean difference between the best mix and that end, and the p-value of the paired t-test,
        on the queries that alpha was chosen by.
    """

    names: tuple[str, str]
    mix: Mix
    bounds: tuple[float, float]
    scores: Floats
    n_queries: int
    better: int
    gain: float
    p_value: float

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        best = self.mix
        return {
            "a": self.names[0],
            "b": self.names[1],
            "measure": best.measure,
            "form": best.form,
            "bounds": list(self.bounds),
            "queries": self.n_queries,
            "at_ends": list(best.at_ends),
            "alpha": best.alpha,
            "interval": list(best.interval),
            "value": best.value,
            "better_end": self.better,
            "gain": self.gain,
            "p_value": self.p_value,
            "peak": None if best.peak is None else dict(vars(best.peak)),
        }


def mix_scores(
    rows: Mapping[str, Floats],
    data: RankingData,
    measure: Measure,
    form: str = CONVEX,
    bounds: tuple[float, float] | None = None,
) -> MixComparison:
    """Find the best mix of two rankers' scores, and compare it with the better end.

    Parameters
    ----------
    rows
        Scores of the two, by name.
    data, measure, form, bounds
        As in `best_mix`.
    """
    (first, a), (second, b) = rows.items()
    best = best_mix(a, b, data, measure, form=form, bounds=bounds)
    # `best_mix` has refused bounds of the convex form, and others that make no sense.
    limits = (0.0, 1.0) if form == CONVEX else bounds or BOUNDS
    # The better end is the fair baseline: a gain over the worse one would be no news.
    better = int(best.at_ends[1] > best.at_ends[0])
    end = (a, b)[better] if form == CONVEX else a + limits[better] * b
    mixed_scores = best.scores(a, b)
    values = [
        evaluation.per_query[str(measure)]
        for evaluation in evaluate_all([mixed_scores, end], data, measure, drop_single_label=False)
    ]
    gain, p_value = gain_and_p(*values)
    n_queries = int((~np.isnan(values[0])).sum())
    return MixComparison(
        (first, second), best, limits, mixed_scores, n_queries, better, gain, p_value
    )


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
        tree = neighbours(names) if self.tree is None else parse_mix_tree(self.tree, names)
        # The text of a node has those of all nodes below it.
        if tree.depth > DEEPEST:
            raise UsageError(
                f"{self._name}: the tree has pairs within pairs, {tree.depth:,} deep; expected at "
                f"most {DEEPEST}"
            )
        return tree

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
        # A mix is convex, so a share outside cannot come from fit.
        alphas = checked_array(content.arrays, "alphas", np.float64, n, low=0, high=1)
        values = checked_array(content.arrays, "values", np.float64, n)
        texts = tree.texts[len(self.member_names_) :]
        self.nodes_ = tuple(
            MixNode(*of) for of in zip(texts, alphas.tolist(), values.tolist(), strict=True)
        )


def _join(scores: MemberScores, tree: MixTree, measure: MeasureAlongLine) -> tuple[MixNode, ...]:
    """Mix the children of each inner node, from the leaves up."""
    # Nodes are numbered with the members first, then the pairs in the order of the tree: a mix is
    # appended where its parent will look for it.
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
    # A copy, so that the model does not keep the shares of inner nodes alive.
    return shares[:n].copy()
