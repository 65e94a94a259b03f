"""Simulator of the Yahoo! challenge and of related domains, as `challenge` and `domain`.

A market (markets.py) draws the latent variables of queries and documents and grades them; this
module turns the latent variables into the 700 features, and draws blocks of queries on several
threads.

Before normalisation, a feature is an increasing function of a standard normal variable z: the
identity if it is continuous, a step function if it is binary or a count, and constant below a
threshold if it is often 0. Its rank among all documents, which the challenge's normalisation
(Challenge, Sec. 4.3) gives, is therefore the normal distribution function of z with the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from rankinite.core.elementary import exp, log
from rankinite.core.params import OneOf, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.random import generator
from rankinite.core.threads import n_threads
from rankinite.core.types import Floats32
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulate.markets import (
    DOMAINS,
    LATENTS,
    MARKETS,
    OF_QUERIES,
    PARTS,
    Latents,
    Market,
)

TOP_GRADE = 4
# Queries that share a random generator: blocks can be drawn in any order, by any thread.
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
    return _simulate("challenge", MARKETS[int(market)], n_queries, part, seed, progress)


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
    return _simulate("domain", DOMAINS[name], n_queries, part, seed, progress)


def _simulate(
    owner: str,
    market: Market,
    n_queries: int | None,
    part: str,
    seed: int,
    progress: Progress | None,
) -> RankingData:
    """Simulate the first queries of a part of a market; messages begin with ``owner``."""
    check(owner, "part", part, OneOf(PARTS))
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
    first = _first_qid(market, part)
    qid = np.repeat(np.arange(first, first + n_queries), simulation.sizes[:n_queries])
    return RankingData(simulation.X, simulation.y, qid, top_grade=TOP_GRADE)


def _first_qid(market: Market, part: str) -> int:
    """Return the first query id of a part; ids differ between all parts of all markets."""
    before = [
        other.queries[name]
        for other in (*MARKETS.values(), *DOMAINS.values())
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
        # A whole block, so that a smaller data set is the beginning of a larger one.
        rng = generator(self.seed, *self.name, first)
        latents = self.market.draw(rng, self.sizes[first : first + QUERIES_A_BLOCK])
        start, end = self.ends[first] - self.sizes[first], len(self.X)
        grades = self.market.grades(rng, latents)
        features = self.layout.draw(rng, latents)
        kept = min(len(grades), end - start)
        self.y[start : start + kept] = grades[:kept]
        self.X[start : start + kept] = features[:, :kept].T
        return min(QUERIES_A_BLOCK, self.n_queries - first)


# Features

# 519 features in Set 1 and 596 in Set 2, 415 of them in both (Challenge, Table 2 and Sec. 4.3).
N_FEATURES = 700
HOMES = {"both": 415, "1": 104, "2": 181}
KINDS = {"binary": 48, "count": 172, "often 0": 180, "continuous": 300}
ZEROS = (0.3, 0.95)  # range of the shares of zeros of binary and often-0 features
COUNTS = (3, 300)  # range of the numbers of distinct values of counts
DECAY = (0.6, 1.6)  # range of the exponents by which larger counts get rarer
POSITIVE = 0.85  # share of features that increase with their latent variables
# Ranges of the factors by which the second market's features differ from the first's.
DRIFT_OF_CLARITY = (0.7, 1.0)
DRIFT_OF_WEIGHTS = (0.3, 1.2)
# The paper's baseline of one feature, "one of the most predictive" (Challenge, Sec. 4.4).
BM25F = 636  # feature 637, counted from 0
BM25F_LATENTS = {"match": 0.95, "title": 0.25}
BM25F_CLARITY = 0.965
DECIMALS = 6


@dataclass(frozen=True)
class Family:
    """A category of features (Challenge, Sec. 4.2).

    Attributes
    ----------
    n_features
        Number of features of this category.
    common
        Latent variable on which all of its features depend, or None.
    others
        Latent variables; each feature depends on one of them.
    clarity
        Range of the correlations between a feature and its latent variables.
    """

    n_features: int
    common: str | None
    others: tuple[str, ...]
    clarity: tuple[float, float]


FAMILIES = {
    "web graph": Family(80, None, ("authority", "host", "homepage"), (0.4, 0.9)),
    "document statistics": Family(50, None, ("length", "homepage", "subject"), (0.4, 0.95)),
    "document classifier": Family(70, None, ("quality", "subject", "homepage"), (0.3, 0.9)),
    "query": Family(60, None, OF_QUERIES, (0.4, 0.95)),
    "text match": Family(
        240, "match", ("title", "body", "anchor", "url", "proximity", "terms"), (0.3, 0.85)
    ),
    "topical matching": Family(40, "topical", ("subject", "topic"), (0.3, 0.8)),
    "click": Family(90, "clicks", ("match", "popularity", "quality"), (0.3, 0.85)),
    "external references": Family(30, None, ("quality", "authority", "topical"), (0.2, 0.6)),
    "time": Family(40, None, ("freshness", "timely"), (0.3, 0.9)),
}


@dataclass(frozen=True)
class Feature:
    """A feature: a weighted sum of latent variables and noise, and its steps.

    Attributes
    ----------
    latents, weights
        Rows of the latent variables, and their weights.
    noise
        Weight of the noise.
    of_query
        Whether all documents of a query have the same value.
    levels
        Ranks of the values of a binary or count feature, from 0; None if it is continuous.
    zeros
        Rank below which a continuous feature is 0.
    needs_clicks
        Whether the feature is 0 for unpopular queries.
    """

    latents: tuple[int, ...]
    weights: tuple[float, ...]
    noise: float
    of_query: bool
    levels: NDArray[np.float32] | None
    zeros: float
    needs_clicks: bool

    def rank(self, latents: Latents, noise: Floats32) -> Floats32:
        """Return the normalised values; ``noise`` has one number per query or per document."""
        z = np.float32(self.noise) * (noise[latents.query] if self.of_query else noise)
        for row, weight in zip(self.latents, self.weights, strict=True):
            z += np.float32(weight) * latents.values[row]
        rank: Floats32 = ndtr(z)
        if self.levels is not None:
            return self.levels[np.searchsorted(self.levels, rank, side="right") - 1]
        zeros = np.float32(self.zeros)
        if self.needs_clicks:
            # Zeros come by whole queries here, and the others' ranks fill what is left of [0, 1].
            popular = latents["popularity"] >= np.float32(ndtri(self.zeros))
            rank = np.where(popular, zeros + (1 - zeros) * rank, np.float32(0))
        else:
            rank[rank < zeros] = 0
        return np.round(rank, DECIMALS)


@dataclass(frozen=True)
class Layout:
    """Features of a market; None for a feature that the market does not have."""

    features: tuple[Feature | None, ...]

    def draw(self, rng: np.random.Generator, latents: Latents) -> Floats32:
        """Return the features of some documents, one row per feature; undefined features are 0."""
        n_docs, n_queries = len(latents.query), int(latents.query[-1]) + 1
        rows = np.zeros((len(self.features), n_docs), np.float32)
        for row, feature in zip(rows, self.features, strict=True):
            if feature is not None:
                noise = rng.standard_normal(n_queries if feature.of_query else n_docs, np.float32)
                row[:] = feature.rank(latents, noise)
        return rows


@cache
def layout_of(market: int) -> Layout:
    """Return the features of a market; they are the same for any seed."""
    # Always seed 0: users' seeds draw other queries of the same search engine.
    rng = generator(0, "challenge", "layout")
    families = _assign(
        rng, {name: family.n_features for name, family in FAMILIES.items()}, "text match"
    )
    kinds = _assign(rng, KINDS, "continuous")
    homes = _assign(rng, HOMES, "both")
    return Layout(
        tuple(
            _feature(j, FAMILIES[family], kind, market) if home in ("both", str(market)) else None
            for j, (family, kind, home) in enumerate(zip(families, kinds, homes, strict=True))
        )
    )


def _assign(rng: np.random.Generator, counts: Mapping[str, int], of_bm25f: str) -> list[str]:
    """Assign names to the features at random, each ``counts`` times; BM25F-SD gets a fixed one."""
    names = [name for name, count in counts.items() for _ in range(count - (name == of_bm25f))]
    shuffled = [names[k] for k in rng.permutation(len(names))]
    return [*shuffled[:BM25F], of_bm25f, *shuffled[BM25F:]]


def _feature(number: int, family: Family, kind: str, market: int) -> Feature:
    rng = generator(0, "challenge", "feature", number)
    clarity = float(rng.uniform(*family.clarity))
    weights = _latent_weights(rng, family)
    levels = _levels(rng, kind)
    zeros = float(rng.uniform(*ZEROS)) if kind == "often 0" else 0.0
    if number == BM25F:
        clarity, weights = BM25F_CLARITY, BM25F_LATENTS
    if market != 1:
        drift = generator(0, "challenge", "feature", number, market)
        clarity *= float(drift.uniform(*DRIFT_OF_CLARITY))
        weights = {name: w * float(drift.uniform(*DRIFT_OF_WEIGHTS)) for name, w in weights.items()}
    # Squared weights and noise add up to 1: the sum of latent variables is standard normal again.
    length = math.sqrt(sum(weight**2 for weight in weights.values()))
    return Feature(
        latents=tuple(LATENTS[name] for name in weights),
        weights=tuple(clarity * weight / length for weight in weights.values()),
        noise=math.sqrt(1 - clarity**2),
        of_query=set(weights) <= set(OF_QUERIES),
        levels=levels,
        zeros=zeros,
        # A feature of popularity itself is 0 for unpopular queries by its own rank.
        needs_clicks="clicks" in weights and "popularity" not in weights and kind == "often 0",
    )


def _latent_weights(rng: np.random.Generator, family: Family) -> dict[str, float]:
    """Draw the latent variables of a feature and their weights, mostly positive."""
    sign = 1.0 if rng.random() < POSITIVE else -1.0
    other = family.others[rng.integers(len(family.others))]
    weight = float(rng.uniform(0.3, 1.0))
    if family.common is None:
        return {other: sign}
    return {family.common: sign * weight, other: sign * math.sqrt(1 - weight**2)}


def _levels(rng: np.random.Generator, kind: str) -> Floats32 | None:
    """Return the ranks of a binary feature's or a count's values: shares of smaller values."""
    if kind == "binary":
        return np.array([0.0, round(rng.uniform(*ZEROS), DECIMALS)], np.float32)
    if kind != "count":
        return None
    n_values = round(float(exp(rng.uniform(*log(COUNTS)))))
    chances = exp(-rng.uniform(*DECAY) * log(np.arange(1.0, n_values + 1)))
    below = np.cumsum(chances / chances.sum()) - chances / chances.sum()
    levels: Floats32 = np.round(np.maximum(below, 0.0), DECIMALS).astype(np.float32)
    return levels
