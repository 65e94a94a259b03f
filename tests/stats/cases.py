"""Functions whose rising directions theory counts, for tests of local optimality."""

from __future__ import annotations

import math

import numpy as np

import rankinite as rk
from rankinite.stats.optimality import Optimality

# 459 directions that rise with chance 1/2: the deviation of their number is sqrt(459) / 2 = 10.7.
HALF, FIVE_DEVIATIONS = 459 / 2, 5 * math.sqrt(459) / 2


def bowl(weights):
    """A quadratic with its only maximum, 3, at 0."""
    return 3 - (weights**2 * np.arange(1, len(weights) + 1)).sum()


def around(value, weights, **options):
    weights = np.array(weights, np.float64)
    return rk.stats.local_optimality(
        rk.stats.directional_values(value, weights), len(weights), **options
    )


def one_by_one(value, weights, **options):
    weights = np.array(weights, np.float64)
    return rk.stats.single_weights(
        rk.stats.directional_values(value, weights), len(weights), **options
    )


def drawn(n_weights, seed=0, **options):
    """Return the directions that a function is asked for."""
    asked = []

    def along(directions, steps):
        asked.append(directions.copy())
        return np.zeros((len(directions), len(steps)))

    rk.stats.local_optimality(along, n_weights, steps=[1.0], seed=seed, **options)
    assert (asked[0] == np.zeros((1, n_weights))).all()
    return np.concatenate(asked[1:])


def seen(rising, tying, falling, delta=0.01):
    """Return what so many directions show that end 1 above, at and 1 below a start of 2."""
    values = np.array([3.0] * rising + [2.0] * tying + [1.0] * falling)[:, None]
    return Optimality(2.0, np.array([0.5]), values, 4, delta, 0.01, 0)
