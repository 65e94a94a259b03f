"""Which of the training queries a training learns from, and which it is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from rankinite.data.concat import concat
from rankinite.data.ranking_data import RankingData


@dataclass(frozen=True)
class Stage:
    """The training queries of a stage: the first of so many parts.

    Attributes
    ----------
    name
        What the stage is called.
    n_parts, parts
        How many parts belong to it, and how many there are.
    seed
        Of the cut into parts.
    """

    name: str
    n_parts: int
    parts: int
    seed: int

    def inside(self, data: RankingData) -> RankingData:
        """Return the queries that the stage trains on."""
        return concat(data.split(self.parts, seed=self.seed)[: self.n_parts])

    def outside(self, data: RankingData) -> RankingData:
        """Return the others."""
        return concat(data.split(self.parts, seed=self.seed)[self.n_parts :])


@dataclass(frozen=True)
class Fold:
    """One fold of several, counted from 0."""

    number: int
    of: int


@dataclass(frozen=True)
class Cut:
    """The queries of one training.

    Attributes
    ----------
    stage
        Where they come from.
    valid
        The fold that is for validation.
    left_out
        A fold that is put aside before, if any: what is fitted has never seen it.
    """

    stage: Stage
    valid: Fold
    left_out: Fold | None = None

    def pair(self, data: RankingData) -> tuple[RankingData, RankingData]:
        """Return the queries to train on, and those to validate on."""
        rest = self.stage.inside(data)
        if self.left_out is not None:
            rest, _ = _fold(rest, self.left_out, self.stage.seed)
        return _fold(rest, self.valid, self.stage.seed)

    def put_aside(self, data: RankingData) -> RankingData:
        """Return the queries of the fold that was left out."""
        assert self.left_out is not None
        return _fold(self.stage.inside(data), self.left_out, self.stage.seed)[1]


def _fold(data: RankingData, fold: Fold, seed: int) -> tuple[RankingData, RankingData]:
    return next(islice(data.folds(fold.of, seed=seed), fold.number, None))
