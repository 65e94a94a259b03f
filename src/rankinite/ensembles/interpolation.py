"""Interpolation: weights of the members by Powell's method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from rankinite.core.container import Content
from rankinite.core.params import Constraint, Whole
from rankinite.core.types import Floats
from rankinite.ensembles.ensemble import LinearEnsemble, MemberScores, read_numbers, weighted_sum
from rankinite.ensembles.members import member_scorer
from rankinite.measures.scorer import Scorer, mean_of_counted
from rankinite.measures.text import one_measure
from rankinite.rankers.ranker import Ranker


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
        return {**super()._arrays(), "search": numbers}

    def _set_arrays(self, content: Content, inner: Ranker | None) -> None:
        super()._set_arrays(content, inner)
        self.value_, n_evaluations = read_numbers(content, "search", 2).tolist()
        self.n_evaluations_ = int(n_evaluations)


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
        for weights in (equal, *np.eye(n)):
            self._loss(weights)
        if n > 1:
            # Only proportions matter, and weights up to 1 can have any proportions.
            limits = {"maxfev": most_evaluations, "maxiter": most_evaluations}
            minimize(self._loss, equal, method="Powell", bounds=[(0, 1)] * n, options=limits)

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
