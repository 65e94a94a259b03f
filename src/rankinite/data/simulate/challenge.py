"""Draw a part of a market, block by block, on several threads."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rankinite.core.jit import n_threads
from rankinite.core.params import OneOf, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.random import generator
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulate.features import N_FEATURES, layout_of
from rankinite.data.simulate.markets import MARKETS, PARTS, Market

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
        (progress or Silent()).start(name, n_queries, "queries") as bar,
        ThreadPoolExecutor(n_threads()) as pool,
    ):
        for done in pool.map(drawing.fill, blocks):
            bar.advance(done)
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
    first = first_qid(here, part, MARKETS.values())
    return simulate("challenge", here, n_queries, part, seed, first, progress)


QUERIES = {"train": 20_000, "valid": 5_000, "test": 10_000}
DOCS_PER_QUERY = 24
# What relevance is made of in the domain, where it is not as in Set 1; see `Market.relevance`.
WEIGHTS: dict[str, dict[str, float]] = {
    "web": {},
    # The text of a page and its topic count more; few people ask such a query, or for a site.
    "long": {
        "match": 1.2,
        "topical": 0.5,
        "clicks": 0.35,
        "url": 0.35,
        "homepage": 0.1,
        "body": 0.6,
    },
    # A name stands in the title and the address; what is well known is meant, not a topic.
    "names": {
        "match": 0.55,
        "title": 0.9,
        "topical": -0.1,
        "authority": 0.8,
        "clicks": 0.95,
        "url": 0.9,
        "homepage": 0.8,
        "body": -0.1,
        "freshness": 0.0,
    },
    "small": dict(MARKETS[2].weights),
    "near": {
        "match": 1.1,
        "title": 0.1,
        "topical": 0.15,
        "authority": 0.45,
        "clicks": 0.6,
        "url": 0.6,
        "homepage": 0.2,
        "body": 0.35,
        "freshness": 0.1,
    },
    "middle": {
        "match": 1.0,
        "title": 0.0,
        "topical": 0.1,
        "authority": 0.55,
        "clicks": 0.45,
        "url": 0.7,
        "homepage": 0.1,
        "body": 0.3,
        "freshness": -0.1,
        "quality": 0.2,
    },
    "far": {
        "match": 0.9,
        "title": -0.1,
        "topical": 0.0,
        "authority": 0.7,
        "clicks": 0.3,
        "url": 0.8,
        "homepage": 0.0,
        "body": 0.2,
        "freshness": -0.2,
        "quality": 0.0,
    },
}


def _domain(number: int, name: str) -> Market:
    return Market(
        number=number,
        queries=QUERIES,
        docs={part: DOCS_PER_QUERY * n for part, n in QUERIES.items()},
        grade_shares=MARKETS[1].grade_shares,
        weights={**MARKETS[1].weights, **WEIGHTS[name]},
        name=name,
    )


# Numbers go on from the markets of the challenge.
DOMAINS = {name: _domain(number, name) for number, name in enumerate(WEIGHTS, len(MARKETS) + 1)}


def domain(
    name: str,
    n_queries: int,
    *,
    part: str = "train",
    seed: int = 0,
    progress: Progress | None = None,
) -> RankingData:
    """Simulate queries of a domain.

    Parameters
    ----------
    name
        ``"web"`` with its ``"long"`` queries and ``"names"``; or a ``"small"`` market and large
        ones that are ``"near"``, at a ``"middle"`` distance or ``"far"``.
    n_queries
        How many queries. A smaller set is the beginning of a larger one.
    part
        ``"train"``, ``"valid"`` or ``"test"``.
    seed
        Another seed gives other queries and documents of the same domain.
    progress
        Who wants to know how far it is.

    Examples
    --------
    >>> domain("names", 10, part="test").n_features
    700
    """
    check("domain", "name", name, OneOf(tuple(DOMAINS)))
    check("domain", "part", part, OneOf(PARTS))
    here = DOMAINS[name]
    first = first_qid(here, part, [*MARKETS.values(), *DOMAINS.values()])
    return simulate("domain", here, n_queries, part, seed, first, progress)
