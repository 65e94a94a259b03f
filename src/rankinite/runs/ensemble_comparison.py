"""Comparison of an ensemble with its members: the data set, the best member, and p-values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.compare import compare_evaluations
from rankinite.evaluation.comparison import Comparison
from rankinite.evaluation.evaluate import Evaluation
from rankinite.runs.recipe import ENSEMBLE
from rankinite.runs.results import Results
from rankinite.stats.paired_tests import gain_and_p

HELD_OUT = "held-out"
# Names of data sets in sentences.
PLACES = {"test": "the test set", "valid": "the validation set", HELD_OUT: "the held-out parts"}
# Significance level of tests; intervals have the coverage 1 - LEVEL.
LEVEL = 0.05


@dataclass(frozen=True)
class EnsembleComparison:
    """An ensemble and its members on one data set.

    Attributes
    ----------
    name
        Name of the data set: ``test``, ``valid``, or `HELD_OUT`.
    data
        The data set.
    scores, members
        The scores and the evaluation of every member.
    title, ensemble
        Name and evaluation of the ensemble. On the held-out parts, which chose the models, it is
        the average of all models.
    best
        The best member by the first measure on the held-out parts, chosen without the data set.
    """

    name: str
    data: RankingData
    scores: Mapping[str, Floats]
    members: Mapping[str, Evaluation]
    title: str
    ensemble: Evaluation
    best: str

    @property
    def place(self) -> str:
        """The data set, as sentences speak of it."""
        return PLACES.get(self.name, self.name)

    @property
    def systems(self) -> dict[str, Evaluation]:
        """The members, and the ensemble as the last."""
        return {**self.members, self.title: self.ensemble}


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


def compare_ensemble(results: Results) -> EnsembleComparison:
    """Compare on the test set; without labels there on the validation set or the held-out parts."""
    first, selection = results.recipe.measures[0], results.selection
    for name in ("test", "valid"):
        outcome = results.outcomes.get(name)
        if outcome is not None and counts(outcome.members.values(), first):
            members = {n: e for n, e in outcome.members.items() if n != ENSEMBLE}
            return EnsembleComparison(
                name,
                outcome.data,
                {n: outcome.scores[n] for n in members},
                members,
                ENSEMBLE,
                outcome.members[ENSEMBLE],
                selection.best_member,
            )
    return EnsembleComparison(
        HELD_OUT,
        selection.data,
        selection.scores,
        selection.members,
        _title(results.whole, selection.members),
        results.averages[results.whole],
        selection.best_member,
    )


def _title(subset: str, members: Mapping[str, Evaluation]) -> str:
    """Return the title of a subset among members, one of which may have its name."""
    return subset if subset not in members else f"average of {subset}"


def counts(evaluations: Iterable[Evaluation], measure: str) -> bool:
    """Tell whether there is a query that counts for a measure."""
    return any(evaluation.n_queries.get(measure, 0) > 0 for evaluation in evaluations)


def gain_over(evaluation: Evaluation, baseline: Evaluation, measure: str) -> Gain | None:
    """Return the gain of an evaluation over a baseline; None if no query counts."""
    if measure not in evaluation.per_query or measure not in baseline.per_query:
        return None
    gain, p = gain_and_p(evaluation.per_query[measure], baseline.per_query[measure])
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
    if n_queries < 2:
        return float("inf")
    error = differences.std(ddof=1) / np.sqrt(n_queries)
    return float(error * stdtrit(n_queries - 1, 1 - LEVEL / 2))


def p_against(
    evaluations: Mapping[str, Evaluation], baseline: str, measure: str
) -> dict[str, float | None]:
    """Return p-values against one of the systems; None for itself, and without a test."""
    p_values = {}
    for name, evaluation in evaluations.items():
        gain = None if name == baseline else gain_over(evaluation, evaluations[baseline], measure)
        p_values[name] = None if gain is None else gain.p
    return p_values


def comparison_of(
    evaluations: Mapping[str, Evaluation], measures: Iterable[str]
) -> Comparison | None:
    """Compare every two systems by the measures that count; None if there is nothing to test."""
    values = list(evaluations.values())
    shown = [measure for measure in measures if counts(values, measure)]
    if len(values) < 2 or not shown:
        return None
    alike = {
        name: Evaluation(evaluation.qids, {m: evaluation.per_query[m] for m in shown})
        for name, evaluation in evaluations.items()
    }
    # Only p-values and the oracle are used, neither of which needs bootstrap resamples.
    return compare_evaluations(alike, resamples=1, level=LEVEL)
