"""The files of a command: models and scores that it reads, and what it may write where.

Whatever can be refused is refused before the work begins: hours of training must not end with a
folder that does not exist, or with a model in the place of the data that it was trained on.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rankinite.cli.terminal import Terminal
from rankinite.core.errors import DataError, FileFormatError, UsageError
from rankinite.core.format import some_of
from rankinite.data.formats import FormatName, format_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankinite.data.ranking_data import RankingData
    from rankinite.ensembles.ensemble import Ensemble
    from rankinite.models import TrainedRanker

MODEL_SUFFIX = ".rk"
ZIP_MAGIC = b"PK\x03\x04"  # model files are zip archives
RUN_SUFFIXES = (".run", ".trec")


# Models and scores


def load_ranker(path: Path) -> TrainedRanker | Ensemble:
    """Load a model file."""
    from rankinite.models import load_model

    if not path.is_file():
        is_folder = "this is a directory; expected a model file"
        raise FileFormatError(path, is_folder if path.is_dir() else "there is no such file")
    return cast("TrainedRanker | Ensemble", load_model(path))


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

        return load_scores(self.path, data, missing=missing, order=data.rows)


def load_members(command: str, files: Sequence[Path]) -> list[Member]:
    """Load models, and check that files of scores exist; no file may occur twice."""
    # An average would count it twice.
    for k, path in enumerate(files):
        if path.resolve() in [other.resolve() for other in files[:k]]:
            raise UsageError(f"{command}: {path} was given twice; give each member once")
    return [
        Member(name, path, load_ranker(path) if _is_model(path) else None)
        for name, path in zip(short_names(files), files, strict=True)
    ]


def _is_model(path: Path) -> bool:
    if not path.exists():
        raise FileFormatError(path, "there is no such file")
    if path.is_dir():
        raise FileFormatError(path, "this is a directory; expected a model file or scores")
    # A pipe, such as <(zcat scores.gz), can be read only once: its first bytes must stay in it.
    if path.suffix == MODEL_SUFFIX or not path.is_file():
        return path.suffix == MODEL_SUFFIX
    with path.open("rb") as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC


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


# Where to write


def folder_targets(
    command: str, sources: Sequence[Path], out: Path, suffix: FormatName | None
) -> list[Path]:
    """Return a file in a folder for every source: its name, with the suffix of another format."""
    targets = [out / target_name(source, suffix) for source in sources]
    refuse_twice(command, targets)
    refuse_overwriting(command, targets, sources)
    return targets


def target_name(source: Path, suffix: FormatName | None) -> str:
    """Return the name of the file that is made of a source.

    Examples
    --------
    >>> target_name(Path("data/train.txt.gz"), None)
    'train.txt.gz'
    >>> target_name(Path("data/train.txt.gz"), "parquet")
    'train.parquet'
    """
    if suffix is None:
        return source.name
    return f"{Path(source.name.removesuffix('.gz')).stem}.{suffix}"


def refuse_twice(command: str, targets: Sequence[Path]) -> None:
    """Refuse to write two files with the same name."""
    for target in targets:
        if targets.count(target) > 1:
            raise UsageError(
                f"{command}: two files would be written to {target}; choose different names"
            )


def refuse_overwriting(command: str, targets: Sequence[Path], sources: Sequence[Path]) -> None:
    """Refuse to overwrite a file that the command reads."""
    for source in sources:
        if any(_are_same(target, source) for target in targets):
            raise UsageError(f"{command}: this would overwrite {source}; write to another place")


def _are_same(path: Path, other: Path) -> bool:
    # By inode, not by name: links and ./ make other names for the same file.
    return path.exists() and other.exists() and path.samefile(other)


def refuse_missing_folders(targets: Sequence[Path]) -> None:
    """Refuse targets in folders that do not exist, before any work is done."""
    for target in targets:
        folder = target.parent
        if not folder.exists():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(folder))
        refuse_file_as_folder(folder)
        if target.is_dir():
            raise IsADirectoryError(
                errno.EISDIR, "this is a directory; expected a file", str(target)
            )


def refuse_file_as_folder(folder: Path) -> None:
    """Refuse a file where a folder is expected; a missing folder can be created."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(errno.EEXIST, "this is a file; expected a folder", str(folder))


# Writing


def save_all(
    sets: Iterable[tuple[Path, RankingData]], terminal: Terminal, others: Sequence[Path] = ()
) -> None:
    """Save data sets one after the other, creating folders, and list them on the terminal.

    ``others`` are files that have been written already and are listed with them.
    """
    from rankinite.data.formats import save

    written = []
    for path, data in sets:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(data, path, progress=terminal.progress())
        written.append((path, data.n_queries, data.n_docs))
        # `sets` may be a generator: the next set needs the memory while it is being made.
        del data
    terminal.show_written(written, others)


def write_scores(scores: NDArray[np.float64], data: RankingData, out: Path, run_name: str) -> None:
    """Write scores to a file: a TREC run if its name says so, else in the order of the data."""
    from rankinite.data.scores import save_scores

    if out.name.removesuffix(".gz").endswith(RUN_SUFFIXES):
        # A tag with blanks would be two columns.
        save_scores(scores, data, out, run="-".join(run_name.split()) or "rankinite")
    else:
        save_scores(in_file_order(scores, data), data, out)


def in_file_order(scores: NDArray[np.float64], data: RankingData) -> NDArray[np.float64]:
    """Return scores in the order of the file, which --group may have changed."""
    if data.rows is None:
        return scores
    ordered = scores.copy()
    ordered[data.rows] = scores
    return ordered
