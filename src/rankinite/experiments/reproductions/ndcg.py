"""What the reproductions of LambdaSMART share: its measures, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import stdtrit

from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import Evaluation, evaluate
from rankinite.experiments.reproductions.setting import Floats, p_value, standard_error

NDCG = ("NDCG@10", "NDCG@3", "NDCG@1")
LEVEL = 0.05
# Smaller p-values are not told apart.
SMALL_P = 1e-99


def tested(scores: Floats, data: RankingData) -> Evaluation:
    """Evaluate scores; queries whose documents all have one label are dropped (Sec. 5.1)."""
    return evaluate(scores, data, NDCG, drop_single_label=True)


def half_interval(values: Floats) -> float:
    """Return half the width of the 95 % confidence interval of the mean, by the t distribution."""
    n_counted = int((~np.isnan(values)).sum())
    return standard_error(values) * float(stdtrit(n_counted - 1, 1 - LEVEL / 2))


def with_interval(values: Floats) -> str:
    """Return mean and half the width of its confidence interval, as the paper writes them."""
    return f"{np.nanmean(values):.4f} ({half_interval(values):.4f})"


def numbers(found: Evaluation) -> dict[str, Any]:
    """Return mean and interval of every measure, as JSON can hold them."""
    return {
        measure: {"mean": float(np.nanmean(values)), "half_interval": half_interval(values)}
        for measure, values in found.per_query.items()
    }


def p_values(one: Evaluation, other: Evaluation) -> dict[str, float]:
    """Return the p-value of the paired t-test for every measure."""
    return {m: p_value(one.per_query[m], other.per_query[m]) for m in NDCG}


def differences(one: Evaluation, other: Evaluation) -> dict[str, float]:
    """Return how much better one ranker is than another, by every measure."""
    return {m: float(np.nanmean(one.per_query[m] - other.per_query[m])) for m in NDCG}


def compared(one: Evaluation, other: Evaluation) -> tuple[str, ...]:
    """Return differences with their p-values as texts; a star where they are significant."""
    gains, p = differences(one, other), p_values(one, other)
    return tuple(f"{gains[m]:+.4f}, p {p_text(p[m])}{' *' * (p[m] <= LEVEL)}" for m in NDCG)


def p_text(p: float) -> str:
    """Return a p-value as a text."""
    return f"{p:.2g}" if p >= SMALL_P else f"< {SMALL_P:g}"


def verdict(gains: Mapping[str, float], p: Mapping[str, float]) -> str:
    """Say by how many of the measures a ranker is significantly better, or worse."""
    better = sum(p[m] <= LEVEL and gains[m] > 0 for m in NDCG)
    worse = sum(p[m] <= LEVEL and gains[m] < 0 for m in NDCG)
    words = [f"{n} {word}" for n, word in ((better, "better"), (worse, "worse")) if n]
    return " and ".join(words) or "none"
