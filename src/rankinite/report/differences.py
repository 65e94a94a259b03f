"""Charts of differences to a baseline, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.types import Floats
from rankinite.evaluation.evaluate import Evaluation
from rankinite.report.charts import Scale, steps_path, thinned
from rankinite.report.format import signed
from rankinite.runs.ensemble_comparison import EnsembleComparison, Gain, gain_over
from rankinite.runs.results import Results
from rankinite.runs.tables import number, short_form


@dataclass(frozen=True)
class Span:
    """A difference with its interval, as a row of a chart.

    Attributes
    ----------
    label, detail
        The system.
    mean, text
        Its own mean, and its difference to the baseline.
    point, left, width
        Where the difference and its interval are, in percent.
    kind
        ``"accent"`` for what is emphasised, otherwise empty.
    """

    label: str
    detail: str
    mean: str
    text: str
    point: float
    left: float
    width: float
    kind: str


@dataclass(frozen=True)
class Spans:
    """A chart of differences to a baseline.

    Attributes
    ----------
    baseline
        What the differences are to.
    zero, ticks
        Where there is none; and places and texts of the axis.
    """

    measure: str
    baseline: str
    rows: tuple[Span, ...]
    zero: float
    ticks: tuple[tuple[float, str], ...]


def subset_spans(results: Results) -> Spans | None:
    """Return the chart of subsets against all models; None if there is nothing to compare."""
    found, chosen = results.averages, set(results.selection.chosen)
    details = {name: short_form(results.models_of(name)) for name in found}
    accent = {name for name in found if set(results.models_of(name)) == chosen}
    return _spans(found, results.whole, results.recipe.measures[0], details, accent)


def final_spans(results: Results, contest: EnsembleComparison) -> Spans | None:
    """Return the chart of members against the ensemble; None if there is nothing to compare."""
    details = {contest.best: "best member"}
    first = results.recipe.measures[0]
    return _spans(contest.systems, contest.title, first, details, {contest.title})


def _spans(
    evaluations: Mapping[str, Evaluation],
    baseline: str,
    measure: str,
    details: Mapping[str, str],
    accent: set[str],
) -> Spans | None:
    gains = {
        name: Gain(0.0, 0.0, 0.0, 1.0)
        if name == baseline
        else gain_over(one, evaluations[baseline], measure)
        for name, one in evaluations.items()
    }
    known = {name: gain for name, gain in gains.items() if gain is not None}
    if len(known) < 2:
        return None
    ends = [end for gain in known.values() for end in (gain.low, gain.mean, gain.high)]
    scale = Scale.around([0.0, *ends], margin=0.03)
    rows = tuple(
        Span(
            name,
            details.get(name, ""),
            number(evaluations[name].mean[measure]),
            "" if name == baseline else signed(gain.mean),
            scale.place(gain.mean),
            scale.place(gain.low),
            round(scale.place(gain.high) - scale.place(gain.low), 2),
            "accent" if name in accent else "",
        )
        for name, gain in known.items()
    )
    return Spans(measure, baseline, rows, scale.place(0.0), _ticks(scale))


def _ticks(scale: Scale) -> tuple[tuple[float, str], ...]:
    """Return places and texts of an axis, all with as many digits as one of them needs."""
    ticks = scale.ticks(most=4)
    digits = max((len(f"{tick:.6f}".rstrip("0").partition(".")[2]) for tick in ticks), default=0)
    return tuple((scale.place(tick), signed(tick, digits) if tick else "0") for tick in ticks)


MOST_LISTED = 10
# Differences below it are the rounding of sums.
ROUNDING = 1e-12


@dataclass(frozen=True)
class LostQuery:
    """A query for which the best member is better."""

    qid: str
    documents: str
    ensemble: str
    member: str
    difference: str


@dataclass(frozen=True)
class Differences:
    """Differences of the ensemble to the best member, one a query.

    Attributes
    ----------
    wins, ties, losses
        How many queries are so.
    gains_path, losses_path
        Outlines of the sorted differences above and below 0.
    top, bottom, zero
        The ends of the axis, and where 0 is on it, in percent from the top.
    mean_win, mean_loss
        What a win and a loss are worth on average.
    worst
        The queries with the largest losses, the largest first.
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
    worst: tuple[LostQuery, ...]

    @property
    def n_queries(self) -> int:
        """How many queries count."""
        return self.wins + self.ties + self.losses


def differences_of(contest: EnsembleComparison, measure: str) -> Differences | None:
    """Return how the ensemble fares against the best member; None if no query tells."""
    if measure not in contest.ensemble.per_query:
        return None
    whole = contest.ensemble.per_query[measure]
    single = contest.members[contest.best].per_query[measure]
    difference = whole - single
    counted = np.flatnonzero(~np.isnan(difference))
    if len(counted) == 0:
        return None
    values = np.where(np.abs(difference[counted]) <= ROUNDING, 0.0, difference[counted])
    shown = thinned(np.sort(values))
    scale = Scale.around([0.0, *shown.tolist()])
    return Differences(
        measure=measure,
        wins=int((values > 0).sum()),
        ties=int((values == 0).sum()),
        losses=int((values < 0).sum()),
        gains_path=steps_path(np.maximum(shown, 0.0).tolist(), scale),
        losses_path=steps_path(np.minimum(shown, 0.0).tolist(), scale),
        top=signed(scale.high, 2),
        bottom=signed(scale.low, 2),
        zero=round(100 - scale.place(0.0), 2),
        mean_win=_mean(values[values > 0]),
        mean_loss=_mean(values[values < 0]),
        worst=_worst(contest, whole, single, counted, values),
    )


def _worst(
    contest: EnsembleComparison,
    whole: Floats,
    single: Floats,
    counted: NDArray[np.intp],
    values: Floats,
) -> tuple[LostQuery, ...]:
    order = np.argsort(values, kind="stable")[:MOST_LISTED]
    sizes = contest.data.sizes
    return tuple(
        LostQuery(
            str(contest.data.qids[query]),
            f"{sizes[query]:,}",
            number(float(whole[query])),
            number(float(single[query])),
            signed(float(values[k])),
        )
        for k, query in zip(order.tolist(), counted[order].tolist(), strict=True)
        if values[k] < 0
    )


def _mean(values: Floats) -> str:
    return signed(float(values.mean())) if len(values) else "-"
