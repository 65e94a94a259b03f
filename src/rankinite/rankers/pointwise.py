"""What MART and McRank have in common: documents can be weighed one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike

from rankinite.core.progress import Progress
from rankinite.measures.measure import NDCG, Measure
from rankinite.rankers.boosting import Callback
from rankinite.rankers.inputs import Valid
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.trees.binned_data import BinnedData


class PointwiseRanker(TreeRanker):
    """A ranker of boosted trees that learns from documents one by one."""

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
    ) -> Self:
        """Grow trees; the parameters are those of `LambdaMART.fit`, and one more.

        Parameters
        ----------
        X, y, qid, valid, query_weight, valid_base, binned, callbacks, progress, checkpoint
            As in `LambdaMART.fit`.
        sample_weight
            One weight a document.
        """
        return self._fit(
            X, y, qid, valid, query_weight, sample_weight, valid_base, binned, callbacks, progress,
            checkpoint,
        )  # fmt: skip

    def _default_measures(self) -> Sequence[Measure]:
        return [NDCG(depth=10)]
