"""The best point of a measure along a line of scores, exactly (LambdaSMART, Sec. 4).

Scores s1 and s2 are mixed as (1 - alpha) s1 + alpha s2, or added as s1 + alpha s2. A measure then
changes only where documents cross. Inside a query all crossings are followed one after the other
(`kernels`). Over all queries there is no need to put them in order: changes are summed up in
buckets of alpha, the best value inside a bucket is bounded by its positive changes, and only
buckets that can still win are opened and sorted.

Sums are of whole numbers, so that neither threads nor buckets change the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.kernels import frozen
from rankinite.measures.along.kernels import (
    AVERAGE_PRECISION,
    CASCADE,
    CUMULATED,
    N_BLOCKS,
    best_of_all,
)
from rankinite.measures.along.parts import Lines, Worth
from rankinite.measures.along.walk import MOST_BUCKETS, Steps, Walk, nearness
from rankinite.measures.compute import Measuring
from rankinite.measures.measure import Form, Measure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

FORMS = {
    Form.CUMULATED: CUMULATED,
    Form.NORMALISED: CUMULATED,
    Form.PRECISION: CUMULATED,
    Form.CASCADE: CASCADE,
    Form.RECIPROCAL_RANK: CASCADE,
    Form.AVERAGE_PRECISION: AVERAGE_PRECISION,
}
BY_RANK = (Form.RECIPROCAL_RANK, Form.AVERAGE_PRECISION)
# So many pairs of documents are looked at to make buckets with about as many crossings each.
PAIRS_SAMPLED = 1 << 17
# So many changes are sorted at once at most; a course with more of them is not given whole.
MOST_TAKEN = 1 << 21
MOST_ROUNDS = 8
# A query's measure is rounded to so many bits at most; what lies below is rounding itself.
MOST_BITS = 48
# Values that differ by less are equal but for rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Course:
    """A measure against alpha: constant on intervals.

    Attributes
    ----------
    begins, ends
        The intervals, in order; each ends where the next begins, unless the course is not whole.
    values
        The measure on each.
    is_whole
        Whether all intervals are there; of very many, some stretches are left out.
    """

    begins: Floats
    ends: Floats
    values: Floats
    is_whole: bool


@dataclass(frozen=True)
class Peak:
    """A single alpha, where documents tie, that is worth more than what is next to it."""

    alpha: float
    value: float


@dataclass(frozen=True)
class Along:
    """The best of a measure along alpha.

    Attributes
    ----------
    alpha
        The middle of the best interval; or an end, if that is better than all intervals.
    interval
        The best interval: all alphas in it rank alike.
    value
        The mean of the measure over the queries that count, at alpha.
    at_ends
        The same at the two ends of alpha's range.
    course
        The measure against alpha.
    peak
        The best single point that beats its neighbours and the best interval, if there is one: an
        expectation over the order of documents that tie there and nowhere else.
    """

    alpha: float
    interval: tuple[float, float]
    value: float
    at_ends: tuple[float, float]
    course: Course
    peak: Peak | None


class Following:
    """A measure of one data set, to be followed along lines of scores.

    Parameters
    ----------
    measure
        What to follow.
    labels, offsets, top_grade
        As in `Measuring`.
    query_weight
        What each query counts in a mean; all count 1 if None.
    """

    def __init__(
        self,
        measure: Measure,
        labels: Mapping[str | None, Floats],
        offsets: Integers,
        top_grade: float,
        query_weight: Floats | None = None,
    ) -> None:
        self._counts = np.ones(len(offsets) - 1) if query_weight is None else query_weight
        self._measuring = Measuring([measure], labels, offsets, top_grade)
        own = np.nan_to_num(labels[measure.source], nan=0.0)
        values = np.ascontiguousarray(measure.document_values(own, top_grade))
        sizes = np.diff(offsets)
        longest = int(sizes.max())
        weights = np.append(measure.rank_weights(longest), 0.0)
        if measure.form in BY_RANK:
            weights[:-1] /= np.arange(1, longest + 1)
        norms = _norms(measure, offsets, values, weights, sizes)
        bound = _largest_value(measure, offsets, values, weights) * max(self._counts.max(), 1.0)
        # What a query counts and what its measure is divided by are one number for the kernels.
        some = self._counts > 0.0
        norms = np.divide(norms, self._counts, out=np.zeros(len(sizes)), where=some)
        self._worth = Worth(
            frozen(offsets),
            frozen(values),
            frozen(norms),
            frozen(weights),
            frozen(np.append(0.0, np.cumsum(weights[:-1]))),
            measure.depth or longest,
            FORMS[measure.form],
            2.0 ** min(MOST_BITS, 62 - int(np.ceil(np.log2(bound * len(sizes) + 1.0)))),
        )
        pairs = sizes * (sizes - 1) // 2
        blocks = np.arange(len(sizes)) % N_BLOCKS
        self._pairs = np.bincount(blocks, pairs, N_BLOCKS).astype(np.int64)
        self._n_pairs = int(pairs.sum())

    def measure(self, scores: Floats) -> float:
        """Return the mean of the measure over the queries that count; NaN if none does."""
        values = self._measuring.measure(scores, again=True)[0]
        counted = ~np.isnan(values) & (self._counts > 0.0)
        if not counted.any():
            return float("nan")
        return float(np.average(values[counted], weights=self._counts[counted]))

    def best_mix(self, one: Floats, other: Floats, *, whole: bool = False) -> Along:
        """Find the best (1 - alpha) one + alpha other, with alpha from 0 to 1.

        Parameters
        ----------
        one, other
            One finite score a document.
        whole
            Give the whole course, however many intervals it has.
        """
        lines = _lines(one, other, convex=True, end=1.0)
        return self._best(lines, one, other, 0.0, whole=whole, with_peaks=True)

    def best_step(
        self,
        scores: Floats,
        direction: Floats,
        low: float,
        high: float,
        *,
        whole: bool = False,
        with_peaks: bool = True,
    ) -> Along:
        """Find the best scores + alpha direction, with alpha from low to high.

        If no alpha changes the measure, it is 1, or as near to it as the bounds allow.

        Parameters
        ----------
        scores, direction
            One finite number a document.
        low, high
            The bounds of alpha.
        whole
            Give the whole course, however many intervals it has.
        with_peaks
            Look for single points that beat their neighbours.
        """
        lines = _lines(scores + low * direction, direction, convex=False, end=high - low)
        return self._best(lines, scores, direction, low, whole=whole, with_peaks=with_peaks)

    def _best(
        self, lines: Lines, one: Floats, other: Floats, low: float, *, whole: bool, with_peaks: bool
    ) -> Along:
        steps, start = self._steps(lines, whole=whole, with_peaks=with_peaks)
        totals = start + np.append(0, np.cumsum(steps.changes))
        begins, ends = np.append(0.0, steps.ends), np.append(steps.begins, lines.end)
        wide = ends - begins > nearness(ends, lines.end)
        best = _best_interval(totals, ends - begins, wide)
        low_end, high_end = low, low + lines.end

        def at(alpha: float) -> float:
            return self.measure(_at(lines, one, other, alpha))

        interval = (low + float(begins[best]), low + float(ends[best]))
        alpha = interval[0] + (interval[1] - interval[0]) / 2
        if not lines.convex and not len(steps.changes):
            alpha = min(max(1.0, low_end), high_end)
        value, at_ends = at(alpha), (at(low_end), at(high_end))
        for end, worth in zip((low_end, high_end), at_ends, strict=True):
            if worth > value + ROUNDING:
                alpha, interval, value = end, (end, end), worth
        exact = self._mean(totals)
        # All of it is as far off as the value that was measured: sums of whole numbers round.
        course = Course(low + begins[wide], low + ends[wide], exact[wide], steps.is_whole)
        peak = _peak(steps, totals, lines.end)
        found = None
        if peak is not None:
            found = Peak(low + peak[0], float(self._mean(np.array([peak[1]]))[0]))
            found = found if found.value > value + ROUNDING else None
        return Along(alpha, interval, value, at_ends, course, found)

    def _mean(self, totals: Floats | Integers) -> Floats:
        """Return means over the queries that count, from sums over those that change."""
        empty = self._measuring.measures[0].empty
        sums = totals / self._worth.scale
        constant = self._counts[self._worth.norms == 0.0].sum()
        counted = self._counts.sum()
        if empty == "skip":
            counted -= constant
        else:
            sums = sums + constant * float(empty)
        return np.asarray(sums / counted if counted > 0.0 else np.full(len(sums), np.nan))

    def _steps(self, lines: Lines, *, whole: bool, with_peaks: bool) -> tuple[Steps, int]:
        """Return where the measure changes, as closely as the best place needs; and its start."""
        edges = _edges(lines, self._worth.offsets, self._n_pairs)
        walk = Walk(lines, self._worth, edges, with_peaks=with_peaks)
        everything = np.ones(len(edges) - 1, np.bool_)
        room = np.minimum(self._pairs, MOST_TAKEN // N_BLOCKS)
        found = walk.follow(everything, room)
        if (found.wanted <= room).all():
            return found.steps(everything), found.start
        for _ in range(MOST_ROUNDS):
            opened = found.counts > 0 if whole else found.which_can_win(lines.end)
            if whole or found.counts[opened].sum() <= MOST_TAKEN:
                break
            edges = found.finer(edges, opened)
            walk = Walk(lines, self._worth, edges, with_peaks=with_peaks)
            found = walk.follow(np.zeros(len(edges) - 1, np.bool_), np.zeros(N_BLOCKS, np.int64))
        found = walk.follow(opened, found.by_block[:, opened].sum(axis=1))
        return found.steps(opened), found.start


def _edges(lines: Lines, offsets: Integers, n_pairs: int) -> Floats:
    """Return edges of buckets in which about as many documents cross, by a sample of pairs."""
    ends = np.array([0.0, lines.end])
    if n_pairs <= MOST_TAKEN:
        return ends
    sizes = np.diff(offsets)
    docs = np.linspace(0, offsets[-1] - 1, PAIRS_SAMPLED).astype(np.int64)
    query = np.searchsorted(offsets, docs, side="right") - 1
    # Each document with one further down, by steps that have nothing to do with their order.
    apart = 1 + np.arange(PAIRS_SAMPLED) * 7919 % np.maximum(sizes[query] - 1, 1)
    others = offsets[query] + (docs - offsets[query] + apart) % sizes[query]
    ahead, then = (scores[docs] - scores[others] for scores in (lines.first, lines.second))
    rise = ahead * lines.convex - then
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.sort(ahead / rise)
    times = times[(times > 0.0) & (times < lines.end)]
    n_buckets = min(MOST_BUCKETS, max(1, len(times) // 8))
    cuts = times[np.arange(1, n_buckets) * len(times) // n_buckets]
    return np.unique(np.concatenate([ends, cuts]))


def _lines(first: Floats, second: Floats, *, convex: bool, end: float) -> Lines:
    one, other = np.ascontiguousarray(first), np.ascontiguousarray(second)
    return Lines(frozen(one), frozen(other), float(convex), float(end))


def _at(lines: Lines, one: Floats, other: Floats, alpha: float) -> Floats:
    if lines.convex:
        return mixed(one, other, alpha)
    return np.asarray(one + alpha * other)


def mixed(one: Floats, other: Floats, alpha: float) -> Floats:
    """Return (1 - alpha) one + alpha other."""
    return np.asarray((1.0 - alpha) * one + alpha * other)


def _best_interval(totals: Integers, widths: Floats, wide: Mask) -> int:
    """Return the best interval; of several the widest, of those the first."""
    best = np.flatnonzero(wide & (totals == totals[wide].max()))
    return int(best[np.argmax(widths[best])])


def _peak(steps: Steps, totals: Integers, end: float) -> tuple[float, float] | None:
    """Return the best point that beats both of its sides, and its value; None if none does."""
    if not steps.peaks.any():
        return None
    apart = np.append(True, steps.begins[1:] - steps.ends[:-1] > nearness(steps.begins[1:], end))
    first = np.flatnonzero(apart)
    last = np.append(first[1:], len(apart)) - 1
    left, right = totals[first], totals[last + 1]
    values = (left + right) / 2 + np.add.reduceat(steps.peaks, first)
    beats = values > np.maximum(left, right)
    if not beats.any():
        return None
    best = int(np.argmax(np.where(beats, values, -np.inf)))
    return float(steps.begins[first[best]]), float(values[best])


def _norms(
    measure: Measure, offsets: Integers, values: Floats, weights: Floats, sizes: Integers
) -> Floats:
    """Return what each query's measure is divided by; 0 if it has no relevant document."""
    relevant = np.add.reduceat(values, offsets[:-1])
    if measure.form == Form.AVERAGE_PRECISION:
        return relevant
    norms = np.ones(len(sizes))
    if measure.form == Form.PRECISION:
        norms = sizes.astype(np.float64) if measure.depth is None else norms * measure.depth
    elif measure.form == Form.NORMALISED:
        best_of_all(frozen(offsets), frozen(values), frozen(weights), norms)
    return np.where(relevant > 0.0, norms, 0.0)


def _largest_value(measure: Measure, offsets: Integers, values: Floats, weights: Floats) -> float:
    """Return what no query's measure exceeds."""
    if measure.form != Form.CUMULATED:
        return 1.0
    best = np.empty(len(offsets) - 1)
    best_of_all(frozen(offsets), frozen(values), frozen(weights), best)
    return max(float(best.max()), 1.0)
