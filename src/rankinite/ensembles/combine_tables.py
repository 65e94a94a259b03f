"""Tables and sentences about the result of `combine_members`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankinite.ensembles.best_mix import BestMix
from rankinite.ensembles.combine import AVERAGE, CombineResult, EnsembleEvaluation
from rankinite.ensembles.ensemble import LinearEnsemble
from rankinite.ensembles.subsets import Subset, SubsetSearch
from rankinite.evaluation.evaluate import Evaluation
from rankinite.evaluation.tables import Summary, Table, csv_text

NAME = "combined"
MOST_SHOWN = 10  # subsets in a printed table


def summary_of(
    result: CombineResult,
    kinds: Mapping[str, str],
    test: EnsembleEvaluation | None = None,
    *,
    most: int | None = None,
) -> Summary:
    """Return the result as tables and sentences.

    Parameters
    ----------
    result
        The result.
    kinds
        Kind of each member, by name.
    test
        Evaluations on test data.
    most
        Maximum number of subsets to list; all if None.
    """
    sheets = [_members_table(result, kinds)]
    if result.search is not None:
        sheets.append(_subsets_table(result, result.search, most))
    if isinstance(result.ensemble, BestMix):
        sheets.append(_mixes_table(result.ensemble))
    notes = _choice(result)
    if test is not None:
        sheets.append(_test_table(result, test))
        notes += _test_note(result, test)
    return Summary(NAME, tuple(sheets), tuple(notes), {}, _values(result, kinds, test))


def to_csv(result: CombineResult) -> str:
    """Return all subsets and the chosen ensemble as CSV."""
    texts = [str(measure) for measure in result.options.measures]
    is_average = result.options.method == AVERAGE
    rows = [
        _csv_row(AVERAGE, subset, texts, is_average and subset.members == result.chosen)
        for subset in result.table
    ]
    if not is_average:
        chosen = Subset(result.chosen, result.evaluation.chosen.mean)
        rows.append(_csv_row(result.options.method, chosen, texts, True))
    return csv_text(["method", "members", "n_members", *texts, "chosen"], rows)


def _csv_row(method: str, subset: Subset, texts: Sequence[str], taken: bool) -> list[Any]:
    values = (repr(subset.values[measure]) for measure in texts)
    return [method, " + ".join(subset.members), len(subset.members), *values, int(taken)]


def _members_table(result: CombineResult, kinds: Mapping[str, str]) -> Table:
    """Return members with their numbers, which identify them in subsets and trees."""
    weights = _weights(result)
    texts = [str(measure) for measure in result.options.measures]
    evaluated = {
        **{
            _label(k, name): (name, evaluation)
            for k, (name, evaluation) in enumerate(result.evaluation.members.items(), 1)
        },
        f"average of all {len(result.names)}": (None, result.evaluation.average),
    }
    if result.options.method != AVERAGE or result.chosen != result.names:
        evaluated[_title_of_choice(result)] = (None, result.evaluation.chosen)
    rows = tuple(
        (
            label,
            "" if name is None else kinds[name],
            *_cells(evaluation),
            *([weights.get(str(name), "")] if weights else []),
        )
        for label, (name, evaluation) in evaluated.items()
    )
    n_queries = max(result.evaluation.chosen.n_queries.values())
    columns = ("Ranker", "Kind", *texts, *(["Weight"] if weights else []))
    return Table(f"Means over {n_queries:,} queries", columns, rows)


def _label(number: int, name: str) -> str:
    """Return number and name of a member; a number alone if that is its name."""
    return name if name == str(number) else f"{number}  {name}"


def _cells(evaluation: Evaluation) -> list[str]:
    return ["-" if value != value else f"{value:.4f}" for value in evaluation.mean.values()]


def _weights(result: CombineResult) -> dict[str, str]:
    """Return the weight of each member as a text; a dash for a member that is not chosen."""
    if not isinstance(result.ensemble, LinearEnsemble):
        return {}
    taken = dict(zip(result.ensemble.member_names_, result.ensemble.weights_, strict=True))
    return {name: f"{taken[name]:.4g}" if name in taken else "-" for name in result.names}


def _title_of_choice(result: CombineResult) -> str:
    return f"{result.options.method} of {_short(result, result.chosen)}"


def _short(result: CombineResult, members: Sequence[str]) -> str:
    """Return the numbers of members, or "all" and their number."""
    if len(members) == len(result.names):
        return f"all {len(members)}"
    return " ".join(str(result.names.index(name) + 1) for name in members)


def _subsets_table(result: CombineResult, search: SubsetSearch, most: int | None) -> Table:
    shown = list(search.table[:most])
    shown += [search.full] if search.full not in shown else []
    texts = [str(measure) for measure in result.options.measures]
    rows = tuple(
        (
            " ".join(str(result.names.index(name) + 1) for name in subset.members),
            *(f"{subset.values[measure]:.4f}" for measure in texts),
            _mark(search, subset),
        )
        for subset in shown
    )
    n = len(search.table)
    count = "all" if len(shown) == n else f"the best {min(n, most or n):,} of"
    title = f"Averages by {texts[0]}: {count} {n:,} subsets"
    return Table(title, ("Members", *texts, ""), rows)


def _mark(search: SubsetSearch, subset: Subset) -> str:
    marks = {
        "best": subset.members == search.best.members,
        "all": subset.members == search.full.members,
        "chosen": subset.members == search.chosen,
    }
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _mixes_table(mix: BestMix) -> Table:
    rows = tuple((node.text, f"{node.alpha:.4g}", f"{node.value:.4f}") for node in mix.nodes_)
    columns = ("Mix", "Share of the second", str(mix.measure))
    return Table("Members joined two by two, in the best proportion", columns, rows)


def _choice(result: CombineResult) -> list[str]:
    """Return sentences about the choice and the evidence for it."""
    search, first = result.search, str(result.options.measures[0])
    if result.options.method != AVERAGE:
        gain, p = result.evaluation.against_average(result.evaluation.chosen)
        return [
            f"Chosen: {result.options.method} of all members.",
            f"By {first} it differs from their average by {gain:+.4f} (paired t-test: p = {p:.3g}) "
            "on the queries that it was fitted to; on others expect less.",
        ]
    if search is None:
        return ["Chosen: the average of all members, without a search for a subset."]
    if search.best.members == search.full.members:
        return [f"Chosen: the average of all members, which no subset exceeds by {first}."]
    return [f"Chosen: the average of {_short(result, search.chosen)}.", *_tests(result, search)]


def _tests(result: CombineResult, search: SubsetSearch) -> list[str]:
    first = str(result.options.measures[0])
    return [
        f"The best subset ({_short(result, search.best.members)}) gains {search.naive_gain:+.4f} "
        f"{first} over all members on the queries that it was chosen by (paired t-test: p = "
        f"{search.naive_p_value:.3g}, which flatters the best of {len(search.table):,}).",
        f"Chosen by one half of the queries and tested on the other, each in turn, subsets gain "
        f"{search.gain:+.4f} (p = {search.p_value:.3g}); this decides, at level {search.level:g}.",
    ]


def _test_table(result: CombineResult, test: EnsembleEvaluation) -> Table:
    texts = [str(measure) for measure in result.options.measures]
    rows = [
        (_label(k, name), *_cells(evaluation), _p_text(test, evaluation))
        for k, (name, evaluation) in enumerate(test.members.items(), 1)
    ]
    rows.append((f"average of all {len(result.names)}", *_cells(test.average), ""))
    if result.options.method != AVERAGE or result.chosen != result.names:
        cells = (*_cells(test.chosen), _p_text(test, test.chosen))
        rows.append((_title_of_choice(result), *cells))
    n_queries = max(test.chosen.n_queries.values())
    columns = ("Ranker", *texts, f"p of {texts[0]}")
    return Table(f"Means over {n_queries:,} test queries", columns, tuple(rows))


def _p_text(test: EnsembleEvaluation, evaluation: Evaluation) -> str:
    gain, p = test.against_average(evaluation)
    return "-" if gain != gain else f"{p:.3g}"


def _test_note(result: CombineResult, test: EnsembleEvaluation) -> list[str]:
    # Queries without a relevant document are worth 0 in some measures and skipped in others.
    if not any(value > 0 for value in test.average.mean.values()):
        return ["No test query has a relevant document: there are scores, but nothing to measure."]
    return ["On test queries, p is of the paired t-test against the average of all members."]


def _values(
    result: CombineResult, kinds: Mapping[str, str], test: EnsembleEvaluation | None
) -> dict[str, Any]:
    search = result.search
    values: dict[str, Any] = {
        "method": result.options.method,
        "measures": [str(measure) for measure in result.options.measures],
        "members": [
            {"name": name, "kind": kinds[name], "values": _plain(evaluation.mean)}
            for name, evaluation in result.evaluation.members.items()
        ],
        "average": _plain(result.evaluation.average.mean),
        "chosen": {"members": list(result.chosen), "values": _plain(result.evaluation.chosen.mean)},
        "search": None if search is None else _search_values(search),
    }
    if isinstance(result.ensemble, LinearEnsemble):
        values["chosen"]["weights"] = result.ensemble.weights_.tolist()
    if isinstance(result.ensemble, BestMix):
        values["mixes"] = [dict(vars(node)) for node in result.ensemble.nodes_]
    if test is not None:
        gain, p = test.against_average(test.chosen)
        values["test"] = {
            "members": {name: _plain(evaluation.mean) for name, evaluation in test.members.items()},
            "average": _plain(test.average.mean),
            "chosen": _plain(test.chosen.mean),
            "gain": None if gain != gain else gain,
            "p_value": None if gain != gain else p,
        }
    return values


def _search_values(search: SubsetSearch) -> dict[str, Any]:
    names = ("p_value", "gain", "naive_p_value", "naive_gain", "method", "level")
    return {
        "best": list(search.best.members),
        **{name: getattr(search, name) for name in names},
        "subsets": [
            {"members": list(subset.members), "values": dict(subset.values)}
            for subset in search.table
        ],
    }


def _plain(means: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in means.items()}
