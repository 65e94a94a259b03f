"""What units of work do, each in a process of its own: values that say all they depend on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rankinite.core.errors import ModelFileError
from rankinite.core.files import atomic_folder, atomic_write, save_array
from rankinite.core.jit import package_hash
from rankinite.core.types import Floats32
from rankinite.core.version import __version__
from rankinite.data.augment import augment
from rankinite.data.concat import rows_of
from rankinite.data.memmap import beside
from rankinite.ensembles.ensemble import Scaling
from rankinite.ensembles.score_features import FEATURE_NAMES, score_features
from rankinite.models import RANKERS, TrainedRanker
from rankinite.rankers.trainer import Callback
from rankinite.runs.folds import Cut, Stage
from rankinite.runs.inputs import ADDED, MODEL, SCORES, WIDE, Bench, bench_of
from rankinite.runs.recipe import Samples
from rankinite.runs.store import DONE, RunFolder, read_json, write_json

SPREAD = "spread.json"
# Of a matrix that is written in parts.
ROWS = 10_000


@dataclass(frozen=True)
class HowWell:
    """How a unit went: in a few words, and the first measure of a validation fold if it has one."""

    words: str
    value: float | None = None


class Work(Protocol):
    """What a unit does."""

    def do(self, bench: Bench, key: str, into: Path) -> HowWell:
        """Write to a folder what is made."""


@dataclass(frozen=True)
class Fit:
    """A training.

    Attributes
    ----------
    ranker, parameters
        The class of the ranker, and its parameters.
    measures
        What the validation fold is measured by, besides what decides about rounds.
    cut
        The queries to train and to validate on.
    samples
        How training queries are augmented, if they are.
    features
        The unit that made score features, if the ranker sees such.
    data
        The fingerprint of the training data.
    """

    ranker: str
    parameters: Mapping[str, Any]
    measures: tuple[str, ...]
    cut: Cut
    samples: Samples | None
    features: str | None
    data: str

    def do(self, bench: Bench, key: str, into: Path) -> HowWell:
        """Train, and score the queries that were put aside."""
        ranker = self.fitted(bench, key)
        ranker.save(into / MODEL)
        if self.cut.left_out is not None:
            aside = self.cut.put_aside(bench.train)
            save_array(into / SCORES, ranker.predict(aside))
        return self._how_well(ranker)

    def fitted(self, bench: Bench, key: str, *callbacks: Callback) -> TrainedRanker:
        """Return the ranker, fitted; callbacks are asked after every round whether to stop."""
        train, valid = self.cut.pair(bench.train_with(self.features))
        if self.samples is not None:
            train = augment(
                train, self.samples.fraction, self.samples.times, seed=self.cut.stage.seed
            )
        ranker: Any = self.new_ranker()
        checkpoint = bench.folder.checkpoint(key)
        options = {"valid": valid, "callbacks": callbacks, **self.options(bench)}
        try:
            ranker.fit(train, checkpoint=checkpoint, **options)
        except ModelFileError:
            checkpoint.unlink(missing_ok=True)  # it was damaged, and the training begins anew
            ranker.fit(train, checkpoint=checkpoint, **options)
        fitted: TrainedRanker = ranker
        return fitted

    def options(self, bench: Bench) -> dict[str, Any]:
        """Return what `fit` of the ranker gets besides data: bins, for trees."""
        if not RANKERS[self.ranker].takes_binned:
            return {}
        return {"binned": bench.binned(self.parameters["most_bins"], self.features)}

    def new_ranker(self) -> TrainedRanker:
        """Return the ranker, unfitted, which also measures what is asked for here."""
        ranker = RANKERS[self.ranker](**self.parameters)
        judges = ranker.validation_measure()
        known = [str(measure) for measure in ranker.validation_measures()]
        others = [text for text in self.measures if text not in known]
        ranker.valid_measure = [judges, *others] if others else judges
        return ranker

    def _how_well(self, ranker: TrainedRanker) -> HowWell:
        curves = ranker.history_["valid"]
        measure = self.measures[0]
        value = curves[measure][ranker.kept_rounds_ - 1]
        words = f"{measure} {value:.4f} with {ranker.kept_rounds_:,} {ranker.rounds}"
        return HowWell(words, float(value))


@dataclass(frozen=True)
class GatherScores:
    """Floats32 made of scores that left-out folds got, for all queries of a stage.

    Attributes
    ----------
    folds
        The trainings, in the order of the folds.
    cuts
        Their cuts.
    """

    folds: tuple[str, ...]
    cuts: tuple[Cut, ...]

    def do(self, bench: Bench, key: str, into: Path) -> HowWell:
        """Write the four columns, and the matrix of features with them."""
        data = bench.train
        scores = np.full(data.n_docs, np.nan)
        for fold, cut in zip(self.folds, self.cuts, strict=True):
            scores[rows_of(cut.put_aside(data))] = bench.scores(fold)
        inside = self.cuts[0].stage.inside(data)
        rows = rows_of(inside)
        added = np.full((data.n_docs, len(FEATURE_NAMES)), np.nan, np.float32)
        added[rows] = score_features(scores[rows], inside.offsets)
        save_array(into / ADDED, added)
        write_json(beside(into / WIDE), list(FEATURE_NAMES))
        _save_beside(into / WIDE, data.base, added)
        return HowWell(f"{len(rows):,} documents")


def _save_beside(path: Path, base: Floats32, added: Floats32) -> None:
    """Write two matrices side by side, a few rows at a time; a full disk is an error, no signal."""
    shape = (len(base), base.shape[1] + added.shape[1])
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with atomic_write(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(base), ROWS):
            rows = slice(start, start + ROWS)
            file.write(np.hstack([base[rows], added[rows]]).astype("<f4", copy=False).tobytes())


@dataclass(frozen=True)
class Parts:
    """What a model of a stage consists of: keys of trainings, and what is said of its scores."""

    fits: tuple[str, ...]
    scorer: str | None
    scoring: Mapping[str, Any]


@dataclass(frozen=True)
class Score:
    """The scores of a model for the queries outside of a stage, or for another data set.

    Attributes
    ----------
    parts
        The model.
    data
        The name of the data set.
    digest
        Its fingerprint.
    outside
        The stage whose queries are left out, if it is the training data.
    """

    parts: Parts
    data: str
    digest: str
    outside: Stage | None

    def do(self, bench: Bench, key: str, into: Path) -> HowWell:
        """Score documents."""
        data = bench.data(self.data)
        if self.outside is not None:
            data = self.outside.outside(data)
        parts = self.parts
        scores = bench.member(parts.fits, parts.scorer, parts.scoring).predict(data)
        save_array(into / SCORES, scores)
        return HowWell(f"{len(scores):,} documents")


@dataclass(frozen=True)
class Spread:
    """Mean and deviation of a model's scores for documents that it has not seen.

    Every training scores the fold that was for its validation.
    """

    parts: Parts
    cuts: tuple[Cut, ...]
    features: str | None

    def do(self, bench: Bench, key: str, into: Path) -> HowWell:
        """Measure the spread."""
        data = bench.train_with(self.features)
        found = [
            Scaling.fit(bench.model(fit, self.parts.scoring).predict(cut.pair(data)[1])[None])
            for fit, cut in zip(self.parts.fits, self.cuts, strict=True)
        ]
        # Bags rank alike: their average spreads about as far as they do in the mean.
        spread = {
            "mean": float(np.mean([one.means[0] for one in found])),
            "scale": float(np.mean([one.scales[0] for one in found])),
        }
        write_json(into / SPREAD, spread)
        return HowWell(f"deviation {spread['scale']:.4g}")


def read_spread(bench: Bench, key: str) -> tuple[float, float]:
    """Return mean and deviation that a unit has measured."""
    found = read_json(bench.folder.unit(key) / SPREAD)
    return float(found["mean"]), float(found["scale"])


KEY_LENGTH = 20


@dataclass(frozen=True)
class Unit:
    """One piece of work.

    Attributes
    ----------
    name
        What it is, for people.
    work
        What is done, with all that the result depends on; of other units that is their keys.
    needs
        The units that come before.
    cost
        How long it takes, roughly, compared with others.
    """

    name: str
    work: Work
    needs: tuple[Unit, ...]
    cost: float

    @cached_property
    def key(self) -> str:
        """The name of its folder."""
        said = {
            # Units of other code are other units.
            "version": __version__,
            "sources": package_hash(),
            "kind": type(self.work).__name__,
            "work": asdict(self.work),  # type: ignore[call-overload]
        }
        text = json.dumps(said, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


@dataclass(frozen=True)
class Done:
    """How a unit went, and how long it took."""

    how_well: HowWell
    seconds: float


def do_unit(folder: RunFolder, unit: Unit) -> Done:
    """Do a unit in the folder of a run; called in worker processes."""
    begun = time.perf_counter()
    bench = bench_of(folder)
    if bench.folder.is_done(unit.key):  # by a worker that was taken for dead
        return read_done(folder, unit)
    with atomic_folder(bench.folder.unit(unit.key)) as into:
        how_well = unit.work.do(bench, unit.key, into)
        done = Done(how_well, time.perf_counter() - begun)
        sizes = {file.name: file.stat().st_size for file in sorted(into.iterdir())}
        said = {"name": unit.name, "seconds": done.seconds, **asdict(how_well), "sizes": sizes}
        write_json(into / DONE, said)
    bench.folder.checkpoint(unit.key).unlink(missing_ok=True)
    return done


def read_done(folder: RunFolder, unit: Unit) -> Done:
    """Return how a unit went that is done."""
    found = read_json(folder.unit(unit.key) / DONE)
    return Done(HowWell(found["words"], found["value"]), float(found["seconds"]))
