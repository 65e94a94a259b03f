"""Data sets as tables: pandas, polars and Arrow frames, and Parquet files.

A table has one row per document: columns for label, query and features, and optionally for further
labels, query weight, document id and comment. Parquet files that Rankinite wrote have the role of
each column in their metadata, with the top grade, which a table has no place for.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rankinite.core.errors import DataError, FileFormatError
from rankinite.core.files import atomic_write
from rankinite.core.format import quoted, refuse_text, some_of
from rankinite.core.params import Real
from rankinite.core.progress import Progress, Silent
from rankinite.data.categories import CategoryEncoder, category_array
from rankinite.data.parquet import METADATA, batches, open_parquet, refusing_damage, saved_fields
from rankinite.data.ranking_data import RankingData
from rankinite.data.sparse import dense_rows
from rankinite.data.tables import (
    MatrixOfBatches,
    PandasMetadata,
    ids,
    is_text,
    numbers,
    open_table,
    require_numbers,
    texts,
)

log = logging.getLogger("rankinite")

LABEL = "label"
CATEGORICAL = "categorical_features"
ROWS_A_GROUP = 1 << 16  # rows that are copied out of the matrix at a time


@dataclass(frozen=True)
class Columns:
    """Roles of the columns of a table; ``labels`` has the column of each label source.

    If ``label`` is None, labels are in the column "label", if there is one.
    """

    label: str | None = None
    qid: str = "qid"
    labels: Mapping[str, str] = field(default_factory=dict)
    features: Sequence[str] | None = None
    query_weight: str | None = None
    doc_id: str | None = None
    comment: str | None = None

    def named(self) -> list[str]:
        """Return all columns that are not features."""
        return [name for _, name in self._roles(())]

    def wanted(self) -> list[str]:
        """Return all columns that have a role, each once."""
        return list(dict.fromkeys([*self.named(), *(self.features or ())]))

    def complete(self, available: Sequence[str]) -> Columns:
        """Fill in the features, by default all other columns; refuse columns that do not exist."""
        features = self.features
        label = self.label
        if label is None and LABEL in available and LABEL not in (features or ()):
            label = LABEL
        repeated = [name for name, count in Counter(available).items() if count > 1]
        if repeated:
            raise DataError(f"column {repeated[0]!r} is there twice; expected distinct columns")
        if features is None:
            taken = {*self.named(), label}
            features = [name for name in available if name not in taken]
        for role, name in self._roles(features):
            if name not in available:
                raise DataError(
                    f"there is no {role} column {name!r}; the columns are {some_of(available)} "
                    "(name them with label and qid, --label-column and --qid-column)"
                )
        if not features:
            raise DataError(f"there are no feature columns; the columns are {some_of(available)}")
        return replace(self, label=label, features=list(features))

    def _roles(self, features: Sequence[str]) -> Iterator[tuple[str, str]]:
        if self.label is not None:
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
    label: str | None = None,
    qid: str = "qid",
    labels: Sequence[str] = (),
    features: Sequence[str] | None = None,
    query_weight: str | None = None,
    doc_id: str | None = None,
    comment: str | None = None,
    categorical_features: str | Sequence[str] = (),
    group: bool = False,
    top_grade: float | None = None,
) -> RankingData:
    """Return the data set of a pandas, polars or Arrow frame with one row per document.

    Parameters
    ----------
    frame
        Frame that can be exported to Arrow, lazy frame of polars, or Arrow dataset.
    label, qid
        Columns of labels (``label`` by default; a frame without it is for scoring) and of queries.
        A null label means no label, which is allowed for documents that have a label in another
        source.
    labels
        Columns of further label sources; nulls mean no label.
    features
        Columns of features; all other columns by default. Nulls are missing values.
    query_weight, doc_id, comment
        Columns of query weights (equal within a query), document ids and comments.
    categorical_features
        Features of texts or whole numbers that are categories; ``"all"`` for all texts. Columns of
        a category or dictionary type need not be named.
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
    refuse_text("from_frame", "labels", labels)
    refuse_text("from_frame", "features", features)
    table = open_table("from_frame", frame)
    sources = {name: name for name in labels}
    columns = Columns(label, qid, sources, features, query_weight, doc_id, comment)
    columns = columns.complete(_without_index(table.names, table.index, columns))
    n_docs, batches = table.read(columns.wanted())
    encoder = CategoryEncoder(categorical_features)
    return _assemble(batches, n_docs, columns, encoder, group=group, top_grade=top_grade)


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
    categorical_features: str | Sequence[str] = (),
    group: bool = False,
    top_grade: float | None = None,
    progress: Progress | None = None,
) -> RankingData:
    """Read a Parquet file with one row per document.

    Parameters
    ----------
    path
        The file. If Rankinite wrote it, its metadata define the role of each column; otherwise
        the label is in ``label`` (without it, the set is for scoring), the query in ``qid``, and
        all other columns are features.
    label, qid, labels, features, query_weight, doc_id, comment, categorical_features, group, \
top_grade
        As in `from_frame`; they take precedence over the metadata.
    progress
        Progress reporter.
    """
    source = Path(path)
    refuse_text("load", "labels", labels)
    refuse_text("load", "features", features)
    with open_parquet(source) as file, refusing_damage(source):
        schema = file.schema_arrow
        saved = _saved(source, schema)
        columns = saved.columns
        roles: dict[str, Any] = {
            "label": label,
            "qid": qid,
            "features": features,
            "query_weight": query_weight,
            "doc_id": doc_id,
            "comment": comment,
        }
        if labels is not None:
            # A source and its column have different names if a feature had the source's name.
            roles["labels"] = {name: columns.labels.get(name, name) for name in labels}
        chosen = {name: value for name, value in roles.items() if value is not None}
        columns = replace(columns, **chosen)
        if top_grade is None and label is None:  # the saved one belongs to the saved label column
            top_grade = saved.top_grade
        described = PandasMetadata.of(schema)
        columns = columns.complete(_without_index(schema.names, described.index, columns))
        if features is not None:
            _note_ignored(source, schema.names, columns)
        encoder = CategoryEncoder(
            categorical_features, (*saved.categorical, *described.categorical)
        )
        of_texts = _texts_in(schema, columns, encoder)
        return _assemble(
            batches(source, file, columns.wanted(), of_texts, progress or Silent()),
            file.metadata.num_rows,
            columns,
            encoder,
            group=group,
            top_grade=top_grade,
        )


def write_parquet(data: RankingData, path: str | Path, *, progress: Progress | None = None) -> None:
    """Write a data set as a Parquet file; the file appears whole or not at all.

    Documents without a label have NaN; if no document has one, there is no column of labels.

    Parameters
    ----------
    data
        Data set to write.
    path
        The file.
    progress
        Progress reporter.
    """
    columns = _free_names(data)
    saved = {**asdict(columns), "top_grade": data.top_grade}
    if data.categories:
        saved[CATEGORICAL] = list(data.categories)
    metadata = {METADATA: json.dumps(saved)}
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


# Tables to data sets


def _note_ignored(path: Path, names: Sequence[str], columns: Columns) -> None:
    ignored = [name for name in names if name not in set(columns.wanted())]
    if ignored:
        log.info("%s: the columns %s are ignored", path, some_of(ignored))


def _without_index(names: Sequence[str], index: frozenset[str], columns: Columns) -> list[str]:
    """Return the columns without those of a pandas index, unless they are used by name."""
    # pandas writes its index as a column, which would otherwise be a feature.
    asked = {*columns.named(), columns.label or LABEL, *(columns.features or ())}
    return [name for name in names if name in asked or name not in index]


def _assemble(
    batches: Any,
    n_docs: int,
    columns: Columns,
    encoder: CategoryEncoder,
    *,
    group: bool,
    top_grade: float | None,
) -> RankingData:
    """Return the data set of batches; they fill one matrix, so that no table is copied whole."""
    names = list(columns.features or ())
    features = MatrixOfBatches("load", n_docs, names)
    parts: dict[str, list[Any]] = {name: [] for name in columns.named()}
    for batch in encoder.batches(batches, names):
        features.take(batch)
        for name, pieces in parts.items():
            pieces.append(batch.column(name))
    if features.n_filled == 0:
        raise DataError("there are no documents")
    features.require_all()
    features.rounding.warn(names)
    whole = {name: _concatenated(parts.pop(name)) for name in list(parts)}
    qids = ids(whole[columns.qid], columns.qid)
    return RankingData(
        features.matrix,
        None if columns.label is None else _floats(whole[columns.label], columns.label),
        qids,
        labels={
            source: _floats(whole[column], column) for source, column in columns.labels.items()
        },
        query_weight=_weights(whole, columns, qids),
        doc_ids=_texts(whole, columns.doc_id),
        comments=None
        if columns.comment is None
        else texts(whole[columns.comment], columns.comment),
        feature_names=names,
        categories=encoder.tables(features.matrix, names),
        group=group,
        top_grade=top_grade,
    )


def _floats(column: Any, name: str) -> NDArray[np.float64]:
    return numbers(column, name).astype(np.float64, copy=False)


def _concatenated(pieces: list[Any]) -> Any:
    # Each piece of a column of categories or texts may have a dictionary of its own.
    whole = pa.chunked_array(pieces).unify_dictionaries()
    return pa.concat_arrays(whole.chunks)


def _texts(whole: Mapping[str, Any], name: str | None) -> Any:
    return None if name is None else texts(whole[name], name)


def _weights(
    whole: Mapping[str, Any], columns: Columns, qids: NDArray[Any]
) -> NDArray[np.float64] | None:
    """Return one weight per query, in the order of their first documents."""
    if columns.query_weight is None:
        return None
    weights = _floats(whole[columns.query_weight], columns.query_weight)
    # A table has a weight in every row; rows of a query need not be together yet.
    _, first, query = np.unique(qids, return_index=True, return_inverse=True)
    different = weights != weights[first][query]
    if different.any():
        qid = qids[different.argmax()]
        raise DataError(
            f"column {columns.query_weight!r} has different weights for documents of query {qid}"
        )
    picked: NDArray[np.float64] = weights[np.sort(first)]
    return picked


# Parquet files


def _free_names(data: RankingData) -> Columns:
    """Choose names for the columns that are not features, so that all names are distinct."""
    taken = set(data.feature_names)

    def free(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    return Columns(
        label=None if np.isnan(data.y).all() else free(LABEL),
        qid=free("qid"),
        labels={name: free(name) for name in data.labels},
        features=list(data.feature_names),
        query_weight=None if data.query_weight is None else free("query_weight"),
        doc_id=None if data.doc_id_column is None else free("docid"),
        comment=None if data.comment_column is None else free("comment"),
    )


def _arrays(data: RankingData, columns: Columns, docs: slice) -> dict[str, Any]:
    # A group of rows at a time: whole columns would be a second copy of the matrix.
    values = dense_rows(data.matrix, docs if data.rows is None else data.rows[docs])
    arrays: dict[str, Any] = {} if columns.label is None else {columns.label: data.y[docs]}
    qid = data.qid[docs]
    # Arrow ends numpy's texts at their first zero.
    arrays[columns.qid] = qid.tolist() if qid.dtype.kind == "U" else qid
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
        if name in data.categories:
            arrays[name] = category_array(arrays[name], data.categories[name])
    return arrays


@dataclass(frozen=True)
class _Saved:
    """What Rankinite wrote about a table: roles of columns, top grade, categorical features."""

    columns: Columns = Columns()
    top_grade: float | None = None
    categorical: tuple[str, ...] = ()


def _saved(path: Path, schema: Any) -> _Saved:
    """Return what the metadata of a file say; defaults for a foreign file."""
    try:
        fields = saved_fields(path, schema)
        if fields is None:
            return _Saved()
        columns = Columns(**{name: fields[name] for name in asdict(Columns())})
        if not isinstance(columns.labels, dict) or not isinstance(columns.features, list | None):
            raise TypeError("labels or features are no names")
        categorical = fields.get(CATEGORICAL, [])
        names = [*columns.wanted(), *categorical]
        if not isinstance(categorical, list) or not all(isinstance(n, str) for n in names):
            raise TypeError("the name of a column is not a text")
        if not Real(0).allows(fields["top_grade"]):
            raise ValueError("the top grade is not a number of at least 0")
        return _Saved(columns, float(fields["top_grade"]), tuple(categorical))
    except FileFormatError:
        raise  # it is a ValueError, too
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        damage = quoted(repr(problem), 100)
        raise FileFormatError(path, f"the metadata are damaged: {damage}") from None


def _texts_in(schema: Any, columns: Columns, encoder: CategoryEncoder) -> list[str]:
    """Return the columns of texts; refuse others that should hold numbers, before they are read."""
    kinds = dict(zip(schema.names, schema.types, strict=True))
    named = {columns.qid, columns.doc_id, columns.comment}
    for name in columns.wanted():
        if name not in named and not encoder.takes(name, kinds[name]):
            require_numbers(kinds[name], name)
    return [name for name in columns.wanted() if is_text(kinds[name])]
