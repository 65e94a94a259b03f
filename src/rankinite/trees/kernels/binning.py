"""Find the cut points between values, and the bins of values between cut points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel

# Rows that are binned together: so many values of a few features stay in the cache.
BLOCK_ROWS = 64
FEATURES_PER_BLOCK = 8
# Rows whose bytes are written together, so that they stay in the cache from column to column.
BUNDLED_ROWS = 256


@kernel
def between(low: np.float32, high: np.float32) -> np.float32:
    """Return a cut point from low (included) to high (not included), in the middle if possible.

    Neighbouring floats have no middle, and rounding could give the upper one, which would put both
    into one bin.
    """
    middle = np.float32((np.float64(low) + np.float64(high)) / 2.0)
    return middle if middle < high else low


@kernel
def find_cuts(values: NDArray[np.float32], most_bins: int, cuts: NDArray[np.float32]) -> int:
    """Write the cut points between sorted values, and return how many there are.

    Each distinct value gets a bin if there are at most ``most_bins`` of them. Otherwise bins are
    filled one after the other: a bin is full when it has a fair share of the values left for it
    and the bins behind it, or when more than half of the documents of the next value would not
    fit. A frequent value, such as 0, so leaves the other bins their equal shares.
    """
    n = len(values)
    n_distinct = 1 if n else 0
    for i in range(1, n):
        n_distinct += values[i] != values[i - 1]
    if n_distinct <= most_bins:
        n_cuts = 0
        for i in range(1, n):
            if values[i] != values[i - 1]:
                cuts[n_cuts] = between(values[i - 1], values[i])
                n_cuts += 1
        return n_cuts
    n_cuts = 0
    filled = 0
    left = n
    start = 0
    while start < n:
        end = start + 1
        while end < n and values[end] == values[start]:
            end += 1
        count = end - start
        bins_left = most_bins - n_cuts
        fair = left / bins_left
        # The last bin takes all that is left.
        if filled > 0 and bins_left > 1 and (filled >= fair or filled + count / 2.0 > fair):
            cuts[n_cuts] = between(values[start - 1], values[start])
            n_cuts += 1
            left -= filled
            filled = 0
        filled += count
        start = end
    return n_cuts


@kernel
def find_bins(
    values: NDArray[np.float32],
    cuts: NDArray[np.float32],
    n_bins: int,
    positions: NDArray[np.uint64],
    out: NDArray[np.uint8],
) -> None:
    """Write how many cut points are below each value; missing values have the bin ``n_bins``.

    A binary search without branches, one step for all values before the next, so that the
    searches do not wait for each other's loads. The cut points are padded with infinity to a power
    of two, so that all searches take the same steps.
    """
    n = len(out)
    for k in range(n):
        positions[k] = 0
    step = np.uint64(1)
    while step < n_bins:
        step <<= np.uint64(1)
    step >>= np.uint64(1)
    while step > 0:
        for k in range(n):
            below = cuts[positions[k] + step - np.uint64(1)] < values[k]
            positions[k] += step if below else np.uint64(0)
        step >>= np.uint64(1)
    for k in range(n):
        value = values[k]
        out[k] = positions[k] if value == value else n_bins  # NaN is not equal to itself


@kernel
def forget_unknown(
    values: NDArray[np.float32],
    categories: NDArray[np.float32],
    n_bins: int,
    out: NDArray[np.uint8],
) -> None:
    """Write the bin of missing values where a value is not the category that its bin stands for."""
    for k in range(len(out)):
        if categories[out[k]] != values[k]:
            out[k] = n_bins


@kernel
def encode_rows(
    X: NDArray[np.float32],
    rows: NDArray[np.int64],
    start: int,
    features: NDArray[np.int64],
    cuts: NDArray[np.float32],
    n_bins: NDArray[np.int64],
    categorical: NDArray[np.bool_],
    values: NDArray[np.float32],
    positions: NDArray[np.uint64],
    columns: NDArray[np.uint8],
) -> None:
    """Write the bins of some features, column by column, of the rows that begin at ``start``.

    No ``rows`` means that row i is row i of X; ``values`` and ``positions`` are scratch.
    """
    n = columns.shape[1]
    direct = len(rows) == 0
    for j in range(len(features)):
        feature = features[j]
        for k in range(n):
            values[k] = X[start + k if direct else rows[start + k], feature]
        find_bins(values, cuts[j], n_bins[j], positions, columns[j])
        if categorical[j]:
            forget_unknown(values, cuts[j], n_bins[j], columns[j])


@kernel
def encode(
    first_row: int,
    last_row: int,
    X: NDArray[np.float32],
    rows: NDArray[np.int64],
    cuts: NDArray[np.float32],
    n_bins: NDArray[np.int64],
    categorical: NDArray[np.bool_],
    columns: NDArray[np.uint8],
) -> None:
    """Write the bins of all features of some rows, column by column."""
    n_features = X.shape[1]
    features = np.arange(n_features)
    values = np.empty(BLOCK_ROWS, np.float32)
    positions = np.empty(BLOCK_ROWS, np.uint64)
    for start in range(first_row, last_row, BLOCK_ROWS):
        end = min(start + BLOCK_ROWS, last_row)
        for first in range(0, n_features, FEATURES_PER_BLOCK):
            last = min(first + FEATURES_PER_BLOCK, n_features)
            encode_rows(
                X, rows, start, features[first:last], cuts[first:last], n_bins[first:last],
                categorical[first:last], values, positions, columns[first:last, start:end],
            )  # fmt: skip


@kernel
def write_bundles(
    first_row: int,
    last_row: int,
    columns: NDArray[np.uint8],
    bundle_columns: NDArray[np.int64],
    strides: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Write the bytes of some rows, which are 0: for each bundle, bins times strides.

    ``bundle_columns`` has the first column of each bundle, and the one behind the last.
    """
    for start in range(first_row, last_row, BUNDLED_ROWS):
        end = min(start + BUNDLED_ROWS, last_row)
        for bundle in range(len(bundle_columns) - 1):
            for column in range(bundle_columns[bundle], bundle_columns[bundle + 1]):
                bins = columns[column]
                stride = np.uint8(strides[column])
                for row in range(start, end):
                    out[row, bundle] += bins[row] * stride
