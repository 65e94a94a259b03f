"""The part of the data that each tree sees, drawn anew for every tree.

Draws are keyed by the seed and the round, so that a fit that goes on from a checkpoint draws what
an undisturbed one would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankinite.core.random import generator
from rankinite.core.types import Integers, Mask
from rankinite.objectives.objective import EVERY_QUERY
from rankinite.trees.grower import EVERY_DOC


@dataclass(frozen=True)
class Sampling:
    """Which part of the data a tree sees: shares of documents, of queries and of features."""

    docs: float
    queries: float
    features: float


class Sampler:
    """Draws the parts for one fit.

    Parameters
    ----------
    sampling
        How much to draw.
    offsets, origins
        The queries, and the number of the query that each was sampled from. Samples of one query
        are drawn together: they share documents, and a tree is to see a part of those.
    n_features
        How many features there are.
    taking_part
        The documents to draw from; all if empty.
    seed
        The seed of the fit.
    """

    def __init__(
        self,
        sampling: Sampling,
        offsets: Integers,
        origins: Integers,
        n_features: int,
        taking_part: Mask,
        seed: int,
    ) -> None:
        self.sampling = sampling
        self.sizes = np.diff(offsets)
        self.origins = origins
        self.n_features = n_features
        self.taking_part = taking_part
        self.seed = seed

    def queries(self, number: int) -> Mask:
        """Return the queries of a round; all if empty."""
        share = self.sampling.queries
        if share == 1.0:
            return EVERY_QUERY
        draws = generator(self.seed, "queries", number).random(int(self.origins.max()) + 1)
        wanted = max(1, round(share * len(draws)))
        drawn = draws <= np.partition(draws, wanted - 1)[wanted - 1]
        return np.asarray(drawn[self.origins])

    def docs(self, number: int, output: int, queries: Mask) -> Mask:
        """Return the documents of a tree, which are in these queries; all if empty."""
        chosen = np.repeat(queries, self.sizes) if len(queries) else EVERY_DOC
        if self.sampling.docs < 1.0:
            rng = generator(self.seed, "docs", number, output)
            drawn = rng.random(int(self.sizes.sum()), np.float32) < self.sampling.docs
            chosen = _both(chosen, drawn)
        return _both(chosen, self.taking_part)

    def features(self, number: int, output: int) -> Integers | None:
        """Return the features of a tree; all if None."""
        share = self.sampling.features
        if share == 1.0:
            return None
        rng = generator(self.seed, "features", number, output)
        wanted = max(1, round(share * self.n_features))
        return np.sort(rng.choice(self.n_features, wanted, replace=False))


def _both(one: Mask, other: Mask) -> Mask:
    """Return what is in both masks; an empty one has everything."""
    if not len(one):
        return other
    return one & other if len(other) else one
