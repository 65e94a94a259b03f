"""Simulators of clicks: click rates of documents as further label sources, and single sessions.

From the papers: a user of the cascade model (Challenge, Algorithm 2) examines the ten documents of
a page from the top, and stops at the first that satisfies, with the probability R of its grade.
Click labels are rates in [0, 1] over many users; there are two, of users who asked this query and
of users who asked a similar one (Objectives, Sec. 6); clicks are noisy and depend on the position
(Sec. 4). A user here clicks at most once, so a click is also the last one of its session, which is
what Objectives counts.

Our choices: an unsatisfied user continues with the probability `PATIENCE`, and clicks by accident
with the probability `SLIP`, so that of equal documents lower ones have lower rates. The engine
shows several pages over time, each ordered by its scores plus noise. Users have preferences among
documents of the same grade: a linear function of a few features, standardised within the query,
which a ranker can learn, and a random part that it cannot. The number of users of a query is
log-normal.

`click_sessions` has the simpler users of the position-based model, by which corrections for
positions are judged, for it is known how much each position matters: a document is examined with a
probability that depends on its position alone, and an examined one is clicked by its grade.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.elementary import exp, exp2, log2
from rankinite.core.params import Real, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.random import generator
from rankinite.core.types import Floats, Integers
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData, rows_of
from rankinite.data.scores import check_scores

DOCS_PER_PAGE = 10
PAGES = 5
PATIENCE = 0.9
SLIP = 0.01
ENGINE_NOISE = 1.0  # in grades, of the engine that ranks where no scores are given
# In grades: standard deviations of the preference that is a function of features, and of the rest.
PREFERENCE = 0.6
RANDOM_PREFERENCE = 0.3
PREFERENCE_FEATURES = 20
SPREAD_OF_USERS = 1.5
PAGE_NOISE = 0.3
QUERIES_A_BLOCK = 1_000
USERS = Real(0, 1e9, low_open=True)


@dataclass(frozen=True)
class ClickSource:
    """A population of users whose clicks are a label source.

    Attributes
    ----------
    name
        Name of the label source.
    users_ratio
        Number of users relative to those who asked the query itself.
    page_noise
        Noise in the order of documents between pages, in standard deviations of scores.
    intent_noise
        Standard deviation of the difference between a document's grade for these users and its
        grade for the query itself.
    """

    name: str
    users_ratio: float
    page_noise: float
    intent_noise: float


SOURCES = (
    ClickSource("clicks", 1.0, PAGE_NOISE, 0.0),
    ClickSource("similar_clicks", 8.0, 1.0, 0.7),
)


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
    users who asked a similar one: more users and more documents, but a noisier intent. A rate is
    clicks over views of pages with the document; a document that no user examined has none (NaN).

    Parameters
    ----------
    data
        The data set. Its grades determine which documents satisfy, so every document needs one.
    scores
        Scores by which the engine ranks, one per document; noisy grades by default.
    users
        Mean number of users who asked a query, up to a billion.
    seed
        Seed of the preferences and the users. Use the same for the parts of one data set.
    progress
        Progress reporter.
    """
    checks.require_data_set("clicks", data)
    check("clicks", "users", users, USERS)
    checks.require_all_labels("clicks", data.y, "users click by grades: give one to every document")
    engine_scores = None if scores is None else check_scores(scores, data)
    rates = {source.name: np.empty(data.n_docs) for source in SOURCES}
    with (progress or Silent()).start("Simulating clicks", data.n_queries, "queries") as bar:
        for first in range(0, data.n_queries, QUERIES_A_BLOCK):
            queries = slice(first, first + QUERIES_A_BLOCK)
            part = data[queries]
            docs = slice(data.offsets[first], data.offsets[first] + part.n_docs)
            block_scores = None if engine_scores is None else engine_scores[docs]
            block_rates = _rates(part, block_scores, users, seed)
            for source, values in zip(SOURCES, block_rates, strict=True):
                rates[source.name][docs] = values
            bar.advance(part.n_queries)
    return data.with_labels(rates)


def click_sessions(
    data: RankingData,
    *,
    scores: ArrayLike | None = None,
    sessions: int = 1,
    exponent: float = 1.0,
    slip: float = 0.1,
    page_noise: float = PAGE_NOISE,
    seed: int = 0,
) -> RankingData:
    """Return sessions of users who were shown ten documents: labels are clicks, 1 or 0.

    A session is a query with the documents that it showed, from the first position on. It is named
    as a sample of its query: 12~1, 12~2 and so on. Further label sources are ``"position"``, from
    1; ``"propensity"``, the probability position^-exponent that a document there was examined; and
    ``"grade"``, the label of the document in the data set. An examined document is clicked with the
    probability slip + (1 - slip) (2^grade - 1) / 2^top_grade.

    Parameters
    ----------
    data
        The data set. Its grades determine clicks, so every document needs one.
    scores
        Scores by which the engine ranks, one per document; noisy grades by default.
    sessions
        Number of sessions of each query.
    exponent
        How fast the chance that a document is examined falls with its position; 0 for not at all.
    slip
        Probability that an examined document of grade 0 is clicked.
    page_noise
        Noise in the order of documents between sessions, in standard deviations of scores.
    seed
        Seed of the users.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.polynomials(2, part="train", n_features=5)
    >>> log = rk.click_sessions(data, sessions=3)
    >>> log
    <RankingData: 6 queries, 60 documents, 5 features, top grade 1>
    >>> log.labels["position"][:4]
    array([1., 2., 3., 4.])
    """
    checks.require_data_set("click_sessions", data)
    check("click_sessions", "sessions", sessions, Whole(1))
    check("click_sessions", "exponent", exponent, Real(0))
    check("click_sessions", "slip", slip, Real(0, 1))
    check("click_sessions", "page_noise", page_noise, Real(0))
    checks.require_all_labels("click_sessions", data.y, "users click by grades: give one to each")
    engine_scores = None if scores is None else check_scores(scores, data)
    query = np.repeat(np.arange(data.n_queries), data.sizes)
    rng = generator(seed, "click sessions", str(data.qids[0]), _fingerprint(data.y))
    if engine_scores is None:
        engine_scores = data.y + ENGINE_NOISE * rng.standard_normal(data.n_docs)
    engine = _standardised(_n_below(engine_scores, query, data.offsets), query)
    noisy = (engine + page_noise * rng.standard_normal(data.n_docs) for _ in range(sessions))
    # One row per session, those of a query one after the other.
    pages = np.stack([_page(order, query, data.offsets) for order in noisy], axis=1)
    pages = pages.reshape(-1, DOCS_PER_PAGE)
    shown = pages >= 0
    position = np.broadcast_to(np.arange(1.0, DOCS_PER_PAGE + 1.0), pages.shape)[shown]
    docs, queries = pages[shown], np.repeat(np.arange(data.n_queries), sessions)
    qids = [f"{qid}~{k}" for qid in data.qids for k in range(1, sessions + 1)]
    offsets = np.concatenate([[0], np.cumsum(shown.sum(axis=1))])
    log = data.with_documents(queries, np.array(qids), docs, offsets)
    propensity = exp2(-exponent * log2(position))
    chance = propensity * (slip + (1.0 - slip) * _satisfaction(log.y, data.top_grade))
    clicked = (rng.random(len(docs)) < chance).astype(np.float64)
    columns = {"position": position, "propensity": propensity, "grade": log.y}
    return log.replace(y=clicked, labels=columns, top_grade=1.0)


class _ClickLog:
    """Numbers of page views, examinations and clicks of each document, for one source."""

    def __init__(self, satisfaction: Floats) -> None:
        self.satisfaction = satisfaction
        self.page_views, self.examinations, self.clicks = np.zeros((3, len(satisfaction)))

    def add(self, rng: np.random.Generator, page: Integers, n_users: Integers) -> None:
        """Simulate the users of each query, who examine its page from the top."""
        shown = page >= 0
        chance = np.where(shown, SLIP + (1 - SLIP) * self.satisfaction[page], 0.0)
        # By the probabilities of where a session ends, all users of a query are one draw.
        stay = np.full(DOCS_PER_PAGE, PATIENCE)
        stay[-1] = 0.0
        continues = np.cumprod((1 - chance) * stay, axis=1)
        reached = np.column_stack([np.ones(len(page)), continues[:, :-1]])
        ends = np.column_stack([reached * chance, reached * (1 - chance) * (1 - stay)])
        # ``ends`` sums to 1: nobody stays behind the last document.
        clicked, gave_up = np.split(rng.multinomial(n_users, ends), 2, axis=1)
        left = np.cumsum(clicked + gave_up, axis=1) - clicked - gave_up
        docs = page[shown]
        self.clicks[docs] += clicked[shown]
        self.examinations[docs] += (n_users[:, None] - left)[shown]
        self.page_views[docs] += np.broadcast_to(n_users[:, None], page.shape)[shown]

    def rates(self) -> Floats:
        """Return clicks over page views; NaN for documents that no user examined."""
        rates = np.full(len(self.examinations), np.nan)
        np.divide(self.clicks, self.page_views, out=rates, where=self.examinations > 0)
        return rates


def _rates(data: RankingData, scores: Floats | None, users: float, seed: int) -> list[Floats]:
    """Return the click rates of each source for a block of queries."""
    query = np.repeat(np.arange(data.n_queries), data.sizes)
    preference = _preference(data, query, seed)
    rng = generator(seed, "clicks", str(data.qids[0]), _fingerprint(data.y, preference))
    utility = (
        data.y + PREFERENCE * preference + RANDOM_PREFERENCE * rng.standard_normal(data.n_docs)
    )
    if scores is None:
        scores = data.y + ENGINE_NOISE * rng.standard_normal(data.n_docs)
    # By ranks: the engine's noise has the same effect whatever the scale of the scores.
    engine = _standardised(_n_below(scores, query, data.offsets), query)
    # The mean of a log-normal variable is exp(mean + variance / 2): subtracted to get ``users``.
    spread = SPREAD_OF_USERS * rng.standard_normal(data.n_queries) - SPREAD_OF_USERS**2 / 2
    expected = users / PAGES * exp(spread)
    rates = []
    for source in SOURCES:
        grades = utility + source.intent_noise * rng.standard_normal(data.n_docs)
        log = _ClickLog(_satisfaction(grades, data.top_grade))
        for _ in range(PAGES):
            order = engine + source.page_noise * rng.standard_normal(data.n_docs)
            n_users = rng.poisson(expected * source.users_ratio)
            log.add(rng, _page(order, query, data.offsets), n_users)
        rates.append(log.rates())
    return rates


def _fingerprint(*arrays: Floats) -> str:
    """Return a digest of a block, so that other data sets with the same ids have other users."""
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def _preference(data: RankingData, query: Integers, seed: int) -> Floats:
    """Return preferences beyond grades, by one function of the features for all data sets."""
    # Keyed by the seed alone: training and test data have users with the same preferences.
    rng = generator(seed, "clicks", "taste")
    chosen = rng.permutation(data.n_features)[:PREFERENCE_FEATURES]
    weights = rng.standard_normal(len(chosen))
    data = data.dense("clicks")
    columns = data.matrix[np.ix_(rows_of(data), chosen)].T.astype(np.float64)
    preference = np.zeros(data.n_docs)
    for column, weight in zip(columns, weights, strict=True):
        preference += weight * _standardised(column, query)
    return _standardised(preference, query)


def _n_below(scores: Floats, query: Integers, offsets: Integers) -> Floats:
    """Return for each document the number of documents of its query with a smaller score."""
    order = np.lexsort((scores, query))
    places = np.arange(len(order))
    ties = (np.diff(scores[order], prepend=np.nan) == 0) & (np.diff(query, prepend=-1) == 0)
    first_tied = np.maximum.accumulate(np.where(ties, 0, places))
    n_below = np.empty(len(order))
    n_below[order] = first_tied - offsets[query]
    return n_below


def _standardised(values: Floats, query: Integers) -> Floats:
    """Standardise values within their query; missing and constant values are 0."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    n_known = np.maximum(np.bincount(query, known), 1)
    centred = np.where(known, filled - (np.bincount(query, filled) / n_known)[query], 0.0)
    deviation = np.sqrt(np.bincount(query, centred**2) / n_known)[query]
    # Differences of equal values by rounding do not count.
    differs = deviation > 1e-9 * np.abs(filled)
    standardised: Floats = np.divide(centred, deviation, out=np.zeros_like(centred), where=differs)
    return standardised


def _satisfaction(grades: Floats, top_grade: float) -> Floats:
    """Return the probabilities (2^grade - 1) / 2^top_grade of grades that need not be integers."""
    chances: Floats = exp2(np.clip(grades, 0.0, top_grade) - top_grade) - exp2(-top_grade)
    return chances


def _page(scores: Floats, query: Integers, offsets: Integers) -> Integers:
    """Return the documents of each query's first page, one row per query, padded with -1."""
    order = np.lexsort((-scores, query))
    rank = np.arange(len(order)) - offsets[query]
    page = np.full((len(offsets) - 1, DOCS_PER_PAGE), -1)
    top = rank < DOCS_PER_PAGE
    page[query[top], rank[top]] = order[top]
    return page
