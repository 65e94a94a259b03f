"""File formats of data sets: the registry, and `load` and `save`, which choose from it.

SVMlight text is read and written in svmlight/, Parquet in frames.py, as frames in memory are.
To add a format, write its reader and writer in a module of its own, and its `FileFormat` here;
loading, saving and the commands' ``--format`` follow. Readers and writers are imported when they
are used, because ``--help`` lists the formats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rankinite.core.errors import UsageError
from rankinite.core.progress import Progress

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData

HEAD = 64  # bytes that a format is recognised by
GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
FIRST_BYTES_OF_TEXT = b"+-.0123456789q#"  # of a label, of qid:, or of a comment


@dataclass(frozen=True)
class FileFormat:
    """A way to keep a data set in a file.

    Attributes
    ----------
    name
        Name of the format and ending of the files that commands write.
    title
        Name of the format in messages.
    suffixes
        Last suffixes of file names, such as ``.parquet``, that choose this format.
    options
        Options of `load` that its reader takes.
    recognise
        Whether a file with these first bytes has this format.
    read
        Reader: takes a path, ``progress`` and the options that are set.
    write
        Writer: takes a data set, a path and ``progress``; the file appears whole or not at all.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    options: frozenset[str]
    recognise: Callable[[bytes], bool]
    read: Callable[..., RankingData]
    write: Callable[..., None]


def _read_text(path: str | Path, **options: Any) -> RankingData:
    from rankinite.data.svmlight import read_svmlight

    return read_svmlight(path, **options)


def _write_text(data: RankingData, path: str | Path, progress: Progress | None = None) -> None:
    from rankinite.data.svmlight import write_svmlight

    write_svmlight(data, path, progress=progress)


def _read_parquet(path: str | Path, **options: Any) -> RankingData:
    from rankinite.data.frames import read_parquet

    return read_parquet(path, **options)


def _write_parquet(data: RankingData, path: str | Path, progress: Progress | None = None) -> None:
    from rankinite.data.frames import write_parquet

    write_parquet(data, path, progress=progress)


TEXT = FileFormat(
    name="txt",
    title="text",
    suffixes=(".txt", ".svm", ".svmlight", ".libsvm", ".letor"),
    options=frozenset({"labels", "group", "top_grade", "n_features", "query_file", "comments"}),
    recognise=lambda head: head.lstrip()[:1] in FIRST_BYTES_OF_TEXT,
    read=_read_text,
    write=_write_text,
)
COMPRESSED_TEXT = replace(
    TEXT,
    name="txt.gz",
    title="compressed text",
    suffixes=(".gz",),
    recognise=lambda head: head.startswith(GZIP_MAGIC),
)
PARQUET = FileFormat(
    name="parquet",
    title="Parquet",
    suffixes=(".parquet", ".pq"),
    options=frozenset(
        {
            "labels",
            "label",
            "qid",
            "features",
            "doc_id",
            "categorical_features",
            "group",
            "top_grade",
        }
    ),
    recognise=lambda head: head.startswith(PARQUET_MAGIC),
    read=_read_parquet,
    write=_write_parquet,
)
FORMATS = {file_format.name: file_format for file_format in (TEXT, COMPRESSED_TEXT, PARQUET)}
BY_SUFFIX = {
    suffix: file_format for file_format in FORMATS.values() for suffix in file_format.suffixes
}

if TYPE_CHECKING:
    FormatName = str
else:
    FormatName = Literal[tuple(FORMATS)]  # the choices that a command's help lists


def format_of(path: str | Path) -> FileFormat:
    """Return the format of a file: by its suffix, by its first bytes, or else SVMlight text."""
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix in BY_SUFFIX:
        return BY_SUFFIX[suffix]
    if not file.is_file():  # a file yet to be written, or a pipe, whose bytes can be read once
        return TEXT
    head = _head(file)
    return next((known for known in FORMATS.values() if known.recognise(head)), TEXT)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""  # the reader raises the error that names the problem


def load(
    path: str | Path,
    *,
    labels: Sequence[str] | None = None,
    label: str | None = None,
    qid: str | None = None,
    features: Sequence[str] | None = None,
    doc_id: str | None = None,
    categorical_features: str | Sequence[str] = (),
    group: bool = False,
    top_grade: float | None = None,
    n_features: int | None = None,
    query_file: str | Path | None = None,
    comments: bool = True,
    progress: Progress | None = None,
) -> RankingData:
    """Load a data set: Parquet (``.parquet``, ``.pq``) or SVMlight/LETOR text, also gzip.

    Parameters
    ----------
    path
        The file. If its suffix is that of no format, the first bytes decide.
    labels
        Further label sources: Parquet columns, or ``name = value`` in text comments.
    label, qid, features, doc_id
        Parquet only: names of the columns of labels (default ``label``, if there is one), queries
        (``qid``), features (all other columns) and document ids (none).
    categorical_features
        Parquet only: features of texts or whole numbers that are categories; ``"all"`` for all
        texts. Columns of a dictionary type need not be named.
    group
        Bring the documents of each query together if they are not contiguous, instead of
        refusing them.
    top_grade
        Largest label that a document can have; the largest label in the file by default.
    n_features
        Text only: number of features, if the file may lack the last ones.
    query_file
        Text only: file of group sizes, one per line, for a file without ``qid:``; by default
        ``path`` with ``.query`` or ``.group`` appended.
    comments
        Text only: keep the comments behind ``#``, which hold document ids.
    progress
        Progress reporter.
    """
    values = {
        "labels": labels,
        "label": label,
        "qid": qid,
        "features": features,
        "doc_id": doc_id,
        "categorical_features": categorical_features or None,
        "group": group or None,
        "top_grade": top_grade,
        "n_features": n_features,
        "query_file": query_file,
        "comments": None if comments else False,
    }
    # Options that have their default values are not asked for, so that no format refuses them.
    options = {name: value for name, value in values.items() if value is not None}
    file_format = format_of(path)
    for name in options:
        if name not in file_format.options:
            takers = [other.title for other in FORMATS.values() if name in other.options]
            raise UsageError(
                f"load: {name} is an option of {' and '.join(takers)} files, "
                f"and {path} is {file_format.title}"
            )
    return file_format.read(path, progress=progress, **options)


def save(data: RankingData, path: str | Path, *, progress: Progress | None = None) -> None:
    """Save a data set: Parquet (``.parquet``, ``.pq``), or else SVMlight text (``.gz`` compressed).

    Parameters
    ----------
    data
        Data set to save.
    path
        File to write; it appears whole or not at all.
    progress
        Progress reporter.
    """
    # By the name alone: what an old file at this place holds does not matter.
    BY_SUFFIX.get(Path(path).suffix.lower(), TEXT).write(data, path, progress=progress)
