"""Ranks of features as inputs of a net."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import ModelFileError
from rankinite.data.cut_points import CutPoints, to_arrays
from rankinite.nets import net as net_module
from rankinite.nets.inputs import RankTable, Standardiser
from rankinite.nets.net import Net
from tests.nets.cases import some_features

JIT = not numba.config.DISABLE_JIT
NAN = np.nan


def a_net(X, hidden=(3,)) -> Net:
    rng = np.random.default_rng(7)
    inputs = Standardiser.fit(X, None, len(X), rank_inputs=True)
    return Net.draw(inputs, hidden, "relu", rng)


@pytest.mark.kernel
@settings(deadline=None, max_examples=200 if JIT else 20)
@given(
    fitted=st.lists(st.sampled_from([NAN, -2.0, 0.0, 0.5, 1.0, 3.0, 3.5, 9.0]), max_size=12),
    most=st.sampled_from([None, 2, 3]),
    scored=st.lists(st.floats(-4.0, 12.0, width=32) | st.just(NAN), min_size=1, max_size=9),
)
def test_ranks_by_rows_are_those_by_columns(fitted, most, scored):
    columns = [np.array(fitted, np.float32), np.array([1.0, 2.0, 4.0], np.float32)]
    cut_points = [CutPoints.of(column, most) for column in columns]
    table = RankTable.from_arrays(to_arrays(cut_points))
    X = np.array([scored, scored[::-1]], np.float32).T.copy()
    both, rows = table.beside_values(X, None)
    assert rows is None
    np.testing.assert_array_equal(both[:, :2], X)
    for j, known in enumerate(cut_points):
        expected = known.ranks(X[:, j]) if len(known.values) else np.full(len(X), NAN, np.float32)
        np.testing.assert_array_equal(both[:, 2 + j], expected)


@pytest.mark.kernel
def test_values_and_ranks_by_hand():
    """Of 0, 1, 3 and 100 the ranks are 0, 1/3, 2/3 and 1; 2 is halfway between two of them."""
    X = np.array([[0.0], [1.0], [3.0], [100.0]], np.float32)
    table = RankTable.fit(X, None)
    both, _ = table.beside_values(np.array([[3], [2], [NAN], [-5], [999]], np.float32), None)
    np.testing.assert_allclose(both[:, 1], [2 / 3, 2 / 3, NAN, 0.0, 1.0], rtol=1e-6)
    standardiser = Standardiser.fit(X, None, 4, rank_inputs=True)
    assert standardiser.features.tolist() == [0, 1]
    np.testing.assert_allclose(standardiser.means, [26.0, 0.5], rtol=1e-6)
    np.testing.assert_allclose(standardiser.scales, [1 / X.std(), 3 / np.sqrt(1.25)], rtol=1e-5)


def test_rows_in_use_are_ranked_once():
    rng = np.random.default_rng(1)
    X = some_features(rng, 20, 3)
    rows = np.array([4, 4, 9, 2])
    table = RankTable.fit(X, rows)
    both, new_rows = table.beside_values(X, rows)
    assert both.shape == (3, 6)
    np.testing.assert_array_equal(both[new_rows][:, :3], X[rows])
    # Each document counts, also where several share a row.
    np.testing.assert_array_equal(table.upto, RankTable.fit(X[rows], None).upto)


def test_constant_features_have_no_ranks_that_vary():
    X = some_features(np.random.default_rng(2), 30, 4, constant=[1])
    assert Standardiser.fit(X, None, 30, rank_inputs=True).features.tolist() == [0, 2, 3, 4, 6, 7]


def test_scores_in_chunks_are_those_of_all_documents(monkeypatch):
    X = some_features(np.random.default_rng(3), 50, 4)
    net = a_net(X)
    rows = np.arange(49, -1, -1)
    whole = net.add_to(np.zeros(50), X, None)
    assert len(set(whole)) > 10
    monkeypatch.setattr(net_module, "DOCS_PER_CHUNK", 7)
    assert net.add_to(np.zeros(50), X, None).tobytes() == whole.tobytes()
    assert net.add_to(np.zeros(50), X, rows).tobytes() == whole[rows].tobytes()


def test_slopes_of_values_and_ranks_are_added():
    """Weights 2 and -3 of a feature's value and rank: 5; the other feature is constant."""
    X = np.array([[0, 7], [1, 7], [5, 7]], np.float32)
    inputs = Standardiser.fit(X, None, 3, rank_inputs=True)
    net = Net(inputs, (), "relu", np.array([2.0, -3.0, 0.0], np.float32))
    assert net.slopes(2).tolist() == [5.0, 0.0]


class TestFiles:
    X = some_features(np.random.default_rng(5), 40, 4)

    def test_arrays_and_back(self):
        net = a_net(self.X)
        again = Net.from_arrays(net.to_arrays(), 4, "relu", rank_inputs=True)
        scores = again.add_to(np.zeros(40), self.X, None)
        assert scores.tobytes() == net.add_to(np.zeros(40), self.X, None).tobytes()

    @pytest.mark.parametrize(
        ("name", "change", "match"),
        [
            ("features", lambda a: a + 8, "numbers that are not from 0 to"),
            ("values", lambda a: a[::-1].copy(), "do not increase"),
            ("below", lambda a: a + 1, "do not increase"),
            ("upto", lambda a: a[:-1], "expected [0-9]+ of uint32"),
            ("n_cut_points", lambda a: a[:-1], "expected 4 of int64"),
            ("n_cut_points", lambda a: -a, "not from 0 to"),
            ("n_cut_points", lambda a: a // 2, "has not the"),
        ],
    )
    def test_damaged_arrays_are_refused(self, name, change, match):
        arrays = a_net(self.X).to_arrays()
        with pytest.raises(ModelFileError, match=match):
            Net.from_arrays({**arrays, name: change(arrays[name])}, 4, "relu", rank_inputs=True)

    def test_a_net_with_ranks_is_none_without(self):
        with pytest.raises(ModelFileError, match="not from 0 to 3"):
            Net.from_arrays(a_net(self.X).to_arrays(), 4, "relu", rank_inputs=False)
