"""Sections of a report that compare models.

Headline, intervals of differences, queries won and lost, rank correlation, and p-values of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.format import MISSING, counted, number_text, p_phrase, p_text, signed_text
from rankinite.core.types import Floats
from rankinite.ensembles.selection import LEVEL, Gain, gain_over
from rankinite.evaluation.comparison import Comparison
from rankinite.evaluation.evaluate import Evaluation
from rankinite.report.charts import Scale, steps_path, thinned
from rankinite.runs.recipe import ENSEMBLE
from rankinite.runs.results import HELD_OUT, EnsembleComparison, Results
from rankinite.runs.tables import oracle_of, short_form
from rankinite.stats.kendall import RankCorrelation

MOST_LISTED = 10
# Smaller differences come from the rounding of sums: the queries are ties.
ROUNDING = 1e-12
# Shades of the lowest and the highest tau; dark text must stay readable on the latter.
LIGHTEST, DARKEST = 0.03, 0.6
# From this tau on, two models count as ranking alike.
ALIKE = 0.995


@dataclass(frozen=True)
class Card:
    """Ensemble and best member by one measure: means, difference, interval and p-value."""

    measure: str
    ensemble: str
    best: str
    gain: str
    interval: str
    p: str
    oracle: str


@dataclass(frozen=True)
class Headline:
    """The result in sentences and numbers.

    Attributes
    ----------
    sentences
        What was measured, and whether the difference is significant.
    cards
        One a measure; empty if there is nothing to compare.
    title, best
        Names of the ensemble and of the best member.
    """

    sentences: tuple[str, ...]
    cards: tuple[Card, ...]
    title: str
    best: str


def headline_of(results: Results, comparison: EnsembleComparison) -> Headline:
    """Return the result by every measure that counts."""
    measures = results.recipe.measures
    best, ensemble = comparison.members[comparison.best], comparison.ensemble
    differences = {measure: gain_over(ensemble, best, measure) for measure in measures}
    gains = {measure: gain for measure, gain in differences.items() if gain is not None}
    if measures[0] not in gains:
        absent = f"No ensemble could be compared with a member on {comparison.place}."
        return Headline((absent,), (), comparison.title, comparison.best)
    oracle = oracle_of(comparison, measures)
    cards = tuple(_card(ensemble, best, measure, gain, oracle) for measure, gain in gains.items())
    sentences = (
        _means_sentence(results, comparison, ensemble, best),
        _difference_sentence(gains[measures[0]]),
    )
    title = f"the {ENSEMBLE}" if comparison.title == ENSEMBLE else comparison.title
    return Headline(sentences, cards, title, comparison.best)


def _card(
    ensemble: Evaluation, best: Evaluation, measure: str, gain: Gain, oracle: Mapping[str, float]
) -> Card:
    return Card(
        measure,
        number_text(ensemble.mean[measure]),
        number_text(best.mean[measure]),
        signed_text(gain.mean),
        f"{signed_text(gain.low)} to {signed_text(gain.high)}",
        p_text(gain.p),
        number_text(oracle.get(measure, float("nan"))),
    )


def _means_sentence(
    results: Results, comparison: EnsembleComparison, ensemble: Evaluation, best: Evaluation
) -> str:
    first = results.recipe.measures[0]
    # The held-out parts chose the models, so there the ensemble is the average of all of them.
    models = comparison.members if comparison.name == HELD_OUT else results.selection.chosen
    n_models = counted(len(models), "model")
    n_queries = counted(ensemble.n_queries[first], "query", "queries")
    return (
        f"On {n_queries} of {comparison.place} the ensemble of {n_models} reaches "
        f"{first} {number_text(ensemble.mean[first])}; the best member, {comparison.best}, reaches "
        f"{number_text(best.mean[first])}."
    )


def _difference_sentence(gain: Gain) -> str:
    p = p_phrase(gain.p)
    if gain.mean == 0:
        return "There is no difference between them."
    if not gain.is_significant:
        return f"The difference of {signed_text(gain.mean)} may be due to chance ({p})."
    word = "better" if gain.mean > 0 else "worse"
    return f"The ensemble is significantly {word}, by {number_text(abs(gain.mean))} ({p})."


@dataclass(frozen=True)
class IntervalRow:
    """The difference of a system to the baseline, with its confidence interval.

    Attributes
    ----------
    label, detail
        Name and description of the system.
    mean, difference
        Texts of its mean, and of the difference to the baseline.
    point, left, width
        Coordinates of the difference and of its interval, in percent.
    emphasised
        Whether the row is highlighted.
    """

    label: str
    detail: str
    mean: str
    difference: str
    point: float
    left: float
    width: float
    emphasised: bool


@dataclass(frozen=True)
class IntervalChart:
    """Differences of systems to a baseline, with their confidence intervals.

    Attributes
    ----------
    measure, baseline
        What is compared, and with which system.
    rows
        The systems.
    zero, ticks
        Coordinate of 0; coordinates and texts of the axis.
    """

    measure: str
    baseline: str
    rows: tuple[IntervalRow, ...]
    zero: float
    ticks: tuple[tuple[float, str], ...]


def subset_intervals(results: Results) -> IntervalChart | None:
    """Return the chart of subsets against all models; None if there is nothing to compare."""
    averages, chosen = results.selection.subsets, set(results.selection.chosen)
    details = {name: short_form(results.models_of(name)) for name in averages}
    emphasised = {name for name in averages if set(results.models_of(name)) == chosen}
    return _interval_chart(averages, results.whole, results.recipe.measures[0], details, emphasised)


def member_intervals(results: Results, comparison: EnsembleComparison) -> IntervalChart | None:
    """Return the chart of members against the ensemble; None if there is nothing to compare."""
    details = {comparison.best: "best member"}
    first = results.recipe.measures[0]
    return _interval_chart(comparison.systems, comparison.title, first, details, {comparison.title})


def _interval_chart(
    evaluations: Mapping[str, Evaluation],
    baseline: str,
    measure: str,
    details: Mapping[str, str],
    emphasised: set[str],
) -> IntervalChart | None:
    # The baseline gets a row too, without an interval, to show its mean.
    gains = {
        name: Gain(0.0, 0.0, 0.0, 1.0)
        if name == baseline
        else gain_over(evaluation, evaluations[baseline], measure)
        for name, evaluation in evaluations.items()
    }
    known = {name: gain for name, gain in gains.items() if gain is not None}
    if len(known) < 2:
        return None
    ends = [end for gain in known.values() for end in (gain.low, gain.mean, gain.high)]
    # All rows share a scale with 0 on it: an interval is read by whether it crosses 0.
    scale = Scale.around([0.0, *ends], margin=0.03)
    rows = tuple(
        IntervalRow(
            name,
            details.get(name, ""),
            number_text(evaluations[name].mean[measure]),
            "" if name == baseline else signed_text(gain.mean),
            scale.place(gain.mean),
            scale.place(gain.low),
            round(scale.place(gain.high) - scale.place(gain.low), 2),
            name in emphasised,
        )
        for name, gain in known.items()
    )
    return IntervalChart(measure, baseline, rows, scale.place(0.0), _ticks(scale))


def _ticks(scale: Scale) -> tuple[tuple[float, str], ...]:
    """Return coordinates and texts of an axis, all with as many digits as any of them needs."""
    ticks = scale.ticks(most=4)
    digits = max((len(f"{tick:.6f}".rstrip("0").partition(".")[2]) for tick in ticks), default=0)
    return tuple((scale.place(tick), signed_text(tick, digits) if tick else "0") for tick in ticks)


@dataclass(frozen=True)
class ChangedQuery:
    """A query on which the ensemble is better or worse than the best member.

    Attributes
    ----------
    qid
        Its id.
    documents, ensemble, member, difference
        Texts of its size, of both values and of their difference.
    page
        The page that explains it, as seen from the report; empty if there is none.
    """

    qid: str
    documents: str
    ensemble: str
    member: str
    difference: str
    page: str = ""


@dataclass(frozen=True)
class QueryDifferences:
    """Differences between the ensemble and the best member, query by query.

    Attributes
    ----------
    wins, ties, losses
        Numbers of queries on which the ensemble is better, equal and worse.
    gains_path, losses_path
        Outlines of the sorted differences above and below 0.
    top, bottom, zero
        Texts at the ends of the axis, and the coordinate of 0, in percent from the top.
    mean_win, mean_loss
        Mean difference of the queries that are won and lost.
    worst, best
        The queries with the largest losses and wins, the largest first.
    """

    measure: str
    wins: int
    ties: int
    losses: int
    gains_path: str
    losses_path: str
    top: str
    bottom: str
    zero: float
    mean_win: str
    mean_loss: str
    worst: tuple[ChangedQuery, ...]
    best: tuple[ChangedQuery, ...]

    @property
    def n_queries(self) -> int:
        """Number of queries that count."""
        return self.wins + self.ties + self.losses


def query_differences(
    comparison: EnsembleComparison, measure: str, pages: Mapping[str, str] | None = None
) -> QueryDifferences | None:
    """Compare the ensemble with the best member query by query; None if no query counts.

    ``pages`` are those that explain queries, by the ids of these.
    """
    if measure not in comparison.ensemble.per_query:
        return None
    whole = comparison.ensemble.per_query[measure]
    single = comparison.members[comparison.best].per_query[measure]
    difference = whole - single
    counting = np.flatnonzero(~np.isnan(difference))
    if len(counting) == 0:
        return None
    values = np.where(np.abs(difference[counting]) <= ROUNDING, 0.0, difference[counting])
    # Sorted before they are thinned: the shape stays, and the largest win and loss are kept.
    shown = thinned(np.sort(values))
    scale = Scale.around([0.0, *shown.tolist()])
    return QueryDifferences(
        measure=measure,
        wins=int((values > 0).sum()),
        ties=int((values == 0).sum()),
        losses=int((values < 0).sum()),
        gains_path=steps_path(np.maximum(shown, 0.0).tolist(), scale),
        losses_path=steps_path(np.minimum(shown, 0.0).tolist(), scale),
        top=signed_text(scale.high, 2),
        bottom=signed_text(scale.low, 2),
        zero=round(100 - scale.place(0.0), 2),
        mean_win=_mean(values[values > 0]),
        mean_loss=_mean(values[values < 0]),
        worst=_largest(comparison, (whole, single), counting, values, pages or {}),
        best=_largest(comparison, (whole, single), counting, -values, pages or {}),
    )


def _largest(
    comparison: EnsembleComparison,
    both: tuple[Floats, Floats],
    counting: NDArray[np.intp],
    values: Floats,
    pages: Mapping[str, str],
) -> tuple[ChangedQuery, ...]:
    """Return the queries with the smallest of these values, as far as they are below 0."""
    # Stable, so that equal losses come in the order of the data on every machine.
    order = np.argsort(values, kind="stable")[:MOST_LISTED]
    sizes, (whole, single) = comparison.data.sizes, both
    return tuple(
        ChangedQuery(
            str(comparison.data.qids[query]),
            f"{sizes[query]:,}",
            number_text(float(whole[query])),
            number_text(float(single[query])),
            signed_text(float(whole[query] - single[query])),
            pages.get(str(comparison.data.qids[query]), ""),
        )
        for k, query in zip(order.tolist(), counting[order].tolist(), strict=True)
        if values[k] < 0
    )


def _mean(values: Floats) -> str:
    return signed_text(float(values.mean())) if len(values) else MISSING


@dataclass(frozen=True)
class Cell:
    """A number, and how it is shown.

    Attributes
    ----------
    text
        The number.
    kind
        ``"self"`` on the diagonal; ``"better"`` or ``"worse"`` for a significant difference.
    shade
        Opacity of the colour of a heat map.
    """

    text: str
    kind: str = ""
    shade: float = 0.0


@dataclass(frozen=True)
class Matrix:
    """A number for every two systems; every row has the name of its system."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]

    @classmethod
    def of(cls, names: Sequence[str], cell: Callable[[int, int], Cell]) -> Matrix:
        """Return the matrix of a function of two systems; its diagonal is empty."""
        numbers = range(len(names))
        rows = (
            (name, tuple(Cell("", "self") if i == j else cell(i, j) for j in numbers))
            for i, name in enumerate(names)
        )
        return cls(tuple(names), tuple(rows))

    @property
    def n_pairs(self) -> int:
        """Number of pairs of systems."""
        return len(self.names) * (len(self.names) - 1) // 2


def heat_map(correlation: RankCorrelation) -> Matrix | None:
    """Return the rank correlation of every two members; None for a single member."""
    names, tau = correlation.names, correlation.tau.tolist()
    if len(names) < 2:
        return None
    known = [tau[i][j] for i in range(len(names)) for j in range(i) if not math.isnan(tau[i][j])]
    # Models that rank alike, such as the same model with scores on another scale, would leave no
    # shades for the differences between the others.
    low, high = min(known, default=0.0), max((v for v in known if v < ALIKE), default=1.0)
    return Matrix.of(names, lambda i, j: _heat_cell(tau[i][j], low, high))


def _heat_cell(value: float, low: float, high: float) -> Cell:
    if math.isnan(value):
        return Cell(MISSING)
    share = min((value - low) / (high - low), 1.0) if high > low else 0.0
    return Cell(f"{value:.2f}", "", round(LIGHTEST + share * (DARKEST - LIGHTEST), 3))


def p_matrices(compared: Comparison | None) -> dict[str, Matrix]:
    """Return the corrected p-values of all pairs, by measure; empty without a comparison."""
    if compared is None:
        return {}
    return {measure: _p_matrix(compared, measure) for measure in compared.measures}


def _p_matrix(compared: Comparison, measure: str) -> Matrix:
    def cell(i: int, j: int) -> Cell:
        p = float(compared.p_values[measure][i, j])
        difference = float(compared.differences[measure][i, j])
        if p > LEVEL or difference == 0:
            return Cell(_short_p(p))
        return Cell(_short_p(p), "better" if difference > 0 else "worse")

    return Matrix.of(compared.systems, cell)


def _short_p(p: float) -> str:
    """Return a p-value without the 0 before the point, to save space in a matrix.

    >>> _short_p(0.25), _short_p(1e-5), _short_p(0.9999)
    ('.250', '<.001', '1')
    """
    text = p_text(p)
    return "1" if text == "1.000" else text.replace("0.", ".", 1)
