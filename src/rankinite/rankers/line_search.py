"""The line search of boosting: the exact best weight of each tree (LambdaSMART, Sec. 4 and 5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError
from rankinite.data.ranking_data import RankingData
from rankinite.measures.along import Following
from rankinite.measures.measure import Measure

Floats = NDArray[np.float64]


def following(measure: Measure, data: RankingData, query_weight: Floats | None = None) -> Following:
    """Return a measure of a data set, to be followed along lines of scores."""
    return Following(measure, data.all_labels, data.offsets, data.top_grade, query_weight)


def following_some(
    owner: str, measure: Measure, data: RankingData, query_weight: Floats | None = None
) -> Following:
    """Return the same, or refuse data in which no query counts."""
    found = following(measure, data, query_weight)
    if np.isnan(found.measure(np.zeros(data.n_docs))):
        raise DataError(
            f"{owner}: no query of the data counts for {measure}: none has a relevant document; "
            "give others, or another measure"
        )
    return found


@dataclass(frozen=True)
class LineSearch:
    """How a tree gets its weight.

    Attributes
    ----------
    on
        The validation set on which the weight is best; the training data if None.
    measure
        What is best there.
    bounds
        The least and the largest weight.
    """

    on: str | None
    measure: Following
    bounds: Sequence[float]

    def alpha(self, scores: Floats, direction: Floats) -> float:
        """Return the weight with which the direction, added to the scores, is best."""
        low, high = self.bounds
        return self.measure.best_step(scores, direction, low, high, with_peaks=False).alpha
