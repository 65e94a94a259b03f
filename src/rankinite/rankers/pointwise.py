"""What MART and McRank have in common: documents can be weighed one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.progress import Progress
from rankinite.data.ranking_data import RankingData
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.inputs import Valid, refuse_unknown
from rankinite.rankers.rounds import Callback
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.trees.binned_data import BinnedData


class PointwiseRanker(TreeRanker):
    """A ranker of boosted trees that learns from documents one by one.

    A document of weight 2 counts like two documents, one of weight 0 like none. Where
    scikit-learn's check of this does not hold, ``expected_failed_checks`` says why.
    """

    expected_failed_checks: ClassVar[Mapping[str, str]] = {
        **TreeRanker.expected_failed_checks,
        "check_sample_weight_equivalence_on_dense_data": (
            "with 15 documents and 30 features many splits gain the same, or nothing; rounding, "
            "which weights change, then chooses the feature, and decides whether a leaf whose "
            "labels are equal is split. And by default documents are drawn for every tree"
        ),
    }

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
        """Grow trees; the parameters are those of `LambdaMART.fit`, and one more.

        Parameters
        ----------
        X, y, qid, valid, query_weight, valid_base, binned, callbacks, progress, checkpoint, \
diagnostics
            As in `LambdaMART.fit`.
        sample_weight
            One weight a document.
        """
        refuse_unknown(self._name, unknown)
        return self._fit(
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
            sample_weight=_of_labelled(X, sample_weight),
            binned=binned,
        )


def _of_labelled(X: Any, sample_weight: ArrayLike | None) -> ArrayLike | None:
    """Return the weights with 0 for documents without a label, which shall be as if not there."""
    if not isinstance(X, RankingData) or not np.isnan(X.y).any():
        return sample_weight
    labelled = ~np.isnan(X.y)
    if sample_weight is None:
        return labelled.astype(np.float64)
    weights = np.asarray(sample_weight)
    # Weights of a wrong kind or number go on as they are, to where they are refused.
    fits = weights.shape == labelled.shape and weights.dtype.kind in "biuf"
    return np.where(labelled, weights, 0.0) if fits else sample_weight
