"""What boosting starts from: a fitted ranker, another fitted model, or scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.data.ranking_data import RankingData
from rankinite.rankers.ranker import Ranker

Floats = NDArray[np.float64]


def is_model(base: Any) -> bool:
    """Tell whether a base can be asked for scores, or is scores itself."""
    return hasattr(base, "predict") and not isinstance(base, type)


def model_scores(
    owner: str,
    base: Any,
    X: Any,
    qid: ArrayLike | None,
    n_docs: int,
    called: str = "the base",
) -> Floats:
    """Ask a base for scores; rankers take all that we take, other models arrays and frames."""
    kind = type(base).__name__
    if isinstance(base, Ranker):
        if not base.is_fitted:
            raise UsageError(f"{owner}: {called}, a {kind}, is not fitted yet; fit it first")
        return base.predict(X, qid)
    found = base.predict(X.X if isinstance(X, RankingData) else X)
    return given_scores(owner, f"what {called}, a {kind}, predicts", found, n_docs)


def given_scores(owner: str, name: str, given: ArrayLike, n_docs: int) -> Floats:
    """Check scores that were given for some documents."""
    try:
        scores = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"{owner}: {name} is a {type(given).__name__}; expected a fitted ranker (load_model "
            "reads one from a file), or one score a document"
        ) from None
    if scores.shape != (n_docs,):
        raise DataError(
            f"{owner}: {name} has the shape {scores.shape}; expected a fitted ranker, or one "
            f"score for each of the {n_docs} documents"
        )
    if not np.isfinite(scores).all():
        doc = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise DataError(
            f"{owner}: {name} has {scores[doc]} for document {doc}; expected finite scores"
        )
    return scores
