"""Simulated data sets of a given shape, seeded, and mq2007 from its folder.

A third of the features are binary or counts; the others are continuous, some of them mostly zero
and some with missing values. Grades 0 to 4 come from a hidden nonlinear function with noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rankinite as rk

GRADE_SHARES = (0.50, 0.25, 0.15, 0.07, 0.03)
ROWS_A_BLOCK = 20_000
TOP_GRADE = 4
PARTS = ("train", "valid")


@dataclass(frozen=True)
class Shape:
    """How many queries, documents a query and features a data set has."""

    name: str
    n_queries: int
    n_docs: int
    n_features: int

    def __str__(self) -> str:
        return f"{self.n_queries:,} x {self.n_docs} x {self.n_features}"

    def smaller(self, times: int) -> Shape:
        """Return the shape with fewer queries, and with a third of the features at most."""
        few = max(6, self.n_features // 3)
        return Shape(self.name, max(30, self.n_queries // times), self.n_docs, few)


A = Shape("A", 10_000, 24, 519)
B = Shape("B", 3_000, 116, 136)


@dataclass(frozen=True)
class Arrays:
    """Features, labels and group sizes, as every library takes them."""

    X: NDArray[np.float32]
    y: NDArray[np.float32]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, data: rk.RankingData) -> Arrays:
        """Take the arrays of a data set."""
        return cls(np.ascontiguousarray(data.X), data.y.astype(np.float32), data.sizes)

    @property
    def qid(self) -> NDArray[np.int64]:
        """The number of the query of every document."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def data(self) -> rk.RankingData:
        """Return the same as a RankingData."""
        return rk.RankingData(self.X, self.y, group_sizes=self.sizes, top_grade=TOP_GRADE)


def simulate(shape: Shape, seed: int = 0) -> tuple[Arrays, Arrays]:
    """Return a training set of this shape, and a validation set a third of its size."""
    train = _draw(shape, shape.n_queries, seed, part=0)
    return train, _draw(shape, max(10, shape.n_queries // 3), seed, part=1)


def _draw(shape: Shape, n_queries: int, seed: int, part: int) -> Arrays:
    n_rows = n_queries * shape.n_docs
    X = np.empty((n_rows, shape.n_features), np.float32)
    hidden = np.empty(n_rows)
    for begin in range(0, n_rows, ROWS_A_BLOCK):
        rng = np.random.default_rng([seed, part, begin])
        latent = rng.standard_normal((min(ROWS_A_BLOCK, n_rows - begin), X.shape[1]), np.float32)
        end = begin + len(latent)
        hidden[begin:end] = _hidden(latent, seed)
        X[begin:end] = _features(latent, rng, seed)
    rng = np.random.default_rng([seed, part, n_rows])
    of_query = np.repeat(rng.normal(0.0, 0.3, n_queries), shape.n_docs)
    noisy = hidden / hidden.std() + of_query + rng.normal(0.0, 0.7, n_rows)
    grades = np.searchsorted(np.quantile(noisy, np.cumsum(GRADE_SHARES)[:-1]), noisy)
    return Arrays(X, grades.astype(np.float32), np.full(n_queries, shape.n_docs))


def _hidden(latent: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    """Add terms of one feature, steps, and products of two, over a few dozen features."""
    n_features = latent.shape[1]
    rng = np.random.default_rng([seed, n_features])
    first, second = (
        latent[:, rng.integers(0, n_features, 30)].astype(np.float64) for _ in range(2)
    )
    decay = 0.9 ** np.arange(30)
    return (0.5 * first + (first > 0.5) + 0.7 * first * second + np.tanh(second) ** 2) @ decay


def _features(
    latent: NDArray[np.float32], rng: np.random.Generator, seed: int
) -> NDArray[np.float32]:
    """Turn normal deviates into what features look like; the kind goes by the column."""
    shift = np.random.default_rng([seed, 1, latent.shape[1]]).uniform(-1.0, 1.0, latent.shape[1])
    shift = shift.astype(np.float32)
    X = latent.copy()
    X[:, 0::6] = latent[:, 0::6] > shift[0::6]
    X[:, 3::6] = np.floor(np.exp(latent[:, 3::6] + shift[3::6]))
    tails = latent[:, 2::6] - shift[2::6]
    X[:, 2::6] = np.where(tails > 0.5, np.exp(tails), 0.0)
    X[:, 4::6][rng.random(X[:, 4::6].shape, np.float32) < 0.2] = np.nan
    return X


def mq2007(folder: Path, fold: int) -> dict[str, rk.RankingData]:
    """Return the parts of a fold: fold k trains on S_k to S_(k+2), then one each to choose, test.

    Parameters
    ----------
    folder
        Where ``S1.txt.gz`` to ``S5.txt.gz`` are.
    fold
        1 to 5.
    """
    five = [
        rk.load(folder / f"S{(fold + k - 1) % 5 + 1}.txt.gz", top_grade=2, comments=False)
        for k in range(5)
    ]
    return {"train": rk.concat(five[:3]), "valid": five[3], "test": five[4]}
