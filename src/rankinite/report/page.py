"""The report of a run: the page, and its sections on data, models, time and parameters.

`comparisons` has the sections that compare models. Every section is a value that a template draws;
`page_of` fills in the templates of all pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from rankinite.core.format import (
    counted,
    duration,
    number_text,
    plain_number,
    value_text,
    visible,
)
from rankinite.core.types import Floats, Integers
from rankinite.data.describe import Description
from rankinite.ensembles.selection import comparison_of
from rankinite.evaluation.tables import Table
from rankinite.objectives.position_bias import PROPENSITY, PositionBias
from rankinite.report import comparisons
from rankinite.report.charts import (
    MOST_POINTS,
    Bar,
    Chart,
    Scale,
    bars_of,
    dots_path,
    line_path,
    path_of,
    steps_path,
    thinned,
)
from rankinite.runs.recipe import Model
from rankinite.runs.results import (
    Curve,
    EnsembleComparison,
    Results,
    compare_ensemble,
)
from rankinite.runs.run import Run
from rankinite.runs.store import REPORT, write_text
from rankinite.runs.tables import (
    absences,
    final_table,
    members_table,
    search_in_words,
    short_form,
    subsets_table,
)
from rankinite.stats.kendall import rank_correlation

TEMPLATE = "page.html.j2"
MOST_BARS = 20
MOST_BINS = 30
# What is estimated for each position, in the words of a caption.
ESTIMATE_TEXTS = {
    "clicked": "propensities of clicked documents",
    "unclicked": "propensities of unclicked documents",
    "effect": "effects on the score",
}

# The sections of the page, in its order: anchor and title.
TITLES = {
    "data": "Data",
    "models": "Models",
    "curves": "Learning curves",
    "subsets": "Subsets of models",
    "final": "Final models",
    "queries": "Query by query",
    "agreement": "Agreement between models",
    "p-values": "Significant differences",
    "features": "Feature importances",
    "positions": "Position bias",
    "time": "Time",
    "parameters": "Parameters",
    "origin": "Versions, seed and data",
}


def write_report(run: Run) -> Path:
    """Write the report of a run into its folder; return the file.

    Pages beside it explain the queries that the ensemble wins and loses by most. A run that is
    opened again gives the same bytes.
    """
    from rankinite.report.query_pages import write_query_pages

    path = run.folder / REPORT
    write_text(path, report_html(run.results, write_query_pages(run)))
    return path


def report_html(results: Results, pages: Mapping[str, str] | None = None) -> str:
    """Return the report of a run: one HTML page that needs no network.

    Equal results give equal bytes.

    Parameters
    ----------
    results
        The results of the run.
    pages
        By the id of a query, the page beside the report that explains it.
    """
    return page_of(TEMPLATE, _content(results, pages or {}))


def page_of(template: str, content: Mapping[str, Any]) -> str:
    """Return a template, filled in.

    Parameters
    ----------
    template
        Name of its file.
    content
        Values by name; a name that is missing is an error.
    """
    return _environment().get_template(template).render(content)


# Templates are compiled once per process, not once per page.
@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("rankinite.report"),
        # Names of models, features and queries come from users' files.
        autoescape=True,
        finalize=_seen,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _seen(value: Any) -> Any:
    """Return what a template writes for a value: all characters of texts are seen."""
    # What a macro has written is HTML, and has gone through here.
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return visible(value, keep="\n\t") if is_text else value


def _content(results: Results, pages: Mapping[str, str]) -> dict[str, Any]:
    comparison = compare_ensemble(results)
    content = {
        **_data_content(results),
        **_model_content(results, comparison),
        **_comparison_content(results, comparison, pages),
        "position_charts": position_charts(results),
        "tasks": bars_of(results.seconds, duration),
        "trainings": bars_of(
            {name: facts.seconds for name, facts in results.facts.items() if facts.seconds > 0},
            duration,
        ),
    }
    # A section without content is left out, and so is its link in the contents.
    present = {
        "curves": bool(content["curves"]),
        "subsets": content["subsets"] is not None,
        "final": content["final"] is not None,
        "queries": content["differences"] is not None,
        "agreement": content["heat_map"] is not None,
        "p-values": bool(content["p_matrices"]),
        "positions": bool(content["position_charts"]),
        "time": bool(content["tasks"] or content["trainings"]),
    }
    return {
        "results": results,
        "recipe": results.recipe,
        "sections": {name: title for name, title in TITLES.items() if present.get(name, True)},
        **content,
        "counted": counted,
        "short_form": short_form,
    }


def _data_content(results: Results) -> dict[str, Any]:
    sets = results.descriptions
    return {
        "data_table": data_table(sets),
        "grades": grades_of(sets),
        "sizes": [size_chart(name, description) for name, description in sets.items()],
        "absences": list(absences(results)),
    }


def _model_content(results: Results, comparison: EnsembleComparison) -> dict[str, Any]:
    models = results.recipe.models
    correlation = rank_correlation(comparison.scores, comparison.data.offsets)
    return {
        "members": members_table(results),
        "best": results.selection.best_member,
        "curves": curve_charts(results),
        "curve_notes": curve_notes(results),
        "importances": importances_of(results),
        "parameters": {name: parameters_of(model) for name, model in models.items()},
        "correlation": correlation,
        "heat_map": comparisons.heat_map(correlation),
    }


def _comparison_content(
    results: Results, comparison: EnsembleComparison, pages: Mapping[str, str]
) -> dict[str, Any]:
    first, search = results.recipe.measures[0], results.selection.search
    return {
        "comparison": comparison,
        "headline": comparisons.headline_of(results, comparison),
        "subsets": subsets_table(results),
        "search": None if search is None else search_in_words(search, first),
        "subset_intervals": comparisons.subset_intervals(results),
        "final": final_table(results),
        "member_intervals": comparisons.member_intervals(results, comparison),
        "differences": comparisons.query_differences(comparison, first, pages),
        "p_matrices": comparisons.p_matrices(
            comparison_of(comparison.systems, results.recipe.measures)
        ),
    }


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
        # Rows of zeros alone, such as that of missing values, tell nothing.
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
    # From light to dark, in one order for all data sets; the lowest must still be seen on white.
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
    # Edges lie between whole numbers, so that every bin holds equally many sizes.
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


def position_charts(results: Results) -> tuple[Chart, ...]:
    """Return the estimated position bias of every model that corrected clicks for positions."""
    return tuple(
        _position_chart(name, estimate, facts.position_bias)
        for name, facts in results.facts.items()
        if facts.position_bias and not _is_copy(results.recipe.models.get(name))
        for estimate in facts.position_bias[0].estimates
    )


def _position_chart(name: str, estimate: str, biases: Sequence[PositionBias]) -> Chart:
    """Return the chart of one estimate, one line per training."""
    first = min(int(bias.positions[0]) for bias in biases)
    n_places = max(int(bias.positions[-1]) for bias in biases) - first + 1
    values = [bias.estimates[estimate] for bias in biases]
    highest = max(float(v.max()) for v in values)
    # Propensities are shares of the first position: only from 0 do they look like shares.
    is_propensity = biases[0].method == PROPENSITY
    scale = Scale(0.0, highest) if is_propensity else Scale.around(np.concatenate(values).tolist())
    return Chart(
        title=name,
        top=number_text(scale.high),
        bottom=number_text(scale.low),
        left=f"{first:,}",
        right=f"position {first + n_places - 1:,}",
        detail=ESTIMATE_TEXTS[estimate],
        lines=tuple(
            _position_path(bias.positions - first, row, scale, n_places)
            for bias, row in zip(biases, values, strict=True)
        ),
    )


def _position_path(places: Integers, values: Floats, scale: Scale, n_places: int) -> str:
    shown = thinned(np.arange(len(places)), MOST_POINTS).tolist()
    return path_of([(int(places[k]), float(values[k])) for k in shown], scale, n_places)


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
    # A model that takes another's training has the same trees, which shall not count twice.
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


def parameters_of(model: Model) -> tuple[tuple[str, str], ...]:
    """Return ranker, training set and parameters of a model, as names and texts."""
    rows = [("ranker", model.ranker), ("training set", model.train)]
    if model.features is not None:
        rows.append(("score features", model.features))
    if model.trained_as is not None:
        rows.append(("training taken from", model.trained_as))
    rows.append(("bags", str(model.bags)))
    return (*rows, *((name, value_text(value)) for name, value in model.parameters.items()))
