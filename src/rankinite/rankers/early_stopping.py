"""Early stopping: the best round so far, and when to stop.

Rounds are compared one by one as they come. A round that was dropped never comes back: of a net
only the weights of the best epoch are kept. So `TieredMeasure.best`, which needs all rounds at
once, cannot be used. Instead each tier but the last has a top, the largest value among the rounds
that the tiers above let through when they came, and the best round never lies further below a top
than the tolerance. Small losses in an upper tier cannot add up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from rankinite.core.elementary import exp
from rankinite.core.types import Floats
from rankinite.measures.measure import Measure
from rankinite.measures.tiers import TieredMeasure, tiers_of
from rankinite.rankers.callbacks import History, Round

TierValues = tuple[float, ...]

# What the mean of a measure over n validation queries is uncertain by, times the root of n, if two
# rounds of a fit are compared. Tried from 0.03 to 0.4: larger ones are better where a few dozen
# queries decide, and worse where a long fit still improves.
UNCERTAINTY = 0.03
# Rounds that count less than this part of the best one are left out, and their trees with them.
LEAST_WEIGHT = 1e-3
ONLY_THE_BEST = np.zeros(0)


@dataclass(frozen=True)
class BestRound:
    """The best round so far; without arguments, the state before the first round.

    Attributes
    ----------
    number
        The number of the best round; 0 before the first.
    values
        Its values, one per tier.
    tops
        The largest values of the tiers but the last.
    improved
        The number of the last round that improved, from which patience is counted.
    top_then
        The first tier's top at that round.
    """

    number: int = 0
    values: TierValues = ()
    tops: TierValues = ()
    improved: int = 0
    top_then: float = -np.inf

    @property
    def first_top(self) -> float:
        """The first tier's top; if it is the only tier, the value of the best round."""
        return (*self.tops, *self.values)[0]


class _Comparison(NamedTuple):
    """Whether a new round is the best now, and the tops with it."""

    is_best: bool
    tops: TierValues


@dataclass(frozen=True)
class EarlyStopping:
    """When a fit stops, and which of its rounds is best.

    Attributes
    ----------
    n_rounds
        Number of rounds at most.
    patience
        Stop after this many rounds without an improvement; never if None.
    set_name
        The validation set that decides; None if there are no validation sets, and then every
        round is better than the one before.
    measure
        The measure that decides; of a tiered measure, tier by tier.
    min_improvement
        A later round is better only if it gains more than this in the last tier.
    """

    n_rounds: int
    patience: int | None = None
    set_name: str | None = None
    measure: Measure | TieredMeasure | None = None
    min_improvement: float = 0.0

    def update(self, best: BestRound, done: Round) -> BestRound:
        """Return the best round after another round.

        A round improves if it is the best now, or if it lifts the first tier's top by more than
        ``min_improvement`` over its value when a round last improved.

        Parameters
        ----------
        best
            The best of the rounds before.
        done
            The new round.
        """
        if self.set_name is None or self.measure is None:
            return BestRound(number=done.number, improved=done.number)
        values = tuple(done.values[self.set_name][str(tier)] for tier in tiers_of(self.measure))
        # Tops rise also with rounds that are not the best: later rounds are measured against them.
        is_best, tops = self._compare(best, values)
        if is_best:
            best = replace(best, number=done.number, values=values)
        best = replace(best, tops=tops)
        if is_best or best.first_top > best.top_then + self.min_improvement:
            best = replace(best, improved=done.number, top_then=best.first_top)
        return best

    def best_round(self, history: History, n_rounds: int) -> BestRound:
        """Return the best of the first rounds."""
        return reduce(self.update, history.rounds(0, n_rounds), BestRound())

    def is_over(self, best: BestRound, n_rounds: int) -> bool:
        """Tell whether to stop after this many rounds, of which this is the best."""
        if n_rounds >= self.n_rounds:
            return True
        return self.patience is not None and n_rounds - best.improved >= self.patience

    def stops_after(self, history: History, n_rounds: int) -> int:
        """Return how many of the rounds of another fit this one would have done."""
        # The state before the first round comes first, so that indices are numbers of rounds.
        bests = accumulate(history.rounds(0, n_rounds), self.update, initial=BestRound())
        stops = (number for number, best in enumerate(bests) if self.is_over(best, number))
        return next(stops, n_rounds)

    def round_weights(self, history: History, n_rounds: int, n_queries: int) -> Floats:
        """Return how much the model after each round counts in the mean over rounds.

        Up to the last round that counts. None are returned if there is nothing to weigh by: no
        validation set, or a measure of several tiers, whose values are not one number.

        Parameters
        ----------
        history
            The values of the rounds.
        n_rounds
            Number of rounds.
        n_queries
            Number of queries of the validation set.
        """
        if self.set_name is None or not isinstance(self.measure, Measure) or n_rounds == 0:
            return ONLY_THE_BEST
        values = np.array(history.values[self.set_name][str(self.measure)][:n_rounds])
        weights = exp((values - values.max()) * (np.sqrt(n_queries) / UNCERTAINTY))
        weights = np.where(weights < LEAST_WEIGHT, 0.0, weights)
        kept = weights[: np.flatnonzero(weights)[-1] + 1]
        shares: Floats = kept / kept.sum()
        return shares

    def _compare(self, best: BestRound, values: TierValues) -> _Comparison:
        """Tell whether a round with these values is the best now.

        Tier by tier: a round that lifts the top out of reach of the best one takes its place, and
        one that lies out of reach of the top itself does not.
        """
        # The first round is the best of all so far, whatever its values are.
        if best.number == 0:
            return _Comparison(True, values[:-1])
        tops = list(best.tops)
        for tier, tolerance in enumerate(self._tolerances):
            value = values[tier]
            if value > tops[tier]:
                tops[tier] = value
                if best.values[tier] < value - tolerance:
                    # The tops below are those of rounds that are out of reach now.
                    return _Comparison(True, (*tops[: tier + 1], *values[tier + 1 : -1]))
            elif value < tops[tier] - tolerance:
                return _Comparison(False, tuple(tops))
        is_best = values[-1] > best.values[-1] + self.min_improvement
        return _Comparison(is_best, tuple(tops))

    @property
    def _tolerances(self) -> TierValues:
        measure: Any = self.measure
        return measure.tolerances if isinstance(measure, TieredMeasure) else ()
