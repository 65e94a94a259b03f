"""Everything that uses Optuna: which parameters to try next, and the file that keeps trials.

The file holds finished trials alone. What a batch tries follows from the seed and the batches
before it, so that a sweep that was killed tries the same again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rankinite.core.checksums import CHECKSUM
from rankinite.core.errors import MissingExtraError
from rankinite.core.random import child_seed, generator
from rankinite.runs.store import DamageError
from rankinite.sweeps.space import Choice, Domain, Range, Space, Steps, n_points, points_of
from rankinite.sweeps.trials import FoldResult, Trial

log = logging.getLogger("rankinite")

TPE, GRID, RANDOM = "tpe", "grid", "random"
SEARCHES = (TPE, GRID, RANDOM)

NAME = "sweep"
JOURNAL = "optuna.log"
# What Optuna makes beside it while it writes, and renames before it removes it.
LOCKS = re.compile(r"\.lock([0-9a-f-]{36}\.rename)?")
# Number of proposals of a sampler in which at least one must be new.
MOST_PROPOSALS = 20
FEWEST_FOR_IMPORTANCE = 8  # trials; shares of fewer are noise
# Significant digits of numbers from a range: more make no difference, and people read recipes.
DIGITS = 4


def import_optuna() -> Any:
    """Return the module, if it is installed."""
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", "sweep") from None
    return optuna


@contextmanager
def quietly() -> Iterator[None]:
    """Keep Optuna from logging."""
    logging = import_optuna().logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def next_batch(
    space: Space, search: str, seed: int, earlier: Sequence[Trial], batch: int, size: int
) -> list[dict[str, Any]]:
    """Return the parameters that a batch tries, none of which was tried before.

    There are fewer than ``size`` if nothing else is left.

    Parameters
    ----------
    space
        Parameters and their values.
    search
        One of `SEARCHES`.
    seed
        Seed of the sweep.
    earlier
        Trials of all earlier batches.
    batch, size
        Number of the batch, counted from 0, and number of its trials.
    """
    if search == GRID:
        # In random order, so that a sweep with fewer trials than points still covers the grid.
        grid = list(points_of(space))
        order = generator(seed, "grid").permutation(len(grid)).tolist()
        return [grid[k] for k in order[len(earlier) : len(earlier) + size]]
    return list(itertools.islice(_proposals(space, search, seed, earlier, batch), size))


def _proposals(
    space: Space, search: str, seed: int, earlier: Sequence[Trial], batch: int
) -> Iterator[dict[str, Any]]:
    """Yield points that were not tried, each once, as long as there are any.

    The sampler is made anew for every batch, with a seed of its number and the trials before it. So
    a resumed sweep proposes what an uninterrupted one would, without a sampler's state on disk.
    """
    stream = (seed, "batch", batch)
    sampler = _sampler(search, int(child_seed(*stream).generate_state(1)[0]))
    study = _in_memory(space, earlier, sampler)
    tried = {_key(trial.parameters) for trial in earlier}
    total = n_points(space)
    while len(tried) < total:
        point = _ask(study, space, tried)
        if point is None:
            # Samplers return to good points again and again: take any other one, if they can be
            # listed.
            if math.isinf(total):
                return
            left = [other for other in points_of(space) if _key(other) not in tried]
            point = left[int(generator(*stream, len(tried)).integers(len(left)))]
        tried.add(_key(point))
        yield point


def _ask(study: Any, space: Space, tried: Set[str]) -> dict[str, Any] | None:
    """Return a proposal of the sampler that was not tried; None if it has none."""
    failed = import_optuna().trial.TrialState.FAIL
    distributions = _distributions(space)
    for _ in range(MOST_PROPOSALS):
        trial = study.ask(distributions)
        point = {name: _exact(domain, trial.params[name]) for name, domain in space.items()}
        if _key(point) not in tried:
            return point
        # Told as failed, it takes no part in later proposals; untold, TPE would count it as running
        # and keep away from it (constant liar).
        study.tell(trial, state=failed)
    return None


def _key(parameters: Mapping[str, Any]) -> str:
    # A text, as values may be lists, which have no hash.
    return repr(sorted(parameters.items()))


def _for_optuna(value: Any) -> Any:
    """Return a value that Optuna can store: it has no lists."""
    return json.dumps(value) if isinstance(value, list) else value


def _exact(domain: Domain, value: Any) -> Any:
    """Return the value as a person would write it: exactly one of the steps, or few digits."""
    if isinstance(domain, Choice):
        return next((item for item in domain.values if _for_optuna(item) == value), value)
    if isinstance(domain, Steps):
        return min(domain.values, key=lambda known: abs(known - value))
    if isinstance(domain, Range) and not domain.whole:
        return min(max(float(f"{value:.{DIGITS}g}"), domain.low), domain.high)
    return value


def _sampler(search: str, seed: int) -> Any:
    samplers = import_optuna().samplers
    if search == RANDOM:
        return samplers.RandomSampler(seed=seed)
    with warnings.catch_warnings():
        # Before Optuna 5 both arguments were experimental.
        warnings.simplefilter("ignore", import_optuna().exceptions.ExperimentalWarning)
        # The proposals of a batch are made before any of its results is known: without the constant
        # liar they would lie close together.
        return samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)


def _in_memory(space: Space, trials: Sequence[Trial], sampler: Any = None) -> Any:
    study = import_optuna().create_study(direction="maximize", sampler=sampler)
    study.add_trials([_frozen(trial, space) for trial in trials])
    return study


def _distributions(space: Space) -> dict[str, Any]:
    return {name: _distribution(domain) for name, domain in space.items()}


def _distribution(domain: Domain) -> Any:
    kinds = import_optuna().distributions
    if isinstance(domain, Choice):
        return kinds.CategoricalDistribution([_for_optuna(item) for item in domain.values])
    kind = kinds.IntDistribution if domain.whole else kinds.FloatDistribution
    if isinstance(domain, Range):
        return kind(domain.low, domain.high, log=domain.is_log)
    # Optuna warns if the highest value is not one of the steps.
    return kind(domain.low, domain.values[-1], step=domain.step)


def _frozen(trial: Trial, space: Space) -> Any:
    """Return a trial in Optuna's form."""
    optuna = import_optuna()
    states = optuna.trial.TrialState
    return optuna.trial.create_trial(
        state=states.PRUNED if trial.is_pruned else states.COMPLETE,
        value=trial.value,
        params={name: _for_optuna(value) for name, value in trial.parameters.items()},
        distributions=_distributions(space),
        intermediate_values=dict(trial.best_so_far),
        user_attrs={
            "folds": [asdict(fold) for fold in trial.folds],
            "standard_error": trial.standard_error,
        },
    )


def _thawed(frozen: Any, space: Space) -> Trial:
    """Return a trial from Optuna's form of it."""
    return Trial(
        frozen.number,
        {name: _exact(domain, frozen.params[name]) for name, domain in space.items()},
        tuple(
            FoldResult(**{**fold, "curve": tuple(map(tuple, fold["curve"]))})
            for fold in frozen.user_attrs["folds"]
        ),
        {int(number): value for number, value in sorted(frozen.intermediate_values.items())},
        frozen.state == import_optuna().trial.TrialState.PRUNED,
    )


def open_journal(
    folder: Path, space: Space, sweep: str, *, renew: bool
) -> tuple[Journal, list[Trial]]:
    """Open the journal of a sweep, and return it with its trials.

    Parameters
    ----------
    folder, space, sweep
        As in `Journal`.
    renew
        Whether to begin a damaged journal anew: its trials follow from finished trainings, and are
        added again.
    """
    try:
        journal = Journal(folder, space, sweep)
        return journal, journal.trials()
    except DamageError as damage:
        if not renew:
            raise
        log.warning("%s; it is made anew", damage.problem)
        (folder / JOURNAL).unlink()
        return Journal(folder, space, sweep), []


class Journal:
    """The file of a sweep's trials, which Optuna's own tools can read.

    The process that opens it must hold the lock of the folder.

    Parameters
    ----------
    folder
        The folder of the sweep.
    space
        The swept parameters and their values.
    sweep
        Hash of all that the trials depend on.
    """

    def __init__(self, folder: Path, space: Space, sweep: str) -> None:
        optuna = import_optuna()
        self.space = space
        self.sweep = sweep
        self.path = path = folder / JOURNAL
        # A record after half a line would be lost with it, and Optuna would wait for the lock of a
        # process that is dead.
        _repair(path)
        try:
            backend = optuna.storages.journal.JournalFileBackend(str(path))
            self.study = optuna.create_study(
                storage=optuna.storages.JournalStorage(backend),
                study_name=NAME,
                direction="maximize",
                load_if_exists=True,
            )
        # Optuna does not check what it reads: any exception may come of a damaged line.
        except Exception as problem:
            raise DamageError(f"{path}: is damaged: {problem}") from None

    def trials(self) -> list[Trial]:
        """Return all trials, in the order of their numbers."""
        try:
            frozen = self.study.get_trials(deepcopy=False)
            trials = [_thawed(trial, self.space) for trial in frozen]
            is_damaged = not all(map(self._is_sound, trials, frozen))
        except Exception as problem:
            raise DamageError(f"{self.path}: is damaged: {problem!r}") from None
        if is_damaged:
            raise DamageError(f"{self.path}: the checksum of a trial does not fit it")
        return trials

    def _is_sound(self, trial: Trial, frozen: Any) -> bool:
        # What Optuna's tools read besides has to be the same.
        shown, expected = (
            (other.value, other.distributions, other.intermediate_values)
            for other in (frozen, _frozen(trial, self.space))
        )
        return frozen.user_attrs[CHECKSUM] == self._digest_of(trial) and bool(shown == expected)

    def add(self, trial: Trial) -> None:
        """Add a trial, as one line of the file: it is there whole or not at all."""
        frozen = _frozen(trial, self.space)
        frozen.set_user_attr(CHECKSUM, self._digest_of(trial))
        self.study.add_trial(frozen)

    def _digest_of(self, trial: Trial) -> str:
        """Return a hash of a trial and of what it depends on, its number among that."""
        text = json.dumps([self.sweep, asdict(trial)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _repair(path: Path) -> None:
    """Remove what a process that was killed while writing has left: half a line, and its lock."""
    # No other process can hold Optuna's lock: it would have to hold that of the folder.
    for lock in path.parent.glob(f"{path.name}.lock*"):
        if LOCKS.fullmatch(lock.name.removeprefix(path.name)):
            lock.unlink(missing_ok=True)
    if not path.exists():
        return
    with path.open("r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def importances(space: Space, trials: Sequence[Trial], seed: int) -> dict[str, float] | None:
    """Return the share of each parameter in the variance of values (fANOVA), the largest first.

    None if there are too few trials to tell, a single parameter, or no differences.
    """
    complete = [trial for trial in trials if not trial.is_pruned]
    values = {trial.value for trial in complete}
    if len(complete) < FEWEST_FOR_IMPORTANCE or len(space) < 2 or len(values) < 2:
        return None
    tools = import_optuna().importance
    evaluator = tools.FanovaImportanceEvaluator(
        seed=int(child_seed(seed, "importance").generate_state(1)[0])
    )
    shares = tools.get_param_importances(_in_memory(space, complete), evaluator=evaluator)
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return {name: float(share) for name, share in ordered}
