"""LambdaRank: what nets learn, their layers, features and importances."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.container import Content, read_container, write_container
from rankinite.objectives.pointwise import MultiClass, SquaredError
from tests.rankers.cases import SMALL_NET, TEST, TRAIN, VALID, bytes_of, copied

MORE = rk.polynomials(60, part="train", n_features=4, n_docs=10)
OTHERS = rk.polynomials(60, part="test", n_features=4, n_docs=10)
X, Y, QID = np.array(TRAIN.X), np.array(TRAIN.y), np.array(TRAIN.qid)


def net(*measure, **params):
    """Return a small net as the papers have them, whose numbers can be followed by hand."""
    return rk.LambdaRank(*measure, preset="paper", **SMALL_NET | {"hidden": 3} | params)


def ndcg(scores, data):
    return rk.evaluate(scores, data, "NDCG").mean["NDCG"]


HIDDEN = {"linear": 0, "one layer": 10, "two layers": (10, 5)}


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
def test_nets_learn_what_holds_for_other_queries(hidden, optimiser):
    rate = 0.01 if optimiser == "adam" else 0.1
    model = net(hidden=hidden, optimiser=optimiser, n_epochs=40, learning_rate=rate).fit(MORE)
    first = net(hidden=hidden, n_epochs=1, learning_rate=1e-9).fit(MORE)
    chance = ndcg(np.zeros(OTHERS.n_docs), OTHERS)
    assert ndcg(model.predict(OTHERS), OTHERS) > chance + 0.1
    assert ndcg(model.predict(MORE), MORE) > ndcg(first.predict(MORE), MORE) + 0.03
    assert ndcg(model.predict(MORE), MORE) == max(model.history_["train"]["NDCG"])


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


@pytest.mark.parametrize(("optimiser", "most"), [("adam", 40), ("sgd", 500)])
def test_the_default_number_of_epochs(optimiser, most):
    model = net(optimiser=optimiser, n_epochs=None, patience=None).fit(TRAIN)
    assert model.n_rounds_ == most


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
    """RankNet with nothing but the protocol of gradients."""

    def prepare(self, targets):
        inner = rk.objectives.RankNet().prepare(targets)

        class Gradients:
            start = inner.start

            def gradients(self, scores, iteration, out_gradient, out_hessian):
                inner.gradients(scores, iteration, out_gradient, out_hessian)

        return Gradients()


@pytest.mark.parametrize("per_step", [1, 5, "all"])
def test_a_custom_objective_is_followed_like_ours(per_step):
    ours, custom = (
        net(objective, queries_per_step=per_step).fit(TRAIN)
        for objective in ("RankNet", Unplanned())
    )
    np.testing.assert_array_equal(ours.predict(TEST), custom.predict(TEST))


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
    slopes = list(model.importances().values())
    assert slopes == sorted(slopes, reverse=True)
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


def test_the_defaults_learn_more_than_the_nets_of_the_papers():
    """Polynomials bend everywhere; ranks and rectified units follow them sooner."""
    new, old = (rk.LambdaRank(preset=preset).fit(MORE) for preset in (None, "paper"))
    assert ndcg(new.predict(OTHERS), OTHERS) > ndcg(old.predict(OTHERS), OTHERS)
    assert (new.activation, new.rank_inputs) == ("relu", True)
    assert (old.activation, old.rank_inputs) == ("tanh", False)


def test_files_without_an_activation_are_of_nets_with_tangents():
    """As all nets were before there was a choice."""
    model = net().fit(TRAIN)
    model.save("model.rk")
    content = read_container("model.rk")
    parameters = content.manifest["parameters"]
    kept = {k: v for k, v in parameters.items() if k not in ("activation", "rank_inputs")}
    assert len(kept) == len(parameters) - 2
    write_container("old.rk", Content({**content.manifest, "parameters": kept}, content.arrays))
    old = rk.load_model("old.rk")
    assert (old.activation, old.rank_inputs) == ("tanh", False)
    np.testing.assert_array_equal(old.predict(TEST), model.predict(TEST))
