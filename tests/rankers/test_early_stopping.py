"""Early stopping: which round is best, also by tiers, and when a fit stops."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankinite as rk
from rankinite.measures.tiers import TieredMeasure
from rankinite.rankers.callbacks import History
from rankinite.rankers.early_stopping import BestRound, EarlyStopping
from tests.naive.early_stopping import best_rounds as naive
from tests.rankers.cases import SMALL, TEST, TRAIN, VALID, every_case_of_trees

TIERS = (rk.NDCG(depth=3), rk.measures.CNDCG(depth=3, source="clicks"), rk.ERR())


def graded(tolerances):
    """Return a measure of one tier more than there are tolerances."""
    return TieredMeasure(TIERS[: len(tolerances) + 1], tolerances) if tolerances else TIERS[0]


def history_of(rows):
    return History({"v": {str(TIERS[k]): [row[k] for row in rows] for k in range(len(rows[0]))}})


def best_rounds(rows, tolerances, min_improvement=0.0):
    """Return the best round and the last that improved, after every round."""
    stopping = EarlyStopping(len(rows), None, "v", graded(tolerances), min_improvement)
    rounds = history_of(rows).rounds(0, len(rows))
    bests = list(accumulate(rounds, stopping.update, initial=BestRound()))[1:]
    return [best.number for best in bests], [best.improved for best in bests]


# The tolerance is 0.1.
TWO = [
    (0.50, 0.20),
    (0.55, 0.10),  # lifts the top to 0.55, from which 0.50 is in reach; the second tier is worse
    (0.46, 0.30),  # is in reach of 0.55, and the second tier is better
    (0.44, 0.90),  # is not in reach
    (0.58, 0.25),  # lifts the top to 0.58, from which 0.46 is out of reach
    (0.50, 0.25),  # is in reach, but no better
    (0.50, 0.26),
]
# The tolerances are 0.1 and 0.1.
THREE = [
    (0.50, 0.50, 0.50),
    (0.50, 0.58, 0.10),  # lifts the second top to 0.58, from which 0.50 is in reach
    (0.50, 0.47, 0.90),  # is not in reach of it
    (0.50, 0.49, 0.60),  # is, and the last tier is better
    (0.45, 0.60, 0.00),  # lifts the second top to 0.60, from which 0.49 is out of reach
    (0.62, 0.10, 0.10),  # lifts the first to 0.62; the second begins anew with 0.10
    (0.60, 0.15, 0.00),  # lifts the second to 0.15
    (0.60, 0.21, 0.00),  # and to 0.21, from which 0.10 is out of reach
]
# The tolerance is 0.1; the first tier gains 0.03 a round, and the last loses.
RISING = [(0.50, 0.5), (0.53, 0.4), (0.56, 0.4), (0.59, 0.4), (0.62, 0.3)]


@pytest.mark.parametrize(
    ("rows", "tolerances", "min_improvement", "bests", "improvements"),
    [
        (TWO, [0.1], 0.0, [1, 1, 3, 3, 5, 5, 7], [1, 2, 3, 3, 5, 5, 7]),
        # The first top rises by 0.05; of the last two rounds none gains enough.
        (TWO, [0.1], 0.04, [1, 1, 3, 3, 5, 5, 5], [1, 2, 3, 3, 5, 5, 5]),
        (TWO, [0.1], 0.06, [1, 1, 3, 3, 5, 5, 5], [1, 1, 3, 3, 5, 5, 5]),
        (TWO, [1.0], 0.0, [1, 1, 3, 4, 4, 4, 4], [1, 2, 3, 4, 5, 5, 5]),
        (TWO, [0.0], 0.0, [1, 2, 2, 2, 5, 5, 5], [1, 2, 2, 2, 5, 5, 5]),
        (THREE, [0.1, 0.1], 0.0, [1, 1, 1, 4, 5, 6, 6, 8], [1, 1, 1, 4, 5, 6, 6, 8]),
        # 0.53 is no improvement of 0.50, 0.56 is; and 0.62 takes over from 0.50.
        (RISING, [0.1], 0.04, [1, 1, 1, 1, 5], [1, 1, 3, 3, 5]),
        ([(-0.5, -0.5)], [1.0], 1.0, [1], [1]),
    ],
)
def test_best_rounds_by_hand(rows, tolerances, min_improvement, bests, improvements):
    assert best_rounds(rows, tolerances, min_improvement) == (bests, improvements)
    assert naive(rows, tolerances, min_improvement) == (bests, improvements)


def test_small_losses_in_the_first_tier_do_not_add_up():
    rows = [(0.70 - 0.01 * k, 0.1 * k) for k in range(10)]
    # 0.67 is in reach of 0.70 with a tolerance of 0.035; 0.66 is not.
    assert best_rounds(rows, [0.035])[0] == [1, 2, 3, 4, 4, 4, 4, 4, 4, 4]


@pytest.mark.parametrize(
    ("most", "patience", "reach"),
    [
        (20, None, 7),
        (20, 1, 4),  # where round 3 is the last that improved
        (20, 2, 7),
        (3, 1, 3),
        (7, 2, 7),
    ],
)
def test_patience_counts_from_the_last_improvement(most, patience, reach):
    stopping = EarlyStopping(most, patience, "v", graded([0.1]))
    assert stopping.stops_after(history_of(TWO), len(TWO)) == reach


def test_without_a_validation_set_every_round_is_the_best():
    stopping = EarlyStopping(5, patience=1)
    assert stopping.best_round(History(), 3).number == 3
    assert stopping.best_round(History(), 0) == BestRound()
    assert not stopping.is_over(stopping.best_round(History(), 4), 4)
    assert stopping.stops_after(History(), 9) == 5


few = st.sampled_from([0.0, 0.125, 0.25, 0.3, 0.375, 0.5]) | st.floats(-1, 1)
gains = st.sampled_from([0.0, 0.125, 0.2])


@settings(deadline=None)
@given(st.lists(few, min_size=1, max_size=20), gains)
def test_one_tier_is_better_if_it_gains_enough(curve, min_improvement):
    bests, best_round, best_value = [], 0, -np.inf
    for number, value in enumerate(curve, 1):
        if value > best_value + min_improvement or best_round == 0:
            best_round, best_value = number, value
        bests.append(best_round)
    assert best_rounds([(value,) for value in curve], [], min_improvement) == (bests, bests)


@settings(deadline=None)
@given(st.data(), st.integers(2, 3), gains)
def test_what_is_kept_stays_in_reach(data, n_tiers, min_improvement):
    rows = data.draw(st.lists(st.tuples(*[few] * n_tiers), min_size=1, max_size=20))
    tolerances = [data.draw(st.sampled_from([0.0, 0.125, 0.2])) for _ in range(n_tiers - 1)]
    bests, improvements = best_rounds(rows, tolerances, min_improvement)
    assert (bests, improvements) == naive(rows, tolerances, min_improvement)
    assert bests[0] == improvements[0] == 1
    for n, (before, after) in enumerate(pairwise(bests), 2):
        assert after in (before, n)  # never back to a round that was dropped
        assert improvements[n - 1] == n if after == n else improvements[n - 1] >= after
    for n, best in enumerate(bests, 1):
        assert rows[best - 1][0] >= max(row[0] for row in rows[:n]) - tolerances[0]


# Few documents and large steps: the validation set stops to improve soon.
HASTY = SMALL | {"n_trees": 40, "learning_rate": 0.8, "n_leaves": 8}


@every_case_of_trees
def test_the_best_number_of_trees_is_kept(case):
    model = case.fit(valid=VALID, changes={"n_trees": 12, "learning_rate": 0.8, "patience": None})
    curve, *lower = model.history_["valid"].values()
    assert model.n_rounds_ == len(curve) == 12
    if not lower:  # which round tiers choose is tested elsewhere
        assert model.n_trees_ == int(np.argmax(curve)) + 1
    fewer = case.fit(changes={"n_trees": model.n_trees_, "learning_rate": 0.8})
    np.testing.assert_array_equal(case.predict(model), case.predict(fewer))


@pytest.mark.parametrize("patience", [1, 3, 7])
def test_patience(patience):
    endless = rk.LambdaMART(**HASTY, patience=None).fit(TRAIN, valid=VALID)
    (curve,) = endless.history_["valid"].values()
    model = rk.LambdaMART(**HASTY, patience=patience).fit(TRAIN, valid=VALID)
    # By hand: until the best value is `patience` rounds old.
    stop = next(
        n for n in range(1, 41) if n - (int(np.argmax(curve[:n])) + 1) >= patience or n == 40
    )
    assert stop < 40
    assert model.n_rounds_ == stop
    assert model.n_trees_ == int(np.argmax(curve[:stop])) + 1
    assert next(iter(model.history_["valid"].values())) == curve[:stop]


@pytest.mark.parametrize(
    ("curve", "min_improvement", "expected"),
    [
        ([0.1, 0.3, 0.2, 0.4], 0.0, [1, 2, 2, 4]),
        ([0.1, 0.3, 0.2, 0.4], 0.15, [1, 2, 2, 2]),
        # Each gains too little over the best that counted, until one gains enough over that.
        ([0.1, 0.15, 0.19, 0.22], 0.1, [1, 1, 1, 4]),
        ([0.5, 0.5, 0.5], 0.0, [1, 1, 1]),
        ([-0.5], 1.0, [1]),
    ],
)
def test_the_best_round_by_hand(curve, min_improvement, expected):
    stopping = EarlyStopping(9, None, "v", rk.NDCG(), min_improvement)
    history = History({"v": {"NDCG": curve}})
    bests = [stopping.best_round(history, n).number for n in range(1, len(curve) + 1)]
    assert bests == expected


def test_min_improvement_stops_sooner():
    patient, demanding = (
        rk.LambdaMART(**HASTY, patience=5, min_improvement=least).fit(TRAIN, valid=VALID)
        for least in (0.0, 10.0)
    )
    assert demanding.n_trees_ == 1
    assert demanding.n_rounds_ == 6
    assert patient.n_rounds_ > 6


def test_of_several_sets_the_first_decides():
    names = {"near": VALID, "far": TEST}
    both = rk.LambdaMART(**HASTY, patience=3).fit(TRAIN, valid=names)
    alone = rk.LambdaMART(**HASTY, patience=3).fit(TRAIN, valid=VALID)
    assert list(both.history_) == ["near", "far"]
    assert both.history_["near"] == alone.history_["valid"]
    assert both.n_trees_ == alone.n_trees_
    assert len(both.history_["far"]["NDCG"]) == both.n_rounds_
    np.testing.assert_array_equal(both.predict(TEST), alone.predict(TEST))
    turned = rk.LambdaMART(**HASTY, patience=3).fit(TRAIN, valid={"far": TEST, "near": VALID})
    first = next(iter(turned.history_["far"].values()))
    assert turned.n_trees_ == int(np.argmax(first)) + 1


def weights_of(curve, n_queries):
    stopping = EarlyStopping(len(curve), None, "v", TIERS[0])
    return stopping.round_weights(history_of([(value,) for value in curve]), len(curve), n_queries)


def test_weights_of_rounds_by_hand():
    """With 9 queries, 0.01 below the best is exp(-0.01 x 3 / 0.03) = 1 / e; the last is too low."""
    total = 1.0 + 2.0 / math.e
    expected = [1.0 / math.e / total, 1.0 / total, 1.0 / math.e / total]
    np.testing.assert_allclose(weights_of([0.5, 0.51, 0.5, 0.4], 9), expected, rtol=1e-12)


def test_with_many_queries_only_the_best_round_counts():
    assert weights_of([0.5, 0.51, 0.505], 1_000_000).tolist() == [0.0, 1.0]


def test_nothing_to_weigh_rounds_by():
    tiers, alone = graded([0.1]), History({})
    assert len(EarlyStopping(3).round_weights(alone, 3, 0)) == 0
    stopping = EarlyStopping(2, None, "v", tiers)
    assert len(stopping.round_weights(history_of([(0.5, 0.1), (0.6, 0.2)]), 2, 9)) == 0


@every_case_of_trees
def test_the_model_is_the_mean_over_rounds(case):
    model = case.fit(valid=VALID, changes={"average_rounds": True})
    grown = case.fit(changes={"n_trees": model.n_rounds_, "average_rounds": True})
    measure = model.validation_measures()[0]
    curve = np.array(model.history_["valid"][str(measure)])
    assert model.best_round_ == case.fit(valid=VALID).best_round_
    if len(model.validation_measures()) > 1:  # of several tiers the best round is kept
        assert model.n_trees_ == model.best_round_
        return
    weights = np.exp((curve - curve.max()) * np.sqrt(VALID.n_queries) / 0.03)
    weights[weights < 1e-3] = 0.0
    assert model.n_trees_ == np.flatnonzero(weights)[-1] + 1
    stages = [forest_scores(grown, n) for n in range(1, model.n_rounds_ + 1)]
    expected = np.average(stages, axis=0, weights=weights)
    np.testing.assert_allclose(forest_scores(model, model.n_trees_), expected, atol=1e-12)


def forest_scores(model, n_trees):
    """Return the scores of the first rounds of trees, one row per output, without a base."""
    return model.forest_.first(n_trees).scores(np.asarray(TEST.X))
