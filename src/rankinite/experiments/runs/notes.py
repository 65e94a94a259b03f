"""Sentences on the tables of a run: what was chosen, what it is worth, what is missing."""

from __future__ import annotations

from collections.abc import Iterator

from rankinite.combine.subsets import SubsetSearch
from rankinite.experiments.runs.contest import HELD_OUT, PLACES, Contest, counts, gain_over
from rankinite.experiments.runs.results import Results
from rankinite.experiments.runs.texts import number, p_in_words, short_form


def notes_of(results: Results, contest: Contest) -> Iterator[str]:
    """Go through the sentences."""
    selection = results.selection
    yield f"The ensemble is the average of {short_form(selection.chosen)}."
    yield verdict(results, contest)
    if selection.search is not None:
        yield search_in_words(selection.search, results.recipe.measures[0])
    if selection.best_member not in selection.chosen:
        yield f"{selection.best_member}, the best member, is not in the ensemble."
    yield from absences(results)
    yield (
        "p: paired t-test over queries, two-sided; of one pair alone, without a correction for "
        "many, unless a table says more."
    )


def verdict(results: Results, contest: Contest) -> str:
    """Return one sentence on the ensemble and the best member, by the first measure."""
    first = results.recipe.measures[0]
    best = contest.members[contest.best]
    if not counts([best], first):
        return f"Nothing can be compared on {contest.place}: no query counts for {first}."
    means = f"{number(contest.ensemble.mean[first])} against {number(best.mean[first])}"
    told = f"{first} on {contest.place}: {contest.title} {means} of {contest.best}, the best member"
    told += "" if contest.name == HELD_OUT else f" by {PLACES[HELD_OUT]}"
    gain = gain_over(contest.ensemble, best, first)
    if gain is None:
        return f"{told}."
    return f"{told}; {gain.mean:+.4f}, {p_in_words(gain.p)}."


def search_in_words(search: SubsetSearch, measure: str) -> str:
    """Say what a search over subsets found, and what was made of it."""
    full, took = search.full.values[measure], "all models"
    if set(search.chosen) != set(search.full.members):
        took = "that subset"
    found = f"Of {len(search.table):,} subsets the best by {measure} is "
    if set(search.best.members) == set(search.full.members):
        return f"{found}that of all models, {number(full)}."
    return (
        f"{found}{short_form(search.best.members)}: {number(search.best.values[measure])} against "
        f"{number(full)} of all models. The best of many flatters; chosen by one half of the "
        f"queries and tested on the other, each in turn, subsets differ from all models by "
        f"{search.gain:+.4f} ({p_in_words(search.p_value)}). The ensemble takes {took}."
    )


def absences(results: Results) -> Iterator[str]:
    """Say where there are no means, and why."""
    for place, outcome in results.outcomes.items():
        found = outcome.members.values()
        absent = [m for m in results.recipe.measures if not counts(found, m)]
        if absent:
            yield (
                f"A dash for {PLACES.get(place, place)}: it has no labels by which a query counts "
                f"for {' or '.join(absent)}."
            )
