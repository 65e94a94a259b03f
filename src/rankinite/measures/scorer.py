"""Label sources: the data set's own labels, and others by name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.core.types import Floats
from rankinite.measures import kernels
from rankinite.measures.measure import Form, Measure


def source_of(owner: str, source: str | None, labels: Mapping[str | None, Floats]) -> Floats:
    """Return the labels of a source.

    Parameters
    ----------
    owner
        Who asks, for the message if there is no such source.
    source
        Its name; None for the data set's own labels.
    labels
        All labels, by source.
    """
    if source not in labels:
        known = [repr(name) for name in labels if name is not None]
        has = f"it has {', '.join(known)}" if known else "it has none but its own labels"
        raise UsageError(
            f"{owner}: the data set has no label source {source!r}; {has}; "
            f"load it with labels=[{source!r}], --labels {source}"
        )
    return labels[source]


# So many documents' values stay in the cache; and a call of a kernel cannot be interrupted.
DOCS_A_CALL = 1 << 17
NORMALISED = Form.NORMALISED


class Scorer:
    """Measures of one data set; what does not depend on scores is computed once.

    Parameters
    ----------
    measures
        What to compute.
    labels
        The labels of each source; those of the data set itself under None. NaN (no label in this
        source) counts as 0.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    top_grade
        The largest grade there can be, for measures that do not name their own.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        labels: Mapping[str | None, Floats],
        offsets: NDArray[np.int64],
        top_grade: float,
    ) -> None:
        for measure in measures:
            measure.check_labels(source_of(str(measure), measure.source, labels), top_grade)
        self.measures = measures
        self._labels = labels
        self._offsets = offsets
        self._top_grade = top_grade
        self._valuing, columns = _ways_of_valuing(measures, top_grade)
        normalised = np.zeros(len(self._valuing), np.bool_)
        normalised[[c for m, c in zip(measures, columns, strict=True) if m.form == NORMALISED]] = 1
        longest = int(np.diff(offsets).max())
        self._fixed = (
            normalised,
            np.array([int(measure.form) for measure in measures]),
            columns,
            np.array([measure.depth or 0 for measure in measures]),
            np.stack([measure.rank_weights(longest) for measure in measures]),
            np.array([_number(measure.empty) for measure in measures]),
        )
        self._calls = _calls(offsets)
        self._kept: list[tuple[Floats, Floats]] = []

    def measure(self, scores: Floats, *, again: bool = False) -> Floats:
        """Return the value of every measure (rows) for every query (columns).

        Every value is the exact expectation over random orders of documents with equal scores. A
        query that a measure skips has NaN.

        Parameters
        ----------
        scores
            One finite score a document.
        again
            Keep the documents' values, for other scores to come.
        """
        out = np.empty((len(self.measures), len(self._offsets) - 1))
        for number, (first, last) in enumerate(self._calls):
            docs = slice(self._offsets[first], self._offsets[last])
            known = number < len(self._kept)
            values, best = self._kept[number] if known else self._worth(docs, last - first)
            part = np.empty((len(self.measures), last - first))
            # -0.0 becomes 0.0, with which it ties.
            kernels.measure_all(
                scores[docs] + 0.0,
                self._offsets[first : last + 1] - docs.start,
                values,
                *self._fixed,
                known,
                best,
                part,
            )
            out[:, first:last] = part
            if again and not known:
                self._kept.append((values, best))
        return out

    def _worth(self, docs: slice, n_queries: int) -> tuple[Floats, Floats]:
        """Return the values of documents, and room for what each query has at its best."""
        values = np.empty((len(self._valuing), docs.stop - docs.start))
        for row, measure in enumerate(self._valuing):
            labels = _without_gaps(measure, self._labels, docs)
            values[row] = measure.document_values(labels, self._top_grade)
        return values, np.zeros((len(self.measures), n_queries))


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
    part = source_of(str(measure), measure.source, labels)[docs]
    return np.nan_to_num(part, nan=0.0) if np.isnan(part).any() else part


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
