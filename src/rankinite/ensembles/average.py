"""Average: the sum of the members' standardised scores, each with weight 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import Constraint, OneOf
from rankinite.core.types import Floats
from rankinite.ensembles.ensemble import LARGEST, Ensemble, LinearEnsemble, MemberScores, Scaling
from rankinite.ensembles.members import fitted_members
from rankinite.rankers.ranker import Ranker


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

    constraints: ClassVar[Mapping[str, Constraint]] = {"scaled": OneOf([False, True])}

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
        first = next(iter(rankers.values()))
        new.feature_names_, new.n_features_in_ = first.feature_names_, first.n_features_in_
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
