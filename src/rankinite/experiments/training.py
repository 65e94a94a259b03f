"""A training from data in memory to files: the model, and the configuration that repeats it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankinite.core.files import atomic_write
from rankinite.core.progress import Progress
from rankinite.data.ranking_data import RankingData
from rankinite.experiments.configuration import Configuration
from rankinite.experiments.diagnosing import write_diagnostics
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.learner import Learner
from rankinite.rankers.ranker import Ranker


@dataclass(frozen=True)
class Training:
    """What a training came to.

    Attributes
    ----------
    ranker
        The fitted ranker.
    written
        The files that were written.
    values
        The measures of the validation sets at what was kept, in the order of both; of the training
        set too where the ranker watched it.
    """

    ranker: Learner
    written: tuple[Path, ...]
    values: Mapping[str, Mapping[str, float]]


def run_training(
    configuration: Configuration,
    train: RankingData,
    valid: Mapping[str, RankingData],
    base: Ranker | None,
    out: Path,
    *,
    should_stop: Callable[[], bool],
    progress: Progress,
    diagnose: bool = False,
) -> Training:
    """Fit a ranker, and write its model and configuration; or go on with what was begun.

    Parameters
    ----------
    configuration
        What to fit, with which parameters.
    train, valid, base
        The data sets and the base, loaded.
    out
        The model file. The configuration stands beside it, with ``.toml`` behind the name; so
        does the checkpoint, with ``.checkpoint``, until all else is written.
    should_stop
        Asked after every round; True leaves the checkpoint, and counts as Ctrl-C.
    progress
        Who wants to know how far it is.
    diagnose
        Whether to write diagnostics, too: ``.diagnostics.csv`` and ``.diagnostics.png``.
    """
    checkpoint = checkpoint_of(out)
    diagnostics = Diagnostics() if diagnose else None
    ranker: Any = configuration.new_ranker(base)
    ranker.fit(
        train,
        valid=dict(valid) or None,
        callbacks=[lambda _done: should_stop()],
        progress=progress,
        checkpoint=checkpoint,
        diagnostics=diagnostics,
    )
    if should_stop():
        raise KeyboardInterrupt
    ranker.save(out)
    with atomic_write(_beside(out, ".toml")) as file:
        file.write(configuration.to_toml().encode())
    written = [out, _beside(out, ".toml")]
    if diagnostics is not None:
        told = [_beside(out, f".diagnostics.{ending}") for ending in ("csv", "png")]
        write_diagnostics(diagnostics, ranker, *told)
        written += told
    checkpoint.unlink(missing_ok=True)
    values = {name: _kept_values(ranker, name) for name in ranker.history_}
    return Training(ranker, tuple(written), values)


def _kept_values(ranker: Learner, set_name: str) -> dict[str, float]:
    """Return the measures of a validation set; a checkpoint keeps them, but not their order."""
    curves = ranker.history_[set_name]
    last = ranker.kept_rounds_ - 1
    return {str(measure): curves[str(measure)][last] for measure in ranker._measures()}


def checkpoint_of(out: Path) -> Path:
    """Return the file that keeps what was learned of a model until it is written."""
    return _beside(out, ".checkpoint")


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
