"""A sweep in memory and in its folder: its settings, its trials, and the tables made from them.

The settings are all that trials depend on. The folder keeps them, so that a sweep resumes only as
the same sweep. `Sweep` holds the results, which are told in sentences and a table, and written as
JSON, as CSV and as the recipe with the best parameters.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rankinite.core import __version__
from rankinite.core.checksums import read_with_checksum, with_checksum
from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import MISSING, counted, number_text, value_text
from rankinite.core.sources import module_hash
from rankinite.evaluation.tables import Summary, Table, csv_text
from rankinite.runs.graph import Graph
from rankinite.runs.recipe import ORIGINAL, Model, Recipe
from rankinite.runs.store import (
    DATA,
    RECIPE,
    SETTINGS,
    STATE,
    TRAIN,
    Store,
    write_json,
    write_text,
)
from rankinite.sweeps.space import Space, space_of, with_parameters
from rankinite.sweeps.trials import Trial, best_of, ranked

CSV, JSON, PAGE = "trials.csv", "sweep.json", "sweep.html"
MOST_SHOWN = 10
# The recipe that is swept; recipe.toml is the one with the best parameters.
SWEPT = "swept.toml"
# The module whose code trials depend on, with all that it imports.
TRIALS = "rankinite.sweeps.trials"
AGAIN = "run the sweep again in this folder"
# Settings that JSON holds as they are.
PLAIN = ("search", "batch", "folds", "measure", "seed", "pruning")


@dataclass(frozen=True)
class Settings:
    """The settings of a sweep; the number of trials is not one of them, as it may grow.

    Attributes
    ----------
    recipe, model
        The recipe, and its model whose parameters are swept.
    space
        The swept parameters and their values.
    search, batch
        How trials are proposed, and how many at the same time.
    folds, measure, seed
        How trials are compared.
    pruning
        Whether trials that fall behind are stopped.
    data
        Fingerprint of the training data.
    """

    recipe: Recipe
    model: Model
    space: Space
    search: str
    batch: int
    folds: int
    measure: str
    seed: int
    pruning: bool
    data: str

    @property
    def scorers(self) -> tuple[Model, ...]:
        """The model whose scores the swept one sees as features, if it does."""
        if self.model.features is None:
            return ()
        return (self.recipe.models[self.recipe.features[self.model.features].scores_of],)

    def to_json(self) -> dict[str, Any]:
        """Return all that trials depend on, under names that messages can use."""
        model, recipe = self.model, self.recipe
        samples = None if model.train == ORIGINAL else asdict(recipe.training_sets[model.train])
        fixed = {k: v for k, v in model.parameters.items() if k not in self.space}
        return {
            # Of the trainings' sources alone: a change of a table or a sentence keeps old sweeps.
            "version of rankinite": f"{__version__}, sources {module_hash(TRIALS)}",
            "model": model.name,
            "space": {name: str(domain) for name, domain in self.space.items()},
            "search": self.search,
            "batch": self.batch,
            "folds": self.folds,
            "parts": recipe.parts,
            "measure": self.measure,
            "seed": self.seed,
            "pruning": self.pruning,
            "ranker": model.ranker,
            "other parameters": fixed,
            "training set": samples,
            "score features": self._features(),
        }

    @property
    def key(self) -> str:
        """Hash of all that trials depend on."""
        text = json.dumps([self.to_json(), self.data], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _features(self) -> dict[str, Any] | None:
        """Return the score features, with the key of all that they depend on except the data."""
        if self.model.features is None:
            return None
        graph = Graph(self.recipe, digest="")
        task = graph.model(self.model.name, graph.final).features
        key = None if task is None else task.key
        return {**asdict(self.recipe.features[self.model.features]), "key": key}


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

    def mark(self, trial: Trial) -> str:
        """Return ``"pruned"``, ``"best"``, or an empty text."""
        return "pruned" if trial.is_pruned else "best" if trial is self.best else ""

    def summary(self) -> Summary:
        """Return a table of the best trials, and notes on them."""
        notes = [
            best_in_words(self),
            baseline_in_words(self),
            optimism_note(self),
            recipe_in_words(self),
        ]
        return Summary("sweep", (trials_table(self, MOST_SHOWN),), tuple(notes), {}, to_json(self))


def check_settings(store: Store, settings: Settings) -> None:
    """Record the settings of a sweep; refuse a folder that holds another sweep, or a run."""
    path = store.path / SETTINGS
    if not path.exists() and (store.path / STATE).exists():
        raise UsageError(f"{store.path}: a run is in this folder; name another for the sweep")
    difference = _difference(store, _read(store), settings) if path.exists() else ""
    if difference:
        raise UsageError(
            f"{difference}; ask for the same again (the number of trials may grow), or name "
            "another folder"
        )
    write_json(path, with_checksum(_as_stored(settings)))
    store.check_data({TRAIN: settings.data}, settings.recipe, SWEPT)


def read_settings(store: Store) -> Settings:
    """Return the settings of the sweep in a folder.

    Raises
    ------
    DataError
        If they are damaged, or of another version of rankinite, whose trials are others.
    """
    state, content = store.read_state(), _read(store)
    try:
        recipe = store.read_recipe(state, SWEPT)
        model = recipe.models[content["model"]]
        settings = Settings(
            recipe=recipe,
            model=model,
            space=space_of(model, content["space"]),
            data=state[DATA][TRAIN],
            **{name: content[name] for name in PLAIN},
        )
    except (OSError, KeyError, TypeError, UsageError) as problem:
        raise DataError(f"{store.path}: the sweep cannot be read ({problem}); {AGAIN}") from None
    # The recipe and the space were read anew: what they mean may have changed with the version.
    difference = _difference(store, content, settings)
    if difference:
        raise DataError(f"{difference}; {AGAIN}")
    return settings


def _difference(store: Store, stored: Mapping[str, Any], settings: Settings) -> str:
    """Return what differs from the settings in the folder, as text; empty if nothing does."""
    differing = [name for name, value in _as_stored(settings).items() if stored.get(name) != value]
    if not differing:
        return ""
    return f"{store.path}: the sweep in this folder has another {', '.join(differing)}"


def _as_stored(settings: Settings) -> dict[str, Any]:
    """Return settings as they come back from a file, with lists for tuples."""
    content: dict[str, Any] = json.loads(json.dumps(settings.to_json()))
    return content


def _read(store: Store) -> Mapping[str, Any]:
    path = store.path / SETTINGS
    try:
        return read_with_checksum(path)
    except (OSError, ValueError):
        raise DataError(
            f"{path}: is not the settings of a sweep of this version, or is damaged; name another "
            f"folder, or delete it and {STATE}: then the sweep resumes with what you ask for"
        ) from None


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
        sweep.mark(trial),
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
    best = sweep.best
    near = sum(_is_near(t, best) for t in sweep.trials if t is not best and not t.is_pruned)
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


def fold_differences(best: Trial, other: Trial) -> list[float]:
    """Return the differences between two trials, fold by fold."""
    pairs = zip(best.folds, other.folds, strict=True)
    return [first.value - second.value for first, second in pairs]


def _is_near(trial: Trial, best: Trial) -> bool:
    """Tell whether a trial is within one standard error of its difference to the best.

    The error is that of differences fold by fold, as in a paired test: what makes a fold hard is
    common to all trials.
    """
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
    n_folds = sweep.settings.folds
    per_fold = [f"{name}_{k + 1}" for name in ("fold", "kept") for k in range(n_folds)]
    columns = ["trial", "state", *sweep.settings.space, "value", "standard_error", *per_fold]
    return csv_text(columns, (_csv_row(trial, n_folds) for trial in sweep.trials))


def _csv_row(trial: Trial, n_folds: int) -> list[Any]:
    missing = [None] * (n_folds - len(trial.folds))
    return [
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


def write_results(sweep: Sweep) -> Sweep:
    """Write the trials and the recipe with the best parameters; return the sweep with the files."""
    settings, path = sweep.settings, sweep.folder
    recipe = settings.recipe.text
    if sweep.is_better:
        recipe = with_parameters(settings.recipe, settings.model.name, sweep.best.parameters)
    write_text(path / RECIPE, recipe)
    write_text(path / CSV, to_csv(sweep))
    # The last file, by which `open_sweep` knows a finished sweep.
    write_json(path / JSON, to_json(sweep))
    return replace(sweep, written=tuple(path / name for name in (RECIPE, CSV, JSON)))
