"""Tasks: their functions, which are values that say all they depend on, and their keys.

A task runs in any process that sees the store. What it depends on is part of its key: the values
of its function, the keys of tasks before it, fingerprints of data, and the code that it runs.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rankinite.core import __version__
from rankinite.core.cached import cached_property
from rankinite.core.checksums import summed_folder
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.files import atomic_write, save_array
from rankinite.core.sources import module_hash
from rankinite.core.types import Floats32
from rankinite.data.augment import augment
from rankinite.data.categories import chosen_features
from rankinite.data.concat import concat
from rankinite.data.ranking_data import RankingData, rows_of
from rankinite.ensembles.members import Scaling
from rankinite.ensembles.score_features import FEATURE_NAMES, score_features
from rankinite.models import RANKERS
from rankinite.rankers.callbacks import Callback
from rankinite.runs.inputs import ModelKeys, TaskInputs, inputs_of
from rankinite.runs.recipe import Samples
from rankinite.runs.store import (
    ADDED,
    MODEL,
    MORE_NAMES,
    RECORD,
    SCORES,
    SPREAD,
    WIDE,
    DamageError,
    Store,
    write_json,
)

if TYPE_CHECKING:
    from rankinite.models import TrainedRanker

# Rows at a time of a matrix that may not fit into memory twice.
ROWS = 10_000
# Hexadecimal digits, so 80 bits: enough that no two tasks of a store ever share a key.
KEY_LENGTH = 20


@dataclass(frozen=True)
class Stage:
    """A stage of a run, which trains on the first parts of the training queries.

    Attributes
    ----------
    name
        Name of the stage; the seeds of its trainings depend on it.
    n_parts, parts
        Number of parts that the stage trains on, and of all parts.
    seed
        Random seed of the split into parts.
    """

    name: str
    n_parts: int
    parts: int
    seed: int

    def inside(self, data: RankingData) -> RankingData:
        """Return the queries that the stage trains on."""
        return concat(data.split(self.parts, seed=self.seed)[: self.n_parts])

    def outside(self, data: RankingData) -> RankingData:
        """Return all other queries."""
        return concat(data.split(self.parts, seed=self.seed)[self.n_parts :])


@dataclass(frozen=True)
class Fold:
    """One of several folds, counted from 0."""

    number: int
    of: int


@dataclass(frozen=True)
class Split:
    """The queries of one training.

    Attributes
    ----------
    stage
        The stage, whose queries are split.
    valid
        The fold for validation.
    left_out
        A fold that is left out before, if any: the fitted ranker has never seen it.
    """

    stage: Stage
    valid: Fold
    left_out: Fold | None = None

    def train_and_valid(self, data: RankingData) -> tuple[RankingData, RankingData]:
        """Return the queries to train on, and those to validate on."""
        rest = self.stage.inside(data)
        if self.left_out is not None:
            rest, _ = _without_fold(rest, self.left_out, self.stage.seed)
        return _without_fold(rest, self.valid, self.stage.seed)

    def left_out_queries(self, data: RankingData) -> RankingData:
        """Return the queries of the fold that is left out."""
        assert self.left_out is not None
        return _without_fold(self.stage.inside(data), self.left_out, self.stage.seed)[1]


def _without_fold(data: RankingData, fold: Fold, seed: int) -> tuple[RankingData, RankingData]:
    """Return the queries of all other folds, and those of the fold."""
    return next(islice(data.folds(fold.of, seed=seed), fold.number, None))


@dataclass(frozen=True)
class TaskSummary:
    """How a task went: a short text, and the first measure of a validation fold if it has one."""

    text: str
    value: float | None = None


class TaskFunction(Protocol):
    """The function of a task: a dataclass, whose values are part of the task's key."""

    def __call__(self, inputs: TaskInputs, key: str, folder: Path) -> TaskSummary:
        """Write the result files into a folder."""


@dataclass(frozen=True)
class Fit:
    """A training.

    Attributes
    ----------
    ranker, parameters
        Name of the ranker's class, and its parameters.
    measures
        Measures of the validation fold, besides the one that chooses the best round.
    split
        The queries to train and to validate on.
    samples
        How training queries are augmented, if they are.
    features
        Key of the task that made score features, if the ranker sees such.
    data
        Fingerprint of the training data.
    """

    ranker: str
    parameters: Mapping[str, Any]
    measures: tuple[str, ...]
    split: Split
    samples: Samples | None
    features: str | None
    data: str

    def __call__(self, inputs: TaskInputs, key: str, folder: Path) -> TaskSummary:
        """Train, and score the fold that was left out."""
        ranker = self.fitted(inputs, key)
        ranker.save(folder / MODEL)
        if self.split.left_out is not None:
            # Here, while the ranker is in memory: what follows needs the scores, not the model.
            left_out = self.split.left_out_queries(inputs.train)
            save_array(folder / SCORES, ranker.predict(left_out))
        return self._summary(ranker)

    def fitted(self, inputs: TaskInputs, key: str, *callbacks: Callback) -> TrainedRanker:
        """Return the fitted ranker; a callback that returns True ends the training."""
        train, valid = self.split.train_and_valid(inputs.train_with(self.features))
        if self.samples is not None:
            train = augment(
                train, self.samples.fraction, self.samples.times, seed=self.split.stage.seed
            )
        ranker: Any = self.new_ranker()
        checkpoint = inputs.store.checkpoint(key)
        options = {"valid": valid, "callbacks": callbacks, **self.options(inputs)}
        try:
            ranker.fit(train, checkpoint=checkpoint, **options)
        except (ModelFileError, UsageError):
            # It was damaged, or is of another training; or something else is wrong, and comes
            # again.
            checkpoint.unlink(missing_ok=True)
            ranker.fit(train, checkpoint=checkpoint, **options)
        fitted: TrainedRanker = ranker
        return fitted

    def options(self, inputs: TaskInputs) -> dict[str, Any]:
        """Return arguments of ``fit`` besides the data: for trees, the bins."""
        if not RANKERS[self.ranker].takes_binned:
            return {}
        # Bins depend on what is categorical; this model says that more is than the data do.
        named, train = self.parameters["categorical_features"], inputs.train
        if not isinstance(named, str) and not train.categories.keys() >= set(
            chosen_features(self.ranker, named, train.feature_names)
        ):
            return {}
        # Binned once for all trainings, which is faster and gives all of them the same thresholds.
        return {"binned": inputs.binned(self.parameters["most_bins"], self.features)}

    def new_ranker(self) -> TrainedRanker:
        """Return the unfitted ranker, which also computes the measures of this task."""
        ranker = RANKERS[self.ranker](**self.parameters)
        # The measure of the recipe is computed along, and must not decide which round is best.
        judges = ranker.validation_measure()
        known = [str(measure) for measure in ranker.validation_measures()]
        others = [text for text in self.measures if text not in known]
        ranker.valid_measure = [judges, *others] if others else judges
        return ranker

    def _summary(self, ranker: TrainedRanker) -> TaskSummary:
        curves = ranker.history_["valid"]
        measure = self.measures[0]
        value = curves[measure][ranker.best_round_ - 1]
        text = f"{measure} {value:.4f} with {ranker.best_round_:,} {ranker.rounds}"
        return TaskSummary(text, float(value))


@dataclass(frozen=True)
class GatherScores:
    """Score features of all queries of a stage, made of the scores that left-out folds got.

    Attributes
    ----------
    fits
        Keys of the trainings, in the order of the folds.
    splits
        Their splits.
    """

    fits: tuple[str, ...]
    splits: tuple[Split, ...]

    def __call__(self, inputs: TaskInputs, key: str, folder: Path) -> TaskSummary:
        """Write the four columns, and the feature matrix with them."""
        data = inputs.train
        # Documents outside of the stage stay NaN, a missing value: no training of the stage sees
        # them.
        scores = np.full(data.n_docs, np.nan)
        for fit, split in zip(self.fits, self.splits, strict=True):
            left_out = split.left_out_queries(data)
            scores[rows_of(left_out)] = inputs.scores(fit, left_out)
        inside = self.splits[0].stage.inside(data)
        rows = rows_of(inside)
        added = np.full((data.n_docs, len(FEATURE_NAMES)), np.nan, np.float32)
        added[rows] = score_features(scores[rows], inside.offsets)
        # Both: rankers are fitted to the matrix, while of trees only the four columns are binned;
        # the bins of all others are shared by all tasks.
        save_array(folder / ADDED, added)
        write_json(folder / MORE_NAMES, list(FEATURE_NAMES))
        _save_side_by_side(folder / WIDE, data.matrix, added)
        return TaskSummary(f"{len(rows):,} documents")


def _save_side_by_side(path: Path, matrix: Floats32, added: Floats32) -> None:
    """Write two matrices side by side, some rows at a time.

    It does not go through a mapped file: there a full disk would be a signal that kills the
    process, and here it is an error.
    """
    shape = (len(matrix), matrix.shape[1] + added.shape[1])
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with atomic_write(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(matrix), ROWS):
            rows = slice(start, start + ROWS)
            file.write(np.hstack([matrix[rows], added[rows]]).astype("<f4", copy=False).tobytes())


@dataclass(frozen=True)
class Score:
    """The scores of a model for the queries outside of a stage, or for another data set.

    Attributes
    ----------
    model
        The model.
    data, digest
        Name and fingerprint of the data set.
    outside
        For training data: the stage whose queries are not scored.
    """

    model: ModelKeys
    data: str
    digest: str
    outside: Stage | None

    def __call__(self, inputs: TaskInputs, key: str, folder: Path) -> TaskSummary:
        """Score documents."""
        data = inputs.data(self.data)
        if self.outside is not None:
            data = self.outside.outside(data)
        scores = inputs.ranker(self.model).predict(data)
        save_array(folder / SCORES, scores)
        return TaskSummary(f"{len(scores):,} documents")


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of a model's scores for documents that it has not seen.

    Every training scores the fold that validated it.
    """

    model: ModelKeys
    splits: tuple[Split, ...]
    features: str | None

    def __call__(self, inputs: TaskInputs, key: str, folder: Path) -> TaskSummary:
        """Measure the spread."""
        data = inputs.train_with(self.features)
        scalings = [
            Scaling.fit(
                inputs.fitted(fit, self.model.scoring).predict(split.train_and_valid(data)[1])[None]
            )
            for fit, split in zip(self.model.fits, self.splits, strict=True)
        ]
        # The mean over bags, not the spread of their pooled scores: bags rank alike, but their
        # means differ, which would make the pooled scores look wider than the average is.
        spread = {
            "mean": float(np.mean([scaling.means[0] for scaling in scalings])),
            "scale": float(np.mean([scaling.scales[0] for scaling in scalings])),
        }
        write_json(folder / SPREAD, spread)
        return TaskSummary(f"deviation {spread['scale']:.4g}")


def read_spread(store: Store, key: str) -> tuple[float, float]:
    """Return mean and standard deviation that a task has measured."""
    spread = store.read_json(key, SPREAD)
    try:
        mean, scale = float(spread["mean"]), float(spread["scale"])
    except (KeyError, TypeError, ValueError) as problem:
        raise DamageError(f"{store.task(key) / SPREAD}: {problem!r}") from None
    if not (math.isfinite(mean) and 0.0 < scale < math.inf):
        raise DamageError(f"{store.task(key) / SPREAD}: is no spread of scores")
    return mean, scale


@dataclass(frozen=True)
class Task:
    """A node of the graph of a run.

    Attributes
    ----------
    name
        Name for people.
    function
        What is executed, with all that the result depends on; other tasks appear by their keys.
    dependencies
        Tasks that must be finished before.
    cost
        Rough duration, compared with other tasks.
    """

    name: str
    function: TaskFunction
    dependencies: tuple[Task, ...]
    cost: float

    @cached_property
    def key(self) -> str:
        """Hash of all that the result depends on, which names the folder of the task."""
        function = self.function
        inputs = {
            "version": __version__,
            # The code that it runs, and no other: a new sentence of the report trains nothing.
            "sources": module_hash(__name__, type(function).__module__),
            "function": type(function).__name__,
            "arguments": asdict(function),  # type: ignore[call-overload]
        }
        text = json.dumps(inputs, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


@dataclass(frozen=True)
class TaskRecord:
    """The record of a finished task: its summary, and its duration in seconds."""

    summary: TaskSummary
    seconds: float


def execute_task(store: Store, task: Task) -> TaskRecord:
    """Execute a task in a store; called in worker processes."""
    start = time.perf_counter()
    inputs = inputs_of(store)
    if inputs.store.is_finished(task.key):  # by a worker that was taken for dead
        return read_record(store, task)
    # The folder appears whole or not at all, so that a task is finished or was never begun.
    with summed_folder(inputs.store.task(task.key)) as folder:
        summary = task.function(inputs, task.key, folder)
        record = TaskRecord(summary, time.perf_counter() - start)
        content = {"name": task.name, "seconds": record.seconds, **asdict(summary)}
        write_json(folder / RECORD, content)
    inputs.store.checkpoint(task.key).unlink(missing_ok=True)
    return record


def read_record(store: Store, task: Task) -> TaskRecord:
    """Return the record of a finished task."""
    content = store.read_json(task.key, RECORD)
    try:
        return TaskRecord(TaskSummary(content["text"], content["value"]), float(content["seconds"]))
    except (KeyError, TypeError, ValueError) as problem:
        raise DamageError(f"{store.task(task.key) / RECORD}: {problem!r}") from None
