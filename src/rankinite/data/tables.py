"""Frames of other libraries as batches of Arrow columns, and columns as numbers.

`open_table` takes whatever exports itself to Arrow (frames of pandas and polars, Arrow tables and
readers), and what is read only when it is needed: lazy frames of polars, and Arrow datasets, which
may be larger than memory and of which only the columns in use are read, batch by batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import quoted
from rankinite.core.lazy import LazyModule
from rankinite.core.memory import require_memory
from rankinite.core.types import Floats32
from rankinite.data.budget import BYTES_OF_JSON, COPIES_OF_TEXTS, SHORT_JSON, bytes_of_data
from rankinite.data.precision import Rounding

pa: Any = LazyModule("pyarrow")
pc: Any = LazyModule("pyarrow.compute")

ROWS_A_BATCH = 1 << 14  # rows that are converted at a time


@dataclass(frozen=True)
class Table:
    """A frame whose columns can be read in batches.

    Attributes
    ----------
    names
        Names of the columns.
    index
        Columns that are the index of pandas, and no features.
    read
        Takes names of columns; returns the number of rows, and batches of these columns.
    """

    names: Sequence[str]
    index: frozenset[str]
    read: Callable[[Sequence[str]], tuple[int, Iterator[Any]]]


@dataclass(frozen=True)
class PandasMetadata:
    """What pandas wrote about a table: the columns of its index, and those of categories."""

    index: frozenset[str]
    categorical: tuple[str, ...]

    @classmethod
    def of(cls, schema: Any) -> PandasMetadata:
        """Return the metadata of a schema; none for tables of others."""
        text = (schema.metadata or {}).get(b"pandas", b"{}")
        what = "the metadata that pandas wrote into the table"
        if len(text) > SHORT_JSON:
            require_memory("load", what, BYTES_OF_JSON * len(text), "write the table without it")
        try:
            fields = json.loads(text)
            # Ranges, which are no columns, are described by objects.
            index = [
                name for name in fields.get("index_columns") or () if not isinstance(name, dict)
            ]
            columns = list(fields.get("columns") or ())
            categorical = [c["field_name"] for c in columns if c["pandas_type"] == "categorical"]
            if not all(isinstance(name, str | None) for name in (*index, *categorical)):
                raise TypeError("the name of a column is not a text")
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as problem:
            raise DataError(f"{what} are damaged: {quoted(repr(problem), 100)}") from None
        return cls(
            frozenset(name for name in index if name is not None),
            tuple(name for name in categorical if name is not None),
        )


def is_table(frame: Any) -> bool:
    """Return whether `open_table` takes a frame."""
    # A single column is exported, too, but is no table.
    exports = hasattr(frame, "__arrow_c_stream__") and hasattr(frame, "columns")
    return exports or is_lazy(frame) or _is_dataset(frame)


def is_lazy(frame: Any) -> bool:
    """Return whether a frame is a query of polars that was not computed yet."""
    return hasattr(frame, "collect_schema") and hasattr(frame, "collect")


def _is_dataset(frame: Any) -> bool:
    return hasattr(frame, "to_batches") and hasattr(frame, "count_rows")


def open_table(owner: str, frame: Any) -> Table:
    """Return a frame as a table.

    Parameters
    ----------
    owner
        Start of an error message.
    frame
        The frame.
    """
    if is_lazy(frame):
        names = frame.collect_schema().names()
        return Table(
            names, frozenset(), lambda chosen: _batches(frame.select(list(chosen)).collect())
        )
    if _is_dataset(frame):

        def read(chosen: Sequence[str]) -> tuple[int, Iterator[Any]]:
            batches = frame.to_batches(columns=list(chosen), batch_size=ROWS_A_BATCH)
            return int(frame.count_rows()), iter(batches)

        return Table(frame.schema.names, PandasMetadata.of(frame.schema).index, read)
    if not hasattr(frame, "__arrow_c_stream__"):
        raise UsageError(
            f"{owner}: cannot read a {type(frame).__name__}; "
            "expected a pandas, polars or Arrow frame"
        )
    try:
        table = pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as problem:
        raise DataError(f"the frame cannot be made an Arrow table: {problem}") from None
    return Table(
        table.schema.names,
        PandasMetadata.of(table.schema).index,
        lambda chosen: _batches(table.select(list(chosen))),
    )


def _batches(frame: Any) -> tuple[int, Iterator[Any]]:
    table = pa.table(frame)
    return table.num_rows, iter(table.to_batches(max_chunksize=ROWS_A_BATCH))


class MatrixOfBatches:
    """A feature matrix that batches fill one after the other, so that no table is copied whole.

    Parameters
    ----------
    owner
        Start of an error message.
    n_rows
        Number of rows of all batches together.
    names
        Columns of the features.
    """

    def __init__(self, owner: str, n_rows: int, names: Sequence[str]) -> None:
        what = f"reading {n_rows:,} documents x {len(names):,} features"
        if n_rows < 0:
            raise DataError(f"the table says that it has {n_rows} rows; it is damaged")
        n_bytes = bytes_of_data(n_rows, len(names))
        require_memory(owner, what, n_bytes, "take fewer documents or features")
        self.names = names
        self.matrix: Floats32 = np.empty((n_rows, len(names)), np.float32)
        self.n_filled = 0
        self.rounding = Rounding(len(names))

    def take(self, batch: Any) -> None:
        """Copy the features of a batch into the matrix."""
        block = self.matrix[self.n_filled : self.n_filled + batch.num_rows]
        if len(block) < batch.num_rows:
            raise DataError(f"the table has more rows than {len(self.matrix)}, as it says itself")
        for j, name in enumerate(self.names):
            wide = numbers(batch.column(name), name)
            # Too large a number becomes infinite, which RankingData refuses by its place.
            with np.errstate(over="ignore"):
                block[:, j] = wide
            self.rounding.see(wide[:, None], block[:, j : j + 1], slice(j, j + 1))
        self.n_filled += batch.num_rows

    def require_all(self) -> None:
        """Refuse a table with fewer rows than it says: the others have no values."""
        if self.n_filled < len(self.matrix):
            raise DataError(
                f"the table has {self.n_filled} rows, and says that it has {len(self.matrix)}"
            )


def column_names(X: Any) -> list[Any] | None:
    """Return what a frame calls its columns; None for an array."""
    if isinstance(X, np.ndarray):
        return None
    if is_lazy(X):
        return list(X.collect_schema().names())
    if is_table(X) and not hasattr(X, "columns"):  # a dataset has a schema only
        return list(X.schema.names)
    for attribute in ("column_names", "columns"):  # Arrow; pandas and polars
        if hasattr(X, attribute):
            return list(getattr(X, attribute))
    return None


def feature_names_of(X: Any) -> list[str] | None:
    """Return the names of a frame's columns; None for an array, or if they are only numbered."""
    names = column_names(X)
    # A frame of pandas numbers the columns that nobody named.
    if names is None or all(isinstance(name, (int, np.integer)) for name in names):
        return None
    return [str(name) for name in names]


def as_matrix(owner: str, X: Any) -> NDArray[Any]:
    """Return the values of an array or of a frame, of whatever type; nulls become NaN."""
    # Frames of pandas have columns that Arrow does not know, such as sparse ones.
    if is_table(X) and not hasattr(X, "iloc"):
        return _matrix_of_table(owner, X)
    return plain_array(X)


def _matrix_of_table(owner: str, frame: Any) -> Floats32:
    table = open_table(owner, frame)
    n_rows, batches = table.read(table.names)
    features = MatrixOfBatches(owner, n_rows, table.names)
    for batch in batches:
        features.take(batch)
    features.require_all()
    features.rounding.warn(table.names)
    return features.matrix


def plain_array(values: Any) -> NDArray[Any]:
    """Return an array of numbers, or of whatever else it holds; pandas' NA becomes NaN."""
    array = np.asarray(values)
    if array.dtype.kind != "O" or not hasattr(values, "to_numpy"):
        return array
    # Columns of pandas that may hold NA; those of texts stay what they are.
    kind = getattr(getattr(values, "dtype", None), "kind", "f")
    if kind in "iu" and not values.isna().any():
        return np.asarray(values.to_numpy(dtype=np.int64))
    if kind not in "iufb":
        return array
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def numbers(column: Any, name: str) -> NDArray[Any]:
    """Return a column as numbers; nulls become NaN."""
    require_numbers(column.type, name)
    column = decoded(column)
    kind = column.type
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        column = column.cast(pa.float64())
    if pa.types.is_boolean(kind):  # with nulls, numpy would get Python objects
        column = column.cast(pa.uint8())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def require_numbers(kind: Any, name: str) -> None:
    """Refuse a column of a type whose values are no numbers."""
    kind = _value_type(kind)
    if not _is_any(kind, "integer", "floating", "boolean", "decimal", "null"):
        raise DataError(
            f"column {name!r} holds {kind}; expected numbers "
            "(document ids are named with doc_id, --doc-id-column; features with features; "
            "categories have a dictionary type, or are named with categorical_features, "
            "--categorical-features)"
        )


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_any(kind: Any, *names: str) -> bool:
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def is_text(kind: Any) -> bool:
    """Tell whether a column of this type holds texts, or bytes that may be texts."""
    return _is_any(kind, "string", "large_string", "string_view", "binary", "large_binary")


def ids(column: Any, name: str) -> NDArray[Any]:
    """Return a column of query ids, one for each row: numbers, or objects that rows share."""
    kind = _value_type(column.type)
    if not is_text(kind) and not _is_any(
        kind, "integer", "floating", "decimal", "boolean", "temporal"
    ):
        raise DataError(f"column {name!r} holds {kind}; expected whole numbers or texts")
    if column.null_count:
        raise DataError(f"column {name!r} has no query for some documents; expected one for each")
    if not is_text(kind):
        return np.asarray(decoded(column).to_numpy(zero_copy_only=False))
    if not pa.types.is_dictionary(column.type):
        column = _as_texts(column).dictionary_encode()
    distinct: NDArray[np.object_] = np.empty(len(column.dictionary), object)
    distinct[:] = _as_texts(column.dictionary).to_pylist()
    chosen: NDArray[np.object_] = distinct[column.indices.to_numpy(zero_copy_only=False)]
    return chosen


def texts(column: Any, name: str) -> Any:
    """Return a column as texts; nulls become empty."""
    if not is_text(_value_type(column.type)):
        values = ("" if value is None else str(value) for value in decoded(column).to_pylist())
        return pa.array(list(values), pa.large_string())
    if pa.types.is_dictionary(column.type):
        # Each row gets a text of its own.
        lengths = pc.binary_length(_as_texts(column.dictionary)).take(column.indices)
        n_bytes = COPIES_OF_TEXTS * (pc.sum(lengths).as_py() or 0)
        what = f"the text of column {name!r}"
        require_memory("load", what, n_bytes, "leave it out, or take fewer documents")
    return pc.fill_null(_as_texts(decoded(column)), "")


def _as_texts(column: Any) -> Any:
    try:
        # Arrow does not look at the bytes before it is asked.
        converted = column.cast(pa.large_string())
        converted.validate(full=True)
    except pa.ArrowInvalid as problem:
        raise DataError(f"a text of a column is not UTF-8: {problem}") from None
    return converted


def decoded(column: Any) -> Any:
    """Return the values of a dictionary column; other columns unchanged."""
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    if pa.types.is_string_view(values.type):  # of polars; Arrow has no take for them
        values = values.cast(pa.large_string())
    return values.take(column.indices)
