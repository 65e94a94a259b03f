"""Fisher's randomisation test of all pairs of ten systems on the queries of a challenge's test set.

    python benchmarks/compare.py [--queries 6983] [--systems 10] [--permutations 100000] [--turns 3]

The first peer is the test as one would write it in numpy: for one pair after the other, signs of 1
and -1 in blocks, times the differences. All 45 pairs would take minutes, so it gets one pair and a
tenth of the permutations, and its time counts 45 x 10 times: every pair and every permutation
costs it the same. The second peer is scipy.stats.permutation_test, with one pair, 1,000 queries and
10,000 permutations, which we get as well.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.stats

from rankinite.stats.paired_tests import randomisation_test
from turns import report, two_in_turns

ROWS = 1000
PART = 10
SMALL = (1000, 10_000)


def simple_test(values: np.ndarray, other: np.ndarray, permutations: int) -> float:
    rng = np.random.default_rng(0)
    differences = values - other
    seen = abs(differences.sum())
    count = 0
    for _ in range(permutations // ROWS):
        signs = 2.0 * rng.integers(2, size=(ROWS, len(differences)), dtype=np.int8) - 1.0
        count += (np.abs(signs @ differences) >= seen).sum()
    return (count + 1) / (permutations + 1)


def scipy_test(values: np.ndarray, other: np.ndarray, permutations: int) -> float:
    test = scipy.stats.permutation_test(
        (values, other),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=permutations,
        batch=ROWS,
    )
    return float(test.pvalue)


def systems(n_systems: int, n_queries: int) -> np.ndarray:
    """Return values as measures give them, of systems that are a little better each."""
    rng = np.random.default_rng(0)
    hard = rng.beta(0.7, 1.0, n_queries)
    noise = rng.normal(0, 0.1, (n_systems, n_queries))
    return np.clip(hard + noise + 0.0005 * np.arange(n_systems)[:, None], 0.0, 1.0)


def check_alike(ours: float, theirs: float, permutations: int) -> None:
    """Refuse p-values that differ by more than chance: five deviations of both shares."""
    deviation = np.sqrt(2 * max(ours * (1 - ours), 1 / permutations) / permutations)
    assert abs(ours - theirs) < 5 * deviation, (ours, theirs)


def against_simple(n_queries: int, n_systems: int, permutations: int, turns: int) -> None:
    values = systems(n_systems, n_queries)
    n_pairs = n_systems * (n_systems - 1) // 2
    fewer = permutations // PART
    p = randomisation_test(values, permutations=permutations)[0, 1]
    check_alike(p, simple_test(values[0], values[1], fewer), fewer)
    ours, part = two_in_turns(
        lambda: randomisation_test(values, permutations=permutations),
        lambda: simple_test(values[0], values[1], fewer),
        turns,
    )
    theirs = [seconds * n_pairs * permutations / fewer for seconds in part]
    what = f"{n_pairs} pairs, {n_queries} queries, {permutations} permutations, against numpy"
    report(what, ours, theirs, must=10, goal=100)


def against_scipy(turns: int) -> None:
    n_queries, permutations = SMALL
    values = systems(2, n_queries)
    p = randomisation_test(values, permutations=permutations)[0, 1]
    check_alike(p, scipy_test(*values, permutations), permutations)
    seconds = two_in_turns(
        lambda: randomisation_test(values, permutations=permutations),
        lambda: scipy_test(*values, permutations),
        turns,
    )
    what = f"1 pair, {n_queries} queries, {permutations} permutations, against scipy"
    report(what, *seconds, must=10, goal=30)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=6983)
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--permutations", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=3)
    chosen = parser.parse_args()
    if chosen.permutations < PART * ROWS:
        parser.error(
            f"--permutations: expected at least {PART * ROWS}; numpy gets a tenth in blocks"
        )
    against_simple(chosen.queries, chosen.systems, chosen.permutations, chosen.turns)
    against_scipy(chosen.turns)
