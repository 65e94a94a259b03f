"""More training data out of the same: samples of every query's documents (Ensemble, Sec. 2)."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.core.params import Real, Whole, check
from rankinite.core.random import generator
from rankinite.core.types import Integers
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData, runs
from rankinite.data.samples import first_sample, sample_id

log = logging.getLogger("rankinite")

FRACTION = Real(0, 1, low_open=True, high_open=True)
DRAWS_A_BLOCK = 1 << 22


def augment(
    data: RankingData, fraction: float = 0.7, times: int = 5, *, seed: int = 0
) -> RankingData:
    """Return every query, and directly behind it samples of its documents.

    A model that saw whole queries only may learn to rank A above C on condition that B lies
    between; a sample without B forbids that (Ensemble, Sec. 2). Aug70 of the paper is
    ``augment(data, 0.7, 5)``, Aug50 is ``augment(data, 0.5, 10)``.

    Samples are drawn without replacement, keep the order of the documents, and share the matrix
    of features; whatever belongs to a document or a query goes along. Those with fewer than two
    documents, or with one label only, say nothing about an order and are left out; the labels are
    those of the set itself, and a document without one has no part in this.

    The samples of a query depend on its id, its size, the fraction and the seed, never on other
    queries; the first five of ten are those of five.

    Parameters
    ----------
    data
        Training data without samples. Validation data is never augmented: split first.
    fraction
        The share of a query's documents that a sample has, rounded to the nearest number of
        documents, halves up; large fractions of short queries are all of their documents.
    times
        How many samples are drawn of each query. Query 12 stays as "12", its samples are called
        "12~1", "12~2" and so on; one that is left out leaves a gap.
    seed
        Another seed gives other samples.

    Examples
    --------
    >>> data = RankingData(X=[[0.5], [0.1], [0.9]], y=[0, 1, 2], qid=[12, 12, 12])
    >>> more = augment(data, times=2)
    >>> more.qids.tolist(), more.sizes.tolist(), more.base is data.base
    (['12', '12~1', '12~2'], [3, 2, 2], True)
    """
    checks.data_set("augment", data)
    check("augment", "fraction", fraction, FRACTION)
    check("augment", "times", times, Whole(1))
    sample = first_sample(data.qids)
    if sample is not None:
        raise UsageError(
            f"augment: the data hold samples already, such as {sample!r} (an id that ends in ~ and "
            "a number); augment the original data"
        )
    drawn = [_drawn(data, queries, fraction, times, seed) for queries in _alike(data.sizes, times)]
    more = _together(data, drawn)
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
    """Samples one behind the other; the number 0 is the query itself."""

    query: Integers
    number: Integers
    size: Integers
    docs: Integers


def _alike(sizes: Integers, times: int) -> Iterator[Integers]:
    """Go through the queries of one size and then another, not too many at once."""
    for size in np.unique(sizes):
        queries = np.flatnonzero(sizes == size)
        step = max(1, DRAWS_A_BLOCK // (size * times))
        yield from (queries[start : start + step] for start in range(0, len(queries), step))


def _drawn(
    data: RankingData, queries: Integers, fraction: float, times: int, seed: int
) -> _Samples:
    """Return the samples of queries of one size that teach something."""
    begins = data.offsets[queries]
    n_docs = int(data.offsets[queries[0] + 1] - begins[0])
    n_wanted = _rounded(fraction, n_docs)
    if n_wanted < 2:
        nothing = np.zeros(0, np.int64)
        return _Samples(nothing, nothing, nothing, nothing)
    name = ("augment", str(float(fraction)))
    draws = np.stack(
        [generator(seed, *name, str(qid)).random((times, n_docs)) for qid in data.qids[queries]]
    )
    chosen = np.argpartition(draws, n_wanted - 1)[..., :n_wanted]
    docs = begins[:, None, None] + np.sort(chosen)
    labels = data.y[docs]
    # fmin and fmax pass over documents without a label; nothing is below NaN.
    taught = np.fmin.reduce(labels, axis=-1) < np.fmax.reduce(labels, axis=-1)
    query, draw = np.nonzero(taught)
    return _Samples(queries[query], draw + 1, np.full(len(draw), n_wanted), docs[taught].ravel())


def _rounded(fraction: float, n_docs: int) -> int:
    """Return the size of a sample; 0.29 of 50 is 14.5 and not the double just below it."""
    return math.floor(Fraction(str(float(fraction))) * n_docs + Fraction(1, 2))


def _together(data: RankingData, drawn: Sequence[_Samples]) -> RankingData:
    """Return the whole queries, each with its samples behind it."""
    n_queries = data.n_queries
    numbers = np.zeros(n_queries, np.int64)
    parts = [_Samples(np.arange(n_queries), numbers, data.sizes, np.arange(data.n_docs)), *drawn]
    query = np.concatenate([part.query for part in parts])
    number = np.concatenate([part.number for part in parts])
    size = np.concatenate([part.size for part in parts])
    docs = np.concatenate([part.docs for part in parts])
    order = np.lexsort((number, query))
    places, offsets = runs((np.cumsum(size) - size)[order], size[order])
    query, number = query[order], number[order]
    return data._made_of(query, _ids(data.qids[query], number), docs[places], offsets)


def _ids(qids: NDArray[Any], numbers: Integers) -> NDArray[Any]:
    pairs = zip(qids.tolist(), numbers.tolist(), strict=True)
    return np.array([sample_id(qid, number) if number else str(qid) for qid, number in pairs])
