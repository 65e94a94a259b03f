"""Measures on arrays: scores, labels and query offsets in, one value a query out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.measures import kernels
from rankinite.measures.measure import Form, Measure

Floats = NDArray[np.float64]

# So many documents' values stay in the cache; and a call of a kernel cannot be interrupted.
DOCS_A_CALL = 1 << 17
NORMALISED = Form.NORMALISED


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
    for measure in measures:
        measure.check_labels(_labels(measure, labels), top_grade)
    valuing, columns = _ways_of_valuing(measures, top_grade)
    normalised = np.zeros(len(valuing), np.bool_)
    normalised[[c for m, c in zip(measures, columns, strict=True) if m.form == NORMALISED]] = True
    longest = int(np.diff(offsets).max())
    fixed = (
        normalised,
        np.array([int(measure.form) for measure in measures]),
        columns,
        np.array([measure.depth or 0 for measure in measures]),
        np.stack([measure.rank_weights(longest) for measure in measures]),
        np.array([_number(measure.empty) for measure in measures]),
    )
    out = np.empty((len(measures), len(offsets) - 1))
    for first, last in _calls(offsets):
        docs = slice(offsets[first], offsets[last])
        values = np.empty((len(valuing), docs.stop - docs.start))
        for row, measure in enumerate(valuing):
            values[row] = measure.document_values(_without_gaps(measure, labels, docs), top_grade)
        part = np.empty((len(measures), last - first))
        # -0.0 becomes 0.0, with which it ties.
        kernels.measure_all(
            scores[docs] + 0.0, offsets[first : last + 1] - docs.start, values, *fixed, part
        )
        out[:, first:last] = part
    return out


def _ways_of_valuing(
    measures: Sequence[Measure], top_grade: float
) -> tuple[list[Measure], NDArray[np.int64]]:
    """Return measures that value documents in different ways, and the like of each measure."""
    first: dict[Hashable, Measure] = {}
    keys = [measure.values_key(top_grade) for measure in measures]
    for key, measure in zip(keys, measures, strict=True):
        first.setdefault(key, measure)
    row = {key: k for k, key in enumerate(first)}
    return list(first.values()), np.array([row[key] for key in keys])


def _without_gaps(measure: Measure, labels: Mapping[str | None, Floats], docs: slice) -> Floats:
    part = _labels(measure, labels)[docs]
    return np.nan_to_num(part, nan=0.0) if np.isnan(part).any() else part


def _labels(measure: Measure, labels: Mapping[str | None, Floats]) -> Floats:
    if measure.source not in labels:
        known = [repr(name) for name in labels if name is not None]
        has = f"it has {', '.join(known)}" if known else "it has none but its own labels"
        raise UsageError(
            f"{measure}: the data set has no label source {measure.source!r}; {has}; "
            f"load it with labels=[{measure.source!r}], --labels {measure.source}"
        )
    return labels[measure.source]


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
