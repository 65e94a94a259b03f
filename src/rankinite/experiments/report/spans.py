"""Charts of differences to a baseline, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rankinite.evaluation.evaluate import Evaluation
from rankinite.experiments.report.drawing import Scale
from rankinite.experiments.report.wording import signed
from rankinite.experiments.runs.contest import Contest, Gain, gain_over
from rankinite.experiments.runs.results import Results
from rankinite.experiments.runs.texts import number, short_form


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


def final_spans(results: Results, contest: Contest) -> Spans | None:
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
