"""Measures on arrays: scores, labels and query offsets in, one value a query out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.measures import kernels
from rankinite.measures.measure import Form, Measure

Floats = NDArray[np.float64]

# One call of the kernel cannot be interrupted, so it gets no more documents than this.
DOCS_A_CALL = 1 << 21


def measure_queries(
    measures: Sequence[Measure],
    scores: Floats,
    labels: Mapping[str | None, Floats],
    offsets: NDArray[np.int64],
    top_grade: float,
) -> Floats:
    """Return the value of every measure (rows) for every query (columns).

    Every value is the exact expectation over random orders of documents with equal scores. A
    query that a measure skips has NaN.

    Parameters
    ----------
    measures
        What to compute.
    scores
        One finite score a document.
    labels
        The labels of each source; those of the data set itself under None. NaN (no label in this
        source) counts as 0.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    top_grade
        The largest grade there can be, for measures that do not name their own.
    """
    values, columns = _document_values(measures, labels, top_grade)
    normalised = np.zeros(len(values), np.bool_)
    for measure, column in zip(measures, columns, strict=True):
        normalised[column] |= measure.form == Form.NORMALISED
    unsigned = _read_only(scores + 0.0)  # -0.0 becomes 0.0, with which it ties
    longest = int(np.diff(offsets).max())
    out = np.empty((len(measures), len(offsets) - 1))
    for first, last in _calls(offsets):
        part = np.empty((len(measures), last - first))
        kernels.measure_all(
            unsigned,
            _read_only(offsets[first : last + 1]),
            values,
            normalised,
            np.array([int(measure.form) for measure in measures]),
            columns,
            np.array([measure.depth or 0 for measure in measures]),
            np.stack([measure.rank_weights(longest) for measure in measures]),
            np.array([_number(measure.empty) for measure in measures]),
            part,
        )
        out[:, first:last] = part
    return out


def _document_values(
    measures: Sequence[Measure], labels: Mapping[str | None, Floats], top_grade: float
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distinct ways in which documents are valued, and the one of each measure."""
    keys = [measure.values_key(top_grade) for measure in measures]
    rows = {key: row for row, key in enumerate(dict.fromkeys(keys))}
    columns = np.array([rows[key] for key in keys])
    values = np.empty((len(rows), len(labels[None])))
    for row, measure in dict(zip(columns.tolist(), measures, strict=True)).items():
        values[row] = measure.document_values(_labels(measure, labels), top_grade)
    return values, columns


def _labels(measure: Measure, labels: Mapping[str | None, Floats]) -> Floats:
    if measure.source not in labels:
        known = [repr(name) for name in labels if name is not None]
        has = f"it has {', '.join(known)}" if known else "it has none but its own labels"
        raise UsageError(f"{measure}: the data set has no label source {measure.source!r}; {has}")
    found = labels[measure.source]
    return np.nan_to_num(found, nan=0.0) if np.isnan(found).any() else found


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: numba compiles again for arrays that can."""
    view = array.view()
    view.flags.writeable = False
    return view


def _number(empty: int | str) -> float:
    return float("nan") if empty == "skip" else float(empty)


def _calls(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut the queries into ranges of a bounded number of documents."""
    n_queries = len(offsets) - 1
    cuts = [0]
    while cuts[-1] < n_queries:
        reach = int(np.searchsorted(offsets, offsets[cuts[-1]] + DOCS_A_CALL, side="right")) - 1
        cuts.append(min(max(reach, cuts[-1] + 1), n_queries))
    return list(pairwise(cuts))
