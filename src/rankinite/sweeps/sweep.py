"""A sweep: parameters are tried batch by batch, each trial by cross-validation over queries."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import OneOf, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.random import child_seed
from rankinite.data.memmap import fingerprint
from rankinite.data.ranking_data import RankingData
from rankinite.data.splits import refuse_samples
from rankinite.measures.text import parse_measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.models import RANKERS
from rankinite.runs.graph import Graph, cost_of, with_dependencies
from rankinite.runs.inputs import numbers_of_bins, share
from rankinite.runs.recipe import ORIGINAL, Model, Recipe
from rankinite.runs.recipe_reader import read_recipe
from rankinite.runs.run import ORIGINALS, Executor, with_top_grade
from rankinite.runs.scheduler import compile_kernels, execute, logged_to
from rankinite.runs.store import SETTINGS, TRAIN, Store
from rankinite.runs.tasks import Fold, Split, Task
from rankinite.runs.workers import new_workers, opened
from rankinite.sweeps.results import (
    AGAIN,
    CSV,
    JSON,
    PAGE,
    SWEPT,
    Settings,
    Sweep,
    check_settings,
    read_settings,
    write_results,
)
from rankinite.sweeps.space import (
    Domain,
    Range,
    extremes_of,
    n_points,
    papers_space,
    refuse_ranges,
    space_of,
    with_parameters,
)
from rankinite.sweeps.study import (
    GRID,
    JOURNAL,
    SEARCHES,
    TPE,
    importances,
    next_batch,
    open_journal,
    quietly,
)
from rankinite.sweeps.trials import (
    BASELINE,
    FoldResult,
    SweepFit,
    Trial,
    best_of,
    best_so_far,
    floors_of,
    pruning_rounds,
    read_curve,
    some_points,
)

log = logging.getLogger("rankinite")

DEFAULT_TRIALS = 30
DEFAULT_FOLDS = 3
DEFAULT_BATCH = 4


def run_sweep(
    recipe: Recipe | str | Path,
    model: str,
    train: RankingData,
    *,
    out: str | Path,
    space: Mapping[str, str | Sequence[Any]] | None = None,
    trials: int | None = None,
    search: str = TPE,
    folds: int = DEFAULT_FOLDS,
    measure: str | None = None,
    pruning: bool = True,
    batch: int = DEFAULT_BATCH,
    seed: int | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Search for the parameters of a recipe's model that are best in cross-validation by query.

    The same sweep gives the same trials on any number of workers. An interrupted sweep resumes in
    its folder.

    Parameters
    ----------
    recipe, model
        A recipe, the name of a shipped one such as ``"winner-small"``, or a TOML file; and the
        name of one of its models.
    train
        The training data.
    out
        Folder of the sweep.
    space
        Values to try, by parameter: a list, ``"50:400:30"`` for evenly spaced ones, or
        ``"1e-4..1e-2"`` for a range, which is searched on a log scale if its ends are a factor of
        100 or more apart. If None, those of the paper (Ensemble, Sec. 4.2).
    trials
        Number of trials; 30 if None, or all of a grid.
    search
        ``"tpe"``, which learns from earlier trials; ``"random"``; or ``"grid"``, in random order.
    folds
        Number of folds of queries; for each, a model is trained on the others.
    measure
        The measure that decides; the recipe's first if None.
    pruning
        Whether a trial stops when its first fold's learning curve falls behind the median of
        earlier trials.
    batch
        Number of trials that start together: none of them can learn from another.
    seed
        Random seed of folds, trainings and search; that of the recipe if None.
    jobs, cluster
        Number of models that are trained at the same time on this machine; or the address of a
        Dask scheduler, or ``local:4``.
    force
        Replace files of others in the folder, if it is not that of a sweep.
    progress
        Progress reporter.
    """
    read = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    for name, value, least in (("folds", folds, 2), ("batch", batch, 1), ("trials", trials, 1)):
        if value is not None:
            check("sweep", name, value, Whole(least))
    chosen, domains, decides = check_sweep(read, model, space=space, search=search, measure=measure)
    data = with_top_grade(read, train)
    _check_data(data, folds)
    settings = Settings(
        recipe=read,
        model=chosen,
        space=domains,
        search=search,
        folds=folds,
        measure=decides,
        pruning=pruning,
        batch=batch,
        seed=read.seed if seed is None else seed,
        data=fingerprint(data),
    )
    wanted = _n_trials(trials, search, n_points(domains))
    check_folder(out, force=force)
    store = Store(out)
    reporter = progress or Silent()
    with quietly(), store.locked(RESULT_FILES), logged_to(store):
        # Before anything is written: the folder may hold another sweep, or a run.
        check_settings(store, settings)
        with opened(new_workers(jobs, cluster)) as workers:
            share({TRAIN: data}, _bins(settings), store, reporter, {TRAIN: settings.data})
            # From now on the mapped files of the store are used, as in all tasks.
            del train, data

            def execute_here(tasks: Iterable[Task], title: str) -> None:
                execute(tasks, store, workers, reporter, title)

            loop = _TrialLoop(settings, store, execute_here, renew=True)
            # Kernels are compiled by one task first, or every worker would compile them.
            if not loop.trials:
                compile_kernels(loop.baseline_tasks()[:1], store, workers, reporter)
            loop.run(wanted)
            sweep = loop.sweep()
        return write_results(sweep)


# The files for people, and for Optuna, that a sweep writes into its folder, besides the recipe.
RESULT_FILES = (SWEPT, CSV, JSON, PAGE, JOURNAL)


def check_folder(out: str | Path, *, force: bool = False) -> None:
    """Refuse a folder that is not that of a sweep, and has files that a sweep would replace.

    Parameters
    ----------
    out
        The folder; it need not exist.
    force
        Refuse nothing: such files are replaced.
    """
    store = Store(out)
    if not force and not (store.is_used or (store.path / SETTINGS).exists()):
        store.refuse_others(RESULT_FILES)


def open_sweep(folder: str | Path) -> Sweep:
    """Return a finished sweep from its folder; nothing is trained, and results stay as they are.

    Parameters
    ----------
    folder
        Folder that `run_sweep` or ``rankinite sweep`` has finished.

    Raises
    ------
    UsageError
        If the folder is not that of a sweep.
    DataError
        If the sweep is not finished.
    """
    path = Path(folder)
    if not (path / SETTINGS).is_file():
        raise UsageError(
            f"{path}: is not the folder of a sweep; name one that 'rankinite sweep' has written"
        )
    if not (path / JSON).is_file():
        raise DataError(f"{path}: the sweep is not finished; {AGAIN}")
    store = Store(path)

    def require_finished(tasks: Iterable[Task], title: str) -> None:
        missing = [t for t in with_dependencies(tasks).values() if not store.is_finished(t.key)]
        if missing:
            raise DataError(
                f"{path}: the sweep is not finished: {title} lack the task {missing[0].name!r} "
                f"({store.damage(missing[0].key)}); {AGAIN}"
            )

    # The lock keeps another process from adding trials: opening their file repairs it.
    with quietly(), store.locked(RESULT_FILES):
        return _TrialLoop(read_settings(store), store, require_finished, renew=False).sweep()


def _check_data(train: RankingData, folds: int) -> None:
    refuse_samples(TRAIN, train.qids, ORIGINALS)
    if train.n_queries < folds:
        raise UsageError(
            f"sweep: {train.n_queries} queries cannot be split into {folds} folds; ask for fewer"
        )


def check_sweep(
    recipe: Recipe,
    model: str,
    *,
    space: Mapping[str, str | Sequence[Any]] | None,
    search: str,
    measure: str | None,
) -> tuple[Model, dict[str, Domain], str]:
    """Check all arguments except the data; return the model, its parameters and the measure.

    Parameters are those of `run_sweep`.
    """
    check("sweep", "search", search, OneOf(SEARCHES))
    chosen = _model_of(recipe, model)
    domains = space_of(chosen, papers_space(chosen.ranker, search) if space is None else space)
    if search == GRID:
        refuse_ranges(domains)
    # Features are binned once, before the first trial, for every number of bins that may be tried.
    if isinstance(domains.get("most_bins"), Range):
        raise UsageError("sweep: most_bins needs values, such as most_bins=64,255, and no range")
    # Parameters that cannot be written into the recipe in the end are of no use.
    for name, domain in domains.items():
        for value in extremes_of(domain):
            with_parameters(recipe, model, {name: value})
    return chosen, domains, _measure_of(recipe, measure)


def _model_of(recipe: Recipe, name: str) -> Model:
    if name not in recipe.models:
        raise UsageError(
            f"sweep: {recipe.name} has no model {name!r}; it has {some_of(list(recipe.models), 20)}"
        )
    model = recipe.models[name]
    if model.trained_as is not None:
        raise UsageError(
            f"sweep: {name} takes the training of {model.trained_as}; sweep {model.trained_as}"
        )
    return model


def _measure_of(recipe: Recipe, text: str | None) -> str:
    if text is None:
        return recipe.measures[0]
    measure = parse_measure(text)
    if isinstance(measure, TieredMeasure):
        raise UsageError(f"sweep: {text!r} is several measures; give one, such as NDCG@10")
    return str(measure)


def _n_trials(trials: int | None, search: str, points: float) -> int:
    """Return the number of trials, which is at most that of the points."""
    default = points if search == GRID else DEFAULT_TRIALS
    return int(min(default if trials is None else trials, points))


def _bins(settings: Settings) -> list[int | None]:
    """Return the numbers of bins of all trainings, those for score features included."""
    swept = settings.space.get("most_bins")
    values = () if swept is None else swept.values or ()
    models = [(m.ranker, m.parameters) for m in (settings.model, *settings.scorers)]
    models += [(settings.model.ranker, {"most_bins": value}) for value in values]
    return numbers_of_bins(models)


@dataclass(frozen=True)
class _StartedTrial:
    """A trial that was started: its number, its parameters, and the task of its first fold."""

    number: int
    parameters: Mapping[str, Any]
    first: Task


class _TrialLoop:
    """Proposes trials, executes their tasks, and adds the trials to the journal.

    Trials come in batches of a fixed size. A batch learns from earlier batches only, never from
    trials that happened to finish sooner, so that the trials are the same on any number of workers
    and after any interruption.
    """

    def __init__(self, settings: Settings, store: Store, execute: Executor, *, renew: bool) -> None:
        self.settings = settings
        self.store = store
        self.execute = execute
        graph = Graph(settings.recipe, settings.data)
        # All queries; the folds depend on the seed of the sweep.
        self.stage = replace(graph.final, seed=settings.seed)
        # Made by models that have not seen the labels of a document's own query, as in a run.
        self.features = graph.model(settings.model.name, graph.final).features
        self.pruning_rounds = pruning_rounds(max(self._most_rounds()))
        self.journal, self.trials = open_journal(
            store.path, settings.space, settings.key, renew=renew
        )

    def _most_rounds(self) -> Iterator[int]:
        """Go through the largest numbers of rounds of trainings."""
        model, space = self.settings.model, self.settings.space
        variants: list[dict[str, Any]] = [{}]
        # The parameters on which the number of rounds depends: trees, epochs, and the optimiser.
        for name in ("n_trees", "n_epochs", "optimiser"):
            domain = space.get(name)
            if domain is not None:
                values = (domain.high,) if isinstance(domain, Range) else domain.values
                variants = [{**variant, name: value} for variant in variants for value in values]
        for variant in variants:
            ranker = RANKERS[model.ranker](**{**model.parameters, **variant})
            yield ranker.max_rounds

    def run(self, wanted: int) -> None:
        """Execute trials until there are as many as wanted, or nothing is left to try."""
        settings = self.settings
        while len(self.trials) < wanted:
            batch = len(self.trials) // settings.batch
            earlier = self.trials[: batch * settings.batch]
            # Proposals follow one another, so that a batch cut short has the first of a whole one.
            size = min(settings.batch, wanted - len(earlier))
            points = next_batch(
                settings.space, settings.search, settings.seed, earlier, batch, size
            )
            # A sweep that was killed, or that grows, has some trials of this batch already.
            points = points[len(self.trials) - len(earlier) :]
            if not points:
                log.info("after %d trials there is nothing else to try", len(self.trials))
                break
            for trial in self._execute_batch(points, earlier, wanted):
                # Added in the order of their numbers, which Optuna gives by position.
                self.journal.add(trial)
                self.trials.append(trial)
                log.debug("trial %d: %s %.4f", trial.number, settings.measure, trial.value)

    def sweep(self) -> Sweep:
        """Return all trials, compared with the recipe's own parameters, which are never pruned."""
        settings = self.settings
        # Finished tasks are not executed again; those of a recipe that was changed are others.
        tasks = self.baseline_tasks()
        self.execute(tasks, "the recipe's own parameters")
        baseline = self._trial(_StartedTrial(BASELINE, self._own_parameters(), tasks[0]))
        shares = importances(settings.space, self.trials, settings.seed)
        return Sweep(self.store.path, settings, tuple(self.trials), baseline, shares)

    def _own_parameters(self) -> dict[str, Any]:
        return {name: self.settings.model.parameters[name] for name in self.settings.space}

    def baseline_tasks(self) -> list[Task]:
        """Return the trainings with the recipe's own parameters, one a fold."""
        parameters = self._own_parameters()
        return [self._task(BASELINE, parameters, fold, {}) for fold in range(self.settings.folds)]

    def _execute_batch(
        self, points: Sequence[Mapping[str, Any]], earlier: Sequence[Trial], wanted: int
    ) -> Iterator[Trial]:
        """Train the first fold of every trial, and the others of those that are not pruned."""
        # The first fold alone decides on pruning: a trial that is pruned costs one training.
        floors = floors_of(earlier, self.pruning_rounds) if self.settings.pruning else {}
        first = len(self.trials)
        started = [
            _StartedTrial(number, point, self._task(number, point, 0, floors))
            for number, point in enumerate(points, first)
        ]
        title = f"trials {first} to {started[-1].number} of {wanted}"
        if earlier:
            title += f", best {best_of(earlier).value:.4f}"
        self.execute([trial.first for trial in started], f"{title}, first fold")
        unpruned = [t for t in started if not read_curve(self.store, t.first).is_pruned]
        others = [task for trial in unpruned for task in self._other_folds(trial)]
        self.execute(others, f"{title}, other folds")
        for trial in started:
            yield self._trial(trial)

    def _other_folds(self, trial: _StartedTrial) -> list[Task]:
        return [
            self._task(trial.number, trial.parameters, fold, {})
            for fold in range(1, self.settings.folds)
        ]

    def _task(
        self, number: int, point: Mapping[str, Any], fold: int, floors: Mapping[int, float]
    ) -> Task:
        settings, model = self.settings, self.settings.model
        # The same for all trials, so that they differ in nothing but their parameters.
        seed = child_seed(settings.seed, "sweep", model.name, "fold", fold)
        recipe = settings.recipe
        parameters = {**model.parameters, **point}
        samples = recipe.training_sets[model.train] if model.train != ORIGINAL else None
        function = SweepFit(
            ranker=model.ranker,
            parameters={**parameters, "random_state": int(seed.generate_state(1)[0])},
            measures=(settings.measure,),
            split=Split(self.stage, Fold(fold, settings.folds)),
            samples=samples,
            features=None if self.features is None else self.features.key,
            data=settings.data,
            floors=tuple(sorted(floors.items())),
        )
        dependencies = () if self.features is None else (self.features,)
        cost = cost_of(replace(model, parameters=parameters), samples, self.stage)
        name = "own parameters" if number == BASELINE else f"trial {number}"
        return Task(f"{name}, fold {fold + 1} of {settings.folds}", function, dependencies, cost)

    def _trial(self, started: _StartedTrial) -> Trial:
        curves = [read_curve(self.store, started.first)]
        if not curves[0].is_pruned:
            curves += [read_curve(self.store, task) for task in self._other_folds(started)]
        first = curves[0]
        reached = [r for r in self.pruning_rounds if not first.is_pruned or r <= len(first.values)]
        return Trial(
            started.number,
            dict(started.parameters),
            tuple(
                FoldResult(curve.value, curve.kept, len(curve.values), some_points(curve.values))
                for curve in curves
            ),
            best_so_far(first.values, reached),
            first.is_pruned,
        )
