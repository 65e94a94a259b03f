"""Interpolation by Powell's search (LambdaSMART, Sec. 5.5)."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from tests.ensembles.cases import members, scores_of
from tests.rankers.cases import TEST, VALID


def value_of(scores, data, measure="NDCG@10"):
    return rk.evaluate(scores, data, measure).mean[measure]


def some_data(seed: int, n_queries: int = 20):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 8 * n_queries)
    data = rk.RankingData(np.zeros((len(y), 1)), y, group_sizes=np.full(n_queries, 8))
    return data, rng


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("measure", ["NDCG@10", "ERR"])
def test_never_worse_than_equal_weights_or_the_best_member(seed, measure):
    data, rng = some_data(seed)
    noise = rng.uniform(0.3, 5.0, 4)
    scores = {str(k): data.y + rng.normal(0, s, len(data.y)) for k, s in enumerate(noise, 1)}
    model = rk.Interpolation(measure=measure).fit(data, member_scores=scores)
    value = value_of(model.predict(None, member_scores=scores), data, measure)
    assert value == model.value_
    average = rk.Average().fit(data, member_scores=scores)
    assert value >= value_of(average.predict(None, member_scores=scores), data, measure) - 1e-12
    assert value >= max(value_of(s, data, measure) for s in scores.values()) - 1e-12
    assert (model.weights_ >= 0).all()
    assert model.weights_.sum() == pytest.approx(1.0)


def test_it_finds_what_helps():
    """Labels are the sum of two members; the third is noise that the average suffers from."""
    data, rng = some_data(9, 60)
    part = rng.normal(0, 1, len(data.y))
    scores = [data.y - part, part, rng.normal(0, 1, len(data.y))]
    model = rk.Interpolation(measure="NDCG").fit(data, member_scores=scores)
    average = rk.Average().fit(data, member_scores=scores).predict(None, member_scores=scores)
    assert model.value_ > value_of(average, data, "NDCG") + 0.05
    assert model.weights_[2] < 0.1
    # At proportions 1 to 1 of the unscaled scores all labels are met.
    assert model.value_ > 0.99


def test_a_member_that_turns_the_ranking_round_gets_no_weight():
    data, rng = some_data(3)
    good = data.y + rng.normal(0, 0.5, len(data.y))
    model = rk.Interpolation().fit(data, member_scores={"good": good, "against": -good})
    assert model.value_ == value_of(good, data)
    assert model.weights_[0] > 0.5


def test_the_search_ends():
    scores = scores_of(VALID)
    for most in (1, 4, 5, 30):
        model = rk.Interpolation(measure="NDCG", most_evaluations=most)
        model.fit(VALID, member_scores=scores)
        # Equal weights and the three members alone come before the search.
        assert model.n_evaluations_ <= 4 + most + 1
    with pytest.raises(rk.UsageError, match="most_evaluations must be a whole number of at least"):
        rk.Interpolation(members(), most_evaluations=0).fit(VALID)


def test_it_repeats():
    first, second = (rk.Interpolation(members()).fit(VALID) for _ in range(2))
    np.testing.assert_array_equal(first.weights_, second.weights_)
    np.testing.assert_array_equal(first.predict(TEST), second.predict(TEST))


def test_a_single_member():
    model = rk.Interpolation(members()[:1]).fit(VALID)
    np.testing.assert_array_equal(model.weights_, [1.0])
