"""Markets: distributions of queries, documents and relevance; those of the challenge and domains.

Queries and documents have latent variables, each standard normal; features are noisy functions
of them (challenge.py), and relevance is a function of them that differs by market. `MARKETS` are
the two of the challenge; `DOMAINS` are variants of the first, to adapt rankers from one to another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtri

from rankinite.core.elementary import exp, log
from rankinite.core.random import generator
from rankinite.core.types import Floats, Floats32, Integers, Mask

OF_QUERIES = ("popularity", "navigational", "timely", "terms", "difficulty", "topic")
OF_DOCUMENTS = ("authority", "host", "quality", "length", "freshness", "homepage", "subject")
OF_PAIRS = ("match", "title", "body", "anchor", "url", "proximity", "topical", "clicks")
LATENTS = {name: i for i, name in enumerate(OF_QUERIES + OF_DOCUMENTS + OF_PAIRS)}

# Shifts of the latents of a destination, the page that a navigational query asks for.
DESTINATION = {"match": 0.75, "homepage": 0.55, "url": 0.55, "title": 0.2, "authority": -0.3}
NAVIGATIONAL = 0.55  # share of queries with a destination, whether or not it is in the data
SPREAD_OF_SIZES = 0.58
# Correlation of a query's difficulty and its number of documents: systems agree less on difficult
# queries, so that more documents are pooled for them (Challenge, Sec. 4.1).
DIFFICULT_SIZES = 0.3
MOST_DOCS = 139
SAMPLE_QUERIES = 5_000  # of the sample that the bounds between grades come from
PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Latents:
    """Latent variables of the documents of some queries.

    Attributes
    ----------
    values
        One row per variable, in the order of `LATENTS`, and one column per document.
    destination
        Whether each document is the destination of its query.
    query
        Query of each document, from 0.
    """

    values: Floats32
    destination: Mask
    query: Integers

    def __getitem__(self, name: str) -> Floats32:
        row: Floats32 = self.values[LATENTS[name]]
        return row


# Compared by identity, which makes them keys of the cache of `_bounds`.
@dataclass(frozen=True, eq=False)
class Market:
    """A market: its sizes, its grades, and what makes a document relevant.

    Attributes
    ----------
    number
        Key of its random numbers; different for each market.
    queries, docs
        Numbers of queries and documents, by part (Challenge, Table 2).
    grade_shares
        Shares of the grades 0, 1, ... (Challenge, Table 3).
    weights
        Weights of the latents in relevance; see `relevance`.
    layout
        Number of the market whose features it has.
    name
        Name for messages.
    """

    number: int
    queries: Mapping[str, int]
    docs: Mapping[str, int]
    grade_shares: tuple[float, ...]
    weights: Mapping[str, float]
    layout: int = 1
    name: str = ""

    def __str__(self) -> str:
        return self.name or f"Set {self.number}"

    @property
    def docs_per_query(self) -> float:
        """Mean number of documents per query."""
        return sum(self.docs.values()) / sum(self.queries.values())

    @property
    def with_destination(self) -> float:
        """Share of queries that include their destination; no other document has the top grade."""
        return self.grade_shares[-1] * self.docs_per_query

    def draw(self, rng: np.random.Generator, sizes: Integers) -> Latents:
        """Draw the latent variables of queries with these numbers of documents."""
        n_queries, n_docs = len(sizes), int(sizes.sum())
        # The order of draws is part of the format: another one would be other data for a seed.
        of_queries = rng.standard_normal((len(OF_QUERIES), n_queries), np.float32)
        of_queries[LATENTS["difficulty"]] *= np.float32(math.sqrt(1 - DIFFICULT_SIZES**2))
        of_queries[LATENTS["difficulty"]] += np.float32(DIFFICULT_SIZES) * self._lengths(sizes)
        of_others = rng.standard_normal((len(LATENTS) - len(OF_QUERIES), n_docs), np.float32)
        values = np.concatenate([np.repeat(of_queries, sizes, axis=1), of_others])
        navigational = _is_navigational(of_queries[LATENTS["navigational"]])
        has_destination = navigational & (
            rng.random(n_queries) < self.with_destination / NAVIGATIONAL
        )
        places = np.cumsum(sizes) - sizes + (rng.random(n_queries) * sizes).astype(np.int64)
        destination = np.zeros(n_docs, np.bool_)
        destination[places[has_destination]] = True
        for name, shift in DESTINATION.items():
            values[LATENTS[name], destination] += np.float32(shift)
        return Latents(values, destination, np.repeat(np.arange(n_queries), sizes))

    def grades(self, rng: np.random.Generator, latents: Latents) -> Floats:
        """Return the grades of editors: noisy relevance, and the top grade for a destination."""
        scores = self.editor_scores(rng, latents)
        grades = np.searchsorted(_bounds(self), scores, side="right").astype(np.float64)
        grades[latents.destination] = len(self.grade_shares) - 1
        return grades

    def editor_scores(self, rng: np.random.Generator, latents: Latents) -> Floats:
        """Return relevance with the noise of editors."""
        noise = rng.standard_normal(len(latents.query))
        return self.relevance(latents) + self.weights["editors"] * noise

    def relevance(self, latents: Latents) -> Floats:
        """Return the relevance of documents, without the noise of editors.

        It has a linear part, and interactions that a linear ranker cannot represent.
        """
        w, z = self.weights, {name: latents[name].astype(np.float64) for name in LATENTS}
        intent = np.where(_is_navigational(latents["navigational"]), 1.0, -1.0)
        popular = z["popularity"] > 0
        linear = sum(
            w[name] * z[name] for name in ("match", "title", "topical", "authority", "difficulty")
        )
        crossed = (
            w["clicks"] * z["clicks"] * popular
            + intent * (w["url"] * z["url"] + w["homepage"] * z["homepage"] - w["body"] * z["body"])
            + w["freshness"] * z["freshness"] * z["timely"]
            - w["length"] * z["length"] ** 2
            - w["quality"] * np.maximum(-0.5 - z["quality"], 0.0)
        )
        relevance: Floats = linear + crossed
        return relevance

    def _lengths(self, sizes: Integers) -> Floats32:
        """Return the numbers of documents as standard normal values."""
        lengths: Floats = (log(sizes) - _log_size(self.docs_per_query)) / SPREAD_OF_SIZES
        return lengths.astype(np.float32)

    def sizes(self, part: str, seed: int) -> Integers:
        """Draw the number of documents of each query of a part; the sum is that of the paper."""
        rng = generator(seed, "challenge", self.number, part, "sizes")
        n_queries, n_docs = self.queries[part], self.docs[part]
        sizes = _some_sizes(rng, n_queries, n_docs / n_queries)
        # Rounding and clipping miss the sum; one document more or fewer in random queries at a time
        # corrects it and keeps the shape of the distribution.
        while (lacking := n_docs - int(sizes.sum())) != 0:
            room = np.flatnonzero(sizes < MOST_DOCS if lacking > 0 else sizes > 1)
            chosen = rng.permutation(room)[: abs(lacking)]
            sizes[chosen] += np.sign(lacking)
        return sizes


def _is_navigational(values: Floats32) -> Mask:
    navigational: Mask = values > np.float32(-ndtri(NAVIGATIONAL))
    return navigational


def _log_size(mean: float) -> float:
    """Return the mean of the logarithms of log-normal sizes with this mean."""
    return float(log(mean)) - SPREAD_OF_SIZES**2 / 2


def _some_sizes(rng: np.random.Generator, n_queries: int, mean: float) -> Integers:
    logs = _log_size(mean) + SPREAD_OF_SIZES * rng.standard_normal(n_queries)
    sizes: Floats = np.clip(np.rint(exp(logs)), 1, MOST_DOCS)
    return sizes.astype(np.int64)


@cache
def _bounds(market: Market) -> Floats:
    """Return the bounds between grades, from a separate sample: the same for every data set."""
    rng = generator(0, "challenge", market.number, "bounds")
    latents = market.draw(rng, _some_sizes(rng, SAMPLE_QUERIES, market.docs_per_query))
    scores = market.editor_scores(rng, latents)[~latents.destination]
    below = np.cumsum(market.grade_shares[:-1])
    bounds: Floats = np.quantile(scores, below[:-1] / below[-1])
    return bounds


# The markets of the challenge

# fmt: off
MARKETS = {
    1: Market(
        number=1,
        queries={"train": 19_944, "valid": 2_994, "test": 6_983},
        docs={"train": 473_134, "valid": 71_083, "test": 165_660},
        grade_shares=(0.2192, 0.5022, 0.2230, 0.0388, 0.0167),
        weights={"match": 1.1, "title": 0.3, "topical": 0.3, "authority": 0.36, "difficulty": -0.7,
                 "clicks": 0.68, "url": 0.55, "homepage": 0.3, "body": 0.45, "freshness": 0.26,
                 "length": 0.13, "quality": 0.45, "editors": 1.05},
    ),
    2: Market(
        number=2,
        queries={"train": 1_266, "valid": 1_266, "test": 3_798},
        docs={"train": 34_815, "valid": 34_881, "test": 103_174},
        grade_shares=(0.2609, 0.3580, 0.2855, 0.0767, 0.0189),
        weights={"match": 0.9, "title": 0.4, "topical": 0.45, "authority": 0.1, "difficulty": -0.7,
                 "clicks": 0.9, "url": 0.3, "homepage": 0.5, "body": 0.6, "freshness": 0.5,
                 "length": 0.05, "quality": 0.6, "editors": 1.05},
        layout=2,
    ),
}
# fmt: on


# Domains, as in LambdaSMART, Sec. 5.5

DOMAIN_QUERIES = {"train": 20_000, "valid": 5_000, "test": 10_000}
DOMAIN_DOCS_PER_QUERY = 24
# Weights of relevance in each domain that differ from Set 1; see `Market.relevance`.
# fmt: off
DOMAIN_WEIGHTS: dict[str, dict[str, float]] = {
    "web": {},
    # Text and topic count more; such queries have few clicks, and seldom ask for a site.
    "long": {"match": 1.2, "topical": 0.5, "clicks": 0.35, "url": 0.35, "homepage": 0.1,
             "body": 0.6},
    # A name is in the title and the URL; well-known pages are meant, not a topic.
    "names": {"match": 0.55, "title": 0.9, "topical": -0.1, "authority": 0.8, "clicks": 0.95,
              "url": 0.9, "homepage": 0.8, "body": -0.1, "freshness": 0.0},
    "small": dict(MARKETS[2].weights),
    # Every step from near to far takes most weights further from those of the small market.
    "near": {"match": 1.1, "title": 0.1, "topical": 0.15, "authority": 0.45, "clicks": 0.6,
             "url": 0.6, "homepage": 0.2, "body": 0.35, "freshness": 0.1},
    "middle": {"match": 1.0, "title": 0.0, "topical": 0.1, "authority": 0.55, "clicks": 0.45,
               "url": 0.7, "homepage": 0.1, "body": 0.3, "freshness": -0.1, "quality": 0.2},
    "far": {"match": 0.9, "title": -0.1, "topical": 0.0, "authority": 0.7, "clicks": 0.3,
            "url": 0.8, "homepage": 0.0, "body": 0.2, "freshness": -0.2, "quality": 0.0},
}
# fmt: on


def _domain(number: int, name: str) -> Market:
    return Market(
        number=number,
        queries=DOMAIN_QUERIES,
        docs={part: DOMAIN_DOCS_PER_QUERY * n for part, n in DOMAIN_QUERIES.items()},
        grade_shares=MARKETS[1].grade_shares,
        weights={**MARKETS[1].weights, **DOMAIN_WEIGHTS[name]},
        name=name,
    )


# Numbers continue those of the challenge's markets: they are keys of random numbers.
DOMAINS = {
    name: _domain(number, name) for number, name in enumerate(DOMAIN_WEIGHTS, len(MARKETS) + 1)
}
