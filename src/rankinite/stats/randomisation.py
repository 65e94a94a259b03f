"""Fisher's randomisation test between every two systems.

If two systems are alike, then a query's two values might as well have been the other way round:
every difference might have the other sign. The p-value is the share of sign patterns whose sum of
differences is at least as far from 0 as the one seen.

A pattern serves all systems: the sum of signed differences of two systems is what is between their
sums of signed differences to the first system. And eight queries serve at once: the sums over all
256 subsets of them stand in a table, in which a byte of the pattern is looked up. Sums are whole
numbers, so they are exact, and two patterns tie if they do, but for the rounding of the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.progress import Progress, Silent
from rankinite.core.seeds import generator
from rankinite.stats.differences import Differences
from rankinite.stats.units import Floats, Integers, Units

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
    with (progress or Silent()).start("Randomisation", n_patterns, "permutations") as task:
        for n_rows, pattern in blocks:
            sums = _signed_sums(columns, n_rows, pattern)
            _count(sums.reshape(n_rows, *values.shape[:-1]), seen.far, counts)
            task.advance(n_rows)
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
