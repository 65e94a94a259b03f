"""Domains to adapt rankers from and to (LambdaSMART, Sec. 5.5)."""

import numpy as np
import pytest

from rankinite.core.errors import UsageError
from rankinite.core.random import generator
from rankinite.data.simulate.challenge import challenge, domain
from rankinite.data.simulate.markets import DOMAIN_QUERIES, DOMAINS, MARKETS


@pytest.fixture(scope="module")
def sets():
    return {name: domain(name, 400) for name in DOMAINS}


def test_all_domains_have_the_features_of_set_1(sets):
    first = challenge(400)
    used = first.X.max(axis=0) > 0
    for data in sets.values():
        assert data.feature_names == first.feature_names
        assert np.array_equal(data.X.max(axis=0) > 0, used)
        # Features show the same quantities in every domain: they go together in the same way.
        assert data.X[:, used].mean(axis=0) == pytest.approx(first.X[:, used].mean(axis=0), abs=0.1)


def test_grades_have_the_shares_of_set_1(sets):
    for name, data in sets.items():
        shares = np.bincount(data.y.astype(int), minlength=5) / data.n_docs
        assert shares == pytest.approx(MARKETS[1].grade_shares, rel=0.2), name
        assert data.n_docs / data.n_queries == pytest.approx(24, rel=0.1)


def test_the_web_is_like_set_1_and_the_small_market_like_set_2():
    assert DOMAINS["web"].weights == MARKETS[1].weights
    assert DOMAINS["small"].weights == MARKETS[2].weights


def test_distances_between_domains():
    """What is relevant in one domain is so in another the less, the farther they are apart."""
    latents = DOMAINS["web"].draw(generator(5, "distances"), np.full(2_000, 24))
    # How difficult a query is matters nothing for the order of its documents.
    relevance = {
        name: market.relevance(latents) - market.weights["difficulty"] * latents["difficulty"]
        for name, market in DOMAINS.items()
    }

    def together(first, second):
        return np.corrcoef(relevance[first], relevance[second])[0, 1]

    assert 1 > together("web", "long") > 0.9 > together("web", "names") > 0.5
    near, middle, far = (together("small", name) for name in ("near", "middle", "far"))
    assert 0.95 > near > middle + 0.1 > far + 0.2 > 0.6


def test_a_smaller_set_is_the_beginning_of_a_larger_one(sets):
    assert domain("names", 201).equals(sets["names"][:201])


def test_domains_parts_and_seeds_differ_and_ids_never_meet():
    made = [
        domain(name, 3, part=part, seed=seed)
        for name in DOMAINS
        for part in DOMAIN_QUERIES
        for seed in (0, 1)
    ]
    rows = [{row.tobytes() for row in data.X} for data in made]
    assert all(not a & b for i, a in enumerate(rows) for b in rows[:i])
    # Both sets of the challenge have 36,251 queries, and a domain 35,000.
    assert [int(data.qids[0]) for data in made[:12:2]] == [
        36_252, 56_252, 61_252, 71_252, 91_252, 96_252,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": "web-2"}, "name must be one of 'web', 'long', .*; got 'web-2'"),
        ({"part": "dev"}, "part must be one of 'train', 'valid', 'test'; got 'dev'"),
        ({"n_queries": 20_001}, "n_queries must be a whole number from 1 to 20000; got 20001"),
    ],
)
def test_wrong_arguments(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        domain(**({"name": "web", "n_queries": 3} | options))
