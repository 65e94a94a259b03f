"""Shares of grades in lambdas against naive references, which really swaps documents; by hand."""

from __future__ import annotations

import math
from itertools import chain, product

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankinite as rk
from rankinite.measures import parse_measures
from rankinite.objectives.constructions import SigmoidCost
from rankinite.objectives.kernels import swaps
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas, RankNet
from rankinite.rankers.diagnostic_curves import Grades, GradeShares, Ranks, Snapshot
from tests.naive import diagnostics as naive_diagnostics
from tests.rankers.cases import SMALL, TRAIN

# Kernels' tests also run with the JIT off, where they must be small.
SMALL_RUN = numba.config.DISABLE_JIT

TOP_GRADE = 4.0
GRADES = [0.0, 1.0, 2.0, 3.0, 4.0]
MEASURES = parse_measures(
    "NDCG, NDCG@3, DCG(gain=linear), ERR, pFound, MAP(relevant=2), MRR, MRR(relevant=3)@4, P@2"
)
OPTIONS = list(product((None, 1, 4), ("none", "distance")))
OBJECTIVES = [
    *(Lambdas(m, truncation=t, normalise=n) for m in MEASURES for t, n in OPTIONS),
    *(RankNet(truncation=t, normalise=n) for t, n in OPTIONS),
    *(
        SigmoidCost(m, mu=mu).with_options(truncation=t, normalise=n)
        for m, mu in (("NDCG", 0.0), ("ERR@5", 0.7))
        for t, n in OPTIONS
    ),
    Lambdas("MRR", gain_only=True),
]


def random_query(rng, n):
    """Make a query, some of whose scores are equal and labels missing."""
    labels = rng.choice([*GRADES, math.nan], size=n, p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.1])
    spread = rng.choice([0.0, 0.5, 3.0, 400.0])
    return (spread * rng.integers(0, n, n)).tolist(), labels.tolist()


def targets_of(labels, sizes, **options):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Targets({None: np.array(labels)}, offsets, TOP_GRADE, **options)


def ties_of(targets):
    """Return the order in which ties of every query are ranked, counted in the query."""
    shuffle = RankNet().prepare(targets).arrays.shuffle
    parts = np.split(shuffle, targets.offsets[1:-1])
    return [(part - first).tolist() for part, first in zip(parts, targets.offsets, strict=False)]


def shares_of(objective, scores, targets, highly):
    """Return the shares that the kernel gives, of all five grades."""
    labels = np.concatenate([targets.labels[None], GRADES])  # so that every grade is there
    grades = Grades(labels, None, highly)
    grades.numbers = grades.numbers[: targets.n_docs]
    look = GradeShares(objective.prepare(targets), grades)
    column = np.array(scores, float)
    nobody = np.zeros(0, np.int64)
    return look.values(Snapshot(column[np.newaxis], column, nobody, nobody))


def naive_shares(objective, queries, targets, highly):
    """Return what the naive reference gives, of all five grades."""
    shares = []
    weights = np.ones(len(queries)) if targets.query_weight is None else targets.query_weight
    for (scores, labels), ties, weight in zip(queries, ties_of(targets), weights, strict=True):
        shares += [] if weight == 0.0 else naive_diagnostics.grade_shares(
            getattr(objective, "measure", None), scores, labels, TOP_GRADE, GRADES, highly,
            ranking=naive_diagnostics.ranking_of(scores, ties),
            truncation=objective.truncation, normalise=objective.normalise,
            gain_only=getattr(objective, "gain_only", False), mu=getattr(objective, "mu", None),
        )  # fmt: skip
    return naive_diagnostics.mean(shares) if shares else [math.nan] * len(GRADES)


def assert_shares(objective, queries, highly, weight=None):
    scores, labels = (list(chain(*part)) for part in zip(*queries, strict=True))
    targets = targets_of(labels, [len(s) for s, _ in queries], query_weight=weight, seed=3)
    ours = shares_of(objective, scores, targets, highly)
    theirs = naive_shares(objective, queries, targets, highly)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.kernel
def test_shares_are_those_of_real_swaps():
    rng = np.random.default_rng(1)
    for objective in OBJECTIVES[:: 5 if SMALL_RUN else 1]:
        queries = [random_query(rng, n) for n in rng.integers(1, 11, size=6)]
        weight = rng.choice([0.0, 1.0, 2.0], size=6)
        assert_shares(objective, queries, rng.choice([0.0, 2.0, 3.0]), weight)


@pytest.mark.kernel
@settings(deadline=None, max_examples=10 if SMALL_RUN else 200)
@given(
    documents=st.lists(
        st.tuples(st.floats(-50, 50), st.sampled_from([*GRADES, math.nan])),
        min_size=1,
        max_size=7,
    ),
    objective=st.sampled_from(OBJECTIVES),
    highly=st.sampled_from(GRADES),
)
def test_shares_are_those_of_real_swaps_of_any_query(documents, objective, highly):
    scores, labels = (list(part) for part in zip(*documents, strict=True))
    assert_shares(objective, [(scores, labels)], highly)


@pytest.mark.kernel
def test_larger_queries():
    rng = np.random.default_rng(2)
    sizes = [5, swaps.USUAL_WIDTH + 1, swaps.FEW, 30]
    queries = [random_query(rng, n) for n in sizes]
    assert_shares(Lambdas("NDCG", truncation=3), queries, 3.0)
    scores, labels = (list(chain(*part)) for part in zip(*queries, strict=True))
    targets = targets_of(labels, sizes)
    order = np.split(Ranks(targets).order(np.array(scores)), targets.offsets[1:-1])
    for ranking, (query_scores, _), ties, start in zip(
        order, queries, ties_of(targets), targets.offsets, strict=False
    ):
        assert (ranking - start).tolist() == naive_diagnostics.ranking_of(query_scores, ties)


@pytest.mark.kernel
def test_shares_by_hand():
    """At equal scores every pair of RankNet pushes by 1/2.

    The document of grade 2 is pushed up by those of 1 and 0. That of grade 1 is pushed up by that
    of 0 and down by that of 2: its shares are 1/2, 0 and -1/2.
    """
    targets = targets_of([2.0, 1.0, 0.0], [3])
    look = {
        highly: GradeShares(RankNet().prepare(targets), Grades(targets.labels[None], None, highly))
        for highly in (None, 1.0)
    }
    equal = np.zeros((1, 3))
    snapshot = Snapshot(equal, equal[0], np.arange(3), np.arange(3))
    assert look[None].names == [f"lambda share of grade {grade}" for grade in (0, 1, 2)]
    assert look[None].values(snapshot) == [0.5, 0.5, 0.0]
    assert look[1.0].values(snapshot) == [0.5, 0.25, -0.25]


def test_shares_do_not_depend_on_threads(on_threads):
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 30, size=200)
    queries = [random_query(rng, n) for n in sizes]
    scores, labels = (list(chain(*part)) for part in zip(*queries, strict=True))
    targets = targets_of(labels, sizes)
    results = on_threads(lambda: tuple(shares_of(Lambdas("NDCG"), scores, targets, 3.0)))
    assert len(set(results.values())) == 1


@pytest.mark.parametrize(
    ("measure", "same"),
    [
        ("NDCG@5", Lambdas("NDCG@5", truncation=30)),
        ("ERR > CNDCG[clicks]", Lambdas("ERR", truncation=30)),
        ("LocalCost(NDCG@5)", Lambdas("NDCG@5")),
        ("SpringSmooth(MAP(relevant=2))", Lambdas("MAP(relevant=2)")),
    ],
)
def test_shares_while_a_ranker_learns(measure, same):
    """Constructions that are not made of all pairs are stood for by those of their measure."""
    data = TRAIN.with_labels({"clicks": TRAIN.y / 4})
    diagnostics = rk.Diagnostics()
    model = rk.LambdaMART(measure, preset="paper", **SMALL).fit(data, diagnostics=diagnostics)
    targets = targets_of(data.y, data.sizes, seed=model.seed_)
    names = [f"lambda share of grade {grade}" for grade in range(5)]
    for k, scores in enumerate(model.staged_predict(data)):
        queries = [
            (scores[a:b].tolist(), data.y[a:b].tolist())
            for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)
        ]
        ours = [diagnostics.curves[name][k] for name in names]
        np.testing.assert_allclose(ours, naive_shares(same, queries, targets, 3.0), atol=1e-12)


def test_no_highly_relevant_document_that_is_pushed():
    """Where all labels of a query are equal, nobody pushes anybody: there is no share."""
    targets = targets_of([4.0, 4.0, 1.0, 0.0], [2, 2])
    look = GradeShares(Lambdas("NDCG").prepare(targets), Grades(targets.labels[None], None, None))
    equal = np.zeros((1, 4))
    assert np.isnan(look.values(Snapshot(equal, equal[0], np.arange(4), np.arange(4)))).all()
