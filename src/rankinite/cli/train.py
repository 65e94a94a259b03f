"""``rankinite train``."""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from rankinite.cli.files import load_ranker, short_names
from rankinite.cli.inspect import importances_table
from rankinite.cli.options import Loading, Parameters, or_text
from rankinite.cli.outputs import (
    Outputs,
    is_model,
    refuse_missing_folders,
    refuse_overwriting,
)
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.rankers.parameters import FROM_DTYPE, RANKER_PARAMETERS

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData
    from rankinite.runs.training import Configuration, Training

log = logging.getLogger("rankinite")

TOP_FEATURES = 5


def train(
    source: Annotated[
        Path | None, typer.Argument(metavar="TRAIN", help="The data set to train on.")
    ] = None,
    valid: Annotated[
        list[Path] | None,
        typer.Option(help="A validation set; may be repeated: the first decides when to stop."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The model file to write, such as model.rk.")
    ] = None,
    ranker: Annotated[
        Any,
        typer.Option(
            metavar="<name>",
            parser=or_text(str, list(RANKER_PARAMETERS)),
            autocompletion=lambda: list(RANKER_PARAMETERS),
            help=f"The ranker, one of {', '.join(RANKER_PARAMETERS)}. (Default: LambdaMART.)",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="<name>",
            help="Other defaults: paper has those of the papers' experiments.",
        ),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(help="A model to start from (LambdaSMART); the new model contains it."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file of options, with the names of flags as keys; flags take precedence."
        ),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the configuration as TOML and exit.")
    ] = False,
    diagnose: Annotated[
        bool,
        typer.Option(
            "--diagnose",
            help="Also write MODEL.diagnostics.csv and .png: round by round, which grades "
            "contribute to the lambdas, which grades rank at the top, how many ranks change, and "
            "whether the lambdas of several measures agree.",
        ),
    ] = False,
    *,
    parameters: Parameters,
    outputs: Outputs,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Train a ranker, and write it to a model file with its configuration beside it.

    MODEL.toml repeats the training: rankinite train --config MODEL.toml. Ctrl-C stops after the
    current tree or epoch; MODEL.checkpoint then keeps what was learned, as it does if the machine
    stops, and the same command resumes and ends with the same model.
    """
    from rankinite.runs.training import configure, flags, read_configuration

    files = {"train": source, "valid": valid, "out": out, "ranker": ranker}
    files["preset"] = None if preset is None else preset.lower()
    files["base"] = base
    from_flags = flags({**_provided({**files, **asdict(loading)}), **parameters.values})
    configuration = configure(*([] if config is None else [read_configuration(config)]), from_flags)
    # Before anything is checked but the options themselves: the files need not exist yet.
    if print_config:
        terminal.show_file(configuration.to_toml())
        return
    out = _checked_out(configuration)
    _check_files(configuration, out, outputs, config, diagnose=diagnose)
    _run(configuration, out, terminal, diagnose=diagnose)


def _provided(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were provided, with paths as text, as a TOML file has them."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(item) for item in value]
        return str(value) if isinstance(value, Path) else value

    return {key: plain(value) for key, value in values.items() if value is not None and value != []}


def _run(configuration: Configuration, out: Path, terminal: Terminal, *, diagnose: bool) -> None:
    from rankinite.models import RANKERS
    from rankinite.runs.training import checkpoint_of, run_training

    # Before the data, which may take minutes to load.
    base = None if configuration.base is None else load_ranker(Path(configuration.base))
    data, sets = _load_sets(configuration, terminal)
    progress = terminal.progress()
    try:
        with Interruption() as interruption:
            done = run_training(
                configuration,
                data,
                sets,
                base,
                out,
                should_stop=interruption.after_round,
                progress=progress,
                diagnose=diagnose,
            )
    except KeyboardInterrupt:
        if checkpoint_of(out).exists():
            log.info(
                "stopped; %s keeps the %s, and the same command resumes from there",
                checkpoint_of(out),
                RANKERS[configuration.ranker].rounds,
            )
        raise
    _show(terminal, done)


class Interruption:
    """Treats Ctrl-C as a request to stop after the current round; a second one stops at once.

    Before the first round is done there is nothing to keep, so the first one stops at once too.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self.has_rounds = False
        self.previous_handler: Any = None

    def after_round(self) -> bool:
        """Return whether to stop; called after every round."""
        self.has_rounds = True
        return self.is_requested

    def __enter__(self) -> Self:
        self.previous_handler = signal.getsignal(signal.SIGINT)
        # Under nohup, and behind a shell's &, Ctrl-C is meant for others.
        if self.previous_handler is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_problem: object) -> None:
        signal.signal(signal.SIGINT, self.previous_handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_requested or not self.has_rounds:
            self.previous_handler(number, frame)
            return
        # Nothing is raised inside a round: the trainer asks `after_round` when the round is whole.
        self.is_requested = True


def _checked_out(configuration: Configuration) -> Path:
    """Return the model file; refuse a training without one, or without data."""
    for key, value in (
        ("the data set TRAIN", configuration.train),
        ("a model file --out", configuration.out),
    ):
        if value is None:
            raise UsageError(f"train: name {key}; as in rankinite train train.txt --out model.rk")
    return Path(str(configuration.out))


def _check_files(
    configuration: Configuration,
    out: Path,
    outputs: Outputs,
    config: Path | None,
    *,
    diagnose: bool,
) -> None:
    """Refuse now what would fail after hours of training."""
    from rankinite.runs.training import checkpoint_of, files_beside

    refuse_missing_folders([out])
    configuration.to_toml()  # which refuses names that it cannot hold
    repeated, *diagnosed = files_beside(out, diagnose=diagnose)
    named = (configuration.train, configuration.base, *configuration.valid)
    inputs = [Path(name) for name in (*named, configuration.loading.get("query_file")) if name]
    refuse_overwriting("train", [out, repeated, *diagnosed, checkpoint_of(out)], inputs)
    # The configuration of a model repeats its training, which then writes it again.
    made_here = _is_configuration(repeated)
    refuse_overwriting("train", [out, *diagnosed, *([] if made_here else [repeated])], [config])
    # What is beside a model file was made with it.
    beside = [] if is_model(out) else [*diagnosed, *([] if made_here else [repeated])]
    outputs.check("train", [], models=[out], files=beside)


def _is_configuration(path: Path) -> bool:
    """Tell whether a file is a configuration that a training has written."""
    from rankinite.runs.training import CONFIGURATION

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(CONFIGURATION)) == CONFIGURATION.encode()


def _load_sets(
    configuration: Configuration, terminal: Terminal
) -> tuple[RankingData, dict[str, RankingData]]:
    """Load the data sets; the top grade of the first is that of all."""
    loading = Loading(**configuration.loading)
    loading.refuse_query_file("train", 1 + len(configuration.valid))
    source, paths = Path(str(configuration.train)), [Path(name) for name in configuration.valid]
    # Nets have no such parameter, and take no categories.
    named = configuration.parameters.get("categorical_features", FROM_DTYPE)
    texts = [] if named == FROM_DTYPE else [name for name in named if isinstance(name, str)]
    data = loading.load(source, terminal, categorical=texts)
    sets = {
        name: loading.load_alike(data, source, path, terminal)
        for name, path in zip(_set_names(configuration, paths), paths, strict=True)
    }
    return data, sets


def _set_names(configuration: Configuration, paths: Sequence[Path]) -> list[str]:
    """Return names of validation sets, other than what a ranker calls the training set."""
    from rankinite.rankers.lambdarank import TRAIN, LambdaRank

    # A net may measure its training set too, under this name, in the same history.
    taken = [Path(TRAIN)] if configuration.ranker == LambdaRank.__name__ else []
    names = short_names([*taken, *paths])[len(taken) :]
    if len(set(names)) < len(names):
        raise UsageError("train: a validation set was named twice; name each once")
    return names


def _show(terminal: Terminal, done: Training) -> None:
    from rankinite.explanation.inspection import importances_of, kept_rounds, rounds_as_json

    ranker = done.ranker
    top = importances_of(ranker)[:TOP_FEATURES]
    if terminal.json:
        terminal.show_json(
            {
                "ranker": type(ranker).__name__,
                **rounds_as_json(ranker),
                "values": done.values,
                "importances": [importance.as_json() for importance in top],
                "wrote": [str(path) for path in done.written],
            }
        )
        return
    kept = kept_rounds(ranker)
    rounds = f"kept {kept:,} of {ranker.n_rounds_:,} {ranker.rounds}"
    best = "" if kept == ranker.best_round_ else f"; the best round was {ranker.best_round_:,}"
    terminal.say(f"{type(ranker).__name__}: {rounds}{best}")
    _show_values(terminal, done.values)
    if top:
        terminal.show(importances_table(top))
    terminal.say_written(done.written)


def _show_values(terminal: Terminal, values: Mapping[str, Mapping[str, float]]) -> None:
    if not values:
        return
    measures = list(next(iter(values.values())))
    rows = [[name, *(f"{value:.4f}" for value in means.values())] for name, means in values.items()]
    terminal.show_table("Means over queries", ["Set", *measures], rows)
    terminal.say("")
