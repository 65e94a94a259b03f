"""Data sets as tables: pandas, polars and Arrow frames, and Parquet files.

A table has one row a document: columns for label, query and features, and optionally for further
labels, query weight, document id and comment. What a table by itself cannot tell (which column is
what, the top grade) is in the metadata of files that Rankinite wrote.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rankinite.core.errors import DataError, FileFormatError, UsageError
from rankinite.core.files import atomic_write
from rankinite.core.params import Real
from rankinite.core.progress import Progress, Silent
from rankinite.data.ranking_data import RankingData

METADATA = b"rankinite"
ROWS_A_GROUP = 1 << 16
ROWS_A_BATCH = 1 << 14


@dataclass(frozen=True)
class Columns:
    """Which column of a table is what; ``labels`` names the column of each label source."""

    label: str = "label"
    qid: str = "qid"
    labels: Mapping[str, str] = field(default_factory=dict)
    features: Sequence[str] | None = None
    query_weight: str | None = None
    doc_id: str | None = None
    comment: str | None = None

    def named(self) -> list[str]:
        """Return all columns that are not features."""
        names = [
            self.label,
            self.qid,
            *self.labels.values(),
            self.query_weight,
            self.doc_id,
            self.comment,
        ]
        return [name for name in names if name is not None]

    def complete(self, available: Sequence[str]) -> Columns:
        """Take all other columns for features, if none are named; refuse columns not there."""
        features = self.features
        twice = [name for name, count in Counter(available).items() if count > 1]
        if twice:
            raise DataError(f"column {twice[0]!r} is there twice; expected distinct columns")
        if features is None:
            taken = set(self.named())
            features = [name for name in available if name not in taken]
        for role, name in self._roles(features):
            if name not in available:
                raise DataError(
                    f"there is no {role} column {name!r}; the columns are {_shown(available)}"
                )
        if not features:
            raise DataError(f"there are no feature columns; the columns are {_shown(available)}")
        return replace(self, features=list(features))

    def _roles(self, features: Sequence[str]) -> Iterator[tuple[str, str]]:
        yield "label", self.label
        yield "qid", self.qid
        yield from (("label source", name) for name in self.labels.values())
        yield from (("feature", name) for name in features)
        optional = {
            "query weight": self.query_weight,
            "document id": self.doc_id,
            "comment": self.comment,
        }
        yield from ((role, name) for role, name in optional.items() if name is not None)


def from_frame(
    frame: Any,
    *,
    label: str = "label",
    qid: str = "qid",
    labels: Sequence[str] = (),
    features: Sequence[str] | None = None,
    query_weight: str | None = None,
    doc_id: str | None = None,
    comment: str | None = None,
    group: bool = False,
    top_grade: float | None = None,
) -> RankingData:
    """Make a data set of a pandas, polars or Arrow frame with one row a document.

    Parameters
    ----------
    frame
        Anything that can be exported to Arrow.
    label, qid
        The columns of labels and queries.
    labels
        The columns of further label sources; nulls mean no label.
    features
        The columns of features; all others if not given. Nulls are missing values.
    query_weight, doc_id, comment
        Columns of query weights (equal within a query), document ids and comments.
    group
        Bring documents of one query together instead of refusing them when they stand apart.
    top_grade
        The largest label there can be; the largest label seen if not given.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"qid": [1, 1], "label": [0, 2], "bm25": [0.5, 0.7]})
    >>> from_frame(table).feature_names
    ('bm25',)
    """
    if not hasattr(frame, "__arrow_c_stream__"):
        raise UsageError(
            f"from_frame: cannot read a {type(frame).__name__}; "
            "expected a pandas, polars or Arrow frame"
        )
    try:
        table = pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as problem:
        raise DataError(f"the frame cannot be made an Arrow table: {problem}") from None
    columns = Columns(label, qid, _by_name(labels), features, query_weight, doc_id, comment)
    kept = _without_index(table.schema, columns)
    columns = columns.complete(kept)
    batches = table.select(kept).to_batches(max_chunksize=ROWS_A_BATCH)
    return _assemble(batches, table.num_rows, columns, group=group, top_grade=top_grade)


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
    """Read a Parquet file with one row a document.

    Parameters
    ----------
    path
        The file. If Rankinite wrote it, its metadata say which column is what; else the label is
        in ``label``, the query in ``qid``, and all other columns are features.
    label, qid, labels, features, query_weight, doc_id, comment, group, top_grade
        As in `from_frame`; what is given goes before the metadata.
    progress
        Who wants to know how far it is.
    """
    source = Path(path)
    with _open(source) as file:
        schema = file.schema_arrow
        columns, known = _described(source, schema.metadata or {})
        given: dict[str, Any] = {
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
        chosen = {name: value for name, value in given.items() if value is not None}
        columns = replace(columns, **chosen)
        if top_grade is None and label is None:
            top_grade = known.get("top_grade")
        try:
            columns = columns.complete(_without_index(schema, columns))
            return _assemble(
                _batches(file, columns, source, progress or Silent()),
                file.metadata.num_rows,
                columns,
                group=group,
                top_grade=top_grade,
            )
        except (FileFormatError, UsageError):
            raise
        except (ValueError, pa.ArrowException, OSError) as problem:
            raise FileFormatError(source, str(problem)) from None


def write_parquet(data: RankingData, path: str | Path, *, progress: Progress | None = None) -> None:
    """Write a data set as a Parquet file; the file appears whole or not at all.

    Parameters
    ----------
    data
        What to write.
    path
        The file.
    progress
        Who wants to know how far it is.
    """
    columns = _free_names(data)
    described = {**asdict(columns), "top_grade": data.top_grade}
    metadata = {METADATA: json.dumps(described)}
    with (
        atomic_write(path) as file,
        (progress or Silent()).start(
            f"Writing {Path(path).name}", data.n_docs, "documents"
        ) as task,
    ):
        writer = None
        for start in range(0, data.n_docs, ROWS_A_GROUP):
            docs = slice(start, min(start + ROWS_A_GROUP, data.n_docs))
            table = pa.table(_arrays(data, columns, docs)).replace_schema_metadata(metadata)
            writer = writer or pq.ParquetWriter(
                file, table.schema, compression="zstd", write_page_checksum=True
            )
            writer.write_table(table)
            task.advance(docs.stop - docs.start)
        if writer is not None:
            writer.close()


def _free_names(data: RankingData) -> Columns:
    """Choose names for the columns that are not features, so that none stands twice."""
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
        doc_id=None if data.doc_ids is None else free("docid"),
        comment=None if data.comments is None else free("comment"),
    )


def _arrays(data: RankingData, columns: Columns, docs: slice) -> dict[str, Any]:
    values = data.base[docs] if data.rows is None else data.base[data.rows[docs]]
    arrays: dict[str, Any] = {columns.label: data.y[docs], columns.qid: data.qid[docs]}
    for source, column in columns.labels.items():
        arrays[column] = data.labels[source][docs]
    if columns.query_weight is not None and data.query_weight is not None:
        arrays[columns.query_weight] = np.repeat(data.query_weight, data.sizes)[docs]
    if columns.doc_id is not None:
        arrays[columns.doc_id] = data._doc_ids[docs]
    if columns.comment is not None:
        arrays[columns.comment] = data._comments[docs]
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


def _described(path: Path, metadata: Mapping[bytes, bytes]) -> tuple[Columns, dict[str, Any]]:
    if METADATA not in metadata:
        return Columns(), {}
    try:
        known = json.loads(metadata[METADATA])
        columns = Columns(**{name: known[name] for name in asdict(Columns())})
        names = [*columns.named(), *(columns.features or ())]
        if not all(isinstance(name, str) for name in names):
            raise TypeError("the name of a column is not a text")
        if not Real(0).allows(known["top_grade"]):
            raise ValueError("the top grade is not a number of at least 0")
        return columns, {"top_grade": known["top_grade"]}
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise FileFormatError(path, f"the metadata are damaged: {problem!r}") from None


def _without_index(schema: Any, columns: Columns) -> list[str]:
    """Return the columns without a pandas index, unless a level of it is asked for by name."""
    described = schema.pandas_metadata or {}
    index = {name for name in described.get("index_columns", ()) if isinstance(name, str)}
    asked = {*columns.named(), *(columns.features or ())}
    return [name for name in schema.names if name in asked or name not in index]


def _batches(file: Any, columns: Columns, path: Path, progress: Progress) -> Iterator[Any]:
    wanted = list(dict.fromkeys([*columns.named(), *(columns.features or ())]))
    with progress.start(f"Reading {path.name}", file.metadata.num_rows, "documents") as task:
        for batch in file.iter_batches(ROWS_A_BATCH, columns=wanted, use_threads=True):
            yield batch
            task.advance(batch.num_rows)


def _assemble(
    batches: Any, n_docs: int, columns: Columns, *, group: bool, top_grade: float | None
) -> RankingData:
    """Fill one matrix batch by batch, so that the table is never there twice."""
    features = list(columns.features or ())
    X = np.empty((n_docs, len(features)), np.float32)
    parts: dict[str, list[Any]] = {name: [] for name in columns.named()}
    start = 0
    for batch in batches:
        block = X[start : start + batch.num_rows]
        for j, name in enumerate(features):
            block[:, j] = _numbers(batch.column(name), name, np.float32)
        for name, pieces in parts.items():
            pieces.append(batch.column(name))
        start += batch.num_rows
    if start == 0:
        raise DataError("there are no documents")
    whole = {name: pa.concat_arrays(pieces) for name, pieces in parts.items()}
    qids = _ids(whole[columns.qid], columns.qid)
    return RankingData(
        X,
        _numbers(whole[columns.label], columns.label, np.float64),
        qids,
        labels={
            source: _numbers(whole[column], column, np.float64)
            for source, column in columns.labels.items()
        },
        query_weight=_weights(whole, columns, qids),
        doc_ids=None if columns.doc_id is None else _texts(whole[columns.doc_id]),
        comments=None if columns.comment is None else _texts(whole[columns.comment]),
        feature_names=features,
        group=group,
        top_grade=top_grade,
    )


def _numbers(column: Any, name: str, dtype: type[np.floating[Any]]) -> NDArray[Any]:
    """Return a column as floats; nulls become NaN."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        if not (pa.types.is_decimal(kind) or pa.types.is_null(kind)):
            raise DataError(f"column {name!r} holds {kind}; expected numbers")
        column = column.cast(pa.float64())
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    with np.errstate(over="ignore"):
        return np.asarray(column.to_numpy(zero_copy_only=False)).astype(dtype, copy=False)


def _ids(column: Any, name: str) -> NDArray[Any]:
    if column.null_count:
        raise DataError(f"column {name!r} has no query for some documents; expected one for each")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _texts(column: Any) -> list[str]:
    return ["" if text is None else str(text) for text in column.to_pylist()]


def _weights(
    whole: Mapping[str, Any], columns: Columns, qids: NDArray[Any]
) -> NDArray[np.float64] | None:
    """Return one weight a query, in the order in which queries are first seen."""
    if columns.query_weight is None:
        return None
    weights = _numbers(whole[columns.query_weight], columns.query_weight, np.float64)
    _, first, query = np.unique(qids, return_index=True, return_inverse=True)
    different = weights != weights[first][query]
    if different.any():
        qid = qids[different.argmax()]
        raise DataError(
            f"column {columns.query_weight!r} has different weights for documents of query {qid}"
        )
    picked: NDArray[np.float64] = weights[np.sort(first)]
    return picked


def _by_name(labels: Sequence[str]) -> dict[str, str]:
    return {name: name for name in labels}


def _shown(names: Sequence[str], most: int = 12) -> str:
    listed = ", ".join(repr(name) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"
