"""Data sets from tables: pandas, polars and Arrow frames.

A table has one row per document: columns for label, query and features, and optionally for further
labels, query weight, document id and comment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import refuse_text, some_of
from rankinite.data.ranking_data import RankingData

ROWS_A_BATCH = 1 << 14


@dataclass(frozen=True)
class Columns:
    """Roles of the columns of a table; ``labels`` has the column of each label source."""

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
        """Fill in the features, by default all other columns; refuse columns that do not exist."""
        features = self.features
        repeated = [name for name, count in Counter(available).items() if count > 1]
        if repeated:
            raise DataError(f"column {repeated[0]!r} is there twice; expected distinct columns")
        if features is None:
            taken = set(self.named())
            features = [name for name in available if name not in taken]
        for role, name in self._roles(features):
            if name not in available:
                raise DataError(
                    f"there is no {role} column {name!r}; the columns are {some_of(available)} "
                    "(name them with label and qid, --label-column and --qid-column)"
                )
        if not features:
            raise DataError(f"there are no feature columns; the columns are {some_of(available)}")
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
    """Return the data set of a pandas, polars or Arrow frame with one row per document.

    Parameters
    ----------
    frame
        Frame that can be exported to Arrow.
    label, qid
        Columns of labels and queries. A null label means no label, which is allowed for documents
        that have a label in another source.
    labels
        Columns of further label sources; nulls mean no label.
    features
        Columns of features; all other columns by default. Nulls are missing values.
    query_weight, doc_id, comment
        Columns of query weights (equal within a query), document ids and comments.
    group
        Bring the documents of each query together if they are not contiguous, instead of
        refusing them.
    top_grade
        Largest label that a document can have; the largest label in the frame by default.

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
    refuse_text("from_frame", "labels", labels)
    refuse_text("from_frame", "features", features)
    try:
        table = pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as problem:
        raise DataError(f"the frame cannot be made an Arrow table: {problem}") from None
    columns = Columns(label, qid, _by_name(labels), features, query_weight, doc_id, comment)
    kept = without_index(table.schema, columns)
    columns = columns.complete(kept)
    batches = table.select(kept).to_batches(max_chunksize=ROWS_A_BATCH)
    return assemble(batches, table.num_rows, columns, group=group, top_grade=top_grade)


def without_index(schema: Any, columns: Columns) -> list[str]:
    """Return the columns without those of a pandas index, unless they are used by name."""
    described = schema.pandas_metadata or {}
    index = {name for name in described.get("index_columns", ()) if isinstance(name, str)}
    asked = {*columns.named(), *(columns.features or ())}
    return [name for name in schema.names if name in asked or name not in index]


def assemble(
    batches: Any, n_docs: int, columns: Columns, *, group: bool, top_grade: float | None
) -> RankingData:
    """Return the data set of batches; they fill one matrix, so that no table is copied whole."""
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
    column = _decoded(column)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        if not (pa.types.is_decimal(kind) or pa.types.is_null(kind)):
            raise DataError(
                f"column {name!r} holds {kind}; expected numbers "
                "(document ids are named with doc_id, --doc-id-column; features with features)"
            )
        column = column.cast(pa.float64())
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    with np.errstate(over="ignore"):
        return np.asarray(column.to_numpy(zero_copy_only=False)).astype(dtype, copy=False)


def _ids(column: Any, name: str) -> NDArray[Any]:
    if column.null_count:
        raise DataError(f"column {name!r} has no query for some documents; expected one for each")
    return np.asarray(_decoded(column).to_numpy(zero_copy_only=False))


def _decoded(column: Any) -> Any:
    """Return the values of a dictionary column; other columns unchanged."""
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    if pa.types.is_string_view(values.type):  # of polars; Arrow has no take for them
        values = values.cast(pa.large_string())
    return values.take(column.indices)


def _texts(column: Any) -> list[str]:
    return ["" if text is None else str(text) for text in column.to_pylist()]


def _weights(
    whole: Mapping[str, Any], columns: Columns, qids: NDArray[Any]
) -> NDArray[np.float64] | None:
    """Return one weight per query, in the order of their first documents."""
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
