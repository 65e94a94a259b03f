"""Nets as arrays of a model file, and as kernels take them; bad arrays are refused."""

from __future__ import annotations

import numpy as np
import pytest

from rankinite.core.errors import ModelFileError
from rankinite.nets.net import MOST_UNITS, Net
from tests.nets.cases import scored, some_features, some_net

N_FEATURES = 6
HIDDEN = [(), (3,), (4, 17), (1, 16, 2)]


def a_net(hidden=(3, 2)) -> Net:
    rng = np.random.default_rng(2)
    return some_net(rng, some_features(rng, 20, N_FEATURES, constant=[1]), hidden)


@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
def test_arrays_and_back(hidden):
    net = a_net(hidden)
    again = Net.from_arrays(net.to_arrays(), N_FEATURES, "tanh", rank_inputs=False)
    assert again.hidden == hidden
    arrays, expected = again.to_arrays(), net.to_arrays()
    assert arrays.keys() == expected.keys()
    assert all(arrays[name].tobytes() == expected[name].tobytes() for name in expected)
    X = some_features(np.random.default_rng(4), 5, N_FEATURES)
    assert scored(again, X).tobytes() == scored(net, X).tobytes()


def test_a_net_without_inputs_and_back():
    net = some_net(np.random.default_rng(0), np.zeros((3, N_FEATURES), np.float32), (2,))
    again = Net.from_arrays(net.to_arrays(), N_FEATURES, "tanh", rank_inputs=False)
    assert again.weights.tobytes() == net.weights.tobytes()
    assert len(again.inputs.features) == 0


def test_a_net_keeps_its_arrays_when_those_of_the_file_change():
    arrays = {name: array.copy() for name, array in a_net().to_arrays().items()}
    net = Net.from_arrays(arrays, N_FEATURES, "tanh", rank_inputs=False)
    for array in arrays.values():
        array[:] = 0
    assert all(array.any() for array in net.to_arrays().values())


NAMES = tuple(a_net().to_arrays())
WHOLE = ("features", "hidden")
REAL = ("means", "scales", "weights")


def refused(match, changes=(), n_features=N_FEATURES, without=()):
    arrays = {k: v for k, v in {**a_net().to_arrays(), **dict(changes)}.items() if k not in without}
    with pytest.raises(ModelFileError, match=match):
        Net.from_arrays(arrays, n_features, "tanh", rank_inputs=False)


@pytest.mark.parametrize("name", NAMES)
class TestBadArrays:
    def test_missing(self, name):
        refused(f"lacks '{name}'", without=[name])

    @pytest.mark.parametrize("kind", [np.float16, np.float64, np.int32, np.uint64, bool, "U3"])
    def test_wrong_kind(self, name, kind):
        refused(f"'{name}' in the file is an array of", {name: np.ones(4, kind)})

    @pytest.mark.parametrize("kind", [np.float64, "U3", "M8[s]"])
    def test_wrong_kind_and_nothing_in_it(self, name, kind):
        refused(f"'{name}' in the file is an array of", {name: np.zeros(0, kind)})

    def test_wrong_shape(self, name):
        array = a_net().to_arrays()[name]
        refused(f"'{name}' in the file is an array of", {name: array[np.newaxis]})
        refused(f"'{name}' in the file is an array of", {name: array[0]})

    def test_wrong_length(self, name):
        array = a_net().to_arrays()[name]
        refused("is an array of|not features of its own", {name: array[:-1]})
        refused("is an array of|not features of its own", {name: array[:0]})

    def test_too_long(self, name):
        array = a_net().to_arrays()[name]
        longer = np.append(array, array[-1:] + 1) if name in WHOLE else np.append(array, array[:1])
        refused("is an array of|not features of its own", {name: longer}, n_features=N_FEATURES + 1)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(name, value):
    array = a_net().to_arrays()[name].copy()
    array[-1] = value
    refused(f"'{name}' in the file has numbers that are not from", {name: array})


@pytest.mark.parametrize(
    "features",
    [[0, 2, 3, 4, 6], [-1, 2, 3, 4, 5], [0, 3, 2, 4, 5], [0, 2, 2, 4, 5], [0, 2, 3, 4, 2**62]],
    ids=str,
)
def test_features_that_are_none(features):
    assert a_net().inputs.features.tolist() == [0, 2, 3, 4, 5]
    refused("not features of its own|not from 0 to 5", {"features": np.array(features)})


def test_features_that_the_model_does_not_have():
    refused("not from 0 to 4", n_features=5)
    refused("not from 0 to -1", n_features=0)


@pytest.mark.parametrize("hidden", [[0, 2], [3, -2], [3, 0], [MOST_UNITS + 1], [2**62, 2**62]])
def test_impossible_sizes(hidden):
    refused("'hidden' in the file has numbers that are not from 1 to", {"hidden": np.array(hidden)})


def test_sizes_of_another_net():
    """Layers of 5, 3, 2 and 1 have 6 x 3 + 4 x 2 + 3 weights; a swap of 3 and 2 has others."""
    assert len(a_net().weights) == 29
    refused("'weights' in the file is an array of", {"hidden": np.array([2, 3])})
    refused("'weights' in the file is an array of", {"hidden": np.array([MOST_UNITS] * 1000)})


@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
def test_packed_and_back(hidden):
    net = a_net(hidden)
    packed = net.packed()
    assert net.with_packed(packed).weights.tobytes() == net.weights.tobytes()
    assert sorted(set(net.positions)) == sorted(net.positions)
    assert (np.delete(packed, net.positions) == 0.0).all()
    packed[:] = 0.0
    assert net.packed().any()


def test_positions_of_packed_weights():
    """Rows of 5 and of 3 inputs are padded to 16: the first layer's biases follow 3 x 16."""
    net = a_net((3,))
    packed = net.packed()
    assert len(packed) == 3 * 17 + 17
    np.testing.assert_array_equal(packed[16:21], net.weights[5:10])
    np.testing.assert_array_equal(packed[48:51], net.weights[15:18])
    np.testing.assert_array_equal(packed[51:54], net.weights[18:21])
    assert packed[67] == net.weights[21]
