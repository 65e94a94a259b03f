"""Scores along a line, and a sweep over the changes of a measure on it; see `line_search`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankinite.core.errors import DataError
from rankinite.core.jit import frozen
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Integers, Mask
from rankinite.measures.kernels.line_sweep import Buckets, sweep_all
from rankinite.measures.kernels.line_values import (
    NEAR,
    BucketStats,
    Changes,
    Lines,
    MeasureArrays,
)
from rankinite.measures.kernels.values_with_ties import N_BLOCKS

# By how much rounding may change a score, relative to the largest; and how large scores may be:
# products of larger ones would overflow.
NEAR_START = 4e-15
LARGEST_SCORE = 1e150


@dataclass(frozen=True)
class ScoreLine:
    """Scores of documents as a function of alpha.

    Attributes
    ----------
    first, second
        Two scores of each document; or with ``convex`` False a score and its slope.
    low, high
        The bounds of alpha.
    convex
        Whether scores are (1 - alpha) first + alpha second, or first + alpha second.
    """

    first: Floats
    second: Floats
    low: float
    high: float
    convex: bool

    def scores(self, alpha: float) -> Floats:
        """Return the scores at alpha."""
        if self.convex:
            return mixed(self.first, self.second, alpha)
        return np.asarray(self.first + alpha * self.second)

    def alphas(self, t: Floats | float) -> Floats:
        """Return alpha at places along the lines; the last is the upper bound itself."""
        # low + (high - low) may round to another number than high.
        inside = np.minimum(self.low + t, self.high)
        return np.asarray(np.where(t >= self.high - self.low, self.high, inside))

    def lines(self) -> Lines:
        """Return the lines of all documents, starting at the lower bound."""
        first = np.ascontiguousarray(self.scores(self.low), np.float64)
        second = np.ascontiguousarray(self.second, np.float64)
        largest, of_second = np.abs(first).max(), np.abs(second).max()
        for size in (largest, of_second, np.abs(self.scores(self.high)).max()):
            if not size <= LARGEST_SCORE:
                raise DataError(
                    f"scores: they reach {size:g} within the bounds of alpha; expected at most "
                    f"{LARGEST_SCORE:g}"
                )
        # A bound of how fast scores change, by which the rounding of a score becomes one of t.
        rise = of_second + self.convex * largest
        near = NEAR_START * float(largest / rise) if rise > 0.0 else 0.0
        end = self.high - self.low
        return Lines(frozen(first), frozen(second), float(self.convex), end, near)


def mixed(first: Floats, second: Floats, alpha: float) -> Floats:
    """Return (1 - alpha) first + alpha second."""
    return np.asarray((1.0 - alpha) * first + alpha * second)


# At most about this many buckets: their statistics, per block of queries, fit into memory easily.
MOST_BUCKETS = 4096


@dataclass(frozen=True)
class Steps:
    """Where a measure changes: single points, and intervals inside of which it is not known."""

    begins: Floats
    ends: Floats
    changes: Integers
    peaks: Integers
    is_whole: bool


@dataclass(frozen=True)
class SweepResult:
    """Statistics of buckets over all queries, the changes in opened ones, and the start value.

    Attributes
    ----------
    changes, rises, peaks, counts, firsts, lasts
        One number per bucket, as in `BucketStats`.
    counts_by_block
        The counts of each block of queries.
    single
        The changes in opened buckets.
    needed
        How many changes each block of queries has in opened buckets.
    start
        The measure just after t = 0.
    """

    changes: Integers
    rises: Integers
    peaks: Integers
    counts: Integers
    firsts: Floats
    lasts: Floats
    counts_by_block: Integers
    single: Changes
    needed: Integers
    start: int

    def which_can_win(self, lines: Lines) -> Mask:
        """Tell which buckets may have a better value inside than the best between them."""
        some = self.counts > 0
        # Between buckets the measure is known. Inside, it may first rise by all that is positive,
        # and only then fall; a bucket that even so stays below the best known cannot win.
        before = self.start + np.cumsum(self.changes) - self.changes
        edges = np.append(0.0, self.lasts[some]), np.append(self.firsts[some], lines.end)
        wide = is_wide(*edges, lines.near)
        known = np.append(before[some], self.start + self.changes.sum())[wide]
        least = known.max() if len(known) else np.iinfo(np.int64).min
        inside = is_wide(self.firsts, self.lasts, lines.near)
        rising = inside & (self.rises > 0) & (before + self.rises >= least)
        peaked = (self.peaks > 0) & (before + self.rises + self.peaks > least)
        return np.asarray(rising | peaked)

    def finer(self, edges: Floats, opened: Mask) -> Floats:
        """Return edges that cut the opened buckets, between their first and last changes."""
        parts = max(2, MOST_BUCKETS // int(opened.sum()))
        # From the first change to the last rather than between edges: there is nothing outside.
        ranges = zip(self.firsts[opened], self.lasts[opened], strict=True)
        cuts = [np.linspace(first, last, parts + 1) for first, last in ranges]
        return np.unique(np.concatenate([edges, *cuts]))

    def steps(self, opened: Mask) -> Steps:
        """Return the changes of opened buckets one by one, and those of each other as a whole."""
        others = (self.counts > 0) & ~opened
        begins = np.concatenate([self.single.times, self.firsts[others]])
        order = np.argsort(begins, kind="stable")
        return Steps(
            begins[order],
            np.concatenate([self.single.times, self.lasts[others]])[order],
            np.concatenate([self.single.changes, self.changes[others]])[order],
            np.concatenate([self.single.peaks, np.zeros(others.sum(), np.int64)])[order],
            not others.any(),
        )


def sweep(
    lines: Lines,
    measure: MeasureArrays,
    edges: Floats,
    opened: Mask,
    capacity: Integers,
    *,
    with_peaks: bool,
) -> SweepResult:
    """Sweep along lines, with changes of the measure added up in buckets.

    Parameters
    ----------
    lines, measure
        The scores of documents, and the measure on the data set.
    edges, opened
        Where buckets start and end, and those whose changes are also wanted one by one.
    capacity
        How many of the latter each block of queries may write.
    with_peaks
        Whether the value of the crossing points themselves is computed.
    """
    # Every block of queries has statistics of its own, which threads need not share.
    shape = (N_BLOCKS, len(opened))
    stats = BucketStats(
        changes=np.zeros(shape, np.int64),
        rises=np.zeros(shape, np.int64),
        peaks=np.zeros(shape, np.int64),
        counts=np.zeros(shape, np.int64),
        firsts=np.full(shape, np.inf),
        lasts=np.full(shape, -np.inf),
    )
    places = np.append(0, np.cumsum(capacity))
    n = int(places[-1])
    changes = Changes(np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64))
    starts, needed = np.zeros(N_BLOCKS, np.int64), np.zeros(N_BLOCKS, np.int64)
    buckets = Buckets(frozen(edges), opened, places, with_peaks)
    arguments = lines, measure, buckets, stats, changes, starts, needed
    parallel_for(sweep_all, N_BLOCKS, *arguments)
    used = np.minimum(needed, capacity)
    parts = [slice(place, place + n) for place, n in zip(places, used, strict=False)]
    return SweepResult(
        stats.changes.sum(axis=0),
        stats.rises.sum(axis=0),
        stats.peaks.sum(axis=0),
        stats.counts.sum(axis=0),
        stats.firsts.min(axis=0),
        stats.lasts.max(axis=0),
        stats.counts,
        Changes(*(np.concatenate([column[part] for part in parts]) for column in changes)),
        needed,
        int(starts.sum()),
    )


def is_wide(begins: Floats, ends: Floats, near: float) -> Mask:
    """Tell which intervals are wider than rounding errors of a crossing."""
    return np.asarray(ends - begins > NEAR * ends + near)
