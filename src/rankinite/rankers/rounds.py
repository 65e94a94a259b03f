"""What fits have in common: rounds, each a tree or an epoch, with validation sets watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from typing import Any, Protocol

from numpy.typing import NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.measures.scorer import Scorer
from rankinite.rankers.judging import Judging, Standing


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

    def rounds(self, since: int, n_rounds: int) -> Iterator[Round]:
        """Go through rounds ``since + 1`` to ``n_rounds``."""
        for k in range(since, n_rounds):
            values = {
                name: {measure: curve[k] for measure, curve in curves.items()}
                for name, curves in self.values.items()
            }
            yield Round(k + 1, values)

    def refuse_others(self, watched: Mapping[str, Watched]) -> None:
        """Refuse a history, of a checkpoint, that is not one of these sets and their measures."""
        found = {name: list(curves) for name, curves in self.values.items()}
        if found != {name: [str(m) for m in one.measures] for name, one in watched.items()}:
            raise ModelFileError("has values of other validation sets or measures")


@dataclass(frozen=True)
class Stopping:
    """When a fit has enough, and which of its rounds is best.

    Attributes
    ----------
    most
        How many rounds there are at most.
    patience
        Stop after so many rounds without one that improves; never if None.
    judging
        What decides between rounds; None if there are no validation sets, and then every round is
        better than the one before.
    """

    most: int
    patience: int | None = None
    judging: Judging | None = None

    def after(self, standing: Standing, done: Round) -> Standing:
        """Return the standing after another round."""
        if self.judging is None:
            return Standing(best=done.number, improved=done.number)
        return self.judging.after(standing, done.number, done.values)

    def standing(self, history: History, n_rounds: int) -> Standing:
        """Return how the first rounds compare."""
        return reduce(self.after, history.rounds(0, n_rounds), Standing())

    def has_enough(self, standing: Standing, n_rounds: int) -> bool:
        """Tell whether rounds that compare like this are all that is wanted."""
        if n_rounds >= self.most:
            return True
        return self.patience is not None and n_rounds - standing.improved >= self.patience

    def reach(self, history: History, n_rounds: int) -> int:
        """Return how many of the rounds that another fit did this one would have done."""
        standings = accumulate(history.rounds(0, n_rounds), self.after, initial=Standing())
        enough = (r for r, standing in enumerate(standings) if self.has_enough(standing, r))
        return next(enough, n_rounds)


class Watched:
    """A data set that is measured after every round.

    Parameters
    ----------
    data
        The set.
    measures
        What it is measured by.
    start
        The scores before the first round, one row for each output.
    """

    def __init__(self, data: RankingData, measures: Sequence[Measure], start: Floats) -> None:
        self.data = data
        self.measures = measures
        self.start = start
        labels = data.all_labels
        self._scorer = Scorer(measures, labels, data.offsets, data.top_grade)

    def measure(self, scores: Floats) -> dict[str, float]:
        """Return the means of the measures over the queries that count."""
        return self._scorer.mean(scores)


class Fit(Protocol):
    """One fit under way."""

    @property
    def history(self) -> History:
        """The values of measures on validation sets, one a round."""

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

    def train_scores(self) -> Floats:
        """Return the scores of the training documents after the last round, a row an output."""
