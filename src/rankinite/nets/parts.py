"""What kernels of nets are given, in a few bundles."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


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
