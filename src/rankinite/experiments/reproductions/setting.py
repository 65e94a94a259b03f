"""What reproductions share: their size, their data, and how values are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.core.params import Real, check
from rankinite.core.progress import Progress, Silent
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulators.challenge import challenge
from rankinite.data.simulators.clicks import clicks
from rankinite.data.simulators.markets import MARKETS
from rankinite.data.simulators.polynomials import polynomials
from rankinite.evaluation.evaluate import Evaluation, evaluate
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.stats.t_test import gain_and_p

Floats = NDArray[np.float64]

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
