"""Pages from templates: those of the report, which others build on, and those of a package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from rankinite.report import differences as spans
from rankinite.report import headline as result
from rankinite.report import matrices
from rankinite.report import sections as materials
from rankinite.report.differences import differences_of
from rankinite.report.format import counted
from rankinite.runs.ensemble_comparison import EnsembleComparison, compare_ensemble, comparison_of
from rankinite.runs.results import Results
from rankinite.runs.run import Run
from rankinite.runs.store import REPORT, write_text
from rankinite.runs.tables import (
    absences,
    final_sheet,
    members_sheet,
    search_in_words,
    short_form,
    subsets_sheet,
)
from rankinite.stats.kendall import rank_correlation


def page_of(template: str, content: Mapping[str, Any]) -> str:
    """Return a template, filled in.

    Parameters
    ----------
    template
        The name of its file.
    content
        The values by name; a name that is missing is an error.
    """
    return _environment().get_template(template).render(content)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("rankinite.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


TEMPLATE = "page.html.j2"

TITLES = {
    "data": "Data",
    "models": "Models",
    "curves": "Learning curves",
    "subsets": "Subsets of models",
    "final": "Final models",
    "queries": "Query by query",
    "likeness": "How alike the models rank",
    "p-values": "Which differences are significant",
    "features": "Features",
    "time": "Time",
    "parameters": "Parameters",
    "origin": "Versions, seeds and data",
}


def write_report(run: Run) -> Path:
    """Write the report of a run into its folder; return the file.

    A run that is opened again gives the same bytes.
    """
    path = run.folder / REPORT
    write_text(path, report_html(run.results))
    return path


def report_html(results: Results) -> str:
    """Return the report of a run: one HTML page that needs nothing else, and no network.

    Equal results give equal bytes.
    """
    return page_of(TEMPLATE, _content(results))


def _content(results: Results) -> dict[str, Any]:
    contest = compare_ensemble(results)
    recipe = results.recipe
    parts = {
        **_of_data(results),
        **_of_models(results, contest),
        **_of_contest(results, contest),
        "work": materials.work_bars(results.seconds),
        "trainings": materials.training_bars(results.facts),
    }
    present = {
        "curves": bool(parts["curves"]),
        "subsets": parts["subsets"] is not None,
        "final": parts["final"] is not None,
        "queries": parts["differences"] is not None,
        "likeness": parts["heat"] is not None,
        "p-values": bool(parts["p_matrices"]),
        "time": bool(parts["work"] or parts["trainings"]),
    }
    sections = {name: title for name, title in TITLES.items() if present.get(name, True)}
    return {"results": results, "recipe": recipe, "sections": sections, **parts, **WORDS}


WORDS = {"counted": counted, "short_form": short_form}


def _of_data(results: Results) -> dict[str, Any]:
    sets = results.descriptions
    return {
        "data_sheet": materials.data_sheet(sets),
        "grades": materials.grades_of(sets),
        "sizes": [materials.size_panel(name, one) for name, one in sets.items()],
        "absences": list(absences(results)),
    }


def _of_models(results: Results, contest: EnsembleComparison) -> dict[str, Any]:
    models = results.recipe.models
    likeness = rank_correlation(contest.scores, contest.data.offsets)
    return {
        "members": members_sheet(results),
        "best": results.selection.best_member,
        "curves": materials.curve_panels(results),
        "without_curves": materials.without_curves(results),
        "importances": materials.importances_of(results),
        "parameters": {name: materials.parameters_of(one) for name, one in models.items()},
        "likeness": likeness,
        "heat": matrices.heat_map(likeness),
    }


def _of_contest(results: Results, contest: EnsembleComparison) -> dict[str, Any]:
    compared = comparison_of(contest.systems, results.recipe.measures)
    return {
        "contest": contest,
        "headline": result.headline_of(results, contest),
        "subsets": subsets_sheet(results),
        "search": _search(results),
        "subset_spans": spans.subset_spans(results),
        "final": final_sheet(results),
        "final_spans": spans.final_spans(results, contest),
        "differences": differences_of(contest, results.recipe.measures[0]),
        "p_matrices": matrices.p_matrices(compared),
    }


def _search(results: Results) -> str | None:
    found = results.selection.search
    return None if found is None else search_in_words(found, results.recipe.measures[0])
