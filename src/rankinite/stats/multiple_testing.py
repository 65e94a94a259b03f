"""Holm's correction of p-values for multiple comparisons."""

from __future__ import annotations

import numpy as np

from rankinite.core.types import Floats


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted by Holm's method, which controls the family-wise error rate.

    The smallest of n p-values is multiplied by n, the next by n - 1, and so on; adjusted p-values
    are kept in order and at most 1.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    multiplied = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(multiplied), 1.0)
    return adjusted


def holm_of_pairs(p_values: Floats) -> Floats:
    """Return a symmetric matrix of p-values, adjusted for the number of its pairs."""
    above = np.triu_indices(len(p_values), 1)
    adjusted = np.ones_like(p_values)
    adjusted[above] = holm(p_values[above])
    adjusted.T[above] = adjusted[above]
    return adjusted
