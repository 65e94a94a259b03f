"""Rounds of training: the learner that computes them, their values, and callbacks.

A round is a tree, or several, or an epoch. The trainer (trainer.py) asks a `Learner` for a round,
measures it on every `ValidationSet`, writes the values into the `History`, and hands them to
callbacks as a `Round`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.measures.scorer import Scorer

# The value of every measure on every validation set.
Values = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Round:
    """What callbacks get after every round of trees, or epoch.

    Its text has the number and the values, so ``callbacks=[print]`` prints a line per round.

    Attributes
    ----------
    number
        Number of rounds that are done: 1 after the first. A fit that resumes from a checkpoint goes
        on counting.
    values
        The value of every measure on every validation set: ``values["valid"]["NDCG@10"]``.
    """

    number: int
    values: Values

    @property
    def summary(self) -> str:
        """The values as a short text: ``valid NDCG@10 0.7312``."""
        return "  ".join(
            f"{name} {measure} {value:.4f}"
            for name, values in self.values.items()
            for measure, value in values.items()
        )

    def __str__(self) -> str:
        return f"round {self.number}  {self.summary}".rstrip()


# Their callbacks want to know other things than a `Round` tells.
OTHER_TOOLS = ("lightgbm", "xgboost", "catboost")
# One that returns True stops the fit.
Callback = Callable[[Round], object]


def as_callbacks(owner: str, callbacks: Any) -> list[Callback]:
    """Return the callbacks of the user, one or several, as a list."""
    # Checked before the first round: one that cannot be called would end a fit after minutes.
    listed = [callbacks] if callable(callbacks) else list(callbacks)
    for callback in listed:
        # A function of such a module, or an object whose class is in it.
        module = getattr(callback, "__module__", None) or ""
        if module.partition(".")[0] in OTHER_TOOLS:
            raise UsageError(
                f"{owner}: the callback {callback!r} is one of {module.partition('.')[0]}; set "
                "patience in the constructor to stop early, give progress=True to see values, or "
                "functions of a rankinite.Round"
            )
        if not callable(callback):
            raise UsageError(f"{owner}: the callback {callback!r} cannot be called; give functions")
    return listed


class ValidationSet:
    """A data set that is measured after every round.

    Parameters
    ----------
    data
        The set.
    measures
        The measures to compute.
    start
        The scores before the first round, one row per output.
    """

    def __init__(self, data: RankingData, measures: Sequence[Measure], start: Floats) -> None:
        self.data = data
        self.measures = measures
        self.start = start
        # What depends on labels alone is computed once, not after every round.
        self._scorer = Scorer(measures, data.all_labels, data.offsets, data.top_grade)

    def measure(self, scores: Floats) -> dict[str, float]:
        """Return the means of the measures over the queries that count."""
        return self._scorer.mean(scores)


@dataclass
class History:
    """The values of measures on validation sets, one per round."""

    # By set and measure. The order of the sets is kept, since the first decides.
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, values: Values) -> None:
        """Append the values of another round."""
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
        """Iterate over rounds ``since + 1`` to ``n_rounds``."""
        for k in range(since, n_rounds):
            values = {
                name: {measure: curve[k] for measure, curve in curves.items()}
                for name, curves in self.values.items()
            }
            yield Round(k + 1, values)

    def check_measures(self, measures: Mapping[str, Sequence[Measure]]) -> None:
        """Refuse the history of a checkpoint that is not one of these sets and measures."""
        recorded = {name: list(curves) for name, curves in self.values.items()}
        if recorded != {name: [str(measure) for measure in row] for name, row in measures.items()}:
            raise ModelFileError("has values of other validation sets or measures")


class Learner(Protocol):
    """A model under training.

    The ranker keeps committed rounds only. So an interrupt at any time leaves whole rounds, even
    if `step` has changed scores already: the learner itself is not used any more then.
    """

    @property
    def n_rounds(self) -> int:
        """Number of rounds that were committed."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to learn."""

    @property
    def inputs(self) -> Sequence[NDArray[Any]]:
        """Arrays that rounds depend on besides the data and the parameters."""

    def step(self) -> None:
        """Compute one more round."""

    def validation_scores(self, name: str) -> Floats:
        """Return the scores of a validation set after `step`, one row per output."""

    def commit(self, done: Round, *, is_best: bool) -> None:
        """Take over the round that `step` computed, now that it is measured.

        Parameters
        ----------
        done
            The round, with its values.
        is_best
            Whether it is the best so far.
        """

    def train_scores(self) -> Floats:
        """Return the scores of the training set after the last round, one row per output."""

    def to_content(self) -> Content:
        """Return all that is needed to resume, for a checkpoint."""

    def n_rounds_in(self, content: Content) -> int:
        """Return the number of rounds that a checkpoint holds; refuse one that does not fit."""

    def restore(self, content: Content, n_rounds: int, history: History) -> None:
        """Resume after the first rounds of a checkpoint."""
