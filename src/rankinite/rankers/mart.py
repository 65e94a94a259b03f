"""MART: boosted regression trees on grades, the challenge's baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.elementary import exp
from rankinite.core.errors import UsageError
from rankinite.core.types import Floats
from rankinite.data.queries import query_numbers
from rankinite.objectives.objective import Objective
from rankinite.objectives.pointwise import CentredSquaredError, Logistic, SquaredError
from rankinite.rankers.parameters import MARTParameters
from rankinite.rankers.tree_ranker import PointwiseTreeRanker

LOSSES: dict[str, type[SquaredError] | type[CentredSquaredError] | type[Logistic]] = {
    "squared": SquaredError,
    "centred": CentredSquaredError,
    "logistic": Logistic,
}


class MART(MARTParameters, PointwiseTreeRanker):
    """Boosted regression trees that predict the grade of a document.

    The defaults are those of the challenge's GBDT baseline (Challenge, Sec. 5).

    Examples
    --------
    >>> import rankinite as rk
    >>> train = rk.polynomials(40, part="train", n_features=5)
    >>> model = rk.MART(n_trees=50, n_leaves=7).fit(train)
    >>> rk.evaluate(model.predict(train), train, "NDCG@10").mean["NDCG@10"] > 0.6
    True
    """

    expected_failed_checks: ClassVar[Mapping[str, str]] = {
        **PointwiseTreeRanker.expected_failed_checks,
        "check_sample_weight_equivalence_on_dense_data": (
            "with 15 documents and 30 features many splits gain the same, or nothing; rounding, "
            "which weights change, then chooses the feature, and decides whether a leaf whose "
            "labels are equal is split. And by default documents are drawn for every tree"
        ),
        "check_sample_weight_equivalence_on_sparse_data": (
            "as on dense data: a sparse matrix gives the same model"
        ),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        # Chances are at most 1, on which the formula of `_prediction` relies; grades are not.
        if self.per_query and self.loss != "logistic":
            raise UsageError(
                f"MART: per_query is for chances, and loss={self.loss!r} predicts grades; "
                "leave it, or set loss='logistic'"
            )

    def objective(self) -> Objective:
        """Return the objective that training follows."""
        return LOSSES[self.loss]()

    def _ranking(self, scores: Floats) -> Floats:
        chances: Floats = 1.0 / (1.0 + exp(-scores[0])) if self.loss == "logistic" else scores[0]
        return chances

    def _prediction(self, scores: Floats, X: Any, qid: ArrayLike | None) -> Floats:
        chances = self._ranking(scores)
        if not self.per_query:
            return chances
        numbers = query_numbers(self._name, X, len(chances), qid)
        # 0 is a lower bound of chances.
        largest = np.zeros(numbers.max(initial=-1) + 1)
        np.maximum.at(largest, numbers, chances)
        # P_max (1 + P - P_max): Ensemble, Sec. 4.2.
        top = largest[numbers]
        return top * (1.0 + chances - top)
