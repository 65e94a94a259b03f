"""Which trainings are given up: those that fall behind the median of earlier ones.

As in Optuna's median pruner, a training is compared after the same round with those of trials that
were carried out to their end. Here all of them are of earlier batches, so that it does not matter
which training of a batch is faster.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from rankinite.experiments.sweeps.trials import Trial

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
