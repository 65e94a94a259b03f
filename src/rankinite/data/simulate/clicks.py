"""Click rates of documents from simulated users, as further label sources.

What the papers say: a user of the cascade model (Challenge, Algorithm 2) looks at the ten documents
of a page from the top, and stops at the first that satisfies, with the chance R of its grade. Click
labels are rates in [0, 1] over many users; there are two, of those who asked this very query and of
those who asked a similar one (Objectives, Sec. 6); clicks are noisy and depend on the position
(Sec. 4). A user here clicks once at most, so a click is also the last one of its session, which is
what Objectives counts.

What is chosen here: an unsatisfied user looks further with the chance `PATIENCE`, and clicks
without cause with the chance `SLIP`, so that equal documents earn less the lower they stand. The
engine shows several pages over time, each ordered by its scores and noise. Users have a taste of
their own among documents of one grade: a linear function of a few features, within the query, which
a ranker can learn; and there is a part that nobody can. How many users a query has is log-normal.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.params import Real, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.random import generator
from rankinite.core.types import Floats, Integers
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData
from rankinite.data.scores import check_scores

SHOWN = 10
PAGES = 5
PATIENCE = 0.9
SLIP = 0.01
ENGINE_NOISE = 1.0
TASTE = 0.6
TASTE_FEATURES = 20
OWN_TASTE = 0.3
SPREAD_OF_USERS = 1.5
QUERIES_A_BLOCK = 1_000
USERS = Real(0, 1e9, low_open=True)


@dataclass(frozen=True)
class Source:
    """Who clicks.

    Attributes
    ----------
    name
        What the label source is called.
    more_users
        How many users there are for each one of the narrow source.
    page_noise
        How much the order of documents differs between pages, in deviations of scores.
    other_meaning
        How far the grade of a document lies from that for the query itself.
    """

    name: str
    more_users: float
    page_noise: float
    other_meaning: float


SOURCES = (Source("clicks", 1.0, 0.3, 0.0), Source("similar_clicks", 8.0, 1.0, 0.7))


def clicks(
    data: RankingData,
    *,
    scores: ArrayLike | None = None,
    users: float = 100.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> RankingData:
    """Return the data set with two simulated click rates as further label sources.

    ``labels["clicks"]`` is of users who asked the query itself, ``labels["similar_clicks"]`` of
    those who asked a similar one: more users, more documents, a vaguer meaning. A rate is clicks
    over views of a page with the document; a document that nobody looked at has none (NaN).

    Parameters
    ----------
    data
        The data set; its grades say what satisfies, so every document needs one.
    scores
        How the engine ranks, one number a document; a noisy view of the grades if not given.
    users
        The mean number of users who asked a query, up to a billion.
    seed
        Another seed gives another taste and other users. Sets that belong together need the same.
    progress
        Who wants to know how far it is.
    """
    checks.data_set("clicks", data)
    check("clicks", "users", users, USERS)
    checks.all_labelled("clicks", data.y, "users click by grades: give one to every document")
    given = None if scores is None else check_scores(scores, data)
    rates = {source.name: np.empty(data.n_docs) for source in SOURCES}
    with (progress or Silent()).start("Simulating clicks", data.n_queries, "queries") as bar:
        for first in range(0, data.n_queries, QUERIES_A_BLOCK):
            queries = slice(first, first + QUERIES_A_BLOCK)
            part = data[queries]
            docs = slice(data.offsets[first], data.offsets[first] + part.n_docs)
            own = None if given is None else given[docs]
            for source, values in zip(SOURCES, _rates(part, own, users, seed), strict=True):
                rates[source.name][docs] = values
            bar.advance(part.n_queries)
    return data.with_labels(rates)


class _Log:
    """What the users of one source saw and clicked, added up for every document."""

    def __init__(self, satisfying: Floats) -> None:
        self.satisfying = satisfying
        self.page_views, self.looks, self.clicks = np.zeros((3, len(satisfying)))

    def add(self, rng: np.random.Generator, page: Integers, n_users: Integers) -> None:
        """Let so many users of every query look at its page, from the top."""
        shown = page >= 0
        chance = np.where(shown, SLIP + (1 - SLIP) * self.satisfying[page], 0.0)
        stay = np.full(SHOWN, PATIENCE)
        stay[-1] = 0.0
        going_on = np.cumprod((1 - chance) * stay, axis=1)
        reached = np.column_stack([np.ones(len(page)), going_on[:, :-1]])
        ends = np.column_stack([reached * chance, reached * (1 - chance) * (1 - stay)])
        clicked, gave_up = np.split(rng.multinomial(n_users, ends), 2, axis=1)
        left = np.cumsum(clicked + gave_up, axis=1) - clicked - gave_up
        docs = page[shown]
        self.clicks[docs] += clicked[shown]
        self.looks[docs] += (n_users[:, None] - left)[shown]
        self.page_views[docs] += np.broadcast_to(n_users[:, None], page.shape)[shown]

    def rates(self) -> Floats:
        """Return clicks over views of the page; NaN for documents that nobody looked at."""
        rates = np.full(len(self.looks), np.nan)
        np.divide(self.clicks, self.page_views, out=rates, where=self.looks > 0)
        return rates


def _rates(data: RankingData, scores: Floats | None, users: float, seed: int) -> list[Floats]:
    """Return the click rates of every source for a block of queries."""
    query = np.repeat(np.arange(data.n_queries), data.sizes)
    taste = _taste(data, query, seed)
    rng = generator(seed, "clicks", str(data.qids[0]), _fingerprint(data.y, taste))
    liked = data.y + TASTE * taste + OWN_TASTE * rng.standard_normal(data.n_docs)
    if scores is None:
        scores = data.y + ENGINE_NOISE * rng.standard_normal(data.n_docs)
    engine = _standardised(_n_below(scores, query, data.offsets), query)
    spread = SPREAD_OF_USERS * rng.standard_normal(data.n_queries) - SPREAD_OF_USERS**2 / 2
    expected = users / PAGES * np.exp(spread)
    rates = []
    for source in SOURCES:
        meant = liked + source.other_meaning * rng.standard_normal(data.n_docs)
        log = _Log(_chance_to_satisfy(meant, data.top_grade))
        for _ in range(PAGES):
            order = engine + source.page_noise * rng.standard_normal(data.n_docs)
            n_users = rng.poisson(expected * source.more_users)
            log.add(rng, _page(order, query, data.offsets), n_users)
        rates.append(log.rates())
    return rates


def _fingerprint(*arrays: Floats) -> str:
    """Return a text for what a block holds: other sets with the same ids have other users."""
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def _taste(data: RankingData, query: Integers, seed: int) -> Floats:
    """Return what users like beyond grades; the same function of the features for any data set."""
    rng = generator(seed, "clicks", "taste")
    chosen = rng.permutation(data.n_features)[:TASTE_FEATURES]
    weights = rng.standard_normal(len(chosen))
    rows = np.arange(data.n_docs) if data.rows is None else data.rows
    columns = data.base[np.ix_(rows, chosen)].T.astype(np.float64)
    taste = np.zeros(data.n_docs)
    for column, weight in zip(columns, weights, strict=True):
        taste += weight * _standardised(column, query)
    return _standardised(taste, query)


def _n_below(scores: Floats, query: Integers, offsets: Integers) -> Floats:
    """Return how many documents of its query have a smaller score than each."""
    order = np.lexsort((scores, query))
    places = np.arange(len(order))
    ties = (np.diff(scores[order], prepend=np.nan) == 0) & (np.diff(query, prepend=-1) == 0)
    first_alike = np.maximum.accumulate(np.where(ties, 0, places))
    n_below = np.empty(len(order))
    n_below[order] = first_alike - offsets[query]
    return n_below


def _standardised(values: Floats, query: Integers) -> Floats:
    """Scale values to mean 0 and deviation 1 in their query; missing and constant ones are 0."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    n_known = np.maximum(np.bincount(query, known), 1)
    centred = np.where(known, filled - (np.bincount(query, filled) / n_known)[query], 0.0)
    deviation = np.sqrt(np.bincount(query, centred**2) / n_known)[query]
    # What rounding makes of equal values is no difference.
    differs = deviation > 1e-9 * np.abs(filled)
    standardised: Floats = np.divide(centred, deviation, out=np.zeros_like(centred), where=differs)
    return standardised


def _chance_to_satisfy(grades: Floats, top_grade: float) -> Floats:
    """Return (2^grade - 1) / 2^top_grade for grades that need not be whole."""
    chances: Floats = np.exp2(np.clip(grades, 0.0, top_grade) - top_grade) - np.exp2(-top_grade)
    return chances


def _page(scores: Floats, query: Integers, offsets: Integers) -> Integers:
    """Return the documents of every query's first page, one row a query; -1 where there is none."""
    order = np.lexsort((-scores, query))
    rank = np.arange(len(order)) - offsets[query]
    page = np.full((len(offsets) - 1, SHOWN), -1)
    top = rank < SHOWN
    page[query[top], rank[top]] = order[top]
    return page
