"""Markets: what queries and documents are like, and which are relevant; the two of `challenge`.

Queries and documents are described by latent quantities, each standard normal, that nobody sees;
features are noisy views of them, and relevance is a function of them that differs by market.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rankinite.core.random import generator
from rankinite.core.types import Floats32, Integers

OF_QUERIES = ("popularity", "navigational", "timely", "terms", "difficulty", "topic")
OF_DOCUMENTS = ("authority", "host", "quality", "length", "freshness", "homepage", "subject")
OF_PAIRS = ("match", "title", "body", "anchor", "url", "proximity", "topical", "clicks")
LATENTS = {name: i for i, name in enumerate(OF_QUERIES + OF_DOCUMENTS + OF_PAIRS)}

# How a destination page, the one that a navigational query asks for, differs from others.
DESTINATION = {"match": 0.75, "homepage": 0.55, "url": 0.55, "title": 0.2, "authority": -0.3}
NAVIGATIONAL = 0.55  # the share of queries that have a destination somewhere, if not at hand
SPREAD_OF_SIZES = 0.58
DIFFICULT_SIZES = 0.3  # the correlation between a query's difficulty and its number of documents
MOST_DOCS = 139
SAMPLE_QUERIES = 5_000
PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Latents:
    """The latent quantities of some queries' documents.

    Attributes
    ----------
    values
        One row a quantity, in the order of `LATENTS`, one column a document.
    destination
        Which documents are the destination of their query.
    query
        The query of every document, from 0.
    """

    values: Floats32
    destination: NDArray[np.bool_]
    query: Integers

    def __getitem__(self, name: str) -> Floats32:
        row: Floats32 = self.values[LATENTS[name]]
        return row


# Markets are compared by identity: each of them is one of a table.
@dataclass(frozen=True, eq=False)
class Market:
    """A market: its sizes, its grades, and what makes a document relevant there.

    Attributes
    ----------
    number
        What its random numbers depend on; no two markets have the same.
    queries, docs
        How many there are, by part (Challenge, Table 2).
    grade_shares
        The share of grade 0, 1, ... (Challenge, Table 3).
    weights
        What relevance is made of; see `relevance`.
    layout
        The market whose features it has.
    name
        What people call it.
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
        """The mean number of documents a query."""
        return sum(self.docs.values()) / sum(self.queries.values())

    @property
    def with_destination(self) -> float:
        """The share of queries whose documents include the destination: they are all perfect."""
        return self.grade_shares[-1] * self.docs_per_query

    def draw(self, rng: np.random.Generator, sizes: Integers) -> Latents:
        """Draw the latent quantities of queries with so many documents."""
        n_queries, n_docs = len(sizes), int(sizes.sum())
        of_queries = rng.standard_normal((len(OF_QUERIES), n_queries), np.float32)
        of_queries[LATENTS["difficulty"]] *= np.float32((1 - DIFFICULT_SIZES**2) ** 0.5)
        of_queries[LATENTS["difficulty"]] += np.float32(DIFFICULT_SIZES) * self._lengths(sizes)
        of_others = rng.standard_normal((len(LATENTS) - len(OF_QUERIES), n_docs), np.float32)
        values = np.concatenate([np.repeat(of_queries, sizes, axis=1), of_others])
        asked = _is_navigational(of_queries[LATENTS["navigational"]])
        found = asked & (rng.random(n_queries) < self.with_destination / NAVIGATIONAL)
        places = np.cumsum(sizes) - sizes + (rng.random(n_queries) * sizes).astype(np.int64)
        destination = np.zeros(n_docs, np.bool_)
        destination[places[found]] = True
        for name, shift in DESTINATION.items():
            values[LATENTS[name], destination] += np.float32(shift)
        return Latents(values, destination, np.repeat(np.arange(n_queries), sizes))

    def grades(self, rng: np.random.Generator, latents: Latents) -> NDArray[np.float64]:
        """Let editors judge: by relevance and their own noise; a destination is always perfect."""
        judged = self._judged(rng, latents)
        grades = np.searchsorted(_bounds(self), judged, side="right").astype(np.float64)
        grades[latents.destination] = len(self.grade_shares) - 1
        return grades

    def _judged(self, rng: np.random.Generator, latents: Latents) -> NDArray[np.float64]:
        noise = rng.standard_normal(len(latents.query))
        return self.relevance(latents) + self.weights["editors"] * noise

    def relevance(self, latents: Latents) -> NDArray[np.float64]:
        """Return how relevant documents are, without the noise of editors.

        The first lines are linear; the others are what a linear ranker cannot see.
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
        relevance: NDArray[np.float64] = linear + crossed
        return relevance

    def _lengths(self, sizes: Integers) -> Floats32:
        """Return how long queries' lists are, as standard normal numbers."""
        lengths = (np.log(sizes) - _log_size(self.docs_per_query)) / SPREAD_OF_SIZES
        return lengths.astype(np.float32)

    def sizes(self, part: str, seed: int) -> Integers:
        """Draw how many documents each query of a part has; together as many as in the paper."""
        rng = generator(seed, "challenge", self.number, part, "sizes")
        n_queries, n_docs = self.queries[part], self.docs[part]
        sizes = _some_sizes(rng, n_queries, n_docs / n_queries)
        while (lacking := n_docs - int(sizes.sum())) != 0:
            room = np.flatnonzero(sizes < MOST_DOCS if lacking > 0 else sizes > 1)
            chosen = rng.permutation(room)[: abs(lacking)]
            sizes[chosen] += np.sign(lacking)
        return sizes


def _is_navigational(values: Floats32) -> NDArray[np.bool_]:
    navigational: NDArray[np.bool_] = values > np.float32(-ndtri(NAVIGATIONAL))
    return navigational


def _log_size(mean: float) -> float:
    """Return the mean of the logarithms of log-normal sizes with this mean."""
    return math.log(mean) - SPREAD_OF_SIZES**2 / 2


def _some_sizes(rng: np.random.Generator, n_queries: int, mean: float) -> Integers:
    logs = _log_size(mean) + SPREAD_OF_SIZES * rng.standard_normal(n_queries)
    return np.clip(np.rint(np.exp(logs)), 1, MOST_DOCS).astype(np.int64)


@cache
def _bounds(market: Market) -> NDArray[np.float64]:
    """Return the bounds between grades, from a sample of its own: the same for every data set."""
    rng = generator(0, "challenge", market.number, "bounds")
    latents = market.draw(rng, _some_sizes(rng, SAMPLE_QUERIES, market.docs_per_query))
    judged = market._judged(rng, latents)[~latents.destination]
    below = np.cumsum(market.grade_shares[:-1])
    bounds: NDArray[np.float64] = np.quantile(judged, below[:-1] / below[-1])
    return bounds


MARKETS = {
    1: Market(
        number=1,
        queries={"train": 19_944, "valid": 2_994, "test": 6_983},
        docs={"train": 473_134, "valid": 71_083, "test": 165_660},
        grade_shares=(0.2192, 0.5022, 0.2230, 0.0388, 0.0167),
        weights={
            "match": 1.1,
            "title": 0.3,
            "topical": 0.3,
            "authority": 0.36,
            "difficulty": -0.7,
            "clicks": 0.68,
            "url": 0.55,
            "homepage": 0.3,
            "body": 0.45,
            "freshness": 0.26,
            "length": 0.13,
            "quality": 0.45,
            "editors": 1.05,
        },
    ),
    2: Market(
        number=2,
        queries={"train": 1_266, "valid": 1_266, "test": 3_798},
        docs={"train": 34_815, "valid": 34_881, "test": 103_174},
        grade_shares=(0.2609, 0.3580, 0.2855, 0.0767, 0.0189),
        weights={
            "match": 0.9,
            "title": 0.4,
            "topical": 0.45,
            "authority": 0.1,
            "difficulty": -0.7,
            "clicks": 0.9,
            "url": 0.3,
            "homepage": 0.5,
            "body": 0.6,
            "freshness": 0.5,
            "length": 0.05,
            "quality": 0.6,
            "editors": 1.05,
        },
        layout=2,
    ),
}
