"""Draw a part of a market, block by block, on several threads."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rankinite.core.kernels import n_threads
from rankinite.core.params import Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.seeds import generator
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulators.layout import N_FEATURES, layout_of
from rankinite.data.simulators.markets import PARTS, Market

TOP_GRADE = 4
QUERIES_A_BLOCK = 200


def simulate(
    owner: str,
    market: Market,
    n_queries: int | None,
    part: str,
    seed: int,
    first_qid: int,
    progress: Progress | None,
) -> RankingData:
    """Simulate the first queries of a part of a market.

    Parameters
    ----------
    owner
        Who is asked, for error messages.
    market
        The market.
    n_queries
        How many queries, at most as many as the part has; as many if None.
    part
        ``"train"``, ``"valid"`` or ``"test"``.
    seed
        Another seed gives other queries and documents of the same market.
    first_qid
        The id of the first query; the others follow.
    progress
        Who wants to know how far it is.
    """
    if n_queries is None:
        n_queries = market.queries[part]
    check(owner, "n_queries", n_queries, Whole(1, market.queries[part]))
    drawing = _Drawing(market, part, seed, n_queries)
    blocks = range(0, n_queries, QUERIES_A_BLOCK)
    name = f"Simulating {part} of {market}"
    with (
        (progress or Silent()).start(name, n_queries, "queries") as task,
        ThreadPoolExecutor(n_threads()) as pool,
    ):
        for done in pool.map(drawing.fill, blocks):
            task.advance(done)
    qid = np.repeat(np.arange(first_qid, first_qid + n_queries), drawing.sizes[:n_queries])
    return RankingData(drawing.X, drawing.y, qid, top_grade=TOP_GRADE)


def first_qid(market: Market, part: str, markets: Iterable[Market]) -> int:
    """Return where a part's query ids begin: those of all parts of all markets are different."""
    before = [
        one.queries[name]
        for one in markets
        for name in PARTS
        if (one.number, PARTS.index(name)) < (market.number, PARTS.index(part))
    ]
    return 1 + sum(before)


class _Drawing:
    """A part that is being drawn, block by block, in any order."""

    def __init__(self, market: Market, part: str, seed: int, n_queries: int) -> None:
        self.market = market
        self.name = ("challenge", market.number, part)
        self.seed = seed
        self.layout = layout_of(market.layout)
        self.sizes = market.sizes(part, seed)
        self.ends = np.cumsum(self.sizes)
        self.n_queries = n_queries
        self.X = np.empty((self.ends[n_queries - 1], N_FEATURES), np.float32)
        self.y = np.empty(len(self.X))

    def fill(self, first: int) -> int:
        """Draw a whole block, keep the queries that are asked for, and return how many."""
        rng = generator(self.seed, *self.name, first)
        latents = self.market.draw(rng, self.sizes[first : first + QUERIES_A_BLOCK])
        start, end = self.ends[first] - self.sizes[first], len(self.X)
        grades = self.market.grades(rng, latents)
        features = self.layout.draw(rng, latents)
        kept = min(len(grades), end - start)
        self.y[start : start + kept] = grades[:kept]
        self.X[start : start + kept] = features[:, :kept].T
        return min(QUERIES_A_BLOCK, self.n_queries - first)
