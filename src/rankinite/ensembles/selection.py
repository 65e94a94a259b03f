"""Choosing the members of an ensemble, and comparing them with it.

``rankinite combine`` and runs of recipes go the same way: rankers score queries that they were not
trained on, each alone and averages of some of them are measured, a search decides which of them the
ensemble consists of, and paired tests say how much that gains. The steps stand here; how the
ensemble is made then, and what its tables look like, is up to the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankinite.core.format import number_text
from rankinite.core.lazy import LazyModule
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.members import Scaling, weighted_sum
from rankinite.ensembles.subsets import SubsetSearch, best_subset
from rankinite.evaluation.compare import compare_evaluations
from rankinite.evaluation.comparison import Comparison
from rankinite.evaluation.evaluate import Evaluation, evaluate_all
from rankinite.measures.text import MeasureLike
from rankinite.stats.paired_tests import gain_and_p

special: Any = LazyModule("scipy.special")

# Significance level of tests; intervals have the coverage 1 - LEVEL.
LEVEL = 0.05


@dataclass(frozen=True)
class Selection:
    """Members that were measured on queries they were not trained on, and those that were chosen.

    Attributes
    ----------
    data
        The queries.
    scores, members
        The scores and the evaluation of every member, by name.
    subsets
        The evaluation of the average of every named subset.
    search
        The search over subsets, if there was one.
    chosen
        The members of the ensemble.
    """

    data: RankingData
    scores: Mapping[str, Floats]
    members: Mapping[str, Evaluation]
    subsets: Mapping[str, Evaluation]
    search: SubsetSearch | None
    chosen: tuple[str, ...]

    @property
    def best_member(self) -> str:
        """The member with the largest mean of the first measure."""
        # Evaluations hold the measures in the order in which they were asked for.
        first = next(iter(next(iter(self.members.values())).per_query))
        return max(self.members, key=lambda name: self.members[name].mean[first])


def select_members(
    scores: Mapping[str, Floats],
    data: RankingData,
    measures: Sequence[MeasureLike],
    subsets: Mapping[str, Sequence[str]],
    search: Mapping[str, Any] | None,
) -> Selection:
    """Measure members and averages of subsets, and choose the members of the ensemble.

    Parameters
    ----------
    scores
        Scores of the members for the data, by name.
    data
        Labelled queries that the members were not trained on.
    measures
        Measures to compute; the first decides.
    subsets
        Subsets whose averages are measured, by name.
    search
        Options of `best_subset`, which chooses; None to take all members.
    """
    averages = averages_of(scores, subsets)
    # All at once: what depends on labels alone is computed once. A subset may have the name of a
    # member, so the two are told apart by their order.
    evaluations = evaluate_all(
        [*scores.values(), *averages.values()], data, measures, drop_single_label=False
    )
    of_members, of_subsets = evaluations[: len(scores)], evaluations[len(scores) :]
    result = None if search is None else best_subset(scores, data, measures, **search)
    return Selection(
        data=data,
        scores=scores,
        members=dict(zip(scores, of_members, strict=True)),
        subsets=dict(zip(averages, of_subsets, strict=True)),
        search=result,
        chosen=tuple(scores) if result is None else result.chosen,
    )


def averages_of(
    scores: Mapping[str, Floats], subsets: Mapping[str, Sequence[str]]
) -> dict[str, Floats]:
    """Return the average of every subset of members, each of whose scores is standardised."""
    rows = np.stack(list(scores.values()))
    # Each member on its own scale over all of these documents, as `Average.fit` does it.
    scaled = dict(zip(scores, Scaling.fit(rows).apply("ensemble", list(scores), rows), strict=True))
    return {
        name: weighted_sum(np.stack([scaled[member] for member in members]), np.ones(len(members)))
        for name, members in subsets.items()
    }


def evaluate_by_name(
    scores: Mapping[str, Floats], data: RankingData, measures: Sequence[MeasureLike]
) -> dict[str, Evaluation]:
    """Return the evaluation of several rankers' scores, by name."""
    evaluations = evaluate_all(list(scores.values()), data, measures, drop_single_label=False)
    return dict(zip(scores, evaluations, strict=True))


@dataclass(frozen=True)
class Gain:
    """The difference between two systems.

    Attributes
    ----------
    mean, low, high
        The mean difference over queries, and the ends of its interval by the t distribution.
    p
        The p-value of the paired t-test.
    """

    mean: float
    low: float
    high: float
    p: float

    @property
    def is_significant(self) -> bool:
        """Whether the difference is significant at `LEVEL`."""
        return self.p <= LEVEL


@dataclass(frozen=True)
class EnsembleEvaluation:
    """Evaluations of the members and ensembles on one data set.

    Attributes
    ----------
    members
        Evaluation of each member, by name.
    average, chosen
        Evaluations of the average of all members, and of the chosen ensemble.
    scores
        Scores of the chosen ensemble.
    """

    members: Mapping[str, Evaluation]
    average: Evaluation
    chosen: Evaluation
    scores: Floats

    def over_average(self, evaluation: Evaluation) -> Gain | None:
        """Return the gain in the first measure over the average of all members, if any counts."""
        first = next(iter(evaluation.per_query))
        return gain_over(evaluation, self.average, first)


def gain_over(evaluation: Evaluation, baseline: Evaluation, measure: str) -> Gain | None:
    """Return the gain of an evaluation over a baseline; None if no query counts."""
    if measure not in evaluation.per_query or measure not in baseline.per_query:
        return None
    gain, p = gain_and_p(evaluation.per_query[measure], baseline.per_query[measure])
    # No query counts for both.
    if np.isnan(gain):
        return None
    differences = evaluation.per_query[measure] - baseline.per_query[measure]
    differences = differences[~np.isnan(differences)]
    half = half_width(differences)
    return Gain(gain, gain - half, gain + half, p)


def half_width(differences: Floats) -> float:
    """Return half the width of the interval of a mean, by the t distribution.

    Examples
    --------
    Three values have a standard error of 1 / sqrt(3) and a t of 4.303.

    >>> round(half_width(np.array([1.0, 2.0, 3.0])), 3)
    2.484
    """
    n_queries = len(differences)
    # One difference has no standard error: the interval is everything.
    if n_queries < 2:
        return float("inf")
    error = differences.std(ddof=1) / np.sqrt(n_queries)
    return float(error * special.stdtrit(n_queries - 1, 1 - LEVEL / 2))


def p_against(
    evaluations: Mapping[str, Evaluation], baseline: str, measures: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Return p-values against one of the systems, by system and measure.

    They are None for the baseline itself, and where no query counts.
    """
    p_values: dict[str, dict[str, float | None]] = {}
    for name, evaluation in evaluations.items():
        gains = {m: gain_over(evaluation, evaluations[baseline], m) for m in measures}
        p_values[name] = {
            measure: None if gain is None or name == baseline else gain.p
            for measure, gain in gains.items()
        }
    return p_values


def comparison_of(
    evaluations: Mapping[str, Evaluation], measures: Iterable[str]
) -> Comparison | None:
    """Compare every two systems by the measures that count; None if there is nothing to test."""
    values = list(evaluations.values())
    # A measure for which no query counts has no test; the others are compared all the same.
    shown = [measure for measure in measures if counts(values, measure)]
    if len(values) < 2 or not shown:
        return None
    alike = {
        name: Evaluation(evaluation.qids, {m: evaluation.per_query[m] for m in shown})
        for name, evaluation in evaluations.items()
    }
    # Only p-values and the oracle are used, neither of which needs bootstrap resamples.
    return compare_evaluations(alike, resamples=1, level=LEVEL)


def counts(evaluations: Iterable[Evaluation], measure: str) -> bool:
    """Tell whether there is a query that counts for a measure."""
    return any(evaluation.n_queries.get(measure, 0) > 0 for evaluation in evaluations)


def mean_texts(evaluation: Evaluation, measures: Iterable[str]) -> tuple[str, ...]:
    """Return the means of measures as texts; a dash where no query counts."""
    return tuple(number_text(evaluation.mean.get(measure, float("nan"))) for measure in measures)


def without_nan(means: Mapping[str, float]) -> dict[str, float | None]:
    """Return means with None for NaN, which JSON does not have."""
    return {measure: None if value != value else value for measure, value in means.items()}


def means_without_nan(
    evaluations: Mapping[str, Evaluation],
) -> dict[str, dict[str, float | None]]:
    """Return the means of several rankers as JSON can hold them, by name."""
    return {name: without_nan(evaluation.mean) for name, evaluation in evaluations.items()}
