"""How many pairs of documents a measure learns from (Optimality, Sec. 7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.errors import DataError, UsageError
from rankinite.objectives.labels import read_only
from rankinite.objectives.lambdas import PairGradients
from rankinite.objectives.objective import Gradients
from rankinite.objectives.pair_kernels import count_pairs
from rankinite.objectives.plan import PAIRS


def effective_pairs(gradients: Gradients, scores: ArrayLike) -> int:
    """Return how many pairs of documents have a lambda that is not 0, in all queries together.

    These are the pairs whose documents differ in worth and whose swap changes the measure, one of
    them being above the truncation. A query of weight 0 has none.

    Parameters
    ----------
    gradients
        What `Lambdas` or `RankNet` made of a data set.
    scores
        One finite score a document.

    Examples
    --------
    Of three documents the second is the relevant one. It can change places with two others; the
    precision among the first two only changes if it goes to rank 3.

    >>> from rankinite.objectives.lambdas import Lambdas
    >>> from rankinite.objectives.objective import Targets
    >>> targets = Targets({None: np.array([0.0, 1.0, 0.0])}, np.array([0, 3]), top_grade=1.0)
    >>> [
    ...     effective_pairs(Lambdas(measure).prepare(targets), [3.0, 2.0, 1.0])
    ...     for measure in ("MAP", "P@2")
    ... ]
    [2, 1]
    """
    if not isinstance(gradients, PairGradients) or gradients.plan.kind != PAIRS:
        raise UsageError(
            f"effective_pairs: {type(gradients).__name__} are not made of all pairs; "
            "give what Lambdas or RankNet made of a data set"
        )
    given = read_only(scores)
    n_docs = int(gradients.plan.offsets[-1])
    if given.shape != (n_docs,):
        raise DataError(
            f"effective_pairs: the scores have the shape {given.shape}; expected ({n_docs},), "
            "one a document"
        )
    if not np.isfinite(given).all():
        doc = int(np.isfinite(given).argmin())
        raise DataError(
            f"effective_pairs: document {doc} has the score {given[doc]}; expected a finite number"
        )
    counts = np.empty(len(gradients.blocks) - 1, np.int64)
    count_pairs(given, gradients.blocks, gradients.plan, counts)
    return int(counts.sum())
