"""Systems to compare."""

from __future__ import annotations

import numpy as np

import rankinite as rk


def pairs_of_documents(**wins: str) -> tuple[dict[str, list[float]], rk.RankingData]:
    """Return systems that put the one relevant document of two first (1) or last (0), by query.

    MRR is 1 then, or 1/2.
    """
    n_queries = len(next(iter(wins.values())))
    data = rk.RankingData(
        X=np.zeros((2 * n_queries, 1)), y=[1, 0] * n_queries, group_sizes=[2] * n_queries
    )
    scores = {
        name: [float(x) for win in marks for x in ((1, 0) if win == "1" else (0, 1))]
        for name, marks in wins.items()
    }
    return scores, data


def graded_systems() -> tuple[dict[str, np.ndarray], rk.RankingData]:
    """Four systems on 60 queries; some have no relevant document, some one label only."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 12, 60)
    y = rng.integers(0, 5, sizes.sum())
    y[: sizes[:5].sum()] = 0
    data = rk.RankingData(X=np.zeros((len(y), 1)), y=y, group_sizes=sizes, top_grade=4)
    scores = {f"s{k}": y * k / 4 + rng.normal(size=len(y)) for k in range(4)}
    return scores, data
