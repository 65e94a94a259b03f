"""Averages of the members' standardised scores, with equal weights or with learned ones.

`Average` gives every member the weight 1. `Interpolation` finds weights by Powell's method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import LARGEST, Content, checked_array
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.core.lazy import LazyModule
from rankinite.core.params import YES_OR_NO, Constraint, Whole
from rankinite.core.types import Floats
from rankinite.ensembles.ensemble import Ensemble, LinearEnsemble
from rankinite.ensembles.members import (
    MemberScores,
    Scaling,
    fitted_members,
    member_scorer,
    weighted_sum,
)
from rankinite.measures.scorer import Scorer, mean_of_counted
from rankinite.measures.text import one_measure
from rankinite.rankers.ranker import Ranker

# Floats hold whole numbers up to here.
MOST_COUNTED = 1 << 53
optimize: Any = LazyModule("scipy.optimize")


class Average(LinearEnsemble):
    """The average of rankers: scores at zero mean and unit variance, each with weight 1.

    It was the winner's choice among many ways to combine rankers (Ensemble, Sec. 4.3). Means and
    variances are over all documents, not those of a query; they are learned once, from documents
    that the members were not fitted to, so that later a query can be scored alone.

    Parameters
    ----------
    members
        Fitted rankers, as a list or by name. None if fit and predict get their scores.
    scaled
        Whether scores are standardised. If not, the ensemble is their plain mean: for rankers
        whose scores have one scale already, such as the ten bags of one model in Ensemble,
        Sec. 4.3.

    Attributes
    ----------
    member_names_ : tuple of str
        Names of the members: 1, 2, and so on, unless they were passed by name.
    means_, scales_, weights_ : arrays
        A document's score is the sum over members of weight * (score - mean) / scale. For a plain
        mean of n members these are 0, 1 and 1 / n.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.RankingData([[0.0], [1.0], [0.5]], [0, 1, 2], [1, 1, 2])
    >>> average = rk.Average().fit(data, member_scores={"a": [0, 0, 3], "b": [-5, 5, 0]})
    >>> average.means_, average.scales_.round(4)
    (array([1., 0.]), array([1.4142, 4.0825]))
    >>> average.predict(None, member_scores={"a": [1], "b": [0]})
    array([0.])
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {"scaled": YES_OR_NO}

    def __init__(self, members: Any = None, *, scaled: bool = True) -> None:
        self.members = members
        self.scaled = scaled

    @classmethod
    def from_members(
        cls,
        members: Mapping[str, Ranker],
        *,
        means: ArrayLike | None = None,
        scales: ArrayLike | None = None,
    ) -> Self:
        """Make a fitted ensemble of fitted rankers, without data.

        Parameters
        ----------
        members
            Fitted rankers of the same features, by name.
        means, scales
            Mean and standard deviation of each member's scores; without them the ensemble is the
            plain mean of the scores.

        Examples
        --------
        >>> import rankinite as rk
        >>> data = rk.polynomials(10, n_features=3)
        >>> bags = {name: rk.MART(n_trees=2, random_state=int(name)).fit(data) for name in "12"}
        >>> average = rk.Average.from_members(bags)
        >>> average.weights_
        array([0.5, 0.5])
        """
        if (means is None) != (scales is None):
            raise UsageError(f"{cls.__name__}: means and scales belong together; give both or none")
        new = cls(members, scaled=means is not None)
        rankers = fitted_members(new._name, members)
        for name, member in rankers.items():
            # Such a member cannot predict from features, which is all that this ensemble will get.
            if isinstance(member, Ensemble) and not member.members_:
                raise UsageError(
                    f"{new._name}: the member {name!r}, a {type(member).__name__}, was fitted to "
                    "scores, not to rankers; give one whose members are rankers"
                )
        n = len(rankers)
        new.member_names_, new.members_ = tuple(rankers), rankers
        new.means_ = np.zeros(n) if means is None else _numbers(new._name, "means", means, n)
        new.scales_ = np.ones(n) if scales is None else _numbers(new._name, "scales", scales, n)
        if not (new.scales_ > 0.0).all():
            raise DataError(f"{new._name}: scales has {new.scales_.min()}; expected positive ones")
        new.weights_ = new._equal_weights(n)
        # Features are those of all members, which `fitted_members` has checked.
        first = next(iter(rankers.values()))
        new.feature_names_, new.n_features_in_ = first.feature_names_, first.n_features_in_
        # Members may come from data of different grades, and measures need the largest.
        new.top_grade_ = max(member.top_grade_ for member in rankers.values())
        return new

    def _scaling(self, scores: Floats) -> Scaling:
        if self.scaled:
            return super()._scaling(scores)
        return Scaling(np.zeros(len(scores)), np.ones(len(scores)))

    def _learn(self, scores: MemberScores) -> None:
        self.weights_ = self._equal_weights(len(scores.names))

    def _equal_weights(self, n_members: int) -> Floats:
        return np.full(n_members, 1.0 if self.scaled else 1.0 / n_members)


def _numbers(owner: str, name: str, values: ArrayLike, length: int) -> Floats:
    """Return one finite number per member."""
    try:
        numbers = np.array(values, np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"{owner}: {name} cannot be made numbers: {problem}") from None
    if numbers.shape != (length,):
        raise DataError(
            f"{owner}: {name} has the shape {numbers.shape}; expected one number for each of the "
            f"{length} members"
        )
    if not (np.abs(numbers) <= LARGEST).all():
        raise DataError(f"{owner}: {name} has NaN or numbers that are too large; got {numbers}")
    return numbers


class Interpolation(LinearEnsemble):
    """Rankers with the weights that Powell's method finds best for a measure.

    This is the interpolation that LambdaSMART, Sec. 5.5, compares model adaptation with. The search
    starts from equal weights and searches along one weight after the other, then along directions
    that helped. Weights are at least 0. On the data it is fitted to, the result is never worse
    than equal weights or the best single member. All scores are first scaled, as in `Average`.

    Parameters
    ----------
    members
        Fitted rankers, as a list or by name. None if fit and predict get their scores.
    measure
        Measure to maximise.
    most_evaluations
        Maximum number of evaluations of the measure, after equal weights and each member alone.

    Attributes
    ----------
    value_ : float
        Measure on the data that the ensemble was fitted to.
    n_evaluations_ : int
        Number of evaluations of the measure.
    member_names_ : tuple of str
        Names of the members.
    means_, scales_, weights_ : arrays
        A document's score is the sum over members of weight * (score - mean) / scale; the weights
        add up to 1.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.RankingData([[0.0], [1.0], [2.0]], [0, 1, 2], [1, 1, 1])
    >>> scores = {"good": [0, 1, 2], "bad": [3, 2, 1]}
    >>> rk.Interpolation(measure="NDCG").fit(data, member_scores=scores).value_
    1.0
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {"most_evaluations": Whole(1)}

    value_: float
    n_evaluations_: int

    def __init__(
        self, members: Any = None, *, measure: Any = "NDCG@10", most_evaluations: int = 5000
    ) -> None:
        self.members = members
        self.measure = measure
        self.most_evaluations = most_evaluations

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_measure(self._name, self.measure)

    def _learn(self, scores: MemberScores) -> None:
        measure = one_measure(self._name, self.measure)
        scorer = member_scorer(self._name, scores.data, [measure])
        search = _Search(scorer, scores.scaled)
        search.run(int(self.most_evaluations))
        self.weights_, self.value_ = search.best, search.value
        self.n_evaluations_ = search.n_evaluations

    def _arrays(self) -> dict[str, NDArray[Any]]:
        numbers = np.array([self.value_, self.n_evaluations_], np.float64)
        # A model file holds arrays, and a manifest that is the same for all ensembles.
        return {**super()._arrays(), "search": numbers}

    def _set_arrays(self, content: Content, inner: Ranker | None) -> None:
        super()._set_arrays(content, inner)
        search = checked_array(content.arrays, "search", np.float64, 2)
        if not (1 <= search[1] < MOST_COUNTED and search[1] == int(search[1])):
            raise ModelFileError("the file has no number of evaluations")
        self.value_, self.n_evaluations_ = float(search[0]), int(search[1])


class _Search:
    """A search for weights that keeps the best it has evaluated."""

    def __init__(self, scorer: Scorer, scaled: Floats) -> None:
        self._scorer = scorer
        self._scaled = scaled
        self.n_evaluations = 0
        self.best = np.zeros(len(scaled))
        self.value = -np.inf

    def run(self, most_evaluations: int) -> None:
        """Evaluate equal weights, each member alone, and Powell's path from equal weights."""
        n = len(self._scaled)
        equal = np.full(n, 1.0 / n)
        # First these, as Powell's path may miss them: the result is never worse than the average or
        # the best member. A path that only ties with equal weights does not replace them.
        for weights in (equal, *np.eye(n)):
            self._loss(weights)
        if n > 1:
            # Only proportions matter, and weights up to 1 can have any proportions.
            limits = {"maxfev": most_evaluations, "maxiter": most_evaluations}
            optimize.minimize(
                self._loss, equal, method="Powell", bounds=[(0, 1)] * n, options=limits
            )

    def _loss(self, weights: Floats) -> float:
        """Return minus the measure of the weights after division by their sum."""
        self.n_evaluations += 1
        total = float(weights.sum())
        if total <= 0.0:
            return 0.0  # all documents tie: no measure is below 0
        shares = weights / total
        values = self._scorer.per_query(weighted_sum(self._scaled, shares))
        value = mean_of_counted(values[0])
        if value > self.value:
            self.best, self.value = shares, value
        return -value
