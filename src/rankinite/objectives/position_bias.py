"""Position bias: clicks depend on where a document was shown, and not only on what it is.

Two corrections of the gradients of another objective, whose labels are clicks. Both estimate how
much each position matters together with the ranker, round by round, from training data alone.

Propensities (Unbiased, Sec. 4): a pair of a clicked document i and an unclicked one j counts
1 / (t+_i t-_j), with one propensity for each position at which a document was clicked, t+, or not,
t-. They follow from the losses of pairs, summed by position: where these are larger than at the
first position, the pairs there are too many or too few, and count less or more from then on.

Additive effects: every position has an effect that is added to the scores of documents shown there
while gradients are computed, as if clicks had a score of which the position is one part. It takes
the Newton step that a tree's leaf would take.

A regression term, if there is one, is corrected alike: a click over its propensity is on average
what the document would get where everybody sees it (Propensity, Sec. 4), and effects are part of
the scores that the term compares with clicks.

A position is a whole number of at least 0, counted from 0 or from 1. Scores of new documents have
no position: neither propensities nor effects are part of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import LARGEST, checked_array
from rankinite.core.elementary import exp, log
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Integers, Mask
from rankinite.objectives.kernels.arrays import PAIRS
from rankinite.objectives.kernels.position_bias import sum_losses_by_position
from rankinite.objectives.objective import Gradients, GradientsByQuery, Targets, read_only
from rankinite.objectives.pairwise import PairGradients
from rankinite.objectives.pointwise import RegressionTerm

PROPENSITY, ADDITIVE = "propensity", "additive"
# What is estimated for each position, by method.
ESTIMATES = {PROPENSITY: ("clicked", "unclicked"), ADDITIVE: ("effect",)}
# A pair counts at most 1 over this for each of its documents, or few pairs would decide alone.
LEAST_PROPENSITY = 0.01
# What a fit can come to, by method.
LIMITS = {
    PROPENSITY: (LEAST_PROPENSITY, 1.0 / LEAST_PROPENSITY),
    ADDITIVE: (-LARGEST, LARGEST),
}
# Names of arrays in model files and checkpoints.
POSITIONS, PREFIX, BY_ROUND = "position_bias.positions", "position_bias.", "position_bias_by_round"


@dataclass(frozen=True, eq=False)
class PositionBias:
    """How much each position mattered in training.

    Attributes
    ----------
    method
        ``"propensity"`` or ``"additive"``.
    positions
        The positions of the training data, from the first.
    estimates
        One number per position: the propensities ``"clicked"`` and ``"unclicked"``, which are 1 at
        the first position; or the ``"effect"`` that is added to scores, 0 at the first position.
    """

    method: str
    positions: Integers
    estimates: Mapping[str, Floats]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a model file."""
        by_name = {PREFIX + name: values for name, values in self.estimates.items()}
        return {POSITIONS: self.positions, **by_name}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self | None:
        """Check the arrays of a model file; return None if there is no position bias in it."""
        names = {name.removeprefix(PREFIX) for name in arrays if name.startswith(PREFIX)}
        if not names:
            return None
        for method, expected in ESTIMATES.items():
            if names == {"positions", *expected}:
                positions = checked_array(arrays, POSITIONS, np.int64, None, low=0)
                if len(positions) == 0 or (np.diff(positions) <= 0).any():
                    raise ModelFileError("the positions in the file do not rise")
                low, high = LIMITS[method]
                estimates = {
                    name: checked_array(
                        arrays, PREFIX + name, np.float64, len(positions), low=low, high=high
                    )
                    for name in expected
                }
                return cls(method, positions, estimates)
        raise ModelFileError("the position bias of the file is not understood")


def debiased(
    gradients: Gradients,
    targets: Targets,
    method: str,
    regularization: float,
    learning_rate: float,
    regression: RegressionTerm | None = None,
) -> DebiasedGradients:
    """Return gradients that are corrected for the positions at which documents were shown.

    Parameters
    ----------
    gradients
        Those of an objective whose labels are clicks, or other labels that depend on positions.
    targets
        What they were prepared with, with positions.
    method
        ``"propensity"`` or ``"additive"``.
    regularization
        For propensities p, where new ones are ratios of losses to the power of 1 / (1 + p); for
        effects an L2 regularisation, as a share of the hessian.
    learning_rate
        Factor of the Newton steps of effects.
    regression
        Is corrected as well, and added to the gradients; nothing if None.
    """
    if method == ADDITIVE:
        return AdditiveGradients(gradients, targets, regression, regularization, learning_rate)
    return PropensityGradients(gradients, targets, regression, regularization)


class DebiasedGradients(GradientsByQuery):
    """Gradients that are corrected for positions; the base of both ways.

    The estimates before every round are kept. So the gradients of a round are a function of its
    number and the scores, also where a round is computed anew after an interrupt.

    Parameters
    ----------
    inner
        The gradients to correct.
    targets
        The data set, with positions.
    regression
        Is added to them; nothing if None.
    first
        The estimates before the first round, the same for all positions.
    """

    method: str

    def __init__(
        self, inner: Gradients, targets: Targets, regression: RegressionTerm | None, first: float
    ) -> None:
        if targets.position is None:
            raise UsageError("position_bias: there are no positions; give fit a position")
        self._inner = inner
        self._regression = regression
        self.no_newton, self.start = inner.no_newton, inner.start
        self._sizes = np.diff(targets.offsets)
        self.positions, codes = np.unique(targets.position, return_inverse=True)
        self._codes: Integers = codes.astype(np.int64)
        rows = len(ESTIMATES[self.method])
        self._by_round = [np.full((rows, len(self.positions)), first)]

    @property
    def parts(self) -> Sequence[Gradients]:
        """The parts of the gradients that are corrected."""
        return self._inner.parts

    @property
    def pairs(self) -> PairGradients | None:
        """The gradients that are corrected, if they are sums over pairs."""
        return self._inner.pairs

    @property
    def checkpoint_arrays(self) -> Sequence[NDArray[Any]]:
        """What the gradients depend on: also the positions."""
        return [*self._inner.checkpoint_arrays, self.positions, self._codes]

    def position_bias(self, n_rounds: int) -> PositionBias:
        """Return the estimates after so many rounds."""
        rows = dict(zip(ESTIMATES[self.method], self._by_round[n_rounds], strict=True))
        return PositionBias(self.method, self.positions, rows)

    def to_arrays(self, n_rounds: int) -> dict[str, NDArray[Any]]:
        """Return the estimates before the first round and after each of so many."""
        return {BY_ROUND: np.array(self._by_round[: n_rounds + 1])}

    def restore(self, arrays: Mapping[str, NDArray[Any]], n_rounds: int) -> None:
        """Resume with the estimates of a checkpoint."""
        low, high = LIMITS[self.method]
        shape = self._by_round[0].shape
        by_round = checked_array(arrays, BY_ROUND, np.float64, None, *shape, low=low, high=high)
        if len(by_round) <= n_rounds:
            raise ModelFileError("has no position bias of every round")
        self._by_round = list(by_round[: n_rounds + 1])

    def gradients_of(
        self,
        queries: Mask,
        scores: Floats,
        round: int,
        out_gradient: Floats,
        out_hessian: Floats,
    ) -> None:
        """Write gradients by the estimates so far, from which those of the next round follow."""
        # A round that was interrupted is done again.
        del self._by_round[round + 1 :]
        before = self._by_round[round]
        after = self._corrected(before, queries, scores, round, out_gradient, out_hessian)
        self._by_round.append(after)

    def _corrected(
        self,
        estimates: Floats,
        queries: Mask,
        scores: Floats,
        round: int,
        out_gradient: Floats,
        out_hessian: Floats,
    ) -> Floats:
        """Write gradients by these estimates; return those of the next round."""
        raise NotImplementedError(f"{type(self).__name__} does not define how it corrects")


class PropensityGradients(DebiasedGradients):
    """Pairs over the propensities of their positions: unbiased LambdaMART (Unbiased, Sec. 4)."""

    method = PROPENSITY

    def __init__(
        self, inner: Gradients, targets: Targets, regression: RegressionTerm | None, p: float
    ) -> None:
        super().__init__(inner, targets, regression, first=1.0)
        pairs = inner.pairs
        if pairs is None or pairs.arrays.kind != PAIRS:
            raise UsageError(
                "position_bias: propensities are of pairs of documents, and the objective is not "
                "one sum over them; use a measure or RankNet, or position_bias='additive'"
            )
        self._pairs = pairs
        self._exponent = 1.0 / (1.0 + p)
        weight = targets.doc_weight
        self._doc_weight = np.ones(targets.n_docs) if weight is None else weight
        self._shuffled_codes = read_only(self._codes[pairs.arrays.shuffle], np.int64)

    def _corrected(
        self,
        estimates: Floats,
        queries: Mask,
        scores: Floats,
        round: int,
        out_gradient: Floats,
        out_hessian: Floats,
    ) -> Floats:
        pairs = self._pairs.weighted(*(self._doc_weight / estimates[:, self._codes]))
        pairs.gradients_of(queries, scores, round, out_gradient, out_hessian)
        if self._regression is not None:
            regression = self._regression.divided_by(estimates[0, self._codes])
            regression.add(queries, scores, out_gradient, out_hessian)
        by_block = np.empty((len(pairs.blocks) - 1, *estimates.shape))
        parallel_for(
            sum_losses_by_position,
            len(by_block),
            read_only(scores[0]),
            pairs.blocks,
            pairs.arrays,
            self._shuffled_codes,
            queries,
            by_block,
        )
        # Weights divide the losses by both propensities; the sums are to have that of the other
        # document only.
        losses = by_block.sum(axis=0) * estimates
        return np.array([self._ratios(*rows) for rows in zip(losses, estimates, strict=True)])

    def _ratios(self, losses: Floats, estimates: Floats) -> Floats:
        """Return new propensities; those of positions without a loss stay as they are."""
        known = losses > 0.0
        if not known[0]:  # all are relative to the first position
            return estimates
        logs = log(np.where(known, losses, 1.0) / losses[0])
        ratios = exp(logs * self._exponent)
        bounded = np.clip(ratios, LEAST_PROPENSITY, 1.0 / LEAST_PROPENSITY)
        return np.where(known, bounded, estimates)


class AdditiveGradients(DebiasedGradients):
    """Gradients at scores plus the effects of positions, which take Newton steps of their own."""

    method = ADDITIVE

    def __init__(
        self,
        inner: Gradients,
        targets: Targets,
        regression: RegressionTerm | None,
        l2: float,
        learning_rate: float,
    ) -> None:
        super().__init__(inner, targets, regression, first=0.0)
        if inner.no_newton or len(inner.start) != 1:
            reason = inner.no_newton or f"the objective has {len(inner.start)} outputs"
            raise UsageError(
                f"position_bias: the effects of positions take Newton steps, and {reason}; use "
                "another objective, or position_bias='none'"
            )
        self._l2, self._learning_rate = l2, learning_rate

    def _corrected(
        self,
        estimates: Floats,
        queries: Mask,
        scores: Floats,
        round: int,
        out_gradient: Floats,
        out_hessian: Floats,
    ) -> Floats:
        effects = estimates[0]
        shifted = scores + effects[self._codes]
        self._inner.gradients_of(queries, shifted, round, out_gradient, out_hessian)
        if self._regression is not None:
            self._regression.add(queries, shifted, out_gradient, out_hessian)
        docs: Any = np.repeat(queries, self._sizes) if len(queries) else slice(None)
        codes, n = self._codes[docs], len(effects)
        hessians = np.bincount(codes, out_hessian[0, docs], n)
        # Relative to hessians: so it means the same for every objective.
        slopes = np.bincount(codes, out_gradient[0, docs], n) - self._l2 * hessians * effects
        curvatures = (1.0 + self._l2) * hessians
        steps = np.divide(slopes, curvatures, out=np.zeros(n), where=curvatures > 0.0)
        moved = effects + self._learning_rate * steps
        # A constant added to all scores changes no gradient: the first effect is 0 by convention.
        relative: Floats = moved - moved[0]
        return relative[np.newaxis]
