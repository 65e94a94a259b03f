"""The paired t-test between every two systems."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from rankinite.stats.differences import Differences, mean_differences
from rankinite.stats.units import Floats, Units

SMALLEST_P = float(np.finfo(np.float64).tiny)


def t_test(values: Floats) -> Floats:
    """Return the two-sided p-value of the paired t-test between every two systems.

    Differences within rounding are none. The p-value is 1 for systems without a difference and
    for a single query, and it is never 0.

    Parameters
    ----------
    values
        Systems x queries; further axes may come before, such as one of measures.

    Examples
    --------
    Differences 1, 2 and 3 have mean 2 and standard error 1 / sqrt(3), and t = 3.46.

    >>> t_test(np.array([[2.0, 4.0, 6.0], [1.0, 2.0, 3.0]])).round(4)
    array([[1.    , 0.0742],
           [0.0742, 1.    ]])
    """
    n_systems = values.shape[-2]
    p = np.ones((*values.shape[:-1], n_systems))
    for i in range(n_systems - 1):
        found = Differences.between(values[..., i + 1 :, :], values[..., i : i + 1, :])
        p[..., i, i + 1 :] = p[..., i + 1 :, i] = _p_values(found)
    return p


def gain_and_p(values: Floats, others: Floats) -> tuple[float, float]:
    """Return how much better values are than others, and the p-value of the paired t-test.

    Parameters
    ----------
    values, others
        One value a query; NaN where the query does not count.

    Examples
    --------
    >>> gain, p = gain_and_p(np.array([2.0, np.nan, 4.0, 6.0]), np.array([1.0, np.nan, 2.0, 3.0]))
    >>> gain, round(p, 4)
    (2.0, 0.0742)
    """
    both = np.stack([values, others])
    both = both[:, ~np.isnan(both).any(axis=0)]
    gain = float(mean_differences(both)[0, 1]) if both.size else float("nan")
    return gain, float(t_test(both)[0, 1])


def _p_values(differences: Differences) -> Floats:
    """Return the p-values of rows of differences."""
    n_queries = differences.values.shape[-1]
    if n_queries < 2:
        return np.ones(differences.values.shape[:-1])
    # Every row has a unit of its own, so no pair of systems suffers from another's differences.
    units = Units.of(differences.values[..., None, :]).counts[..., 0, :]
    mean = units.sum(axis=-1) / n_queries
    error = units.std(axis=-1, ddof=1) / np.sqrt(n_queries)
    distance = np.divide(mean, error, out=np.full_like(mean, np.inf), where=~_alike(differences))
    p = np.maximum(2 * stdtr(n_queries - 1, -np.abs(distance)), SMALLEST_P)
    return np.where(mean == 0, 1.0, p)


def _alike(differences: Differences) -> NDArray[np.bool_]:
    """Tell of every row whether one number is within rounding of all its differences."""
    lows = differences.values - differences.rounding
    highs = differences.values + differences.rounding
    alike: NDArray[np.bool_] = lows.max(axis=-1) <= highs.min(axis=-1)
    return alike
