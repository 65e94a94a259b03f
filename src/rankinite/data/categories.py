"""Categorical features: codes in the feature matrix, and the tables that say what codes mean.

A categorical feature has whole numbers from 0 in the matrix, its codes; NaN means missing. A data
set has a table for each of its categorical features: the categories as texts, where code k is the
k-th (in sorted order, unless codes of other data come first); or no texts, if the categories are
numbers themselves. Two data sets, or a
data set and a ranker, are matched by the texts: codes of one are never compared with codes of the
other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import some_of
from rankinite.core.lazy import LazyModule, is_instance
from rankinite.core.types import Floats32
from rankinite.data.sparse import dense_column, is_sparse
from rankinite.data.tables import is_lazy

pa: Any = LazyModule("pyarrow")

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData

# By categorical feature, the texts of its codes; none if codes are all that is known.
Tables = Mapping[str, tuple[str, ...]]
NO_TABLES: Tables = MappingProxyType({})
# By categorical feature, the code of each text; none if codes are all that is known.
Codes = Mapping[str, Mapping[str, int]]
# Larger whole numbers are not all different as 32-bit floats.
MOST_CODES = 1 << 24
ALL_TEXTS = "all"
WHOLE = re.compile(r"0|[1-9][0-9]{0,7}")


def checked_tables(
    tables: Mapping[str, Sequence[str]] | None, names: Sequence[str], matrix: Floats32
) -> Tables:
    """Check the tables of a data set: features that exist, distinct texts, codes that they have."""
    if not tables:
        return NO_TABLES
    checked = {str(name): tuple(map(str, texts)) for name, texts in tables.items()}
    for name, texts in checked.items():
        if name not in names:
            raise DataError(
                f"categories: there is no feature called {name!r}; the features are "
                f"{some_of(list(names))}"
            )
        if len(set(texts)) < len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            raise DataError(f"categories: feature {name!r} has the category {twice!r} twice")
        if texts and is_sparse(matrix):
            raise DataError(
                f"categories: feature {name!r} of a sparse matrix has texts; give (), for codes "
                "alone, or a dense matrix"
            )
        column = dense_column(matrix, list(names).index(name))
        require_codes("categories", name, column, len(texts))
    return checked


def require_codes(owner: str, name: str, column: NDArray[np.float32], n_texts: int = 0) -> None:
    """Refuse values of a categorical feature that are no codes."""
    most = n_texts or MOST_CODES
    # NaN, a missing value, is neither below nor above anything.
    wrong = (column < 0) | (column >= most) | (np.floor(column) != column) & ~np.isnan(column)
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            f"{owner}: the categorical feature {name!r} has the value {column[row]:g} in row "
            f"{row}; expected whole numbers from 0 to {most - 1}, NaN where it is missing, or "
            "texts in a frame"
        )


# From one table to another


def codes_by_text(tables: Tables) -> Codes:
    """Return the code of each text of the tables."""
    return {name: {text: k for k, text in enumerate(texts)} for name, texts in tables.items()}


def match_codes(
    owner: str, matrix: Floats32, names: Sequence[str], tables: Tables, wanted: Codes
) -> Floats32:
    """Return a feature matrix with other codes; categories that have none are missing.

    The same matrix, if the codes are the same already.

    Parameters
    ----------
    owner
        Who wants it, for messages.
    matrix, names, tables
        The matrix, its features, and its own tables.
    wanted
        The codes to use, for some of the features.
    """
    if not tables and not wanted:
        return matrix
    changed: dict[int, NDArray[np.float32]] = {}
    for name, texts in tables.items():
        if texts and name not in wanted:
            raise DataError(
                f"{owner}: feature {name!r} holds categories, such as {texts[0]!r}, and it was "
                "numbers before; give numbers"
            )
    for j, name in enumerate(names):
        # Without texts, codes are taken for those that are wanted: arrays have nothing else.
        if name not in wanted or not tables.get(name):
            continue
        codes = _new_codes(owner, name, tables[name], wanted[name])
        places = np.arange(len(codes))
        # What has no code must not be left with one that means something else.
        mistaken = np.isin(places, list(wanted[name].values())) & np.isnan(codes)
        if (mistaken | (codes != places) & ~np.isnan(codes)).any():
            changed[j] = codes
    if not changed:
        return matrix
    copied = matrix.copy()
    for j, codes in changed.items():
        copied[:, j] = _looked_up(codes, copied[:, j])
    return copied


def _new_codes(
    owner: str, name: str, texts: Sequence[str], wanted: Mapping[str, int]
) -> NDArray[np.float32]:
    """Return the wanted code of each text; NaN for one that has none."""
    if not wanted:
        if not all(WHOLE.fullmatch(text) for text in texts):
            other = next(text for text in texts if not WHOLE.fullmatch(text))
            raise DataError(
                f"{owner}: the categorical feature {name!r} has the category {other!r}, and was "
                "given as numbers before; give numbers"
            )
        return np.array(texts, np.float32)
    return np.array([wanted.get(text, np.nan) for text in texts], np.float32)


def _looked_up(codes: NDArray[np.float32], column: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the new codes of a column of codes; what is no code is missing."""
    known = (column >= 0) & (column < len(codes))
    new = np.full(len(column), np.nan, np.float32)
    new[known] = codes[column[known].astype(np.int64)]
    return new


def joined_tables(sets: Iterable[Tables]) -> Tables:
    """Return tables with the categories of several data sets."""
    joined: dict[str, set[str]] = {}
    for tables in sets:
        for name, texts in tables.items():
            joined.setdefault(name, set()).update(texts)
    return {name: tuple(sorted(texts)) for name, texts in joined.items()}


def extended_tables(tables: Tables, more: Tables) -> Tables:
    """Return tables that keep their codes, with the categories of others behind theirs."""
    return {
        name: (*texts, *sorted(set(more.get(name, ())) - set(texts))) if texts else ()
        for name, texts in tables.items()
    }


# Columns of Arrow, to which pandas and polars lead


class CategoryEncoder:
    """Replaces the categorical columns of tables by codes, batch by batch.

    Columns of a dictionary type, which is what pandas and polars have for categories, are
    categorical if they hold whole numbers or texts; columns of texts if they are named.

    Parameters
    ----------
    named
        Names of categorical features; ``"all"`` for every column of texts.
    more
        More names.
    """

    def __init__(self, named: str | Iterable[str] = (), more: Iterable[str] = ()) -> None:
        self.all_texts = named == ALL_TEXTS
        if isinstance(named, str) and not self.all_texts:
            raise UsageError(f"categorical_features is the text {named!r}; give a list of names")
        self.named = {*more, *(() if self.all_texts else named)}
        self.codes: dict[str, dict[str, int]] = {}

    def batches(self, batches: Iterable[Any], features: Sequence[str]) -> Iterator[Any]:
        """Yield record batches whose categorical features are codes."""
        wanted = set(features)
        for batch in batches:
            encoded = batch
            for j, field in enumerate(batch.schema):
                if field.name in wanted and self.takes(field.name, field.type):
                    column = pa.array(self.encode(field.name, batch.column(j)), from_pandas=True)
                    encoded = encoded.set_column(j, field.name, column)
            yield encoded

    def takes(self, name: str, kind: Any) -> bool:
        """Tell whether a column of this type is a categorical feature."""
        if pa.types.is_dictionary(kind):
            return not pa.types.is_floating(kind.value_type)
        # A column without any value may have no type.
        is_empty = name in self.named and pa.types.is_null(kind)
        return is_empty or ((self.all_texts or name in self.named) and _is_text(kind))

    def encode(self, name: str, column: Any) -> NDArray[np.float32]:
        """Return the codes of a column, in the order in which its categories first came."""
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.large_string()).dictionary_encode()
        places = self.codes.setdefault(name, {})
        texts = [None if value is None else str(value) for value in column.dictionary.to_pylist()]
        codes = [np.nan if t is None else places.setdefault(t, len(places)) for t in texts]
        indices = column.indices.to_numpy(zero_copy_only=False).astype(np.float32)
        return _looked_up(np.array(codes, np.float32), indices)

    def tables(self, matrix: Floats32, names: Sequence[str]) -> Tables:
        """Return the tables, and bring the codes in the matrix into their order."""
        tables: dict[str, tuple[str, ...]] = {}
        for name, places in self.codes.items():
            if len(places) > MOST_CODES:
                raise DataError(
                    f"column {name!r} has {len(places)} categories; expected at most {MOST_CODES}"
                )
            # Numbers are their own codes: another data set may have them as numbers.
            is_whole = all(WHOLE.fullmatch(text) and int(text) < MOST_CODES for text in places)
            order = sorted(places)
            tables[name] = () if is_whole else tuple(order)
            codes = np.empty(len(places), np.float32)
            codes[[places[text] for text in order]] = (
                [int(text) for text in order] if is_whole else np.arange(len(order))
            )
            j = list(names).index(name)
            matrix[:, j] = _looked_up(codes, matrix[:, j])
        for name in self.named - tables.keys():
            if name in names:
                tables[name] = ()
        return tables


def _is_text(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def category_array(column: NDArray[np.float32], texts: Sequence[str]) -> Any:
    """Return a categorical column as an Arrow array: a dictionary of its texts, or codes."""
    codes = pa.array(np.where(np.isnan(column), 0, column).astype(np.int32), mask=np.isnan(column))
    # Parquet knows dictionaries of texts only; its metadata say which numbers are categories.
    return (
        pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.large_string()))
        if texts
        else codes
    )


def encode_frame(owner: str, frame: Any, named: Iterable[str | int] = ()) -> tuple[Any, Tables]:
    """Return a pandas, polars or Arrow frame with codes instead of categories, and its tables.

    Other objects, and frames without categorical columns, are returned as they are.

    Parameters
    ----------
    owner
        Who wants it, for messages.
    frame
        A frame, or anything else that a ranker takes.
    named
        Columns of texts that are categorical, by name or number, besides those whose type says so.
    """
    if isinstance(frame, np.ndarray):
        return frame, NO_TABLES
    frame = _in_memory(frame)
    columns = _columns(frame)
    order = list(columns)
    texts_in = (name for name in named if isinstance(name, str) or 0 <= name < len(order))
    encoder = CategoryEncoder(n if isinstance(n, str) else order[n] for n in texts_in)
    texts = {
        name: _as_arrow(owner, name, column)
        for name, column in columns.items()
        if _may_be_categorical(column, name in encoder.named)
    }
    texts = {name: array for name, array in texts.items() if encoder.takes(name, array.type)}
    if not texts:
        return frame, NO_TABLES
    names = list(texts)
    codes = np.column_stack([encoder.encode(name, array) for name, array in texts.items()])
    encoder.named = set()
    tables = encoder.tables(codes, names)
    return _with_columns(frame, {name: codes[:, j] for j, name in enumerate(names)}), tables


def _in_memory(frame: Any) -> Any:
    """Return a lazy frame or an Arrow dataset as a frame, if one of its columns has categories."""
    if is_lazy(frame):
        types = frame.collect_schema().dtypes()
        return frame.collect() if any(map(_is_category_type, types)) else frame
    if hasattr(frame, "to_table") and hasattr(frame, "schema"):
        return frame.to_table() if any(map(_is_category_type, frame.schema.types)) else frame
    return frame


def _columns(frame: Any) -> dict[str, Any]:
    """Return the columns of a frame by name; none of anything else."""
    if is_instance(frame, "pyarrow", "Table"):
        return dict(zip(frame.column_names, frame.columns, strict=True))
    kind = type(frame).__module__.partition(".")[0]
    if kind not in ("pandas", "polars") or type(frame).__name__ != "DataFrame":
        return {}
    return {name: frame[name] for name in frame.columns if isinstance(name, str)}


def _may_be_categorical(column: Any, named: bool) -> bool:
    return named or _is_category_type(getattr(column, "dtype", None) or column.type)


def _is_category_type(kind: Any) -> bool:
    return str(kind).lower().startswith(("category", "categorical", "enum", "dictionary"))


def _as_arrow(owner: str, name: str, column: Any) -> Any:
    try:
        if type(column).__module__.startswith("polars"):
            column = column.to_arrow()
        array = column if isinstance(column, pa.ChunkedArray) else pa.array(column)
    except (pa.ArrowException, ValueError, TypeError) as problem:
        raise DataError(
            f"{owner}: column {name!r} holds neither numbers nor texts: {problem}"
        ) from None
    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries().combine_chunks()
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    return array


def _with_columns(frame: Any, columns: Mapping[str, NDArray[np.float32]]) -> Any:
    if is_instance(frame, "pyarrow", "Table"):
        for name, codes in columns.items():
            frame = frame.set_column(frame.column_names.index(name), name, pa.array(codes))
        return frame
    if type(frame).__module__.startswith("polars"):
        return frame.with_columns(**columns)
    # Columns are replaced in a new frame; the caller's keeps its categories.
    return frame.assign(**columns)


def refuse_numbers(owner: str, matrix: NDArray[Any], names: Sequence[str], wanted: Codes) -> None:
    """Refuse numbers in columns of a frame that should have texts."""
    for j, name in enumerate(names):
        if wanted.get(name) and not np.isnan(matrix[:, j]).all():
            raise DataError(
                f"{owner}: feature {name!r} holds numbers, and categories are expected, such as "
                f"{next(iter(wanted[name]))!r}; give those, or an array of codes"
            )


def with_categories(owner: str, data: RankingData, chosen: Sequence[str | int]) -> RankingData:
    """Return a data set in which the chosen features are categorical, too.

    Parameters
    ----------
    owner
        Who wants it, for messages.
    data
        The data set.
    chosen
        Features by name or column; those without a table have codes.
    """
    added = {
        name: ()
        for name in chosen_features(owner, chosen, data.feature_names)
        if name not in data.categories
    }
    for name in added:
        column = dense_column(data.matrix, data.feature_names.index(name))
        require_codes(owner, name, column if data.rows is None else column[data.rows])
    return data.replace(categories={**data.categories, **added}) if added else data


def chosen_features(owner: str, chosen: Sequence[str | int], names: Sequence[str]) -> list[str]:
    """Return the names of features that are given by name or by column, from 0."""
    known = set(names)
    picked = []
    for feature in chosen:
        if isinstance(feature, str) and feature in known:
            picked.append(feature)
        elif not isinstance(feature, str) and 0 <= int(feature) < len(names):
            picked.append(names[int(feature)])
        else:
            raise UsageError(
                f"{owner}: categorical_features has {feature!r}; expected names of features, "
                f"which are {some_of(list(names))}, or their columns from 0 to {len(names) - 1}"
            )
    return list(dict.fromkeys(picked))
