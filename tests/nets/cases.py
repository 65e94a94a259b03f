"""Nets and data for the tests of nets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankinite.nets.kernels.forward import GROUP, Room, Source, fill_inputs
from rankinite.nets.net import Net, Standardiser
from tests.naive import nets as naive_nets


def some_features(
    rng: np.random.Generator, n_docs: int, n_features: int, constant: Sequence[int] = ()
) -> NDArray[np.float32]:
    """Make features of different sizes, a fifth of them missing in every third column."""
    X = rng.normal(size=(n_docs, n_features)) * 10.0 ** rng.integers(-3, 4, size=n_features)
    X += rng.normal(size=n_features)
    X[:, constant] = 0.1
    X[:, ::3][rng.random(X[:, ::3].shape) < 0.2] = np.nan
    return X.astype(np.float32)


def some_net(rng: np.random.Generator, X: NDArray[np.float32], hidden: Sequence[int]) -> Net:
    """Draw a net with biases for these features."""
    net = Net.draw(Standardiser.fit(X, None, len(X)), hidden, rng)
    biases = 0.3 * rng.normal(size=len(net.weights))
    return Net(net.inputs, net.hidden, (net.weights + biases).astype(np.float32))


def sizes_of(net: Net) -> tuple[int, ...]:
    return (len(net.inputs.features), *net.hidden, 1)


def naive_scores(
    net: Net, train: NDArray[np.float32], X: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Score a matrix with the naive net; the inputs' means and deviations are those of train."""
    given = naive_nets.fill(naive_nets.standardise(train), X)
    return naive_nets.scores(net.weights.astype(np.float64), sizes_of(net), given)


def scored(
    net: Net, X: NDArray[np.float32], rows: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    return net.add_to(np.zeros(len(X) if rows is None else len(rows)), X, rows)


def packed_as(net: Net, kind: type[np.floating]) -> NDArray[np.floating]:
    """Return the weights as kernels take them, in another precision."""
    return net.packed().astype(kind)


def room_of(net: Net, n_docs: int, kind: type[np.floating]) -> Room:
    """Make room in which nothing useful stands."""
    rooms = net.rooms(n_docs, 1)
    activity, pushes = (array[0].astype(kind) for array in rooms[:2])
    activity[:] = pushes[:] = np.nan
    rooms.spare[:] = np.nan
    return Room(activity, pushes, rooms.spare[0], rooms.bits[0])


def source_of(net: Net, X: NDArray[np.float32], kind: type[np.floating]) -> Source:
    source = net.source(X, None)
    means, scales = (array.astype(kind) for array in (source.means, source.scales))
    for array in (means, scales):
        array.flags.writeable = False
    return source._replace(means=means, scales=scales)


def filled_room(net: Net, X: NDArray[np.float32], kind: type[np.floating]) -> Room:
    """Return room with the inputs of all rows of a matrix."""
    room = room_of(net, len(X), kind)
    fill_inputs(source_of(net, X, kind), 0, len(X), room.activity, net.layers.strides[0])
    return room


def put_lambdas(room: Room, at: int, lambdas: NDArray[np.float64]) -> None:
    """Write lambdas in the place of the scores, and zeros for documents missing to a group."""
    n_filled = -(-len(lambdas) // GROUP) * GROUP
    room.pushes[at : at + n_filled] = 0.0
    room.pushes[at : at + len(lambdas)] = lambdas
