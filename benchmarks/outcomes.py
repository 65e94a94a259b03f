"""What a system reached on several folds, query by query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass
class Outcome:
    """What a system reached: for every measure one array a fold, one value a query."""

    values: dict[str, list[Floats]] = field(default_factory=lambda: defaultdict(list))
    n_trees: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def keep(self, per_query: Mapping[str, Floats]) -> None:
        """Add a fold: one value a query, by measure."""
        for measure, values in per_query.items():
            self.values[measure].append(values)

    def mean(self, measure: str) -> float:
        """Return the mean over folds of the means over queries."""
        return float(np.mean([np.nanmean(fold) for fold in self.values[measure]]))

    def last(self, measure: str) -> float:
        """Return the mean over the queries of the last fold."""
        return float(np.nanmean(self.values[measure][-1]))

    def pooled(self, measure: str) -> Floats:
        """Return the values of the queries of all folds."""
        return np.concatenate(self.values[measure])
