"""The exact best mix of two rankers, and whether it is better than the better one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.combine.mix import BOUNDS, CONVEX, Mix, best_mix
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import evaluate_all
from rankinite.measures.measure import Measure
from rankinite.stats.t_test import gain_and_p

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mixing:
    """The best mix of two rankers on one data set.

    Attributes
    ----------
    names
        What the two are called.
    mix
        Their best mix.
    bounds
        The least and the largest alpha.
    scores
        The mixed scores.
    n_queries
        How many queries count.
    better
        Which end of alpha is better, 0 or 1.
    gain, p_value
        The mean difference between the best mix and that end, and the p-value of the paired
        t-test, on the queries that alpha was chosen by.
    """

    names: tuple[str, str]
    mix: Mix
    bounds: tuple[float, float]
    scores: Floats
    n_queries: int
    better: int
    gain: float
    p_value: float

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        best = self.mix
        return {
            "a": self.names[0],
            "b": self.names[1],
            "measure": best.measure,
            "form": best.form,
            "bounds": list(self.bounds),
            "queries": self.n_queries,
            "at_ends": list(best.at_ends),
            "alpha": best.alpha,
            "interval": list(best.interval),
            "value": best.value,
            "better_end": self.better,
            "gain": self.gain,
            "p_value": self.p_value,
            "peak": None if best.peak is None else dict(vars(best.peak)),
        }


def mix_scores(
    rows: Mapping[str, Floats],
    data: RankingData,
    measure: Measure,
    form: str = CONVEX,
    bounds: tuple[float, float] | None = None,
) -> Mixing:
    """Find the best mix of two rankers' scores, and compare it with the better end.

    Parameters
    ----------
    rows
        The scores of the two, by name.
    data, measure, form, bounds
        As in `best_mix`.
    """
    (first, a), (second, b) = rows.items()
    found = best_mix(a, b, data, measure, form=form, bounds=bounds)
    limits = (0.0, 1.0) if form == CONVEX else bounds or BOUNDS
    better = int(found.at_ends[1] > found.at_ends[0])
    end = (a, b)[better] if form == CONVEX else a + limits[better] * b
    mixed = found.scores(a, b)
    values = [
        one.per_query[str(measure)]
        for one in evaluate_all([mixed, end], data, measure, drop_single_label=False)
    ]
    gain, p_value = gain_and_p(*values)
    n_queries = int((~np.isnan(values[0])).sum())
    return Mixing((first, second), found, limits, mixed, n_queries, better, gain, p_value)
