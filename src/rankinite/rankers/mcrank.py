"""McRank: boosted trees that learn the chance of every grade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from rankinite.core.elementary import exp
from rankinite.core.errors import UsageError
from rankinite.core.types import Floats
from rankinite.objectives.objective import Objective
from rankinite.objectives.pointwise import MultiClass
from rankinite.rankers.parameters import McRankParameters
from rankinite.rankers.tree_ranker import PointwiseTreeRanker


class McRank(McRankParameters, PointwiseTreeRanker):
    """Multi-class boosting; the score is the expected grade (LambdaSMART, Sec. 2).

    A round grows one tree for each grade from 0 to the top grade; labels are whole numbers.

    Examples
    --------
    >>> import rankinite as rk
    >>> train = rk.polynomials(40, part="train", n_features=5)
    >>> model = rk.McRank(n_trees=10, n_leaves=7).fit(train)
    >>> rk.evaluate(model.predict(train), train, "NDCG@10").mean["NDCG@10"] > 0.6
    True
    """

    expected_failed_checks: ClassVar[Mapping[str, str]] = {
        **PointwiseTreeRanker.expected_failed_checks,
        "check_sample_weight_equivalence_on_dense_data": (
            "the start counts every grade once more than it occurs, so that none is impossible; "
            "weights are divided by the largest before, repeated documents are not, and with few "
            "documents the starts differ"
        ),
        "check_sample_weight_equivalence_on_sparse_data": (
            "as on dense data: a sparse matrix gives the same model"
        ),
    }
    # Scores of a base would be the same for all grades, and change nothing.
    base: ClassVar[Any] = None  # type: ignore[misc]

    @classmethod
    def _n_outputs(cls, top_grade: float) -> int:
        return int(top_grade) + 1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.monotone_constraints is not None:
            raise UsageError(
                "McRank: monotone_constraints are not possible: its score is the expected grade, "
                "which can fall although the trees of all grades are monotone; use MART or "
                "LambdaMART"
            )

    def objective(self) -> Objective:
        """Return the objective that training follows."""
        return MultiClass()

    def _ranking(self, scores: Floats) -> Floats:
        chances = exp(scores - scores.max(axis=0))
        total, expected = np.zeros((2, scores.shape[1]))
        # In this order also for a single document, whose classes numpy would add up in another.
        for grade, of_grade in enumerate(chances):
            total += of_grade
            expected += grade * of_grade
        return expected / total
