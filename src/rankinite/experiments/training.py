"""A training from data in memory to files: the model, and the configuration that repeats it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.errors import DataError
from rankinite.core.files import atomic_write
from rankinite.core.progress import Progress
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import evaluate
from rankinite.experiments.configuration import Configuration
from rankinite.experiments.diagnosing import write_diagnostics
from rankinite.measures.text import parse_measures
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
    _check_sets(ranker, valid)
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


def _check_sets(ranker: Learner, valid: Mapping[str, RankingData]) -> None:
    """Refuse validation sets in which no query counts: they can decide nothing."""
    for name, data in valid.items():
        counts = evaluate(np.zeros(data.n_docs), data, ranker._measures()).n_queries
        for measure, n_queries in counts.items():
            if n_queries == 0:
                raise DataError(
                    f"train: no query of the validation set {name!r} counts for {measure}, as "
                    "none has a relevant document; give another set, or another --valid-measure"
                )


def _kept_values(ranker: Learner, set_name: str) -> dict[str, float]:
    """Return the measures of a validation set; a checkpoint keeps them, but not their order."""
    curves = ranker.history_[set_name]
    measures = curves if ranker.valid_measure is None else parse_measures(ranker.valid_measure)
    return {str(measure): curves[str(measure)][ranker.kept_rounds_ - 1] for measure in measures}


def checkpoint_of(out: Path) -> Path:
    """Return the file that keeps what was learned of a model until it is written."""
    return _beside(out, ".checkpoint")


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
