"""Which round is best by tiers, told round by round, and when there is enough."""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import rankinite as rk
from rankinite.measures.tiers import TieredMeasure
from rankinite.rankers.early_stopping import BestRound, EarlyStopping, History
from rankinite.rankers.gradient_descent import NetLearner
from tests.rankers.cases import SMALL, bytes_of

pytestmark = pytest.mark.usefixtures("one_thread")

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


def naive(rows, tolerances, min_improvement=0.0):
    """Return the same by a loop with a flag."""
    bests, improvements = [], []
    best, values, tops, improved, mark = 0, None, None, 0, None
    for number, row in enumerate(rows, 1):
        takes_over = None
        if best == 0:
            takes_over, tops = True, list(row)
        for i, tolerance in enumerate(tolerances):
            if takes_over is None and row[i] > tops[i]:
                tops[i] = row[i]
                if values[i] < tops[i] - tolerance:
                    takes_over = True
                    tops[i + 1 :] = row[i + 1 :]
            elif takes_over is None and row[i] < tops[i] - tolerance:
                takes_over = False
        if takes_over is None:
            takes_over = row[-1] > values[-1] + min_improvement
        if takes_over:
            best, values = number, row
        if takes_over or (tolerances and tops[0] > mark + min_improvement):
            improved, mark = number, tops[0]
        bests.append(best)
        improvements.append(improved)
    return bests, improvements


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


TRAIN, VALID = (
    rk.clicks(rk.polynomials(n, part=part, n_features=4, n_docs=8))
    for n, part in ((30, "train"), (12, "valid"))
)
TOLERANCE = 0.05
MEASURE = f"NDCG@3 ~{TOLERANCE} > CNDCG@3[clicks], ERR"
TREES = SMALL | {"n_trees": 30, "patience": 12}
RANKERS = {
    "LambdaMART": rk.LambdaMART(**TREES),
    "MART": rk.MART(**TREES),
    "McRank": rk.McRank(**TREES | {"n_trees": 8}),
    "adam": rk.LambdaRank(hidden=3, n_epochs=20, learning_rate=0.01, patience=9),
    "sgd": rk.LambdaRank(hidden=3, n_epochs=30, learning_rate=0.3, patience=3, optimiser="sgd"),
}
every_learner = pytest.mark.parametrize("name", RANKERS)


def new(name, **changes):
    return clone(RANKERS[name]).set_params(**{"valid_measure": MEASURE} | changes)


def rows_of(model):
    """Return the values of both tiers, round by round."""
    curves = [model.history_["valid"][str(tier)] for tier in TIERS[:2]]
    return list(zip(*curves, strict=True))


@every_learner
def test_the_kept_round_is_that_of_a_loop_over_the_history(name):
    model = new(name).fit(TRAIN, valid=VALID)
    assert list(model.history_["valid"]) == ["NDCG@3", "CNDCG@3[clicks]", "ERR"]
    rows = rows_of(model)
    bests, improvements = naive(rows, [TOLERANCE])
    assert model.kept_rounds_ == bests[-1]
    kept = rk.evaluate(model.predict(VALID), VALID, TIERS[:2]).mean
    assert tuple(kept.values()) == rows[bests[-1] - 1]
    if name != "sgd":
        most = model.get_params().get("n_trees") or model.n_epochs
        ages = [n - improved for n, improved in enumerate(improvements, 1)]
        assert max(ages[:-1]) < model.patience
        assert ages[-1] == model.patience or model.n_rounds_ == most


@pytest.mark.parametrize("name", ["LambdaMART", "adam", "sgd"])
def test_tiers_choose_another_round_than_the_first_alone(name):
    model = new(name, patience=None).fit(TRAIN, valid=VALID)
    alone = new(name, patience=None, valid_measure="NDCG@3").fit(TRAIN, valid=VALID)
    curve = alone.history_["valid"]["NDCG@3"]
    assert model.history_["valid"]["NDCG@3"] == curve
    assert model.kept_rounds_ != alone.kept_rounds_ == int(np.argmax(curve)) + 1
    (first, second), (top, other) = (rows_of(model)[one.kept_rounds_ - 1] for one in (model, alone))
    assert second > other
    assert first >= top - TOLERANCE


def test_sgd_begins_anew_where_no_tier_improves(monkeypatch):
    restarts = []
    commit = NetLearner.commit

    def recording(self, done, best):
        commit(self, done, best)
        restarts.append(self.state.n_restarts)

    monkeypatch.setattr(NetLearner, "commit", recording)
    model = new("sgd").fit(TRAIN, valid=VALID)
    rows = rows_of(model)
    begins, since = [], 0
    for n in range(1, len(rows)):
        _, improvements = naive(rows[since:n], [TOLERANCE])
        if n - since - improvements[-1] >= model.patience:
            begins.append(n)
            since = n
    assert begins
    assert [k for k in range(1, len(rows)) if restarts[k] > restarts[k - 1]] == begins


@every_learner
def test_an_interrupted_fit_goes_on_to_the_same_bytes(name):
    kept = Path("fit.ckpt")
    undisturbed = bytes_of(new(name).fit(TRAIN, valid=VALID))
    for k in (1, 4, 7):

        def interrupt(done, k=k):
            if done.number == k:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            new(name).fit(TRAIN, valid=VALID, checkpoint=kept, callbacks=[interrupt])
        assert bytes_of(new(name).fit(TRAIN, valid=VALID, checkpoint=kept)) == undisturbed
        kept.unlink()


def test_a_checkpoint_of_another_tolerance_is_refused():
    new("LambdaMART").fit(TRAIN, valid=VALID, checkpoint="fit.ckpt")
    other = new("LambdaMART", valid_measure=MEASURE.replace(str(TOLERANCE), "0.04"))
    with pytest.raises(rk.UsageError, match="of a fit with another valid_measure; delete it"):
        other.fit(TRAIN, valid=VALID, checkpoint="fit.ckpt")


def test_a_value_is_as_good_as_its_text():
    value = [TieredMeasure(TIERS[:2], TOLERANCE), rk.ERR()]
    told, given_ = (
        new("LambdaMART", valid_measure=one).fit(TRAIN, valid=VALID) for one in (MEASURE, value)
    )
    assert told.history_ == given_.history_
    assert told.n_trees_ == given_.n_trees_
    given_.save("model.rk")
    loaded = rk.load_model("model.rk")
    again = clone(loaded).fit(TRAIN, valid=VALID)
    assert again.n_trees_ == told.n_trees_


class Tiered:
    """An objective whose measure has tiers."""

    measure = TieredMeasure(TIERS[:2], TOLERANCE)

    def prepare(self, targets):
        return rk.objectives.Lambdas("NDCG").prepare(targets)


@pytest.mark.parametrize("name", ["LambdaMART", "adam"])
def test_the_tiers_of_training_decide_if_nobody_says(name):
    model = new(name, measure=Tiered(), valid_measure=None).fit(TRAIN, valid=VALID)
    assert list(model.history_["valid"]) == ["NDCG@3", "CNDCG@3[clicks]"]
    told = new(name, measure=Tiered()).fit(TRAIN, valid=VALID)
    assert rows_of(model) == rows_of(told)
    assert model.kept_rounds_ == told.kept_rounds_ == naive(rows_of(model), [TOLERANCE])[0][-1]


@pytest.mark.parametrize("name", ["LambdaMART", "McRank", "adam"])
def test_a_validation_set_without_the_label_source_is_refused(name):
    bare = rk.polynomials(12, part="valid", n_features=4, n_docs=8)
    with pytest.raises(rk.UsageError) as refusal:
        new(name).fit(TRAIN, valid={"near": VALID, "far": bare})
    assert "the validation set 'far'" in str(refusal.value)
    assert "no label source 'clicks'; it has none but its own" in str(refusal.value)


def test_a_training_set_that_is_measured_needs_the_label_source():
    bare = rk.polynomials(12, part="train", n_features=4, n_docs=8)
    sentence = r"LambdaRank: the training set: .* no label source 'clicks'"
    with pytest.raises(rk.UsageError, match=sentence):
        new("sgd").fit(bare, valid=VALID)
    with pytest.raises(rk.UsageError, match=sentence):
        new("adam").fit(bare)
    assert new("adam").fit(bare, valid=VALID).best_epoch_
