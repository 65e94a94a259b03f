"""Agreement of measures on which system is better."""

from __future__ import annotations

import numpy as np

from rankinite.stats.units import Floats


def kendall_tau(means: Floats) -> Floats:
    """Return Kendall's tau between every two rows (Challenge, Sec. 5.3).

    Tau is 1 if two rows order the columns alike and -1 if they order them the other way round
    (tau-b: ties count). It is NaN for a row whose values are all equal.

    Parameters
    ----------
    means
        Measures x systems.

    Examples
    --------
    Two of three pairs of systems are ordered alike: tau is (2 - 1) / 3.

    >>> kendall_tau(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """
    from scipy.stats import kendalltau

    return np.array([[kendalltau(one, other).statistic for other in means] for one in means])
