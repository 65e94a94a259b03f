"""Bootstrap percentile intervals of means over queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankinite.core.progress import Progress, Silent
from rankinite.core.random import generator
from rankinite.core.types import Floats
from rankinite.stats.paired_tests import FixedPoint


@dataclass(frozen=True)
class Intervals:
    """Percentile intervals; the last axis holds the lower and the upper end.

    Attributes
    ----------
    means
        Intervals of the systems' means: systems x 2.
    differences
        Intervals of the mean of a system minus that of another: systems x systems x 2.
    """

    means: Floats
    differences: Floats


def bootstrap(
    values: Floats,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Intervals:
    """Return percentile intervals of means and of their differences, by resampling queries.

    Parameters
    ----------
    values
        Systems x queries; further axes may come before, such as one of measures.
    level
        Share of resamples whose mean lies in the interval.
    resamples
        Number of resamples, each of as many queries as there are.
    seed
        Seed of the resamples.
    progress
        Progress reporter.

    Examples
    --------
    >>> intervals = bootstrap(np.array([[0.5, 0.5, 0.5], [0.25, 0.5, 0.0]]), resamples=999)
    >>> intervals.means.tolist()
    [[0.5, 0.5], [0.0, 0.5]]
    >>> intervals.differences[0, 1].tolist()
    [0.0, 0.5]
    """
    # All systems and measures share the resamples, so that differences are those of paired values.
    means = _resampled_means(values, resamples, seed, progress or Silent())
    ends = [(1 - level) / 2, (1 + level) / 2]
    n_systems = values.shape[-2]
    differences = np.zeros((*values.shape[:-1], n_systems, 2))
    for i in range(n_systems - 1):
        intervals = _quantiles(means[..., i : i + 1] - means[..., i + 1 :], ends)
        differences[..., i, i + 1 :, :] = intervals
        # 0.0 - x rather than -x, which would make -0.0 of 0.0.
        differences[..., i + 1 :, i, :] = 0.0 - intervals[..., ::-1]
    return Intervals(_quantiles(means, ends), differences)


def _resampled_means(values: Floats, resamples: int, seed: int, progress: Progress) -> Floats:
    """Return the means of each resample (first axis)."""
    # Integers: products of floats by BLAS depend on the number of threads in their last bits.
    numbers = FixedPoint.from_floats(values)
    n_queries = values.shape[-1]
    rng = generator(seed, "bootstrap")
    sums = np.empty((resamples, *values.shape[:-1]), np.int64)
    with progress.start("Bootstrap", resamples, "resamples") as bar:
        for row in sums:
            # How often each query was drawn: sums are then products with one vector.
            drawn = np.bincount(rng.integers(n_queries, size=n_queries), minlength=n_queries)
            row[...] = numbers.integers @ drawn
            bar.advance(1)
    means: Floats = numbers.to_floats(sums) / n_queries
    return means


def _quantiles(means: Floats, ends: list[float]) -> Floats:
    return np.moveaxis(np.quantile(means, ends, axis=0), 0, -1)
