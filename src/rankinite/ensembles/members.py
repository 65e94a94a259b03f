"""The members of a combination: fitted rankers, or scores that others gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import some_of
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.measures.scorer import Scorer, mean_of_counted
from rankinite.rankers.ranker import Ranker


def fitted_members(owner: str, given: Any) -> dict[str, Ranker]:
    """Return fitted rankers of the same features, by name.

    Parameters
    ----------
    owner
        Who asks, for error messages.
    given
        Rankers by name, or a sequence of them, whose names are then 1, 2, and so on.
    """
    if not isinstance(given, (Mapping, list, tuple)):
        raise UsageError(
            f"{owner}: members is a {type(given).__name__}; expected a list of fitted rankers, or "
            "several by name"
        )
    members = _named(owner, "members", given)
    for name, member in members.items():
        _refuse_unfitted(owner, name, member)
    (first, one), *others = members.items()
    for name, other in others:
        if other.feature_names_ != one.feature_names_:
            raise DataError(
                f"{owner}: the members {first!r} and {name!r} were fitted to different features: "
                + _difference(one.feature_names_, other.feature_names_)
            )
    return members


def _refuse_unfitted(owner: str, name: str, member: Any) -> None:
    if not isinstance(member, Ranker):
        raise UsageError(
            f"{owner}: the member {name!r} is a {type(member).__name__}; expected a fitted ranker "
            "(load_model reads one from a file); scores are combined with members=None, and given "
            "to fit and predict as member_scores"
        )
    if not member.is_fitted:
        raise UsageError(
            f"{owner}: the member {name!r}, a {type(member).__name__}, is not fitted yet; fit it "
            "first"
        )


def _difference(first: Sequence[str], second: Sequence[str]) -> str:
    only = [[f for f in ours if f not in set(theirs)] for ours, theirs in
            ((first, second), (second, first))]  # fmt: skip
    if not any(only):
        return "they stand in another order"
    parts = [f"only the {word} has {some_of(names)}"
             for word, names in zip(("first", "second"), only, strict=True) if names]  # fmt: skip
    return ", ".join(parts)


def scores_by_name(owner: str, given: Any, n_docs: int | None) -> dict[str, Floats]:
    """Return the scores of members by name, one finite number a document.

    Parameters
    ----------
    owner
        Who asks, for error messages.
    given
        Scores by name, or a matrix with one row a member; rows are called 1, 2, and so on.
    n_docs
        How many documents there are; as many as the first member has scores if None.
    """
    if isinstance(given, np.ndarray) and given.ndim != 2:
        raise DataError(
            f"{owner}: member_scores has the shape {given.shape}; expected one row a member and "
            "one column a document, or scores by name"
        )
    if not isinstance(given, (Mapping, list, tuple, np.ndarray)):
        raise UsageError(
            f"{owner}: member_scores is a {type(given).__name__}; expected one row of scores a "
            "member, or scores by name"
        )
    rows = {
        name: _numbers(owner, name, scores)
        for name, scores in _named(owner, "member_scores", given).items()
    }
    first, length = next((name, len(scores)) for name, scores in rows.items())
    for name, scores in rows.items():
        if n_docs is not None and len(scores) != n_docs:
            raise DataError(
                f"{owner}: the member {name!r} has {len(scores):,} scores for {n_docs:,} "
                "documents; expected one score a document"
            )
        if len(scores) != length:
            raise DataError(
                f"{owner}: the member {first!r} has {length:,} scores, and {name!r} has "
                f"{len(scores):,}; expected scores of the same documents"
            )
    return rows


def _numbers(owner: str, name: str, given: ArrayLike) -> Floats:
    try:
        scores = np.asarray(given, np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(
            f"{owner}: the scores of the member {name!r} cannot be made numbers: {problem}"
        ) from None
    if scores.ndim != 1:
        raise DataError(
            f"{owner}: the scores of the member {name!r} have the shape {scores.shape}; expected "
            "one score a document"
        )
    bad = ~np.isfinite(scores)
    if bad.any():
        doc = int(bad.argmax())
        raise DataError(
            f"{owner}: the member {name!r} has {scores[doc]} for document {doc}; expected finite "
            "scores"
        )
    return scores


def in_order(owner: str, rows: Mapping[str, Floats], names: Sequence[str]) -> Floats:
    """Return the scores as a matrix, one row a member, in the order of the names."""
    missing = [name for name in names if name not in rows]
    added = [name for name in rows if name not in set(names)]
    if missing or added:
        parts = [f"lacks {some_of(missing)}"] if missing else []
        parts += [f"has {some_of(added)} besides"] if added else []
        raise DataError(
            f"{owner}: member_scores {' and '.join(parts)}; expected those of {some_of(names)}"
        )
    return np.stack([rows[name] for name in names])


def _named(owner: str, word: str, given: Any) -> dict[str, Any]:
    pairs: Iterable[tuple[Any, Any]]
    pairs = given.items() if isinstance(given, Mapping) else enumerate(given, 1)
    found: dict[str, Any] = {}
    for key, member in pairs:
        if str(key) in found:
            raise UsageError(
                f"{owner}: two members are called {str(key)!r}; give each a name of its own"
            )
        found[str(key)] = member
    if not found:
        raise UsageError(f"{owner}: {word} is empty; give at least one member")
    return found


class Judge:
    """Measures scores of one data set, over and over.

    Parameters
    ----------
    owner
        Who asks, for error messages.
    data
        The data set.
    measures
        What to compute; the first decides.
    """

    def __init__(self, owner: str, data: RankingData, measures: Sequence[Measure]) -> None:
        labels = data.all_labels
        self._measuring = Scorer(measures, labels, data.offsets, data.top_grade)
        for measure, values in zip(measures, self.per_query(np.zeros(data.n_docs)), strict=True):
            if np.isnan(values).all():
                raise DataError(
                    f"{owner}: no query of the data counts for {measure}: none has a relevant "
                    "document; give others, or another measure"
                )

    def per_query(self, scores: Floats) -> Floats:
        """Return the value of every measure (rows) for every query (columns)."""
        return self._measuring.per_query(scores)

    def mean(self, scores: Floats) -> float:
        """Return the mean of the first measure over the queries that count."""
        return mean_of_counted(self.per_query(scores)[0])
