"""Gradient descent of nets: restarts, learning rates, and weights that diverge."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import rankinite as rk
from rankinite.nets.epochs import EpochRunner
from rankinite.objectives.pointwise import SquaredError
from rankinite.rankers.gradient_descent import NetLearner
from tests.rankers.cases import SMALL_NET, TEST, TRAIN, VALID, bytes_of, copied


def net(*measure, **params):
    """Return a small net as the papers have them, whose numbers can be followed by hand."""
    return rk.LambdaRank(*measure, preset="paper", **SMALL_NET | {"hidden": 3} | params)


@pytest.mark.parametrize("patience", [1, 3, 7])
def test_adam_stops_when_the_validation_set_does_not_improve(patience):
    hasty = {"n_epochs": 40, "learning_rate": 0.1}
    for valid, name in ((VALID, "valid"), (None, "train")):
        endless = net(**hasty, patience=None).fit(TRAIN, valid=valid)
        (curve,) = endless.history_[name].values()
        assert endless.n_rounds_ == len(curve) == 40
        assert endless.best_epoch_ == int(np.argmax(curve)) + 1
        model = net(**hasty, patience=patience).fit(TRAIN, valid=valid)
        # By hand: until the best value is `patience` epochs old.
        stop = next(n for n in range(1, 41) if n - (int(np.argmax(curve[:n])) + 1) >= patience)
        assert model.n_rounds_ == stop < 40
        assert model.best_epoch_ == int(np.argmax(curve[:stop])) + 1
        assert list(model.history_) == [name]
        assert model.history_[name] == {"NDCG": curve[:stop]}


@pytest.fixture
def states(monkeypatch):
    """Return a list that gets the state after every epoch."""
    states = []
    commit = NetLearner.commit

    def recording(self, done, *, is_best):
        commit(self, done, is_best=is_best)
        states.append(self.state)

    monkeypatch.setattr(NetLearner, "commit", recording)
    return states


SGD = {"optimiser": "sgd", "learning_rate": 0.3, "n_epochs": 25, "patience": 3}


@pytest.mark.parametrize("valid", [None, VALID], ids=["train", "valid"])
def test_sgd_restarts_where_nothing_improves(states, valid):
    model = net(**SGD).fit(TRAIN, valid=valid)
    name = "train" if valid is None else "valid"
    assert list(model.history_) == (["train"] if valid is None else ["valid", "train"])
    (curve,) = model.history_[name].values()
    assert model.n_rounds_ == len(curve) == 25
    # By hand: restart where the best value since the last restart is three epochs old.
    restarts, since = [], 0
    for n in range(1, 25):
        if n - (since + int(np.argmax(curve[since:n])) + 1) >= 3:
            restarts.append(n)
            since = n
    assert restarts
    numbers = [state.n_restarts for state in states]
    assert [k for k in range(1, 25) if numbers[k] > numbers[k - 1]] == restarts
    assert model.best_epoch_ == int(np.argmax(curve)) + 1


def test_restarts_are_resumed_wherever_they_were_interrupted(tmp_path):
    undisturbed = bytes_of(net(**SGD).fit(TRAIN, valid=VALID))
    for k in range(1, 25, 2):
        kept = tmp_path / f"{k}.ckpt"

        def interrupt(done, k=k):
            if done.number == k:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            net(**SGD).fit(TRAIN, valid=VALID, checkpoint=kept, callbacks=[interrupt])
        assert bytes_of(net(**SGD).fit(TRAIN, valid=VALID, checkpoint=kept)) == undisturbed


@pytest.mark.parametrize("most", [0, 2])
def test_the_number_of_restarts_is_bounded(states, most):
    model = net(**SGD | {"n_epochs": 200, "most_restarts": most}).fit(TRAIN)
    assert states[-1].n_restarts == most
    assert model.n_rounds_ < 200
    assert model.n_rounds_ - states[-1].best_since_restart.improved == 3


def test_the_rate_of_sgd_decays_sometimes_where_training_got_worse(states):
    """Optimality, Sec. 7: by 0.8, with a chance of 30 %, where training accuracy fell."""
    many = {"optimiser": "sgd", "learning_rate": 2.0, "n_epochs": 400, "patience": None}
    model = net(**many).fit(TRAIN, valid=VALID)
    curve = model.history_["train"]["NDCG"]
    rates = [2.0, *(state.learning_rate for state in states)]
    fell = [False, *(after < before for before, after in pairwise(curve))]
    slower = [after < before for before, after in pairwise(rates)]
    assert all(got_worse for got_worse, less in zip(fell, slower, strict=True) if less)
    for before, after, less in zip(rates, rates[1:], slower, strict=False):
        assert after == (before * 0.8 if less else before)
    n, n_decays = sum(fell), sum(slower)
    assert n > 50
    # Five standard deviations of draws with a chance of 0.3.
    assert abs(n_decays - 0.3 * n) < 5 * np.sqrt(n * 0.3 * 0.7)


def test_weights_that_diverge_restart_with_a_warning(caplog):
    model = net(learning_rate=1e18, n_epochs=12, weight_decay=0.0).fit(TRAIN)
    warnings = [record.message for record in caplog.records]
    assert warnings[0].startswith(
        "training: the weights diverge in epoch 1 with a learning rate of "
    )
    assert "a smaller learning_rate avoids this" in warnings[0]
    assert model.n_rounds_ == 12
    assert np.isfinite(model.predict(TEST)).all()
    bytes_of(model)
    np.testing.assert_array_equal(rk.load_model("bytes.rk").predict(TEST), model.predict(TEST))


def test_an_interrupt_during_a_restart_leaves_no_trace(monkeypatch):
    """The fourth epoch diverges; Ctrl-C comes while it is repeated."""
    from rankinite.nets.epochs import EpochRunner

    epoch = EpochRunner.run

    def diverging(interrupted):
        calls = []

        def run(self, order, number, weights, *more):
            calls.append(number)
            if interrupted and len(calls) == 5:
                raise KeyboardInterrupt
            moments = epoch(self, order, number, weights, *more)
            if number == 3 and calls.count(3) == 1:
                weights[0] = np.inf
            return moments

        return run

    monkeypatch.setattr(EpochRunner, "run", diverging(False))
    undisturbed = bytes_of(net(n_epochs=6).fit(TRAIN, valid=VALID))
    monkeypatch.setattr(EpochRunner, "run", diverging(True))
    with pytest.raises(KeyboardInterrupt):
        net(n_epochs=6).fit(TRAIN, valid=VALID, checkpoint="fit.ckpt")
    monkeypatch.setattr(EpochRunner, "run", diverging(False))
    resumed = net(n_epochs=6).fit(TRAIN, valid=VALID, checkpoint="fit.ckpt")
    assert bytes_of(resumed) == undisturbed


@pytest.mark.parametrize("per_step", [1, "all"])
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_weights_that_always_diverge_are_refused(optimiser, per_step):
    params = {"optimiser": optimiser, "queries_per_step": per_step, "n_epochs": 30}
    for rate in (1e30, 1e300):
        model = net(**params, learning_rate=rate)
        with pytest.raises(rk.UsageError, match=r"diverge.*smaller learning_rate than 1e"):
            model.fit(TRAIN)


def test_labels_that_are_too_large_for_weights():
    data = copied(TRAIN, y=TRAIN.y * 1e30, top_grade=4e30)
    model = net(SquaredError(), optimiser="sgd", n_epochs=30, valid_measure="NDCG(gain=linear)")
    with pytest.raises(rk.UsageError, match=r"give a smaller learning_rate .*, or labels and feat"):
        model.fit(data)


def test_every_epoch_goes_through_all_queries_in_another_order(monkeypatch):
    orders = []
    run = EpochRunner.run

    def recorded(self, order, *rest):
        orders.append(order.tolist())
        return run(self, order, *rest)

    monkeypatch.setattr(EpochRunner, "run", recorded)
    net(n_epochs=4, patience=None).fit(TRAIN)
    assert [sorted(order) for order in orders] == [list(range(TRAIN.n_queries))] * 4
    assert len(set(map(tuple, orders))) == 4
