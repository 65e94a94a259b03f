"""The learner protocol: what boosted trees and nets offer to the trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from rankinite.core.container import Content
from rankinite.core.types import Floats
from rankinite.rankers.callbacks import Round
from rankinite.rankers.early_stopping import BestRound, History


class Learner(Protocol):
    """A model under training.

    A round takes effect with `commit` only. So an interrupt at any time leaves whole rounds.
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

    def commit(self, done: Round, best: BestRound) -> None:
        """Take over the round that `step` computed, now that it is measured."""

    def train_scores(self) -> Floats:
        """Return the scores of the training set after the last round, one row per output."""

    def to_content(self) -> Content:
        """Return all that is needed to resume, for a checkpoint."""

    def n_rounds_in(self, content: Content) -> int:
        """Return the number of rounds that a checkpoint holds; refuse one that does not fit."""

    def restore(self, content: Content, n_rounds: int, history: History) -> None:
        """Resume after the first rounds of a checkpoint."""
