"""A net's scores against the naive net; a document's score is its own."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.nets.inputs import Standardiser
from rankinite.nets.kernels.forward import BLOCK_DOCS
from rankinite.nets.net import Net
from tests.nets.cases import ACTIVATIONS, naive_scores, scored, some_features, some_net

JIT = not numba.config.DISABLE_JIT

# Sums of at most forty products of 32 bits, through four layers. Means of 32 bits are off by up to
# 2**-24 of themselves; that of a column here may be thousands of its deviations.
CLOSE = {"rtol": 2e-5, "atol": 2e-4}

MOST_DOCS = 3 * BLOCK_DOCS if JIT else 9
HIDDEN = st.lists(st.integers(1, 35 if JIT else 5), max_size=3)


@st.composite
def cases(draw):
    """Draw a net, the features that it was made for, and others to be scored."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_features = draw(st.integers(1, 40))
    constant = draw(st.lists(st.integers(0, n_features - 1), max_size=n_features, unique=True))
    train = some_features(rng, 30, n_features, constant)
    net = some_net(rng, train, draw(HIDDEN), draw(st.sampled_from(ACTIVATIONS)))
    X = some_features(rng, draw(st.integers(1, MOST_DOCS)), n_features)
    X[rng.random(X.shape) < 0.02] = 1e9
    X[rng.random(X.shape) < 0.02] = -1e9
    rows = rng.integers(len(X), size=draw(st.integers(1, MOST_DOCS)))
    return net, train, X, draw(st.sampled_from([None, rows]))


@pytest.mark.kernel
@settings(deadline=None, max_examples=100 if JIT else 15)
@given(case=cases())
def test_scores_are_those_of_the_naive_net(case):
    net, train, X, rows = case
    expected = naive_scores(net, train, X if rows is None else X[rows])
    np.testing.assert_allclose(scored(net, X, rows), expected, **CLOSE)


@pytest.mark.kernel
@pytest.mark.parametrize("hidden", [(), (1,), (4,), (5, 2), (3, 4, 1)], ids=str)
@pytest.mark.parametrize("n_docs", [1, 3, 4, 5])
def test_few_documents(hidden, n_docs):
    rng = np.random.default_rng(n_docs)
    train = some_features(rng, 30, 7, constant=[2, 6])
    net = some_net(rng, train, hidden)
    assert net.inputs.features.tolist() == [0, 1, 3, 4, 5]
    X = some_features(rng, n_docs, 7)
    np.testing.assert_allclose(scored(net, X), naive_scores(net, train, X), **CLOSE)


@pytest.mark.kernel
@pytest.mark.parametrize("hidden", [(), (2,), (3, 5)], ids=str)
def test_constant_features_only(hidden):
    """Without inputs every document has the score that biases give."""
    rng = np.random.default_rng(1)
    train = np.full((30, 3), 0.1, np.float32)
    net = some_net(rng, train, hidden)
    assert len(net.inputs.features) == 0
    X = some_features(rng, 6, 3)
    scores = scored(net, X)
    np.testing.assert_allclose(scores, naive_scores(net, train, X), **CLOSE)
    assert len(set(scores)) == 1


@pytest.mark.kernel
def test_a_linear_net_by_hand():
    """Features have means 3 and 0, deviations 2 and 1; 40 is farther than ten deviations."""
    train = np.array([[1.0, -1.0], [5.0, 1.0]], np.float32)
    weights = np.array([0.5, 2.0, 0.25], np.float32)
    net = Net(Standardiser.fit(train, None, 2), (), "relu", weights)
    X = np.array([[5, 3], [np.nan, 1], [3, np.nan], [40, 0], [-40, -99]], np.float32)
    by_hand = [0.5 + 6.0, 2.0, 0.0, 0.5 * 10.0, -0.5 * 10.0 - 2.0 * 10.0]
    start = np.arange(5.0)
    scores = net.add_to(start, X, None)
    np.testing.assert_allclose(scores, np.array(by_hand) + 0.25 + np.arange(5.0), rtol=1e-6)
    assert scores is start


@pytest.mark.parametrize("hidden", [(), (1,), (8,), (25,), (10, 7), (16, 33, 3)], ids=str)
@pytest.mark.parametrize("n_features", [1, 16, 37])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_score_does_not_depend_on_other_documents(hidden, n_features, activation):
    rng = np.random.default_rng(n_features)
    X = some_features(rng, 2 * BLOCK_DOCS + 7, n_features)
    net = some_net(rng, X, hidden, activation)
    whole = scored(net, X)
    for begin in range(9):
        assert scored(net, X[begin:]).tobytes() == whole[begin:].tobytes()
    one_by_one = [scored(net, X[i : i + 1])[0] for i in range(len(X))]
    assert np.array(one_by_one).tobytes() == whole.tobytes()
    rows = rng.integers(len(X), size=3 * len(X))
    assert scored(net, X, rows).tobytes() == whole[rows].tobytes()


def test_no_documents():
    rng = np.random.default_rng(0)
    net = some_net(rng, some_features(rng, 30, 4), (3,))
    assert len(scored(net, np.zeros((0, 4), np.float32))) == 0


@pytest.mark.parametrize(("activation", "of_scores"), [("tanh", 1.0), ("relu", 0.1)])
def test_drawn_weights_give_sums_of_deviation_1(activation, of_scores):
    """A unit's sum has the deviation 1: 3,000 units, so that it is met to a few hundredths.

    Scores behind rectified units begin with a tenth of that.
    """
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 30)).astype(np.float32)
    net = Net.draw(Standardiser.fit(X, None, len(X)), (3000,), activation, rng)
    first, rest = net.weights[: 30 * 3000].reshape(3000, 30), net.weights[30 * 3000 :]
    assert abs(np.std(first @ rng.normal(size=30)) - 1.0) < 0.3
    assert abs((first**2).sum(axis=1).mean() - 1.0) < 0.05
    assert (rest[:3000] == 0.0).all()
    assert abs(np.sqrt((rest[3000:6000] ** 2).sum()) / of_scores - 1.0) < 0.1
    assert rest[6000:].tolist() == [0.0]


class TestSlopes:
    """How steep the score can be along a feature."""

    def test_a_linear_net(self):
        rng = np.random.default_rng(3)
        net = some_net(rng, some_features(rng, 20, 4, constant=[1]), ())
        a, b, c = np.abs(net.weights[:3]).tolist()
        assert net.slopes(4).tolist() == pytest.approx([a, 0.0, b, c])

    def test_a_hidden_layer_by_hand(self):
        """Two inputs, two units: |1 x 3| + |-4 x 5| along the first, |2 x 3| + |0.5 x 5|."""
        inputs = Standardiser(np.array([0, 3]), np.zeros(2, np.float32), np.ones(2, np.float32))
        weights = np.array([1, 2, -4, 0.5, 9, 9, 3, -5, 9], np.float32)
        assert Net(inputs, (2,), "relu", weights).slopes(5).tolist() == [23.0, 0.0, 0.0, 8.5, 0.0]

    @pytest.mark.parametrize("hidden", [(3,), (4, 2), (2, 3, 2)], ids=str)
    @pytest.mark.parametrize("activation", ACTIVATIONS)
    def test_no_score_is_steeper(self, hidden, activation):
        rng = np.random.default_rng(6)
        X = some_features(rng, 50, 3)
        net = some_net(rng, X, hidden, activation)
        means, deviations = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        near = (means + deviations * rng.uniform(-2, 2, size=(300, 3))).astype(np.float32)
        for j in range(3):
            moved = near.copy()
            moved[:, j] += 0.5 * deviations[j]
            change = np.abs(scored(net, moved) - scored(net, near))
            assert 0.0 < change.max() < 0.5 * net.slopes(3)[j] + 1e-4
