"""Kendall's tau: rank correlation of measures over systems, and of rankers over documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.types import Floats


def kendall_tau(means: Floats) -> Floats:
    """Return Kendall's tau between every two rows (Challenge, Sec. 5.3).

    Tau is 1 if two rows order the columns alike and -1 if they order them the other way round
    (tau-b: ties count). It is NaN for a row whose values are all equal.

    Parameters
    ----------
    means
        Measures x systems.

    Examples
    --------
    Two of three pairs of systems are ordered alike: tau is (2 - 1) / 3.

    >>> kendall_tau(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """
    from scipy.stats import kendalltau

    return np.array([[kendalltau(a, b).statistic for b in means] for a in means])


# Bounds on the cost: the mean over more queries would round to the same two digits.
MOST_QUERIES = 500
MOST_DOCUMENTS = 1_000
# Signs in memory at a time: pairs of documents x members.
BLOCK = 2_000_000


@dataclass(frozen=True)
class RankCorrelation:
    """Rank correlation of every two members.

    Attributes
    ----------
    names, tau
        The members, and the mean of Kendall's tau between every two over queries; NaN if it is
        defined for no query.
    n_queries
        Number of queries in the mean.
    is_sample
        Whether these are only some of the queries.
    """

    names: tuple[str, ...]
    tau: Floats
    n_queries: int
    is_sample: bool


def rank_correlation(scores: Mapping[str, Floats], offsets: NDArray[np.int64]) -> RankCorrelation:
    """Return the mean rank correlation of every two members within queries.

    At most `MOST_QUERIES` queries are taken, evenly spaced.
    """
    table = np.stack(list(scores.values()))
    n_queries = len(offsets) - 1
    taken = np.unique(np.linspace(0, n_queries - 1, min(n_queries, MOST_QUERIES)).astype(int))
    total = np.zeros((len(table), len(table)))
    known = np.zeros_like(total)
    for query in taken:
        tau = query_tau(table[:, offsets[query] : offsets[query + 1]])
        total += np.nan_to_num(tau)
        known += ~np.isnan(tau)
    means = np.divide(total, known, out=np.full_like(total, np.nan), where=known > 0)
    return RankCorrelation(tuple(scores), means, len(taken), len(taken) < n_queries)


def query_tau(scores: Floats) -> Floats:
    """Return Kendall's tau-b between every two rows; NaN for a row of equal values.

    Every two documents are +1 or -1 or, tied, 0 to each member; tau is the cosine between members
    of these signs. Of more than `MOST_DOCUMENTS` documents some are taken, evenly spaced.

    Examples
    --------
    Two of three pairs are ordered alike: tau is (2 - 1) / 3.

    >>> query_tau(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """
    n_members, n_docs = scores.shape
    if n_docs > MOST_DOCUMENTS:
        scores = scores[:, np.linspace(0, n_docs - 1, MOST_DOCUMENTS).astype(int)]
        n_docs = MOST_DOCUMENTS
    products = np.zeros((n_members, n_members))
    a_block = max(1, BLOCK // (n_docs * n_members))
    for first in range(0, n_docs, a_block):
        rows = scores[:, first : first + a_block, None]
        signs = np.sign(rows - scores[:, None, :]).reshape(n_members, -1)
        products += signs @ signs.T
    lengths = np.sqrt(products.diagonal())
    norms = np.outer(lengths, lengths)
    tau: Floats = np.divide(products, norms, out=np.full_like(products, np.nan), where=norms > 0)
    return tau
