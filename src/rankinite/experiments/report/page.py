"""The page: what goes into the template, and the template filled in."""

from __future__ import annotations

from typing import Any

from rankinite.experiments.report import materials, matrices, result, spans
from rankinite.experiments.report.likeness import likeness_of
from rankinite.experiments.report.queries import differences_of
from rankinite.experiments.report.templates import SHARED, page_of
from rankinite.experiments.report.wording import counted
from rankinite.experiments.runs.contest import Contest, comparison_of, contest_of
from rankinite.experiments.runs.notes import absences, search_in_words
from rankinite.experiments.runs.results import Results
from rankinite.experiments.runs.tables import final_sheet, members_sheet, subsets_sheet
from rankinite.experiments.runs.texts import short_form

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


def report_html(results: Results) -> str:
    """Return the report of a run: one HTML page that needs nothing else, and no network.

    Equal results give equal bytes.
    """
    return page_of(SHARED, TEMPLATE, _content(results))


def _content(results: Results) -> dict[str, Any]:
    contest = contest_of(results)
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


def _of_models(results: Results, contest: Contest) -> dict[str, Any]:
    models = results.recipe.models
    likeness = likeness_of(contest.scores, contest.data.offsets)
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


def _of_contest(results: Results, contest: Contest) -> dict[str, Any]:
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
