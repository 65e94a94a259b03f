"""Validation of ranking data; messages name the document, query or feature at fault."""

from __future__ import annotations

import datetime
import logging
import numbers
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import quoted
from rankinite.core.lazy import LazyModule, is_instance
from rankinite.core.memory import require_memory
from rankinite.core.params import Real, SourceName, check
from rankinite.core.types import Floats, Floats32, Integers
from rankinite.data.names import numbered_names
from rankinite.data.precision import Rounding, to_float32
from rankinite.data.sparse import is_sparse, require_finite_entries, to_csr
from rankinite.data.tables import as_matrix, plain_array

pa: Any = LazyModule("pyarrow")

log = logging.getLogger("rankinite")

ABOUT_TOP_GRADE = "top grade"  # the subject of a note
# Rows checked at a time, so that the mask of a large matrix does not double its memory.
ROWS_A_BLOCK = 1 << 16


def require_data_set(owner: str, data: object) -> None:
    """Refuse anything but a `RankingData`."""
    # By its attributes: ranking_data imports this module, so the class is not available here.
    if not (hasattr(data, "matrix") and hasattr(data, "offsets")):
        raise UsageError(f"{owner}: a {type(data).__name__} is no data set; expected a RankingData")


def feature_matrix(X: ArrayLike) -> tuple[Floats32, Rounding]:
    """Return features as a float32 matrix in C order, and what rounding did to them.

    The matrix is a view that can be made read-only.
    """
    if is_sparse(X):
        matrix = to_csr(X)
        _refuse_empty(matrix)
        return matrix, Rounding(matrix.shape[1])
    try:
        values = as_matrix("RankingData", X)
        if values.ndim != 2:
            raise DataError(f"X: has {values.ndim} dimensions; expected 2, documents x features")
        matrix, rounding = to_float32(values)
    except DataError:
        raise  # it is a ValueError, too
    except (TypeError, ValueError) as problem:
        raise DataError(f"X: cannot be made a matrix of numbers: {problem}") from None
    _refuse_empty(matrix)
    # The caller's array stays writeable when this view is made read-only.
    return matrix.view(), rounding


def _refuse_empty(matrix: Any) -> None:
    if matrix.shape[0] == 0:
        raise DataError("X: there are no documents; expected at least one")
    if matrix.shape[1] == 0:
        raise DataError("X: there are no features; expected at least one")


def feature_names(names: Sequence[str] | None, n_features: int) -> Sequence[str]:
    """Return one distinct name per feature; "1", "2", ... by default."""
    if names is None:
        return numbered_names(n_features)
    texts = tuple(str(name) for name in names)
    if len(texts) != n_features:
        raise DataError(f"feature_names: {len(texts)} names for {n_features} features")
    if len(set(texts)) != n_features:
        repeated = next(name for name in texts if texts.count(name) > 1)
        raise DataError(f"feature_names: {repeated!r} occurs twice; expected distinct names")
    return texts


def require_finite_features(matrix: Floats32, names: Sequence[str]) -> None:
    """Refuse infinite features; NaN, a missing value, is allowed."""
    if is_sparse(matrix):
        require_finite_entries(matrix, names)
        return
    for start in range(0, len(matrix), ROWS_A_BLOCK):
        infinite = np.isinf(matrix[start : start + ROWS_A_BLOCK])
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise DataError(
                f"X: feature {names[column]!r} of document {start + row} is infinite "
                "(or too large for a 32-bit float); expected a finite number, or NaN for missing"
            )


def label_array(name: str, values: ArrayLike, n_docs: int) -> Floats:
    """Return labels as float64: one per document, at least 0, NaN or finite."""
    labels = _column(name, values, n_docs, "documents")
    if np.isinf(labels).any():
        doc = np.flatnonzero(np.isinf(labels))[0]
        raise DataError(f"{name}: the label of document {doc} is {labels[doc]}; expected a number")
    _refuse_negative(name, labels)
    return labels


def require_label_in_some_source(labels: Floats, sources: Mapping[str, Floats]) -> None:
    """Refuse documents that have a label neither in ``y`` nor in any other source."""
    absent = np.isnan(labels)
    # A set without any label is for scoring; one in which some are missing is a mistake.
    if not absent.any() or absent.all():
        return
    for values in sources.values():
        absent &= np.isnan(values)
    if absent.any():
        raise DataError(
            f"y: the label of document {absent.argmax()} is nan, and no other source has one; "
            "expected a number"
        )


def require_labels(owner: str, data: Any) -> None:
    """Refuse a `RankingData` in which no document has a label."""
    if not data.is_labelled:
        raise DataError(
            f"{owner}: the data set has no labels, and can only be scored; give y, name the label "
            "column (label, --label-column), or begin each line of a text file with its label"
        )


def require_all_labels(owner: str, labels: Floats, advice: str) -> None:
    """Refuse documents without a label in ``y``."""
    absent = np.isnan(labels)
    if absent.any():
        raise DataError(f"{owner}: document {absent.argmax()} has no label; {advice}")


def label_source_array(name: str, values: ArrayLike, n_docs: int) -> Floats:
    """Return a further label source as float64; NaN where a document has no label in it."""
    check("RankingData", "a label source", name, SourceName())
    labels = _column(f"labels[{name!r}]", values, n_docs, "documents")
    if np.isinf(labels).any():
        doc = np.flatnonzero(np.isinf(labels))[0]
        raise DataError(
            f"labels[{name!r}]: the label of document {doc} is infinite; "
            "expected a number, or NaN for none"
        )
    _refuse_negative(f"labels[{name!r}]", labels)
    return labels


def weight_array(values: ArrayLike | None, n_queries: int) -> Floats | None:
    """Return query weights as float64: finite, at least 0, not all 0."""
    if values is None:
        return None
    weights = _column("query_weight", values, n_queries, "queries")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        query = np.flatnonzero(bad)[0]
        raise DataError(
            f"query_weight: the weight of query {query} is {weights[query]}; "
            "expected a finite number of at least 0"
        )
    if not weights.any():
        raise DataError("query_weight: all weights are 0; expected at least one above 0")
    return weights


def text_array(name: str, texts: Sequence[str] | None, n_docs: int) -> Any:
    """Return one text per document as an Arrow array, or None."""
    if texts is None:
        return None
    if len(texts) != n_docs:
        raise DataError(f"{name}: {len(texts)} of them for {n_docs} documents")
    if is_instance(texts, "pyarrow", "LargeStringArray"):
        return texts
    strings = ["" if text is None else str(text) for text in texts]
    try:
        return pa.array(strings, pa.large_string())
    except UnicodeEncodeError as problem:
        doc = strings.index(problem.object)
        raise DataError(f"{name}: the text of document {doc} is not Unicode: {problem}") from None


def concat_texts(arrays: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Concatenate text columns; a data set without texts contributes empty ones."""
    if all(array is None for array in arrays):
        return None
    filled = [
        pa.array([""] * size, pa.large_string()) if array is None else array
        for array, size in zip(arrays, sizes, strict=True)
    ]
    return pa.concat_arrays(filled)


def top_grade(value: float | None, labels: Floats) -> float:
    """Return the top grade: ``value``, or by default the largest label; 0 if there is none."""
    is_labelled = not np.isnan(labels).all()
    largest = float(np.nanmax(labels)) if is_labelled else 0.0
    if value is None and not is_labelled:
        return largest
    if value is None:
        sentence = "the top grade is taken to be %g, the largest label seen"
        # What it is about: a command tells this once, and not at all if it ignores labels.
        log.info(sentence, largest, extra={"about": ABOUT_TOP_GRADE})
        return largest
    check("RankingData", "top_grade", value, Real(0))
    if value < largest:
        doc = int(np.nanargmax(labels))
        raise DataError(f"top_grade: {value:g} is below the label {largest:g} of document {doc}")
    return float(value)


def query_layout(
    qid: ArrayLike | None, group_sizes: ArrayLike | None, n_docs: int, *, group: bool
) -> tuple[Integers | None, Integers, NDArray[Any]]:
    """Return the order of documents (None if it need not change), query offsets and query ids."""
    if (qid is None) == (group_sizes is None):
        raise UsageError("RankingData: give either qid or group_sizes, one of the two")
    if group_sizes is not None:
        offsets = offsets_from_sizes(group_sizes, n_docs)
        return None, offsets, np.arange(1, len(offsets))
    ids = id_values(qid)
    if ids.shape != (n_docs,):
        raise DataError(f"qid: {_shape(ids)} for {n_docs} documents; expected one per document")
    return group_queries(ids, group=group)


def id_values(values: Any) -> NDArray[Any]:
    """Return ids as an array in which different ids differ: texts in lists stay Python's."""
    # As numpy's texts they would lose a NUL at the end, and 1 would become "1".
    if isinstance(values, (list, tuple)) and any(isinstance(i, (str, bytes)) for i in values):
        ids = np.empty(len(values), object)
        ids[:] = values
        return ids
    return plain_array(values)


def group_queries(
    ids: NDArray[Any], *, group: bool
) -> tuple[Integers | None, Integers, NDArray[Any]]:
    """Find the queries in a column of ids; ``group`` brings scattered documents together."""
    if ids.dtype.kind == "O":
        # By number: an array of texts gives each the room of the longest.
        numbers, names = numbered_ids(ids)
        order, offsets, chosen = _grouped(numbers, names, group=group)
        return order, offsets, text_ids([names[k] for k in chosen.tolist()])
    return _grouped(_id_array(ids), None, group=group)


def _grouped(
    ids: NDArray[Any], names: Sequence[str] | None, *, group: bool
) -> tuple[Integers | None, Integers, NDArray[Any]]:
    scattered = first_scattered(ids)
    if scattered is None:
        starts = _query_starts(ids)
        return None, np.append(starts, len(ids)), ids[starts]
    if not group:
        again, began = scattered
        name = ids[again] if names is None else names[ids[again]]
        raise DataError(
            f"qid: query {name} comes again at document {again} after others "
            f"(it began at document {began}); put its documents together, or give group=True"
        )
    # Queries in the order of their first documents, and stable: documents keep their order.
    _, first, query = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first[query], kind="stable").astype(np.int64)
    return (order, *_grouped(ids[order], names, group=False)[1:])


def numbered_ids(ids: NDArray[Any]) -> tuple[Integers, list[str]]:
    """Return ids as numbers of distinct texts, and the texts; ids of one column are of one kind."""
    places: dict[str, int] = {}
    numbers = np.empty(len(ids), np.int64)
    first_text = -1
    for doc, qid in enumerate(ids):
        # NaN and NaT are not equal to themselves.
        if qid is None or (isinstance(qid, (float, Decimal, datetime.date)) and qid != qid):
            raise DataError(f"qid: document {doc} has none; expected one per document")
        is_text = isinstance(qid, str)
        if doc == 0:
            first_text = is_text
        elif is_text != first_text:
            # 1 and "1" would become the same query.
            raise DataError(
                f"qid: document {doc} has {quoted(repr(qid))}, and document 0 has "
                f"{quoted(repr(ids[0]))}; expected either numbers or texts"
            )
        numbers[doc] = places.setdefault(_as_id(doc, qid), len(places))
    return numbers, list(places)


def _as_id(doc: int, qid: Any) -> str:
    if isinstance(qid, str):
        return qid
    if isinstance(qid, bytes):
        try:
            return qid.decode("ascii")
        except UnicodeDecodeError as problem:
            raise DataError(f"qid: a query id is not text: {problem}") from None
    if isinstance(qid, (numbers.Number, Decimal, np.generic, datetime.date, uuid.UUID)):
        return str(qid)
    raise DataError(
        f"qid: document {doc} has a {type(qid).__name__}; expected whole numbers or texts"
    )


def text_ids(texts: Sequence[str]) -> NDArray[np.str_]:
    """Return ids that are texts as an array; refuse those that it would not keep as they are."""
    for text in texts:
        # numpy ends a text at its last character that is not NUL.
        if "\0" in text:
            raise DataError(f"qid: the id {quoted(text)} has a NUL character; leave it out")
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            raise DataError(f"qid: the id {quoted(text)} is not Unicode: {problem}") from None
    longest = max(map(len, texts), default=0)
    what = f"an array of {len(texts):,} query ids, of which the longest has {longest:,} characters,"
    require_memory("qid", what, 2 * 4 * len(texts) * longest, "give shorter ids")
    return np.array(texts, np.str_)


def first_scattered(ids: NDArray[Any]) -> tuple[int, int] | None:
    """Return the first document that resumes an earlier query, and where that query began."""
    # Over runs of equal ids, of which there are far fewer than documents to sort.
    starts = _query_starts(ids)
    _, first, query = np.unique(ids[starts], return_index=True, return_inverse=True)
    again = np.flatnonzero(first[query] != np.arange(len(starts)))
    if len(again) == 0:
        return None
    return int(starts[again[0]]), int(starts[first[query[again[0]]]])


def _query_starts(ids: NDArray[Any]) -> Integers:
    return np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1]).astype(np.int64)


def require_distinct_queries(qids: NDArray[Any]) -> None:
    """Refuse a query id that occurs twice."""
    values, counts = np.unique(qids, return_counts=True)
    if (counts > 1).any():
        raise DataError(f"query {values[counts > 1][0]} is in two of the sets; expected in one")


def offsets_from_sizes(
    group_sizes: ArrayLike, n_docs: int, *, name: str = "group_sizes"
) -> Integers:
    """Return the offsets of group sizes, which must be positive integers that sum to n_docs."""
    values = np.asarray(group_sizes)
    if values.ndim != 1 or values.size == 0:
        raise DataError(f"{name}: expected one size per query")
    # Whole numbers in a float column, as frames often have them, are accepted.
    sizes = values.astype(np.int64) if values.dtype.kind in "iuf" else None
    if sizes is None or (sizes != values).any() or (sizes < 1).any():
        bad = 0 if sizes is None else int(np.flatnonzero((sizes != values) | (sizes < 1))[0])
        raise DataError(
            f"{name}: query {bad} has size {values[bad]}; expected a whole number above 0"
        )
    if sizes.sum() != n_docs:
        raise DataError(f"{name}: they add up to {sizes.sum()}, but there are {n_docs} documents")
    return np.concatenate([[0], np.cumsum(sizes)])


def _id_array(ids: NDArray[Any]) -> NDArray[Any]:
    if ids.dtype.kind == "i":
        return ids.astype(np.int64)
    if ids.dtype.kind == "f" and not np.isfinite(ids).all():
        doc = int((~np.isfinite(ids)).argmax())
        raise DataError(f"qid: document {doc} has {ids[doc]}; expected one per document")
    # Whole numbers in a float column, as frames often have them, are accepted.
    if ids.dtype.kind == "u" or (ids.dtype.kind == "f" and (ids == np.floor(ids)).all()):
        outside = (ids >= 2**63) | (ids < -(2**63))
        if outside.any():
            doc = int(outside.argmax())
            raise DataError(
                f"qid: {ids[doc]} of document {doc} does not fit in a 64-bit integer; give texts"
            )
        if ids.dtype.kind == "f":
            rounded = np.abs(ids) >= 2.0 ** (np.finfo(ids.dtype).nmant + 1)
            if rounded.any():
                doc = int(rounded.argmax())
                raise DataError(
                    f"qid: {ids[doc]:.0f} of document {doc} may be several whole numbers, which "
                    f"are the same as {ids.dtype}; give integers or texts"
                )
        return ids.astype(np.int64)
    if ids.dtype.kind in "UST":
        try:
            return ids.astype(str)
        except UnicodeDecodeError as problem:
            raise DataError(f"qid: a query id is not text: {problem}") from None
    raise DataError(f"qid: cannot use {ids.dtype} as query ids; expected whole numbers or texts")


def _column(name: str, values: ArrayLike, length: int, what: str) -> Floats:
    try:
        column = np.array(
            plain_array(values), dtype=np.float64
        )  # a copy, which is made read-only later
    except (TypeError, ValueError) as problem:
        raise DataError(f"{name}: cannot be made numbers: {problem}") from None
    if column.shape != (length,):
        raise DataError(f"{name}: {_shape(column)} for {length} {what}; expected one each")
    return column


def _refuse_negative(name: str, labels: Floats) -> None:
    if (labels < 0).any():
        doc = np.flatnonzero(labels < 0)[0]
        raise DataError(
            f"{name}: the label of document {doc} is {labels[doc]:g}; expected at least 0"
        )


def _shape(array: NDArray[Any]) -> str:
    if array.ndim == 1:
        return f"{len(array)} values"
    return f"an array of shape {array.shape}"
