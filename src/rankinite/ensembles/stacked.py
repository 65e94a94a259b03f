"""Stacked: a ranker that learns from the members' scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.lazy import LazyModule
from rankinite.core.params import Constraint
from rankinite.core.progress import Progress
from rankinite.core.types import Floats, Floats32
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.ensemble import Ensemble
from rankinite.ensembles.members import MemberScores, Scaling, in_order
from rankinite.measures.measure import Measure
from rankinite.rankers.columns import InputData
from rankinite.rankers.inputs import VALID, Valid, sets_by_name, validation_sets
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.model_file import INNER
from rankinite.rankers.parameters import PAPER
from rankinite.rankers.ranker import Ranker

sklearn: Any = LazyModule("sklearn")


def net_of_scores(measure: str, hidden: int = 0, random_state: Any = 0) -> LambdaRank:
    """Return the net that combines scores, as in the papers: without hidden units it is linear.

    The scores of members are alike and few, so that it needs no ranks of them.
    """
    return LambdaRank(measure, preset=PAPER, hidden=hidden, n_epochs=100, random_state=random_state)


class Stacked(Ensemble):
    """A ranker on top of others, whose scores are its features.

    With ``ranker=LambdaRank("NDCG@10", preset="paper", hidden=0)`` it learns one weight per member,
    and with ``hidden=10`` a net of two layers: the combiners that Ensemble, Table 1, compares. All
    scores are first scaled, as in `Average`.

    Parameters
    ----------
    members
        Fitted rankers, as a list or by name. None if fit and predict get their scores.
    ranker
        Unfitted ranker that learns from the scores; a linear `LambdaRank` for NDCG@10 if None.

    Attributes
    ----------
    ranker_ : ranker
        The fitted ranker on top; its features are the members, by name.
    member_names_ : tuple of str
        Names of the members.
    means_, scales_ : arrays
        Mean and standard deviation of each member's scores in fit.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.polynomials(40, n_features=4)
    >>> scores = {"a": data.X[:, 0], "b": data.X[:, 1]}
    >>> linear = rk.Stacked(ranker=rk.LambdaRank("NDCG@10", preset="paper", hidden=0, n_epochs=5))
    >>> linear.fit(data, member_scores=scores).ranker_.feature_names_
    ('a', 'b')
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {}

    ranker_: Ranker

    def __init__(self, members: Any = None, *, ranker: Any = None) -> None:
        self.members = members
        self.ranker = ranker

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        member_scores: Any = None,
        valid: Valid = None,
        valid_scores: Any = None,
        progress: Progress | bool | None = None,
    ) -> Self:
        """Fit the ranker on top to the members' scores.

        Parameters
        ----------
        X, y, qid, group, member_scores
            Documents that the members were not fitted to, and with ``members=None`` the scores
            of each member for them, by name, or one row per member.
        valid
            One or several validation sets, as in `LambdaMART.fit`.
        valid_scores
            With ``members=None``: the members' scores for the validation set; for several sets,
            by the names of the sets.
        progress
            True for a progress bar, or a progress reporter, as in `LambdaMART.fit`.
        """
        # A wrong ranker is refused before the members compute their scores.
        inner = self._new_ranker()
        scores = self._begin_fit(X, y, qid, group, member_scores)
        # The members look categories up by their texts, so that the sets keep their own codes.
        names = scores.data.feature_names
        categorical = [name for name in self._known_categories() if name in set(names)]
        sets = validation_sets(self._name, valid, names, None, categorical=categorical)
        if valid_scores is not None and (self.members is not None or not sets):
            raise UsageError(
                f"{self._name}: valid_scores were given, but "
                + ("there is no validation set" if not sets else "the members are rankers")
                + "; leave them out"
            )
        values = sets_by_name(valid)
        valid_sets = {
            name: self._valid_set(name, inputs, values[name], scores, valid_scores)
            for name, inputs in sets.items()
        }
        train = _with_scores_as_features(scores.data, scores.names, scores.scaled)
        inner.fit(train, valid=valid_sets or None, progress=progress)
        self.ranker_ = inner
        self._end_fit(scores)
        return self

    def _new_ranker(self) -> Any:
        if self.ranker is None:
            return net_of_scores("NDCG@10")
        if not (isinstance(self.ranker, Ranker) and self.ranker.learns_in_rounds):
            raise UsageError(
                f"{self._name}: ranker is a {type(self.ranker).__name__}; expected a ranker that "
                "learns, such as LambdaRank(hidden=0)"
            )
        return sklearn.clone(self.ranker)

    def _valid_set(
        self, name: str, inputs: InputData, value: Any, train: MemberScores, valid_scores: Any
    ) -> RankingData:
        """Return a validation set whose features are the members' scores."""
        data, member_scores = inputs.data, None
        if self.members is None:
            member_scores = self._scores_for(name, valid_scores)
        # The members get what the caller passed, as they do in predict: an array of numbers would
        # say nothing of the categories that its codes stand for.
        X = data if isinstance(value, RankingData) else value[0]
        rows = self._scores_by_name(inputs, X, member_scores)
        scores = in_order(self._name, rows, train.names)
        scaled = train.scaling.apply(self._name, train.names, scores)
        return _with_scores_as_features(data, train.names, scaled)

    def _scores_for(self, name: str, valid_scores: Any) -> Any:
        """Return the scores of a validation set, by its name unless it is the only one."""
        # Scores by member and scores by set are both mappings; the name of a set tells them apart.
        if isinstance(valid_scores, Mapping) and name in valid_scores:
            return valid_scores[name]
        if valid_scores is None or name != VALID:
            raise UsageError(
                f"{self._name}: the members are scores; give theirs for the validation set "
                f"{name!r} as valid_scores"
            )
        return valid_scores

    def _combine(self, scaled: Floats, qid: NDArray[Any] | None) -> Floats:
        return self.ranker_.predict(_as_columns(scaled), qid)

    def with_member_features(self, data: RankingData) -> RankingData:
        """Return a data set with the members' scores as features, which `ranker_` ranks.

        Parameters
        ----------
        data
            Documents with the members' features.
        """
        self._check_fitted()
        scores = self._scores_to_combine(data, None, None)
        scaled = Scaling(self.means_, self.scales_).apply(self._name, self.member_names_, scores)
        return _with_scores_as_features(data, self.member_names_, scaled)

    def _score_measure(self) -> Measure:
        return self.ranker_._score_measure()

    def _rankers_inside(self) -> dict[str, Ranker]:
        return {**super()._rankers_inside(), INNER: self.ranker_}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def _set_arrays(self, content: Content, inner: Ranker | None) -> None:
        # Its features are the scores in this order; other names would mean other columns.
        fits = inner is not None and inner.feature_names_ == self.member_names_
        if inner is None or not fits or not inner.learns_in_rounds:
            raise ModelFileError("the file has no ranker that takes the scores of its members")
        self.ranker_ = inner
        self.ranker = sklearn.clone(inner)


def _with_scores_as_features(
    data: RankingData, names: Sequence[str], scaled: Floats
) -> RankingData:
    """Return the data set with the members' scores as its features."""
    return RankingData(
        _as_columns(scaled),
        data.y,
        data.qid,
        labels=data.labels,
        query_weight=data.query_weight,
        feature_names=names,
        top_grade=data.top_grade,
    )


def _as_columns(scaled: Floats) -> Floats32:
    """Return one column per member, clipped to the range of float32 features."""
    # Scores are float64 and features float32, where a larger number would become infinite; rankers
    # refuse infinite features.
    largest = np.finfo(np.float32).max
    return np.ascontiguousarray(scaled.T.clip(-largest, largest), dtype=np.float32)
