"""Why documents are ranked as they are: contributions, pairs of documents, and what swaps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from rankinite.core.cached import cached_property
from rankinite.core.errors import UsageError
from rankinite.core.format import some_of
from rankinite.core.types import Floats, Integers
from rankinite.data.checks import require_data_set
from rankinite.data.ranking_data import RankingData
from rankinite.explanation.attribution import Attribution, attribute
from rankinite.explanation.swaps import Swap, find_swaps, shown_value
from rankinite.measures.measure import Measure
from rankinite.measures.scorer import Scorer
from rankinite.measures.text import one_measure
from rankinite.rankers.features import match_features
from rankinite.rankers.ranker import Ranker

OWNER = "explain"
# Ranks whose documents are compared for the best swap, and how many of those below.
TOP_RANKS = 10
# Smaller gains come from the rounding of sums.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Contribution:
    """What a feature adds to a score, or to a difference; and its values in the documents.

    Attributes
    ----------
    name
        The feature.
    amount
        What it adds.
    values
        Its value in the document, or in both documents of a pair; None where it is missing, and a
        text if it is categorical. Empty if it is no feature of the data set.
    """

    name: str
    amount: float
    values: tuple[float | str | None, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"feature": self.name, "contribution": self.amount, "values": list(self.values)}


@dataclass(frozen=True)
class Document:
    """A document of a ranking.

    Attributes
    ----------
    number
        Which document of the explained data it is, from 0 on.
    rank
        Its rank in its query, from 1 on.
    doc_id
        Its id; None if documents have none.
    label, score
        Its label, None if it has none; and its score.
    contributions
        The features with the largest contributions, the largest first.
    """

    number: int
    rank: int
    doc_id: str | None
    label: float | None
    score: float
    contributions: tuple[Contribution, ...] = ()

    @property
    def name(self) -> str:
        """Its id, or its rank if it has none."""
        return f"#{self.rank}" if self.doc_id is None else self.doc_id

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "rank": self.rank,
            "document": self.doc_id,
            "label": self.label,
            "score": self.score,
            "contributions": [row.as_json() for row in self.contributions],
        }


@dataclass(frozen=True)
class Pair:
    """Why one document is above another of its query.

    Attributes
    ----------
    upper, lower
        The documents.
    contributions
        What each feature adds to the difference of the scores, the largest amounts first; features
        that add nothing are left out. They add up to the difference but for rounding.
    deciding
        The fewest features without whose contributions the other document would be above: the
        largest in favour of the upper one.
    swaps
        By document and feature, the smallest change that swaps the two, the smallest share of the
        feature's deviation first; features that cannot swap them are left out.
    measure, value, swapped_value
        A measure of the query, its value, and its value if both documents changed places; None
        without labels.
    """

    upper: Document
    lower: Document
    contributions: tuple[Contribution, ...]
    deciding: tuple[str, ...]
    swaps: tuple[Swap, ...]
    measure: str
    value: float | None
    swapped_value: float | None

    @property
    def difference(self) -> float:
        """The difference of the scores."""
        return self.upper.score - self.lower.score

    @property
    def gain(self) -> float | None:
        """What the measure of the query would gain if both documents changed places."""
        if self.value is None or self.swapped_value is None:
            return None
        return self.swapped_value - self.value

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "upper": self.upper.as_json(),
            "lower": self.lower.as_json(),
            "difference": self.difference,
            "contributions": [row.as_json() for row in self.contributions],
            "deciding": list(self.deciding),
            "swaps": [swap.as_json() for swap in self.swaps],
            "measure": self.measure,
            "value": self.value,
            "if_swapped": self.swapped_value,
            "gain": self.gain,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Contributions of features to the scores of documents.

    Attributes
    ----------
    model
        The ranker.
    data
        The documents that are explained.
    attribution
        The contributions, see `Attribution`.
    """

    model: Ranker
    data: RankingData
    attribution: Attribution

    def __repr__(self) -> str:
        return f"<Explanation of {self.data!r} by a {type(self.model).__name__}>"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of `contributions`."""
        return self.attribution.names

    @property
    def contributions(self) -> Floats:
        """What each feature (column) adds to the score of each document (row)."""
        return self.attribution.values

    @property
    def expected(self) -> Floats:
        """What the contributions of each document are added to."""
        return self.attribution.expected

    @property
    def scores(self) -> Floats:
        """The score of each document; log odds where the model predicts chances."""
        return self.attribution.scores

    @cached_property
    def ranks(self) -> Integers:
        """The rank of each document in its query, from 1 on; equal scores in the data's order."""
        ranks = np.empty(self.data.n_docs, np.int64)
        for begin, end in self._bounds:
            order = np.argsort(-self.scores[begin:end], kind="stable")
            ranks[begin + order] = np.arange(1, end - begin + 1)
        return ranks

    @property
    def _bounds(self) -> list[tuple[int, int]]:
        return list(pairwise(self.data.offsets.tolist()))

    def of_query(self, query: Any) -> Explanation:
        """Return the explanation of a single query, by its id."""
        number = self._query(query)
        begin, end = self._bounds[number]
        whole = self.attribution
        part = replace(
            whole,
            values=whole.values[begin:end],
            expected=whole.expected[begin:end],
            scores=whole.scores[begin:end],
        )
        return Explanation(self.model, self.data[number], part)

    def mean_contributions(self) -> dict[str, float]:
        """Return the mean absolute contribution of each feature, the largest first."""
        means = np.abs(self.contributions).mean(axis=0)
        order = np.argsort(-means, kind="stable")
        return {self.feature_names[j]: float(means[j]) for j in order}

    def documents(self, top: int = 3, *, query: Any = None) -> list[Document]:
        """Return the documents of a query in the order of the ranking.

        Parameters
        ----------
        top
            Number of contributions of each document.
        query
            The id of the query; it may be left out if there is only one.
        """
        begin, end = self._bounds[self._query(query)]
        order = begin + np.argsort(self.ranks[begin:end])
        return [self._document(int(doc), top) for doc in order]

    def measured(self, measure: str | Measure = "NDCG@10") -> list[float | None]:
        """Return the value of a measure for each query; None without labels, or if left out."""
        values = _measured(one_measure(OWNER, measure), self.data, self.scores)
        return [None if np.isnan(value) else float(value) for value in values]

    def pair(
        self,
        first: str | int,
        second: str | int,
        *,
        query: Any = None,
        measure: str | Measure = "NDCG@10",
        swaps: bool = True,
    ) -> Pair:
        """Return why one of two documents is above the other.

        Parameters
        ----------
        first, second
            The documents, by id or by rank, which is counted from 1.
        query
            The id of their query; it may be left out if there is only one.
        measure
            The measure whose gain is told.
        swaps
            Whether to look for the smallest changes of a feature that swap the two.
        """
        number = self._query(query)
        chosen = [self._place(text, number) for text in (first, second)]
        if chosen[0] == chosen[1]:
            raise UsageError(f"{OWNER}: {first!r} and {second!r} are the same document")
        upper, lower = sorted(chosen, key=lambda doc: self.ranks[doc])
        amounts = self.contributions[upper] - self.contributions[lower]
        order = [int(j) for j in np.argsort(-np.abs(amounts), kind="stable") if amounts[j]]
        rows = tuple(self._contribution(j, float(amounts[j]), (upper, lower)) for j in order)
        value, swapped = self._if_swapped(one_measure(OWNER, measure), number, upper, lower)
        changes: Sequence[Swap] = ()
        if swaps:
            changes = find_swaps(self.model, self.data, number, upper, lower)
        return Pair(
            self._document(upper, 0),
            self._document(lower, 0),
            rows,
            deciding_features(rows),
            tuple(changes),
            str(measure),
            value,
            swapped,
        )

    def best_swap(
        self, measure: str | Measure = "NDCG@10", *, query: Any = None
    ) -> tuple[int, int] | None:
        """Return the ranks of two documents by whose swap a measure would gain most.

        Only documents near the top are looked at, and those below them with better labels. None if
        nothing is to be gained.

        Parameters
        ----------
        measure
            The measure.
        query
            The id of the query; it may be left out if there is only one.
        """
        number = self._query(query)
        begin, end = self._bounds[number]
        order = begin + np.argsort(self.ranks[begin:end])
        labels = np.nan_to_num(self.data.y[order])
        chosen, best = one_measure(OWNER, measure), ROUNDING
        swap = None
        for upper in range(min(TOP_RANKS, len(order))):
            below = upper + 1 + np.flatnonzero(labels[upper + 1 :] > labels[upper])
            for lower in below[np.argsort(-labels[below], kind="stable")][:TOP_RANKS].tolist():
                value, swapped = self._if_swapped(chosen, number, order[upper], order[lower])
                if value is not None and swapped is not None and swapped - value > best:
                    best, swap = swapped - value, (upper + 1, lower + 1)
        return swap

    def _query(self, query: Any) -> int:
        qids = [str(qid) for qid in self.data.qids.tolist()]
        if query is None and len(qids) == 1:
            return 0
        if query is None:
            raise UsageError(f"{OWNER}: there are {len(qids)} queries; say which query is meant")
        if str(query) not in qids:
            raise _no_query(query, self.data)
        return qids.index(str(query))

    def _place(self, document: str | int, query: int) -> int:
        begin, end = self._bounds[query]
        ids = self.data.doc_ids
        matching = [] if ids is None else [k for k in range(begin, end) if ids[k] == str(document)]
        if len(matching) > 1:
            raise UsageError(f"{OWNER}: {len(matching)} documents of the query are {document!r}")
        if matching:
            return matching[0]
        text = str(document).removeprefix("#")
        # Digits beyond 18 would be no rank anyway.
        if text.isascii() and text.isdigit() and len(text) < 18 and 1 <= int(text) <= end - begin:
            return begin + int(np.flatnonzero(self.ranks[begin:end] == int(text))[0])
        known = "" if ids is None else f"an id, such as {ids[begin]!r}, or "
        raise UsageError(
            f"{OWNER}: query {str(self.data.qids[query])!r} has no document {document!r}; expected "
            f"{known}a rank from 1 to {end - begin}"
        )

    def _document(self, doc: int, top: int) -> Document:
        amounts = self.contributions[doc]
        order = [int(j) for j in np.argsort(-np.abs(amounts), kind="stable")[:top] if amounts[j]]
        ids, label = self.data.doc_ids, float(self.data.y[doc])
        return Document(
            doc,
            int(self.ranks[doc]),
            None if ids is None else str(ids[doc]),
            None if np.isnan(label) else label,
            float(self.scores[doc]),
            tuple(self._contribution(j, float(amounts[j]), (doc,)) for j in order),
        )

    def _contribution(self, j: int, amount: float, docs: Sequence[int]) -> Contribution:
        name = self.feature_names[j]
        column = self._columns.get(name)
        values = () if column is None else tuple(self._value(doc, column) for doc in docs)
        return Contribution(name, amount, values)

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.data.feature_names)}

    def _value(self, doc: int, column: int) -> float | str | None:
        row = doc if self.data.rows is None else int(self.data.rows[doc])
        value = float(self.data.matrix[row, column])
        return shown_value(self.data, column, value)

    def _if_swapped(
        self, measure: Measure, query: int, upper: int, lower: int
    ) -> tuple[float | None, float | None]:
        """Return a measure of the query as it is, and with two documents in each other's place."""
        begin, end = self._bounds[query]
        scores = self.scores[begin:end]
        swapped = scores.copy()
        swapped[[upper - begin, lower - begin]] = scores[[lower - begin, upper - begin]]
        part = self.data if self.data.n_queries == 1 else self.data[query]
        values = [float(_measured(measure, part, both)[0]) for both in (scores, swapped)]
        if np.isnan(values).any():
            return None, None
        return values[0], values[1]


def explain(model: Ranker, data: RankingData, *, query: Any = None) -> Explanation:
    """Explain the scores of documents by the contributions of their features.

    Contributions add up to the score, together with the expected value: those of trees are Shapley
    values (path-dependent TreeSHAP), those of nets what each feature adds on the way from the mean
    training document. An ensemble adds those of its members.

    Parameters
    ----------
    model
        A fitted ranker.
    data
        The documents, with the features of the model.
    query
        Explain this query only, by its id.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.polynomials(20, n_features=3)
    >>> model = rk.LambdaMART(n_trees=5).fit(data)
    >>> explanation = rk.explain(model, data, query=data.qids[0])
    >>> explanation.contributions.shape[1]
    3
    >>> pair = explanation.pair(1, 2)
    >>> pair.difference >= 0
    True
    """
    require_data_set(OWNER, data)
    if not isinstance(model, Ranker):
        raise UsageError(f"{OWNER}: model is a {type(model).__name__}; expected a fitted ranker")
    if not model.is_fitted:
        raise UsageError(f"{OWNER}: this {type(model).__name__} is not fitted yet; fit it first")
    if query is not None:
        data = chosen_query(data, query)
    data = match_features(type(model).__name__, data, model.feature_names_)
    return Explanation(model, data, attribute(model, data))


def chosen_query(data: RankingData, query: Any) -> RankingData:
    """Return the data set of a single query, by its id."""
    matching = np.flatnonzero(data.qids.astype(str) == str(query))
    if len(matching) == 0:
        raise _no_query(query, data)
    return data[matching[:1]]


def _no_query(query: Any, data: RankingData) -> UsageError:
    known = some_of([str(qid) for qid in data.qids[:20].tolist()], 5)
    return UsageError(
        f"{OWNER}: the data set has no query {str(query)!r}; among its {data.n_queries:,} queries "
        f"are {known}"
    )


def deciding_features(contributions: Sequence[Contribution]) -> tuple[str, ...]:
    """Return the fewest features without which a difference above 0 would fall below it.

    Examples
    --------
    >>> rows = [Contribution("a", 3.0), Contribution("b", -2.0), Contribution("c", 1.0)]
    >>> deciding_features(rows)
    ('a',)
    """
    left = sum(row.amount for row in contributions)
    names = []
    for row in sorted(contributions, key=lambda row: -row.amount):
        if left < 0 or row.amount <= 0:
            break
        names.append(row.name)
        left -= row.amount
    return tuple(names) if left < 0 else ()


def _measured(measure: Measure, data: RankingData, scores: Floats) -> Floats:
    """Return the value of a measure for each query; NaN without labels, or if left out."""
    if not data.is_labelled:
        return np.full(data.n_queries, np.nan)
    scorer = Scorer([measure], data.all_labels, data.offsets, data.top_grade)
    values: Floats = scorer.per_query(scores)[0]
    return values
