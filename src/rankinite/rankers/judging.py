"""Which round is best, told round by round.

A round that was dropped never comes back: of a net only the weights of the best epoch are kept. So
`TieredMeasure.best`, which looks at all rounds at once, cannot be used. Instead each tier but the
last has a top, the largest value of the rounds that the tiers above let through when they came, and
what is kept never lies further below a top than the tolerance. Small losses in an upper tier cannot
add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankinite.measures.measure import Measure
from rankinite.measures.tiers import TieredMeasure, tiers_of

Values = tuple[float, ...]


@dataclass(frozen=True)
class Standing:
    """How rounds compare until now; nothing was measured yet if no arguments are given.

    Attributes
    ----------
    best
        The number of the best round; 0 before the first.
    values
        What it is worth, one value a tier.
    tops
        The largest values of the tiers but the last.
    improved
        The number of the last round that improved, from which patience is counted.
    mark
        The first tier's top at that round.
    """

    best: int = 0
    values: Values = ()
    tops: Values = ()
    improved: int = 0
    mark: float = -np.inf

    @property
    def first_top(self) -> float:
        """The first tier's top; if it is the only tier, what the best round is worth."""
        return (*self.tops, *self.values)[0]


class _Contest(NamedTuple):
    """What a new round comes to: whether it is the best now, and the tops with it."""

    is_best: bool
    tops: Values


@dataclass(frozen=True)
class Judging:
    """What decides between rounds.

    Attributes
    ----------
    set_name
        The validation set that is looked at.
    measure
        What it is measured by; of a graded measure, tier after tier.
    min_improvement
        A later round is better only if it gains more than this in the last tier.
    """

    set_name: str
    measure: Measure | TieredMeasure
    min_improvement: float = 0.0

    def after(
        self, standing: Standing, number: int, values: Mapping[str, Mapping[str, float]]
    ) -> Standing:
        """Return the standing after another round.

        A round improves if it is the best now, or if it lifts the first tier's top by more than
        ``min_improvement`` over what that was when a round last improved.

        Parameters
        ----------
        standing
            How the rounds before it compare.
        number
            The number of the round.
        values
            The values of the round, by set and measure.
        """
        own = tuple(values[self.set_name][str(tier)] for tier in tiers_of(self.measure))
        is_best, tops = self._contest(standing, own)
        if is_best:
            standing = replace(standing, best=number, values=own)
        standing = replace(standing, tops=tops)
        if is_best or standing.first_top > standing.mark + self.min_improvement:
            standing = replace(standing, improved=number, mark=standing.first_top)
        return standing

    def _contest(self, standing: Standing, values: Values) -> _Contest:
        """Tell whether a round with these values is the best now.

        Tier by tier: a round that lifts the top out of reach of the best one takes its place, and
        one that lies out of reach of the top itself does not.
        """
        if standing.best == 0:
            return _Contest(True, values[:-1])
        tops = list(standing.tops)
        for tier, tolerance in enumerate(self._tolerances):
            value = values[tier]
            if value > tops[tier]:
                tops[tier] = value
                if standing.values[tier] < value - tolerance:
                    # The tops below are those of rounds that are out of reach now.
                    return _Contest(True, (*tops[: tier + 1], *values[tier + 1 : -1]))
            elif value < tops[tier] - tolerance:
                return _Contest(False, tuple(tops))
        is_best = values[-1] > standing.values[-1] + self.min_improvement
        return _Contest(is_best, tuple(tops))

    @property
    def _tolerances(self) -> Values:
        return self.measure.tolerances if isinstance(self.measure, TieredMeasure) else ()
