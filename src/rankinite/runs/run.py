"""The log of a run: all that is said while it lasts, with the time, in its folder."""

from __future__ import annotations

import logging
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from rankinite.core.progress import Progress, Silent
from rankinite.core.types import Floats
from rankinite.core.version import __version__
from rankinite.data.describe import describe
from rankinite.data.ranking_data import RankingData
from rankinite.data.scores import save_scores
from rankinite.ensembles.average import Average
from rankinite.ensembles.ensemble import Scaling, weighted_sum
from rankinite.ensembles.subsets import SubsetSearch, best_subset
from rankinite.evaluation.evaluate import Evaluation, evaluate_all
from rankinite.evaluation.summary import Summary
from rankinite.rankers.ranker import Ranker
from rankinite.report.page import report_html
from rankinite.runs.graph import Member, Plan
from rankinite.runs.inputs import Bench, bench_of
from rankinite.runs.prepare import prepare, with_top_grade
from rankinite.runs.recipe import (
    ALL,
    ENSEMBLE,
    EVERY,
    MOST_EXHAUSTIVE,
    NAMED,
    Recipe,
)
from rankinite.runs.recipe_reader import read_recipe
from rankinite.runs.results import Outcome, Results, Selection, averages_of, facts_of
from rankinite.runs.scheduler import carry_out, compile_kernels
from rankinite.runs.store import LOG, MODEL, REPORT, TRAIN, RunFolder, write_text
from rankinite.runs.tables import per_query_csv, tables_of
from rankinite.runs.tasks import read_spread
from rankinite.runs.workers import Workers, new_workers, opened

log = logging.getLogger("rankinite")


class _QuietHandler(logging.FileHandler):
    """A log that cannot be written is no reason to say more than the run itself does."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 logging's name
        """Say nothing."""

    def close(self) -> None:
        """Let go of the file, if its last lines can be written or not."""
        with suppress(OSError):
            super().close()


class _HandOn(logging.Handler):
    """Hands records on to the loggers above, which do not look at their level once more."""

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record on."""
        if log.parent is not None:
            log.parent.handle(record)


@contextmanager
def logged_to(folder: RunFolder) -> Iterator[None]:
    """Write log records to the folder; what others are shown of them stays as it was."""
    handler = _QuietHandler(folder.path / LOG, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    level, wanted, propagate = log.level, log.getEffectiveLevel(), log.propagate
    above = _HandOn(wanted)
    # Others go by the level of the logger: they get one of their own meanwhile.
    shown = [(other, other.level) for other in log.handlers]
    for other, _ in shown:
        other.setLevel(max(wanted, other.level))
    log.addHandler(handler)
    if propagate:
        log.addHandler(above)
    log.propagate = False
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.setLevel(level)
        log.propagate = propagate
        log.removeHandler(above)
        log.removeHandler(handler)
        handler.close()
        for other, before in shown:
            other.setLevel(before)


VALID, TEST = "valid", "test"
PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "joblib")


@dataclass(frozen=True)
class Run:
    """A run that has come to its end.

    Attributes
    ----------
    results
        All numbers.
    tables
        The tables of the recipe.
    ensemble
        The ensemble, which scores new data.
    written
        The files for people.
    """

    results: Results
    tables: Summary
    ensemble: Average
    written: tuple[Path, ...]


def run_recipe(
    recipe: Recipe | str | Path,
    train: RankingData,
    valid: RankingData | None = None,
    test: RankingData | None = None,
    *,
    out: str | Path,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Run:
    """Carry out a recipe in a folder; what is there already is not done again.

    Models are trained on some parts of the training queries and compared on the rest, which
    chooses those of the ensemble; these are trained again on all training queries (Ensemble,
    Sec. 4.3). Validation and test data are there to measure the final models: nothing is learned
    from them.

    Parameters
    ----------
    recipe
        What `read_recipe` gives, or takes: ``"winner-small"``, or a TOML file.
    train, valid, test
        The data sets; the last two may be missing.
    out
        The folder of the run. An interrupted run goes on in it, to the same bytes.
    jobs
        How many units are done at once on this machine; as many as there are cores if None.
    cluster
        The address of a Dask scheduler, or ``local:4``, instead.
    progress
        Who wants to know how far it is.
    """
    chosen = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    folder = RunFolder(out)
    given = {TRAIN: train, VALID: valid, TEST: test}
    sets = {name: with_top_grade(chosen, data) for name, data in given.items() if data is not None}
    watcher = progress or Silent()
    with folder.locked(), logged_to(folder), opened(new_workers(jobs, cluster)) as workers:
        begun = time.perf_counter()
        digests = prepare(chosen, sets, folder, watcher)
        # From now on the data are those that were written, as they are for all units.
        del train, valid, test, given, sets
        run = _Running(chosen, digests, folder, workers, watcher).go(begun)
        log.debug("done in %.1f s", time.perf_counter() - begun)
    return run


class _Running:
    def __init__(
        self,
        recipe: Recipe,
        digests: Mapping[str, str],
        folder: RunFolder,
        workers: Workers,
        progress: Progress,
    ) -> None:
        self.recipe = recipe
        self.digests = digests
        self.folder = folder
        self.workers = workers
        self.progress = progress
        self.plan = Plan(recipe, digests[TRAIN])
        self.bench: Bench = bench_of(folder)
        self.sets = {name: self.bench.data(name) for name in digests}
        self.seconds: dict[str, float] = {}

    def go(self, begun: float) -> Run:
        self._lap("preparation", begun)
        begun = time.perf_counter()
        selection = self._select()
        self._lap("first stage", begun)
        begun = time.perf_counter()
        members = self._retrain(selection)
        self._lap("final training", begun)
        begun = time.perf_counter()
        models = {name: self._model(member) for name, member in members.items()}
        ensemble = self._ensemble({name: members[name] for name in selection.chosen}, models)
        outcomes = {
            name: self._outcome(name, members, ensemble) for name in self.sets if name != TRAIN
        }
        self._lap("ensemble and measures", begun)
        results = Results(
            recipe=self.recipe,
            descriptions={name: describe(data) for name, data in self.sets.items()},
            selection=selection,
            outcomes=outcomes,
            facts=facts_of(self.plan, self.bench, members),
            seconds=self.seconds,
            versions=_versions(),
            digests=self.digests,
        )
        tables = tables_of(results)
        written = self._write(results, tables, models, ensemble)
        return Run(results, tables, ensemble, tuple(written))

    def _lap(self, name: str, begun: float) -> None:
        self.seconds[name] = time.perf_counter() - begun

    def _select(self) -> Selection:
        """Carry out the first stage, and choose the models of the ensemble."""
        units = self.plan.selection_scores()
        compile_kernels(units.values(), self.folder, self.workers, self.progress)
        carry_out(units.values(), self.folder, self.workers, self.progress, "first stage")
        data = self.plan.first.outside(self.sets[TRAIN])
        scores = {name: self.bench.scores(unit.key) for name, unit in units.items()}
        members = _evaluated(scores, data, self.recipe.measures)
        averages = averages_of(scores, self.recipe.subsets)
        search = self._search(scores, data)
        first = self.recipe.measures[0]
        return Selection(
            data=data,
            scores=scores,
            members=members,
            subsets=_evaluated(averages, data, self.recipe.measures),
            search=search,
            chosen=tuple(scores) if search is None else search.chosen,
            best_member=max(members, key=lambda name: members[name].mean[first]),
        )

    def _search(self, scores: Mapping[str, Floats], data: RankingData) -> SubsetSearch | None:
        recipe = self.recipe
        if recipe.choose == ALL or len(scores) < 2:
            return None
        return best_subset(
            scores,
            data,
            recipe.measures,
            candidates=list(recipe.subsets.values()) if recipe.choose == NAMED else None,
            most_exhaustive=MOST_EXHAUSTIVE if recipe.choose == EVERY else 1,
            level=recipe.level,
            seed=recipe.seed,
            progress=self.progress,
        )

    def _retrain(self, selection: Selection) -> dict[str, Member]:
        """Train the chosen models on all training queries, and the best one for comparison."""
        wanted = {*selection.chosen, selection.best_member}
        members = {
            name: self.plan.member(name, self.plan.final)
            for name in self.recipe.models
            if name in wanted
        }
        units = [self.plan.spread(member) for member in members.values()]
        units += [
            self.plan.score(member, name, digest)
            for member in members.values()
            for name, digest in self.digests.items()
            if name != TRAIN
        ]
        carry_out(units, self.folder, self.workers, self.progress, "final training")
        return members

    def _model(self, member: Member) -> Ranker:
        parts = member.parts
        return self.bench.member(parts.fits, parts.scorer, parts.scoring)

    def _ensemble(self, members: Mapping[str, Member], models: Mapping[str, Ranker]) -> Average:
        """Make the chosen models one, each on the scale of its scores for unseen queries."""
        spreads = [
            read_spread(self.bench, self.plan.spread(member).key) for member in members.values()
        ]
        means, scales = (np.array(column) for column in zip(*spreads, strict=True))
        return Average.from_members(
            {name: models[name] for name in members}, means=means, scales=scales
        )

    def _outcome(self, name: str, members: Mapping[str, Member], ensemble: Average) -> Outcome:
        data = self.sets[name]
        scores = {
            one: self.bench.scores(self.plan.score(member, name, self.digests[name]).key)
            for one, member in members.items()
        }
        chosen = np.stack([scores[one] for one in ensemble.member_names_])
        scaling = Scaling(ensemble.means_, ensemble.scales_)
        scaled = scaling.apply(ENSEMBLE, ensemble.member_names_, chosen)
        scores[ENSEMBLE] = weighted_sum(scaled, ensemble.weights_)
        return Outcome(data, scores, _evaluated(scores, data, self.recipe.measures))

    def _write(
        self,
        results: Results,
        tables: Summary,
        models: Mapping[str, Ranker],
        ensemble: Average,
    ) -> list[Path]:
        """Write what people look for; the report, which tells of all else, comes last."""
        path = self.folder.path
        made = [path / "models" / f"{name}.rk" for name in models]
        (path / "models").mkdir(exist_ok=True)
        for file, model in zip(made, models.values(), strict=True):
            model.save(file)
        ensemble.save(path / MODEL)
        measured = {"held-out": results.selection.members}
        for name, outcome in results.outcomes.items():
            (path / "scores" / name).mkdir(parents=True, exist_ok=True)
            for one, scores in outcome.scores.items():
                made.append(path / "scores" / name / f"{one}.txt")
                save_scores(scores, outcome.data, made[-1])
            measured[name] = outcome.members
        for name, members in measured.items():
            made.append(path / "measures" / f"{name}.csv")
            write_text(made[-1], per_query_csv(members))
        written = [path / MODEL, *tables.save(path), path / REPORT]
        self.folder.keep_files([*made, *written])
        write_text(path / REPORT, report_html(results))
        return written


def _evaluated(
    scores: Mapping[str, Floats], data: RankingData, measures: tuple[str, ...]
) -> dict[str, Evaluation]:
    found = evaluate_all(list(scores.values()), data, measures, drop_single_label=False)
    return dict(zip(scores, found, strict=True))


def _versions() -> dict[str, str]:
    found = {"rankinite": __version__, "Python": platform.python_version()}
    return found | {name: version(name) for name in PACKAGES}
