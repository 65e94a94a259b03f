"""Sections of a run's report: headline, data, learning curves, importances, times, parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rankinite.core.format import (
    counted,
    duration,
    number_text,
    p_phrase,
    p_text,
    plain_number,
    signed_text,
    value_text,
)
from rankinite.data.describe import Description
from rankinite.ensembles.selection import Gain, gain_over
from rankinite.evaluation.evaluate import Evaluation
from rankinite.evaluation.tables import Table
from rankinite.report.charts import (
    Bar,
    Chart,
    Scale,
    bars_of,
    dots_path,
    line_path,
    steps_path,
)
from rankinite.runs.recipe import ENSEMBLE, Model
from rankinite.runs.results import (
    HELD_OUT,
    Curve,
    EnsembleComparison,
    MemberFacts,
    Results,
)
from rankinite.runs.tables import oracle_of

MOST_BARS = 20
MOST_BINS = 30


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
    ensemble: Evaluation,
    best: Evaluation,
    measure: str,
    gain: Gain,
    oracle: Mapping[str, float],
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
class GradeShare:
    """A grade: number and share of the documents that have it."""

    grade: str
    documents: str
    percent: str
    width: float
    shade: float


@dataclass(frozen=True)
class Grades:
    """Shades of all grades, and shares of the grades in every data set, by name."""

    key: Mapping[str, float]
    sets: Mapping[str, tuple[GradeShare, ...]]


def data_table(descriptions: Mapping[str, Description]) -> Table:
    """Return the statistics of the data sets, one column a set."""
    statistics: dict[str, tuple[Callable[[Description], float], str]] = {
        "Queries": (lambda data: data.n_queries, ","),
        "Documents": (lambda data: data.n_docs, ","),
        "Documents per query, fewest": (lambda data: data.sizes.min(), ","),
        "Documents per query, mean": (lambda data: data.sizes.mean(), ",.1f"),
        "Documents per query, most": (lambda data: data.sizes.max(), ","),
        "Features": (lambda data: data.n_features, ","),
        "Features with more than one value": (lambda data: data.features_in_use, ","),
        "Missing values": (lambda data: data.missing, ".1%"),
        "Documents without a label": (lambda data: data.n_unlabelled, ","),
        "Queries without a relevant document": (lambda data: data.without_relevant, ","),
        "Queries whose labels are all alike": (lambda data: data.single_label, ","),
    }
    rows = []
    for name, (statistic, form) in statistics.items():
        values = [statistic(data) for data in descriptions.values()]
        if any(values):
            rows.append((name, *(f"{value:{form}}" for value in values)))
    return Table("Data sets", ("", *descriptions), (*rows, *_grade_rows(descriptions)))


def _grade_rows(descriptions: Mapping[str, Description]) -> list[tuple[str, ...]]:
    rows = []
    for grade in _all_grades(descriptions):
        shares = (d.grades.get(grade, 0) / max(d.n_docs, 1) for d in descriptions.values())
        rows.append((f"Documents of grade {plain_number(grade)}", *(f"{s:.1%}" for s in shares)))
    return rows


def _all_grades(descriptions: Mapping[str, Description]) -> list[float]:
    return sorted({grade for data in descriptions.values() for grade in data.grades})


def grades_of(descriptions: Mapping[str, Description]) -> Grades:
    """Return the shares of grades in every data set that has few enough of them."""
    every = _all_grades(descriptions)
    shades = {g: round(0.12 + 0.78 * k / max(len(every) - 1, 1), 3) for k, g in enumerate(every)}
    sets = {name: _shares(data, shades) for name, data in descriptions.items() if data.grades}
    return Grades({plain_number(grade): shade for grade, shade in shades.items()}, sets)


def _shares(description: Description, shades: Mapping[float, float]) -> tuple[GradeShare, ...]:
    total = sum(description.grades.values())
    return tuple(
        GradeShare(
            plain_number(grade),
            f"{count:,}",
            f"{count / total:.1%}",
            round(100 * count / total, 3),
            shades[grade],
        )
        for grade, count in sorted(description.grades.items())
    )


def size_chart(name: str, description: Description) -> Chart:
    """Return the histogram of documents per query."""
    sizes = description.sizes
    width = max(1, -(-int(sizes.max()) // MOST_BINS))
    n_bins = -(-int(sizes.max()) // width)
    heights, _ = np.histogram(sizes, 0.5 + width * np.arange(n_bins + 1))
    scale = Scale(0.0, float(heights.max()))
    return Chart(
        title=name,
        top=f"{heights.max():,}",
        bottom="0",
        left="1",
        right=f"{width * n_bins:,} documents",
        area=steps_path(heights.tolist(), scale),
    )


def curve_charts(results: Results) -> tuple[Chart, ...]:
    """Return the learning curves of every model that has any of its own."""
    return tuple(
        _curve_chart(name, results.facts[name].curves)
        for name in results.recipe.models
        if _has_curves(results, name)
    )


def curve_notes(results: Results) -> tuple[str, ...]:
    """Return a sentence for every model that has no chart, or only one of the first stage."""
    notes = []
    for name, model in results.recipe.models.items():
        if model.trained_as is not None:
            notes.append(f"{name} takes the training of {model.trained_as}.")
        elif not _has_curves(results, name):
            notes.append(f"{name} has no learning curve.")
        elif not results.facts[name].is_final:
            notes.append(f"{name} was not trained again: its curve is of the first stage.")
    return tuple(notes)


def _has_curves(results: Results, name: str) -> bool:
    facts = results.facts.get(name)
    if facts is None or _is_copy(results.recipe.models[name]):
        return False
    return any(np.isfinite(curve.values).any() for curve in facts.curves if curve.values)


def _curve_chart(name: str, curves: tuple[Curve, ...]) -> Chart:
    n_rounds = max(len(curve.values) for curve in curves)
    # The first rounds rise so steeply that on their scale all later ones would look alike.
    late = [value for curve in curves for value in curve.values[len(curve.values) // 10 :]]
    scale = Scale.around([*late, *(value for _, value in _kept(curves))])
    first = curves[0]
    return Chart(
        title=name,
        top=number_text(scale.high),
        bottom=number_text(scale.low),
        left="1",
        right=f"{n_rounds:,} {first.rounds}",
        detail=f"{first.measure}, {_kept_phrase(curves, n_rounds)}",
        lines=tuple(line_path(curve.values, scale, n_rounds) for curve in curves),
        dots=dots_path(_kept(curves), scale, n_rounds),
    )


def _kept(curves: Iterable[Curve]) -> list[tuple[int, float]]:
    """Return the rounds that were kept, counted from 0, with their values."""
    return [
        (curve.kept - 1, curve.values[curve.kept - 1])
        for curve in curves
        if 0 < curve.kept <= len(curve.values) and np.isfinite(curve.values[curve.kept - 1])
    ]


def _kept_phrase(curves: tuple[Curve, ...], n_rounds: int) -> str:
    low, high = min(curve.kept for curve in curves), max(curve.kept for curve in curves)
    kept = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"kept {kept} of {n_rounds:,}"


@dataclass(frozen=True)
class Importances:
    """Features by their share in the gain of splits, averaged over models of trees.

    Attributes
    ----------
    bars
        The features with the largest shares.
    n_models, n_used, n_features
        Numbers of models of trees, of features that any of them uses, and of all features.
    shown
        Share of the bars in the whole gain.
    """

    bars: tuple[Bar, ...]
    n_models: int
    n_used: int
    n_features: int
    shown: str


def importances_of(results: Results) -> Importances | None:
    """Return the mean importances over final models; None if none of them is made of trees."""
    importances = [
        facts.importances
        for name, facts in results.facts.items()
        if facts.importances and facts.is_final and not _is_copy(results.recipe.models.get(name))
    ]
    if not importances:
        return None
    names = dict.fromkeys(name for shares in importances for name in shares)
    means = {n: sum(shares.get(n, 0.0) for shares in importances) / len(importances) for n in names}
    # The sort is stable: equal shares keep the order in which their features appear.
    used = sorted((n for n in means if means[n] > 0), key=lambda n: -means[n])
    top = {name: means[name] for name in used[:MOST_BARS]}
    bars = bars_of(top, "{:.1%}".format)
    shown = f"{sum(top.values()):.0%}"
    return Importances(bars, len(importances), len(used), len(names), shown)


def _is_copy(model: Model | None) -> bool:
    return model is not None and model.trained_as is not None


def task_bars(seconds: Mapping[str, float]) -> tuple[Bar, ...]:
    """Return the time of every kind of task."""
    return bars_of(seconds, duration)


def training_bars(facts: Mapping[str, MemberFacts]) -> tuple[Bar, ...]:
    """Return the training time of every model that was trained."""
    return task_bars({name: f.seconds for name, f in facts.items() if f.seconds > 0})


def parameters_of(model: Model) -> tuple[tuple[str, str], ...]:
    """Return ranker, training set and parameters of a model, as names and texts."""
    rows = [("ranker", model.ranker), ("training set", model.train)]
    if model.features is not None:
        rows.append(("score features", model.features))
    if model.trained_as is not None:
        rows.append(("training taken from", model.trained_as))
    rows.append(("bags", str(model.bags)))
    return (*rows, *((name, value_text(value)) for name, value in model.parameters.items()))
