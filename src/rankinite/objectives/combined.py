"""Several lambda gradients at once: a weighted sum, with weights that may change by iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rankinite.objectives import kernels
from rankinite.objectives.blend_kernels import add_shares
from rankinite.objectives.labels import read_only
from rankinite.objectives.lambdas import NORMALISE, PairGradients
from rankinite.objectives.objective import EVERY_QUERY, Floats
from rankinite.objectives.plan import Blend, alone

Shares = Callable[[int], Sequence[float]]


class CombinedGradients:
    """The weighted sum of the lambdas, and of the weights, of several parts.

    Where a part has the share 1 it is followed alone, and gives the bits that it would give by
    itself. The sum of several is divided by its standard deviation in each query if that is how
    lambdas are normalised (Objectives, Sec. 5.3); by distance each part is normalised by itself.

    Parameters
    ----------
    parts
        Two or more of the same data set; how they are normalised does not matter.
    shares
        From the iteration to what each part is multiplied by; they sum to 1.
    normalise
        How lambdas are normalised, as in `Lambdas`.
    fixed
        Gives what the shares depend on, if it has no text by which it is told from others.

    Attributes
    ----------
    parts
        Each part as it is alone.
    start
        The score to begin with.
    """

    def __init__(
        self,
        parts: Sequence[PairGradients],
        shares: Shares,
        normalise: str,
        fixed: Callable[[], Sequence[Floats]] = tuple,
    ) -> None:
        self._normalise = NORMALISE[normalise]
        self.parts = tuple(part.scaled(self._normalise) for part in parts)
        self.start = np.zeros(1)
        self._fixed = fixed
        self._shares = shares
        by_distance = self._normalise == kernels.BY_DISTANCE
        own = kernels.BY_DISTANCE if by_distance else kernels.AS_IT_IS
        self._parts = tuple(part.scaled(own, weighted=False) for part in parts)
        self._room = np.zeros((2, len(parts), 0))

    @property
    def fixed(self) -> Sequence[Floats]:
        """What a checkpoint is to know of the shares."""
        return self._fixed()

    def blend(self, iteration: int) -> Blend:
        """Return what a kernel follows in an iteration."""
        shares = np.array(self._shares(iteration), np.float64)
        whole = np.flatnonzero(shares == 1.0)
        if len(whole):
            return alone(self.parts[whole[0]].plan)
        plans = tuple(part.plan for part in self._parts)
        return Blend(plans, read_only(shares), self._normalise, self.parts[0].plan.query_weight)

    def gradients(
        self, scores: Floats, iteration: int, out_lambda: Floats, out_weight: Floats
    ) -> None:
        """Write lambda and weight of every document at these scores."""
        self.gradients_of(EVERY_QUERY, scores, iteration, out_lambda, out_weight)

    def gradients_of(
        self,
        queries: NDArray[np.bool_],
        scores: Floats,
        iteration: int,
        out_lambda: Floats,
        out_weight: Floats,
    ) -> None:
        """Write lambda and weight of the documents of some queries."""
        shares = np.array(self._shares(iteration), np.float64)
        whole = np.flatnonzero(shares == 1.0)
        if len(whole):
            part = self.parts[whole[0]]
            part.gradients_of(queries, scores, iteration, out_lambda, out_weight)
            return
        if self._room.shape[-1] != scores.shape[1]:
            self._room = np.zeros((2, len(self.parts), scores.shape[1]))
        lambdas, weights = self._room
        for p in np.flatnonzero(shares):
            row = slice(p, p + 1)
            self._parts[p].gradients_of(queries, scores, iteration, lambdas[row], weights[row])
        first = self.parts[0]
        add_shares(
            first.plan.offsets,
            first.blocks,
            queries,
            read_only(shares),
            self._normalise,
            first.plan.query_weight,
            lambdas,
            weights,
            out_lambda[0],
            out_weight[0],
        )
