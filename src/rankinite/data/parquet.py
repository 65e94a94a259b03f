"""Data sets as Parquet files.

The role of each column and the top grade, which a table has no place for, are in the metadata of
files that Rankinite wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rankinite.core.errors import FileFormatError, UsageError
from rankinite.core.files import atomic_write
from rankinite.core.format import refuse_text
from rankinite.core.params import Real
from rankinite.core.progress import Progress, Silent
from rankinite.data import checks
from rankinite.data.frames import ROWS_A_BATCH, Columns, assemble, without_index
from rankinite.data.ranking_data import RankingData

METADATA = b"rankinite"
ROWS_A_GROUP = 1 << 16  # rows that are copied out of the matrix at a time


def read_parquet(
    path: str | Path,
    *,
    label: str | None = None,
    qid: str | None = None,
    labels: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    query_weight: str | None = None,
    doc_id: str | None = None,
    comment: str | None = None,
    group: bool = False,
    top_grade: float | None = None,
    progress: Progress | None = None,
) -> RankingData:
    """Read a Parquet file with one row per document.

    Parameters
    ----------
    path
        The file. If Rankinite wrote it, its metadata define the role of each column; otherwise
        the label is in ``label``, the query in ``qid``, and all other columns are features.
    label, qid, labels, features, query_weight, doc_id, comment, group, top_grade
        As in `from_frame`; they take precedence over the metadata.
    progress
        Progress reporter.
    """
    source = Path(path)
    refuse_text("load", "labels", labels)
    refuse_text("load", "features", features)
    with _open(source) as file:
        schema = file.schema_arrow
        columns, saved_top_grade = _parse_metadata(source, schema.metadata or {})
        roles: dict[str, Any] = {
            "label": label,
            "qid": qid,
            "labels": None
            if labels is None
            else {name: columns.labels.get(name, name) for name in labels},
            "features": features,
            "query_weight": query_weight,
            "doc_id": doc_id,
            "comment": comment,
        }
        chosen = {name: value for name, value in roles.items() if value is not None}
        columns = replace(columns, **chosen)
        if top_grade is None and label is None:  # the saved one belongs to the saved label column
            top_grade = saved_top_grade
        try:
            columns = columns.complete(without_index(schema, columns))
            return assemble(
                _batches(file, columns, source, progress or Silent()),
                file.metadata.num_rows,
                columns,
                group=group,
                top_grade=top_grade,
            )
        except (FileFormatError, UsageError):
            raise  # both are ValueErrors, and name the file or the argument already
        except (ValueError, pa.ArrowException, OSError) as problem:
            raise FileFormatError(source, str(problem)) from None


def write_parquet(data: RankingData, path: str | Path, *, progress: Progress | None = None) -> None:
    """Write a data set as a Parquet file; the file appears whole or not at all.

    Documents without a label have NaN. A data set in which no document has a label is refused,
    because it could not be loaded again.

    Parameters
    ----------
    data
        Data set to write.
    path
        The file.
    progress
        Progress reporter.
    """
    checks.require_some_labels("Parquet", data.y)
    columns = _free_names(data)
    metadata = {METADATA: json.dumps({**asdict(columns), "top_grade": data.top_grade})}
    with (
        atomic_write(path) as file,
        (progress or Silent()).start(f"Writing {Path(path).name}", data.n_docs, "documents") as bar,
    ):
        writer = None
        for start in range(0, data.n_docs, ROWS_A_GROUP):
            docs = slice(start, min(start + ROWS_A_GROUP, data.n_docs))
            table = pa.table(_arrays(data, columns, docs)).replace_schema_metadata(metadata)
            # With checksums, a flipped bit is an error and not another number.
            writer = writer or pq.ParquetWriter(
                file, table.schema, compression="zstd", write_page_checksum=True
            )
            writer.write_table(table)
            bar.advance(docs.stop - docs.start)
        if writer is not None:
            writer.close()


def _free_names(data: RankingData) -> Columns:
    """Choose names for the columns that are not features, so that all names are distinct."""
    taken = set(data.feature_names)

    def free(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    return Columns(
        label=free("label"),
        qid=free("qid"),
        labels={name: free(name) for name in data.labels},
        features=list(data.feature_names),
        query_weight=None if data.query_weight is None else free("query_weight"),
        doc_id=None if data.doc_id_column is None else free("docid"),
        comment=None if data.comment_column is None else free("comment"),
    )


def _arrays(data: RankingData, columns: Columns, docs: slice) -> dict[str, Any]:
    values = data.matrix[docs] if data.rows is None else data.matrix[data.rows[docs]]
    arrays: dict[str, Any] = {columns.label: data.y[docs], columns.qid: data.qid[docs]}
    for source, column in columns.labels.items():
        arrays[column] = data.labels[source][docs]
    if columns.query_weight is not None and data.query_weight is not None:
        arrays[columns.query_weight] = np.repeat(data.query_weight, data.sizes)[docs]
    if columns.doc_id is not None:
        arrays[columns.doc_id] = data.doc_id_column[docs]
    if columns.comment is not None:
        arrays[columns.comment] = data.comment_column[docs]
    for j, name in enumerate(data.feature_names):
        arrays[name] = np.ascontiguousarray(values[:, j])
    return arrays


def _open(path: Path) -> Any:
    if path.is_dir():
        raise FileFormatError(path, "this is a directory; expected a file")
    try:
        return pq.ParquetFile(path, page_checksum_verification=True)
    except FileNotFoundError:
        raise FileFormatError(path, "there is no such file") from None
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise FileFormatError(path, f"cannot be read as Parquet: {problem}") from None


def _parse_metadata(path: Path, metadata: Mapping[bytes, bytes]) -> tuple[Columns, float | None]:
    """Return the roles of the columns and the top grade; defaults for a foreign file."""
    if METADATA not in metadata:
        return Columns(), None
    try:
        saved = json.loads(metadata[METADATA])
        columns = Columns(**{name: saved[name] for name in asdict(Columns())})
        names = [*columns.named(), *(columns.features or ())]
        if not all(isinstance(name, str) for name in names):
            raise TypeError("the name of a column is not a text")
        if not Real(0).allows(saved["top_grade"]):
            raise ValueError("the top grade is not a number of at least 0")
        return columns, float(saved["top_grade"])
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise FileFormatError(path, f"the metadata are damaged: {problem!r}") from None


def _batches(file: Any, columns: Columns, path: Path, progress: Progress) -> Iterator[Any]:
    wanted = list(dict.fromkeys([*columns.named(), *(columns.features or ())]))
    with progress.start(f"Reading {path.name}", file.metadata.num_rows, "documents") as bar:
        for batch in file.iter_batches(ROWS_A_BATCH, columns=wanted, use_threads=True):
            yield batch
            bar.advance(batch.num_rows)
