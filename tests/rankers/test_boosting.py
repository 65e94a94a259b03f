"""Boosted trees: the part of the data that each tree sees."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rankinite as rk
from rankinite.objectives.objective import EVERY_QUERY, Targets
from rankinite.objectives.pairwise import Lambdas
from rankinite.rankers.boosting import Sampler, Sampling

OFFSETS = np.array([0, 3, 4, 10, 12, 17])
EVERY = np.zeros(0, np.bool_)


def sampler(docs=1.0, queries=1.0, features=1.0, origins=range(5), taking_part=EVERY, seed=0):
    shares = Sampling(docs, queries, features)
    return Sampler(shares, OFFSETS, np.array(list(origins)), 8, taking_part, seed)


def test_everything_is_an_empty_mask():
    whole = sampler()
    assert len(whole.queries(0)) == 0
    assert len(whole.docs(0, 0, whole.queries(0))) == 0
    assert whole.features(0, 0) is None


@pytest.mark.parametrize(("share", "wanted"), [(0.01, 1), (0.2, 1), (0.5, 2), (0.6, 3), (0.99, 5)])
def test_so_many_queries_are_drawn(share, wanted):
    assert {int(sampler(queries=share).queries(k).sum()) for k in range(50)} == {wanted}


def test_every_query_is_drawn_as_often():
    drawn = np.array([sampler(queries=0.4).queries(k) for k in range(2000)])
    # 2,000 draws of a chance of 0.4 have a standard deviation of 22.
    assert (np.abs(drawn.sum(axis=0) - 800) < 5 * 22).all()
    assert np.abs((drawn[:, 0] & drawn[:, 1]).sum() - 2000 * 0.4 * 0.25) < 5 * 14


def test_one_query_alone_is_always_drawn():
    alone = Sampler(Sampling(1.0, 0.1, 1.0), np.array([0, 4]), np.zeros(1, np.int64), 1, EVERY, 0)
    assert all(alone.queries(k).tolist() == [True] for k in range(20))


def test_samples_of_a_query_are_drawn_together():
    together = sampler(queries=0.5, origins=[0, 1, 0, 2, 1])
    drawn = np.array([together.queries(k) for k in range(60)])
    assert (drawn[:, 0] == drawn[:, 2]).all()
    assert (drawn[:, 1] == drawn[:, 4]).all()
    assert len(np.unique(drawn, axis=0)) == 3  # two of three are drawn


def test_documents_are_those_of_the_queries_that_take_part():
    taking_part = np.arange(17) % 4 > 0
    both = sampler(docs=0.8, queries=0.5, taking_part=taking_part)
    for number in range(30):
        queries = both.queries(number)
        chosen = both.docs(number, 0, queries)
        allowed = np.repeat(queries, np.diff(OFFSETS)) & taking_part
        assert (chosen <= allowed).all()
    assert both.docs(3, 0, EVERY_QUERY).sum() > 0
    only = sampler(queries=0.5).docs(3, 0, queries)
    assert only.tolist() == np.repeat(queries, np.diff(OFFSETS)).tolist()
    assert sampler(taking_part=taking_part).docs(0, 0, EVERY_QUERY) is taking_part


def test_draws_differ_by_round_output_and_seed_and_repeat():
    some = sampler(docs=0.5, queries=0.6, features=0.5)
    first = some.docs(1, 0, EVERY_QUERY).tolist()
    assert first == sampler(docs=0.5).docs(1, 0, EVERY_QUERY).tolist()
    assert first != some.docs(2, 0, EVERY_QUERY).tolist()
    assert first != some.docs(1, 1, EVERY_QUERY).tolist()
    assert first != sampler(docs=0.5, seed=1).docs(1, 0, EVERY_QUERY).tolist()
    features = [some.features(k, 0).tolist() for k in range(20)]
    assert all(len(set(f)) == 4 and f == sorted(f) and max(f) < 8 for f in features)
    assert len({tuple(f) for f in features}) > 5


@pytest.mark.kernel
@pytest.mark.parametrize("measure", ["NDCG", "ERR@3", "MAP", "MRR"])
def test_gradients_of_some_queries_are_those_of_all(measure):
    data = rk.polynomials(9, part="train", n_features=3, n_docs=6)
    targets = Targets({None: data.y}, data.offsets, data.top_grade, seed=1)
    gradients = Lambdas(measure, truncation=4, normalise="distance").prepare(targets)
    scores = np.random.default_rng(0).normal(size=(1, data.n_docs))
    whole, some = np.empty((2, 1, data.n_docs)), np.full((2, 1, data.n_docs), 7.0)
    gradients.gradients(scores, 0, *whole)
    queries = np.arange(9) % 3 == 1
    gradients.gradients_of(queries, scores, 0, *some)
    wanted = np.repeat(queries, data.sizes)
    assert some[..., wanted].tobytes() == whole[..., wanted].tobytes()
    assert (some[..., ~wanted] == 7.0).all()


def test_a_tree_learns_from_the_queries_that_were_drawn_only():
    """With one tree and all its documents drawn, the others' labels do not matter."""
    data = rk.polynomials(10, part="train", n_features=3, n_docs=8)
    drawn = Sampler(Sampling(1.0, 0.5, 1.0), data.offsets, data.origins, 3, EVERY, seed=5).queries(
        0
    )
    assert drawn.sum() == 5
    other = np.where(np.repeat(drawn, data.sizes), data.y, data.top_grade - data.y)
    changed = data.replace(y=other)
    # A regression term scales grades by those of all queries.
    settings = {"n_trees": 1, "n_leaves": 8, "min_docs_in_leaf": 2, "regression_weight": 0.0}
    settings |= {"queries_per_tree": 0.5, "docs_per_tree": 1.0, "random_state": 5}
    ours, theirs = (rk.LambdaMART(**settings).fit(d).predict(data) for d in (data, changed))
    assert len(np.unique(ours)) > 2
    assert ours.tobytes() == theirs.tobytes()


def test_noise_fades():
    """It is as it was drawn at first, and half when exp(-rate x round) is one in all documents."""
    data = rk.polynomials(10, part="train", n_features=3, n_docs=8)
    learners = []
    model = rk.LambdaMART(n_trees=1, learning_rate=math.log(80), random_state=5)
    new_learner = model._new_learner

    def recording(*arguments, **options):
        learners.append(new_learner(*arguments, **options))
        return learners[0]

    model._new_learner = recording
    model.fit(data)
    drawn = [learners[0].sampler.noise(number, 0) for number in (0, 1, 9)]
    faded = [learners[0]._noise(number, 0) for number in (0, 1, 9)]
    for noise, expected, part in zip(faded, drawn, (80 / 81, 1 / 2, 0), strict=True):
        np.testing.assert_allclose(noise, expected * part, atol=1e-12)
