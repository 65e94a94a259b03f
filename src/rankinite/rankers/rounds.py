"""What fits have in common: rounds, each a tree or an epoch, with validation sets watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import mean_of_counted
from rankinite.measures.compute import Measuring
from rankinite.measures.measure import Measure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Round:
    """What a callback gets after every round.

    Attributes
    ----------
    number
        How many rounds are done.
    values
        The value of every measure on every validation set: ``values["valid"]["NDCG@10"]``.
    """

    number: int
    values: Mapping[str, Mapping[str, float]]

    def __str__(self) -> str:
        return "  ".join(
            f"{name} {measure} {value:.4f}"
            for name, values in self.values.items()
            for measure, value in values.items()
        )


Callback = Callable[[Round], object]


def as_callbacks(owner: str, callbacks: Any) -> list[Callback]:
    """Return the callbacks that were given, one or several."""
    listed = [callbacks] if callable(callbacks) else list(callbacks)
    for callback in listed:
        if not callable(callback):
            raise UsageError(f"{owner}: the callback {callback!r} cannot be called; give functions")
    return listed


@dataclass
class History:
    """The values of measures on validation sets, one a round."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, values: Mapping[str, Mapping[str, float]]) -> None:
        """Add the values of another round."""
        for name, measured in values.items():
            for measure, value in measured.items():
                self.values[name].setdefault(measure, []).append(value)

    def first(self, n_rounds: int) -> History:
        """Return the history of the first rounds."""
        return History(
            {
                name: {measure: curve[:n_rounds] for measure, curve in curves.items()}
                for name, curves in self.values.items()
            }
        )

    def refuse_others(self, watched: Mapping[str, Watched]) -> None:
        """Refuse a history, of a checkpoint, that is not one of these sets and their measures."""
        found = {name: list(curves) for name, curves in self.values.items()}
        if found != {name: [str(m) for m in one.measures] for name, one in watched.items()}:
            raise ModelFileError("has values of other validation sets or measures")

    def bests(self, set_name: str, measure: str, min_improvement: float) -> list[int]:
        """Return after every round which round was best until then.

        A later round is better only if it gains more than ``min_improvement``.
        """
        bests: list[int] = []
        best_round, best_value = 0, -np.inf
        for number, value in enumerate(self.values[set_name].get(measure, []), 1):
            if value > best_value + min_improvement or best_round == 0:
                best_round, best_value = number, value
            bests.append(best_round)
        return bests


@dataclass(frozen=True)
class Stopping:
    """When a fit has enough, and which of its rounds is best.

    Attributes
    ----------
    most
        How many rounds there are at most.
    patience
        Stop after so many rounds without a better one; never if None.
    min_improvement
        What counts as better.
    judge
        The validation set and the measure that decide; None if there are no validation sets.
    """

    most: int
    patience: int | None = None
    min_improvement: float = 0.0
    judge: tuple[str, str] | None = None

    def best(self, history: History, n_rounds: int) -> int:
        """Return which of the first rounds is best; the last if nothing was measured."""
        if self.judge is None or n_rounds == 0:
            return n_rounds
        return history.bests(*self.judge, self.min_improvement)[n_rounds - 1]

    def has_enough(self, history: History, n_rounds: int) -> bool:
        """Tell whether the first rounds are all that is wanted."""
        if n_rounds >= self.most:
            return True
        if self.patience is None or self.judge is None or n_rounds == 0:
            return False
        return n_rounds - self.best(history, n_rounds) >= self.patience

    def reach(self, history: History, n_rounds: int) -> int:
        """Return how many of the rounds that another fit did this one would have done."""
        enough = (r for r in range(1, n_rounds) if self.has_enough(history.first(r), r))
        return next(enough, min(n_rounds, self.most))


class Watched:
    """A data set that is measured after every round.

    Parameters
    ----------
    data
        The set.
    measures
        What it is measured by; the first decides.
    start
        The scores before the first round, one row for each output.
    """

    def __init__(self, data: RankingData, measures: Sequence[Measure], start: Floats) -> None:
        self.data = data
        self.measures = measures
        self.start = start
        labels = data.all_labels
        self._measuring = Measuring(measures, labels, data.offsets, data.top_grade)

    def measure(self, scores: Floats) -> dict[str, float]:
        """Return the means of the measures over the queries that count."""
        values = self._measuring.measure(scores, again=True)
        return {
            str(measure): mean_of_counted(row)
            for measure, row in zip(self.measures, values, strict=True)
        }


class Fit(Protocol):
    """One fit under way."""

    history: History

    @property
    def fixed(self) -> Sequence[NDArray[Any]]:
        """What rounds depend on besides the data and the parameters."""

    @property
    def n_rounds(self) -> int:
        """How many rounds are done."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to learn."""

    def step(self) -> Round:
        """Do one more round."""

    def to_content(self) -> Content:
        """Return all that is needed to go on, for a checkpoint."""

    def go_on_from(self, content: Content, stopping: Stopping) -> int:
        """Go on from what a checkpoint kept, as far as this fit would have come itself.

        Return how many rounds the checkpoint has.
        """
