"""The tables of a run (Ensemble, Tables 2, 3 and 4), with tests between models."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rankinite.combine.subsets import SubsetSearch
from rankinite.evaluation.comparison import Comparison
from rankinite.evaluation.evaluate import Evaluation
from rankinite.experiments.findings import Findings, Sheet
from rankinite.experiments.recipes.recipe import (
    FINAL_TABLE,
    MEMBERS_TABLE,
    ORACLE_TABLE,
    P_VALUES_TABLE,
    SUBSETS_TABLE,
)
from rankinite.experiments.runs.contest import (
    HELD_OUT,
    PLACES,
    Contest,
    comparison_of,
    contest_of,
    p_against,
)
from rankinite.experiments.runs.notes import notes_of
from rankinite.experiments.runs.results import ENSEMBLE, Results
from rankinite.experiments.runs.texts import means_of, number, p_text, short_form

NAME = "tables"
BEST, CHOSEN = "best member", "chosen"
ORACLE = "oracle"


def tables_of(results: Results) -> Findings:
    """Return the tables that the recipe asks for, and sentences on them."""
    contest = contest_of(results)
    compared = comparison_of(contest.systems, results.recipe.measures)
    makers: Mapping[str, Callable[[], Sheet | None]] = {
        MEMBERS_TABLE: lambda: members_sheet(results),
        SUBSETS_TABLE: lambda: subsets_sheet(results),
        FINAL_TABLE: lambda: final_sheet(results),
        P_VALUES_TABLE: lambda: p_values_sheet(contest, compared),
        ORACLE_TABLE: lambda: oracle_sheet(results, contest),
    }
    found = [makers[name]() for name in results.recipe.tables]
    sheets = tuple(sheet for sheet in found if sheet is not None)
    values = {**results.as_json(), **_tests(results, contest, compared)}
    return Findings(NAME, sheets, tuple(notes_of(results, contest)), {}, values)


def members_sheet(results: Results) -> Sheet:
    """Return Table 2: every model on the held-out parts."""
    selection, recipe = results.selection, results.recipe
    best = selection.best_member
    p_values = p_against(selection.members, best, recipe.measures[0])
    rows = tuple(
        (
            name,
            recipe.models[name].description,
            *means_of(one, recipe.measures),
            p_text(p_values[name]),
            BEST if name == best else "",
        )
        for name, one in selection.members.items()
    )
    queries = _queries(selection.members)
    title = f"Members on {queries} of {PLACES[HELD_OUT]}; p against {best} by {recipe.measures[0]}"
    return Sheet(title, ("Model", "Description", *recipe.measures, "p", ""), rows)


def subsets_sheet(results: Results) -> Sheet | None:
    """Return Table 3: averages on the held-out parts; None if that of all is the only one."""
    recipe, found = results.recipe, results.averages
    searched = _searched_rows(results)
    if not recipe.subsets and not searched:
        return None
    p_values = p_against(found, results.whole, recipe.measures[0])
    rows = [
        (
            name,
            short_form(results.models_of(name)),
            *means_of(one, recipe.measures),
            p_text(p_values[name]),
            _mark(results, results.models_of(name)),
        )
        for name, one in found.items()
    ]
    against = f"p against {results.whole} by {recipe.measures[0]}"
    title = f"Averages on {_queries(results.selection.members)} of {PLACES[HELD_OUT]}; {against}"
    return Sheet(title, ("Subset", "Models", *recipe.measures, "p", ""), (*rows, *searched))


def _searched_rows(results: Results) -> list[tuple[str, ...]]:
    """Return the best subset of a search, if it is none of those that have a name."""
    search, recipe = results.selection.search, results.recipe
    if search is None:
        return []
    if any(set(search.best.members) == set(results.models_of(one)) for one in results.averages):
        return []
    means = [number(search.best.values.get(m, float("nan"))) for m in recipe.measures]
    models = search.best.members
    row = ("Best of search", short_form(models), *means, p_text(search.p_value))
    return [(*row, _mark(results, models))]


def _mark(results: Results, models: Sequence[str]) -> str:
    return CHOSEN if set(models) == set(results.selection.chosen) else ""


def final_sheet(results: Results) -> Sheet | None:
    """Return Table 4: the final models and the ensemble; None if they were measured nowhere."""
    if not results.outcomes:
        return None
    measures = results.recipe.measures
    columns = ["Model"]
    cells: dict[str, list[str]] = {}
    for place, outcome in results.outcomes.items():
        columns += [*(f"{place} {measure}" for measure in measures), f"{place} p"]
        p_values = p_against(outcome.members, ENSEMBLE, measures[0])
        for name, one in outcome.members.items():
            texts = [*means_of(one, measures), p_text(p_values[name])]
            cells.setdefault(name, []).extend(texts)
    best = results.selection.best_member
    rows = tuple((name, *texts, BEST if name == best else "") for name, texts in cells.items())
    title = f"Final models; p against the ensemble by {measures[0]}"
    return Sheet(title, (*columns, ""), rows)


def p_values_sheet(contest: Contest, compared: Comparison | None) -> Sheet | None:
    """Return the p-values between every two systems; None where there is nothing to test."""
    if compared is None:
        return None
    first = compared.measures[0]
    systems, p_values = compared.systems, compared.p_values[first].tolist()
    # Below the diagonal: every pair once.
    rows = tuple(
        (systems[i], *(p_text(p_values[i][j]) if j < i else "" for j in range(len(systems) - 1)))
        for i in range(1, len(systems))
    )
    n_pairs = len(systems) * (len(systems) - 1) // 2
    corrected = f" with Holm's correction for {n_pairs:,} pairs" if n_pairs > 1 else ""
    title = f"p-values by {first} on {contest.place}{corrected}"
    return Sheet(title, ("", *systems[:-1]), rows)


def oracle_sheet(results: Results, contest: Contest) -> Sheet:
    """Return what the best member for every query would reach, were it known before."""
    measures = results.recipe.measures
    oracle = oracle_of(contest, measures)
    rows = (
        (contest.best, *means_of(contest.members[contest.best], measures)),
        (contest.title, *means_of(contest.ensemble, measures)),
        (ORACLE, *(number(oracle.get(measure, float("nan"))) for measure in measures)),
    )
    title = f"The best member chosen for every query after the fact, on {contest.place}"
    return Sheet(title, ("", *measures), rows)


def oracle_of(contest: Contest, measures: Sequence[str]) -> dict[str, float]:
    """Return the mean of whoever picks the best member for every query, by measure."""
    compared = comparison_of(contest.members, measures)
    return contest.members[contest.best].mean if compared is None else compared.oracle


def per_query_csv(evaluations: Mapping[str, Evaluation]) -> str:
    """Return one line a query: its id, then every model's value of every measure.

    A value is empty where the query does not count.

    Examples
    --------
    >>> import numpy as np
    >>> one = Evaluation(np.array(["7", "8"]), {"ERR": np.array([0.25, np.nan])})
    >>> print(per_query_csv({"M1": one}), end="")
    qid,M1 ERR
    7,0.25
    8,
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [
        (f"{name} {measure}", values.tolist())
        for name, one in evaluations.items()
        for measure, values in one.per_query.items()
    ]
    writer.writerow(["qid", *(name for name, _ in columns)])
    qids = next(iter(evaluations.values())).qids.tolist() if evaluations else []
    for k, qid in enumerate(qids):
        cells = (values[k] for _, values in columns)
        writer.writerow([qid, *("" if value != value else repr(value) for value in cells)])
    return text.getvalue()


def _queries(evaluations: Mapping[str, Evaluation]) -> str:
    """Return how many queries systems were measured on, in words."""
    n_queries = len(next(iter(evaluations.values())).qids) if evaluations else 0
    return f"{n_queries:,} {'query' if n_queries == 1 else 'queries'}"


def _tests(results: Results, contest: Contest, compared: Comparison | None) -> dict[str, Any]:
    """Return p-values and the oracle, as JSON can hold them."""
    selection, measures = results.selection, results.recipe.measures
    return {
        "p_values": {
            "members": _all_p_values(selection.members, selection.best_member, measures),
            "subsets": _all_p_values(results.averages, results.whole, measures),
            "final": {
                name: _all_p_values(one.members, ENSEMBLE, measures)
                for name, one in results.outcomes.items()
            },
            "pairs": None if compared is None else _pairs(compared),
        },
        "search": None if selection.search is None else _search(selection.search),
        "compared_on": contest.name,
        "oracle": _without_nan(oracle_of(contest, measures)),
    }


def _without_nan(oracle: Mapping[str, float]) -> dict[str, float | None]:
    """Return means as JSON can hold them."""
    return {measure: None if value != value else value for measure, value in oracle.items()}


def _all_p_values(
    evaluations: Mapping[str, Evaluation], baseline: str, measures: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    found = {measure: p_against(evaluations, baseline, measure) for measure in measures}
    return {name: {m: found[m][name] for m in measures} for name in evaluations}


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


def _pairs(compared: Comparison) -> dict[str, Any]:
    first = compared.measures[0]
    return {
        "measure": first,
        "systems": list(compared.systems),
        "p": compared.uncorrected[first].tolist(),
        "corrected_p": compared.p_values[first].tolist(),
    }
