"""What the report shows of data and trainings: grades, learning curves, features, times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rankinite.core.format import plain_number
from rankinite.data.describe import Description
from rankinite.evaluation.summary import Sheet
from rankinite.report.charts import Scale, dots_path, line_path, steps_path
from rankinite.report.format import duration, value_in_words
from rankinite.runs.recipe import Model
from rankinite.runs.results import Curve, MemberFacts, Results

MOST_BARS = 20
MOST_BINS = 30


@dataclass(frozen=True)
class Panel:
    """A small chart: what it shows, its paths, and the ends of its axes."""

    title: str
    detail: str
    lines: tuple[str, ...]
    area: str
    dots: str
    top: str
    bottom: str
    left: str
    right: str


@dataclass(frozen=True)
class Bar:
    """A bar of a chart, in percent of the longest."""

    label: str
    width: float
    text: str


@dataclass(frozen=True)
class GradeShare:
    """A grade: how many documents have it, and which part of all they are."""

    grade: str
    documents: str
    percent: str
    width: float
    shade: float


@dataclass(frozen=True)
class Grades:
    """The shades of all grades, and the shares of grades in every data set, by name."""

    key: Mapping[str, float]
    sets: Mapping[str, tuple[GradeShare, ...]]


def data_sheet(descriptions: Mapping[str, Description]) -> Sheet:
    """Return what the data sets look like, one column a set."""
    kinds: dict[str, tuple[Callable[[Description], float], str]] = {
        "Queries": (lambda one: one.n_queries, ","),
        "Documents": (lambda one: one.n_docs, ","),
        "Documents per query, fewest": (lambda one: one.sizes.min(), ","),
        "Documents per query, mean": (lambda one: one.sizes.mean(), ",.1f"),
        "Documents per query, most": (lambda one: one.sizes.max(), ","),
        "Features": (lambda one: one.n_features, ","),
        "Features with more than one value": (lambda one: one.features_in_use, ","),
        "Missing values": (lambda one: one.missing, ".1%"),
        "Documents without a label": (lambda one: one.n_unlabelled, ","),
        "Queries without a relevant document": (lambda one: one.without_relevant, ","),
        "Queries whose labels are all alike": (lambda one: one.single_label, ","),
    }
    rows = []
    for name, (number_of, form) in kinds.items():
        values = [number_of(one) for one in descriptions.values()]
        if any(values):
            rows.append((name, *(f"{value:{form}}" for value in values)))
    return Sheet("Data sets", ("", *descriptions), (*rows, *_grade_rows(descriptions)))


def _grade_rows(descriptions: Mapping[str, Description]) -> list[tuple[str, ...]]:
    rows = []
    for grade in _all_grades(descriptions):
        shares = (one.grades.get(grade, 0) / max(one.n_docs, 1) for one in descriptions.values())
        rows.append((f"Documents of grade {plain_number(grade)}", *(f"{s:.1%}" for s in shares)))
    return rows


def _all_grades(descriptions: Mapping[str, Description]) -> list[float]:
    return sorted({grade for one in descriptions.values() for grade in one.grades})


def grades_of(descriptions: Mapping[str, Description]) -> Grades:
    """Return the shares of grades in every data set that has few enough of them."""
    every = _all_grades(descriptions)
    shades = {g: round(0.12 + 0.78 * k / max(len(every) - 1, 1), 3) for k, g in enumerate(every)}
    sets = {name: _shares(one, shades) for name, one in descriptions.items() if one.grades}
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


def size_panel(name: str, description: Description) -> Panel:
    """Return the histogram of documents per query."""
    sizes = description.sizes
    width = max(1, -(-int(sizes.max()) // MOST_BINS))
    n_bins = -(-int(sizes.max()) // width)
    heights, _ = np.histogram(sizes, 0.5 + width * np.arange(n_bins + 1))
    scale = Scale(0.0, float(heights.max()))
    return Panel(
        name,
        "",
        (),
        steps_path(heights.tolist(), scale),
        "",
        f"{heights.max():,}",
        "0",
        "1",
        f"{width * n_bins:,} documents",
    )


def curve_panels(results: Results) -> tuple[Panel, ...]:
    """Return the learning curves of every model that has some of its own."""
    return tuple(
        _curve_panel(name, results.facts[name].curves)
        for name in results.recipe.models
        if _has_curves(results, name)
    )


def without_curves(results: Results) -> tuple[str, ...]:
    """Return why models have no panel, or one of the first stage, a sentence each."""
    told = []
    for name, model in results.recipe.models.items():
        if model.trained_as is not None:
            told.append(f"{name} takes the training of {model.trained_as}.")
        elif not _has_curves(results, name):
            told.append(f"{name} has no learning curve.")
        elif not results.facts[name].is_final:
            told.append(f"{name} was not trained again: its curve is of the first stage.")
    return tuple(told)


def _has_curves(results: Results, name: str) -> bool:
    facts = results.facts.get(name)
    if facts is None or _is_copy(results.recipe.models[name]):
        return False
    return any(np.isfinite(curve.values).any() for curve in facts.curves if curve.values)


def _curve_panel(name: str, curves: tuple[Curve, ...]) -> Panel:
    n_rounds = max(len(curve.values) for curve in curves)
    # The first rounds rise so steeply that on their scale the others would all look alike.
    late = [value for curve in curves for value in curve.values[len(curve.values) // 10 :]]
    scale = Scale.around([*late, *(value for _, value in _kept(curves))])
    first = curves[0]
    return Panel(
        name,
        f"{first.measure}, {_kept_in_words(curves, n_rounds)}",
        tuple(line_path(curve.values, scale, n_rounds) for curve in curves),
        "",
        dots_path(_kept(curves), scale, n_rounds),
        f"{scale.high:.4f}",
        f"{scale.low:.4f}",
        "1",
        f"{n_rounds:,} {first.rounds}",
    )


def _kept(curves: Iterable[Curve]) -> list[tuple[int, float]]:
    """Return the rounds that were kept, counted from 0, with their values."""
    return [
        (curve.kept - 1, curve.values[curve.kept - 1])
        for curve in curves
        if 0 < curve.kept <= len(curve.values) and np.isfinite(curve.values[curve.kept - 1])
    ]


def _kept_in_words(curves: tuple[Curve, ...], n_rounds: int) -> str:
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
        How many models have shares; how many features any of them uses, and of how many.
    shown
        The share of all gain that bars stand for.
    """

    bars: tuple[Bar, ...]
    n_models: int
    n_used: int
    n_features: int
    shown: str


def importances_of(results: Results) -> Importances | None:
    """Return the features that matter to final models; None if none of them tells."""
    found = [
        facts.importances
        for name, facts in results.facts.items()
        if facts.importances and facts.is_final and not _is_copy(results.recipe.models.get(name))
    ]
    if not found:
        return None
    names = dict.fromkeys(name for one in found for name in one)
    shares = {name: sum(one.get(name, 0.0) for one in found) / len(found) for name in names}
    # Equal shares stand in the order of their names' first appearance, whatever that is.
    used = sorted((n for n in shares if shares[n] > 0), key=lambda n: -shares[n])
    top = used[:MOST_BARS]
    most = shares[top[0]] if top else 1.0
    bars = tuple(Bar(n, round(100 * shares[n] / most, 2), f"{shares[n]:.1%}") for n in top)
    shown = f"{sum(shares[n] for n in top):.0%}"
    return Importances(bars, len(found), len(used), len(names), shown)


def _is_copy(model: Model | None) -> bool:
    return model is not None and model.trained_as is not None


def work_bars(seconds: Mapping[str, float]) -> tuple[Bar, ...]:
    """Return how long every kind of work took."""
    most = max([value for value in seconds.values() if value > 0], default=1.0)
    return tuple(
        Bar(name, round(100 * max(value, 0.0) / most, 2), duration(value))
        for name, value in seconds.items()
    )


def training_bars(facts: Mapping[str, MemberFacts]) -> tuple[Bar, ...]:
    """Return how long every model's trainings took; without those that had none."""
    return work_bars({name: one.seconds for name, one in facts.items() if one.seconds > 0})


def parameters_of(model: Model) -> tuple[tuple[str, str], ...]:
    """Return what a model is made of, as names and texts."""
    own = [("ranker", model.ranker), ("training set", model.train)]
    if model.features is not None:
        own.append(("score features", model.features))
    if model.trained_as is not None:
        own.append(("training taken from", model.trained_as))
    own.append(("bags", str(model.bags)))
    return (*own, *((name, value_in_words(value)) for name, value in model.parameters.items()))
