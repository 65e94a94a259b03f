"""What kernels of nets are given, in a few bundles."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel, summing_kernel
from rankinite.objectives.kernels.exponential import exponentials


class Source(NamedTuple):
    """Where a net's inputs come from.

    Attributes
    ----------
    X
        The features.
    rows
        The row of every document; its own number if this is empty.
    features
        The columns that are inputs.
    means, scales
        An input is (feature - mean) x scale.
    """

    X: NDArray[np.float32]
    rows: NDArray[np.int64]
    features: NDArray[np.int64]
    means: NDArray[Any]
    scales: NDArray[Any]


class Layers(NamedTuple):
    """How large the layers are, from the inputs to the score.

    Attributes
    ----------
    units
        How many units each layer has.
    strides
        How many numbers a row of each layer has; the last are zeros.
    """

    units: NDArray[np.int64]
    strides: NDArray[np.int64]


class Room(NamedTuple):
    """Memory for the documents of one query at a time.

    Attributes
    ----------
    activity
        What every unit gives for every document, layer behind layer.
    pushes
        Where every unit should move, laid out like the activity.
    spare, bits
        Three rows for tangents, and the same memory seen as integers.
    """

    activity: NDArray[Any]
    pushes: NDArray[Any]
    spare: NDArray[np.float64]
    bits: NDArray[np.int64]


# Documents that are computed together.
GROUP = 4
# Documents that are scored at once: what they need stays in the cache.
BLOCK_DOCS = 32
# Rows are filled up to a multiple of this.
LANES = 16
# The tangent of anything farther from 0 is 1 to the last bit.
FARTHEST = 20.0
# An input so many standard deviations from its mean is as far out as it gets.
FARTHEST_INPUT = 10.0

Numbers = NDArray[Any]


@inlined_kernel
def filled(n: int) -> int:
    """Return how many documents there are when the last group is filled up."""
    return (n + GROUP - 1) // GROUP * GROUP


@summing_kernel
def four_sums(
    weights: Numbers, w: int, inputs: Numbers, x: int, stride: int
) -> tuple[float, float, float, float]:
    """Return the sums of weight x input of a unit for four documents, whose rows stand in turn."""
    a = b = c = d = weights.dtype.type(0.0)
    unit = np.uint64(w)
    first, second = np.uint64(x), np.uint64(x + stride)
    third, fourth = np.uint64(x + 2 * stride), np.uint64(x + 3 * stride)
    for j in range(np.uint64(stride)):
        weight = weights[unit + j]
        a += weight * inputs[first + j]
        b += weight * inputs[second + j]
        c += weight * inputs[third + j]
        d += weight * inputs[fourth + j]
    return a, b, c, d


@summing_kernel
def eight_sums(
    weights: Numbers, w: int, inputs: Numbers, x: int, stride: int
) -> tuple[float, float, float, float, float, float, float, float]:
    """Return the sums of two units, whose rows stand in turn, for four documents."""
    a = b = c = d = e = f = g = h = weights.dtype.type(0.0)
    unit, other = np.uint64(w), np.uint64(w + stride)
    first, second = np.uint64(x), np.uint64(x + stride)
    third, fourth = np.uint64(x + 2 * stride), np.uint64(x + 3 * stride)
    for j in range(np.uint64(stride)):
        one, two = weights[unit + j], weights[other + j]
        p, q = inputs[first + j], inputs[second + j]
        r, s = inputs[third + j], inputs[fourth + j]
        a += one * p
        b += one * q
        c += one * r
        d += one * s
        e += two * p
        f += two * q
        g += two * r
        h += two * s
    return a, b, c, d, e, f, g, h


@summing_kernel
def add_four(
    target: Numbers, t: int, inputs: Numbers, x: int, stride: int,
    a: float, b: float, c: float, d: float,
) -> None:  # fmt: skip
    """Add the rows of four documents, each times a number of its own, to the row of a unit."""
    unit = np.uint64(t)
    first, second = np.uint64(x), np.uint64(x + stride)
    third, fourth = np.uint64(x + 2 * stride), np.uint64(x + 3 * stride)
    for j in range(np.uint64(stride)):
        target[unit + j] += (
            a * inputs[first + j]
            + b * inputs[second + j]
            + c * inputs[third + j]
            + d * inputs[fourth + j]
        )


@summing_kernel
def add_eight(
    target: Numbers, t: int, inputs: Numbers, x: int, stride: int,
    a: float, b: float, c: float, d: float, e: float, f: float, g: float, h: float,
) -> None:  # fmt: skip
    """Add the rows of four documents to the rows of two units."""
    unit, other = np.uint64(t), np.uint64(t + stride)
    first, second = np.uint64(x), np.uint64(x + stride)
    third, fourth = np.uint64(x + 2 * stride), np.uint64(x + 3 * stride)
    for j in range(np.uint64(stride)):
        p, q = inputs[first + j], inputs[second + j]
        r, s = inputs[third + j], inputs[fourth + j]
        target[unit + j] += a * p + b * q + c * r + d * s
        target[other + j] += e * p + f * q + g * r + h * s


@summing_kernel
def add_row(target: Numbers, t: int, inputs: Numbers, x: int, stride: int, a: float) -> None:
    """Add a row, times a number, to a row of the target."""
    unit, first = np.uint64(t), np.uint64(x)
    for j in range(np.uint64(stride)):
        target[unit + j] += a * inputs[first + j]


@kernel
def to_tangents(
    values: Numbers, start: int, n: int, spare: NDArray[np.float64], bits: NDArray[np.int64]
) -> None:
    """Replace n numbers by their hyperbolic tangents, 1 - 2 / (1 + exp(2 x)).

    ``spare`` has three rows of at least n numbers, ``bits`` is the same memory seen as integers.
    """
    for i in range(n):
        x = np.float64(values[start + i])
        spare[0, i] = 2.0 * min(max(x, -FARTHEST), FARTHEST)
    exponentials(spare[0], 0.0, n, spare[1], bits[1], spare[2])
    for i in range(n):
        values[start + i] = 1.0 - 2.0 / (1.0 + spare[2, i])


@inlined_kernel
def keep_near(row: Numbers, n: int) -> None:
    """Let n inputs be no farther from 0 than they may, and 0 where they are missing.

    Written so that the compiler can work on several at once: what is no number is not larger or
    smaller than anything.
    """
    far, zero = row.dtype.type(FARTHEST_INPUT), row.dtype.type(0.0)
    for j in range(n):
        x = row[j]
        x = far if x > far else x
        x = -far if x < -far else x
        row[j] = x if x == x else zero


@kernel
def fill_inputs(source: Source, first: int, n: int, activity: Numbers, stride: int) -> None:
    """Write the standardised features of n documents from ``first`` on; a missing one is 0."""
    zero = activity.dtype.type(0.0)
    means, scales = source.means, source.scales
    for i in range(n):
        row = source.X[source.rows[first + i] if len(source.rows) > 0 else first + i]
        own = activity[i * stride : (i + 1) * stride]
        if len(source.features) == len(row):
            for j in range(len(means)):
                own[j] = (row[j] - means[j]) * scales[j]
        else:
            for j in range(len(means)):
                own[j] = (row[np.uint64(source.features[j])] - means[j]) * scales[j]
        keep_near(own, len(means))
        for j in range(len(means), stride):
            own[j] = zero
    for k in range(n * stride, filled(n) * stride):
        activity[k] = zero


@kernel
def layer_forward(
    n_filled: int,
    n_units: int,
    stride: int,
    out: int,
    weights: Numbers,
    w: int,
    inputs: Numbers,
    x: int,
    y: int,
) -> None:
    """Write the sums of a layer's units, with their biases, behind the inputs at ``y``."""
    biases = w + n_units * stride
    for i in range(0, n_filled, GROUP):
        at = y + i * out
        for unit in range(0, n_units - 1, 2):
            a, b, c, d, e, f, g, h = eight_sums(
                weights, w + unit * stride, inputs, x + i * stride, stride
            )
            one, two = weights[biases + unit], weights[biases + unit + 1]
            inputs[at + unit] = a + one
            inputs[at + out + unit] = b + one
            inputs[at + 2 * out + unit] = c + one
            inputs[at + 3 * out + unit] = d + one
            inputs[at + unit + 1] = e + two
            inputs[at + out + unit + 1] = f + two
            inputs[at + 2 * out + unit + 1] = g + two
            inputs[at + 3 * out + unit + 1] = h + two
        if n_units % 2 == 1:
            unit = n_units - 1
            a, b, c, d = four_sums(weights, w + unit * stride, inputs, x + i * stride, stride)
            one = weights[biases + unit]
            inputs[at + unit] = a + one
            inputs[at + out + unit] = b + one
            inputs[at + 2 * out + unit] = c + one
            inputs[at + 3 * out + unit] = d + one


@kernel
def first_sums(n: int, layers: Layers, weights: Numbers, room: Room) -> None:
    """Write the sums of the first layer's units for n documents, whose inputs are in the room."""
    n_filled, stride = filled(n), layers.strides[0]
    layer_forward(
        n_filled, layers.units[1], stride, layers.strides[1], weights, 0, room.activity, 0,
        n_filled * stride,
    )  # fmt: skip


@kernel
def rest_forward(n: int, layers: Layers, weights: Numbers, room: Room) -> int:
    """Go on from the sums of the first layer; return where in the activity the scores begin."""
    units, strides, activity = layers.units, layers.strides, room.activity
    n_filled = filled(n)
    w = int(units[1] * (strides[0] + 1))
    x = int(n_filled * strides[0])
    for layer in range(1, len(units) - 1):
        n_units, stride, out = units[layer + 1], strides[layer], strides[layer + 1]
        for i in range(n_filled):
            for unit in range(units[layer], stride):
                activity[x + i * stride + unit] = 0.0
        to_tangents(activity, x, n_filled * stride, room.spare, room.bits)
        y = x + n_filled * stride
        layer_forward(n_filled, n_units, stride, out, weights, w, activity, x, y)
        w += n_units * (stride + 1)
        x = int(y)
    return x


@kernel
def forward(n: int, layers: Layers, weights: Numbers, room: Room) -> int:
    """Compute what every unit gives for n documents, whose inputs stand in the room already.

    Return where in the activity the scores begin.
    """
    first_sums(n, layers, weights, room)
    return rest_forward(n, layers, weights, room)


@kernel
def push_down(
    n_filled: int,
    n_units: int,
    stride: int,
    out: int,
    weights: Numbers,
    w: int,
    activity: Numbers,
    pushes: Numbers,
    x: int,
    y: int,
) -> None:
    """Write how the units below a layer are pushed, from how its own are pushed."""
    one = weights.dtype.type(1.0)
    for k in range(x, x + n_filled * stride):
        pushes[k] = 0.0
    for i in range(n_filled):
        for unit in range(n_units):
            push = pushes[y + i * out + unit]
            add_row(pushes, x + i * stride, weights, w + unit * stride, stride, push)
    for k in range(x, x + n_filled * stride):
        pushes[k] *= one - activity[k] * activity[k]


@kernel
def layer_backward(
    n_filled: int,
    n_units: int,
    stride: int,
    out: int,
    activity: Numbers,
    pushes: Numbers,
    x: int,
    y: int,
    target: Numbers,
    w: int,
) -> None:
    """Add to the target's weights and biases of a layer what the documents ask of them."""
    biases = w + n_units * stride
    for i in range(0, n_filled, GROUP):
        at = y + i * out
        for unit in range(0, n_units - 1, 2):
            k = at + unit
            a, b, c, d = pushes[k], pushes[k + out], pushes[k + 2 * out], pushes[k + 3 * out]
            target[biases + unit] += (a + b) + (c + d)
            k += 1
            e, f, g, h = pushes[k], pushes[k + out], pushes[k + 2 * out], pushes[k + 3 * out]
            target[biases + unit + 1] += (e + f) + (g + h)
            add_eight(
                target, w + unit * stride, activity, x + i * stride, stride, a, b, c, d, e, f, g, h
            )
        if n_units % 2 == 1:
            k = at + n_units - 1
            a, b, c, d = pushes[k], pushes[k + out], pushes[k + 2 * out], pushes[k + 3 * out]
            target[biases + n_units - 1] += (a + b) + (c + d)
            last = w + (n_units - 1) * stride
            add_four(target, last, activity, x + i * stride, stride, a, b, c, d)


@kernel
def backward(n: int, layers: Layers, weights: Numbers, room: Room, target: Numbers) -> None:
    """Add to ``target`` what the lambdas of n documents ask of the weights.

    The room's pushes have the lambdas in the place of the scores, and zeros where documents are
    missing to a full group. The target may be the weights themselves: what goes down to a layer
    is computed before the weights above it are changed.
    """
    units, strides, activity, pushes = layers.units, layers.strides, room.activity, room.pushes
    n_filled = filled(n)
    w = 0
    x = 0
    for layer in range(len(units) - 1):
        w += units[layer + 1] * (strides[layer] + 1)
        x += n_filled * strides[layer]
    for layer in range(len(units) - 2, -1, -1):
        n_units, stride, out = units[layer + 1], strides[layer], strides[layer + 1]
        y = x
        x -= n_filled * stride
        w -= n_units * (stride + 1)
        if layer > 0:
            push_down(n_filled, n_units, stride, out, weights, w, activity, pushes, x, y)
        layer_backward(n_filled, n_units, stride, out, activity, pushes, x, y, target, w)


@kernel
def score_documents(
    source: Source,
    layers: Layers,
    weights: Numbers,
    room: Room,
    begin: int,
    end: int,
    scores: NDArray[np.float64],
) -> None:
    """Add the net's scores of the documents from begin to end - 1 to ``scores``.

    The room is for `BLOCK_DOCS` documents. A document's score does not depend on the others.
    """
    for first in range(begin, end, BLOCK_DOCS):
        n = min(BLOCK_DOCS, end - first)
        fill_inputs(source, first, n, room.activity, layers.strides[0])
        at = forward(n, layers, weights, room)
        for i in range(n):
            scores[first + i] += np.float64(room.activity[at + i])
