"""Simulator of the artificial data of LambdaSMART, Sec. 5.1, and Optimality, Sec. 6.

From the papers: random cubic polynomials after Burges et al. (2005); 50 documents per query; 50
features (LambdaSMART) or 300 (Optimality); five grades; no noise in the labels; 10,000 / 5,000 /
10,000 queries for training, validation and test. Burges et al. draw features uniformly from
[-1, 1], and score a document by the mean of three terms, each scaled to mean 0 and variance 1: a
product with a random vector, a sum of x_i x_Q(i) and a sum of x_i x_Q(i) x_R(i), where Q and R
are random permutations.

Our choices: Q is the same in the quadratic and the cubic term; the weights of the linear term are
uniform in [-1, 1]; the scales of the terms and the bounds between grades come from a separate
sample of 20,000 documents, so that labels do not depend on the size of a data set; the grades have
the shares of `GRADE_SHARES`, which decrease towards the top as those of Web search do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankinite.core.params import Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.random import generator
from rankinite.core.types import Floats, Floats32, Integers
from rankinite.data.ranking_data import RankingData

GRADE_SHARES = (0.50, 0.25, 0.15, 0.07, 0.03)
FULL_SIZE = {"train": 10_000, "valid": 5_000, "test": 10_000}
SAMPLE_DOCS = 20_000
QUERIES_A_BLOCK = 100


@dataclass(frozen=True)
class _Polynomial:
    """A score that is linear, quadratic and cubic in the features, and its grades."""

    weights: Floats32
    second: Integers
    third: Integers
    centre: Floats
    scale: Floats
    bounds: Floats

    @classmethod
    def draw(cls, n_features: int, seed: int) -> _Polynomial:
        rng = generator(seed, "polynomials", n_features, "function")
        weights = rng.uniform(-1, 1, n_features).astype(np.float32)
        second, third = rng.permutation(n_features), rng.permutation(n_features)
        # The function is needed without its scales first, to measure them.
        unscaled = cls(weights, second, third, np.zeros(3), np.ones(3), np.zeros(0))
        sample = rng.uniform(-1, 1, (SAMPLE_DOCS, n_features)).astype(np.float32)
        terms = unscaled.terms(sample)
        centre, scale = terms.mean(axis=0), terms.std(axis=0)
        scores = ((terms - centre) / scale).mean(axis=1)
        bounds = np.quantile(scores, np.cumsum(GRADE_SHARES)[:-1])
        return cls(weights, second, third, centre, scale, bounds)

    def terms(self, X: Floats32) -> Floats:
        pairs = X * X[:, self.second]
        columns = [X * self.weights, pairs, pairs * X[:, self.third]]
        return np.stack([column.sum(axis=1, dtype=np.float64) for column in columns], axis=1)

    def grades(self, X: Floats32) -> Integers:
        scores = ((self.terms(X) - self.centre) / self.scale).mean(axis=1)
        grades: Integers = np.searchsorted(self.bounds, scores, side="right")
        return grades


def polynomials(
    n_queries: int | None = None,
    *,
    part: str = "train",
    n_features: int = 50,
    n_docs: int = 50,
    seed: int = 0,
    progress: Progress | None = None,
) -> RankingData:
    """Simulate the artificial data of LambdaSMART and Optimality.

    Parameters
    ----------
    n_queries
        Number of queries; that of the papers for this part by default. A smaller data set is the
        beginning of a larger one.
    part
        ``"train"``, ``"valid"`` or ``"test"`` (any other word is another part of the same data).
    n_features
        50 in LambdaSMART, 300 in Optimality.
    n_docs
        Number of documents per query.
    seed
        Seed of the polynomial and the documents.
    progress
        Progress reporter.

    Examples
    --------
    >>> polynomials(20, seed=1)
    <RankingData: 20 queries, 1,000 documents, 50 features, top grade 4>
    """
    if n_queries is None:
        n_queries = FULL_SIZE.get(part, FULL_SIZE["train"])
    for name, value in (("n_queries", n_queries), ("n_docs", n_docs), ("n_features", n_features)):
        check("polynomials", name, value, Whole(1))
    polynomial = _Polynomial.draw(n_features, seed)
    X = np.empty((n_queries * n_docs, n_features), np.float32)
    y = np.empty(n_queries * n_docs)
    with (progress or Silent()).start(f"Simulating {part}", n_queries, "queries") as bar:
        for block in range(0, n_queries, QUERIES_A_BLOCK):
            rng = generator(seed, "polynomials", n_features, n_docs, part, block)
            # Always a whole block, so that a smaller data set is the beginning of a larger one.
            drawn = rng.uniform(-1, 1, (QUERIES_A_BLOCK * n_docs, n_features))
            end = min(block + QUERIES_A_BLOCK, n_queries)
            rows = slice(block * n_docs, end * n_docs)
            X[rows] = drawn[: (end - block) * n_docs]
            y[rows] = polynomial.grades(X[rows])
            bar.advance(end - block)
    sizes = np.full(n_queries, n_docs)
    top_grade = len(GRADE_SHARES) - 1
    return RankingData(X, y, group_sizes=sizes, top_grade=top_grade)
