"""Nets: what they learn, when they begin anew, and what must not make them lose their heads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import rankinite as rk
from rankinite.objectives.pointwise import MultiClass, SquaredError
from rankinite.rankers import climbing
from tests.rankers.cases import SMALL_NET, TEST, TRAIN, VALID, bytes_of, copied

pytestmark = pytest.mark.usefixtures("one_thread")

MORE = rk.polynomials(60, part="train", n_features=4, n_docs=10)
OTHERS = rk.polynomials(60, part="test", n_features=4, n_docs=10)
X, Y, QID = np.array(TRAIN.X), np.array(TRAIN.y), np.array(TRAIN.qid)


def net(*measure, **params):
    return rk.LambdaRank(*measure, **SMALL_NET | params)


def worth(scores, data):
    return rk.evaluate(scores, data, "NDCG").mean["NDCG"]


HIDDEN = {"linear": 0, "one layer": 10, "two layers": (10, 5)}


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
def test_nets_learn_what_holds_for_other_queries(hidden, optimiser):
    rate = 0.01 if optimiser == "adam" else 0.1
    model = net(hidden=hidden, optimiser=optimiser, n_epochs=40, learning_rate=rate).fit(MORE)
    first = net(hidden=hidden, n_epochs=1, learning_rate=1e-9).fit(MORE)
    chance = worth(np.zeros(OTHERS.n_docs), OTHERS)
    assert worth(model.predict(OTHERS), OTHERS) > chance + 0.1
    assert worth(model.predict(MORE), MORE) > worth(first.predict(MORE), MORE) + 0.03
    assert worth(model.predict(MORE), MORE) == max(model.history_["train"]["NDCG"])


@pytest.mark.parametrize(
    ("hidden", "sizes"),
    [(0, ()), ((), ()), (7, (7,)), ([5], (5,)), ((20, 10), (20, 10)), (np.int64(3), (3,))],
)
def test_hidden_layers(hidden, sizes):
    model = net(hidden=hidden).fit(TRAIN)
    assert model.net_.hidden == sizes
    n_inputs = [4, *sizes]
    n_units = [*sizes, 1]
    assert len(model.net_.weights) == sum(
        n * (m + 1) for n, m in zip(n_units, n_inputs, strict=True)
    )
    bytes_of(model)
    again = rk.load_model("bytes.rk")
    assert again.net_.hidden == sizes
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))


@pytest.mark.parametrize("patience", [1, 3, 7])
def test_adam_stops_when_the_validation_set_does_not_improve(patience):
    hasty = {"n_epochs": 40, "learning_rate": 0.1}
    for valid, name in ((VALID, "valid"), (None, "train")):
        endless = net(**hasty, patience=None).fit(TRAIN, valid=valid)
        (curve,) = endless.history_[name].values()
        assert endless.n_rounds_ == len(curve) == 40
        assert endless.best_epoch_ == int(np.argmax(curve)) + 1
        model = net(**hasty, patience=patience).fit(TRAIN, valid=valid)
        # By hand: go on until the best value is so many epochs old.
        stop = next(n for n in range(1, 41) if n - (int(np.argmax(curve[:n])) + 1) >= patience)
        assert model.n_rounds_ == stop < 40
        assert model.best_epoch_ == int(np.argmax(curve[:stop])) + 1
        assert list(model.history_) == [name]
        assert model.history_[name] == {"NDCG": curve[:stop]}


@pytest.mark.parametrize(("optimiser", "most"), [("adam", 100), ("sgd", 500)])
def test_how_many_epochs_there_are_if_nobody_says(optimiser, most):
    model = net(optimiser=optimiser, n_epochs=None, patience=None).fit(TRAIN)
    assert model.n_rounds_ == most


@pytest.fixture
def watched_climb(monkeypatch):
    """Write down the state after every epoch."""
    states = []
    step = climbing.Climb.step

    def watched(self):
        done = step(self)
        states.append(self.state)
        return done

    monkeypatch.setattr(climbing.Climb, "step", watched)
    return states


SGD = {"optimiser": "sgd", "learning_rate": 0.3, "n_epochs": 25, "patience": 3}


@pytest.mark.parametrize("valid", [None, VALID], ids=["train", "valid"])
def test_sgd_draws_new_weights_where_nothing_gets_better(watched_climb, valid):
    model = net(**SGD).fit(TRAIN, valid=valid)
    name = "train" if valid is None else "valid"
    assert list(model.history_) == (["train"] if valid is None else ["valid", "train"])
    (curve,) = model.history_[name].values()
    assert model.n_rounds_ == len(curve) == 25
    # By hand: begin anew where the best value since the last beginning is three epochs old.
    begins, since = [], 0
    for n in range(1, 25):
        if n - (since + int(np.argmax(curve[since:n])) + 1) >= 3:
            begins.append(n)
            since = n
    assert begins
    numbers = [state.n_restarts for state in watched_climb]
    assert [k for k in range(1, 25) if numbers[k] > numbers[k - 1]] == begins
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
def test_so_many_restarts_are_enough(watched_climb, most):
    model = net(**SGD | {"n_epochs": 200, "most_restarts": most}).fit(TRAIN)
    assert watched_climb[-1].n_restarts == most
    assert model.n_rounds_ < 200
    assert model.n_rounds_ - watched_climb[-1].standing_since.improved == 3


def test_the_rate_of_sgd_falls_now_and_then_where_training_got_worse(watched_climb):
    """Optimality, Sec. 7: by 0.8, with a chance of 30 %, where training accuracy fell."""
    many = {"optimiser": "sgd", "learning_rate": 2.0, "n_epochs": 400, "patience": None}
    model = net(**many).fit(TRAIN, valid=VALID)
    curve = model.history_["train"]["NDCG"]
    rates = [2.0, *(state.rate for state in watched_climb)]
    fell = [False, *(after < before for before, after in pairwise(curve))]
    slower = [after < before for before, after in pairwise(rates)]
    assert all(got_worse for got_worse, less in zip(fell, slower, strict=True) if less)
    for before, after, less in zip(rates, rates[1:], slower, strict=False):
        assert after == (before * 0.8 if less else before)
    n, found = sum(fell), sum(slower)
    assert n > 50
    # Five standard deviations of draws with a chance of 0.3.
    assert abs(found - 0.3 * n) < 5 * np.sqrt(n * 0.3 * 0.7)


def test_weights_that_run_away_are_drawn_anew_and_told(caplog):
    model = net(learning_rate=1e18, n_epochs=12, weight_decay=0.0).fit(TRAIN)
    told = [record.message for record in caplog.records]
    assert told[0].startswith("training: the weights run away in epoch 1 with a learning rate of ")
    assert "a smaller learning_rate avoids this" in told[0]
    assert model.n_rounds_ == 12
    assert np.isfinite(model.predict(TEST)).all()
    bytes_of(model)
    np.testing.assert_array_equal(rk.load_model("bytes.rk").predict(TEST), model.predict(TEST))


def test_an_interrupt_while_weights_are_drawn_anew_leaves_no_trace(monkeypatch):
    """The fourth epoch runs away; Ctrl-C comes while it is done again."""
    from rankinite.nets.epochs import Teacher

    epoch = Teacher.epoch

    def running_away(interrupted):
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

    monkeypatch.setattr(Teacher, "epoch", running_away(False))
    undisturbed = bytes_of(net(n_epochs=6).fit(TRAIN, valid=VALID))
    monkeypatch.setattr(Teacher, "epoch", running_away(True))
    with pytest.raises(KeyboardInterrupt):
        net(n_epochs=6).fit(TRAIN, valid=VALID, checkpoint="fit.ckpt")
    monkeypatch.setattr(Teacher, "epoch", running_away(False))
    resumed = net(n_epochs=6).fit(TRAIN, valid=VALID, checkpoint="fit.ckpt")
    assert bytes_of(resumed) == undisturbed


@pytest.mark.parametrize("per_step", [1, "all"])
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_weights_that_run_away_for_ever_are_refused(optimiser, per_step):
    params = {"optimiser": optimiser, "queries_per_step": per_step, "n_epochs": 30}
    for rate in (1e30, 1e300):
        model = net(**params, learning_rate=rate)
        with pytest.raises(rk.UsageError, match=r"run away.*smaller learning_rate than 1e"):
            model.fit(TRAIN)


def test_labels_that_are_too_large_for_weights():
    data = copied(TRAIN, y=Y * 1e30, top_grade=4e30)
    model = net(SquaredError(), optimiser="sgd", n_epochs=30, valid_measure="NDCG(gain=linear)")
    with pytest.raises(rk.UsageError, match=r"give a smaller learning_rate .*, or labels and feat"):
        model.fit(data)


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
def test_features_far_from_those_of_training_give_finite_scores(hidden):
    model = net(hidden=hidden).fit(TRAIN)
    largest = np.float32(3.4e38)
    for value in (largest, -largest):
        far = model.predict(np.full((1, 4), value))
        assert np.isfinite(far).all()
        # Nothing is farther out than ten standard deviations.
        near = model.predict(np.full((1, 4), np.sign(value) * np.float32(1e4)))
        np.testing.assert_array_equal(far, near)


def test_missing_features_are_like_the_mean():
    holes = X.copy()
    holes[::3, 1] = np.nan
    model = net().fit(holes, Y, qid=QID)
    assert model.net_.inputs.means[1] == pytest.approx(np.nanmean(holes[:, 1]), rel=1e-5)
    filled = holes.copy()
    filled[::3, 1] = model.net_.inputs.means[1]
    np.testing.assert_array_equal(model.predict(holes), model.predict(filled))


def test_constant_features_are_no_inputs():
    wide = np.insert(X, 2, 7.5, axis=1)
    model, narrow = net().fit(wide, Y, qid=QID), net().fit(X, Y, qid=QID)
    assert model.net_.inputs.features.tolist() == [0, 1, 3, 4]
    np.testing.assert_array_equal(model.predict(wide), narrow.predict(X))
    assert model.feature_importances_[2] == model.importances()["3"] == 0.0
    wide[:, 2] = np.arange(len(X))
    np.testing.assert_array_equal(model.predict(wide), narrow.predict(X))


@pytest.mark.parametrize("labels", [np.zeros(96), np.full(96, 2.0)], ids=["zero", "equal"])
def test_equal_labels_move_no_weight(labels):
    data = copied(TRAIN, y=labels)
    short, long = (net(n_epochs=n, weight_decay=0.0).fit(data) for n in (1, 5))
    np.testing.assert_array_equal(short.predict(TEST), long.predict(TEST))
    assert long.best_epoch_ == 1


def test_queries_of_one_document_move_no_weight():
    """They ask for nothing; only means and deviations of features would see them."""
    alone = rk.RankingData(X, Y, np.arange(96), top_grade=4)
    short, long = (net(n_epochs=n, weight_decay=0.0).fit(alone) for n in (1, 5))
    np.testing.assert_array_equal(short.predict(TEST), long.predict(TEST))


class Unplanned:
    """RankNet for those who only know the protocol of gradients."""

    def prepare(self, targets):
        inner = rk.objectives.RankNet().prepare(targets)

        class Gradients:
            start = inner.start

            def gradients(self, scores, iteration, out_gradient, out_hessian):
                inner.gradients(scores, iteration, out_gradient, out_hessian)

        return Gradients()


@pytest.mark.parametrize("per_step", [1, 5, "all"])
def test_an_objective_of_ones_own_is_followed_like_ours(per_step):
    ours, own = (
        net(objective, queries_per_step=per_step).fit(TRAIN)
        for objective in ("RankNet", Unplanned())
    )
    np.testing.assert_array_equal(ours.predict(TEST), own.predict(TEST))


def test_pointwise_objectives_start_from_the_mean():
    model = net(SquaredError(), n_epochs=60, learning_rate=0.03).fit(TRAIN)
    assert model.start_ == pytest.approx(Y.mean())
    assert ((model.predict(TRAIN) - Y) ** 2).mean() < 0.9 * Y.var()


def test_objectives_and_sets_that_are_refused():
    with pytest.raises(rk.UsageError, match="has 5 outputs, and a net has one score; use McRank"):
        net(MultiClass()).fit(TRAIN)
    with pytest.raises(rk.UsageError, match=r"a validation set is called 'train', which .*another"):
        net().fit(TRAIN, valid={"train": VALID})


@pytest.mark.parametrize("hidden", [0, 3, (4, 2)])
def test_slopes_by_hand(hidden):
    model = net(hidden=hidden).fit(copied(TRAIN, feature_names=["a", "b", "c", "d"]))
    weights, sizes = model.net_.weights.astype(np.float64), [4, *model.net_.hidden, 1]
    matrices = []
    for n, m in pairwise(sizes):
        matrices.append(np.abs(weights[: n * m]).reshape(m, n))
        weights = weights[(n + 1) * m :]
    expected = np.linalg.multi_dot([*matrices[::-1], np.eye(4)])[0]
    assert model.importances() == pytest.approx(dict(zip("abcd", expected, strict=True)))
    found = list(model.importances().values())
    assert found == sorted(found, reverse=True)
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum())
    # No score moves by more, where a feature moves by a tenth of a standard deviation.
    before = model.predict(TEST.X)
    for j, slope in enumerate(expected):
        step = np.zeros(4)
        step[j] = 0.1 / model.net_.inputs.scales[j]
        moved = np.abs(model.predict(TEST.X + step) - before)
        assert moved.max() <= 0.1 * slope * (1 + 1e-3)
        if not model.net_.hidden:
            np.testing.assert_allclose(moved, 0.1 * slope, rtol=1e-2)
