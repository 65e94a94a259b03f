"""Differences between systems, query by query; those within rounding are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from rankinite.core.progress import Progress, Silent
from rankinite.core.random import generator
from rankinite.core.types import Floats, Integers
from rankinite.stats.exact_sums import Units

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


# What is looked up stays in the cache. A block has a generator of its own, so this number is part
# of what a seed means.
BLOCK = 8192
# Two systems whose differences are all below this share of the largest between any two would lose
# bits to the unit that all share.
SMALL = 2.0**-16

Pattern = Iterator[NDArray[np.uint8]]  # for every eight queries, one byte a pattern


def randomisation_test(
    values: Floats,
    *,
    permutations: int = 100_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Floats:
    """Return the two-sided p-value of Fisher's randomisation test between every two systems.

    All sign patterns are tried if there are no more than ``permutations``; the p-value is exact
    then. Otherwise so many are drawn, and the pattern that was seen counts as one more: the
    p-value is never 0.

    Parameters
    ----------
    values
        Systems x queries; further axes may come before, such as one of measures.
    permutations
        How many sign patterns to try at most.
    seed
        Another seed draws others.
    progress
        Who wants to know how far it is.

    Examples
    --------
    Of the eight sign patterns of the differences 1, 2 and 3, two have a sum of 6 or -6.

    >>> randomisation_test(np.array([[2.0, 4.0, 6.0], [1.0, 2.0, 3.0]]))
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """
    n_systems, n_queries = values.shape[-2:]
    every = n_queries < permutations.bit_length()
    n_patterns = 2**n_queries if every else permutations
    blocks = _enumerated(n_queries) if every else _drawn(n_queries, permutations, seed)
    units = Units.of(Differences.between(values, values[..., :1, :]).values)
    columns = np.ascontiguousarray(units.counts.reshape(-1, n_queries).T)
    seen = _Seen.of(values, units)
    counts = np.zeros((*values.shape[:-1], n_systems), np.int64)
    with (progress or Silent()).start("Randomisation", n_patterns, "permutations") as bar:
        for n_rows, pattern in blocks:
            sums = _signed_sums(columns, n_rows, pattern)
            _count(sums.reshape(n_rows, *values.shape[:-1]), seen.far, counts)
            bar.advance(n_rows)
    p = counts / n_patterns if every else (counts + 1) / (n_patterns + 1)
    for place in map(tuple, np.argwhere(seen.small)):
        two = values[place[:-2]][list(place[-2:])]
        p[place] = randomisation_test(two, permutations=permutations, seed=seed)[0, 1]
    return _mirrored(p)


@dataclass(frozen=True)
class _Seen:
    """The differences as they are, of every two systems; only what is above a diagonal counts.

    Attributes
    ----------
    far
        How far from 0 their sum is, in units; less what rounding can make of it.
    small
        Whether they are too small for the common unit: such systems are tested by themselves.
    """

    far: Integers
    small: NDArray[np.bool_]

    @classmethod
    def of(cls, values: Floats, units: Units) -> _Seen:
        n_systems, n_queries = values.shape[-2:]
        sums = units.counts.sum(axis=-1)
        far = np.abs(sums[..., None, :] - sums[..., :, None])
        largest = np.zeros(far.shape)
        for i in range(n_systems - 1):
            found = Differences.between(values[..., i + 1 :, :], values[..., i : i + 1, :])
            largest[..., i, i + 1 :] = np.abs(found.values).max(axis=-1)
            rounding = np.ldexp(found.rounding.sum(axis=-1), -units.exponents[..., None])
            # Both sums may be off, each by the values' rounding and a unit a query.
            far[..., i, i + 1 :] -= 2 * (np.ceil(rounding).astype(np.int64) + n_queries)
        limit = SMALL * largest.max(axis=(-2, -1), keepdims=True)
        return cls(far, (largest > 0) & (largest < limit))


def _enumerated(n_queries: int) -> Iterator[tuple[int, Pattern]]:
    """Go through all sign patterns, by block."""
    for start in range(0, 2**n_queries, BLOCK):
        numbers = np.arange(start, min(start + BLOCK, 2**n_queries))
        yield len(numbers), _bytes_of(numbers, n_queries)


def _bytes_of(numbers: Integers, n_queries: int) -> Pattern:
    for shift in range(0, n_queries, 8):
        yield (numbers >> shift).astype(np.uint8)


def _drawn(n_queries: int, permutations: int, seed: int) -> Iterator[tuple[int, Pattern]]:
    """Draw so many sign patterns, by block."""
    for block, start in enumerate(range(0, permutations, BLOCK)):
        n_rows = min(BLOCK, permutations - start)
        yield n_rows, _random_bytes(generator(seed, "randomisation", block), n_rows, n_queries)


def _random_bytes(rng: np.random.Generator, n_rows: int, n_queries: int) -> Pattern:
    for _ in range(0, n_queries, 8):
        yield np.frombuffer(rng.bytes(n_rows), np.uint8)


def _signed_sums(columns: Integers, n_rows: int, pattern: Pattern) -> Integers:
    """Return for every sign pattern (rows) the signed sum of every column."""
    chosen = np.zeros((n_rows, columns.shape[1]), np.int64)
    found = np.empty_like(chosen)
    for start, index in zip(range(0, len(columns), 8), pattern, strict=True):
        # Every byte is in the table; clipping spares numpy a copy.
        np.take(_subset_sums(columns[start : start + 8]), index, axis=0, out=found, mode="clip")
        chosen += found
    chosen *= 2
    chosen -= columns.sum(axis=0)
    return chosen


def _subset_sums(rows: Integers) -> Integers:
    """Return the sums of all subsets of up to eight rows; bit i of the place chooses row i."""
    sums = np.zeros((256, rows.shape[1]), np.int64)
    for i in range(8):
        sums[1 << i : 2 << i] = sums[: 1 << i] + (rows[i] if i < len(rows) else 0)
    return sums


def _count(sums: Integers, far: Integers, counts: Integers) -> None:
    """Count the patterns whose difference is as far from 0 as the one seen, or farther."""
    for i in range(sums.shape[-1] - 1):
        others = np.abs(sums[..., i + 1 :] - sums[..., i : i + 1])
        counts[..., i, i + 1 :] += (others >= far[..., i, i + 1 :]).sum(axis=0)


def _mirrored(p: Floats) -> Floats:
    """Return a matrix with what is above the diagonal on both sides, and 1 on it."""
    above = np.triu(p, 1)
    return above + above.swapaxes(-2, -1) + np.eye(p.shape[-1])
