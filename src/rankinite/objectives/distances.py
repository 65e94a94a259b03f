"""How far apart scores are, for kernels that go through pairs one by one."""

from __future__ import annotations

import math

from rankinite.core.kernels import kernel
from rankinite.objectives.kernels import LANES, LEAST_DISTANCE, WIDEST_SPREAD
from rankinite.objectives.swaps import INVERSE, LAMBDA, SCORE, WEIGHT, E, Ranked


@kernel
def fill_exponentials(r: Ranked, n: int) -> bool:
    """Clear lambdas and weights; fill ``e``, and its inverse, unless scores spread too far."""
    for k in range(n + LANES):
        r[LAMBDA, k] = 0.0
        r[WEIGHT, k] = 0.0
    if r[SCORE, 0] - r[SCORE, n - 1] > WIDEST_SPREAD:
        return False
    for k in range(n):
        r[E, k] = math.exp(r[SCORE, k] - r[SCORE, 0])
        r[INVERSE, k] = 1.0 / r[E, k]
    return True


@kernel
def least_distance(r: Ranked, first: int, last: int, by_distance: bool) -> tuple[float, float]:
    """Return what distances are at least, and what they are multiplied by, as in `push_all`."""
    if by_distance and r[SCORE, first] > r[SCORE, last]:
        return LEAST_DISTANCE, 1.0
    return 1.0, 0.0
