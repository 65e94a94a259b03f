"""Rank correlation of systems within queries: scipy, blocks of documents, samples of queries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

from rankinite.stats.kendall import query_tau, rank_correlation


def test_tau_is_scipys():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, size=(4, 12)).astype(float)
    scores[3] = 1.0
    expected = [[kendalltau(a, b).statistic for b in scores] for a in scores]
    np.testing.assert_allclose(query_tau(scores), expected, atol=1e-12)


def test_tau_in_blocks_is_the_same(monkeypatch):
    scores = np.random.default_rng(1).normal(size=(3, 40))
    whole = query_tau(scores)
    monkeypatch.setattr("rankinite.stats.kendall.BLOCK", 400)
    np.testing.assert_allclose(query_tau(scores), whole, atol=1e-12)


def test_tau_of_many_queries_takes_some():
    scores = np.random.default_rng(2).normal(size=(2, 2400))
    correlation = rank_correlation({"a": scores[0], "b": scores[1]}, np.arange(0, 2401, 2))
    assert (correlation.n_queries, correlation.is_sample) == (500, True)
    # Two documents are ordered alike or not: a mean of +1 and -1 over the queries that are taken.
    taken = np.linspace(0, 1199, 500).astype(int)
    signs = np.sign(np.diff(scores.reshape(2, 1200, 2), axis=2))[:, taken, 0]
    assert correlation.tau[0, 1] == pytest.approx((signs[0] * signs[1]).mean())
