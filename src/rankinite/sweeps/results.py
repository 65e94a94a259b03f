"""The results of a sweep: its trials, tables and files."""

from __future__ import annotations

import csv
import io
import math
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankinite.core.errors import RecipeError, UsageError
from rankinite.core.format import MISSING, counted, number_text, value_text
from rankinite.evaluation.tables import Summary, Table
from rankinite.runs.recipe import Recipe
from rankinite.runs.recipe_models import MODELS
from rankinite.runs.recipe_reader import recipe_of
from rankinite.runs.store import RECIPE, write_json, write_text
from rankinite.runs.toml import KeyPath, Span, key_positions, toml_of
from rankinite.sweeps.settings import Settings
from rankinite.sweeps.trials import Trial, best_of, ranked

RANKER = "ranker"
LAST_KEY = re.compile(rf"""["']?{RANKER}["']?([ \t]*=[ \t]*)$""")


def with_parameters(recipe: Recipe, model: str, parameters: Mapping[str, Any]) -> str:
    """Return the text of a recipe in which a model has other parameters.

    Parameters
    ----------
    recipe
        The recipe.
    model
        Name of the model.
    parameters
        The new parameters; all others, and all comments, stay.
    """
    text = recipe.text
    # In reverse, as each new one is inserted directly after the ranker.
    for name, value in reversed(list(parameters.items())):
        text = _with_parameter(text, model, name, toml_of(value))
    changes = ", ".join(f"{name} = {toml_of(value)}" for name, value in parameters.items())
    try:
        changed = recipe_of(recipe.name, text).models[model].parameters
    except RecipeError as problem:
        raise UsageError(
            f"sweep: with {changes} of {model} the recipe is invalid: {problem}"
        ) from None
    if dict(changed) != {**recipe.models[model].parameters, **parameters}:
        raise UsageError(
            f"sweep: the recipe cannot be edited automatically; write {changes} into "
            f"[models.{model}]"
        )
    return text


def _with_parameter(text: str, model: str, name: str, value: str) -> str:
    positions = key_positions(text)
    path: KeyPath = (MODELS, model, name)
    if path in positions:
        span = positions[path]
        return text[: span.value] + value + text[span.end :]
    # Every model that is trained has a ranker, after which new parameters stand.
    return _after_ranker(text, positions[MODELS, model, RANKER], name, value)


def _after_ranker(text: str, ranker: Span, name: str, value: str) -> str:
    key = LAST_KEY.sub(rf"{name}\1", text[ranker.key : ranker.value])
    begin = text.rfind("\n", 0, ranker.key) + 1
    indent = text[begin : ranker.key]
    if indent.strip():  # within an inline table
        return f"{text[: ranker.end]}, {key}{value}{text[ranker.end :]}"
    end = text.find("\n", ranker.end)
    head, rest = (text, "") if end < 0 else (text[:end], text[end:])
    return f"{head}\n{indent}{key}{value}{rest}"


CSV, JSON = "trials.csv", "sweep.json"
MOST_SHOWN = 10


@dataclass(frozen=True)
class Sweep:
    """A finished sweep.

    Attributes
    ----------
    folder
        The folder of the sweep.
    settings
        Its settings.
    trials
        All trials, in the order of their numbers.
    baseline
        The trial with the recipe's own parameters.
    importances
        Share of each parameter in the variance of values; None if there are too few trials to tell.
    written
        The files for people that were written. The page with charts is written by
        `rankinite.report.write_sweep_report`.
    """

    folder: Path
    settings: Settings
    trials: tuple[Trial, ...]
    baseline: Trial
    importances: Mapping[str, float] | None
    written: tuple[Path, ...] = ()

    @property
    def best(self) -> Trial:
        """The trial with the largest mean."""
        return best_of(self.trials)

    @property
    def is_better(self) -> bool:
        """Whether the best trial is better than the recipe's own parameters."""
        return self.best.value > self.baseline.value

    @property
    def n_pruned(self) -> int:
        """Number of pruned trials."""
        return sum(trial.is_pruned for trial in self.trials)

    def summary(self) -> Summary:
        """Return a table of the best trials, and notes on them."""
        notes = [
            best_in_words(self),
            baseline_in_words(self),
            optimism_note(self),
            recipe_in_words(self),
        ]
        return Summary("sweep", (trials_table(self, MOST_SHOWN),), tuple(notes), {}, to_json(self))


def trials_table(sweep: Sweep, most: int | None = None) -> Table:
    """Return a table of trials from the best on, pruned trials last."""
    settings = sweep.settings
    shown = [t for t in ranked(sweep.trials) if most is None or not t.is_pruned][:most]
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
    """Return the value of a parameter as a text, of a number four digits.

    >>> short(0.00123456), short(380), short(None), short("NDCG")
    ('0.001235', '380', 'none', 'NDCG')
    """
    return f"{value:.4g}" if isinstance(value, float) else value_text(value)


def rounds_of(trial: Trial) -> str:
    """Return the number of rounds that were kept; of a pruned trial, of all its rounds."""
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


def baseline_in_words(sweep: Sweep) -> str:
    """Return the sentence on the recipe's own parameters."""
    baseline, measure = sweep.baseline, sweep.settings.measure
    parameters, value = parameters_in_words(baseline), number_text(baseline.value)
    differences = fold_differences(sweep.best, baseline)
    ahead = sum(difference > 0 for difference in differences)
    return (
        f"The recipe's own parameters ({parameters}) have {value}, a difference of "
        f"{statistics.fmean(differences):+.4f} in {measure}; the best trial is ahead in {ahead} of "
        f"{counted(len(differences), 'fold')}."
    )


def optimism_note(sweep: Sweep) -> str:
    """Return the sentences on why new queries will give less than the best value."""
    near = _near_the_best(sweep)
    others = ""
    if near:
        others = (
            f" {counted(near, 'other trial')} {'is' if near == 1 else 'are'} as good within one "
            "standard error of the difference, fold by fold."
        )
    return (
        "The best of many trials is optimistic, and the folds that compare trials also chose the "
        f"number of rounds: expect less on new queries.{others}"
    )


def _near_the_best(sweep: Sweep) -> int:
    """Return the number of trials within one standard error of their difference to the best."""
    best = sweep.best
    others = (trial for trial in sweep.trials if trial is not best and not trial.is_pruned)
    return sum(_is_near(trial, best) for trial in others)


def fold_differences(best: Trial, other: Trial) -> list[float]:
    """Return the differences between two trials, fold by fold."""
    pairs = zip(best.folds, other.folds, strict=True)
    return [first.value - second.value for first, second in pairs]


def _is_near(trial: Trial, best: Trial) -> bool:
    differences = fold_differences(best, trial)
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return statistics.fmean(differences) <= error


def recipe_in_words(sweep: Sweep) -> str:
    """Return the sentence on the recipe that was written."""
    settings = sweep.settings
    if not sweep.is_better:
        return f"No trial is better, so {RECIPE} is {settings.recipe.name} as it was."
    return f"{RECIPE} is {settings.recipe.name} with these parameters of {settings.model.name}."


def to_json(sweep: Sweep) -> dict[str, Any]:
    """Return all results as JSON can hold them, without learning curves."""
    return {
        "recipe": sweep.settings.recipe.name,
        "settings": {**sweep.settings.to_json(), "data": sweep.settings.data},
        "best": sweep.best.number,
        "best_parameters": dict(sweep.best.parameters),
        "own": _trial_json(sweep.baseline),
        "is_better": sweep.is_better,
        "importances": None if sweep.importances is None else dict(sweep.importances),
        "trials": [
            {"number": trial.number, "state": _state(trial), **_trial_json(trial)}
            for trial in sweep.trials
        ],
    }


def _trial_json(trial: Trial) -> dict[str, Any]:
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
    """Return all trials as CSV, one per line; a fold that was not trained is empty."""
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


def write_results(sweep: Sweep) -> Sweep:
    """Write the trials and the recipe with the best parameters; return the sweep with the files."""
    settings, path = sweep.settings, sweep.folder
    recipe = settings.recipe.text
    if sweep.is_better:
        recipe = with_parameters(settings.recipe, settings.model.name, sweep.best.parameters)
    write_text(path / RECIPE, recipe)
    write_text(path / CSV, to_csv(sweep))
    write_json(path / JSON, to_json(sweep))
    return replace(sweep, written=tuple(path / name for name in (RECIPE, CSV, JSON)))
