"""A single training: ``rankinite train`` without the command line.

Its `Configuration`, everything that the model depends on, is a flat TOML file. A key of the file is
a flag with underscores, and what a parameter may be comes from its declaration. `run_training` fits
the ranker and writes its files, with `write_diagnostics` those of its diagnostics.
"""

from __future__ import annotations

import difflib
import logging
import math
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankinite.core import __version__
from rankinite.core.errors import FileFormatError, UsageError
from rankinite.core.figures import Line, Panel, draw_panels
from rankinite.core.files import atomic_write, remove_unfinished_of
from rankinite.core.params import (
    YES_OR_NO,
    Constraint,
    OneOf,
    Real,
    Text,
    Whole,
    check,
    file_parameters_of,
    parameters_of,
    preset_of,
)
from rankinite.core.progress import Progress
from rankinite.data.memmap import fingerprint
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import evaluate
from rankinite.evaluation.tables import csv_text
from rankinite.models import RANKERS
from rankinite.rankers.aliases import explain_alias
from rankinite.rankers.diagnostic_curves import AGREEMENT, CHANGES, SHARE, TOP
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.lambdarank import TRAIN, LambdaRank
from rankinite.rankers.ranker import Ranker
from rankinite.runs.toml import Texts, from_toml, toml_constraint, toml_of

if TYPE_CHECKING:
    from rankinite.models import TrainedRanker

log = logging.getLogger("rankinite")

DEFAULT_RANKER = "LambdaMART"
PRESET = "preset"
BASE = "base"
Curve = Sequence[float]
PANELS_A_ROW = 2
# The beginning of the file that is written beside a model.
CONFIGURATION = "# A training of rankinite"

FINGERPRINTS = "fingerprints"
DIGITS = 16  # of a fingerprint in messages
FILES: Mapping[str, Constraint] = {
    "train": Text(),
    "valid": Texts(),
    BASE: Text(),
    "out": Text(),
    FINGERPRINTS: Texts(),
}
LOADING: Mapping[str, Constraint] = {
    "top_grade": Real(0),
    "labels": Text(),
    "group": YES_OR_NO,
    "label_column": Text(),
    "qid_column": Text(),
    "doc_id_column": Text(),
    "n_features": Whole(1),
    "query_file": Text(),
    "no_comments": YES_OR_NO,
}


@dataclass(frozen=True)
class Configuration:
    """Ranker, parameters and files of a training.

    Attributes
    ----------
    ranker
        Name of the ranker's class.
    train, valid, base, out
        The files, as they were named.
    loading
        Options for loading data sets that were set, without defaults.
    parameters
        All parameters of the ranker except its base.
    fingerprints
        Those of the training data and of each validation set, as they were in the training that
        wrote the configuration; empty before.
    """

    ranker: str
    train: str | None
    valid: tuple[str, ...]
    base: str | None
    out: str | None
    loading: Mapping[str, Any]
    parameters: Mapping[str, Any]
    fingerprints: tuple[str, ...] = ()

    def new_ranker(self, base: Ranker | None = None) -> Ranker:
        """Return the ranker, not yet fitted."""
        parameters = dict(self.parameters)
        if base is not None:
            parameters[BASE] = base
        return RANKERS[self.ranker](**parameters)

    def to_toml(self) -> str:
        """Return the text of a file that `read_configuration` reads."""
        files = {"train": self.train, "valid": list(self.valid), BASE: self.base, "out": self.out}
        # TOML has no None: what was not named is left out.
        named = {key: value for key, value in files.items() if value}
        # All parameters, also those at their defaults: the file repeats the training even if a
        # later version has other defaults.
        tables = [{"ranker": self.ranker, **named}, self.loading, self.parameters]
        if self.fingerprints:
            tables.append({FINGERPRINTS: list(self.fingerprints)})
        blocks = [
            "\n".join(f"{key} = {toml_of(value)}" for key, value in table.items())
            for table in tables
            if table
        ]
        header = f"{CONFIGURATION} {__version__}: rankinite train --config FILE repeats it."
        return "\n\n".join([header, *blocks]) + "\n"


@dataclass(frozen=True)
class Source:
    """Values of a file or of flags, with the spelling of their keys for error messages."""

    owner: str
    values: Mapping[str, Any]
    spell: Callable[[str], str] = str


def flags(values: Mapping[str, Any]) -> Source:
    """Return the values of flags of ``rankinite train``."""
    return Source("train", values, lambda key: "--" + key.replace("_", "-"))


def read_configuration(path: str | Path) -> Source:
    """Read a TOML file, whose values `configure` checks."""
    try:
        return Source(str(path), tomllib.loads(Path(path).read_text("utf-8")))
    except FileNotFoundError:
        raise FileFormatError(path, "there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise FileFormatError(path, f"is no TOML file: {problem}") from None


def configure(*sources: Source) -> Configuration:
    """Return the configuration of several sources, of which later ones override earlier ones."""
    # The ranker first, as it decides which other keys there are.
    name = _ranker_name(sources)
    known = keys_of(name)
    values: dict[str, Any] = {}
    for source in sources:
        for key, value in source.values.items():
            if key not in known:
                problem = unknown_key(source.spell(key), key, name, known)
                hint = problem or f"there is no key {key!r}; --print-config shows what there is"
                raise UsageError(f"{source.owner}: {hint}")
            check(source.owner, source.spell(key), value, known[key])
            values[key] = from_toml(value, known[key])
    defaults = defaults_of(name, values.get(PRESET))
    parameters = {key: values.get(key, default) for key, default in defaults.items()}
    # Wrong measures are refused now, and not when the data are loaded.
    RANKERS[name](**parameters).check_objective()
    return Configuration(
        ranker=name,
        train=values.get("train"),
        valid=tuple(values.get("valid", ())),
        base=values.get(BASE),
        out=values.get("out"),
        loading={key: values[key] for key in LOADING if key in values},
        parameters=parameters,
        fingerprints=tuple(values.get(FINGERPRINTS, ())),
    )


def keys_of(ranker: str) -> dict[str, Constraint]:
    """Return the keys of a configuration of the ranker, with what they may be."""
    keys: dict[str, Constraint] = {"ranker": OneOf(list(RANKERS)), **FILES, **LOADING}
    if BASE not in parameters_of(RANKERS[ranker]):
        del keys[BASE]
    return keys | parameter_keys(ranker)


def parameter_keys(ranker: str) -> dict[str, Constraint]:
    """Return the parameters of the ranker and its preset, with what a TOML file can set them to."""
    constraints = {
        name: toml_constraint(declared.file_constraint)
        for name, declared in file_parameters_of(RANKERS[ranker]).items()
        if declared.file_constraint is not None
    }
    return {**constraints, PRESET: OneOf(list(RANKERS[ranker].presets))}


def defaults_of(ranker: str, preset: str | None = None) -> dict[str, Any]:
    """Return the defaults of the ranker's parameters, without its base; or those of a preset."""
    declared = file_parameters_of(RANKERS[ranker])
    defaults = {name: parameter.default for name, parameter in declared.items()}
    return {**defaults, **preset_of(RANKERS[ranker], preset)}


def _ranker_name(sources: Sequence[Source]) -> str:
    name = DEFAULT_RANKER
    for source in sources:
        name = source.values.get("ranker", name)
        check(source.owner, source.spell("ranker"), name, OneOf(list(RANKERS)))
    return name


def unknown_key(spelled: str, key: str, ranker: str, known: Collection[str]) -> str | None:
    """Return the sentence for an unknown key; None if there is nothing to advise.

    Parameters
    ----------
    spelled, key
        The key as it was spelled, and as a file spells it.
    ranker
        Name of the ranker's class.
    known
        The known keys.
    """
    # A parameter of another ranker is no misspelling of one of this ranker.
    others = [other for other in RANKERS if key in keys_of(other)]
    if others:
        return f"{ranker} has no {spelled}; {' and '.join(others)} can have it"
    advice = explain_alias(ranker, key, known)
    if advice is None:
        near = difflib.get_close_matches(key, known, 1)
        advice = f"did you mean {near[0]!r}?" if near else None
    return None if advice is None else f"there is no key {key!r}; {advice}"


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
        Measures of the validation sets, by set and measure; also of the training set if the ranker
        measured it.
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
    # Of a training that was killed; this one may end before it writes a checkpoint.
    remove_unfinished_of(checkpoint, out, *files_beside(out, diagnose=diagnose))
    configuration = _with_fingerprints(configuration, train, valid)
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
    # fit ends alike after its last round and after a round at which it was stopped; a model of the
    # latter must not be taken for finished.
    if should_stop():
        raise KeyboardInterrupt
    ranker.save(out)
    beside = files_beside(out, diagnose=diagnose)
    with atomic_write(beside[0]) as file:
        file.write(configuration.to_toml().encode())
    if diagnostics is not None:
        _, table, figure = beside
        write_diagnostics(diagnostics, ranker, table, figure)
    # Last: a crash while other files are written costs no training.
    checkpoint.unlink(missing_ok=True)
    values = {name: _values_of(ranker, name, valid.get(name)) for name in ranker.history_}
    return Training(ranker, (out, *beside), values)


def _with_fingerprints(
    configuration: Configuration, train: RankingData, valid: Mapping[str, RankingData]
) -> Configuration:
    """Return a configuration of these data; warn if it was written for other ones."""
    digests = tuple(fingerprint(data) for data in (train, *valid.values()))
    names = ("training data", *(f"validation data {name!r}" for name in valid))
    # Sets may have been added or left out by flags: those at the same place are compared.
    for name, before, now in zip(names, configuration.fingerprints, digests, strict=False):
        if before != now:
            log.warning(
                "the %s are not those of the configuration (fingerprint %s, now %s); the model "
                "will be another one",
                name,
                before[:DIGITS],
                now[:DIGITS],
            )
    return replace(configuration, fingerprints=digests)


def fingerprint_beside(model: Path) -> str | None:
    """Return the fingerprint of a model's training data from the configuration beside it."""
    try:
        values = tomllib.loads(files_beside(model)[0].read_text("utf-8"))
        digests = values.get(FINGERPRINTS)
    except (OSError, ValueError):  # no configuration, or somebody else's file
        return None
    if isinstance(digests, list) and digests and isinstance(digests[0], str):
        return digests[0]
    return None


def _values_of(ranker: TrainedRanker, set_name: str, data: RankingData | None) -> dict[str, float]:
    """Return the measures of a set by the ranker as it was kept, in the order of its measures.

    The history of a ranker that resumed from a checkpoint may have them in another order.
    """
    # The mean over rounds is none of the rounds whose values are in the history.
    if data is not None and getattr(ranker, "n_trees_", ranker.best_round_) != ranker.best_round_:
        return dict(evaluate(ranker.predict(data), data, ranker.validation_measures()).mean)
    curves = ranker.history_[set_name]
    last = ranker.best_round_ - 1
    return {str(measure): curves[str(measure)][last] for measure in ranker.validation_measures()}


def files_beside(out: Path, *, diagnose: bool = False) -> list[Path]:
    """Return the files that a training writes beside a model: its configuration, diagnostics."""
    endings = [".toml", *([".diagnostics.csv", ".diagnostics.png"] if diagnose else [])]
    return [_beside(out, ending) for ending in endings]


def checkpoint_of(out: Path) -> Path:
    """Return the checkpoint file of a model."""
    return _beside(out, ".checkpoint")


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


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
    curves = _curves(diagnostics, ranker)
    rows = (
        [number, *("" if math.isnan(value) else f"{value:.6g}" for value in values)]
        for number, *values in zip(diagnostics.rounds, *curves.values(), strict=True)
    )
    with atomic_write(table) as file:
        file.write(csv_text(["round", *curves], rows).encode())
    draw_panels(diagnosed(diagnostics, ranker), figure, per_row=PANELS_A_ROW)


def _curves(diagnostics: Diagnostics, ranker: TrainedRanker) -> dict[str, Curve]:
    """Return all curves of the training data and of the validation sets.

    Validation sets are measured after every round, and diagnosed are some of these.
    """
    validation = {
        f"{measure} of {name}": [curve[number - 1] for number in diagnostics.rounds]
        for name, measured in ranker.history_.items()
        for measure, curve in measured.items()
        # The history of a net may hold its training set, of which diagnostics have curves anyway.
        if not (isinstance(ranker, LambdaRank) and name == TRAIN)
    }
    return {**diagnostics.curves, **validation}


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
        ("Lambdas that agree with the first", "share of documents", _starting(AGREEMENT, curves)),
        ("Who moves highly relevant documents", "signed share of lambda", _starting(SHARE, curves)),
        (f"Grades in the top {top}", "share of ranks", _starting(TOP.format(top), curves)),
        (f"Rank changes and {measure}", "mean over queries", {**measured, **changes}),
    ]
    unit = ranker.rounds.removesuffix("s")
    panels = []
    for title, y_label, shown in drawn:
        lines = tuple(Line(name, diagnostics.rounds, curve) for name, curve in shown.items())
        if lines:
            panels.append(Panel(title, unit, y_label, lines, legend_beside=True))
    return panels


def _starting(prefix: str, curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Return the curves whose names begin with a prefix, by the rest of their names."""
    return {
        name.removeprefix(f"{prefix} "): curve
        for name, curve in curves.items()
        if name.startswith(f"{prefix} ")
    }
