"""Tiered measures: several in order of importance, with values that compare tier by tier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankinite.core.errors import UsageError
from rankinite.core.format import plain_number
from rankinite.core.params import Real, check
from rankinite.measures.measure import Measure

# How much of a tier may be lost for a gain in those below it, by default.
DEFAULT_TOLERANCE = 0.001


@dataclass(frozen=True, init=False, repr=False)
class TieredMeasure:
    """Measures in order of importance, ordered lexicographically (Objectives, Sec. 1).

    A tier decides where values differ by more than its tolerance, for means over queries are
    hardly ever equal; otherwise the next tier does, and the last by any difference. The text joins
    the tiers with ``>`` and spaces around it, each followed by its tolerance unless that is 0.001.

    Parameters
    ----------
    tiers
        Two measures or more, each once, the most important first.
    tolerance
        How much of a tier may be lost for a gain in those below it: one number for all tiers but
        the last, or one for each of them.

    Examples
    --------
    >>> from rankinite.measures.definitions import CNDCG, NDCG
    >>> tiered = TieredMeasure((NDCG(depth=3), CNDCG(depth=3, source="clicks")), tolerance=0.01)
    >>> str(tiered)
    'NDCG@3 ~0.01 > CNDCG@3[clicks]'
    >>> tiered.compare([0.75, 0.5], [0.7, 0.9]), tiered.compare([0.75, 0.5], [0.745, 0.9])
    (1, -1)
    """

    tiers: tuple[Measure, ...]
    tolerances: tuple[float, ...]

    def __init__(
        self, tiers: Iterable[Measure], tolerance: float | Iterable[float] = DEFAULT_TOLERANCE
    ) -> None:
        measures = tuple(tiers) if isinstance(tiers, Iterable) else ()
        if len(measures) < 2 or not all(isinstance(tier, Measure) for tier in measures):
            raise UsageError(
                "TieredMeasure: give two measures or more, the most important first; parse_measure "
                "reads a text"
            )
        if len(set(measures)) < len(measures):
            texts = " > ".join(str(tier) for tier in measures)
            twice = next(tier for tier in measures if measures.count(tier) > 1)
            raise UsageError(f"{texts}: the tier {twice} is there twice; give each tier once")
        object.__setattr__(self, "tiers", measures)
        object.__setattr__(self, "tolerances", _tolerances(tolerance, len(measures) - 1))

    def __repr__(self) -> str:
        return f"TieredMeasure({self.tiers!r}, tolerance={self.tolerances!r})"

    def __str__(self) -> str:
        texts = [
            f"{tier}" + ("" if tolerance == DEFAULT_TOLERANCE else f" ~{plain_number(tolerance)}")
            for tier, tolerance in zip(self.tiers, self.tolerances, strict=False)
        ]
        return " > ".join([*texts, str(self.tiers[-1])])

    def compare(self, first: Sequence[float], second: Sequence[float]) -> int:
        """Return 1 if the first is better, -1 if the second is, and 0 if no tier decides.

        Parameters
        ----------
        first, second
            One value per tier.

        Examples
        --------
        >>> from rankinite.measures.definitions import ERR, MAP, NDCG
        >>> tiered = TieredMeasure((NDCG(), ERR(), MAP()), tolerance=(0.1, 0.01))
        >>> tiered.compare([0.75, 0.5, 0.3], [0.8, 0.45, 0.6])
        1
        >>> tiered.compare([0.75, 0.5, 0.3], [0.8, 0.495, 0.3])
        0
        """
        pairs = zip(self._checked(first), self._checked(second), strict=True)
        # The same expression as in `best`: a - b > tolerance could round differently.
        for (a, b), tolerance in zip(pairs, (*self.tolerances, 0.0), strict=True):
            if b < a - tolerance:
                return 1
            if a < b - tolerance:
                return -1
        return 0

    def best(self, values: Iterable[Sequence[float]]) -> int:
        """Return the index of the best candidate; the first of equals.

        Candidates within the tolerance of the largest first value remain, of these the ones within
        the tolerance of the largest second value, and so on. The order of candidates does not
        matter, as it would for a winner of comparisons: with tolerances `compare` is not
        transitive, and each of three may be worse than the one before it, the first worse than the
        last.

        Parameters
        ----------
        values
            For each candidate, one value per tier.

        Examples
        --------
        >>> from rankinite.measures.definitions import ERR, NDCG
        >>> tiered = TieredMeasure((NDCG(), ERR()), tolerance=0.02)
        >>> circle = [[0.70, 0.3], [0.715, 0.2], [0.73, 0.1]]
        >>> [tiered.compare(circle[k], circle[k - 1]) for k in range(3)]
        [-1, -1, -1]
        >>> tiered.best(circle)
        1
        """
        rows = [self._checked(row) for row in values]
        if not rows:
            raise UsageError("TieredMeasure.best: there is nothing to choose from; give values")
        remaining = list(range(len(rows)))
        for tier, tolerance in enumerate((*self.tolerances, 0.0)):
            least = max(rows[k][tier] for k in remaining) - tolerance
            remaining = [k for k in remaining if rows[k][tier] >= least]
        return remaining[0]

    def _checked(self, values: Sequence[float]) -> tuple[float, ...]:
        try:
            numbers = tuple(float(value) for value in values)
        except (TypeError, ValueError):
            numbers = ()
        if len(numbers) != len(self.tiers) or any(np.isnan(number) for number in numbers):
            raise UsageError(
                f"{self}: expected {len(self.tiers)} numbers, the value of each tier; got "
                f"{values!r}"
            )
        return numbers


def tiers_of(measure: Measure | TieredMeasure) -> tuple[Measure, ...]:
    """Return the tiers of a measure; a measure without tiers is its only tier."""
    return measure.tiers if isinstance(measure, TieredMeasure) else (measure,)


def _tolerances(tolerance: float | Iterable[float], n: int) -> tuple[float, ...]:
    """Check one tolerance for all of n tiers, or one for each."""
    several = isinstance(tolerance, Iterable) and not isinstance(tolerance, str)
    tolerances: list[Any] = list(tolerance) if several else [tolerance] * n  # type: ignore[arg-type]
    if len(tolerances) != n:
        raise UsageError(
            f"TieredMeasure: {len(tolerances)} tolerances are given for {n + 1} tiers; give one "
            "number, or one for each tier but the last"
        )
    for value in tolerances:
        check("TieredMeasure", "tolerance", value, Real(0))
    return tuple(float(value) for value in tolerances)
