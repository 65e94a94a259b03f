"""Gains of all cuts of a column, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from rankinite.trees.kernels.gain import Limits, gains_by_side, leaf_totals
from rankinite.trees.kernels.histogram import GRADIENT, HESSIAN, LEAF_FIELDS, Packing
from rankinite.trees.kernels.split import MAX_CUTS, SCRATCH_ROWS

pytestmark = pytest.mark.kernel

COUNT_BITS = 10
PACKINGS = {
    "no hessians": Packing(COUNT_BITS, hessian_bits=0, separate_hessians=False),
    "packed": Packing(COUNT_BITS, hessian_bits=26, separate_hessians=False),
    "separate": Packing(COUNT_BITS, hessian_bits=0, separate_hessians=True),
}
LIMITS = Limits(
    n_leaves=2,
    max_depth=9,
    min_docs=2,
    min_gain=0.0,
    l2=0.0,
    category_smoothing=0.0,
    symmetric=False,
    max_step=math.inf,
    path_smooth=0.0,
    limits_values=False,
)


def naive_gain(left: tuple[int, ...], total: tuple[int, ...], min_docs: int) -> float:
    """Return the gain over H of a split, from documents, gradients and hessians; -1 if too small.

    (G_l^2 / H_l + G_r^2 / H_r - G^2 / H) / H.
    """
    docs, gradient, hessian = (Fraction(number) for number in left)
    all_docs, all_gradient, all_hessian = (Fraction(number) for number in total)
    if docs < min_docs or all_docs - docs < min_docs or hessian in (0, all_hessian):
        return -1.0
    gain = (
        gradient**2 / hessian
        + (all_gradient - gradient) ** 2 / (all_hessian - hessian)
        - all_gradient**2 / all_hessian
    )
    return float(gain / all_hessian)


@pytest.mark.parametrize("name", PACKINGS)
@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("n_bins", [1, 2, 9, 255])
def test_gains_are_those_of_exact_fractions(name, has_missing, n_bins):
    packing = PACKINGS[name]
    rng = np.random.default_rng(n_bins)
    docs = rng.integers(0, 4, n_bins + 1)
    docs[n_bins] = 3 if has_missing else 0
    # 256 bins of less than 2^17 each: sums stay below the 26 bits of packed hessians.
    gradients = rng.integers(-(2**17), 2**17, n_bins + 1) * (docs > 0)
    hessians = docs if name == "no hessians" else rng.integers(1, 2**17, n_bins + 1) * (docs > 0)
    packed = (gradients << (COUNT_BITS + packing.hessian_bits)) + docs
    if packing.hessian_bits:
        packed += hessians << COUNT_BITS
    total = (int(docs.sum()), int(gradients.sum()), int(hessians.sum()))
    leaf = np.zeros(LEAF_FIELDS, np.int64)
    leaf[GRADIENT], leaf[HESSIAN] = packed.sum(), hessians.sum()
    totals = leaf_totals(leaf, packing, 0.0)
    assert tuple(totals) == total

    scratch = np.full((SCRATCH_ROWS, MAX_CUTS), np.nan)
    sums, right_gains, left_gains = scratch[:2].view(np.int64), scratch[2], scratch[3]
    n_cuts = gains_by_side(
        packed, hessians, packing, totals, LIMITS, 0.0, 0, sums, right_gains, left_gains
    )
    assert n_cuts == (n_bins if has_missing else n_bins - 1)
    sides = [(right_gains, n_cuts, 0), (left_gains, n_bins - 1 if has_missing else 0, 1)]
    for gains, n, missing_left in sides:
        expected = []
        for cut in range(n):
            left = [
                int(numbers[: cut + 1].sum() + missing_left * numbers[n_bins])
                for numbers in (docs, gradients, hessians)
            ]
            expected.append(naive_gain(tuple(left), total, min_docs=LIMITS.min_docs))
        np.testing.assert_allclose(gains[:n], expected, rtol=1e-9, atol=1e-9)
        assert np.isnan(gains[n:]).all()
