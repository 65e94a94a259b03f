"""A measure along a line of scores, s1 + alpha s2: its exact optimum, from crossing to crossing.

Along the line a measure is constant between the points where the scores of two documents cross
(LambdaSMART, Sec. 4). The scores of a line, and the sweep over all crossings, are in
`rankinite.measures.score_line`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from rankinite.core.elementary import log2
from rankinite.core.errors import UsageError
from rankinite.core.jit import frozen
from rankinite.core.types import Floats, Integers, Mask
from rankinite.measures.definitions import MEASURES
from rankinite.measures.kernels.line_values import Lines, MeasureArrays
from rankinite.measures.kernels.values_with_ties import N_BLOCKS
from rankinite.measures.measure import DEEPEST, Form, Measure
from rankinite.measures.score_line import MOST_BUCKETS, ScoreLine, Steps, is_wide, sweep
from rankinite.measures.scorer import Scorer, best_sums


@dataclass(frozen=True)
class Course:
    """A measure against alpha: constant on intervals.

    Attributes
    ----------
    begins, ends
        The intervals, in order; each ends where the next begins, unless the course is not whole.
    values
        The measure on each interval.
    is_whole
        Whether all intervals are included; if there are very many, some ranges are left out.
    """

    begins: Floats
    ends: Floats
    values: Floats
    is_whole: bool


@dataclass(frozen=True)
class Peak:
    """A single alpha, where documents tie, at which the measure is larger than on either side."""

    alpha: float
    value: float


@dataclass(frozen=True)
class LineOptimum:
    """The best of a measure along a line of scores.

    Attributes
    ----------
    alpha
        The middle of the best interval; or an end, if that is better than all intervals.
    interval
        The best interval: the measure is the same for all alphas in it.
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


# Divisors are taken out of the measure here, which leaves three forms for the kernels. A reciprocal
# rank is a cascade in which every relevant document satisfies for certain.
REDUCED_FORMS = {
    Form.NORMALISED: Form.CUMULATED,
    Form.PRECISION: Form.CUMULATED,
    Form.RECALL: Form.CUMULATED,
    Form.COVERAGE: Form.CUMULATED,
    Form.RECIPROCAL_RANK: Form.CASCADE,
}
BY_RANK = (Form.RECIPROCAL_RANK, Form.AVERAGE_PRECISION)
# Pairs of documents that are sampled to make buckets with about as many crossings each.
PAIRS_SAMPLED = 1 << 17
# At most this many changes are sorted at once; a course with more of them is not given whole.
MOST_CHANGES = 1 << 21
# Buckets are refined at most this often before all that may contain the best are opened.
MOST_REFINEMENTS = 16
# A query's measure is rounded to this many bits at most; lower bits are rounding errors anyway.
MOST_BITS = 48
# Values that differ by less are equal but for rounding; means of integers round more.
ROUNDING = 1e-12
AS_GOOD = 1e-9
# Places to try in an interval, as fractions of its width: the middle first, for it is the furthest
# from ties.
FRACTIONS = (0.5, 0.382, 0.618, 0.1, 0.9)


class MeasureAlongLine:
    """A measure of one data set as a function of a step along a line of scores.

    Parameters
    ----------
    measure
        The measure to maximise.
    labels, offsets, top_grade
        As in `Scorer`.
    query_weight
        The weight of each query in a mean; all 1 if None.
    """

    def __init__(
        self,
        measure: Measure,
        labels: Mapping[str | None, Floats],
        offsets: Integers,
        top_grade: float,
        query_weight: Floats | None = None,
    ) -> None:
        if measure.form == Form.FUNCTION:
            raise UsageError(
                f"{measure}: the best point on a line of scores is not known for a function of "
                f"ranked labels; give one of the measures {', '.join(MEASURES)}"
            )
        query_weights = np.ones(len(offsets) - 1) if query_weight is None else query_weight
        # Only proportions matter; with a largest weight of 1 sums keep their scale.
        some = query_weights.any()
        self._query_weights = query_weights / query_weights.max() if some else query_weights
        self._scorer = Scorer([measure], labels, offsets, top_grade)
        values = np.ascontiguousarray(measure.known_values(labels[measure.source], top_grade))
        sizes = np.diff(offsets)
        longest = int(sizes.max())
        weights = np.append(measure.rank_weights(longest), 0.0)
        if measure.form in BY_RANK:
            weights[:-1] /= np.arange(1, longest + 1)
        norms = _norms(measure, offsets, values)
        bound = _largest_value(measure, offsets, values)
        # Kernels need a single number per query: the divisor of its measure over its weight.
        weighted = self._query_weights > 0.0
        norms = np.divide(norms, self._query_weights, out=np.zeros(len(sizes)), where=weighted)
        self._arrays = MeasureArrays(
            frozen(offsets),
            frozen(values),
            frozen(norms),
            frozen(weights),
            frozen(np.append(0.0, np.cumsum(weights[:-1]))),
            measure.depth or longest,
            int(REDUCED_FORMS.get(measure.form, measure.form)),
            # The sum over all queries fits into 62 bits of an int64.
            2.0 ** min(MOST_BITS, 62 - int(np.ceil(log2(bound * len(sizes) + 1.0)))),
        )
        # No block of queries has more changes than pairs of documents; query q is in block
        # q modulo their number.
        pairs = sizes * (sizes - 1) // 2
        blocks = np.arange(len(sizes)) % N_BLOCKS
        self._pairs = np.bincount(blocks, pairs, N_BLOCKS).astype(np.int64)
        self._n_pairs = int(pairs.sum())

    def mean(self, scores: Floats) -> float:
        """Return the mean of the measure over the queries that count; NaN if none does."""
        values = self._scorer.per_query(scores)[0]
        counted = ~np.isnan(values) & (self._query_weights > 0.0)
        if not counted.any():
            return float("nan")
        return float(np.average(values[counted], weights=self._query_weights[counted]))

    def best_mix(self, first: Floats, second: Floats, *, whole: bool = False) -> LineOptimum:
        """Find the best (1 - alpha) first + alpha second, with alpha from 0 to 1.

        Parameters
        ----------
        first, second
            One finite score per document.
        whole
            Return the whole course, however many intervals it has.
        """
        line = ScoreLine(first, second, 0.0, 1.0, convex=True)
        return self._best(line, [], whole=whole, with_peaks=True)

    def best_step(
        self,
        scores: Floats,
        direction: Floats,
        low: float,
        high: float,
        *,
        whole: bool = False,
        with_peaks: bool = True,
    ) -> LineOptimum:
        """Find the best scores + alpha direction, with alpha from low to high.

        If no alpha between the bounds changes the measure, alpha is 1, or the bound that is nearest
        to 1 unless ties there make the measure smaller.

        Parameters
        ----------
        scores, direction
            One finite number per document.
        low, high
            The bounds of alpha.
        whole
            Return the whole course, however many intervals it has.
        with_peaks
            Look for single points that beat their neighbours.
        """
        line = ScoreLine(scores, direction, float(low), float(high), convex=False)
        return self._best(line, [min(max(1.0, low), high)], whole=whole, with_peaks=with_peaks)

    def _best(
        self, line: ScoreLine, if_constant: Sequence[float], *, whole: bool, with_peaks: bool
    ) -> LineOptimum:
        """Find the best; ``if_constant`` are the alphas to try if the measure never changes."""
        lines = line.lines()
        steps, start = self._steps(lines, whole=whole, with_peaks=with_peaks)
        totals = start + np.append(0, np.cumsum(steps.changes))
        begins, ends = np.append(0.0, steps.ends), np.append(steps.begins, lines.end)
        wide = is_wide(begins, ends, lines.near)
        if not wide.any():  # scores are so large that every interval is within their rounding
            wide = ends - begins == (ends - begins).max()
        best = _best_interval(totals, ends - begins, wide)
        means = self._mean(totals)
        interval = (float(line.alphas(begins[best])), float(line.alphas(ends[best])))
        candidates = [] if len(steps.changes) else list(if_constant)
        width = interval[1] - interval[0]
        candidates += [interval[0] + fraction * width for fraction in FRACTIONS]
        alpha, value = self._first_as_good(line, candidates, means[best])
        at_ends = (self.mean(line.scores(line.low)), self.mean(line.scores(line.high)))
        for end, end_value in zip((line.low, line.high), at_ends, strict=True):
            # At an end documents may tie that are apart everywhere else.
            if end_value > value + ROUNDING:
                alpha, interval, value = end, (end, end), end_value
        course = _course(line, begins[wide], ends[wide], means[wide], is_whole=steps.is_whole)
        peak = self._peak(line, steps, totals, lines)
        return LineOptimum(
            alpha,
            interval,
            value,
            at_ends,
            course,
            peak if peak is not None and peak.value > value + ROUNDING else None,
        )

    def _first_as_good(
        self, line: ScoreLine, alphas: Sequence[float], expected: float
    ) -> tuple[float, float]:
        """Return the first alpha at which the measure is as expected, or the best; and its value.

        An interval may have single points in it at which documents tie and the measure is lower.
        """
        values: list[float] = []
        for alpha in alphas:
            values.append(self.mean(line.scores(alpha)))
            if not values[-1] < expected - AS_GOOD:
                return alpha, values[-1]
        best = int(np.argmax(values))
        return alphas[best], values[best]

    def _mean(self, totals: Floats | Integers) -> Floats:
        """Return means over the queries that count, from sums over those that change."""
        empty = self._scorer.measures[0].empty
        sums = totals / self._arrays.scale
        constant = self._query_weights[self._arrays.norms == 0.0].sum()
        counted = self._query_weights.sum()
        if empty == "skip":
            counted -= constant
        else:
            sums = sums + constant * float(empty)
        return np.asarray(sums / counted if counted > 0.0 else np.full(len(sums), np.nan))

    def _steps(self, lines: Lines, *, whole: bool, with_peaks: bool) -> tuple[Steps, int]:
        """Return where the measure changes, as finely as the optimum needs; and its start.

        There may be as many changes as pairs of documents, too many to keep. So changes are added
        up in buckets, and only buckets that may contain the optimum are refined and opened.
        """
        along = partial(sweep, lines, self._arrays, with_peaks=with_peaks)
        edges = _edges(lines, self._arrays.offsets, self._n_pairs)
        everything = np.ones(len(edges) - 1, np.bool_)
        # If every block has room for all of its changes, the first sweep is the only one.
        capacity = np.minimum(self._pairs, MOST_CHANGES // N_BLOCKS)
        result = along(edges, everything, capacity)
        if (result.needed <= capacity).all():
            return result.steps(everything), result.start
        for _ in range(MOST_REFINEMENTS):
            opened = result.counts > 0 if whole else result.which_can_win(lines)
            if whole or result.counts[opened].sum() <= MOST_CHANGES:
                break
            edges = result.finer(edges, opened)
            nothing = np.zeros(len(edges) - 1, np.bool_)
            result = along(edges, nothing, np.zeros(N_BLOCKS, np.int64))
        else:
            opened = result.which_can_win(lines)  # still exact, at the cost of memory
        result = along(edges, opened, result.counts_by_block[:, opened].sum(axis=1))
        return result.steps(opened), result.start

    def _peak(self, line: ScoreLine, steps: Steps, totals: Integers, lines: Lines) -> Peak | None:
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
        alpha = float(line.alphas(steps.begins[first[best]]))
        return Peak(alpha, float(self._mean(values[[best]])[0]))


def _edges(lines: Lines, offsets: Integers, n_pairs: int) -> Floats:
    """Return edges of buckets with about equally many crossings, from a sample of pairs."""
    ends = np.array([0.0, lines.end])
    if n_pairs <= MOST_CHANGES:
        return ends
    sizes = np.diff(offsets)
    docs = np.linspace(0, offsets[-1] - 1, PAIRS_SAMPLED).astype(np.int64)
    query = np.searchsorted(offsets, docs, side="right") - 1
    # Each document with another of its query, at distances that are unrelated to their order.
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
    # Totals are integers: equal ones are equal to the bit, and the choice is the same everywhere.
    best = np.flatnonzero(wide & (totals == totals[wide].max()))
    return int(best[np.argmax(widths[best])])


def _course(
    line: ScoreLine, begins: Floats, ends: Floats, means: Floats, *, is_whole: bool
) -> Course:
    """Return the course; in a whole one, gaps that are due to rounding are closed."""
    starts, stops = line.alphas(begins), line.alphas(ends)
    if is_whole:
        starts = np.append(line.low, stops[:-1])
        stops[-1] = line.high
    return Course(starts, stops, means, is_whole)


def _norms(measure: Measure, offsets: Integers, values: Floats) -> Floats:
    """Return the divisor of each query's measure; 0 if it has no relevant document."""
    relevant = np.add.reduceat(values, offsets[:-1])
    if measure.form in (Form.AVERAGE_PRECISION, Form.RECALL):
        return relevant
    norms = np.ones(len(relevant))
    sizes = np.diff(offsets)
    if measure.form == Form.PRECISION:
        norms = sizes * 1.0 if measure.depth is None else norms * measure.depth
    elif measure.form == Form.COVERAGE:
        norms = np.minimum(sizes, measure.depth or DEEPEST) * 1.0
    elif measure.form == Form.NORMALISED:
        norms = best_sums(measure, values, offsets)
    return np.where(relevant > 0.0, norms, 0.0)


def _largest_value(measure: Measure, offsets: Integers, values: Floats) -> float:
    """Return an upper bound of the measure of a query."""
    if measure.form != Form.CUMULATED:
        return 1.0
    return max(float(best_sums(measure, values, offsets).max()), 1.0)
