"""Data augmentation: samples of the documents of each query (Ensemble, Sec. 2)."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.params import Real, Whole, check
from rankinite.core.random import generator
from rankinite.core.types import Integers
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData, concatenated_ranges
from rankinite.data.splits import refuse_samples, sample_id

log = logging.getLogger("rankinite")

FRACTION = Real(0, 1, low_open=True, high_open=True)
DRAWS_A_BLOCK = 1 << 22  # random numbers in memory at a time


def augment(
    data: RankingData, fraction: float = 0.7, times: int = 5, *, seed: int = 0
) -> RankingData:
    """Return each query followed by samples of its documents.

    A model that was trained on whole queries only may learn to rank A above C provided that B lies
    between; a sample without B prevents that (Ensemble, Sec. 2). Aug70 of the paper is
    ``augment(data, 0.7, 5)``, Aug50 is ``augment(data, 0.5, 10)``.

    Samples are drawn without replacement, keep the order of the documents, and share the feature
    matrix; labels, weights and ids are kept. Samples with fewer than two documents or with a
    single label define no order and are left out; this is decided by ``y``, and documents without
    a label do not count.

    The samples of a query depend on its id, its size, the fraction and the seed, never on other
    queries; the first five of ten samples are the same as five samples.

    Parameters
    ----------
    data
        Training data without samples. Validation data is never augmented: split first.
    fraction
        Share of a query's documents in a sample, rounded to the nearest number of documents,
        halves up; large fractions of short queries are all of their documents.
    times
        Number of samples per query. Query 12 is called "12", its samples "12~1", "12~2" and so
        on; a sample that is left out leaves a gap.
    seed
        Seed of the samples.

    Examples
    --------
    >>> data = RankingData(X=[[0.5], [0.1], [0.9]], y=[0, 1, 2], qid=[12, 12, 12])
    >>> more = augment(data, times=2)
    >>> more.qids.tolist(), more.sizes.tolist(), more.matrix is data.matrix
    (['12', '12~1', '12~2'], [3, 2, 2], True)
    """
    checks.require_data_set("augment", data)
    checks.require_labels("augment", data)
    check("augment", "fraction", fraction, FRACTION)
    check("augment", "times", times, Whole(1))
    refuse_samples("augment", data.qids, "augment the original data")
    blocks = _blocks_of_equal_size(data.sizes, times)
    samples = [_draw(data, queries, fraction, times, seed) for queries in blocks]
    more = _interleave(data, samples)
    n_drawn = data.n_queries * int(times)
    n_left_out = n_drawn - (more.n_queries - data.n_queries)
    if n_left_out:
        log.info(
            "augment: %s of %s samples are left out: fewer than two documents, or one label only",
            *(f"{count:,}" for count in (n_left_out, n_drawn)),
        )
    return more


@dataclass(frozen=True)
class _Samples:
    """Concatenated samples; number 0 is the query itself."""

    query: Integers
    number: Integers
    size: Integers
    docs: Integers


def _blocks_of_equal_size(sizes: Integers, times: int) -> Iterator[Integers]:
    """Iterate over blocks of queries with the same number of documents, which draw as arrays."""
    for size in np.unique(sizes):
        queries = np.flatnonzero(sizes == size)
        step = max(1, DRAWS_A_BLOCK // (size * times))
        yield from (queries[start : start + step] for start in range(0, len(queries), step))


def _draw(data: RankingData, queries: Integers, fraction: float, times: int, seed: int) -> _Samples:
    """Draw the samples of queries of one size; those that define no order are left out."""
    starts = data.offsets[queries]
    n_docs = int(data.offsets[queries[0] + 1] - starts[0])
    sample_size = _sample_size(fraction, n_docs)
    if sample_size < 2:
        empty = np.zeros(0, np.int64)
        return _Samples(empty, empty, empty, empty)
    name = ("augment", str(float(fraction)))
    # A generator per query, so that its samples do not depend on other queries; ``times`` rows of
    # one array, so that more samples are drawn behind the first ones.
    draws = np.stack(
        [generator(seed, *name, str(qid)).random((times, n_docs)) for qid in data.qids[queries]]
    )
    # The documents with the smallest random numbers are a sample without replacement.
    chosen = np.argpartition(draws, sample_size - 1)[..., :sample_size]
    docs = starts[:, None, None] + np.sort(chosen)
    labels = data.y[docs]
    # fmin and fmax skip documents without a label; if all lack one, NaN < NaN is false.
    ordered = np.fmin.reduce(labels, axis=-1) < np.fmax.reduce(labels, axis=-1)
    query, draw = np.nonzero(ordered)
    sizes = np.full(len(draw), sample_size)
    return _Samples(queries[query], draw + 1, sizes, docs[ordered].ravel())


def _sample_size(fraction: float, n_docs: int) -> int:
    # Exact: 0.29 of 50 is 14.5, which rounds up, and not the double just below it.
    return math.floor(Fraction(str(float(fraction))) * n_docs + Fraction(1, 2))


def _interleave(data: RankingData, samples: Sequence[_Samples]) -> RankingData:
    """Return the queries, each followed by its samples."""
    n_queries = data.n_queries
    numbers = np.zeros(n_queries, np.int64)
    parts = [_Samples(np.arange(n_queries), numbers, data.sizes, np.arange(data.n_docs)), *samples]
    query = np.concatenate([part.query for part in parts])
    number = np.concatenate([part.number for part in parts])
    size = np.concatenate([part.size for part in parts])
    docs = np.concatenate([part.docs for part in parts])
    # Samples were drawn by the sizes of queries; number 0, the query itself, comes first.
    order = np.lexsort((number, query))
    places, offsets = concatenated_ranges((np.cumsum(size) - size)[order], size[order])
    query, number = query[order], number[order]
    return data.with_documents(query, _ids(data.qids[query], number), docs[places], offsets)


def _ids(qids: NDArray[Any], numbers: Integers) -> NDArray[Any]:
    pairs = zip(qids.tolist(), numbers.tolist(), strict=True)
    return np.array([sample_id(qid, number) if number else str(qid) for qid, number in pairs])
