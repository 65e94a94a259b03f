"""What tests of graded objectives share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import rankinite as rk
from rankinite.objectives.objective import Targets
from tests.naive import tiers as naive_tiers

TOP = 4.0


def random_query(rng, n):
    """Return labels of three sources with gaps, and scores that differ."""
    grades = rng.choice([0.0, 1.0, 2.0, 4.0, np.nan], size=n, p=[0.35, 0.25, 0.2, 0.1, 0.1])
    clicks = rng.choice([0.0, 0.25, 0.5, 1.0, np.nan], size=n, p=[0.2, 0.2, 0.25, 0.2, 0.15])
    fresh = rng.choice([0.0, 1.0, np.nan], size=n, p=[0.45, 0.45, 0.1])
    scores = rng.permutation(n) * rng.choice([0.1, 1.0, 3.0]) + rng.normal()
    return {None: grades, "clicks": clicks, "fresh": fresh}, scores


def computed(objective, labels, scores, sizes, *, weight=None, seed=0, round_number=0):
    """Return lambdas and weights, one row each."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    targets = Targets(labels, offsets, TOP, query_weight=weight, seed=seed)
    out = np.full((2, 1, len(scores)), np.nan)
    scores = np.asarray(scores, dtype=float)[np.newaxis]
    objective.prepare(targets).gradients(scores, round_number, out[0], out[1])
    return out[:, 0]


def trained(objective):
    """Return the tiers at the depths of their lambdas: the whole list, but for P."""
    return [
        tier
        if objective.train_depth is None and isinstance(tier, rk.P)
        else replace(tier, depth=objective.train_depth)
        for tier in objective.measure.tiers
    ]


def expected(objective, labels, scores, ranking=None):
    """Return what the naive reference gives for one query."""
    tiers = trained(objective)
    return naive_tiers.tiered(
        tiers,
        [list(labels[tier.source]) for tier in tiers],
        objective.weights,
        list(scores),
        TOP,
        normalise=objective.normalise,
        truncation=objective.truncation,
        ranking=ranking,
        pairs_of=objective.pairs_of,
    )


def assert_equal(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
