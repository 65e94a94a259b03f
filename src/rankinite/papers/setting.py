"""What reproductions share: their size, their data, and how values are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import stdtrit

from rankinite.core.errors import UsageError
from rankinite.core.params import Real, check
from rankinite.core.progress import Progress, ProgressBar, Silent
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulate.challenge import challenge
from rankinite.data.simulate.clicks import clicks
from rankinite.data.simulate.markets import MARKETS
from rankinite.data.simulate.polynomials import polynomials
from rankinite.evaluation.evaluate import Evaluation, evaluate
from rankinite.rankers.early_stopping import Round
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.stats.paired_tests import gain_and_p

# The measures of Optimality, in which grades of 2 and more are relevant.
MEASURES = ("NDCG", "NDCG@10", "MAP(relevant=2)", "MRR(relevant=2)")
# Fewer queries than this tell nothing.
FEWEST = 20


@dataclass(frozen=True)
class Setting:
    """How large a reproduction is.

    Attributes
    ----------
    scale
        What the numbers of queries are multiplied by; 1 takes minutes.
    seed
        Of the data and the nets.
    progress
        Who wants to know how far it is.
    """

    scale: float = 1.0
    seed: int = 0
    progress: Progress = field(default_factory=Silent)

    def __post_init__(self) -> None:
        check("reproduce", "scale", self.scale, Real(0, low_open=True))

    def queries(self, n: int) -> int:
        """Return how many queries there are where scale 1 has n."""
        return max(FEWEST, round(n * self.scale))

    def polynomials(self, n: int, part: str) -> RankingData:
        """Simulate so many queries, times the scale, of the polynomial data."""
        return polynomials(self.queries(n), part=part, seed=self.seed)

    def challenge(self, n: int, part: str) -> RankingData:
        """Simulate so many queries, times the scale, of the challenge's Set 1, or all it has."""
        return challenge(min(self.queries(n), MARKETS[1].queries[part]), part=part, seed=self.seed)

    def clicks(self, n: int, part: str) -> RankingData:
        """Simulate so many queries of the challenge's Set 1 with clicks of both sources."""
        return clicks(self.challenge(n, part), seed=self.seed)

    def random_net(self, measure: Any, hidden: int, data: RankingData) -> LambdaRank:
        """Return a net with random weights: its only epoch moves them next to nothing."""
        return self.net(measure, hidden, n_epochs=1, learning_rate=1e-12).fit(data)

    def net(self, measure: Any, hidden: int, **parameters: Any) -> LambdaRank:
        """Return a net that is not taught yet."""
        return LambdaRank(measure, hidden=hidden, random_state=self.seed, **parameters)


def tested(model: LambdaRank, data: RankingData) -> Evaluation:
    """Evaluate a net by the four measures."""
    return evaluate(model.predict(data), data, MEASURES)


def with_error(values: Floats) -> str:
    """Return mean and standard error over the queries that count."""
    counted = values[~np.isnan(values)]
    return f"{counted.mean():.4f} ± {standard_error(values):.4f}"


def standard_error(values: Floats) -> float:
    """Return the standard error of the mean over the queries that count."""
    counted = values[~np.isnan(values)]
    if len(counted) < 2:
        raise UsageError("reproduce: fewer than two queries count; give a larger scale")
    return float(counted.std(ddof=1) / np.sqrt(len(counted)))


def p_value(one: Floats, other: Floats) -> float:
    """Return the two-sided p-value of the paired t-test."""
    return gain_and_p(one, other)[1]


def short(measure: str) -> str:
    """Return a measure without its options, as the papers write it."""
    return measure.replace("(relevant=2)", "")


NDCG = ("NDCG@10", "NDCG@3", "NDCG@1")
LEVEL = 0.05
# Smaller p-values are not told apart.
SMALL_P = 1e-99


def evaluated(scores: Floats, data: RankingData) -> Evaluation:
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


DEPTHS = range(1, 11)
# The depth that the paper cares for.
TOP = 3


def at_depths(name: str, source: str | None = None) -> list[str]:
    """Return a measure at every depth."""
    behind = "" if source is None else f"[{source}]"
    return [f"{name}@{depth}{behind}" for depth in DEPTHS]


def gains(one: Evaluation, other: Evaluation, measures: Sequence[str]) -> list[tuple[float, float]]:
    """Return how much better one is by every measure, and the p-value."""
    return [gain_and_p(one.per_query[m], other.per_query[m]) for m in measures]


def told(found: Sequence[tuple[float, float]]) -> str:
    """Say what gains at all depths come to, in points."""
    better = sum(p <= LEVEL and gain > 0 for gain, p in found)
    worse = sum(p <= LEVEL and gain < 0 for gain, p in found)
    low, high = min(gain for gain, _ in found), max(gain for gain, _ in found)
    gain, p = found[TOP - 1]
    return (
        f"{100 * low:+.2f} to {100 * high:+.2f} points ({100 * gain:+.2f} at {TOP}, p = "
        f"{p_text(p)}; of {len(found)} depths {better} significantly better and {worse} worse)"
    )


def row_of(
    found: Evaluation, measures: Sequence[str], rival: Evaluation | None = None
) -> list[str]:
    """Return means in points, with the sign of what is significant against a rival."""
    texts = [f"{100 * found.mean[m]:.2f}" for m in measures]
    if rival is None:
        return texts
    return [
        f"{text}{'' if p > LEVEL else ' +' if gain > 0 else ' -'}"
        for text, (gain, p) in zip(texts, gains(found, rival, measures), strict=True)
    ]


def counting(bar: ProgressBar) -> Callable[[Round], None]:
    """Return a callback that counts trees."""

    def count(_done: Round) -> None:
        bar.advance(1)

    return count
