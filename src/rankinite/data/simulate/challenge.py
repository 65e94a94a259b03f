"""Simulator of the Yahoo! challenge and of related domains; blocks are drawn on several threads."""

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
        Name that error messages begin with.
    market
        The market.
    n_queries
        Number of queries, at most and by default that of the part.
    part
        ``"train"``, ``"valid"`` or ``"test"``.
    seed
        Seed of the queries and documents; the market stays the same.
    first_qid
        Id of the first query; the others follow.
    progress
        Progress reporter.
    """
    if n_queries is None:
        n_queries = market.queries[part]
    check(owner, "n_queries", n_queries, Whole(1, market.queries[part]))
    simulation = _Simulation(market, part, seed, n_queries)
    blocks = range(0, n_queries, QUERIES_A_BLOCK)
    name = f"Simulating {part} of {market}"
    with (
        (progress or Silent()).start(name, n_queries, "queries") as bar,
        ThreadPoolExecutor(n_threads()) as pool,
    ):
        for done in pool.map(simulation.fill, blocks):
            bar.advance(done)
    qid = np.repeat(np.arange(first_qid, first_qid + n_queries), simulation.sizes[:n_queries])
    return RankingData(simulation.X, simulation.y, qid, top_grade=TOP_GRADE)


def first_qid(market: Market, part: str, markets: Iterable[Market]) -> int:
    """Return the first query id of a part; ids differ between all parts of all markets."""
    before = [
        other.queries[name]
        for other in markets
        for name in PARTS
        if (other.number, PARTS.index(name)) < (market.number, PARTS.index(part))
    ]
    return 1 + sum(before)


class _Simulation:
    """A part of a market whose blocks are drawn in any order."""

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
        """Draw a whole block, keep the queries that are needed, and return their number."""
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
        Number of queries, at most and by default that of the challenge. A smaller data set is the
        beginning of a larger one.
    part
        ``"train"``, ``"valid"`` or ``"test"``.
    market
        1 for Set 1, a large market; 2 for Set 2, a related one with few labels.
    seed
        Seed of the queries and documents; the two markets stay the same.
    progress
        Progress reporter.

    Examples
    --------
    >>> data = challenge(10, part="test", market=2)
    >>> data.n_features, data.feature_names[636]
    (700, '637')
    """
    check("challenge", "market", market, Whole(1, len(MARKETS)))
    check("challenge", "part", part, OneOf(PARTS))
    chosen_market = MARKETS[int(market)]
    first = first_qid(chosen_market, part, MARKETS.values())
    return simulate("challenge", chosen_market, n_queries, part, seed, first, progress)


QUERIES = {"train": 20_000, "valid": 5_000, "test": 10_000}
DOCS_PER_QUERY = 24
# Weights of relevance in each domain that differ from Set 1; see `Market.relevance`.
WEIGHTS: dict[str, dict[str, float]] = {
    "web": {},
    # Text and topic count more; such queries have few clicks, and seldom ask for a site.
    "long": {
        "match": 1.2,
        "topical": 0.5,
        "clicks": 0.35,
        "url": 0.35,
        "homepage": 0.1,
        "body": 0.6,
    },
    # A name is in the title and the URL; well-known pages are meant, not a topic.
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


# Numbers continue those of the challenge's markets.
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
        Number of queries. A smaller data set is the beginning of a larger one.
    part
        ``"train"``, ``"valid"`` or ``"test"``.
    seed
        Seed of the queries and documents; the domain stays the same.
    progress
        Progress reporter.

    Examples
    --------
    >>> domain("names", 10, part="test").n_features
    700
    """
    check("domain", "name", name, OneOf(tuple(DOMAINS)))
    check("domain", "part", part, OneOf(PARTS))
    market = DOMAINS[name]
    first = first_qid(market, part, [*MARKETS.values(), *DOMAINS.values()])
    return simulate("domain", market, n_queries, part, seed, first, progress)
