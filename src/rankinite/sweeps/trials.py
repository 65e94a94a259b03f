"""Trials of a sweep: parameters, and how models with them did in every fold."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Points of a learning curve that are kept, evenly spaced; more no chart can show.
MOST_POINTS = 60


@dataclass(frozen=True)
class Fold:
    """How a training did on the fold that was held out.

    Attributes
    ----------
    value
        The measure after the round that was kept; of a training that was pruned, the best so far.
    kept, n_rounds
        The round that was kept, and how many there were.
    curve
        Rounds, counted from 1, with the measure after them: some of all.
    """

    value: float
    kept: int
    n_rounds: int
    curve: tuple[tuple[int, float], ...]


# Of the trial with the recipe's own parameters, which Optuna does not know.
OWN_NUMBER = -1


@dataclass(frozen=True)
class Trial:
    """Parameters that were tried.

    Attributes
    ----------
    number
        Counted from 0, as Optuna does.
    parameters
        The values of the parameters that are swept.
    folds
        How it did in every fold; in the first alone if it was pruned.
    best_so_far
        The best value of the first fold's learning curve up to some rounds, by which others are
        pruned.
    is_pruned
        Whether it was given up after the first fold's training had fallen behind.
    """

    number: int
    parameters: Mapping[str, Any]
    folds: tuple[Fold, ...]
    best_so_far: Mapping[int, float]
    is_pruned: bool

    @property
    def value(self) -> float:
        """The mean over folds; of a pruned trial, the best of its one curve."""
        return statistics.fmean(fold.value for fold in self.folds)

    @property
    def standard_error(self) -> float | None:
        """Of the mean over folds."""
        values = [fold.value for fold in self.folds]
        if len(values) < 2:
            return None
        return statistics.stdev(values) / math.sqrt(len(values))


def best_of(trials: Sequence[Trial]) -> Trial:
    """Return the trial with the largest mean; the first of several, and none that was pruned."""
    return max((one for one in trials if not one.is_pruned), key=lambda one: one.value)


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Return trials from the best to the worst; those that were pruned are the last."""
    return sorted(trials, key=lambda one: (one.is_pruned, -one.value, one.number))


def some_points(curve: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """Return some points of a learning curve, the first and the last among them.

    >>> some_points([0.25, 0.5])
    ((1, 0.25), (2, 0.5))
    """
    n = len(curve)
    count = min(n, MOST_POINTS)
    picked = sorted({round(k * (n - 1) / max(count - 1, 1)) for k in range(count)})
    return tuple((k + 1, float(curve[k])) for k in picked)


# Looks are after so many parts of all rounds, of `PARTS`. Small learning rates begin slowly, so
# there is none in the first third.
PARTS = 12
FIRST_LOOK = 4
# So many trials must have come to their end before others are compared with them.
FEWEST = 4


def looks(most_rounds: int) -> tuple[int, ...]:
    """Return the rounds after which trainings are compared.

    >>> looks(24), looks(3)
    ((8, 10, 12, 14, 16, 18, 20, 22), (1, 2))
    """
    found = (most_rounds * part // PARTS for part in range(FIRST_LOOK, PARTS))
    return tuple(sorted({one for one in found if one >= 1}))


def best_so_far(curve: Sequence[float], rounds: Sequence[int]) -> dict[int, float]:
    """Return the best value up to each of the rounds; a training that has ended keeps its best.

    >>> best_so_far([0.25, 0.75, 0.5], [1, 3, 5])
    {1: 0.25, 3: 0.75, 5: 0.75}
    """
    return {number: float(max(curve[:number])) for number in rounds}


def floors_of(earlier: Sequence[Trial], rounds: Sequence[int]) -> dict[int, float]:
    """Return what trainings must have reached after which rounds; nothing while trials are few.

    Parameters
    ----------
    earlier
        The trials of earlier batches.
    rounds
        Those of `looks`.
    """
    whole = [trial for trial in earlier if not trial.is_pruned]
    if len(whole) < FEWEST:
        return {}
    return {r: statistics.median(trial.best_so_far[r] for trial in whole) for r in rounds}


def pruned_after(curve: Sequence[float], floors: Mapping[int, float]) -> int | None:
    """Return the first round after which a training was behind; None if it never was.

    A training that has come to its end before a round is not compared there.

    >>> pruned_after([0.1, 0.2, 0.3], {2: 0.25, 3: 0.3, 9: 1.0})
    2
    """
    reached = (r for r in sorted(floors) if r <= len(curve))
    return next((r for r in reached if max(curve[:r]) < floors[r]), None)
