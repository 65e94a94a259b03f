"""What is found along a line of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankinite.core.jit import frozen
from rankinite.core.types import Floats, Integers, Mask
from rankinite.measures.line_search.kernels.values import (
    AVERAGE_PRECISION,
    CASCADE,
    CUMULATED,
    N_BLOCKS,
    Lines,
    Worth,
    best_of_all,
)
from rankinite.measures.line_search.line import MOST_BUCKETS, Steps, Walk, Way, is_wide
from rankinite.measures.measure import Form, Measure
from rankinite.measures.scorer import Scorer


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
        The best interval: all alphas in it are worth the same.
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
MOST_ROUNDS = 16
# A query's measure is rounded to so many bits at most; what lies below is rounding itself.
MOST_BITS = 48
# Values that differ by less are equal but for rounding; means of whole numbers round more.
ROUNDING = 1e-12
AS_GOOD = 1e-9
# Where to try an interval, in parts of its width.
SHARES = (0.5, 0.382, 0.618, 0.1, 0.9)


class Following:
    """A measure of one data set, to be followed along lines of scores.

    Parameters
    ----------
    measure
        What to follow.
    labels, offsets, top_grade
        As in `Scorer`.
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
        counts = np.ones(len(offsets) - 1) if query_weight is None else query_weight
        # Only proportions matter: the largest is 1.
        self._counts = counts / counts.max() if counts.any() else counts
        self._measuring = Scorer([measure], labels, offsets, top_grade)
        own = np.nan_to_num(labels[measure.source], nan=0.0)
        values = np.ascontiguousarray(measure.document_values(own, top_grade))
        sizes = np.diff(offsets)
        longest = int(sizes.max())
        weights = np.append(measure.rank_weights(longest), 0.0)
        if measure.form in BY_RANK:
            weights[:-1] /= np.arange(1, longest + 1)
        norms = _norms(measure, offsets, values, weights, sizes)
        bound = _largest_value(measure, offsets, values, weights)
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
        way = Way(one, other, 0.0, 1.0, convex=True)
        return self._best(way, [], whole=whole, with_peaks=True)

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

        If no alpha between the bounds changes the measure, alpha is 1, or the bound that is nearest
        to 1 unless documents tie there to no good.

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
        way = Way(scores, direction, float(low), float(high), convex=False)
        return self._best(way, [min(max(1.0, low), high)], whole=whole, with_peaks=with_peaks)

    def _best(
        self, way: Way, without_steps: Sequence[float], *, whole: bool, with_peaks: bool
    ) -> Along:
        """Find the best; ``without_steps`` is what is tried first if the measure never changes."""
        lines = way.lines()
        steps, start = self._steps(lines, whole=whole, with_peaks=with_peaks)
        totals = start + np.append(0, np.cumsum(steps.changes))
        begins, ends = np.append(0.0, steps.ends), np.append(steps.begins, lines.end)
        wide = is_wide(begins, ends, lines.near)
        if not wide.any():  # all of it is rounding of far larger scores
            wide = ends - begins == (ends - begins).max()
        best = _best_interval(totals, ends - begins, wide)
        means = self._mean(totals)
        interval = (float(way.alphas(begins[best])), float(way.alphas(ends[best])))
        tried = [] if len(steps.changes) else list(without_steps)
        tried += [interval[0] + share * (interval[1] - interval[0]) for share in SHARES]
        alpha, value = self._first_as_good(way, tried, means[best])
        at_ends = (self.measure(way.scores(way.low)), self.measure(way.scores(way.high)))
        for end, worth in zip((way.low, way.high), at_ends, strict=True):
            if worth > value + ROUNDING:
                alpha, interval, value = end, (end, end), worth
        course = _course(way, begins[wide], ends[wide], means[wide], is_whole=steps.is_whole)
        peak = self._peak(way, steps, totals, lines)
        return Along(
            alpha,
            interval,
            value,
            at_ends,
            course,
            peak if peak is not None and peak.value > value + ROUNDING else None,
        )

    def _first_as_good(
        self, way: Way, alphas: Sequence[float], expected: float
    ) -> tuple[float, float]:
        """Return the first alpha at which the measure is as expected, or the best; and its value.

        An interval may have single points in it at which documents tie and the measure is lower.
        """
        found = []
        for alpha in alphas:
            found.append((self.measure(way.scores(alpha)), alpha))
            if not found[-1][0] < expected - AS_GOOD:
                return alpha, found[-1][0]
        value, alpha = max(found, key=lambda one: one[0])
        return alpha, value

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
            opened = found.counts > 0 if whole else found.which_can_win(lines)
            if whole or found.counts[opened].sum() <= MOST_TAKEN:
                break
            edges = found.finer(edges, opened)
            walk = Walk(lines, self._worth, edges, with_peaks=with_peaks)
            found = walk.follow(np.zeros(len(edges) - 1, np.bool_), np.zeros(N_BLOCKS, np.int64))
        else:
            opened = found.which_can_win(lines)  # exact all the same, at the cost of room
        found = walk.follow(opened, found.by_block[:, opened].sum(axis=1))
        return found.steps(opened), found.start

    def _peak(self, way: Way, steps: Steps, totals: Integers, lines: Lines) -> Peak | None:
        """Return the best point that beats both of its sides; None if none does."""
        if not steps.peaks.any():
            return None
        first = np.append(
            0, 1 + np.flatnonzero(is_wide(steps.ends[:-1], steps.begins[1:], lines.near))
        )
        last = np.append(first[1:], len(steps.peaks)) - 1
        left, right = totals[first], totals[last + 1]
        values = (left + right) / 2 + np.add.reduceat(steps.peaks, first)
        beats = values > np.maximum(left, right)
        if not beats.any():
            return None
        best = int(np.argmax(np.where(beats, values, -np.inf)))
        alpha = float(way.alphas(steps.begins[first[best]]))
        return Peak(alpha, float(self._mean(values[[best]])[0]))


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


def _best_interval(totals: Integers, widths: Floats, wide: Mask) -> int:
    """Return the best interval; of several the widest, of those the first."""
    best = np.flatnonzero(wide & (totals == totals[wide].max()))
    return int(best[np.argmax(widths[best])])


def _course(way: Way, begins: Floats, ends: Floats, means: Floats, *, is_whole: bool) -> Course:
    """Return the course; of what rounding has torn apart no gaps are left in a whole one."""
    starts, stops = way.alphas(begins), way.alphas(ends)
    if is_whole:
        starts = np.append(way.low, stops[:-1])
        stops[-1] = way.high
    return Course(starts, stops, means, is_whole)


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
