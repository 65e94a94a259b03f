"""The unit of a sweep: one training, of which the learning curve is kept and the model is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rankinite.core.errors import DataError
from rankinite.rankers.early_stopping import Round
from rankinite.runs.inputs import Bench
from rankinite.runs.store import RunFolder, read_json, write_json
from rankinite.runs.tasks import Fit, HowWell, Unit
from rankinite.sweeps.trials import pruned_after

CURVE = "curve.json"


@dataclass(frozen=True)
class SweepFit(Fit):
    """A training that stops where its first measure has fallen behind.

    Attributes
    ----------
    floors
        What the best value must have reached after some rounds.
    """

    floors: tuple[tuple[int, float], ...]

    def do(self, bench: Bench, key: str, into: Path) -> HowWell:
        """Train, and write the learning curve."""
        ranker = self.fitted(bench, key, _Looks(dict(self.floors), self.measures[0]))
        curve = ranker.history_["valid"].get(self.measures[0], [])
        if not curve:
            raise DataError("there is nothing to learn from the training data: give others")
        # By the curve, and not by where the training stopped: one that was killed after it fell
        # behind, and before that was noted, has gone on for a while.
        pruned = pruned_after(curve, dict(self.floors))
        if pruned is None:
            found = LearningCurve(tuple(curve), ranker.kept_rounds_, is_pruned=False)
        else:
            seen = curve[:pruned]
            found = LearningCurve(tuple(seen), seen.index(max(seen)) + 1, is_pruned=True)
        write_json(into / CURVE, vars(found))
        ending = "pruned" if found.is_pruned else f"with {found.kept:,} {ranker.rounds}"
        return HowWell(f"{self.measures[0]} {found.value:.4f} {ending}", found.value)


@dataclass(frozen=True)
class LearningCurve:
    """What a training has come to.

    Attributes
    ----------
    values
        The measure of the held-out fold, round by round.
    kept
        The round that was kept; of a training that was pruned, the best.
    is_pruned
        Whether it was given up.
    """

    values: tuple[float, ...]
    kept: int
    is_pruned: bool

    @property
    def value(self) -> float:
        """The measure after the round that was kept."""
        return float(self.values[self.kept - 1])


def read_curve(folder: RunFolder, unit: Unit) -> LearningCurve:
    """Return what a unit that is done has come to."""
    found = read_json(folder.unit(unit.key) / CURVE)
    return LearningCurve(tuple(found["values"]), found["kept"], found["is_pruned"])


class _Looks:
    """Stops a training that has fallen behind.

    One that goes on from a checkpoint is not stopped: its best may have been before.
    """

    def __init__(self, floors: Mapping[int, float], measure: str) -> None:
        self.floors = floors
        self.measure = measure
        self.seen = 0
        self.best = float("-inf")

    def __call__(self, done: Round) -> bool:
        self.seen += 1
        self.best = max(self.best, done.values["valid"][self.measure])
        is_behind = self.best < self.floors.get(done.number, float("-inf"))
        return is_behind and self.seen == done.number
