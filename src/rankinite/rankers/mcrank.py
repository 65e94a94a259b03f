"""McRank: boosted trees that learn the chance of every grade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from rankinite.core.progress import Progress
from rankinite.core.types import Floats
from rankinite.objectives.objective import Objective
from rankinite.objectives.pointwise import MultiClass
from rankinite.rankers.callbacks import Callback
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.inputs import Valid, labelled_weights, refuse_unknown
from rankinite.rankers.parameters import McRankParameters
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.trees.binning import BinnedData


class McRank(McRankParameters, TreeRanker):
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
        **TreeRanker.expected_failed_checks,
        "check_sample_weight_equivalence_on_dense_data": (
            "the start counts every grade once more than it occurs, so that none is impossible; "
            "weights are divided by the largest before, repeated documents are not, and with few "
            "documents the starts differ"
        ),
    }
    # Scores of a base would be the same for all grades, and change nothing.
    base: ClassVar[Any] = None  # type: ignore[misc]

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        valid: Valid = None,
        query_weight: ArrayLike | None = None,
        valid_base: Any = None,
        binned: BinnedData | None = None,
        callbacks: Sequence[Callback] = (),
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
        diagnostics: Diagnostics | None = None,
        **unknown: Any,
    ) -> Self:
        """Grow trees; as `MART.fit`.

        Parameters
        ----------
        X, y, qid, valid, query_weight, valid_base, binned, callbacks, progress, checkpoint, \
diagnostics
            As in `LambdaMART.fit`.
        sample_weight
            One weight per document, as in `MART.fit`.
        """
        refuse_unknown(self._name, unknown)
        return self._train(
            X,
            y,
            qid=qid,
            valid=valid,
            query_weight=query_weight,
            valid_base=valid_base,
            callbacks=callbacks,
            progress=progress,
            checkpoint=checkpoint,
            diagnostics=diagnostics,
            sample_weight=labelled_weights(X, sample_weight),
            binned=binned,
        )

    @classmethod
    def _n_outputs(cls, top_grade: float) -> int:
        return int(top_grade) + 1

    def objective(self) -> Objective:
        """Return the objective that training follows."""
        return MultiClass()

    def _ranking(self, scores: Floats) -> Floats:
        grades = np.arange(len(scores), dtype=np.float64)
        expected: Floats = grades @ softmax(scores, axis=0)
        return expected
