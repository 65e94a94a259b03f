"""A small data set whose every number can be told by hand."""

from __future__ import annotations

import numpy as np

from rankinite.data.ranking_data import RankingData


def simple(n_queries: int = 5, **more) -> RankingData:
    """Return queries 10, 11, ... with 1, 2, 3, 1, 2, ... documents; features count on."""
    sizes = [1 + k % 3 for k in range(n_queries)]
    X = np.arange(2.0 * sum(sizes)).reshape(-1, 2)
    qid = np.repeat(10 + np.arange(n_queries), sizes)
    return RankingData(X, np.arange(sum(sizes)) % 5, qid, **more)
