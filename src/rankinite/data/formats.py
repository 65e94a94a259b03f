"""File formats of data sets: the registry, and `load` and `save`, which choose from it.

A format is an object with the attributes of `FileFormat`. To add one, write its reader and writer
in a module of its own, and its class here; loading, saving and the commands' ``--format`` follow.
Readers and writers are imported when they are used, because ``--help`` lists the formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rankinite.core.errors import UsageError
from rankinite.core.progress import Progress

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData

HEAD = 64  # bytes that a format is recognised by
GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
FIRST_BYTES_OF_TEXT = b"+-.0123456789#"  # of a label, or of a comment


class FileFormat(Protocol):
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
    """

    name: str
    title: str
    suffixes: Sequence[str]
    options: frozenset[str]

    def recognise(self, head: bytes) -> bool:
        """Return whether a file with these first bytes has this format."""

    def read(
        self, path: str | Path, *, progress: Progress | None = None, **options: Any
    ) -> RankingData:
        """Read a data set; all options that are given are among ``options``."""

    def write(
        self, data: RankingData, path: str | Path, *, progress: Progress | None = None
    ) -> None:
        """Write a data set to a file, which appears whole or not at all."""


class Svmlight:
    """SVMlight/LETOR text as a `FileFormat`."""

    name = "txt"
    title = "text"
    suffixes: Sequence[str] = (".txt", ".svm", ".svmlight", ".libsvm", ".letor")
    options = frozenset({"labels", "group", "top_grade", "n_features", "query_file", "comments"})

    def recognise(self, head: bytes) -> bool:
        """Return whether the first bytes are those of a label or a comment."""
        return head.lstrip()[:1] in FIRST_BYTES_OF_TEXT

    def read(
        self, path: str | Path, *, progress: Progress | None = None, **options: Any
    ) -> RankingData:
        """Read a file; see `read_svmlight`."""
        from rankinite.data.svmlight import read_svmlight

        return read_svmlight(path, progress=progress, **options)

    def write(
        self, data: RankingData, path: str | Path, *, progress: Progress | None = None
    ) -> None:
        """Write a file; see `write_svmlight`."""
        from rankinite.data.svmlight import write_svmlight

        write_svmlight(data, path, progress=progress)


class GzipSvmlight(Svmlight):
    """SVMlight/LETOR text, compressed by gzip, as a `FileFormat`."""

    name = "txt.gz"
    title = "compressed text"
    suffixes = (".gz",)

    def recognise(self, head: bytes) -> bool:
        """Return whether the file begins as gzip files do."""
        return head.startswith(GZIP_MAGIC)


class Parquet:
    """Parquet as a `FileFormat`."""

    name = "parquet"
    title = "Parquet"
    suffixes: Sequence[str] = (".parquet", ".pq")
    options = frozenset({"labels", "label", "qid", "features", "doc_id", "group", "top_grade"})

    def recognise(self, head: bytes) -> bool:
        """Return whether the file begins as Parquet files do."""
        return head.startswith(PARQUET_MAGIC)

    def read(
        self, path: str | Path, *, progress: Progress | None = None, **options: Any
    ) -> RankingData:
        """Read a file; see `read_parquet`."""
        from rankinite.data.frames import read_parquet

        return read_parquet(path, progress=progress, **options)

    def write(
        self, data: RankingData, path: str | Path, *, progress: Progress | None = None
    ) -> None:
        """Write a file; see `write_parquet`."""
        from rankinite.data.frames import write_parquet

        write_parquet(data, path, progress=progress)


FORMATS: dict[str, FileFormat] = {
    file_format.name: file_format for file_format in (Svmlight(), GzipSvmlight(), Parquet())
}
BY_SUFFIX = {
    suffix: file_format for file_format in FORMATS.values() for suffix in file_format.suffixes
}
DEFAULT = FORMATS["txt"]

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
        return DEFAULT
    head = _head(file)
    return next((known for known in FORMATS.values() if known.recognise(head)), DEFAULT)


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
        Parquet only: names of the columns of labels (default ``label``), queries (``qid``),
        features (all other columns) and document ids (none).
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
        "group": group or None,
        "top_grade": top_grade,
        "n_features": n_features,
        "query_file": query_file,
        "comments": None if comments else False,
    }
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
    BY_SUFFIX.get(Path(path).suffix.lower(), DEFAULT).write(data, path, progress=progress)
