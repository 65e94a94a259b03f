"""The statistics once more, in the most obvious way: loops, fractions, one pair at a time."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from rankinite.core.random import generator


def t_statistic(first, second):
    """Return mean over standard error of the differences."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    n = len(differences)
    mean = math.fsum(differences) / n
    variance = math.fsum((d - mean) ** 2 for d in differences) / (n - 1)
    return mean / math.sqrt(variance / n)


def exact_randomisation(first, second):
    """Return the share of sign patterns as far from 0; values are fractions, so ties are ties."""
    differences = [Fraction(a) - Fraction(b) for a, b in zip(first, second, strict=True)]
    seen = abs(sum(differences))
    patterns = list(itertools.product((1, -1), repeat=len(differences)))
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in patterns]
    return Fraction(sum(abs(total) >= seen for total in sums), len(patterns))


def drawn_randomisation(first, second, permutations, seed, block):
    """Return the p-value for the signs that the seed stands for, one pattern after the other."""
    differences = [Fraction(a) - Fraction(b) for a, b in zip(first, second, strict=True)]
    seen = abs(sum(differences))
    count = 0
    for number in range(-(-permutations // block)):
        rng = generator(seed, "randomisation", number)
        n_rows = min(block, permutations - number * block)
        columns = [rng.bytes(n_rows) for _ in range(0, len(differences), 8)]
        for row in range(n_rows):
            signs = [2 * (columns[q // 8][row] >> q % 8 & 1) - 1 for q in range(len(differences))]
            count += abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= seen
    return (count + 1) / (permutations + 1)


def resampled_means(values, resamples, seed):
    """Return the mean of each resample, query by query."""
    rng = generator(seed, "bootstrap")
    n = len(values)
    means = []
    for _ in range(resamples):
        means.append(math.fsum(values[q] for q in rng.integers(n, size=n)) / n)
    return means


def holm(p_values):
    """Step down: the k-th smallest of n is multiplied by n - k, and may not fall again."""
    n = len(p_values)
    adjusted = [0.0] * n
    largest = 0.0
    for k, place in enumerate(sorted(range(n), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (n - k) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def tau_b(first, second):
    """Return concordant minus discordant pairs, over the pairs that each row tells apart."""
    balance = apart_one = apart_other = 0
    for i, j in itertools.combinations(range(len(first)), 2):
        a, b = np.sign(first[i] - first[j]), np.sign(second[i] - second[j])
        balance += a * b
        apart_one += a != 0
        apart_other += b != 0
    return balance / math.sqrt(apart_one * apart_other)
