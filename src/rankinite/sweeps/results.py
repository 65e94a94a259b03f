"""What a sweep has found: its trials, tables and files."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankinite.core.format import MISSING, counted, number_text, value_text
from rankinite.evaluation.summary import Summary
from rankinite.evaluation.tables import Table
from rankinite.runs.store import RECIPE, RunFolder, write_json, write_text
from rankinite.sweeps.best_recipe import with_parameters
from rankinite.sweeps.settings import Settings
from rankinite.sweeps.trials import Trial, best_of, ranked

CSV, JSON, PAGE = "trials.csv", "sweep.json", "sweep.html"
MOST_SHOWN = 10


@dataclass(frozen=True)
class Sweep:
    """A sweep that has come to its end.

    Attributes
    ----------
    settings
        What it was.
    trials
        All trials, in the order of their numbers.
    own
        How the recipe's own parameters did.
    importances
        The share of each parameter in how values vary; None if there are too few trials to tell.
    written
        The files for people.
    """

    settings: Settings
    trials: tuple[Trial, ...]
    own: Trial
    importances: Mapping[str, float] | None
    written: tuple[Path, ...] = ()

    @property
    def best(self) -> Trial:
        """The trial with the largest mean."""
        return best_of(self.trials)

    @property
    def is_better(self) -> bool:
        """Whether the best trial is better than the recipe's own parameters."""
        return self.best.value > self.own.value

    @property
    def n_pruned(self) -> int:
        """How many trials were given up."""
        return sum(trial.is_pruned for trial in self.trials)

    def findings(self) -> Summary:
        """Return the best trials as a table, and what is to be said of them."""
        notes = [best_in_words(self), own_in_words(self), flattery(self), recipe_in_words(self)]
        return Summary("sweep", (trials_sheet(self, MOST_SHOWN),), tuple(notes), {}, to_json(self))


def trials_sheet(sweep: Sweep, most: int | None = None) -> Table:
    """Return trials from the best on; those that were pruned are the last."""
    settings = sweep.settings
    shown = [one for one in ranked(sweep.trials) if most is None or not one.is_pruned][:most]
    columns = ("Trial", *settings.space, settings.measure, "SE", "Rounds", "")
    several = f"The best {len(shown)} of {counted(len(sweep.trials), 'trial')}"
    title = several if len(shown) < len(sweep.trials) else "Trials"
    return Table(
        f"{title} of {settings.model.name}, {settings.folds} folds",
        columns,
        tuple(_row(sweep, trial) for trial in shown),
    )


def _row(sweep: Sweep, trial: Trial) -> tuple[str, ...]:
    error = trial.standard_error
    return (
        str(trial.number),
        *(short(trial.parameters[name]) for name in sweep.settings.space),
        MISSING if trial.is_pruned else number_text(trial.value),  # of one fold, it is no mean
        MISSING if error is None else number_text(error),
        rounds_of(trial),
        "pruned" if trial.is_pruned else "best" if trial is sweep.best else "",
    )


def short(value: Any) -> str:
    """Return a parameter as a text, of a number four digits.

    >>> short(0.00123456), short(380), short(None), short("NDCG")
    ('0.001235', '380', 'none', 'NDCG')
    """
    return f"{value:.4g}" if isinstance(value, float) else value_text(value)


def rounds_of(trial: Trial) -> str:
    """Return how many rounds were kept; of a pruned trial, how many there were."""
    if trial.is_pruned:
        return f"{trial.folds[0].n_rounds:,}"
    low, high = min(f.kept for f in trial.folds), max(f.kept for f in trial.folds)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def parameters_in_words(trial: Trial) -> str:
    """Return parameters as part of a sentence."""
    return ", ".join(f"{name} = {short(value)}" for name, value in trial.parameters.items())


def best_in_words(sweep: Sweep) -> str:
    """Return the sentence on the best trial."""
    best, settings = sweep.best, sweep.settings
    error = best.standard_error
    spread = "" if error is None else f" (standard error over folds {number_text(error)})"
    return (
        f"Best of {counted(len(sweep.trials), 'trial')}, {sweep.n_pruned} of them pruned: "
        f"{parameters_in_words(best)}, with a mean {settings.measure} of "
        f"{number_text(best.value)}{spread}."
    )


def own_in_words(sweep: Sweep) -> str:
    """Return the sentence on the recipe's own parameters."""
    own, measure = sweep.own, sweep.settings.measure
    words = (
        f"The recipe's own parameters ({parameters_in_words(own)}) have {number_text(own.value)}"
    )
    differences = fold_differences(sweep.best, own)
    ahead = sum(one > 0 for one in differences)
    return (
        f"{words}, a difference of {statistics.fmean(differences):+.4f} in {measure}; the best "
        f"trial is ahead in {ahead} of {counted(len(differences), 'fold')}."
    )


def flattery(sweep: Sweep) -> str:
    """Return why the best value is not what to expect of new data."""
    near = _near_the_best(sweep)
    others = ""
    if near:
        others = (
            f" {counted(near, 'other trial')} {'is' if near == 1 else 'are'} as good within one "
            "standard error of the difference, fold by fold."
        )
    return (
        "The best of many trials flatters itself, and the folds that compare trials also chose "
        f"how many rounds to keep: on new queries expect less.{others}"
    )


def _near_the_best(sweep: Sweep) -> int:
    """Return how many trials are behind the best by no more than the noise of the difference."""
    best = sweep.best
    others = (one for one in sweep.trials if one is not best and not one.is_pruned)
    return sum(_is_near(one, best) for one in others)


def fold_differences(best: Trial, other: Trial) -> list[float]:
    """Return by how much a trial is better than another, fold by fold."""
    pairs = zip(best.folds, other.folds, strict=True)
    return [one.value - two.value for one, two in pairs]


def _is_near(one: Trial, best: Trial) -> bool:
    differences = fold_differences(best, one)
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return statistics.fmean(differences) <= error


def recipe_in_words(sweep: Sweep) -> str:
    """Return what is in the recipe that was written."""
    settings = sweep.settings
    if not sweep.is_better:
        return f"No trial is better, so {RECIPE} is {settings.recipe.name} as it was."
    return f"{RECIPE} is {settings.recipe.name} with these parameters of {settings.model.name}."


def to_json(sweep: Sweep) -> dict[str, Any]:
    """Return all that was found, without learning curves."""
    return {
        "recipe": sweep.settings.recipe.name,
        "settings": {**sweep.settings.to_json(), "data": sweep.settings.data},
        "best": sweep.best.number,
        "best_parameters": dict(sweep.best.parameters),
        "own": _told(sweep.own),
        "is_better": sweep.is_better,
        "importances": None if sweep.importances is None else dict(sweep.importances),
        "trials": [
            {"number": trial.number, "state": _state(trial), **_told(trial)}
            for trial in sweep.trials
        ],
    }


def _told(trial: Trial) -> dict[str, Any]:
    return {
        "parameters": dict(trial.parameters),
        "value": trial.value,
        "standard_error": trial.standard_error,
        "folds": [fold.value for fold in trial.folds],
        "kept_rounds": [fold.kept for fold in trial.folds],
        "rounds": [fold.n_rounds for fold in trial.folds],
    }


def _state(trial: Trial) -> str:
    return "pruned" if trial.is_pruned else "complete"


def to_csv(sweep: Sweep) -> str:
    """Return all trials, one a line; a fold that was not trained is empty."""
    n_folds = range(sweep.settings.folds)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    folds = [f"fold_{k + 1}" for k in n_folds]
    kept = [f"kept_{k + 1}" for k in n_folds]
    names = list(sweep.settings.space)
    writer.writerow(["trial", "state", *names, "value", "standard_error", *folds, *kept])
    for trial in sweep.trials:
        missing = [None] * (len(n_folds) - len(trial.folds))
        writer.writerow(
            [
                trial.number,
                _state(trial),
                *("none" if value is None else value for value in trial.parameters.values()),
                trial.value,
                trial.standard_error,
                *(fold.value for fold in trial.folds),
                *missing,
                *(fold.kept for fold in trial.folds),
                *missing,
            ]
        )
    return text.getvalue()


def write_results(sweep: Sweep, folder: RunFolder) -> Sweep:
    """Write what people look for; return the sweep with the names of the files."""
    from rankinite.report.sweep_page import sweep_html

    settings, path = sweep.settings, folder.path
    write_text(path / CSV, to_csv(sweep))
    write_json(path / JSON, to_json(sweep))
    write_text(path / PAGE, sweep_html(sweep))
    recipe = settings.recipe.text
    if sweep.is_better:
        recipe = with_parameters(settings.recipe, settings.model.name, sweep.best.parameters)
    write_text(path / RECIPE, recipe)
    return replace(sweep, written=tuple(path / name for name in (RECIPE, CSV, JSON, PAGE)))
