"""Find the best split of a node from its histograms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import kernel

# An int64 below 2^51 added to these bits is a float64: the processor has no vector instruction
# that converts. Subtracting the same number as a float leaves the converted one.
MAGIC_BITS = np.int64(0x4338000000000000)
MAGIC = 6755399441055744.0
LARGEST_COLUMN = 256

# Where missing values go: what the best split learned, or that it saw none.
RIGHT = 0
LEFT = 1
UNSEEN = 2


@kernel
def gains_of_column(
    histogram: NDArray[np.int64],
    mass_histogram: NDArray[np.int64],
    by_mass: bool,
    n_cuts: int,
    carried: int,
    carried_mass: int,
    count_bits: int,
    n_docs: float,
    gradient: float,
    mass: float,
    min_docs: float,
    sums: NDArray[np.float64],
    gains: NDArray[np.float64],
) -> None:
    """Write what a node gains by every cut of a column, up to a factor of the node; -1 if none.

    A cut at b sends bins 0 to b to the left. With G and M the sums of gradients and masses (a
    document's mass is 1, or its weight by the Newton criterion), splitting gains
    G_l^2 / M_l + G_r^2 / M_r - G^2 / M = (G_l - M_l G / M)^2 M / (M_l M_r).

    ``carried`` is what goes to the left before bin 0: the missing values, or nothing. ``sums``
    has three rows of scratch: gradients, counts and masses to the left of each cut.
    """
    bits = sums.view(np.int64)
    ones = (np.int64(1) << count_bits) - 1
    total = np.int64(carried)
    for b in range(n_cuts):
        total += histogram[b]
        bits[0, b] = (total >> count_bits) + MAGIC_BITS
        bits[1, b] = (total & ones) + MAGIC_BITS
    if by_mass:
        total = np.int64(carried_mass)
        for b in range(n_cuts):
            total += mass_histogram[b]
            bits[2, b] = total + MAGIC_BITS
    masses = sums[2] if by_mass else sums[1]
    slope = gradient / mass
    for b in range(n_cuts):
        left = sums[1, b] - MAGIC
        left_mass = masses[b] - MAGIC
        surplus = (sums[0, b] - MAGIC) - left_mass * slope
        enough = (left >= min_docs) & (n_docs - left >= min_docs)
        product = left_mass * (mass - left_mass)
        gains[b] = surplus * surplus / product if enough & (product > 0.0) else -1.0


@kernel
def largest(gains: NDArray[np.float64], n: int) -> tuple[int, float]:
    """Return where the first of the largest of n gains is, and how large; -1 if none is above 0."""
    best = -1
    best_gain = 0.0
    for b in range(n):
        if gains[b] > best_gain:
            best_gain = gains[b]
            best = b
    return best, best_gain


@kernel
def best_split(
    histogram: NDArray[np.int64],
    mass_histogram: NDArray[np.int64],
    by_mass: bool,
    slots: NDArray[np.int64],
    n_bins: NDArray[np.int64],
    first_column: int,
    last_column: int,
    total: int,
    total_mass: int,
    count_bits: int,
    min_docs: int,
    sums: NDArray[np.float64],
    gains: NDArray[np.float64],
) -> tuple[float, int, int, int]:
    """Return gain, column, bin and side of missing values of the best split; column -1 if none.

    ``n_bins`` is 0 for a column that takes no part. The slot behind a column's bins holds its
    missing values. Of equal gains the first column, bin, and missing to the right win. Columns are
    compared by the gain that is returned, to the last bit: other threads' columns are, too.
    """
    ones = (np.int64(1) << count_bits) - 1
    n_docs = float(total & ones)
    gradient = float(total >> count_bits)
    mass = float(total_mass) if by_mass else n_docs
    best = (0.0, -1, 0, UNSEEN)
    if mass <= 0.0:
        return best
    best_gain = 0.0
    for column in range(first_column, last_column):
        n = n_bins[column]
        if n == 0:
            continue
        start = slots[column]
        bins = histogram[start : start + n + 1]
        masses = mass_histogram[start : start + n + 1] if by_mass else mass_histogram
        missing = bins[n]
        some = (missing & ones) > 0
        n_cuts = n if some else n - 1
        gains_of_column(
            bins, masses, by_mass, n_cuts, 0, 0, count_bits, n_docs, gradient, mass, min_docs, sums,
            gains,
        )  # fmt: skip
        cut, gain = largest(gains, n_cuts)
        if gain * mass > best_gain:
            best_gain = gain * mass
            best = (best_gain, column, cut, RIGHT if some else UNSEEN)
        if some:
            gains_of_column(
                bins, masses, by_mass, n - 1, missing, masses[n] if by_mass else 0, count_bits,
                n_docs, gradient, mass, min_docs, sums, gains,
            )  # fmt: skip
            cut, gain = largest(gains, n - 1)
            if gain * mass > best_gain:
                best_gain = gain * mass
                best = (best_gain, column, cut, LEFT)
    return best
