"""How a weight grows while a ranker learns (Objectives, Sec. 6.2).

A schedule gives the weight of iteration m, which counts from 1. It is a value with a text, such as
``linear(start=0.1, eta=0.01)``; any function of the iteration can stand in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.core.params import Real, check
from rankinite.core.wording import plain_number

SHARE = Real(0, 1)
# So many weights tell functions apart.
N_COMPARED = 1_000


@dataclass(frozen=True)
class _Growth:
    """A weight that begins at ``start`` and never falls, nor rises above 1."""

    start: float
    eta: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check(type(self).__name__, "start", self.start, SHARE)
        check(type(self).__name__, "eta", self.eta, Real(0))

    def __str__(self) -> str:
        start, eta = plain_number(float(self.start)), plain_number(float(self.eta))
        return f"{self.name}(start={start}, eta={eta})"

    def __call__(self, iteration: int) -> float:
        """Return the weight of an iteration, which counts from 1."""
        return min(1.0, self.start + self._grown(iteration))

    def _grown(self, iteration: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} does not grow")  # an abstract method


class LinearGrowth(_Growth):
    """A weight that grows by ``eta`` every iteration, up to 1.

    Parameters
    ----------
    start
        The weight before the first iteration.
    eta
        By how much it grows.

    Examples
    --------
    >>> schedule = LinearGrowth(0.1, 0.25)
    >>> str(schedule), [schedule(m) for m in (1, 2, 3, 4)]
    ('linear(start=0.1, eta=0.25)', [0.35, 0.6, 0.85, 1.0])
    """

    name = "linear"

    def _grown(self, iteration: int) -> float:
        return self.eta * iteration


class ExponentialGrowth(_Growth):
    """A weight that grows by exp(-eta / m) in iteration m, up to 1; the paper's exponential.

    Steps become as large as 1 in the end: with ``eta`` 100 it has grown by 1 after 42 iterations.

    Parameters
    ----------
    start
        The weight before the first iteration.
    eta
        The larger, the later it grows.
    """

    name = "exponential"

    def _grown(self, iteration: int) -> float:
        grown = 0.0
        for m in range(1, iteration + 1):
            grown += math.exp(-self.eta / m)
            if grown >= 1.0:
                break
        return grown


class LevellingGrowth(_Growth):
    """A weight of ``start`` + exp(-eta / m) in iteration m, up to 1.

    It has grown by 0.37 after ``eta`` iterations, by 0.61 after twice as many, and levels off.

    Parameters
    ----------
    start
        The weight before the first iteration.
    eta
        The larger, the later it grows.
    """

    name = "levelling"

    def _grown(self, iteration: int) -> float:
        return math.exp(-self.eta / iteration)


SCHEDULES = {kind.name: kind for kind in (LinearGrowth, ExponentialGrowth, LevellingGrowth)}

Schedule = float | Callable[[int], float]


def check_schedule(owner: str, schedule: Any) -> None:
    """Refuse what is neither a weight nor a function of the iteration."""
    is_function = callable(schedule) and not isinstance(schedule, type)
    if not is_function and not SHARE.allows(schedule):
        told = " (a file keeps a function's name alone)" if isinstance(schedule, str) else ""
        raise UsageError(
            f"{owner}: the schedule must be a weight in [0, 1], one of {', '.join(SCHEDULES)} with "
            f"start and eta, or a function of the iteration; got {schedule!r}{told}"
        )


def weight_of(owner: str, schedule: Schedule, iteration: int) -> float:
    """Return the weight that a schedule gives an iteration, which counts from 1."""
    weight = schedule(iteration) if callable(schedule) else schedule
    if not SHARE.allows(weight):
        raise UsageError(
            f"{owner}: the schedule gives iteration {iteration} the weight {weight!r}; expected a "
            "number in [0, 1]"
        )
    return float(weight)


def fingerprint(schedule: Schedule) -> tuple[NDArray[np.float64], ...]:
    """Return the first weights of a function, which has no text to be told from others by."""
    if not callable(schedule) or isinstance(schedule, _Growth):
        return ()
    weights = np.full(N_COMPARED, np.nan)
    for k in range(N_COMPARED):
        try:
            weights[k] = schedule(k + 1)
        except Exception:
            break
    return (weights,)


def schedule_text(schedule: Schedule) -> str:
    """Return a schedule as people write it; a function by its name."""
    if not callable(schedule):
        return plain_number(float(schedule))
    if isinstance(schedule, _Growth):
        return str(schedule)
    return str(getattr(schedule, "__qualname__", type(schedule).__name__))
