"""What the report says first: the ensemble against the best member, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rankinite.evaluation.evaluate import Evaluation
from rankinite.report.format import counted, signed
from rankinite.runs.ensemble_comparison import HELD_OUT, EnsembleComparison, Gain, gain_over
from rankinite.runs.recipe import ENSEMBLE
from rankinite.runs.results import Results
from rankinite.runs.tables import number, oracle_of, p_in_words, p_text


@dataclass(frozen=True)
class Card:
    """A measure: the ensemble, the best member, the gain and what it could be by chance."""

    measure: str
    ensemble: str
    best: str
    gain: str
    interval: str
    p: str
    oracle: str


@dataclass(frozen=True)
class Headline:
    """The result in sentences and numbers.

    Attributes
    ----------
    sentences
        What was measured, and what to think of it.
    cards
        One a measure; none if there is nothing to compare.
    title, best
        What the ensemble and the best member are called.
    """

    sentences: tuple[str, ...]
    cards: tuple[Card, ...]
    title: str
    best: str


def headline_of(results: Results, contest: EnsembleComparison) -> Headline:
    """Return the result by every measure that counts."""
    measures = results.recipe.measures
    best, ensemble = contest.members[contest.best], contest.ensemble
    found = {measure: gain_over(ensemble, best, measure) for measure in measures}
    gains = {measure: gain for measure, gain in found.items() if gain is not None}
    if measures[0] not in gains:
        absent = f"No ensemble could be compared with a member on {contest.place}."
        return Headline((absent,), (), contest.title, contest.best)
    oracle = oracle_of(contest, measures)
    cards = tuple(_card(ensemble, best, measure, gain, oracle) for measure, gain in gains.items())
    told = (_means(results, contest, ensemble, best), _judgement(gains[measures[0]]))
    title = f"the {ENSEMBLE}" if contest.title == ENSEMBLE else contest.title
    return Headline(told, cards, title, contest.best)


def _card(
    ensemble: Evaluation,
    best: Evaluation,
    measure: str,
    gain: Gain,
    oracle: Mapping[str, float],
) -> Card:
    return Card(
        measure,
        number(ensemble.mean[measure]),
        number(best.mean[measure]),
        signed(gain.mean),
        f"{signed(gain.low)} to {signed(gain.high)}",
        p_text(gain.p),
        number(oracle.get(measure, float("nan"))),
    )


def _means(
    results: Results, contest: EnsembleComparison, ensemble: Evaluation, best: Evaluation
) -> str:
    first = results.recipe.measures[0]
    # On the held-out parts, which chose some of them, it is the average of all.
    models = contest.members if contest.name == HELD_OUT else results.selection.chosen
    n_models = counted(len(models), "model")
    n_queries = counted(ensemble.n_queries[first], "query", "queries")
    return (
        f"On {n_queries} of {contest.place} the ensemble of {n_models} reaches "
        f"{first} {number(ensemble.mean[first])}; the best member, {contest.best}, reaches "
        f"{number(best.mean[first])}."
    )


def _judgement(gain: Gain) -> str:
    p = p_in_words(gain.p)
    if gain.mean == 0:
        return "There is no difference between them."
    if not gain.is_significant:
        return f"The difference of {signed(gain.mean)} may be chance ({p})."
    word = "better" if gain.mean > 0 else "worse"
    return f"The ensemble is significantly {word}, by {number(abs(gain.mean))} ({p})."
