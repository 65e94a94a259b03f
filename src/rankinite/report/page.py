"""The report of a run as a page, and the templates that all pages are made from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from rankinite.core.format import counted
from rankinite.ensembles.selection import comparison_of
from rankinite.report import comparisons, sections
from rankinite.runs.results import EnsembleComparison, Results, compare_ensemble
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
    "time": "Time",
    "parameters": "Parameters",
    "origin": "Versions, seed and data",
}


def write_report(run: Run) -> Path:
    """Write the report of a run into its folder; return the file.

    A run that is opened again gives the same bytes.
    """
    path = run.folder / REPORT
    write_text(path, report_html(run.results))
    return path


def report_html(results: Results) -> str:
    """Return the report of a run: one HTML page that needs no network.

    Equal results give equal bytes.
    """
    return page_of(TEMPLATE, _content(results))


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


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("rankinite.report"),
        # Names of models, features and queries come from users' files.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _content(results: Results) -> dict[str, Any]:
    comparison = compare_ensemble(results)
    content = {
        **_data_content(results),
        **_model_content(results, comparison),
        **_comparison_content(results, comparison),
        "tasks": sections.task_bars(results.seconds),
        "trainings": sections.training_bars(results.facts),
    }
    present = {
        "curves": bool(content["curves"]),
        "subsets": content["subsets"] is not None,
        "final": content["final"] is not None,
        "queries": content["differences"] is not None,
        "agreement": content["heat_map"] is not None,
        "p-values": bool(content["p_matrices"]),
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
        "data_table": sections.data_table(sets),
        "grades": sections.grades_of(sets),
        "sizes": [sections.size_chart(name, description) for name, description in sets.items()],
        "absences": list(absences(results)),
    }


def _model_content(results: Results, comparison: EnsembleComparison) -> dict[str, Any]:
    models = results.recipe.models
    correlation = rank_correlation(comparison.scores, comparison.data.offsets)
    return {
        "members": members_table(results),
        "best": results.selection.best_member,
        "curves": sections.curve_charts(results),
        "curve_notes": sections.curve_notes(results),
        "importances": sections.importances_of(results),
        "parameters": {name: sections.parameters_of(model) for name, model in models.items()},
        "correlation": correlation,
        "heat_map": comparisons.heat_map(correlation),
    }


def _comparison_content(results: Results, comparison: EnsembleComparison) -> dict[str, Any]:
    first, search = results.recipe.measures[0], results.selection.search
    return {
        "comparison": comparison,
        "headline": sections.headline_of(results, comparison),
        "subsets": subsets_table(results),
        "search": None if search is None else search_in_words(search, first),
        "subset_intervals": comparisons.subset_intervals(results),
        "final": final_table(results),
        "member_intervals": comparisons.member_intervals(results, comparison),
        "differences": comparisons.query_differences(comparison, first),
        "p_matrices": comparisons.p_matrices(
            comparison_of(comparison.systems, results.recipe.measures)
        ),
    }
