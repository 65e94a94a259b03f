"""Interpolation: weights of the members by Powell's search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from rankinite.core.container import Content
from rankinite.core.params import Constraint, Whole
from rankinite.core.types import Floats
from rankinite.ensembles.ensemble import Gathered, MeasuredEnsemble, read_numbers, weighted_sum
from rankinite.ensembles.members import Judge
from rankinite.measures.text import one_measure
from rankinite.rankers.ranker import Ranker


class Interpolation(MeasuredEnsemble):
    """Rankers with the weights that Powell's search finds best for a measure.

    This is the interpolation that LambdaSMART, Sec. 5.5, compares model adaptation with. The search
    starts from equal weights and looks along one weight after the other, then along what helped.
    It is kept to weights of at least 0. What it ends with is never worse, on the data it is fitted
    to, than equal weights or the best member alone. All scores are first scaled, as in `Average`.

    Parameters
    ----------
    members
        Fitted rankers, as a list or by name. None if their scores are given to fit and predict.
    measure
        What the weights should be best for.
    most_evaluations
        How often the search may measure, after equal weights and every member alone.

    Attributes
    ----------
    value_ : float
        The measure on the data that the combination was fitted to.
    n_evaluations_ : int
        How often the search measured.
    member_names_ : tuple of str
        The names of the members.
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

    def _learn(self, gathered: Gathered) -> None:
        judge = Judge(self._name, gathered.data, [one_measure(self._name, self.measure)])
        search = _Search(judge, gathered.scaled)
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
    """A search for weights, which remembers the best that it has seen."""

    def __init__(self, judge: Judge, scaled: Floats) -> None:
        self._judge = judge
        self._scaled = scaled
        self.n_evaluations = 0
        self.best = np.zeros(len(scaled))
        self.value = -np.inf

    def run(self, most_evaluations: int) -> None:
        """Try equal weights, every member alone, and where Powell's search leads from the first."""
        n = len(self._scaled)
        equal = np.full(n, 1.0 / n)
        for weights in (equal, *np.eye(n)):
            self._loss(weights)
        if n > 1:
            # Only proportions matter: weights up to 1 can have any.
            limits = {"maxfev": most_evaluations, "maxiter": most_evaluations}
            minimize(self._loss, equal, method="Powell", bounds=[(0, 1)] * n, options=limits)

    def _loss(self, weights: Floats) -> float:
        """Return minus the measure of weights, brought to sum 1."""
        self.n_evaluations += 1
        total = float(weights.sum())
        if total <= 0.0:
            return 0.0  # no ranking at all; none is worth less
        shares = weights / total
        value = self._judge.mean(weighted_sum(self._scaled, shares))
        if value > self.value:
            self.best, self.value = shares, value
        return -value
