"""Samples of queries, and the queries that they were drawn from: their origins.

A sample carries its origin in its id: ``12~3`` is the third sample of query 12. Ids survive
files, frames and copies, so the relation needs no column of its own and cannot get lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError
from rankinite.core.types import Integers, Mask

SEPARATOR = "~"


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
