"""A Monte-Carlo test of local optimality: whether a function rises anywhere around given weights.

Weights are moved along directions, by steps. If the value gets lower along every one of many random
directions, then hardly any direction rises (Optimality, Sec. 5). That says little of single
weights, of which each has but a small part in a random direction: they are moved one by one as
well, both ways (Optimality, Sec. 7.1).

The function may be any: it is asked through an `Along`, which knows the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rankinite.core.params import Either, Real, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.seeds import generator
from rankinite.stats.optimality_along import (
    Along,
    Search,
    checked_steps,
    random_direction,
    unit_vector,
)
from rankinite.stats.optimality_moves import Optimality, SingleWeights
from rankinite.stats.units import Floats

STEPS = tuple(k / 10 for k in range(1, 11))
BOTH_WAYS = tuple(k / 10 for k in range(-10, 11) if k != 0)
ABOVE_0 = Real(0, low_open=True)
NOT_0 = Either(ABOVE_0, Real(high=0, high_open=True))
# How many directions are asked for at once: enough to keep processors busy, few in memory.
BLOCK = 16
# Logarithms of numbers like 0.01 are off in their last bits: this far from a whole number is none.
ROUNDING = 1e-12


def n_directions(delta: float = 0.01, epsilon: float = 0.01) -> int:
    """Return how many random directions find a rising one, if there are enough of them.

    If at least a share epsilon of all directions rises, then so many directions miss them all with
    a chance of at most delta: ln(delta) / ln(1 - epsilon), rounded up (Optimality, Sec. 5).

    Examples
    --------
    >>> n_directions(0.01, 0.01)
    459
    """
    check("n_directions", "delta", delta, Real(0, 1, low_open=True, high_open=True))
    check("n_directions", "epsilon", epsilon, Real(1e-6, 1, high_open=True))
    exact = math.log(delta) / math.log1p(-epsilon)
    whole = round(exact)
    return whole if math.isclose(exact, whole, rel_tol=ROUNDING) else math.ceil(exact)


def local_optimality(
    along: Along,
    n_weights: int,
    *,
    delta: float = 0.01,
    epsilon: float = 0.01,
    steps: Sequence[float] | Floats = STEPS,
    seed: int = 0,
    progress: Progress | None = None,
    block: int = BLOCK,
) -> Optimality:
    """Test whether weights are a local optimum, by random directions (Optimality, Sec. 5).

    Directions are drawn uniformly from the unit sphere. If none of them reaches the value at the
    start, at any step, then fewer than a share epsilon of all directions do, with a confidence of
    1 - delta.

    Parameters
    ----------
    along
        Gives the values along directions; `along_of` makes it from a plain function of weights.
    n_weights
        How many weights the function has.
    delta, epsilon
        How many directions to draw; see `n_directions`.
    steps
        How far to move, above 0.
    seed
        Another seed draws others. A direction depends on the seed and its number alone.
    progress
        Who wants to know how far it is.
    block
        How many directions to ask for at once.

    Examples
    --------
    >>> import rankinite as rk
    >>> found = local_optimality(rk.along_of(lambda w: 1 - w @ w, np.zeros(3)), 3)
    >>> found.is_optimum
    True
    >>> print(found)  # doctest: +ELLIPSIS
    None of 459 directions reaches the start's 1: with 99% confidence at most 1% reach it. The ...
    """
    far = checked_steps("local_optimality", steps, ABOVE_0)
    search = Search("local_optimality", "direction", along, n_weights, far, seed, block)
    numbers = np.arange(n_directions(delta, epsilon))
    start, values = search.run(
        numbers, lambda number: random_direction(seed, number, n_weights), progress or Silent()
    )
    return Optimality(start, far, values, int(n_weights), float(delta), float(epsilon), int(seed))


def single_weights(
    along: Along,
    n_weights: int,
    *,
    steps: Sequence[float] | Floats = BOTH_WAYS,
    chosen: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    block: int = BLOCK,
) -> SingleWeights:
    """Test whether any weight could be better, if it alone were moved (Optimality, Sec. 7.1).

    Parameters
    ----------
    along
        Gives the values along directions; `along_of` makes it from a plain function of weights.
    n_weights
        How many weights the function has.
    steps
        How far to move a weight: up, and below 0 down.
    chosen
        How many weights to try at most, drawn at random; None tries all.
    seed
        Another seed draws other weights.
    progress
        Who wants to know how far it is.
    block
        How many weights to ask for at once.

    Examples
    --------
    >>> import rankinite as rk
    >>> along = rk.along_of(lambda w: -(w[0] ** 2) - (w[1] - 0.5) ** 2, np.zeros(2))
    >>> print(single_weights(along, 2))
    Moved alone, 1 of 2 weights rises above the start's -0.25. The largest rise is 0.25, of weight \
1 at step 0.5.
    """
    far = checked_steps("single_weights", steps, NOT_0)
    search = Search("single_weights", "weight", along, n_weights, far, seed, block)
    weights = np.arange(n_weights)
    if chosen is not None:
        check("single_weights", "chosen", chosen, Whole(1))
        if chosen < n_weights:
            drawn = generator(seed, "weights").choice(n_weights, chosen, replace=False)
            weights = np.sort(drawn)
    start, values = search.run(
        weights, lambda weight: unit_vector(weight, n_weights), progress or Silent()
    )
    return SingleWeights(start, far, values, int(n_weights), weights)
