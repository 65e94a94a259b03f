"""What experiments share: size, data and nets, and how evaluations are compared and written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from rankinite.core.errors import UsageError
from rankinite.core.figures import Line
from rankinite.core.format import p_exponent
from rankinite.core.params import Real, check
from rankinite.core.progress import Progress, ProgressBar, Silent
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulate.challenge import challenge
from rankinite.data.simulate.clicks import clicks
from rankinite.data.simulate.markets import MARKETS
from rankinite.data.simulate.polynomials import polynomials
from rankinite.evaluation.evaluate import Evaluation, evaluate
from rankinite.rankers.callbacks import Round
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.parameters import PAPER
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.stats.paired_tests import gain_and_p

# The measures of Optimality, in which grades of 2 and more are relevant (Sec. 6).
MEASURES = ("NDCG", "NDCG@10", "MAP(relevant=2)", "MRR(relevant=2)")
# The measures of LambdaSMART, and the one that it draws and chooses by.
NDCG = ("NDCG@10", "NDCG@3", "NDCG@1")
FIRST = NDCG[0]
TREES_PER_POINT = 10  # of a curve by number of trees
# The depths of Objectives, and the one that its tables are chosen by.
DEPTHS = range(1, 11)
TOP = 3
# Trees as in Objectives, Sec. 6, but a quarter of their number, with half the leaves. Lambdas are
# not truncated, although the tables are chosen by NDCG@3: truncation would leave too few pairs to
# learn from (Sec. 3).
TREES_OF_OBJECTIVES: Mapping[str, Any] = {
    "n_trees": 250,
    "n_leaves": 15,
    "truncation": None,
    "patience": None,
}
# Level of significance, and one minus the coverage of confidence intervals, as in the papers
# (LambdaSMART, Table 1; Objectives, Sec. 6).
LEVEL = 0.05
# Fewer queries than this show nothing.
FEWEST = 20


@dataclass(frozen=True)
class Setting:
    """Size and seed of an experiment.

    Attributes
    ----------
    scale
        Factor of the numbers of queries; 1 takes minutes.
    seed
        Seed of the data and the rankers.
    progress
        Progress reporter.
    """

    scale: float = 1.0
    seed: int = 0
    progress: Progress = field(default_factory=Silent)

    def __post_init__(self) -> None:
        check("reproduce", "scale", self.scale, Real(0, low_open=True))

    def queries(self, n: int) -> int:
        """Return the number of queries at this scale, given that at scale 1."""
        return max(FEWEST, round(n * self.scale))

    def polynomials(self, n: int, part: str) -> RankingData:
        """Simulate n queries, times the scale, of the polynomial data."""
        return polynomials(self.queries(n), part=part, seed=self.seed)

    def challenge(self, n: int, part: str) -> RankingData:
        """Simulate n queries, times the scale, of the challenge's Set 1; all it has at most."""
        return challenge(min(self.queries(n), MARKETS[1].queries[part]), part=part, seed=self.seed)

    def clicks(self, n: int, part: str) -> RankingData:
        """Simulate n queries, times the scale, of Set 1 with clicks of both sources."""
        return clicks(self.challenge(n, part), seed=self.seed)

    def parts(self, simulator: str, queries: Mapping[str, int]) -> dict[str, RankingData]:
        """Simulate the parts of a data set, given numbers of queries at scale 1."""
        simulate = getattr(self, simulator)
        return {part: simulate(n, part) for part, n in queries.items()}

    def net(self, measure: Any, hidden: int, **parameters: Any) -> LambdaRank:
        """Return a net that is not fitted yet."""
        return LambdaRank(
            measure, preset=PAPER, hidden=hidden, random_state=self.seed, **parameters
        )

    def random_net(self, measure: Any, hidden: int, data: RankingData) -> LambdaRank:
        """Return a net with random weights."""
        # Weights are drawn by fit, so there must be an epoch: at this rate it changes no ranking.
        return self.net(measure, hidden, n_epochs=1, learning_rate=1e-12).fit(data)

    def best_net(
        self,
        objective: Any,
        hidden: int,
        rates: Iterable[float],
        parts: Mapping[str, RankingData],
        bar: ProgressBar,
        **parameters: Any,
    ) -> LambdaRank:
        """Return the best of nets with several learning rates, by the validation measure.

        The papers choose the learning rate of every net in this way (Optimality, Sec. 7;
        LambdaSMART, Sec. 5.2).
        """
        nets = []
        for rate in rates:
            net = self.net(objective, hidden, learning_rate=rate, **parameters)
            nets.append(net.fit(parts["train"], valid=parts["valid"]))
            bar.advance(1)
        return max(nets, key=lambda net: max(net.history_["valid"][net.valid_measure]))


@dataclass(frozen=True)
class Boosting:
    """Fits many rankers of trees to the same data.

    Attributes
    ----------
    setting
        Size and seed of the experiment.
    sets
        Data sets by part.
    bar
        Progress bar, which counts trees.
    """

    setting: Setting
    sets: Mapping[str, RankingData]
    bar: ProgressBar

    def fit(
        self,
        train: RankingData | None = None,
        valid: Any = None,
        diagnostics: Diagnostics | None = None,
        **parameters: Any,
    ) -> LambdaMART:
        """Fit LambdaMART with these parameters, to the sets of these names unless given."""

        def count(_done: Round) -> None:
            self.bar.advance(1)

        return LambdaMART(preset=PAPER, random_state=self.setting.seed, **parameters).fit(
            self.sets["train"] if train is None else train,
            valid=self.sets["valid"] if valid is None else valid,
            callbacks=[count],
            diagnostics=diagnostics,
        )


def evaluated(model: Any, data: RankingData, measures: str | Sequence[str]) -> Evaluation:
    """Evaluate a ranker, or anything that predicts."""
    return evaluate(model.predict(data), data, measures)


def evaluate_ndcg(model: Any, data: RankingData) -> Evaluation:
    """Evaluate a ranker as LambdaSMART does: queries of a single label are dropped (Sec. 5.1)."""
    return evaluate(model.predict(data), data, NDCG, drop_single_label=True)


def curve_by_trees(
    name: str,
    model: TreeRanker,
    test: RankingData,
    trees_per_round: int = 1,
    start: Evaluation | None = None,
) -> Line:
    """Return the first measure of LambdaSMART by number of trees.

    Parameters
    ----------
    name
        Label of the line.
    model, test
        The ranker, and the data that it is evaluated on.
    trees_per_round
        Number of trees that the ranker grows in each round.
    start
        Evaluation of what the trees are grown on, drawn at 0 trees.
    """
    # In trees, not rounds, so that curves of rankers with several trees a round can be compared.
    every = TREES_PER_POINT // trees_per_round
    rounds = [] if start is None else [0]
    values = [] if start is None else [start.mean[FIRST]]
    for k, scores in enumerate(model.staged_predict(test, every=every), 1):
        rounds.append(min(every * k, model.n_trees_))
        values.append(evaluate(scores, test, FIRST, drop_single_label=True).mean[FIRST])
    return Line(name, [trees_per_round * n_rounds for n_rounds in rounds], values)


def curves_as_json(lines: Iterable[Line]) -> dict[str, Any]:
    """Return curves by number of trees, as JSON can hold them."""
    return {line.label: {"trees": list(line.x), FIRST: list(line.y)} for line in lines}


def at_depths(name: str, source: str | None = None) -> list[str]:
    """Return a measure at every depth."""
    suffix = "" if source is None else f"[{source}]"
    return [f"{name}@{depth}{suffix}" for depth in DEPTHS]


def short(measure: str) -> str:
    """Return a measure without its options, as the papers write it."""
    return measure.replace("(relevant=2)", "")


def standard_error(values: Floats) -> float:
    """Return the standard error of the mean over the queries that count."""
    counted = values[~np.isnan(values)]
    if len(counted) < 2:
        raise UsageError("reproduce: fewer than two queries count; give a larger scale")
    return float(counted.std(ddof=1) / np.sqrt(len(counted)))


def half_interval(values: Floats) -> float:
    """Return half the width of the 95 % confidence interval of the mean, by the t distribution."""
    n_counted = int((~np.isnan(values)).sum())
    return standard_error(values) * float(stdtrit(n_counted - 1, 1 - LEVEL / 2))


def with_error(values: Floats) -> str:
    """Return mean and standard error over the queries that count, as text."""
    counted = values[~np.isnan(values)]
    return f"{counted.mean():.4f} ± {standard_error(values):.4f}"


def with_interval(values: Floats) -> str:
    """Return mean and half the width of its confidence interval, as LambdaSMART writes them."""
    return f"{np.nanmean(values):.4f} ({half_interval(values):.4f})"


def means_and_intervals(evaluation: Evaluation) -> dict[str, Any]:
    """Return mean and half interval of every measure, as JSON can hold them."""
    return {
        measure: {"mean": float(np.nanmean(values)), "half_interval": half_interval(values)}
        for measure, values in evaluation.per_query.items()
    }


def mean_and_p(values: Floats, baseline: Floats) -> dict[str, float]:
    """Return mean, its standard error, and the p-value of the difference to a baseline."""
    return {
        "mean": float(np.nanmean(values)),
        "standard_error": standard_error(values),
        "p_value": p_value(values, baseline),
    }


class Gain(NamedTuple):
    """Mean difference to a baseline, and the two-sided p-value of the paired t-test."""

    difference: float
    p: float

    @property
    def is_better(self) -> bool:
        """Whether it is significantly better than the baseline."""
        return self.p <= LEVEL and self.difference > 0

    @property
    def is_worse(self) -> bool:
        """Whether it is significantly worse than the baseline."""
        return self.p <= LEVEL and self.difference < 0

    @property
    def sign(self) -> str:
        """The sign of a significant difference, to be appended to a number."""
        return " +" if self.is_better else " -" if self.is_worse else ""


def p_value(values: Floats, others: Floats) -> float:
    """Return the two-sided p-value of the paired t-test."""
    return gain_and_p(values, others)[1]


def gains(evaluation: Evaluation, baseline: Evaluation, measures: Sequence[str]) -> dict[str, Gain]:
    """Return the gain over a baseline by every measure."""
    return {m: Gain(*gain_and_p(evaluation.per_query[m], baseline.per_query[m])) for m in measures}


def gains_as_json(gains: Mapping[str, Gain]) -> dict[str, dict[str, float]]:
    """Return differences and p-values, as JSON can hold them."""
    return {
        "difference": {m: gain.difference for m, gain in gains.items()},
        "p_value": {m: gain.p for m, gain in gains.items()},
    }


def gain_texts(gains: Collection[Gain]) -> tuple[str, ...]:
    """Return differences with their p-values; a star where they are significant."""
    return tuple(
        f"{gain.difference:+.4f}, p {p_exponent(gain.p)}{' *' * (gain.p <= LEVEL)}"
        for gain in gains
    )


def count_significant(gains: Collection[Gain]) -> tuple[int, int]:
    """Return how many gains are significantly better, and how many worse."""
    return sum(gain.is_better for gain in gains), sum(gain.is_worse for gain in gains)


def significant_phrase(gains: Collection[Gain]) -> str:
    """Return by how many measures a ranker is significantly better, and worse, as text."""
    counts = zip(count_significant(gains), ("better", "worse"), strict=True)
    return " and ".join(f"{n} {word}" for n, word in counts if n) or "none"


def depths_phrase(gains: Collection[Gain]) -> str:
    """Return the range of gains at all depths in points, and how many are significant, as text."""
    better, worse = count_significant(gains)
    differences = [100 * gain.difference for gain in gains]
    at_top = list(gains)[TOP - 1]
    return (
        f"{min(differences):+.2f} to {max(differences):+.2f} points "
        f"({100 * at_top.difference:+.2f} at {TOP}, p = {p_exponent(at_top.p)}; of {len(gains)} "
        f"depths {better} significantly better and {worse} worse)"
    )


def size_of_objectives(train: RankingData, trees: Mapping[str, Any]) -> str:
    """Return the sentence on how much smaller an experiment is than that of Objectives."""
    return (
        f"Rankers learned from {train.n_queries:,} queries (the paper: 108,000), with "
        f"{trees['n_trees']} trees of {trees['n_leaves']} leaves at most (1,000 of 30)."
    )


def points(
    evaluation: Evaluation, measures: Sequence[str], baseline: Evaluation | None = None
) -> list[str]:
    """Return means in points, with the signs of significant differences to a baseline."""
    texts = [f"{100 * evaluation.mean[m]:.2f}" for m in measures]
    if baseline is None:
        return texts
    signs = (gain.sign for gain in gains(evaluation, baseline, measures).values())
    return [text + sign for text, sign in zip(texts, signs, strict=True)]
