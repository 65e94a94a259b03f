"""Kendall's tau: between measures that order systems, and between systems that order documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rankinite.core.types import Floats, Integers


def kendall_tau(means: Floats) -> Floats:
    """Return Kendall's tau-b between every two rows (Challenge, Sec. 5.3).

    Tau is 1 if two rows order the columns in the same way and -1 if they order them in reverse.
    It is NaN for a row whose values are all equal.

    Parameters
    ----------
    means
        Measures x systems.

    Examples
    --------
    Two of three pairs of systems are in the same order: tau is (2 - 1) / 3.

    >>> kendall_tau(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """
    from scipy.stats import kendalltau  # here, for it takes long to import

    return np.array([[kendalltau(row, other).statistic for other in means] for row in means])


# Limits of the work: a mean over more queries or documents hardly differs.
MOST_QUERIES = 500
MOST_DOCUMENTS = 1_000
# Pairs of documents in a block, times systems: 16 MB of signs.
BLOCK = 2_000_000


@dataclass(frozen=True)
class RankCorrelation:
    """Rank correlation of systems, averaged over queries.

    Attributes
    ----------
    names, tau
        Names of the systems, and the mean of Kendall's tau between every two; NaN if no query
        defines it.
    n_queries
        Number of queries in the mean.
    is_sample
        Whether there were more queries.
    """

    names: tuple[str, ...]
    tau: Floats
    n_queries: int
    is_sample: bool


def rank_correlation(scores: Mapping[str, Floats], offsets: Integers) -> RankCorrelation:
    """Return the mean over queries of Kendall's tau between every two systems.

    Of more than `MOST_QUERIES` queries, an evenly spaced sample is taken.

    Parameters
    ----------
    scores
        Scores of each system, one per document.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    """
    table = np.stack(list(scores.values()))
    n_queries = len(offsets) - 1
    sample = np.unique(np.linspace(0, n_queries - 1, min(n_queries, MOST_QUERIES)).astype(int))
    total = np.zeros((len(table), len(table)))
    known = np.zeros_like(total)
    for query in sample:
        tau = query_tau(table[:, offsets[query] : offsets[query + 1]])
        # A query in which a system ties all documents defines no tau with it.
        total += np.nan_to_num(tau)
        known += ~np.isnan(tau)
    means = np.divide(total, known, out=np.full_like(total, np.nan), where=known > 0)
    return RankCorrelation(tuple(scores), means, len(sample), len(sample) < n_queries)


def query_tau(scores: Floats) -> Floats:
    """Return Kendall's tau-b between every two rows, fast; NaN for a row of equal values.

    A system gives each pair of documents the sign +1, -1 or, tied, 0; tau is the cosine between
    the signs of two systems. Of more than `MOST_DOCUMENTS` documents, an evenly spaced sample is
    taken.

    Parameters
    ----------
    scores
        Systems x documents of a query.

    Examples
    --------
    Two of three pairs are in the same order: tau is (2 - 1) / 3.

    >>> query_tau(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """
    n_systems, n_docs = scores.shape
    if n_docs > MOST_DOCUMENTS:
        scores = scores[:, np.linspace(0, n_docs - 1, MOST_DOCUMENTS).astype(int)]
        n_docs = MOST_DOCUMENTS
    # Every pair counts twice, with both signs: that cancels in the quotient.
    products = np.zeros((n_systems, n_systems))
    n_rows = max(1, BLOCK // (n_docs * n_systems))
    for first in range(0, n_docs, n_rows):
        rows = scores[:, first : first + n_rows, None]
        signs = np.sign(rows - scores[:, None, :]).reshape(n_systems, -1)
        products += signs @ signs.T
    lengths = np.sqrt(products.diagonal())
    norms = np.outer(lengths, lengths)
    tau: Floats = np.divide(products, norms, out=np.full_like(products, np.nan), where=norms > 0)
    return tau
