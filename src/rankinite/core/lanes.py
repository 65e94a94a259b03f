"""Vectors of a fixed number of lanes, with which kernels compute several numbers at once.

The compiler may vectorise a loop by itself as long as that moves no bit, which rules out sums:
added up in the lanes of a vector they are rounded otherwise, and how many lanes a vector has
depends on the processor. Here the source says how many: `LANE_BYTES` hold four numbers of 64 bits,
or eight of 32. A processor with shorter vectors takes two of them for one of ours, and the sum is
the same.

In kernels lanes are values: ``+``, ``-``, ``*``, ``/``, ``abs`` and comparisons work lane by lane,
also with a number on one side. In Python they are small arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import intrinsic

LANE_BYTES = 64


def n_lanes(dtype: Any) -> int:
    """Return how many numbers of a type are computed at once."""
    return LANE_BYTES // int(np.dtype(dtype).itemsize)


@intrinsic
def load_lanes(array: NDArray[Any], index: int) -> Any:
    """Return the numbers that begin at an index of an array."""
    index = int(index)
    return array[index : index + n_lanes(array.dtype)].copy()


@intrinsic
def store_lanes(array: NDArray[Any], index: int, lanes: Any) -> None:
    """Write lanes to an array from an index on."""
    index = int(index)
    array[index : index + len(lanes)] = lanes


@intrinsic
def in_all_lanes(number: Any) -> Any:
    """Return lanes that are all the same number."""
    dtype = np.result_type(number)
    return np.full(n_lanes(dtype), number, dtype)


@intrinsic
def select(condition: Any, if_true: Any, if_false: Any) -> Any:
    """Return one number or the other, lane by lane; conditions may also be single ones."""
    if np.ndim(condition) == 0:
        return if_true if condition else if_false
    return np.where(condition, if_true, if_false)


@intrinsic
def sum_of_lanes(lanes: Any) -> Any:
    """Return the sum of all lanes: halves are added to halves until a single number is left."""
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]
