"""Splits and folds of queries, and the samples that stay with the query they were drawn from.

A sample (`augment` makes them) carries its origin in its id: ``12~3`` is the third sample of query
12. Ids survive files, frames and copies, so the relation needs no column of its own and cannot get
lost. A query and its samples share documents. So they are in the same part of every split, as the
groups of scikit-learn's ``GroupKFold`` are, and what assumes independent queries refuses samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import Real, Whole, check
from rankinite.core.random import generator
from rankinite.core.types import Integers, Mask

PROPORTION = Real(0, 1e100, low_open=True)  # bounded so that sums are finite
SEPARATOR = "~"


def split_queries(qids: NDArray[Any], parts: int | Sequence[float], seed: int) -> list[Integers]:
    """Return the queries of each part: origins in shuffled order, samples behind their query."""
    origin = origins(qids)
    n_origins = int(origin.max()) + 1
    order = generator(seed, "split").permutation(n_origins)
    bounds = _bounds(parts, n_origins)
    place = np.argsort(order)[origin]
    queries = np.lexsort((are_samples(qids), place))
    return np.split(queries, np.searchsorted(place[queries], bounds[:-1]))


def _bounds(parts: int | Sequence[float], n_origins: int) -> Integers:
    """Return the end of each part; no part may be empty."""
    shares = _shares(parts)
    # Rounded sums, not rounded sizes: those need not add up to the number of queries.
    bounds: Integers = np.rint(np.cumsum(shares) / shares.sum() * n_origins).astype(np.int64)
    if (np.diff(bounds, prepend=0) == 0).any():
        raise UsageError(
            f"split: {n_origins} queries are too few to give each of {len(shares)} parts "
            "at least one; ask for fewer parts, or for other proportions"
        )
    return bounds


def _shares(parts: int | Sequence[float]) -> NDArray[np.float64]:
    if not isinstance(parts, (Sequence, np.ndarray)):
        check("split", "parts", parts, Whole(1))
        return np.full(int(parts), 1.0)
    for share in parts:
        check("split", "a proportion", share, PROPORTION)
    if len(parts) == 0:
        raise UsageError("split: parts is empty; give a number or proportions")
    return np.asarray(parts, dtype=np.float64)


def fold_queries(qids: NDArray[Any], n: int, seed: int) -> list[tuple[Integers, Integers]]:
    """Return n pairs: the queries to train on, and the original queries to validate on."""
    check("folds", "n", n, Whole(2))
    parts = split_queries(qids, n, seed)
    sampled = are_samples(qids)
    held_out = [part[~sampled[part]] for part in parts]
    for number, originals in enumerate(held_out, 1):
        if len(originals) == 0:
            raise DataError(
                f"folds: fold {number} of {n} has only samples to validate on, and validation data "
                "is never augmented; the data lack the original queries: add them, or ask for "
                "fewer folds"
            )
    return [(np.concatenate(parts[:k] + parts[k + 1 :]), held_out[k]) for k in range(n)]


def sample_id(qid: Any, number: int) -> str:
    """Return the id of a sample of a query.

    >>> sample_id(12, 3)
    '12~3'
    """
    return f"{qid}{SEPARATOR}{number}"


def origins(qids: NDArray[Any]) -> Integers:
    """Return one number per query, the same for a query and all of its samples.

    >>> origins(np.array(["12", "7", "12~1", "7~1", "12~2"])).tolist()
    [0, 1, 0, 1, 0]
    """
    if qids.dtype.kind in "iu":
        return np.arange(len(qids))
    numbers: dict[str, int] = {}
    names = map(_origin, map(str, qids.tolist()))
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def are_samples(qids: NDArray[Any]) -> Mask:
    """Return for each query whether it is a sample of another.

    >>> are_samples(np.array(["12", "12~1", "7"])).tolist()
    [False, True, False]
    """
    if qids.dtype.kind in "iu":
        return np.zeros(len(qids), np.bool_)
    return np.array([_origin(qid) != qid for qid in map(str, qids.tolist())], np.bool_)


def first_sample(qids: NDArray[Any]) -> str | None:
    """Return the id of the first sample, or None if there are none.

    >>> first_sample(np.array(["12", "7", "7~1"]))
    '7~1'
    """
    sampled = are_samples(qids)
    return str(qids[sampled.argmax()]) if sampled.any() else None


def refuse_samples(owner: str, qids: NDArray[Any], advice: str) -> None:
    """Refuse data that hold samples of queries.

    Parameters
    ----------
    owner
        Who refuses them, for the message: ``augment``, ``RankNormaliser``.
    qids
        Query ids of the data.
    advice
        What to do instead; the end of the message.
    """
    sample = first_sample(qids)
    if sample is not None:
        raise DataError(
            f"{owner}: the data hold samples, such as {sample!r} (an id that ends in {SEPARATOR} "
            f"and a number); {advice}"
        )


def refuse_dependent_queries(owner: str, qids: NDArray[Any]) -> None:
    """Refuse samples where queries are compared by paired tests.

    Samples share documents with their query, and the tests assume independent queries.
    """
    refuse_samples(
        owner,
        qids,
        "p-values would count them as independent queries, so leave them out (data.originals, "
        "or rankinite data convert --originals)",
    )


def _origin(qid: str) -> str:
    """Return the query at the root: a sample of a sample shares documents with it as well."""
    name, _, number = qid.rpartition(SEPARATOR)
    while name and number.isdecimal():
        qid = name
        name, _, number = qid.rpartition(SEPARATOR)
    return qid
