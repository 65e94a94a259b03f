"""Trials of a sweep: their trainings, their results in every fold, and when they are pruned."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankinite.core.errors import DataError
from rankinite.rankers.callbacks import Round
from rankinite.runs.inputs import TaskInputs
from rankinite.runs.store import CURVE, DamageError, Store, write_json
from rankinite.runs.tasks import Fit, Task, TaskSummary

# Points of a learning curve that are kept, evenly spaced: no chart can show more.
MOST_POINTS = 60


@dataclass(frozen=True)
class FoldResult:
    """The result of a training on the fold that was held out.

    Attributes
    ----------
    value
        The measure after the best round; of a pruned training, the best so far.
    kept, n_rounds
        The best round, and the number of rounds.
    curve
        Some of the rounds, counted from 1, with the measure after each.
    """

    value: float
    kept: int
    n_rounds: int
    curve: tuple[tuple[int, float], ...]


# Number of the trial with the recipe's own parameters, which Optuna does not know.
BASELINE = -1


@dataclass(frozen=True)
class Trial:
    """Parameters that were tried, and their results.

    Attributes
    ----------
    number
        Number, counted from 0 as in Optuna.
    parameters
        Values of the swept parameters.
    folds
        The result in every fold; in the first alone if the trial was pruned.
    best_so_far
        Best value of the first fold's learning curve up to some rounds; other trials are pruned by
        it.
    is_pruned
        Whether it was stopped because the first fold's training had fallen behind.
    """

    number: int
    parameters: Mapping[str, Any]
    folds: tuple[FoldResult, ...]
    best_so_far: Mapping[int, float]
    is_pruned: bool

    @property
    def value(self) -> float:
        """The mean over folds; of a pruned trial, the best of its one curve."""
        return statistics.fmean(fold.value for fold in self.folds)

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean over folds; None with one fold."""
        values = [fold.value for fold in self.folds]
        if len(values) < 2:
            return None
        return statistics.stdev(values) / math.sqrt(len(values))


def best_of(trials: Sequence[Trial]) -> Trial:
    """Return the unpruned trial with the largest mean; the first of several."""
    return max((trial for trial in trials if not trial.is_pruned), key=lambda trial: trial.value)


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Return trials from the best to the worst, pruned trials last."""
    return sorted(trials, key=lambda trial: (trial.is_pruned, -trial.value, trial.number))


def some_points(curve: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """Return some points of a learning curve, the first and the last among them.

    >>> some_points([0.25, 0.5])
    ((1, 0.25), (2, 0.5))
    """
    n = len(curve)
    count = min(n, MOST_POINTS)
    picked = sorted({round(k * (n - 1) / max(count - 1, 1)) for k in range(count)})
    return tuple((k + 1, float(curve[k])) for k in picked)


# Trainings are compared after 4/12 of all rounds, 5/12 and so on. Small learning rates begin
# slowly, so none is pruned in the first third.
PARTS = 12
FIRST_PART = 4
# Number of finished trials before others are compared with them: a median of fewer is noise.
FEWEST = 4


def pruning_rounds(most_rounds: int) -> tuple[int, ...]:
    """Return the rounds after which trainings are compared.

    >>> pruning_rounds(24), pruning_rounds(3)
    ((8, 10, 12, 14, 16, 18, 20, 22), (1, 2))
    """
    rounds = (most_rounds * part // PARTS for part in range(FIRST_PART, PARTS))
    return tuple(sorted({number for number in rounds if number >= 1}))


def best_so_far(curve: Sequence[float], rounds: Sequence[int]) -> dict[int, float]:
    """Return the best value up to each of the rounds; that of all if a training ended before.

    >>> best_so_far([0.25, 0.75, 0.5], [1, 3, 5])
    {1: 0.25, 3: 0.75, 5: 0.75}
    """
    return {number: float(max(curve[:number])) for number in rounds}


def floors_of(earlier: Sequence[Trial], rounds: Sequence[int]) -> dict[int, float]:
    """Return by round the value that trainings must have reached; none while trials are few.

    Parameters
    ----------
    earlier
        The trials of earlier batches.
    rounds
        The rounds of `pruning_rounds`.
    """
    # The rule of Optuna's median pruner. Here the floors are fixed before a batch starts, so that
    # trials are pruned alike whatever the order in which workers finish.
    complete = [trial for trial in earlier if not trial.is_pruned]
    if len(complete) < FEWEST:
        return {}
    return {r: statistics.median(trial.best_so_far[r] for trial in complete) for r in rounds}


def pruned_after(curve: Sequence[float], floors: Mapping[int, float]) -> int | None:
    """Return the first round after which a training was behind; None if it never was.

    A training that ended before a round is not compared there.

    >>> pruned_after([0.1, 0.2, 0.3], {2: 0.25, 3: 0.3, 9: 1.0})
    2
    """
    reached = (r for r in sorted(floors) if r <= len(curve))
    return next((r for r in reached if max(curve[:r]) < floors[r]), None)


@dataclass(frozen=True)
class LearningCurve:
    """The learning curve of a training of a sweep.

    Attributes
    ----------
    values
        The measure of the held-out fold, round by round.
    kept
        The best round.
    is_pruned
        Whether the training was stopped because it had fallen behind.
    """

    values: tuple[float, ...]
    kept: int
    is_pruned: bool

    @property
    def value(self) -> float:
        """The measure after the best round."""
        return float(self.values[self.kept - 1])


@dataclass(frozen=True)
class SweepFit(Fit):
    """A training whose learning curve is kept and whose model is not.

    Attributes
    ----------
    floors
        Pairs of a round and the value that the first measure must have reached by then; a training
        below it stops.
    """

    floors: tuple[tuple[int, float], ...]

    def __call__(self, inputs: TaskInputs, key: str, folder: Path) -> TaskSummary:
        """Train, and write the learning curve."""
        ranker = self.fitted(inputs, key, _Pruning(dict(self.floors), self.measures[0]))
        values = ranker.history_["valid"].get(self.measures[0], [])
        if not values:
            raise DataError("there is nothing to learn from the training data: give others")
        # Decided by the curve, not by where the training stopped: a process that was killed after
        # the training fell behind, and before that was noted, has trained some more rounds.
        pruned = pruned_after(values, dict(self.floors))
        if pruned is None:
            curve = LearningCurve(tuple(values), ranker.best_round_, is_pruned=False)
        else:
            seen = values[:pruned]
            curve = LearningCurve(tuple(seen), seen.index(max(seen)) + 1, is_pruned=True)
        # No model is kept: a run of the recipe trains the best parameters on all queries.
        write_json(folder / CURVE, vars(curve))
        ending = "pruned" if curve.is_pruned else f"with {curve.kept:,} {ranker.rounds}"
        return TaskSummary(f"{self.measures[0]} {curve.value:.4f} {ending}", curve.value)


def read_curve(store: Store, task: Task) -> LearningCurve:
    """Return the learning curve of a finished task."""
    content = store.read_json(task.key, CURVE)
    try:
        values = tuple(float(value) for value in content["values"])
        curve = LearningCurve(values, int(content["kept"]), bool(content["is_pruned"]))
    except (KeyError, TypeError, ValueError) as problem:
        raise DamageError(f"{store.task(task.key) / CURVE}: {problem!r}") from None
    if not 1 <= curve.kept <= len(values):
        raise DamageError(f"{store.task(task.key) / CURVE}: has no round {curve.kept}")
    return curve


class _Pruning:
    """A callback that stops a training that has fallen behind.

    One that resumed from a checkpoint is not stopped: its best value may have been before.
    """

    def __init__(self, floors: Mapping[int, float], measure: str) -> None:
        self.floors = floors
        self.measure = measure
        self.n_seen = 0
        self.best = float("-inf")

    def __call__(self, done: Round) -> bool:
        self.n_seen += 1
        self.best = max(self.best, done.values["valid"][self.measure])
        is_behind = self.best < self.floors.get(done.number, float("-inf"))
        return is_behind and self.n_seen == done.number
