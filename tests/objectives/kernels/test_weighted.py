"""Lambda gradients of weighted documents against naive references, which really swap documents."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numba
import numpy as np
import pytest

from rankinite.measures import NDCG, parse_measure
from rankinite.objectives.constructions import (
    DiscreteBounded,
    LocalCost,
    LocalGradient,
    SigmoidCost,
    SpringSmooth,
)
from rankinite.objectives.kernels import swaps
from rankinite.objectives.kernels.position_bias import sum_losses_by_position
from rankinite.objectives.objective import EVERY_QUERY, Targets, read_only
from rankinite.objectives.pairwise import Lambdas, RankNet
from rankinite.objectives.parse import parse_objective
from rankinite.objectives.tiers import Tiered
from tests.naive import constructions as naive_constructions
from tests.naive import pairwise as naive_pairwise
from tests.naive import tiers as naive_tiers

# Kernels' tests also run with the JIT off, where they must be small.
N_QUERIES = 4 if numba.config.DISABLE_JIT else 30
TOP = 4.0
TEXTS = ("NDCG", "NDCG@3", "DCG(gain=linear)", "ERR", "pFound@5", "MAP(relevant=2)", "MRR", "P@4")
OPTIONS = (
    {},
    {"truncation": 2},
    {"normalise": "deviation"},
    {"normalise": "distance"},
    {"normalise": "distance", "truncation": 5},
)
OBJECTIVES = [
    *(Lambdas(text, **options) for text in TEXTS for options in OPTIONS),
    *(RankNet(**options) for options in OPTIONS),
]
CONSTRUCTIONS = {
    SpringSmooth: naive_constructions.spring_smooth,
    LocalCost: naive_constructions.local_cost,
    LocalGradient: naive_constructions.local_gradient,
    DiscreteBounded: naive_constructions.discrete_bounded,
}


def random_query(rng, n):
    """Make a query of different scores; some labels are missing, and some weights are 0."""
    grades = rng.choice([0.0, 1.0, 2.0, 4.0, np.nan], size=n, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n, p=[0.2, 0.3, 0.2, 0.3])
    spread = rng.choice([0.1, 1.0, 10.0, 1000.0])  # the last is too wide for exponentials of all
    return spread * (rng.permutation(n) + rng.random(n) / 2), grades, weights


def random_queries(seed, sizes):
    rng = np.random.default_rng(seed)
    queries = [random_query(rng, n) for n in sizes]
    return queries, [np.concatenate(part) for part in zip(*queries, strict=True)]


def computed(objective, scores, labels, weights, sizes):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    targets = Targets({None: labels}, offsets, TOP, doc_weight=weights)
    out = np.full((2, 1, len(labels)), np.nan)
    objective.prepare(targets).gradients(scores[np.newaxis], 0, out[0], out[1])
    return out[:, 0]


def unlabelled(labels, weights):
    """A document of weight 0 is like one without a label."""
    return np.where(weights > 0.0, labels, np.nan).tolist()


def assert_equal(ours, theirs) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.kernel
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_pairs_count_the_product_of_weights(objective):
    sizes = np.random.default_rng(1).integers(1, 12, N_QUERIES)
    queries, (scores, labels, weights) = random_queries(2, sizes)
    theirs = [
        naive_pairwise.lambdas(
            getattr(objective, "measure", None), list(s), unlabelled(y, w), TOP,
            truncation=objective.truncation, normalise=objective.normalise, better=w, worse=w,
        )
        for s, y, w in queries
    ]  # fmt: skip
    assert_equal(computed(objective, scores, labels, weights, sizes), np.hstack(theirs))


@pytest.mark.kernel
def test_queries_of_every_width():
    sizes = [23, 24, 25, 26, swaps.USUAL_WIDTH + 1]
    queries, (scores, labels, weights) = random_queries(3, sizes)
    theirs = [
        naive_pairwise.lambdas(NDCG(), list(s), unlabelled(y, w), TOP, better=w, worse=w)
        for s, y, w in queries
    ]
    assert_equal(computed(Lambdas("NDCG"), scores, labels, weights, sizes), np.hstack(theirs))


@pytest.mark.kernel
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sigmoid_costs(options):
    sizes = np.random.default_rng(4).integers(1, 12, N_QUERIES)
    queries, (scores, labels, weights) = random_queries(5, sizes)
    objective = parse_objective(
        SigmoidCost("NDCG", mu=0.5), **{"truncation": None, "normalise": "none", **options}
    )
    ours = computed(objective, scores, labels, weights, sizes)
    theirs = [
        weighted_sigmoid_cost(s, unlabelled(y, w), w, objective.truncation, objective.normalise)
        for s, y, w in queries
    ]
    assert_equal(ours[0], list(chain(*theirs)))
    assert not ours[1].any()


def weighted_sigmoid_cost(scores, labels, weights, truncation, normalise):
    """Return gradients from the two of every pair alone, which the naive reference gives."""
    ranking = sorted(range(len(scores)), key=lambda k: -scores[k])
    gradient, total = np.zeros(len(scores)), 0.0
    pairs = naive_pairwise.pairs(NDCG(), labels, TOP, ranking, truncation)
    several = len({s for s, y in zip(scores, labels, strict=True) if y == y}) > 1
    for i, j, change in pairs:
        if normalise == "distance" and several:
            change /= 0.01 + abs(scores[i] - scores[j])
        pair = change * naive_tiers.slope(scores[i] - scores[j], 0.5) * weights[i] * weights[j]
        gradient[i] += pair
        gradient[j] -= pair
        total += 2.0 * pair
    return gradient * naive_pairwise.normaliser(normalise, gradient, total)


@pytest.mark.kernel
@pytest.mark.parametrize("kind", CONSTRUCTIONS)
@pytest.mark.parametrize("text", ["NDCG@3", "ERR", "MAP(relevant=2)"])
def test_whole_weights_of_constructions(kind, text):
    """Equal weights w multiply sums over pairs by w^2, and gradients of documents by w."""
    sizes = np.random.default_rng(6).integers(1, 12, N_QUERIES)
    queries, (scores, labels, weights) = random_queries(7, sizes)
    factor = 9.0 if kind in (SpringSmooth, LocalCost) else 3.0
    theirs = [
        CONSTRUCTIONS[kind](parse_measure(text), list(s), unlabelled(y, w), TOP)
        for s, y, w in queries
    ]
    ours = computed(kind(text), scores, labels, np.where(weights > 0.0, 3.0, 0.0), sizes)
    assert_equal(ours, factor * np.hstack(theirs))


@pytest.mark.kernel
@pytest.mark.parametrize("kind", [LocalGradient, DiscreteBounded])
def test_weights_multiply_gradients_of_documents(kind):
    sizes = np.random.default_rng(8).integers(1, 12, N_QUERIES)
    _, (scores, labels, weights) = random_queries(9, sizes)
    weights = weights + 0.5
    plain = computed(kind("NDCG"), scores, labels, np.ones(len(weights)), sizes)
    assert_equal(computed(kind("NDCG"), scores, labels, weights, sizes), plain * weights)


@pytest.mark.kernel
@pytest.mark.parametrize("options", [OPTIONS[0], OPTIONS[3]], ids=str)
def test_tiers(options):
    """All pairs of a lower tier are tied above if the upper tier knows one grade only."""
    sizes = np.random.default_rng(10).integers(1, 12, N_QUERIES)
    queries, (scores, labels, weights) = random_queries(11, sizes)
    objective = parse_objective(
        Tiered("MAP(relevant=9)[same] > NDCG", weights=1.0, pairs_of="labelled"),
        **{"truncation": None, "normalise": "none", **options},
    )
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    sources = {None: labels, "same": np.zeros(len(labels))}
    targets = Targets(sources, offsets, TOP, doc_weight=weights)
    out = np.full((2, 1, len(labels)), np.nan)
    objective.prepare(targets).gradients(scores[np.newaxis], 0, out[0], out[1])
    theirs = [
        naive_pairwise.lambdas(
            NDCG(), list(s), unlabelled(y, w), TOP,
            normalise=options.get("normalise", "none"), better=w, worse=w,
        )
        for s, y, w in queries
    ]  # fmt: skip
    assert_equal(out[:, 0], np.hstack(theirs))


def test_a_function_of_ranked_labels():
    """Its lambdas are those of the same measure with a form."""

    def summed_gains(ranked):
        return float((ranked / np.log2(np.arange(2, len(ranked) + 2))).sum())

    _, (scores, labels, weights) = random_queries(12, [9, 5])
    ours = computed(Lambdas(summed_gains, normalise="distance"), scores, labels, weights, [9, 5])
    same = Lambdas("DCG(gain=linear)", normalise="distance")
    assert_equal(ours, computed(same, scores, labels, weights, [9, 5]))


@pytest.mark.kernel
@pytest.mark.parametrize("text", ["NDCG", "ERR", "RankNet"])
@pytest.mark.parametrize("truncation", [None, 3])
def test_losses_by_position(text, truncation):
    rng = np.random.default_rng(13)
    sizes = rng.integers(1, 12, N_QUERIES)
    queries, (scores, labels, _) = random_queries(14, sizes)
    positions = [rng.integers(0, 5, n) for n in sizes]
    clicked, unclicked = rng.random((2, 5)) + 0.1
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    objective = replace(parse_objective(text), truncation=truncation)
    prepared = objective.prepare(Targets({None: labels}, offsets, TOP))
    places = np.concatenate(positions)
    pairs = prepared.weighted(1.0 / clicked[places], 1.0 / unclicked[places])
    out = np.full((len(pairs.blocks) - 1, 2, 5), np.nan)
    of_place = read_only(places[pairs.arrays.shuffle], np.int64)
    sum_losses_by_position(
        0, len(out), read_only(scores), pairs.blocks, pairs.arrays, of_place, EVERY_QUERY, out
    )
    theirs = sum(
        np.array(
            naive_pairwise.position_losses(
                getattr(objective, "measure", None), list(s), list(y), TOP, p, clicked, unclicked,
                truncation=truncation,
            )
        )
        for (s, y, _), p in zip(queries, positions, strict=True)
    )  # fmt: skip
    # The kernel divides by both propensities; that of the summed position is a constant of it.
    assert_equal(out.sum(axis=0) * np.array([clicked, unclicked]), theirs)
