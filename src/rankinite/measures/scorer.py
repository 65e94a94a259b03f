"""Measuring score vectors on one data set."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from rankinite.core.errors import UsageError
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Integers
from rankinite.measures.custom import function_values
from rankinite.measures.kernels import values_with_ties as kernels
from rankinite.measures.measure import Form, Measure


def source_of(owner: str, source: str | None, labels: Mapping[str | None, Floats]) -> Floats:
    """Return the labels of a source.

    Parameters
    ----------
    owner
        Start of the error message if there is no such source.
    source
        The name of the source; None for the data set's own labels.
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


# Fewer are evaluated by one thread before another has woken up.
QUERIES_PER_THREAD = 200
# Values of this many documents stay in the cache; and a call of a kernel cannot be interrupted.
DOCS_PER_CALL = 1 << 17


class Scorer:
    """Measures score vectors on one data set; what depends on labels only is computed once.

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
        The top grade, for measures that do not have their own.
    reuse
        Whether to keep the documents' values for further score vectors. False saves memory where
        there is only one.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        labels: Mapping[str | None, Floats],
        offsets: Integers,
        top_grade: float,
        *,
        reuse: bool = True,
    ) -> None:
        for measure in measures:
            measure.check_labels(source_of(str(measure), measure.source, labels), top_grade)
        self.measures = measures
        self._labels = labels
        self._offsets = offsets
        self._top_grade = top_grade
        self._reuse = reuse
        compiled = [measure for measure in measures if measure.form != Form.FUNCTION]
        # Measures with equal document values share a row of them; the kernel sorts once for all.
        self._is_compiled = np.array([measure.form != Form.FUNCTION for measure in measures])
        self._with_values, rows = _different_values(compiled, top_grade)
        self._table = measure_table(compiled, rows, longest=int(np.diff(offsets).max()))
        self._calls = _calls(offsets)
        self._kept: list[tuple[Floats, Floats]] = []

    def per_query(self, scores: Floats) -> Floats:
        """Return the value of every measure (rows) for every query (columns).

        Values are exact expectations over random orders of documents with equal scores, except
        those of measures without a form (see `Measure`). A query that is left out has NaN.

        Parameters
        ----------
        scores
            One finite score per document.
        """
        values = np.empty((len(self.measures), len(self._offsets) - 1))
        if self._is_compiled.any():
            values[self._is_compiled] = self._compiled_values(scores)
        for row, measure in enumerate(self.measures):
            if self._is_compiled[row]:
                continue
            labels = np.nan_to_num(source_of(str(measure), measure.source, self._labels), nan=0.0)
            values[row] = function_values(measure, scores, labels, self._offsets)
        return values

    def mean(self, scores: Floats) -> dict[str, float]:
        """Return the mean of every measure over the queries that count, by its text."""
        rows = zip(self.measures, self.per_query(scores), strict=True)
        return {str(measure): mean_of_counted(values) for measure, values in rows}

    def _compiled_values(self, scores: Floats) -> Floats:
        n_measures = len(self._table.forms)
        out = np.empty((n_measures, len(self._offsets) - 1))
        for number, (first, last) in enumerate(self._calls):
            docs = slice(self._offsets[first], self._offsets[last])
            known = number < len(self._kept)
            values, best = (
                self._kept[number] if known else self._document_values(docs, last - first)
            )
            part = np.empty((n_measures, last - first))
            parallel_for(
                kernels.measure_all,
                last - first,
                scores[docs] + 0.0,  # -0.0 becomes 0.0, with which it ties
                self._offsets[first : last + 1] - docs.start,
                values,
                self._table,
                known,
                best,
                part,
                grain=QUERIES_PER_THREAD,
            )
            out[:, first:last] = part
            if self._reuse and not known:
                self._kept.append((values, best))
        return out

    def _document_values(self, docs: slice, n_queries: int) -> tuple[Floats, Floats]:
        """Return the values of documents, and an array for the best value of each query."""
        values = np.empty((len(self._with_values), docs.stop - docs.start))
        for row, measure in enumerate(self._with_values):
            labels = source_of(str(measure), measure.source, self._labels)[docs]
            values[row] = measure.known_values(labels, self._top_grade)
        return values, np.zeros((len(self._table.forms), n_queries))


def mean_of_counted(values: Floats) -> float:
    """Return the mean over the queries that count, which are not NaN; NaN if none does."""
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if len(counted) else float("nan")


def measure_table(
    measures: Sequence[Measure], rows: Integers, longest: int
) -> kernels.MeasureTable:
    """Return measures as kernels take them.

    Parameters
    ----------
    measures
        Measures with a form.
    rows
        The row of document values that each of them uses.
    longest
        The number of documents of the longest query.
    """
    # Only rows that a normalised measure uses are sorted into the best order.
    n_rows = int(rows.max()) + 1 if len(rows) else 0
    normalised = np.zeros(n_rows, np.bool_)
    for measure, row in zip(measures, rows, strict=True):
        normalised[row] |= measure.form == Form.NORMALISED
    weights = [measure.rank_weights(longest) for measure in measures]
    return kernels.MeasureTable(
        forms=np.array([int(measure.form) for measure in measures], np.int64),
        depths=np.array([measure.depth or 0 for measure in measures], np.int64),
        empty=np.array([_number(measure.empty) for measure in measures], np.float64),
        rows=rows,
        rank_weights=np.array(weights).reshape(len(measures), longest),
        normalised=normalised,
    )


def best_sums(measure: Measure, values: Floats, offsets: Integers) -> Floats:
    """Return the largest sum of value x rank weight that any order of a query's documents gives.

    Parameters
    ----------
    measure
        A measure with a form, whose rank weights count.
    values
        The value of each document, at least 0.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    """
    best = np.zeros((1, len(offsets) - 1))
    table = measure_table([measure], np.zeros(1, np.int64), int(np.diff(offsets).max()))
    # The kernel of evaluation rather than one more to compile. It computes the best sums of
    # normalised measures, and only there.
    table = table._replace(forms=np.array([kernels.NORMALISED]), normalised=np.ones(1, np.bool_))
    parallel_for(
        kernels.measure_all,
        len(offsets) - 1,
        values + 0.0,
        offsets.copy(),  # a writeable array, as in evaluation, saves a second compilation
        values[np.newaxis],
        table,
        False,
        best,
        np.empty_like(best),
        grain=QUERIES_PER_THREAD,
    )
    return np.asarray(best[0])


def _different_values(
    measures: Sequence[Measure], top_grade: float
) -> tuple[list[Measure], Integers]:
    """Return measures whose document values differ, and which of them each measure shares."""
    first: dict[Hashable, Measure] = {}
    keys = [measure.values_key(top_grade) for measure in measures]
    for key, measure in zip(keys, measures, strict=True):
        first.setdefault(key, measure)
    row = {key: k for k, key in enumerate(first)}
    return list(first.values()), np.array([row[key] for key in keys], np.int64)


def _number(empty: int | str) -> float:
    return float("nan") if empty == "skip" else float(empty)


def _calls(offsets: Integers) -> list[tuple[int, int]]:
    """Cut the queries into ranges of a bounded number of documents."""
    n_queries = len(offsets) - 1
    cuts = [0]
    while cuts[-1] < n_queries:
        end = int(np.searchsorted(offsets, offsets[cuts[-1]] + DOCS_PER_CALL, side="right")) - 1
        cuts.append(min(max(end, cuts[-1] + 1), n_queries))  # a query is never cut
    return list(pairwise(cuts))
