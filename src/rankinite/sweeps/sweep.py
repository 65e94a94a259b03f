"""A sweep: parameters tried batch by batch, each by cross-validation over queries."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.core.format import some_of
from rankinite.core.params import OneOf, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.random import child_seed
from rankinite.data.memmap import fingerprint
from rankinite.data.ranking_data import RankingData
from rankinite.measures.text import parse_measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.models import RANKERS
from rankinite.runs.folds import Cut
from rankinite.runs.folds import Fold as CutFold
from rankinite.runs.graph import Plan, cost_of
from rankinite.runs.prepare import (
    numbers_of_bins,
    refuse_samples,
    share,
    with_top_grade,
)
from rankinite.runs.recipe import ORIGINAL, Model, Recipe
from rankinite.runs.recipe_reader import read_recipe
from rankinite.runs.run import logged_to
from rankinite.runs.scheduler import carry_out, compile_kernels
from rankinite.runs.store import TRAIN, RunFolder
from rankinite.runs.tasks import Unit
from rankinite.runs.workers import Workers, new_workers, opened
from rankinite.sweeps.best_recipe import with_parameters
from rankinite.sweeps.results import Sweep, write_results
from rankinite.sweeps.settings import Settings, check_settings
from rankinite.sweeps.space import (
    Domain,
    Range,
    extremes_of,
    n_points,
    papers_space,
    refuse_ranges,
    space_of,
)
from rankinite.sweeps.study import (
    GRID,
    SEARCHES,
    TPE,
    Journal,
    asked,
    importances,
    quietly,
)
from rankinite.sweeps.tasks import SweepFit, read_curve
from rankinite.sweeps.trials import (
    OWN_NUMBER,
    Fold,
    Trial,
    best_of,
    best_so_far,
    floors_of,
    looks,
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
    progress: Progress | None = None,
) -> Sweep:
    """Look for the parameters of a recipe's model that do best in cross-validation by query.

    The same sweep gives the same trials on any number of workers, and after an interruption: it
    goes on in its folder.

    Parameters
    ----------
    recipe, model
        What `read_recipe` gives, or takes: ``"winner-small"``, or a TOML file; and the name of one
        of its models.
    train
        The training data.
    out
        The folder of the sweep.
    space
        By parameter, what to try: a list of values, ``"50:400:30"`` for evenly spaced ones, or
        ``"1e-4..1e-2"`` for a range, which is searched on a log scale if its ends are a factor of
        100 or more apart. If None, what the paper tried (Ensemble, Sec. 4.2).
    trials
        How many parameters to try; 30 if None, or all of a grid.
    search
        ``"tpe"``, which learns from earlier trials; ``"random"``; or ``"grid"``, in random order.
    folds
        The queries are cut into so many folds; for each, a model is trained on the others.
    measure
        What decides; the recipe's first measure if None.
    pruning
        Whether a trial is given up after its first fold's learning curve falls behind the median
        of earlier trials.
    batch
        So many trials are begun together: none of them can learn from another.
    seed
        Of folds, trainings and search; that of the recipe if None.
    jobs, cluster
        How many models are trained at once on this machine; or the address of a Dask scheduler,
        or ``local:4``.
    progress
        Who wants to know how far it is.
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
    folder = RunFolder(out)
    watcher = progress or Silent()
    with quietly(), folder.locked(), logged_to(folder):
        check_settings(folder, settings)
        with opened(new_workers(jobs, cluster)) as workers:
            share({TRAIN: data}, _bins(settings), folder, watcher, {TRAIN: settings.data})
            # From now on the data are those that were written, as they are for all units.
            del train, data
            sweeping = _Sweeping(settings, folder, workers, watcher)
            found = tuple(sweeping.go(wanted))
            own = sweeping.own()
        shares = importances(domains, found, settings.seed)
        return write_results(Sweep(settings, found, own, shares), folder)


def _check_data(train: RankingData, folds: int) -> None:
    refuse_samples(TRAIN, train)
    if train.n_queries < folds:
        raise UsageError(
            f"sweep: {train.n_queries} queries cannot be cut into {folds} folds; ask for fewer"
        )


def check_sweep(
    recipe: Recipe,
    model: str,
    *,
    space: Mapping[str, str | Sequence[Any]] | None,
    search: str,
    measure: str | None,
) -> tuple[Model, dict[str, Domain], str]:
    """Check what can be checked without data; return the model, what to try, and the measure.

    Parameters are those of `run_sweep`.
    """
    check("sweep", "search", search, OneOf(SEARCHES))
    chosen = _model_of(recipe, model)
    domains = space_of(chosen, papers_space(chosen.ranker, search) if space is None else space)
    if search == GRID:
        refuse_ranges(domains)
    if isinstance(domains.get("most_bins"), Range):
        raise UsageError("sweep: most_bins needs values, such as most_bins=64,255, and no range")
    for name, domain in domains.items():  # what cannot be written into a recipe is of no use
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


def _measure_of(recipe: Recipe, given: str | None) -> str:
    if given is None:
        return recipe.measures[0]
    measure = parse_measure(given)
    if isinstance(measure, TieredMeasure):
        raise UsageError(f"sweep: {given!r} is several measures; give one, such as NDCG@10")
    return str(measure)


def _n_trials(given: int | None, search: str, points: float) -> int:
    """Return how many trials there are: not more than there are points."""
    default = points if search == GRID else DEFAULT_TRIALS
    return int(min(default if given is None else given, points))


def _bins(settings: Settings) -> list[int]:
    """Return the numbers of bins that trainings ask for, those that make features among them."""
    swept = settings.space.get("most_bins")
    values = () if swept is None else swept.values or ()
    models = [(one.ranker, one.parameters) for one in (settings.model, *settings.scorers)]
    models += [(settings.model.ranker, {"most_bins": value}) for value in values]
    return numbers_of_bins(models)


@dataclass(frozen=True)
class _Begun:
    """A trial under way: its number, its parameters, and the training of its first fold."""

    number: int
    parameters: Mapping[str, Any]
    first: Unit


class _Sweeping:
    def __init__(
        self, settings: Settings, folder: RunFolder, workers: Workers, progress: Progress
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.workers = workers
        self.progress = progress
        plan = Plan(settings.recipe, settings.data)
        # All queries; how they are cut depends on the seed of the sweep.
        self.stage = replace(plan.final, seed=settings.seed)
        # Made of models that have seen no label of the document's own query, as in a run.
        self.features = plan.member(settings.model.name, plan.final).features
        self.looks = looks(max(self._most_rounds()))
        self.journal = Journal(folder.path, settings.space)
        self.trials = self.journal.trials()

    def _most_rounds(self) -> Iterator[int]:
        """Go through how many rounds trainings can have."""
        model, space = self.settings.model, self.settings.space
        varied: list[dict[str, Any]] = [{}]
        for name in ("n_trees", "n_epochs", "optimiser"):
            domain = space.get(name)
            if domain is not None:
                values = (domain.high,) if isinstance(domain, Range) else domain.values
                varied = [{**one, name: value} for one in varied for value in values]
        for one in varied:
            ranker = RANKERS[model.ranker](**{**model.parameters, **one})
            yield ranker.max_rounds

    def go(self, wanted: int) -> list[Trial]:
        """Carry out trials until there are as many as wanted, or nothing is left to try."""
        settings = self.settings
        while len(self.trials) < wanted:
            batch = len(self.trials) // settings.batch
            earlier = self.trials[: batch * settings.batch]
            size = min(settings.batch, wanted - len(earlier))
            points = asked(
                settings.space, settings.search, settings.seed, earlier, batch, size
            )[len(self.trials) - len(earlier) :]  # fmt: skip
            if not points:
                log.info("after %d trials there is nothing else to try", len(self.trials))
                break
            for trial in self._carried_out(points, earlier, wanted):
                self.journal.add(trial)
                self.trials.append(trial)
                log.debug("trial %d: %s %.4f", trial.number, settings.measure, trial.value)
        return self.trials

    def own(self) -> Trial:
        """Return how the recipe's own parameters do, never pruned."""
        settings = self.settings
        parameters = {name: settings.model.parameters[name] for name in settings.space}
        begun = _Begun(OWN_NUMBER, parameters, self._unit(OWN_NUMBER, parameters, 0, {}))
        # Units that are there are not done again; of a recipe that was changed they are others.
        self._do([begun.first, *self._others(begun)], "the recipe's own parameters")
        return self._trial(begun)

    def _carried_out(
        self, points: Sequence[Mapping[str, Any]], earlier: Sequence[Trial], wanted: int
    ) -> Iterator[Trial]:
        """Train the first fold of every trial, and the others of those that are not pruned."""
        floors = floors_of(earlier, self.looks) if self.settings.pruning else {}
        first = len(self.trials)
        begun = [
            _Begun(number, point, self._unit(number, point, 0, floors))
            for number, point in enumerate(points, first)
        ]
        title = f"trials {first} to {begun[-1].number} of {wanted}"
        if earlier:
            title += f", best {best_of(earlier).value:.4f}"
        else:
            compile_kernels([begun[0].first], self.folder, self.workers, self.progress)
        self._do([one.first for one in begun], f"{title}, first fold")
        going_on = [one for one in begun if not read_curve(self.folder, one.first).is_pruned]
        self._do([unit for one in going_on for unit in self._others(one)], f"{title}, other folds")
        for one in begun:
            yield self._trial(one)

    def _do(self, units: Sequence[Unit], title: str) -> None:
        carry_out(units, self.folder, self.workers, self.progress, title)

    def _others(self, begun: _Begun) -> list[Unit]:
        return [
            self._unit(begun.number, begun.parameters, fold, {})
            for fold in range(1, self.settings.folds)
        ]

    def _unit(
        self, number: int, point: Mapping[str, Any], fold: int, floors: Mapping[int, float]
    ) -> Unit:
        settings, model = self.settings, self.settings.model
        # The same for all trials: what differs between them are parameters alone.
        seed = child_seed(settings.seed, "sweep", model.name, "fold", fold)
        recipe = settings.recipe
        parameters = {**model.parameters, **point}
        samples = recipe.training_sets[model.train] if model.train != ORIGINAL else None
        work = SweepFit(
            ranker=model.ranker,
            parameters={**parameters, "random_state": int(seed.generate_state(1)[0])},
            measures=(settings.measure,),
            cut=Cut(self.stage, CutFold(fold, settings.folds)),
            samples=samples,
            features=None if self.features is None else self.features.key,
            data=settings.data,
            floors=tuple(sorted(floors.items())),
        )
        needs = () if self.features is None else (self.features,)
        cost = cost_of(replace(model, parameters=parameters), samples, self.stage)
        name = "own parameters" if number == OWN_NUMBER else f"trial {number}"
        return Unit(f"{name}, fold {fold + 1} of {settings.folds}", work, needs, cost)

    def _trial(self, begun: _Begun) -> Trial:
        curves = [read_curve(self.folder, begun.first)]
        if not curves[0].is_pruned:
            curves += [read_curve(self.folder, unit) for unit in self._others(begun)]
        first = curves[0]
        seen = [r for r in self.looks if not first.is_pruned or r <= len(first.values)]
        return Trial(
            begun.number,
            dict(begun.parameters),
            tuple(
                Fold(one.value, one.kept, len(one.values), some_points(one.values))
                for one in curves
            ),
            best_so_far(first.values, seen),
            first.is_pruned,
        )
