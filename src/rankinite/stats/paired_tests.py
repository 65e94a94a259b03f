"""Paired tests between systems, and the correction of their p-values for multiple testing.

There are the paired t-test and Fisher's randomisation test. Both take differences that are within
rounding as 0 (`Differences`), and add up integers instead of floats (`FixedPoint`): a sum then
depends neither on the order of queries nor on the number of threads. Where many pairs of systems
are tested at once, `holm` adjusts the p-values by Holm's method, which finds at least as many
differences significant as Bonferroni's correction, under the same guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.lazy import LazyModule
from rankinite.core.progress import Progress, Silent
from rankinite.core.random import generator
from rankinite.core.types import Floats, Integers, Mask

special: Any = LazyModule("scipy.special")

SUM_BITS = 60  # below the 63 of int64, for differences of sums
VALUE_BITS = 48  # of the largest value; the last bits of a float64 are rounding anyway


@dataclass(frozen=True)
class FixedPoint:
    """Values of systems (rows) for queries (columns) as integer multiples of a power of two.

    Attributes
    ----------
    integers
        The multiples: systems x queries, with further axes before them.
    exponents
        Exponents of the power of two, one for each index of the further axes.
    """

    integers: Integers
    exponents: NDArray[np.int32]

    @classmethod
    def from_floats(cls, numbers: Floats) -> FixedPoint:
        """Round numbers to the finest power of two at which no sum over queries exceeds 2^60.

        Examples
        --------
        >>> numbers = FixedPoint.from_floats(np.array([[0.5, 0.25], [1.0, 0.0]]))
        >>> numbers.to_floats(numbers.integers.sum(axis=-1)).tolist()
        [0.75, 1.0]
        """
        largest = np.frexp(np.abs(numbers).max(axis=(-2, -1)))[1]
        # A sum over n queries may need log2(n) bits more than the largest of its numbers.
        exponents = largest - min(VALUE_BITS, SUM_BITS - numbers.shape[-1].bit_length())
        integers = np.rint(np.ldexp(numbers, -exponents[..., None, None]))
        return cls(integers.astype(np.int64), exponents)

    def to_floats(self, sums: Integers) -> Floats:
        """Return the values of sums over queries."""
        values: Floats = np.ldexp(sums.astype(np.float64), self.exponents[..., None])
        return values


# Relative: rounding errors of computed values show in the last six bits of a float64.
ROUNDING = 2.0**-46


@dataclass(frozen=True)
class Differences:
    """Differences of paired values.

    Attributes
    ----------
    values
        The differences; exactly 0 where they are within the rounding of the two values.
    rounding
        Bounds of their rounding errors; 0 where the difference is 0.
    """

    values: Floats
    rounding: Floats

    @classmethod
    def between(cls, values: Floats, others: Floats) -> Differences:
        """Subtract others from values; the rounding of each query depends on its values alone.

        Examples
        --------
        >>> values, others = np.array([1e15, 0.1 + 0.2, 0.5]), np.array([1e15, 0.3, 0.25])
        >>> Differences.between(values, others).values
        array([0.  , 0.  , 0.25])
        """
        differences = values - others
        rounding = ROUNDING * np.maximum(np.abs(values), np.abs(others))
        none = np.abs(differences) <= rounding
        return cls(np.where(none, 0.0, differences), np.where(none, 0.0, rounding))


def mean_differences(values: Floats) -> Floats:
    """Return the mean difference between every two systems.

    The mean of differences, not the difference of means: that would lose small differences beside
    large means.

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
    differences = np.zeros((len(values), len(values)))
    for i, row in enumerate(values[:-1]):
        means = Differences.between(row, values[i + 1 :]).values.mean(axis=-1)
        differences[i, i + 1 :] = means
        differences[i + 1 :, i] = 0.0 - means  # not -means, which would make -0.0 of 0.0
    return differences


# P-values of large distances underflow; they are reported as this, never as 0.
SMALLEST_P = float(np.finfo(np.float64).tiny)


def t_test(values: Floats) -> Floats:
    """Return the two-sided p-value of the paired t-test between every two systems.

    Differences within rounding count as 0. The p-value is 1 for systems without a difference and
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
        differences = Differences.between(values[..., i + 1 :, :], values[..., i : i + 1, :])
        p[..., i, i + 1 :] = p[..., i + 1 :, i] = _p_values(differences)
    return p


def gain_and_p(values: Floats, others: Floats) -> tuple[float, float]:
    """Return the mean difference of values and others, and the p-value of the paired t-test.

    Parameters
    ----------
    values, others
        One value per query; NaN where the query does not count.

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
    # Each row has an exponent of its own, so that small differences of a pair of systems do not
    # lose bits to large ones of another pair.
    integers = FixedPoint.from_floats(differences.values[..., None, :]).integers[..., 0, :]
    mean = integers.sum(axis=-1) / n_queries
    error = integers.std(axis=-1, ddof=1) / np.sqrt(n_queries)
    # Equal differences have no error to divide by: they are infinitely far from 0.
    varies = ~_constant(differences)
    distance = np.divide(mean, error, out=np.full_like(mean, np.inf), where=varies)
    p = np.maximum(2 * special.stdtr(n_queries - 1, -np.abs(distance)), SMALLEST_P)
    return np.where(mean == 0, 1.0, p)


def _constant(differences: Differences) -> Mask:
    """Return for each row whether its differences are all the same number within rounding."""
    # Not by comparing with the first: one number must be within the rounding of all.
    lows = differences.values - differences.rounding
    highs = differences.values + differences.rounding
    constant: Mask = lows.max(axis=-1) <= highs.min(axis=-1)
    return constant


# Patterns of a block, so that the sums that are looked up stay in the cache. Each block has a
# generator of its own: another number would change the results of a seed.
BLOCK = 8192
# Pairs of systems whose differences are all below this share of the largest difference of any
# pair would lose bits to the exponent that all pairs share.
SMALL = 2.0**-16

Pattern = Iterator[NDArray[np.uint8]]  # for each eight queries, one byte per pattern


def randomisation_test(
    values: Floats,
    *,
    permutations: int = 100_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Floats:
    """Return the two-sided p-value of Fisher's randomisation test between every two systems.

    If there are at most ``permutations`` sign patterns, all are enumerated and the p-value is
    exact. Otherwise that many are drawn, and the observed pattern counts as one more, so that the
    p-value is never 0.

    Parameters
    ----------
    values
        Systems x queries; further axes may come before, such as one of measures.
    permutations
        Maximum number of sign patterns.
    seed
        Seed of the sign patterns.
    progress
        Progress reporter.

    Examples
    --------
    Of the eight sign patterns of the differences 1, 2 and 3, two have a sum of 6 or -6.

    >>> randomisation_test(np.array([[2.0, 4.0, 6.0], [1.0, 2.0, 3.0]]))
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """
    n_systems, n_queries = values.shape[-2:]
    exact = n_queries < permutations.bit_length()  # 2**n_queries <= permutations
    n_patterns = 2**n_queries if exact else permutations
    blocks = _all_patterns(n_queries) if exact else _draw_patterns(n_queries, permutations, seed)
    # Differences from the first system are enough: those of other pairs are their differences.
    numbers = FixedPoint.from_floats(Differences.between(values, values[..., :1, :]).values)
    columns = np.ascontiguousarray(numbers.integers.reshape(-1, n_queries).T)
    observed = _Observed.of(values, numbers)
    counts = np.zeros((*values.shape[:-1], n_systems), np.int64)
    with (progress or Silent()).start("Randomisation", n_patterns, "permutations") as bar:
        for n_rows, pattern in blocks:
            sums = _signed_sums(columns, n_rows, pattern)
            _count(sums.reshape(n_rows, *values.shape[:-1]), observed.distance, counts)
            bar.advance(n_rows)
    p = counts / n_patterns if exact else (counts + 1) / (n_patterns + 1)
    # Tested alone, a pair has an exponent of its own. The patterns are those of all others.
    for place in map(tuple, np.argwhere(observed.small)):
        pair = values[place[:-2]][list(place[-2:])]
        p[place] = randomisation_test(pair, permutations=permutations, seed=seed)[0, 1]
    return _symmetric(p)


@dataclass(frozen=True)
class _Observed:
    """The observed differences of every two systems; only entries above the diagonal count.

    Attributes
    ----------
    distance
        Distance of their sum from 0, as a fixed-point integer, less the largest rounding error.
    small
        Whether they are too small for the common exponent; such pairs are tested separately.
    """

    distance: Integers
    small: Mask

    @classmethod
    def of(cls, values: Floats, numbers: FixedPoint) -> _Observed:
        n_systems, n_queries = values.shape[-2:]
        sums = numbers.integers.sum(axis=-1)
        distance = np.abs(sums[..., None, :] - sums[..., :, None])
        largest = np.zeros(distance.shape)
        for i in range(n_systems - 1):
            pairs = Differences.between(values[..., i + 1 :, :], values[..., i : i + 1, :])
            largest[..., i, i + 1 :] = np.abs(pairs.values).max(axis=-1)
            rounding = np.ldexp(pairs.rounding.sum(axis=-1), -numbers.exponents[..., None])
            # The observed and the permuted sum may both be off, each by the rounding of the values
            # and by one integer per query.
            distance[..., i, i + 1 :] -= 2 * (np.ceil(rounding).astype(np.int64) + n_queries)
        limit = SMALL * largest.max(axis=(-2, -1), keepdims=True)
        return cls(distance, (largest > 0) & (largest < limit))


def _all_patterns(n_queries: int) -> Iterator[tuple[int, Pattern]]:
    """Iterate over all sign patterns, by block."""
    for start in range(0, 2**n_queries, BLOCK):
        numbers = np.arange(start, min(start + BLOCK, 2**n_queries))
        yield len(numbers), _bytes_of(numbers, n_queries)


def _bytes_of(numbers: Integers, n_queries: int) -> Pattern:
    for shift in range(0, n_queries, 8):
        yield (numbers >> shift).astype(np.uint8)


def _draw_patterns(n_queries: int, permutations: int, seed: int) -> Iterator[tuple[int, Pattern]]:
    """Draw sign patterns, by block."""
    for block, start in enumerate(range(0, permutations, BLOCK)):
        n_rows = min(BLOCK, permutations - start)
        yield n_rows, _random_bytes(generator(seed, "randomisation", block), n_rows, n_queries)


def _random_bytes(rng: np.random.Generator, n_rows: int, n_queries: int) -> Pattern:
    for _ in range(0, n_queries, 8):
        yield np.frombuffer(rng.bytes(n_rows), np.uint8)


def _signed_sums(columns: Integers, n_rows: int, pattern: Pattern) -> Integers:
    """Return for each sign pattern (rows) the signed sum of each column."""
    # Twice the sum of the values with sign +, less the sum of all values. Eight queries at a time
    # are looked up in a table of the sums of their subsets.
    positive = np.zeros((n_rows, columns.shape[1]), np.int64)
    partial = np.empty_like(positive)
    for start, index in zip(range(0, len(columns), 8), pattern, strict=True):
        # Every byte is in the table; with mode="clip" numpy needs no copy for its check.
        np.take(_subset_sums(columns[start : start + 8]), index, axis=0, out=partial, mode="clip")
        positive += partial
    positive *= 2
    positive -= columns.sum(axis=0)
    return positive


def _subset_sums(rows: Integers) -> Integers:
    """Return the sums of all subsets of up to eight rows; bit i of the index selects row i."""
    sums = np.zeros((256, rows.shape[1]), np.int64)
    for i in range(8):
        sums[1 << i : 2 << i] = sums[: 1 << i] + (rows[i] if i < len(rows) else 0)
    return sums


def _count(sums: Integers, distance: Integers, counts: Integers) -> None:
    """Count the patterns whose difference is at least as far from 0 as the observed one."""
    for i in range(sums.shape[-1] - 1):
        others = np.abs(sums[..., i + 1 :] - sums[..., i : i + 1])
        counts[..., i, i + 1 :] += (others >= distance[..., i, i + 1 :]).sum(axis=0)


def _symmetric(p: Floats) -> Floats:
    """Return the matrix with its upper triangle on both sides, and 1 on the diagonal."""
    above = np.triu(p, 1)
    return above + above.swapaxes(-2, -1) + np.eye(p.shape[-1])


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
    # A larger p-value never becomes smaller than one before it: tests are rejected in order.
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
