"""Samples of queries, and the queries that they were drawn from: their origins.

A sample tells by its id where it comes from: ``12~3`` is the third sample of query 12. Ids go
wherever the data go, into files, frames and copies, and so does this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MARK = "~"


def sample_id(qid: Any, number: int) -> str:
    """Return the id of one of the samples of a query.

    >>> sample_id(12, 3)
    '12~3'
    """
    return f"{qid}{MARK}{number}"


def origins(qids: NDArray[Any]) -> NDArray[np.int64]:
    """Return one number a query, the same for a query and all samples of it.

    >>> origins(np.array(["12", "7", "12~1", "7~1", "12~2"])).tolist()
    [0, 1, 0, 1, 0]
    """
    if qids.dtype.kind in "iu":
        return np.arange(len(qids))
    numbers: dict[str, int] = {}
    names = map(_origin, map(str, qids.tolist()))
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def are_samples(qids: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell of every query whether it is a sample of another.

    >>> are_samples(np.array(["12", "12~1", "7"])).tolist()
    [False, True, False]
    """
    if qids.dtype.kind in "iu":
        return np.zeros(len(qids), np.bool_)
    return np.array([_origin(qid) != qid for qid in map(str, qids.tolist())], np.bool_)


def first_sample(qids: NDArray[Any]) -> str | None:
    """Return the id of the first sample, for a message to those who should not give any.

    >>> first_sample(np.array(["12", "7", "7~1"]))
    '7~1'
    """
    sampled = are_samples(qids)
    return str(qids[sampled.argmax()]) if sampled.any() else None


def _origin(qid: str) -> str:
    """Return the query at the root: a sample of a sample shares documents with it as well."""
    name, _, number = qid.rpartition(MARK)
    while name and number.isdecimal():
        qid = name
        name, _, number = qid.rpartition(MARK)
    return qid
