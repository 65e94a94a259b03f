"""Members of an ensemble and their scores: checks, the scale of each member, and their sum.

Every ensemble works on one matrix: a row of standardised scores per member. The scores come from
fitted rankers (`fitted_members`, `predict_all`), or from elsewhere (`scores_by_name`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.container import LARGEST
from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import some_of
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.measures.scorer import Scorer
from rankinite.rankers.ranker import Ranker

# Relative to the largest score: a smaller standard deviation is rounding, not information.
ROUNDING = 2.0**-46


@dataclass(frozen=True)
class Scaling:
    """Standardisation of the members' scores to zero mean and unit variance (Ensemble, Sec. 4.3).

    Attributes
    ----------
    means, scales
        Mean and standard deviation of each member's scores.
    """

    means: Floats
    scales: Floats

    @classmethod
    def fit(cls, scores: Floats) -> Scaling:
        """Learn the scales of scores, one row per member; constant scores have scale 1.

        Means are over all documents, not over those of a query, so that a member's confidence in
        a query stays in its scores.

        Examples
        --------
        >>> Scaling.fit(np.array([[1.0, 3.0], [5.0, 5.0]]))
        Scaling(means=array([2., 5.]), scales=array([1., 1.]))
        """
        # Relative to the largest score, so that no square overflows or underflows.
        largest = np.abs(scores).max(axis=1, keepdims=True)
        largest[largest == 0.0] = 1.0
        relative = scores / largest
        spreads = relative.std(axis=1)
        scales = spreads * largest[:, 0]
        # A constant member ranks nothing. Divided by a deviation that is mere rounding, its noise
        # would count as much as the scores of the others.
        constant = (spreads <= ROUNDING) | (scales < np.finfo(np.float64).tiny)
        return cls(relative.mean(axis=1) * largest[:, 0], np.where(constant, 1.0, scales))

    def apply(self, owner: str, names: Sequence[str], scores: Floats) -> Floats:
        """Return standardised scores, one row per member."""
        # An overflow gives infinity, which is refused below by a sentence with the document.
        with np.errstate(over="ignore"):
            scaled: Floats = (scores - self.means[:, None]) / self.scales[:, None]
        bad = np.abs(scaled) > LARGEST
        if bad.any():
            member, doc = np.argwhere(bad)[0]
            raise DataError(
                f"{owner}: the score {scores[member, doc]:g} of the member {names[member]!r} for "
                f"document {doc} is too far from the scores in fit, whose standard deviation is "
                f"{self.scales[member]:g}"
            )
        return scaled


def weighted_sum(scaled: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of rows."""
    # Row by row: a matrix product may add in another order for other numbers of documents, and
    # a document's score must not depend on the documents beside it.
    total = np.zeros(scaled.shape[1])
    for row, weight in zip(scaled, weights, strict=True):
        total += weight * row
    return total


@dataclass(frozen=True)
class MemberScores:
    """Training data of an ensemble: the members' scores of labelled documents.

    Attributes
    ----------
    data
        The documents, with labels and queries.
    names
        Names of the members.
    scaling, scaled
        Standardisation of the scores, and the standardised scores, one row per member.
    """

    data: RankingData
    names: tuple[str, ...]
    scaling: Scaling
    scaled: Floats


def member_scorer(owner: str, data: RankingData, measures: Sequence[Measure]) -> Scorer:
    """Return the scorer of a data set, in which some query must count for each measure.

    Parameters
    ----------
    owner
        Name that error messages begin with.
    data
        Data set on which ensembles are measured.
    measures
        Measures to compute; the first decides.
    """
    scorer = Scorer(measures, data.all_labels, data.offsets, data.top_grade)
    # Which queries count does not depend on the scores.
    values = scorer.per_query(np.zeros(data.n_docs))
    for measure, row in zip(measures, values, strict=True):
        if np.isnan(row).all():
            raise DataError(
                f"{owner}: no query of the data counts for {measure}: none has a relevant "
                "document; give others, or another measure"
            )
    return scorer


def predict_all(members: Mapping[str, Ranker], X: Any, qid: ArrayLike | None) -> Floats:
    """Return the predictions of members, one row each."""
    return np.stack([member.predict(X, qid) for member in members.values()])


def fitted_members(owner: str, members: Any) -> dict[str, Ranker]:
    """Return fitted rankers of the same features, by name.

    Parameters
    ----------
    owner
        Name that error messages begin with.
    members
        Rankers by name, or a sequence of them, whose names are then 1, 2, and so on.
    """
    if not isinstance(members, (Mapping, list, tuple)):
        raise UsageError(
            f"{owner}: members is a {type(members).__name__}; expected a list of fitted rankers, "
            "or several by name"
        )
    rankers = _named(owner, "members", members)
    for name, ranker in rankers.items():
        _refuse_unfitted(owner, name, ranker)
    # Members score the same X, so its columns have to mean the same to all of them.
    (first_name, first), *others = rankers.items()
    for name, other in others:
        if other.feature_names_ != first.feature_names_:
            raise DataError(
                f"{owner}: the members {first_name!r} and {name!r} were fitted to different "
                f"features: {_difference(first.feature_names_, other.feature_names_)}"
            )
    return rankers


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
        return "they are in another order"
    parts = [f"only the {word} has {some_of(names)}"
             for word, names in zip(("first", "second"), only, strict=True) if names]  # fmt: skip
    return ", ".join(parts)


def scores_by_name(owner: str, member_scores: Any, n_docs: int | None) -> dict[str, Floats]:
    """Return the scores of members by name, one finite number per document.

    Parameters
    ----------
    owner
        Name that error messages begin with.
    member_scores
        Scores by name, or a matrix with one row per member; rows are called 1, 2, and so on.
    n_docs
        Number of documents; that of the first member's scores if None.
    """
    # Otherwise a vector would pass for many members, and the sentence be about its first number.
    if isinstance(member_scores, np.ndarray) and member_scores.ndim != 2:
        raise DataError(
            f"{owner}: member_scores has the shape {member_scores.shape}; expected one row per "
            "member and one column per document, or scores by name"
        )
    if not isinstance(member_scores, (Mapping, list, tuple, np.ndarray)):
        raise UsageError(
            f"{owner}: member_scores is a {type(member_scores).__name__}; expected one row of "
            "scores per member, or scores by name"
        )
    rows = {
        name: _numbers(owner, name, scores)
        for name, scores in _named(owner, "member_scores", member_scores).items()
    }
    first, length = next((name, len(scores)) for name, scores in rows.items())
    for name, scores in rows.items():
        if n_docs is not None and len(scores) != n_docs:
            raise DataError(
                f"{owner}: the member {name!r} has {len(scores):,} scores for {n_docs:,} "
                "documents; expected one score per document"
            )
        if len(scores) != length:
            raise DataError(
                f"{owner}: the member {first!r} has {length:,} scores, and {name!r} has "
                f"{len(scores):,}; expected scores of the same documents"
            )
    return rows


def _numbers(owner: str, name: str, values: ArrayLike) -> Floats:
    try:
        scores = np.asarray(values, np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(
            f"{owner}: the scores of the member {name!r} cannot be made numbers: {problem}"
        ) from None
    if scores.ndim != 1:
        raise DataError(
            f"{owner}: the scores of the member {name!r} have the shape {scores.shape}; expected "
            "one score per document"
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
    """Return the scores as a matrix, one row per member, in the order of the names."""
    # By name, as scores may come in another order than in fit. A member too many is refused as
    # well: more likely it is misspelt than superfluous.
    missing = [name for name in names if name not in rows]
    added = [name for name in rows if name not in set(names)]
    if missing or added:
        parts = [f"lacks {some_of(missing)}"] if missing else []
        parts += [f"has {some_of(added)} besides"] if added else []
        raise DataError(
            f"{owner}: member_scores {' and '.join(parts)}; expected those of {some_of(names)}"
        )
    return np.stack([rows[name] for name in names])


def _named(owner: str, argument: str, values: Any) -> dict[str, Any]:
    pairs: Iterable[tuple[Any, Any]]
    pairs = values.items() if isinstance(values, Mapping) else enumerate(values, 1)
    by_name: dict[str, Any] = {}
    for key, member in pairs:
        if str(key) in by_name:  # such as 1 and "1"
            raise UsageError(
                f"{owner}: two members are called {str(key)!r}; give each a name of its own"
            )
        by_name[str(key)] = member
    if not by_name:
        raise UsageError(f"{owner}: {argument} is empty; give at least one member")
    return by_name
