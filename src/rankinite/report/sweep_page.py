"""The page of a sweep: one HTML file that opens offline, in the style of a run's report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rankinite.report import sweep_charts as plots
from rankinite.report.format import counted, value_in_words
from rankinite.report.page import page_of
from rankinite.runs.store import write_text
from rankinite.sweeps.results import (
    Sweep,
    baseline_in_words,
    best_in_words,
    flattery,
    rounds_of,
    short,
    trials_sheet,
)
from rankinite.sweeps.settings import Settings
from rankinite.sweeps.study import FEWEST_FOR_IMPORTANCE

TEMPLATE = "sweep.html.j2"
FILE = "sweep.html"

SECTIONS = {
    "history": "Trial by trial",
    "importance": "Which parameters matter",
    "coordinates": "Parameters and values",
    "curves": "Learning curves",
    "trials": "All trials",
    "settings": "Settings",
}


def write_sweep_report(sweep: Sweep) -> Path:
    """Write the page of a sweep into its folder; return the file."""
    path = sweep.folder / FILE
    write_text(path, sweep_html(sweep))
    return path


def sweep_html(sweep: Sweep) -> str:
    """Return the page of a sweep, which needs nothing else and no network.

    Equal trials give equal bytes.
    """
    return page_of(TEMPLATE, _content(sweep))


def _content(sweep: Sweep) -> dict[str, Any]:
    return {
        "sweep": sweep,
        "sections": SECTIONS,
        "sentence": best_in_words(sweep),
        "compared": baseline_in_words(sweep),
        "flattery": flattery(sweep),
        "history": plots.history_of(sweep),
        "bars": plots.importance_bars(sweep),
        "no_importance": _no_importance(sweep),
        "coordinates": plots.coordinates_of(sweep),
        "curves": plots.curves_of(sweep),
        "sheet": trials_sheet(sweep),
        "settings": _settings(sweep.settings),
        "parameters": sorted(
            (name, value_in_words(value))
            for name, value in sweep.settings.model.parameters.items()
            if name not in sweep.settings.space
        ),
        "counted": counted,
        "short": short,
        "rounds_of": rounds_of,
    }


def _no_importance(sweep: Sweep) -> str:
    """Return why nothing can be said of importances; nothing if it can."""
    if sweep.importances is not None:
        return ""
    if len(sweep.settings.space) < 2:
        return "One parameter is swept, so there is nothing to compare it with."
    n = len(sweep.trials) - sweep.n_pruned
    if n < FEWEST_FOR_IMPORTANCE:
        return (
            f"{counted(n, 'trial')} came to an end, too few to tell: it takes "
            f"{FEWEST_FOR_IMPORTANCE}."
        )
    return "All trials have the same value."


def _settings(settings: Settings) -> list[tuple[str, str]]:
    pruning = "by the first fold's learning curve" if settings.pruning else "none"
    space = [(f"{name} in", str(domain)) for name, domain in settings.space.items()]
    return [
        ("recipe", settings.recipe.name),
        ("model", f"{settings.model.name}: {settings.model.description}"),
        *space,
        ("search", settings.search),
        ("trials begun together", str(settings.batch)),
        ("measure", settings.measure),
        ("folds", str(settings.folds)),
        ("pruning", pruning),
        ("seed", str(settings.seed)),
        ("training data", settings.data),
    ]
