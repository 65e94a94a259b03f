"""What a combination of scores is worth on one data set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import mean_of_counted
from rankinite.measures.compute import Measuring
from rankinite.measures.measure import Measure

Floats = NDArray[np.float64]


class Judge:
    """Measures scores of one data set, over and over.

    Parameters
    ----------
    owner
        Who asks, for error messages.
    data
        The data set.
    measures
        What to compute; the first decides.
    """

    def __init__(self, owner: str, data: RankingData, measures: Sequence[Measure]) -> None:
        labels = data.all_labels
        self._measuring = Measuring(measures, labels, data.offsets, data.top_grade)
        for measure, values in zip(measures, self.per_query(np.zeros(data.n_docs)), strict=True):
            if np.isnan(values).all():
                raise DataError(
                    f"{owner}: no query of the data counts for {measure}: none has a relevant "
                    "document; give others, or another measure"
                )

    def per_query(self, scores: Floats) -> Floats:
        """Return the value of every measure (rows) for every query (columns)."""
        return self._measuring.measure(scores, again=True)

    def mean(self, scores: Floats) -> float:
        """Return the mean of the first measure over the queries that count."""
        return mean_of_counted(self.per_query(scores)[0])
