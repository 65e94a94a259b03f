"""All that is Optuna's: which parameters to try next, and the file that keeps trials.

A file holds trials that have come to their end, and nothing else: what a batch is to try follows
from the seed and the batches before it, so that a sweep that was killed asks the same again.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rankinite.core.errors import DataError, MissingExtraError
from rankinite.core.random import child_seed, generator
from rankinite.sweeps.space import (
    Choice,
    Domain,
    Range,
    Space,
    Steps,
    n_points,
    points_of,
)
from rankinite.sweeps.trials import Fold, Trial

TPE, GRID, RANDOM = "tpe", "grid", "random"
SEARCHES = (TPE, GRID, RANDOM)

NAME = "sweep"
JOURNAL = "optuna.log"
# How often a sampler may propose what was tried before.
MOST_PROPOSALS = 20
FEWEST_FOR_IMPORTANCE = 8
# Of numbers of a range: more make no difference, and a recipe is to be read.
DIGITS = 4


def the_optuna() -> Any:
    """Return the module, if it is installed."""
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", "sweep") from None
    return optuna


@contextmanager
def quietly() -> Iterator[None]:
    """Keep Optuna from logging."""
    logging = the_optuna().logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def asked(
    space: Space, search: str, seed: int, earlier: Sequence[Trial], batch: int, size: int
) -> list[dict[str, Any]]:
    """Return what a batch tries: parameters that were not tried before.

    There are fewer than asked for where nothing else is left.

    Parameters
    ----------
    space
        What can be tried.
    search
        One of `SEARCHES`.
    seed
        Of the sweep.
    earlier
        The trials of all batches before.
    batch, size
        Which batch it is, counted from 0, and how many trials it has.
    """
    if search == GRID:
        points = list(points_of(space))
        order = generator(seed, "grid").permutation(len(points)).tolist()
        return [points[k] for k in order[len(earlier) : len(earlier) + size]]
    proposals = _Proposals(space, search, seed, earlier, batch)
    found: list[dict[str, Any]] = []
    while len(found) < size:
        proposed = proposals.another()
        if proposed is None:
            break
        found.append(proposed)
    return found


class _Proposals:
    """What a sampler proposes for a batch, each once."""

    def __init__(
        self, space: Space, search: str, seed: int, earlier: Sequence[Trial], batch: int
    ) -> None:
        self.space = space
        self.seed = (seed, "batch", batch)
        self.n_points = n_points(space)
        self.tried = {_key(trial.parameters) for trial in earlier}
        sampler = _sampler(search, int(child_seed(*self.seed).generate_state(1)[0]))
        self.study = _in_memory(space, earlier, sampler)
        self.distributions = _distributions(space)

    def another(self) -> dict[str, Any] | None:
        if len(self.tried) >= self.n_points:
            return None
        failed = the_optuna().trial.TrialState.FAIL
        for _ in range(MOST_PROPOSALS):
            trial = self.study.ask(self.distributions)
            proposed = {name: _exact(one, trial.params[name]) for name, one in self.space.items()}
            if self._is_new(proposed):
                return proposed
            self.study.tell(trial, state=failed)
        return self._left_over()

    def _is_new(self, proposed: Mapping[str, Any]) -> bool:
        key = _key(proposed)
        if key in self.tried:
            return False
        self.tried.add(key)
        return True

    def _left_over(self) -> dict[str, Any] | None:
        """Return any point that was not tried, of a space with values alone."""
        if math.isinf(self.n_points):
            return None
        left = [point for point in points_of(self.space) if _key(point) not in self.tried]
        chosen = left[int(generator(*self.seed, len(self.tried)).integers(len(left)))]
        self.tried.add(_key(chosen))
        return chosen


def _key(parameters: Mapping[str, Any]) -> str:
    return repr(sorted(parameters.items()))


def _for_optuna(value: Any) -> Any:
    """Return a value that Optuna can keep: it has no lists."""
    return json.dumps(value) if isinstance(value, list) else value


def _exact(domain: Domain, value: Any) -> Any:
    """Return the value as a person would write it: one of the steps, or with a few digits."""
    if isinstance(domain, Choice):
        return next((one for one in domain.values if _for_optuna(one) == value), value)
    if isinstance(domain, Steps):
        return min(domain.values, key=lambda known: abs(known - value))
    if isinstance(domain, Range) and not domain.whole:
        return min(max(float(f"{value:.{DIGITS}g}"), domain.low), domain.high)
    return value


def _sampler(search: str, seed: int) -> Any:
    samplers = the_optuna().samplers
    if search == RANDOM:
        return samplers.RandomSampler(seed=seed)
    with warnings.catch_warnings():
        # Before Optuna 5 both arguments were experimental.
        warnings.simplefilter("ignore", the_optuna().exceptions.ExperimentalWarning)
        return samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)


def _in_memory(space: Space, trials: Sequence[Trial], sampler: Any = None) -> Any:
    study = the_optuna().create_study(direction="maximize", sampler=sampler)
    study.add_trials([_frozen(trial, space) for trial in trials])
    return study


def _distributions(space: Space) -> dict[str, Any]:
    return {name: _distribution(domain) for name, domain in space.items()}


def _distribution(domain: Domain) -> Any:
    kinds = the_optuna().distributions
    if isinstance(domain, Range):
        kind = kinds.IntDistribution if domain.whole else kinds.FloatDistribution
        return kind(domain.low, domain.high, log=domain.is_log)
    if isinstance(domain, Steps):
        kind = kinds.IntDistribution if domain.whole else kinds.FloatDistribution
        return kind(domain.low, domain.values[-1], step=domain.step)
    return kinds.CategoricalDistribution([_for_optuna(one) for one in domain.values])


def _frozen(trial: Trial, space: Space) -> Any:
    """Return a trial as Optuna has it."""
    optuna = the_optuna()
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


def _thawed(found: Any, space: Space) -> Trial:
    """Return a trial from what Optuna has kept of it."""
    return Trial(
        found.number,
        {name: _exact(domain, found.params[name]) for name, domain in space.items()},
        _folds(found.user_attrs["folds"]),
        {int(number): value for number, value in sorted(found.intermediate_values.items())},
        found.state == the_optuna().trial.TrialState.PRUNED,
    )


def _folds(found: Sequence[Mapping[str, Any]]) -> tuple[Fold, ...]:
    return tuple(
        Fold(
            one["value"], one["kept"], one["n_rounds"], tuple((int(r), v) for r, v in one["curve"])
        )
        for one in found
    )


class Journal:
    """The file of a sweep's trials, which Optuna's own tools read as well.

    Whoever opens it holds the lock of the folder.

    Parameters
    ----------
    folder
        The folder of the sweep.
    space
        What is tried.
    """

    def __init__(self, folder: Path, space: Space) -> None:
        optuna = the_optuna()
        self.space = space
        path = folder / JOURNAL
        _mend(path)
        backend = optuna.storages.journal.JournalFileBackend(str(path))
        try:
            self.study = optuna.create_study(
                storage=optuna.storages.JournalStorage(backend),
                study_name=NAME,
                direction="maximize",
                load_if_exists=True,
            )
        except (ValueError, KeyError) as problem:
            raise DataError(f"{path}: is damaged: {problem}; name another folder") from None

    def trials(self) -> list[Trial]:
        """Return the trials that are there, in the order of their numbers."""
        return [_thawed(one, self.space) for one in self.study.get_trials(deepcopy=False)]

    def add(self, trial: Trial) -> None:
        """Add a trial, in one line of the file."""
        self.study.add_trial(_frozen(trial, self.space))


def _mend(path: Path) -> None:
    """Remove what a process left that was killed while it wrote: half a line, and its lock."""
    for lock in path.parent.glob(f"{path.name}.lock*"):
        lock.unlink(missing_ok=True)
    if not path.exists():
        return
    with path.open("r+b") as file:
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)


def importances(space: Space, trials: Sequence[Trial], seed: int) -> dict[str, float] | None:
    """Return the share of each parameter in how values vary (fANOVA), the largest first.

    None if there are too few trials to tell, a single parameter, or no differences.
    """
    whole = [trial for trial in trials if not trial.is_pruned]
    values = {trial.value for trial in whole}
    if len(whole) < FEWEST_FOR_IMPORTANCE or len(space) < 2 or len(values) < 2:
        return None
    tools = the_optuna().importance
    judge = tools.FanovaImportanceEvaluator(
        seed=int(child_seed(seed, "importance").generate_state(1)[0])
    )
    found = tools.get_param_importances(_in_memory(space, whole), evaluator=judge)
    return {name: float(share) for name, share in sorted(found.items(), key=lambda one: -one[1])}
