"""The tables of a run, and sentences on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rankinite.core.format import counted, number_text, p_phrase, p_text
from rankinite.ensembles.selection import (
    comparison_of,
    counts,
    gain_over,
    mean_texts,
    p_against,
    without_nan,
)
from rankinite.ensembles.subsets import SubsetSearch
from rankinite.evaluation.comparison import Comparison
from rankinite.evaluation.evaluate import Evaluation
from rankinite.evaluation.tables import Summary, Table, csv_text
from rankinite.runs.recipe import (
    ENSEMBLE,
    FINAL_TABLE,
    MEMBERS_TABLE,
    ORACLE_TABLE,
    P_VALUES_TABLE,
    SUBSETS_TABLE,
)
from rankinite.runs.results import (
    HELD_OUT,
    PLACES,
    EnsembleComparison,
    Results,
    compare_ensemble,
)


def short_form(names: Sequence[str]) -> str:
    """Return names with ranges for three and more that are numbered consecutively.

    >>> short_form(["M1", "M2", "M3", "M4", "M11", "M12", "net"])
    'M1-M4, M11, M12, net'
    """
    shown = []
    for numbered in _ranges(names):
        shown += [f"{numbered[0]}-{numbered[-1]}"] if len(numbered) > 2 else numbered
    return ", ".join(shown)


def _ranges(names: Sequence[str]) -> Iterator[list[str]]:
    """Go through sequences of names that end in consecutive numbers."""
    numbered: list[str] = []
    for name in names:
        if numbered and not _follows(numbered[-1], name):
            yield numbered
            numbered = []
        numbered.append(name)
    if numbered:
        yield numbered


def _follows(name: str, other: str) -> bool:
    # Without leading zeros: M01 and M2 are not in a row.
    match = re.fullmatch(r"(.*?)(0|[1-9][0-9]*)", name)
    return match is not None and other == f"{match[1]}{int(match[2]) + 1}"


def notes_of(results: Results, comparison: EnsembleComparison) -> Iterator[str]:
    """Go through the sentences on the tables."""
    selection = results.selection
    yield f"The ensemble is the average of {short_form(selection.chosen)}."
    yield verdict(results, comparison)
    if selection.search is not None:
        yield search_in_words(selection.search, results.recipe.measures[0])
    if selection.best_member not in selection.chosen:
        yield f"{selection.best_member}, the best member, is not in the ensemble."
    yield from absences(results)
    yield (
        "p: paired t-test over queries, two-sided; of one pair alone, without a correction for "
        "many, unless a table says more."
    )


def verdict(results: Results, comparison: EnsembleComparison) -> str:
    """Return one sentence on the ensemble and the best member, by the first measure."""
    first = results.recipe.measures[0]
    best = comparison.members[comparison.best]
    if not counts([best], first):
        return f"Nothing can be compared on {comparison.place}: no query counts for {first}."
    means = (
        f"{number_text(comparison.ensemble.mean[first])} against {number_text(best.mean[first])}"
    )
    sentence = (
        f"{first} on {comparison.place}: {comparison.title} {means} of {comparison.best}, the best "
        "member"
    )
    sentence += "" if comparison.name == HELD_OUT else f" by {PLACES[HELD_OUT]}"
    gain = gain_over(comparison.ensemble, best, first)
    if gain is None:
        return f"{sentence}."
    return f"{sentence}; {gain.mean:+.4f}, {p_phrase(gain.p)}."


def search_in_words(search: SubsetSearch, measure: str) -> str:
    """Return the sentences on a search over subsets, and on what the ensemble takes of it."""
    full, taken = search.full.values[measure], "all models"
    if set(search.chosen) != set(search.full.members):
        taken = "that subset"
    head = f"Of {len(search.table):,} subsets the best by {measure} is "
    if set(search.best.members) == set(search.full.members):
        return f"{head}that of all models, {number_text(full)}."
    return (
        f"{head}{short_form(search.best.members)}: {number_text(search.best.values[measure])} "
        f"against {number_text(full)} of all models. The best of many flatters; chosen by one "
        "half of the queries and tested on the other, each in turn, subsets differ from all "
        f"models by {search.gain:+.4f} ({p_phrase(search.p_value)}). The ensemble takes {taken}."
    )


def absences(results: Results) -> Iterator[str]:
    """Go through sentences on data sets without means, with the reason."""
    for place, outcome in results.outcomes.items():
        evaluations = outcome.members.values()
        absent = [m for m in results.recipe.measures if not counts(evaluations, m)]
        if absent:
            yield (
                f"A dash for {PLACES.get(place, place)}: it has no labels by which a query counts "
                f"for {' or '.join(absent)}."
            )


NAME = "tables"
BEST, CHOSEN = "best member", "chosen"
ORACLE = "oracle"


def tables_of(results: Results) -> Summary:
    """Return the tables that the recipe asks for, and sentences on them."""
    comparison = compare_ensemble(results)
    # Once for the p-values table and the JSON: it tests every pair of systems.
    pairs = comparison_of(comparison.systems, results.recipe.measures)
    makers: Mapping[str, Callable[[], Sequence[Table | None]]] = {
        MEMBERS_TABLE: lambda: [members_table(results)],
        SUBSETS_TABLE: lambda: [subsets_table(results)],
        FINAL_TABLE: lambda: [final_table(results)],
        P_VALUES_TABLE: lambda: p_values_tables(comparison, pairs),
        ORACLE_TABLE: lambda: [oracle_table(results, comparison)],
    }
    asked = [sheet for name in results.recipe.tables for sheet in makers[name]()]
    sheets = tuple(sheet for sheet in asked if sheet is not None)
    values = {**results.as_json(), **_tests(results, comparison, pairs)}
    return Summary(NAME, sheets, tuple(notes_of(results, comparison)), {}, values)


def members_table(results: Results) -> Table:
    """Return Table 2: every model on the held-out parts."""
    selection, recipe = results.selection, results.recipe
    best = selection.best_member
    cells = means_and_p(selection.members, best, recipe.measures)
    rows = tuple(
        (name, recipe.models[name].description, *cells[name], BEST if name == best else "")
        for name in selection.members
    )
    title = f"Members on {_queries(selection.members)} of {PLACES[HELD_OUT]}; p against {best}"
    return Table(title, ("Model", "Description", *_with_p(recipe.measures), ""), rows)


def means_and_p(
    evaluations: Mapping[str, Evaluation], baseline: str, measures: Sequence[str]
) -> dict[str, list[str]]:
    """Return the mean of every measure and its p-value against one of the systems, as texts."""
    p_values = p_against(evaluations, baseline, measures)
    return {
        name: [
            text
            for measure, mean in zip(measures, mean_texts(evaluation, measures), strict=True)
            for text in (mean, p_text(p_values[name][measure]))
        ]
        for name, evaluation in evaluations.items()
    }


def _with_p(measures: Sequence[str], place: str = "") -> list[str]:
    """Return the names of columns: of measures, each with that of its p-values."""
    return [column for measure in measures for column in (f"{place}{measure}", "p")]


def subsets_table(results: Results) -> Table | None:
    """Return Table 3: averages on the held-out parts; None if that of all is the only one."""
    recipe, averages = results.recipe, results.selection.subsets
    searched = _searched_rows(results)
    if not recipe.subsets and not searched:
        return None
    cells = means_and_p(averages, results.whole, recipe.measures)
    members = {name: results.models_of(name) for name in averages}
    rows = [
        (name, short_form(members[name]), *cells[name], _mark(results, members[name]))
        for name in averages
    ]
    queries = _queries(results.selection.members)
    title = f"Averages on {queries} of {PLACES[HELD_OUT]}; p against {results.whole}"
    columns = ("Subset", "Models", *_with_p(recipe.measures), "")
    return Table(title, columns, (*rows, *searched))


def _searched_rows(results: Results) -> list[tuple[str, ...]]:
    """Return the best subset of a search, if it is none of those that have a name."""
    search, recipe = results.selection.search, results.recipe
    averages = results.selection.subsets
    if search is None:
        return []
    # It has a row already, under its name.
    if any(set(search.best.members) == set(results.models_of(name)) for name in averages):
        return []
    cells = [number_text(search.best.values.get(m, float("nan"))) for m in recipe.measures]
    # The p-value of the subset itself, as in all rows; the notes have that of the search.
    p_values = [p_text(search.naive_p_value), *("" for _ in recipe.measures[1:])]
    models = search.best.members
    texts = [text for pair in zip(cells, p_values, strict=True) for text in pair]
    return [("Best of search", short_form(models), *texts, _mark(results, models))]


def _mark(results: Results, models: Sequence[str]) -> str:
    return CHOSEN if set(models) == set(results.selection.chosen) else ""


def final_table(results: Results) -> Table | None:
    """Return Table 4: the final models and the ensemble; None if they were measured nowhere."""
    if not results.outcomes:
        return None
    measures = results.recipe.measures
    columns = ["Model"]
    cells: dict[str, list[str]] = {}
    for place, outcome in results.outcomes.items():
        columns += _with_p(measures, f"{place} ")
        for name, texts in means_and_p(outcome.members, ENSEMBLE, measures).items():
            cells.setdefault(name, []).extend(texts)
    best = results.selection.best_member
    rows = tuple((name, *texts, BEST if name == best else "") for name, texts in cells.items())
    return Table("Final models; p against the ensemble", (*columns, ""), rows)


def p_values_tables(comparison: EnsembleComparison, pairs: Comparison | None) -> list[Table]:
    """Return the p-values between every two systems, by measure."""
    if pairs is None:
        return []
    return [_p_values_table(comparison, pairs, measure) for measure in pairs.measures]


def _p_values_table(comparison: EnsembleComparison, pairs: Comparison, measure: str) -> Table:
    systems, p_values = pairs.systems, pairs.p_values[measure].tolist()
    # Below the diagonal: every pair once.
    rows = tuple(
        (systems[i], *(p_text(p_values[i][j]) if j < i else "" for j in range(len(systems) - 1)))
        for i in range(1, len(systems))
    )
    n_pairs = len(systems) * (len(systems) - 1) // 2
    corrected = f" with Holm's correction for {n_pairs:,} pairs" if n_pairs > 1 else ""
    title = f"p-values by {measure} on {comparison.place}{corrected}"
    return Table(title, ("", *systems[:-1]), rows)


def oracle_table(results: Results, comparison: EnsembleComparison) -> Table:
    """Return the means of an oracle, which takes the best member for every query."""
    measures = results.recipe.measures
    oracle = oracle_of(comparison, measures)
    rows = (
        (comparison.best, *mean_texts(comparison.members[comparison.best], measures)),
        (comparison.title, *mean_texts(comparison.ensemble, measures)),
        (ORACLE, *(number_text(oracle.get(measure, float("nan"))) for measure in measures)),
    )
    title = f"The best member chosen for every query after the fact, on {comparison.place}"
    return Table(title, ("", *measures), rows)


def oracle_of(comparison: EnsembleComparison, measures: Sequence[str]) -> dict[str, float]:
    """Return the mean of the best member for every query, by measure."""
    pairs = comparison_of(comparison.members, measures)
    # A single member is its own oracle.
    return comparison.members[comparison.best].mean if pairs is None else pairs.oracle


def per_query_csv(evaluations: Mapping[str, Evaluation]) -> str:
    """Return one line per query: its id, then every model's value of every measure.

    A value is empty where the query does not count.

    Examples
    --------
    >>> import numpy as np
    >>> evaluation = Evaluation(np.array(["7", "8"]), {"ERR": np.array([0.25, np.nan])})
    >>> print(per_query_csv({"M1": evaluation}), end="")
    qid,M1 ERR
    7,0.25
    8,
    """
    columns = [
        (f"{name} {measure}", values.tolist())
        for name, evaluation in evaluations.items()
        for measure, values in evaluation.per_query.items()
    ]
    qids = next(iter(evaluations.values())).qids.tolist() if evaluations else []
    rows = (
        [qid, *(None if values[k] != values[k] else values[k] for _, values in columns)]
        for k, qid in enumerate(qids)
    )
    return csv_text(["qid", *(name for name, _ in columns)], rows)


def _queries(evaluations: Mapping[str, Evaluation]) -> str:
    """Return the number of queries that systems were measured on."""
    n_queries = len(next(iter(evaluations.values())).qids) if evaluations else 0
    return counted(n_queries, "query", "queries")


def _tests(
    results: Results, comparison: EnsembleComparison, pairs: Comparison | None
) -> dict[str, Any]:
    """Return p-values and the oracle, as JSON can hold them."""
    selection, measures = results.selection, results.recipe.measures
    return {
        "p_values": {
            "members": p_against(selection.members, selection.best_member, measures),
            "subsets": p_against(selection.subsets, results.whole, measures),
            "final": {
                name: p_against(outcome.members, ENSEMBLE, measures)
                for name, outcome in results.outcomes.items()
            },
            "pairs": {} if pairs is None else _pairs(pairs),
        },
        "search": None if selection.search is None else _search(selection.search),
        "compared_on": comparison.name,
        "oracle": without_nan(oracle_of(comparison, measures)),
    }


def _search(search: SubsetSearch) -> dict[str, Any]:
    return {
        "method": search.method,
        "subsets": len(search.table),
        "best": list(search.best.members),
        "gain": search.gain,
        "p": search.p_value,
        "naive_gain": search.naive_gain,
        "naive_p": search.naive_p_value,
    }


def _pairs(pairs: Comparison) -> dict[str, Any]:
    return {
        measure: {
            "systems": list(pairs.systems),
            "p": pairs.uncorrected[measure].tolist(),
            "corrected_p": pairs.p_values[measure].tolist(),
        }
        for measure in pairs.measures
    }
