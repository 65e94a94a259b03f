"""Domains to adapt rankers from and to: markets with the features of the challenge's Set 1.

What the paper says (LambdaSMART, Sec. 5.1 and 5.5): a ranker of a large background domain is
adapted to a domain with few labelled queries; all domains have the same features. There are queries
of many words and queries for names, which are adapted to from the whole Web; and a small market, to
which three large ones are adapted. Rankers of other markets are worse there than one of its own.

What is chosen here: everything else. Latent quantities, features and shares of grades are those of
Set 1; domains differ in what makes documents relevant. That of the Web is Set 1's, that of the
small market Set 2's. The others are guesses: what is said of words and names shall be plausible,
and the three large markets shall lie at growing distances from the small one.
"""

from __future__ import annotations

from rankinite.core.params import OneOf, check
from rankinite.core.progress import Progress
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulators.drawing import first_qid, simulate
from rankinite.data.simulators.markets import MARKETS, PARTS, Market

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
