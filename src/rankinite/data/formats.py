"""The formats of data sets, and how the name of a file tells its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rankinite.core.errors import UsageError
from rankinite.core.progress import Progress
from rankinite.data.parquet import read_parquet, write_parquet
from rankinite.data.ranking_data import RankingData
from rankinite.data.svmlight import read_svmlight, write_svmlight

Format = Literal["txt", "txt.gz", "parquet"]

PARQUET = (".parquet", ".pq")


def format_of(path: str | Path) -> Format:
    """Tell the format of a data set by the name of its file."""
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET:
        return "parquet"
    return "txt.gz" if suffix == ".gz" else "txt"


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
    """Load a data set: Parquet (``.parquet``, ``.pq``), or else SVMlight/LETOR text, also gzip.

    Parameters
    ----------
    path
        The file.
    labels
        Further label sources: Parquet columns, or ``name = value`` in text comments.
    label, qid, features, doc_id
        Parquet only: the columns of labels (``label``), queries (``qid``), features (all others)
        and document ids (none), if they are called otherwise.
    group
        Bring documents of one query together instead of refusing them when they stand apart.
    top_grade
        The largest label there can be; the largest label seen if not given.
    n_features
        Text only: how many features there are, if the file may lack the last ones.
    query_file
        Text only: the group sizes of a file without ``qid:``, one a line; ``path`` with
        ``.query`` or ``.group`` behind it if not given.
    comments
        Text only: keep what stands behind ``#``, document ids among it.
    progress
        Who wants to know how far it is.
    """
    columns = {"label": label, "qid": qid, "features": features, "doc_id": doc_id}
    if format_of(path) == "parquet":
        if n_features is not None or query_file is not None or not comments:
            raise UsageError(
                "load: n_features, query_file and comments are for text files, not for Parquet"
            )
        return read_parquet(
            path,
            label=label,
            qid=qid,
            labels=labels,
            features=features,
            doc_id=doc_id,
            group=group,
            top_grade=top_grade,
            progress=progress,
        )
    for name, column in columns.items():
        if column is not None:
            raise UsageError(f"load: {name} names a column of Parquet files, and {path} is text")
    return read_svmlight(
        path,
        query_file=query_file,
        n_features=n_features,
        labels=labels or (),
        comments=comments,
        group=group,
        top_grade=top_grade,
        progress=progress,
    )


def save(data: RankingData, path: str | Path, *, progress: Progress | None = None) -> None:
    """Save a data set: Parquet (``.parquet``, ``.pq``), or else SVMlight text, ``.gz`` compressed.

    Parameters
    ----------
    data
        What to save.
    path
        The file; it appears whole or not at all.
    progress
        Who wants to know how far it is.
    """
    write = write_parquet if format_of(path) == "parquet" else write_svmlight
    write(data, path, progress=progress)
