"""A single training: ``rankinite train`` without the command line, and files of its diagnostics."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankinite.core.figures import Line, Panel, draw_panels
from rankinite.core.files import atomic_write
from rankinite.core.progress import Progress
from rankinite.data.ranking_data import RankingData
from rankinite.models import TrainedRanker
from rankinite.rankers.diagnostic_curves import AGREEMENT, CHANGES, SHARE, TOP
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.lambdarank import TRAIN, LambdaRank
from rankinite.rankers.ranker import Ranker
from rankinite.runs.configuration import Configuration

Curve = Sequence[float]
PANELS_A_ROW = 2


def write_diagnostics(
    diagnostics: Diagnostics, ranker: TrainedRanker, table: Path, figure: Path
) -> None:
    """Write the diagnostics of a fit.

    Parameters
    ----------
    diagnostics
        The diagnostics that were passed to the fit.
    ranker
        The fitted ranker, whose history has the curves of the validation sets.
    table, figure
        The files: CSV, one row per round and one column per curve; and PNG.
    """
    _write_table(diagnostics.rounds, _curves(diagnostics, ranker), table)
    draw_panels(diagnosed(diagnostics, ranker), figure, per_row=PANELS_A_ROW)


def _curves(diagnostics: Diagnostics, ranker: TrainedRanker) -> dict[str, Curve]:
    """Return all curves of the training data and of the validation sets."""
    return {**diagnostics.curves, **_validation_curves(diagnostics, ranker)}


def _validation_curves(diagnostics: Diagnostics, ranker: TrainedRanker) -> dict[str, Curve]:
    """Return the curves of the validation sets, at the rounds with diagnostics."""
    return {
        f"{measure} of {name}": [curve[number - 1] for number in diagnostics.rounds]
        for name, measured in ranker.history_.items()
        for measure, curve in measured.items()
        # The history of a net may hold its training set, of which diagnostics have curves anyway.
        if not (isinstance(ranker, LambdaRank) and name == TRAIN)
    }


def _write_table(rounds: Sequence[int], curves: Mapping[str, Curve], path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["round", *curves])
    for number, *values in zip(rounds, *curves.values(), strict=True):
        writer.writerow([number, *(_cell(value) for value in values)])
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def diagnosed(diagnostics: Diagnostics, ranker: TrainedRanker) -> list[Panel]:
    """Return a panel for each kind of curves; the last shows two kinds.

    Parameters
    ----------
    diagnostics, ranker
        The diagnostics that were passed to a fit, and the fitted ranker.
    """
    curves, top = _curves(diagnostics, ranker), diagnostics.top
    measure = str(ranker.validation_measures()[0])
    measured = {name: curve for name, curve in curves.items() if name.startswith(f"{measure} of ")}
    changes = {f"{CHANGES} {name}": curve for name, curve in _starting(CHANGES, curves).items()}
    drawn = [
        (
            "Lambdas that agree with the first",
            "share of documents",
            _starting(AGREEMENT, curves),
        ),
        (
            "Who moves highly relevant documents",
            "signed share of lambda",
            _starting(SHARE, curves),
        ),
        (f"Grades in the top {top}", "share of ranks", _starting(TOP.format(top), curves)),
        (f"Rank changes and {measure}", "mean over queries", {**measured, **changes}),
    ]
    unit = ranker.rounds.removesuffix("s")
    return [
        Panel(title, unit, y_label, _lines(diagnostics.rounds, shown), legend_beside=True)
        for title, y_label, shown in drawn
        if shown
    ]


def _starting(prefix: str, curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Return the curves whose names begin with a prefix, by the rest of their names."""
    return {
        name.removeprefix(f"{prefix} "): curve
        for name, curve in curves.items()
        if name.startswith(f"{prefix} ")
    }


def _lines(rounds: Sequence[int], curves: Mapping[str, Curve]) -> tuple[Line, ...]:
    return tuple(Line(name, rounds, curve) for name, curve in curves.items())


@dataclass(frozen=True)
class Training:
    """The result of a training.

    Attributes
    ----------
    ranker
        The fitted ranker.
    written
        The files that were written.
    values
        Measures of the validation sets after the best round, by set and measure; also of the
        training set if the ranker measured it.
    """

    ranker: TrainedRanker
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
    """Fit a ranker, or resume from its checkpoint, and write its model and configuration.

    Parameters
    ----------
    configuration
        The ranker and its parameters.
    train, valid, base
        The data sets and the base.
    out
        The model file. Beside it are the configuration, with the suffix ``.toml``, and until all
        else is written the checkpoint, with the suffix ``.checkpoint``.
    should_stop
        Called after every round; True ends the training like Ctrl-C, and leaves the checkpoint.
    progress
        Progress reporter.
    diagnose
        Whether to write diagnostics as well: ``.diagnostics.csv`` and ``.diagnostics.png``.
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
        table, figure = (_beside(out, f".diagnostics.{suffix}") for suffix in ("csv", "png"))
        write_diagnostics(diagnostics, ranker, table, figure)
        written += [table, figure]
    checkpoint.unlink(missing_ok=True)
    values = {name: _kept_values(ranker, name) for name in ranker.history_}
    return Training(ranker, tuple(written), values)


def _kept_values(ranker: TrainedRanker, set_name: str) -> dict[str, float]:
    """Return the measures of a set after the best round, in the order of the ranker's measures.

    The history of a ranker that resumed from a checkpoint may have them in another order.
    """
    curves = ranker.history_[set_name]
    last = ranker.kept_rounds_ - 1
    return {str(measure): curves[str(measure)][last] for measure in ranker.validation_measures()}


def checkpoint_of(out: Path) -> Path:
    """Return the checkpoint file of a model."""
    return _beside(out, ".checkpoint")


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
