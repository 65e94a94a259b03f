"""What a set of ranking data must be; the messages name the document, query or feature."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import Real, SourceName, check

log = logging.getLogger("rankinite")

BLOCK = 1 << 16


def data_set(owner: str, data: object) -> None:
    """Refuse what is no `RankingData`, told by what every such set has."""
    if not (hasattr(data, "base") and hasattr(data, "offsets")):
        raise UsageError(f"{owner}: a {type(data).__name__} is no data set; expected a RankingData")


def feature_matrix(X: ArrayLike) -> NDArray[np.float32]:
    """Return features as a read-only float32 matrix in C order."""
    try:
        with np.errstate(over="ignore"):
            matrix = np.asarray(X, dtype=np.float32, order="C")
    except (TypeError, ValueError) as problem:
        raise DataError(f"X: cannot be made a matrix of numbers: {problem}") from None
    if matrix.ndim != 2:
        raise DataError(f"X: has {matrix.ndim} dimensions; expected 2, documents x features")
    if matrix.shape[0] == 0:
        raise DataError("X: there are no documents; expected at least one")
    if matrix.shape[1] == 0:
        raise DataError("X: there are no features; expected at least one")
    return matrix.view()


def names_of_features(names: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    """Return one distinct name a feature; "1", "2", ... if there are none."""
    if names is None:
        return tuple(str(j + 1) for j in range(n_features))
    given = tuple(str(name) for name in names)
    if len(given) != n_features:
        raise DataError(f"feature_names: {len(given)} names for {n_features} features")
    if len(set(given)) != n_features:
        twice = next(name for name in given if given.count(name) > 1)
        raise DataError(f"feature_names: {twice!r} stands twice; expected distinct names")
    return given


def finite_features(matrix: NDArray[np.float32], names: Sequence[str]) -> None:
    """Refuse infinite features; NaN is a missing value."""
    for start in range(0, len(matrix), BLOCK):
        infinite = np.isinf(matrix[start : start + BLOCK])
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise DataError(
                f"X: feature {names[column]!r} of document {start + row} is infinite "
                "(or too large for a 32-bit float); expected a finite number, or NaN for missing"
            )


def label_array(name: str, values: ArrayLike, n_docs: int) -> NDArray[np.float64]:
    """Return labels as float64: one a document, at least 0; infinite ones are refused."""
    labels = _column(name, values, n_docs, "documents")
    if np.isinf(labels).any():
        doc = np.flatnonzero(np.isinf(labels))[0]
        raise DataError(f"{name}: the label of document {doc} is {labels[doc]}; expected a number")
    _refuse_negative(name, labels)
    return labels


def each_labelled(labels: NDArray[np.float64], sources: Mapping[str, NDArray[np.float64]]) -> None:
    """Refuse documents that have a label in no source, the data set's own labels among them."""
    absent = np.isnan(labels)
    if not absent.any():
        return
    for values in sources.values():
        absent &= np.isnan(values)
    if absent.any():
        raise DataError(
            f"y: the label of document {absent.argmax()} is nan, and no other source has one; "
            "expected a number"
        )


def some_labelled(owner: str, labels: NDArray[np.float64]) -> None:
    """Refuse labels that are all missing."""
    if np.isnan(labels).all():
        raise DataError(
            f"{owner}: no document has a label of the set's own; expected one at least "
            "(labels of a single source are given as y)"
        )


def all_labelled(owner: str, labels: NDArray[np.float64], advice: str) -> None:
    """Refuse documents without a label of the data set's own, where each needs one."""
    absent = np.isnan(labels)
    if absent.any():
        raise DataError(f"{owner}: document {absent.argmax()} has no label; {advice}")


def source_array(name: str, values: ArrayLike, n_docs: int) -> NDArray[np.float64]:
    """Return a further label source as float64: like labels, but NaN where there is none."""
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


def weight_array(values: ArrayLike | None, n_queries: int) -> NDArray[np.float64] | None:
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
    """Return one text a document as an Arrow array, or None."""
    if texts is None:
        return None
    if len(texts) != n_docs:
        raise DataError(f"{name}: {len(texts)} of them for {n_docs} documents")
    given = ["" if text is None else str(text) for text in texts]
    try:
        return pa.array(given, pa.large_string())
    except UnicodeEncodeError as problem:
        doc = given.index(problem.object)
        raise DataError(f"{name}: the text of document {doc} is not Unicode: {problem}") from None


def joined_texts(arrays: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Put text columns one behind the other; a set without texts has empty ones."""
    if all(array is None for array in arrays):
        return None
    filled = [
        pa.array([""] * size, pa.large_string()) if array is None else array
        for array, size in zip(arrays, sizes, strict=True)
    ]
    return pa.concat_arrays(filled)


def grade(top_grade: float | None, labels: NDArray[np.float64]) -> float:
    """Return the top grade: the one given, or else the largest label seen."""
    largest = float(np.nanmax(labels))
    if top_grade is None:
        log.info("the top grade is taken to be %g, the largest label seen", largest)
        return largest
    check("RankingData", "top_grade", top_grade, Real(0))
    if top_grade < largest:
        doc = int(np.nanargmax(labels))
        raise DataError(
            f"top_grade: {top_grade:g} is below the label {largest:g} of document {doc}"
        )
    return float(top_grade)


def queries(
    qid: ArrayLike | None, group_sizes: ArrayLike | None, n_docs: int, *, group: bool
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[Any]]:
    """Return the order of documents (None if they stand right), query offsets and query ids."""
    if (qid is None) == (group_sizes is None):
        raise UsageError("RankingData: give either qid or group_sizes, one of the two")
    if group_sizes is not None:
        offsets = offsets_of_sizes(group_sizes, n_docs)
        return None, offsets, np.arange(1, len(offsets))
    ids = np.asarray(qid)
    if ids.shape != (n_docs,):
        raise DataError(f"qid: {_shape(ids)} for {n_docs} documents; expected one a document")
    return grouped(_id_array(ids), group=group)


def grouped(
    ids: NDArray[Any], *, group: bool
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[Any]]:
    """Find the queries in a column of ids; ``group`` brings together what stands apart."""
    apart = first_apart(ids)
    if apart is None:
        starts = _run_starts(ids)
        return None, np.append(starts, len(ids)), ids[starts]
    if not group:
        again, began = apart
        raise DataError(
            f"qid: query {ids[again]} comes again at document {again} after others "
            f"(it began at document {began}); put its documents together, or give group=True"
        )
    _, first, query = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first[query], kind="stable").astype(np.int64)
    return (order, *grouped(ids[order], group=False)[1:])


def first_apart(ids: NDArray[Any]) -> tuple[int, int] | None:
    """Return the first document that continues a query after others, and where that began."""
    starts = _run_starts(ids)
    _, first, query = np.unique(ids[starts], return_index=True, return_inverse=True)
    again = np.flatnonzero(first[query] != np.arange(len(starts)))
    if len(again) == 0:
        return None
    return int(starts[again[0]]), int(starts[first[query[again[0]]]])


def _run_starts(ids: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1]).astype(np.int64)


def distinct_queries(qids: NDArray[Any]) -> None:
    """Refuse a query id that stands for two queries."""
    values, counts = np.unique(qids, return_counts=True)
    if (counts > 1).any():
        raise DataError(f"query {values[counts > 1][0]} is in two of the sets; expected in one")


def offsets_of_sizes(group_sizes: ArrayLike, n_docs: int) -> NDArray[np.int64]:
    """Turn group sizes into offsets; they are whole, positive and add up to the documents."""
    given = np.asarray(group_sizes)
    if given.ndim != 1 or given.size == 0:
        raise DataError("group_sizes: expected one size a query")
    sizes = given.astype(np.int64) if given.dtype.kind in "iuf" else None
    if sizes is None or (sizes != given).any() or (sizes < 1).any():
        bad = 0 if sizes is None else int(np.flatnonzero((sizes != given) | (sizes < 1))[0])
        raise DataError(
            f"group_sizes: query {bad} has size {given[bad]}; expected a whole number above 0"
        )
    if sizes.sum() != n_docs:
        raise DataError(f"group_sizes: they add up to {sizes.sum()}, but documents are {n_docs}")
    return np.concatenate([[0], np.cumsum(sizes)])


def _id_array(ids: NDArray[Any]) -> NDArray[Any]:
    if ids.dtype.kind == "i":
        return ids.astype(np.int64)
    if ids.dtype.kind == "f" and not np.isfinite(ids).all():
        doc = int((~np.isfinite(ids)).argmax())
        raise DataError(f"qid: document {doc} has {ids[doc]}; expected one a document")
    if ids.dtype.kind == "u" or (ids.dtype.kind == "f" and (ids == np.floor(ids)).all()):
        outside = (ids >= 2**63) | (ids < -(2**63))
        if outside.any():
            doc = int(outside.argmax())
            raise DataError(
                f"qid: {ids[doc]} of document {doc} does not fit in a 64-bit integer; give texts"
            )
        return ids.astype(np.int64)
    if ids.dtype.kind in "OUST":
        _refuse_absent(ids)
        try:
            return ids.astype(str)
        except UnicodeDecodeError as problem:
            raise DataError(f"qid: a query id is not text: {problem}") from None
    raise DataError(f"qid: cannot use {ids.dtype} as query ids; expected whole numbers or texts")


def _refuse_absent(ids: NDArray[Any]) -> None:
    """Refuse None and NaN, which would pass for a query of that name."""
    for doc, qid in enumerate(ids if ids.dtype.kind == "O" else ()):
        if qid is None or (isinstance(qid, float) and np.isnan(qid)):
            raise DataError(f"qid: document {doc} has none; expected one a document")


def _column(name: str, values: ArrayLike, length: int, what: str) -> NDArray[np.float64]:
    try:
        column = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"{name}: cannot be made numbers: {problem}") from None
    if column.shape != (length,):
        raise DataError(f"{name}: {_shape(column)} for {length} {what}; expected one each")
    return column


def _refuse_negative(name: str, labels: NDArray[np.float64]) -> None:
    if (labels < 0).any():
        doc = np.flatnonzero(labels < 0)[0]
        raise DataError(
            f"{name}: the label of document {doc} is {labels[doc]:g}; expected at least 0"
        )


def _shape(array: NDArray[Any]) -> str:
    if array.ndim == 1:
        return f"{len(array)} values"
    return f"an array of shape {array.shape}"
