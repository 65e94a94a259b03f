"""Features of a query that are made of a ranker's scores (Ensemble, Sec. 4.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.wording import some_of
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOP = 3
FEATURE_NAMES = ("max of scores", "mean of scores", "max of top 3 scores", "mean of top 3 scores")
OWNER = "score_features"
# How many rows to copy at a time, so that an indexed set is not copied out twice.
ROWS_AT_ONCE = 1 << 16


def score_features(scores: ArrayLike, offsets: ArrayLike) -> NDArray[np.float32]:
    """Return four features of every document, which are those of its query.

    They are the maximum and the mean of scores over all documents of the query, and over the three
    that are ranked first (Ensemble, Sec. 4.2). The two maxima are one number; both are there as
    in the paper. A document's own score is none of them.

    Parameters
    ----------
    scores
        One score a document.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.

    Examples
    --------
    >>> score_features([1.0, 4.0, 2.0, 3.0, 7.0], [0, 4, 5])[[0, 3, 4]]
    array([[4. , 2.5, 4. , 3. ],
           [4. , 2.5, 4. , 3. ],
           [7. , 7. , 7. , 7. ]], dtype=float32)
    """
    numbers, sizes = _checked(scores, offsets)
    # The best first, so that a sum does not depend on the order in which documents were given.
    ordered = numbers[np.lexsort((-numbers, np.repeat(np.arange(len(sizes)), sizes)))]
    sizes = sizes[sizes > 0]
    starts = np.cumsum(sizes) - sizes
    largest = ordered[starts]
    means = np.add.reduceat(ordered, starts) / sizes if len(sizes) else largest
    top_sums = largest.copy()
    for k in range(1, TOP):
        has_more = sizes > k
        top_sums[has_more] += ordered[starts[has_more] + k]
    found = np.stack([largest, means, largest, top_sums / np.minimum(sizes, TOP)], axis=1)
    return np.repeat(found.astype(np.float32), sizes, axis=0)


def _checked(scores: ArrayLike, offsets: ArrayLike) -> tuple[Floats, Integers]:
    """Return scores that fit into features of 32 bits, and how many each query has."""
    numbers, bounds = np.asarray(scores, np.float64), np.asarray(offsets)
    if numbers.ndim != 1:
        raise DataError(
            f"{OWNER}: scores have the shape {numbers.shape}; expected one score a document"
        )
    if not np.isfinite(numbers).all():
        doc = int((~np.isfinite(numbers)).argmax())
        raise DataError(
            f"{OWNER}: the score of document {doc} is {numbers[doc]}; expected finite scores"
        )
    sizes = np.diff(bounds) if bounds.ndim == 1 and bounds.dtype.kind in "iu" else np.array([-1])
    if len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != len(numbers) or (sizes < 0).any():
        raise DataError(
            f"{OWNER}: offsets must go from 0 to the number of documents, {len(numbers)}, and "
            "never fall; give those of a RankingData"
        )
    limit = float(np.finfo(np.float32).max)
    return numbers.clip(-limit, limit), sizes


def with_score_features(data: RankingData, scores: ArrayLike, prefix: str = "") -> RankingData:
    """Return the data set with four more features, see `score_features`.

    Parameters
    ----------
    data
        The set.
    scores
        One score a document.
    prefix
        What the names of the new features begin with, such as that of the ranker.
    """
    checks.data_set("with_score_features", data)
    names = tuple(prefix + name for name in FEATURE_NAMES)
    taken = [name for name in names if name in set(data.feature_names)]
    if taken:
        raise UsageError(
            f"with_score_features: the data set has {some_of(taken)} already; give another prefix"
        )
    added = score_features(scores, data.offsets)
    base = np.empty((data.n_docs, data.n_features + len(names)), np.float32)
    base[:, data.n_features :] = added
    for first in range(0, data.n_docs, ROWS_AT_ONCE):
        some = slice(first, first + ROWS_AT_ONCE)
        rows = some if data.rows is None else data.rows[some]
        base[some, : data.n_features] = data.base[rows]
    return data._with(base=base, rows=None, feature_names=(*data.feature_names, *names))
