"""How scores depend on alpha."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankinite.core.errors import DataError
from rankinite.core.jit import frozen
from rankinite.core.types import Floats, Integers, Mask
from rankinite.measures.line_search.kernels.follow import follow_all
from rankinite.measures.line_search.kernels.values import N_BLOCKS, NEAR, Lines, Taken, Tally, Worth

# Of scores: what rounding may do to them, and how large they may be.
NEAR_START = 4e-15
LARGEST_SCORE = 1e150


@dataclass(frozen=True)
class Way:
    """How scores depend on alpha.

    Attributes
    ----------
    one, other
        Two scores of each document; or with ``convex`` False a score and its slope.
    low, high
        The bounds of alpha.
    convex
        Whether scores are (1 - alpha) one + alpha other, or one + alpha other.
    """

    one: Floats
    other: Floats
    low: float
    high: float
    convex: bool

    def scores(self, alpha: float) -> Floats:
        """Return the scores at alpha."""
        if self.convex:
            return mixed(self.one, self.other, alpha)
        return np.asarray(self.one + alpha * self.other)

    def alphas(self, t: Floats | float) -> Floats:
        """Return the alphas at places along the lines; the last is the bound itself."""
        inside = np.minimum(self.low + t, self.high)
        return np.asarray(np.where(t >= self.high - self.low, self.high, inside))

    def lines(self) -> Lines:
        """Return the lines of all documents, from low on."""
        first = np.ascontiguousarray(self.scores(self.low), np.float64)
        second = np.ascontiguousarray(self.other, np.float64)
        largest, of_second = np.abs(first).max(), np.abs(second).max()
        for size in (largest, of_second, np.abs(self.scores(self.high)).max()):
            if not size <= LARGEST_SCORE:
                raise DataError(
                    f"scores: they reach {size:g} within the bounds of alpha; expected at most "
                    f"{LARGEST_SCORE:g}"
                )
        rise = of_second + self.convex * largest
        near = NEAR_START * float(largest / rise) if rise > 0.0 else 0.0
        end = self.high - self.low
        return Lines(frozen(first), frozen(second), float(self.convex), end, near)


def mixed(one: Floats, other: Floats, alpha: float) -> Floats:
    """Return (1 - alpha) one + alpha other."""
    return np.asarray((1.0 - alpha) * one + alpha * other)


MOST_BUCKETS = 4096


@dataclass(frozen=True)
class Steps:
    """Where a measure changes: single points, and stretches inside of which it is not known."""

    begins: Floats
    ends: Floats
    changes: Integers
    peaks: Integers
    is_whole: bool


@dataclass(frozen=True)
class Buckets:
    """A tally over all queries, the changes in opened buckets, and the measure just after 0."""

    changes: Integers
    rises: Integers
    peaks: Integers
    counts: Integers
    firsts: Floats
    lasts: Floats
    by_block: Integers
    taken: Taken
    wanted: Integers
    start: int

    def which_can_win(self, lines: Lines) -> Mask:
        """Tell which buckets may have a better value inside than the best between them."""
        some = self.counts > 0
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
        spans = zip(self.firsts[opened], self.lasts[opened], strict=True)
        cuts = [np.linspace(first, last, parts + 1) for first, last in spans]
        return np.unique(np.concatenate([edges, *cuts]))

    def steps(self, opened: Mask) -> Steps:
        """Return the changes of opened buckets one by one, and those of others as one each."""
        others = (self.counts > 0) & ~opened
        begins = np.concatenate([self.taken.times, self.firsts[others]])
        order = np.argsort(begins)
        return Steps(
            begins[order],
            np.concatenate([self.taken.times, self.lasts[others]])[order],
            np.concatenate([self.taken.changes, self.changes[others]])[order],
            np.concatenate([self.taken.peaks, np.zeros(others.sum(), np.int64)])[order],
            not others.any(),
        )


class Walk:
    """A way along lines, in buckets."""

    def __init__(self, lines: Lines, worth: Worth, edges: Floats, *, with_peaks: bool) -> None:
        self._lines = lines
        self._worth = worth
        self._edges = edges
        self._with_peaks = with_peaks

    def follow(self, opened: Mask, room: Integers) -> Buckets:
        """Go along; each block of queries has room for so many changes in opened buckets."""
        shape = (N_BLOCKS, len(opened))
        tally = Tally(
            changes=np.zeros(shape, np.int64),
            rises=np.zeros(shape, np.int64),
            peaks=np.zeros(shape, np.int64),
            counts=np.zeros(shape, np.int64),
            firsts=np.full(shape, np.inf),
            lasts=np.full(shape, -np.inf),
        )
        places = np.append(0, np.cumsum(room))
        n = int(places[-1])
        taken = Taken(np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64))
        starts, wanted = np.zeros(N_BLOCKS, np.int64), np.zeros(N_BLOCKS, np.int64)
        follow_all(
            self._lines,
            self._worth,
            self._with_peaks,
            frozen(self._edges),
            opened,
            places,
            starts,
            wanted,
            tally,
            taken,
        )
        used = np.minimum(wanted, room)
        parts = [slice(place, place + n) for place, n in zip(places, used, strict=False)]
        return Buckets(
            tally.changes.sum(axis=0),
            tally.rises.sum(axis=0),
            tally.peaks.sum(axis=0),
            tally.counts.sum(axis=0),
            tally.firsts.min(axis=0),
            tally.lasts.max(axis=0),
            tally.counts,
            Taken(*(np.concatenate([column[part] for part in parts]) for column in taken)),
            wanted,
            int(starts.sum()),
        )


def is_wide(begins: Floats, ends: Floats, near: float) -> Mask:
    """Tell which intervals are more than what rounding has torn apart."""
    return np.asarray(ends - begins > NEAR * ends + near)
