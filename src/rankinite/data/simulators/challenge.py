"""Data with the shape of the two sets of the Yahoo! Learning to Rank Challenge.

What the paper (Challenge, Sec. 4) says: queries and documents of every part (Table 2) and shares
of grades (Table 3); 24 documents a query, over 100 for some, which are the difficult ones; 700
features, 519 in Set 1 and 596 in Set 2, 415 of them in both, and 0 where undefined; 48 binary ones,
the others counts and continuous; nine categories, of which text match is the largest; a perfect
grade is for the destination of a navigational query only; feature 637 is BM25F-SD, a strong match
of the text; values are ranks in [0, 1] over all sets. How far BM25F-SD, a linear RankSVM and
boosted trees are apart (Table 5) was the aim when weights and noise were chosen.

What is chosen here: everything else. Latent quantities and the weights that make documents
relevant (`markets`); how many features each category has, and which quantities they show
(`layout`); documents a query, log-normal; how the second market differs. Ranks are those among
infinitely many documents, where the challenge has them among its own.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rankinite.core.kernels import n_threads
from rankinite.core.params import OneOf, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.seeds import generator
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulators.layout import N_FEATURES, layout_of
from rankinite.data.simulators.markets import MARKETS, Market

PARTS = tuple(MARKETS[1].queries)
TOP_GRADE = 4
QUERIES_A_BLOCK = 200


def challenge(
    n_queries: int | None = None,
    *,
    part: str = "train",
    market: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> RankingData:
    """Simulate a set of the Yahoo! Learning to Rank Challenge.

    Parameters
    ----------
    n_queries
        How many queries, at most as many as the challenge had; as many if not given. A smaller
        set is the beginning of a larger one.
    part
        ``"train"``, ``"valid"`` or ``"test"``.
    market
        1 for Set 1, a large market; 2 for Set 2, a related one with few labels.
    seed
        Another seed gives other queries and documents of the same two markets.
    progress
        Who wants to know how far it is.

    Examples
    --------
    >>> data = challenge(10, part="test", market=2)
    >>> data.n_features, data.feature_names[636]
    (700, '637')
    """
    check("challenge", "market", market, Whole(1, len(MARKETS)))
    check("challenge", "part", part, OneOf(PARTS))
    here = MARKETS[int(market)]
    if n_queries is None:
        n_queries = here.queries[part]
    check("challenge", "n_queries", n_queries, Whole(1, here.queries[part]))
    drawing = _Drawing(here, part, seed, n_queries)
    blocks = range(0, n_queries, QUERIES_A_BLOCK)
    name = f"Simulating {part} of Set {market}"
    with (
        (progress or Silent()).start(name, n_queries, "queries") as task,
        ThreadPoolExecutor(n_threads()) as pool,
    ):
        for done in pool.map(drawing.fill, blocks):
            task.advance(done)
    first = _first_qid(market, part)
    qid = np.repeat(np.arange(first, first + n_queries), drawing.sizes[:n_queries])
    return RankingData(drawing.X, drawing.y, qid, top_grade=TOP_GRADE)


class _Drawing:
    """A part that is being drawn, block by block, in any order."""

    def __init__(self, market: Market, part: str, seed: int, n_queries: int) -> None:
        self.market = market
        self.name = ("challenge", market.number, part)
        self.seed = seed
        self.layout = layout_of(market.number)
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


def _first_qid(market: int, part: str) -> int:
    """Return where a part's query ids begin: those of all parts of both sets are different."""
    before = [
        MARKETS[number].queries[name]
        for number in MARKETS
        for name in PARTS
        if (number, PARTS.index(name)) < (market, PARTS.index(part))
    ]
    return 1 + sum(before)
