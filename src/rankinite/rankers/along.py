"""A measure of a net's rankings as its weights are moved: what local optimality is tested by."""

from __future__ import annotations

import numpy as np

from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.nets.net import Net
from rankinite.nets.perturbation import PerturbedScores
from rankinite.rankers.rounds import Watched


class AlongNet:
    """The value of a measure at a net's weights + step x direction; see `local_optimality`.

    Parameters
    ----------
    net
        The net.
    data
        The queries to measure.
    measure
        What the value is: the mean over the queries that count.
    start
        The scores that the net's are added to, one a document.
    """

    def __init__(self, net: Net, data: RankingData, measure: Measure, start: Floats) -> None:
        self._shifts = PerturbedScores(net, data.matrix, data.rows, start)
        self._watched = Watched(data, [measure], start[np.newaxis])
        self._measure = str(measure)

    @property
    def n_weights(self) -> int:
        """How many weights can be moved: all but the bias of the score, which moves no ranking."""
        return self._shifts.n_weights

    def __call__(self, directions: Floats, steps: Floats) -> Floats:
        """Return the values, one row a direction and one column a step."""
        values = np.empty((len(directions), len(steps)))
        for k, direction in enumerate(directions):
            scores_at = self._shifts.along(direction)
            for j, step in enumerate(steps):
                scores = scores_at(float(step))
                # Weights that were moved too far give no scores, and so no value.
                sound = np.isfinite(scores).all()
                values[k, j] = self._watched.measure(scores)[self._measure] if sound else np.nan
        return values
