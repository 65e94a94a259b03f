"""Which documents of an array or a frame belong to which query: by ``qid``, or by ``group``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import UsageError
from rankinite.data.checks import id_values, numbered_ids, offsets_from_sizes
from rankinite.data.ranking_data import RankingData


def query_ids(
    owner: str, n_docs: int, qid: ArrayLike | None, group: ArrayLike | None = None
) -> NDArray[Any]:
    """Return the query of every document.

    Parameters
    ----------
    owner
        Who asks, for messages.
    n_docs
        Number of documents.
    qid
        The query of every document; a number if all documents are of one query.
    group
        Instead of ``qid``: the sizes of consecutive queries.
    """
    if group is not None:
        if qid is not None:
            raise UsageError(f"{owner}: qid and group were both given; give one of the two")
        offsets = offsets_from_sizes(group, n_docs, name=f"{owner}: group")
        return np.repeat(np.arange(1, len(offsets)), np.diff(offsets))
    if qid is None:
        # One query of all documents would train, and measure, something that nobody wants.
        raise UsageError(
            f"{owner}: requires qid, the query of every document; give qid, or group, the sizes of "
            "consecutive queries, or qid=0 if all documents are of one query"
        )
    if isinstance(qid, str):
        raise UsageError(
            f"{owner}: qid is the text {qid!r}; give the column itself, the query of every "
            "document, or qid=0 if all documents are of one query"
        )
    ids = id_values(qid)
    return np.full(n_docs, ids) if ids.ndim == 0 else ids


def query_numbers(owner: str, X: Any, n_docs: int, qid: ArrayLike | None) -> NDArray[np.int64]:
    """Return the query of every document as a number from 0, for scores of whole queries.

    Parameters
    ----------
    owner
        The ranker that predicts, for messages.
    X, n_docs
        The documents, and how many they are.
    qid
        The query of every document, unless X is a data set.
    """
    if isinstance(X, RankingData):
        return np.repeat(np.arange(X.n_queries), X.sizes)
    if qid is None:
        raise UsageError(
            f"{owner}: a score depends on the whole query; give predict a qid, or a RankingData"
        )
    ids = query_ids(owner, n_docs, qid)
    if ids.shape != (n_docs,):
        raise UsageError(f"{owner}: qid has {ids.size} values for {n_docs} documents")
    if ids.dtype.kind == "O":
        return numbered_ids(ids)[0]
    numbers: NDArray[np.int64] = np.unique(ids, return_inverse=True)[1]
    return numbers
