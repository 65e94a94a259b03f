"""A run: a recipe executed in a folder, and read again from it.

`run_recipe` checks the data and shares them in the store (`prepare`), executes the tasks of both
stages, and writes files for people. `open_run` reads a finished run. The results of a run are
computed from those of its tasks, each time alike: a run that is repeated executes nothing, and a
finished run can be opened again without its data sets.
"""

from __future__ import annotations

import logging
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core import __version__
from rankinite.core.errors import DataError, UsageError
from rankinite.core.progress import Progress, Silent
from rankinite.data import checks
from rankinite.data.describe import describe
from rankinite.data.memmap import fingerprint
from rankinite.data.ranking_data import RankingData
from rankinite.data.scores import save_scores
from rankinite.data.splits import refuse_samples
from rankinite.ensembles.average import Average
from rankinite.ensembles.score_features import FEATURE_NAMES
from rankinite.ensembles.selection import Selection, evaluate_by_name, select_members
from rankinite.evaluation.tables import Summary
from rankinite.rankers.features import check_features
from rankinite.rankers.ranker import Ranker
from rankinite.runs.graph import Graph, StageModel, with_dependencies
from rankinite.runs.inputs import inputs_of, numbers_of_bins, share
from rankinite.runs.recipe import ALL, ENSEMBLE, EVERY, MOST_EXHAUSTIVE, NAMED, Recipe
from rankinite.runs.recipe_reader import read_recipe
from rankinite.runs.results import HELD_OUT, Outcome, Results, facts_of, measured_subsets
from rankinite.runs.scheduler import compile_kernels, execute, logged_to
from rankinite.runs.store import (
    DATA,
    ENSEMBLE_FILE,
    RECIPE,
    REPORT,
    SETS,
    SETTINGS,
    STATE,
    TRAIN,
    VERSIONS,
    Store,
    explained_pages,
    write_text,
)
from rankinite.runs.tables import NAME as TABLES
from rankinite.runs.tables import per_query_csv, tables_of
from rankinite.runs.tasks import Task, read_record, read_spread
from rankinite.runs.workers import new_workers, opened

log = logging.getLogger("rankinite")

VALID, TEST = "valid", "test"
# What to do about samples in the data.
ORIGINALS = "give the original data, and let the recipe augment it"
RESUME = "run the recipe again in this folder, which resumes it"
# Packages whose versions a report tells.
PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "joblib")

# Makes sure that tasks are finished; the text is the title of the work.
Executor = Callable[[Iterable[Task], str], None]


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    folder
        The folder of the run.
    results
        All numbers.
    tables
        The tables of the recipe.
    models
        The final models, by name.
    ensemble
        The ensemble, which scores new data.
    written
        The files for people that were written: the ensemble and the tables. The report is written
        by `rankinite.report.write_report`.
    """

    folder: Path
    results: Results
    tables: Summary
    models: Mapping[str, Ranker]
    ensemble: Average
    written: tuple[Path, ...] = ()


def run_recipe(
    recipe: Recipe | str | Path,
    train: RankingData,
    valid: RankingData | None = None,
    test: RankingData | None = None,
    *,
    out: str | Path,
    jobs: int | None = None,
    cluster: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Execute a recipe in a folder; tasks that are finished there are not executed again.

    Models are trained on some parts of the training queries and compared on the others, which
    choose the members of the ensemble. These are trained again on all training queries (Ensemble,
    Sec. 4.3). Validation and test data only measure the final models: nothing is learned from them.

    Parameters
    ----------
    recipe
        A recipe, the name of a shipped one such as ``"winner-small"``, or a TOML file.
    train, valid, test
        The data sets; the last two are optional.
    out
        Folder of the run. An interrupted run resumes in it, and ends with the same bytes.
    jobs
        Number of tasks at the same time on this machine; one per core if None.
    cluster
        Address of a Dask scheduler, or ``local:4``, instead.
    force
        Replace files of others in the folder, if it is not that of a run.
    progress
        Progress reporter.
    """
    chosen = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    check_folder(chosen, out, force=force)
    store = Store(out)
    named = {TRAIN: train, VALID: valid, TEST: test}
    sets = {name: with_top_grade(chosen, data) for name, data in named.items() if data is not None}
    reporter = progress or Silent()
    files = result_files(chosen)
    with store.locked(files), logged_to(store), opened(new_workers(jobs, cluster)) as workers:
        start = time.perf_counter()
        digests = prepare(chosen, sets, store, reporter)
        # From now on the mapped files of the store are used, as in all tasks: data in memory
        # could be released.
        del train, valid, test, named, sets
        graph = Graph(chosen, digests[TRAIN])
        # The first stage trains every model, and so needs all kernels of the run.
        compile_kernels(graph.selection_scores().values(), store, workers, reporter)

        def execute_here(tasks: Iterable[Task], title: str) -> None:
            execute(tasks, store, workers, reporter, title)

        run = _Stages(graph, digests, store, execute_here, reporter).run(_versions())
        written = _write_files(run, store)
        log.debug("done in %.1f s", time.perf_counter() - start)
    return replace(run, written=written)


def check_folder(recipe: Recipe, out: str | Path, *, force: bool = False) -> None:
    """Refuse a folder that is not that of a run, and has files that a run would replace.

    Parameters
    ----------
    recipe
        The recipe of the run.
    out
        The folder; it need not exist.
    force
        Refuse nothing: such files are replaced.
    """
    store = Store(out)
    if not force and not store.is_used:
        store.refuse_others(result_files(recipe), recipe.text)


def result_files(recipe: Recipe) -> list[str]:
    """Return the names of the files for people that a run can write into its folder."""
    models = list(recipe.models)
    names = [ENSEMBLE_FILE, REPORT, f"{TABLES}.md", f"{TABLES}.json", *explained_pages()]
    names += [f"models/{model}.rk" for model in models]
    names += [f"measures/{name}.csv" for name in (HELD_OUT, VALID, TEST)]
    return names + [f"scores/{s}/{m}.txt" for s in (VALID, TEST) for m in (*models, ENSEMBLE)]


def open_run(folder: str | Path) -> Run:
    """Return a finished run from its folder; nothing is trained or written.

    Parameters
    ----------
    folder
        Folder that `run_recipe` or ``rankinite recipe run`` has finished.

    Raises
    ------
    UsageError
        If the folder is not that of a run.
    DataError
        If the run is not finished.
    """
    path = Path(folder)
    # The folder of a sweep has a state as well.
    if not (path / STATE).is_file() or (path / SETTINGS).exists():
        raise UsageError(
            f"{path}: is not the folder of a run; name one that 'rankinite recipe run' has written"
        )
    state = Store(path).read_state()
    digests = {name: state[DATA][name] for name in state[SETS] if name in state[DATA]}
    if TRAIN not in digests or not (path / RECIPE).is_file():
        raise DataError(f"{path}: the run is not finished; {RESUME}")
    store = Store(path, digests)
    recipe = store.read_recipe(state)
    graph = Graph(recipe, store.digests[TRAIN])

    def require_finished(tasks: Iterable[Task], title: str) -> None:
        needed = with_dependencies(tasks)
        missing = [task for key, task in needed.items() if not store.is_finished(key)]
        if missing:
            raise DataError(
                f"{path}: the run is not finished by this version of rankinite: {len(missing):,} "
                f"of {len(needed):,} tasks of the {title} are missing or damaged, such as "
                f"{missing[0].name!r} ({store.damage(missing[0].key)}); {RESUME}"
            )

    return _Stages(graph, store.digests, store, require_finished, Silent()).run(state[VERSIONS])


def prepare(
    recipe: Recipe, sets: Mapping[str, RankingData], store: Store, progress: Progress
) -> dict[str, str]:
    """Check the data sets, write those that are not in the store yet; return their fingerprints.

    Parameters
    ----------
    recipe
        The recipe, which needs enough queries.
    sets
        ``train``, and ``valid`` and ``test`` if present.
    store
        The store of the run.
    progress
        Progress reporter.
    """
    if (store.path / SETTINGS).exists():
        raise UsageError(f"{store.path}: is the folder of a sweep; name another one for a run")
    _check(recipe, sets)
    # Computed once: a fingerprint reads all of the data.
    digests = {name: fingerprint(data) for name, data in sets.items()}
    store.check_data(digests, recipe)
    models = [(model.ranker, model.parameters) for model in recipe.models.values()]
    share(sets, numbers_of_bins(models), store, progress, digests)
    return digests


def _check(recipe: Recipe, sets: Mapping[str, RankingData]) -> None:
    train = sets[TRAIN]
    for name, data in sets.items():
        # Now, in one sentence, and not after hours in the task that scores the set.
        check_features(f"the {name} data", data.feature_names, train.feature_names)
        if data.top_grade != train.top_grade:
            raise DataError(
                f"the top grade of the {name} data is {data.top_grade:g}, that of the training "
                f"data {train.top_grade:g}; set top_grade, the largest possible label, in [data] "
                "of the recipe"
            )
        refuse_samples(name, data.qids, ORIGINALS)
    clashing = sorted({*FEATURE_NAMES} & {*train.feature_names})
    if recipe.features and clashing:
        raise DataError(
            f"the training data have a feature {clashing[0]!r}, as score features are called; give "
            "it another name"
        )
    _check_size(recipe, train)


def with_top_grade(recipe: Recipe, data: RankingData) -> RankingData:
    """Return a data set with the top grade of the recipe, if the recipe sets one."""
    if recipe.top_grade is None or recipe.top_grade == data.top_grade:
        return data
    return data.replace(top_grade=checks.top_grade(recipe.top_grade, data.y))


def _check_size(recipe: Recipe, train: RankingData) -> None:
    """Refuse training data with too few queries for all parts and folds."""
    folds = [recipe.folds, *(features.folds for features in recipe.features.values())]
    smallest = train.n_queries // recipe.parts * recipe.train_parts
    # For score features, one fold is left out and the rest is split once more.
    left = smallest - -(-smallest // min(folds)) if recipe.features else smallest
    if train.n_queries < recipe.parts or left < max(folds):
        raise UsageError(
            f"the training data have {train.n_queries:,} queries, too few for {recipe.parts} parts "
            f"of which {recipe.train_parts} are split into {max(folds)} folds; ask for fewer parts "
            "and folds in [data] of the recipe, or give more data"
        )
    # Splitting raises its own error for data that cannot be split.
    train.split(recipe.parts, seed=recipe.seed)


class _Stages:
    """Both stages of a run: the tasks of each, and the results that are made of theirs."""

    def __init__(
        self,
        graph: Graph,
        digests: Mapping[str, str],
        store: Store,
        execute: Executor,
        progress: Progress,
    ) -> None:
        self.graph = graph
        self.recipe = graph.recipe
        self.digests = digests
        self.store = store
        self.execute = execute
        self.progress = progress
        self.inputs = inputs_of(store)
        self.sets = {name: self.inputs.data(name) for name in digests}
        # Seconds of each stage. They are read from the records of tasks: a clock of this process
        # would tell of the last start alone, and change the report each time it is rendered.
        self.seconds: dict[str, float] = {}
        self.counted: set[str] = set()

    def run(self, versions: Mapping[str, str]) -> Run:
        """Execute both stages, and return their results."""
        selection = self._select()
        final = self._retrain(selection)
        models = {name: self.inputs.ranker(staged.keys) for name, staged in final.items()}
        ensemble = self._ensemble({name: final[name] for name in selection.chosen}, models)
        results = Results(
            recipe=self.recipe,
            descriptions={name: describe(data) for name, data in self.sets.items()},
            selection=selection,
            outcomes={
                name: self._outcome(name, final, ensemble) for name in self.sets if name != TRAIN
            },
            facts=facts_of(self.graph, self.inputs, final),
            seconds=self.seconds,
            versions=versions,
            digests=self.digests,
        )
        return Run(self.store.path, results, tables_of(results), models, ensemble)

    def _execute(self, tasks: Iterable[Task], title: str) -> None:
        """Execute tasks, and add up how long they and their dependencies took."""
        wanted = list(tasks)
        self.execute(wanted, title)
        new = {k: t for k, t in with_dependencies(wanted).items() if k not in self.counted}
        self.seconds[title] = sum(read_record(self.store, task).seconds for task in new.values())
        # A task that both stages need belongs to the first.
        self.counted |= new.keys()

    def _select(self) -> Selection:
        """Execute the first stage, and choose the members of the ensemble."""
        tasks = self.graph.selection_scores()
        self._execute(tasks.values(), "first stage")
        data = self.graph.first.outside(self.sets[TRAIN])
        scores = {name: self.inputs.scores(task.key, data) for name, task in tasks.items()}
        search = self._search_options() if len(scores) > 1 else None
        subsets = measured_subsets(self.recipe)
        return select_members(scores, data, self.recipe.measures, subsets, search)

    def _search_options(self) -> dict[str, Any] | None:
        """Return how `best_subset` chooses members; None if the recipe takes all."""
        recipe = self.recipe
        if recipe.choose == ALL:
            return None
        return {
            "candidates": list(recipe.subsets.values()) if recipe.choose == NAMED else None,
            "most_exhaustive": MOST_EXHAUSTIVE if recipe.choose == EVERY else 1,
            "level": recipe.level,
            "seed": recipe.seed,
            "progress": self.progress,
        }

    def _retrain(self, selection: Selection) -> dict[str, StageModel]:
        """Train the chosen models on all training queries, and the best one for comparison."""
        # The best member is trained again even if it was not chosen: a reader wants to know whether
        # the ensemble is worth more than it.
        wanted = {*selection.chosen, selection.best_member}
        graph = self.graph
        final = {
            name: graph.model(name, graph.final) for name in self.recipe.models if name in wanted
        }
        tasks = [graph.spread(staged) for staged in final.values()]
        tasks += [
            graph.score(staged, name, digest)
            for staged in final.values()
            for name, digest in self.digests.items()
            if name != TRAIN
        ]
        self._execute(tasks, "final training")
        return final

    def _ensemble(self, final: Mapping[str, StageModel], models: Mapping[str, Ranker]) -> Average:
        """Return the average of the chosen models, each on the scale of its unseen scores."""
        # From the folds that validated the final trainings: all other documents were trained on.
        spreads = [
            read_spread(self.store, self.graph.spread(staged).key) for staged in final.values()
        ]
        means, scales = (np.array(column) for column in zip(*spreads, strict=True))
        return Average.from_members(
            {name: models[name] for name in final}, means=means, scales=scales
        )

    def _outcome(self, name: str, final: Mapping[str, StageModel], ensemble: Average) -> Outcome:
        data = self.sets[name]
        scores = {
            model: self.inputs.scores(self.graph.score(staged, name, self.digests[name]).key, data)
            for model, staged in final.items()
        }
        scores[ENSEMBLE] = ensemble.combine(scores)
        return Outcome(data, scores, evaluate_by_name(scores, data, self.recipe.measures))


def _versions() -> dict[str, str]:
    versions = {"rankinite": __version__, "Python": platform.python_version()}
    return versions | {name: version(name) for name in PACKAGES}


def _write_files(run: Run, store: Store) -> tuple[Path, ...]:
    """Write the files for people; return those to look at first.

    They are recorded in the store last: then the run is finished.
    """
    path, results = store.path, run.results
    files = [path / "models" / f"{name}.rk" for name in run.models]
    (path / "models").mkdir(exist_ok=True)
    for file, model in zip(files, run.models.values(), strict=True):
        model.save(file)
    run.ensemble.save(path / ENSEMBLE_FILE)
    evaluations = {HELD_OUT: results.selection.members}
    for name, outcome in results.outcomes.items():
        (path / "scores" / name).mkdir(parents=True, exist_ok=True)
        for model_name, scores in outcome.scores.items():
            files.append(path / "scores" / name / f"{model_name}.txt")
            save_scores(scores, outcome.data, files[-1])
        evaluations[name] = outcome.members
    for name, members in evaluations.items():
        files.append(path / "measures" / f"{name}.csv")
        write_text(files[-1], per_query_csv(members))
    written = (path / ENSEMBLE_FILE, *run.tables.save(path))
    # The report of an earlier recipe, and its pages, would contradict the new tables.
    for name in (REPORT, *explained_pages()):
        (path / name).unlink(missing_ok=True)
    store.record_finished([*files, *written], results.digests, results.versions)
    return written
