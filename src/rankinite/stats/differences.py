"""Differences between systems, query by query; those within rounding are none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankinite.stats.units import Floats

# Of a value: the last six bits of a float64 are where the rounding of whoever computed it shows.
ROUNDING = 2.0**-46


@dataclass(frozen=True)
class Differences:
    """Values minus others.

    Attributes
    ----------
    values
        The differences; exactly 0 where they are within the rounding of the two values.
    rounding
        How far off they may be; 0 where there is no difference.
    """

    values: Floats
    rounding: Floats

    @classmethod
    def between(cls, values: Floats, others: Floats) -> Differences:
        """Subtract others from values; every query has its own rounding, by its own values.

        Examples
        --------
        >>> one, other = np.array([1e15, 0.1 + 0.2, 0.5]), np.array([1e15, 0.3, 0.25])
        >>> Differences.between(one, other).values
        array([0.  , 0.  , 0.25])
        """
        found = values - others
        rounding = ROUNDING * np.maximum(np.abs(values), np.abs(others))
        none = np.abs(found) <= rounding
        return cls(np.where(none, 0.0, found), np.where(none, 0.0, rounding))


def mean_differences(values: Floats) -> Floats:
    """Return how much larger the mean of one system is than that of another.

    A difference of means would lose what is small beside the means; this does not.

    Parameters
    ----------
    values
        Systems x queries.

    Examples
    --------
    >>> mean_differences(np.array([[2.0**60, 1.0], [2.0**60, 0.5]]))
    array([[ 0.  ,  0.25],
           [-0.25,  0.  ]])
    """
    found = np.zeros((len(values), len(values)))
    for i, row in enumerate(values[:-1]):
        means = Differences.between(row, values[i + 1 :]).values.mean(axis=-1)
        found[i, i + 1 :] = means
        found[i + 1 :, i] = 0.0 - means
    return found
