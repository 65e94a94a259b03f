"""The files of a command: models and scores that it reads, data sets and scores that it writes.

What it may write where is in ``cli/outputs.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rankinite.cli.outputs import Outputs
from rankinite.cli.pipes import is_pipe, readable, writable
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import DataError, FileFormatError, UsageError
from rankinite.core.format import some_of
from rankinite.data.formats import format_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankinite.data.ranking_data import RankingData
    from rankinite.ensembles.ensemble import Ensemble
    from rankinite.models import TrainedRanker

MODEL_SUFFIX = ".rk"
RUN_SUFFIXES = (".run", ".trec")


# Models and scores


def load_ranker(path: Path) -> TrainedRanker | Ensemble:
    """Load a model file."""
    from rankinite.models import load_model

    refuse_missing(path, "a model file")
    with readable(path) as file:
        return cast("TrainedRanker | Ensemble", load_model(file))


def refuse_missing(path: Path, expected: str) -> None:
    """Refuse a file that does not exist, or is a folder."""
    if path.is_dir():
        raise FileFormatError(path, f"this is a directory; expected {expected}")
    if not path.exists() and not is_pipe(path):
        raise FileFormatError(path, "there is no such file")


def refuse_narrow_text(
    path: Path, data: RankingData, expected: Sequence[str], known: str = ""
) -> None:
    """Explain what to do with a text file that lacks the last features: they may be all 0."""
    names = data.feature_names
    # A sparse text file does not say how many features there are: a part of the data in which the
    # last ones are 0 everywhere looks narrower than the rest. Other formats name their columns.
    may_lack = "n_features" in format_of(path).options
    if may_lack and tuple(expected[: len(names)]) == names != tuple(expected):
        raise DataError(
            f"{path}: lacks the features {some_of(expected[len(names) :])}{known}; if they are 0 "
            f"everywhere and were left out, add --n-features {len(expected)}"
        )


@dataclass(frozen=True)
class Member:
    """A ranker in a file.

    Attributes
    ----------
    name
        Name of the file without its suffix.
    path
        The file.
    ranker
        The ranker; None if the file contains scores.
    """

    name: str
    path: Path
    ranker: TrainedRanker | Ensemble | None

    def scores(self, data: RankingData, source: Path, missing: str) -> NDArray[np.float64]:
        """Return the scores for a data set, which was loaded from ``source``."""
        if self.ranker is not None:
            refuse_narrow_text(source, data, self.ranker.feature_names_)
            return self.ranker.predict(data)
        from rankinite.data.scores import load_scores

        with readable(self.path) as file:
            return load_scores(file, data, missing=missing, order=data.rows)


def load_members(command: str, files: Sequence[Path]) -> list[Member]:
    """Load models, and check that files of scores exist; no file may occur twice."""
    refuse_repeated(command, files)
    return [
        Member(name, path, load_ranker(path) if _is_model(path) else None)
        for name, path in zip(short_names(files), files, strict=True)
    ]


def refuse_repeated(command: str, files: Sequence[Path]) -> None:
    """Refuse a file that was given twice: an average would count it twice."""
    for k, path in enumerate(files):
        if path.resolve() in [other.resolve() for other in files[:k]]:
            raise UsageError(f"{command}: {path} was given twice; give each file once")


def _is_model(path: Path) -> bool:
    refuse_missing(path, "a model file or scores")
    if path.suffix == MODEL_SUFFIX:
        return True
    from rankinite.core.container import ZIP_MAGIC
    from rankinite.interop.importing import HEAD, kind_of

    with readable(path) as named, named.open("rb") as file:
        head = file.read(HEAD)
    return head.startswith(ZIP_MAGIC) or kind_of(head) is not None


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the stems of files, with as many folders as make them distinct.

    If only the suffixes differ, names are used instead of stems. Bytes that are not UTF-8 are
    escaped.

    Examples
    --------
    >>> short_names([Path("runs/bm25.scores.gz"), Path("runs/tree.scores")])
    ['bm25', 'tree']
    >>> short_names([Path("runs/bm25.txt"), Path("runs/bm25.run")])
    ['bm25.txt', 'bm25.run']
    """
    names: list[str] = []
    for shown in ([_without_suffix(path) for path in paths], paths):
        for length in range(1, max([1, *(len(path.parts) for path in shown)]) + 1):
            names = [_as_text(Path(*path.parts[-length:])) for path in shown]
            if len(set(names)) == len(names):
                return names
    return names


def _without_suffix(path: Path) -> Path:
    """Return a path without its suffix; the current folder and the root have no name."""
    name = path.name.removesuffix(".gz") or path.name
    return path.with_name(Path(name).stem) if name else path


def _as_text(path: Path) -> str:
    # The system allows any bytes in names; tables and JSON are UTF-8.
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


# Writing


def save_all(
    sets: Iterable[tuple[Path, RankingData]],
    outputs: Outputs,
    terminal: Terminal,
    others: Sequence[Path] = (),
) -> None:
    """Save data sets into a folder one after the other, and list them on the terminal.

    ``others`` are files that have been written already and are listed with them.
    """
    from rankinite.data.formats import save

    written = []
    for path, data in sets:
        path.parent.mkdir(parents=True, exist_ok=True)
        # On a full disk: what cannot be listed as ours would be in the way of the next try.
        with outputs.recording([path]):
            save(data, path, progress=terminal.progress())
        written.append((path, data.n_queries, data.n_docs))
        # `sets` may be a generator: the next set needs the memory while it is being made.
        del data
    terminal.show_written(written, others)


def write_scores(scores: NDArray[np.float64], data: RankingData, out: Path, run_name: str) -> None:
    """Write scores to a file: a TREC run if its name says so, else in the order of the data."""
    from rankinite.data.scores import save_scores

    with writable(out) as file:
        if out.name.removesuffix(".gz").endswith(RUN_SUFFIXES):
            # A tag with blanks would be two columns.
            save_scores(scores, data, file, run="-".join(run_name.split()) or "rankinite")
        else:
            save_scores(in_file_order(scores, data), data, file)


def in_file_order(scores: NDArray[np.float64], data: RankingData) -> NDArray[np.float64]:
    """Return scores in the order of the file, which --group may have changed."""
    if data.rows is None:
        return scores
    ordered = scores.copy()
    ordered[data.rows] = scores
    return ordered
