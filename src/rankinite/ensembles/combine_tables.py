"""Tables and sentences on a combination of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankinite.ensembles.best_mix import BestMix
from rankinite.ensembles.combine import AVERAGE, Applied, Combined
from rankinite.ensembles.ensemble import LinearEnsemble
from rankinite.ensembles.subsets import Subset, SubsetSearch
from rankinite.evaluation.evaluate import Evaluation
from rankinite.evaluation.summary import Summary
from rankinite.evaluation.tables import Table, csv_text

NAME = "combined"
# Of subsets, in what is printed.
MOST_SHOWN = 10


def summary_of(
    found: Combined,
    kinds: Mapping[str, str],
    test: Applied | None = None,
    *,
    most: int | None = None,
) -> Summary:
    """Return what was found as tables and sentences.

    Parameters
    ----------
    found
        The combination.
    kinds
        What every member is, by name.
    test
        What all are worth on other data.
    most
        How many subsets to list; all if None.
    """
    sheets = [_members_sheet(found, kinds)]
    if found.search is not None:
        sheets.append(_subsets_sheet(found, found.search, most))
    if isinstance(found.combination, BestMix):
        sheets.append(_mixes_sheet(found.combination))
    notes = _choice(found)
    if test is not None:
        sheets.append(_test_sheet(found, test))
        notes += _test_note(found, test)
    return Summary(NAME, tuple(sheets), tuple(notes), {}, _values(found, kinds, test))


def to_csv(found: Combined) -> str:
    """Return all subsets, and the combination that was chosen, as CSV."""
    texts = [str(measure) for measure in found.plan.measures]
    is_average = found.plan.method == AVERAGE
    rows = [
        _csv_row(AVERAGE, subset, texts, is_average and subset.members == found.chosen)
        for subset in found.table
    ]
    if not is_average:
        chosen = Subset(found.chosen, found.applied.chosen.mean)
        rows.append(_csv_row(found.plan.method, chosen, texts, True))
    return csv_text(["method", "members", "n_members", *texts, "chosen"], rows)


def _csv_row(method: str, subset: Subset, texts: Sequence[str], taken: bool) -> list[Any]:
    values = (repr(subset.values[measure]) for measure in texts)
    return [method, " + ".join(subset.members), len(subset.members), *values, int(taken)]


def _members_sheet(found: Combined, kinds: Mapping[str, str]) -> Table:
    """Return members with their numbers, by which subsets and trees name them."""
    weights = _weights(found)
    texts = [str(measure) for measure in found.plan.measures]
    evaluated = {
        **{
            _label(k, name): (name, one)
            for k, (name, one) in enumerate(found.applied.members.items(), 1)
        },
        f"average of all {len(found.names)}": (None, found.applied.average),
    }
    if found.plan.method != AVERAGE or found.chosen != found.names:
        evaluated[_title_of_choice(found)] = (None, found.applied.chosen)
    rows = tuple(
        (
            label,
            "" if name is None else kinds[name],
            *_cells(one),
            *([weights.get(str(name), "")] if weights else []),
        )
        for label, (name, one) in evaluated.items()
    )
    n_queries = max(found.applied.chosen.n_queries.values())
    columns = ("Ranker", "Kind", *texts, *(["Weight"] if weights else []))
    return Table(f"Means over {n_queries:,} queries", columns, rows)


def _label(number: int, name: str) -> str:
    """Return number and name of a member; a number alone if that is its name."""
    return name if name == str(number) else f"{number}  {name}"


def _cells(one: Evaluation) -> list[str]:
    return ["-" if value != value else f"{value:.4f}" for value in one.mean.values()]


def _weights(found: Combined) -> dict[str, str]:
    """Return the weight of every member as a text; a dash for one that is not taken."""
    if not isinstance(found.combination, LinearEnsemble):
        return {}
    taken = dict(zip(found.combination.member_names_, found.combination.weights_, strict=True))
    return {name: f"{taken[name]:.4g}" if name in taken else "-" for name in found.names}


def _title_of_choice(found: Combined) -> str:
    return f"{found.plan.method} of {_short(found, found.chosen)}"


def _short(found: Combined, members: Sequence[str]) -> str:
    """Return the numbers of members; or that they are all."""
    if len(members) == len(found.names):
        return f"all {len(members)}"
    return " ".join(str(found.names.index(name) + 1) for name in members)


def _subsets_sheet(found: Combined, search: SubsetSearch, most: int | None) -> Table:
    shown = list(search.table[:most])
    shown += [search.full] if search.full not in shown else []
    texts = [str(measure) for measure in found.plan.measures]
    rows = tuple(
        (
            " ".join(str(found.names.index(name) + 1) for name in one.members),
            *(f"{one.values[measure]:.4f}" for measure in texts),
            _mark(search, one),
        )
        for one in shown
    )
    n = len(search.table)
    count = "all" if len(shown) == n else f"the best {min(n, most or n):,} of"
    title = f"Averages by {texts[0]}: {count} {n:,} subsets"
    return Table(title, ("Members", *texts, ""), rows)


def _mark(search: SubsetSearch, one: Subset) -> str:
    words = {
        "best": one.members == search.best.members,
        "all": one.members == search.full.members,
        "chosen": one.members == search.chosen,
    }
    return ", ".join(word for word, holds in words.items() if holds)


def _mixes_sheet(mix: BestMix) -> Table:
    rows = tuple((node.text, f"{node.alpha:.4g}", f"{node.value:.4f}") for node in mix.nodes_)
    columns = ("Mix", "Share of the second", str(mix.measure))
    return Table("Members joined two by two, in the best proportion", columns, rows)


def _choice(found: Combined) -> list[str]:
    """Say what was chosen, and how far the data speak for it."""
    search, first = found.search, str(found.plan.measures[0])
    if found.plan.method != AVERAGE:
        gain, p = found.applied.against_average(found.applied.chosen)
        return [
            f"Chosen: {found.plan.method} of all members.",
            f"By {first} it differs from their average by {gain:+.4f} (paired t-test: p = {p:.3g}) "
            "on the queries that it was fitted to; on others expect less.",
        ]
    if search is None:
        return ["Chosen: the average of all members, without a search for a subset."]
    if search.best.members == search.full.members:
        return [f"Chosen: the average of all members, which no subset exceeds by {first}."]
    return [f"Chosen: the average of {_short(found, search.chosen)}.", *_tests(found, search)]


def _tests(found: Combined, search: SubsetSearch) -> list[str]:
    first = str(found.plan.measures[0])
    return [
        f"The best subset ({_short(found, search.best.members)}) gains {search.naive_gain:+.4f} "
        f"{first} over all members on the queries that it was chosen by (paired t-test: p = "
        f"{search.naive_p_value:.3g}, which flatters the best of {len(search.table):,}).",
        f"Chosen by one half of the queries and tested on the other, each in turn, subsets gain "
        f"{search.gain:+.4f} (p = {search.p_value:.3g}); this decides, at level {search.level:g}.",
    ]


def _test_sheet(found: Combined, test: Applied) -> Table:
    texts = [str(measure) for measure in found.plan.measures]
    rows = [
        (_label(k, name), *_cells(one), _p_text(test, one))
        for k, (name, one) in enumerate(test.members.items(), 1)
    ]
    rows.append((f"average of all {len(found.names)}", *_cells(test.average), ""))
    if found.plan.method != AVERAGE or found.chosen != found.names:
        own = (*_cells(test.chosen), _p_text(test, test.chosen))
        rows.append((_title_of_choice(found), *own))
    n_queries = max(test.chosen.n_queries.values())
    columns = ("Ranker", *texts, f"p of {texts[0]}")
    return Table(f"Means over {n_queries:,} test queries", columns, tuple(rows))


def _p_text(test: Applied, one: Evaluation) -> str:
    gain, p = test.against_average(one)
    return "-" if gain != gain else f"{p:.3g}"


def _test_note(found: Combined, test: Applied) -> list[str]:
    # Of queries without a relevant document some measures make 0, and others leave them out.
    if not any(value > 0 for value in test.average.mean.values()):
        return ["No test query has a relevant document: there are scores, but nothing to measure."]
    return ["On test queries, p is of the paired t-test against the average of all members."]


def _values(found: Combined, kinds: Mapping[str, str], test: Applied | None) -> dict[str, Any]:
    search = found.search
    own: dict[str, Any] = {
        "method": found.plan.method,
        "measures": [str(measure) for measure in found.plan.measures],
        "members": [
            {"name": name, "kind": kinds[name], "values": _plain(one.mean)}
            for name, one in found.applied.members.items()
        ],
        "average": _plain(found.applied.average.mean),
        "chosen": {"members": list(found.chosen), "values": _plain(found.applied.chosen.mean)},
        "search": None if search is None else _search_values(search),
    }
    if isinstance(found.combination, LinearEnsemble):
        own["chosen"]["weights"] = found.combination.weights_.tolist()
    if isinstance(found.combination, BestMix):
        own["mixes"] = [dict(vars(node)) for node in found.combination.nodes_]
    if test is not None:
        gain, p = test.against_average(test.chosen)
        own["test"] = {
            "members": {name: _plain(one.mean) for name, one in test.members.items()},
            "average": _plain(test.average.mean),
            "chosen": _plain(test.chosen.mean),
            "gain": None if gain != gain else gain,
            "p_value": None if gain != gain else p,
        }
    return own


def _search_values(search: SubsetSearch) -> dict[str, Any]:
    names = ("p_value", "gain", "naive_p_value", "naive_gain", "method", "level")
    return {
        "best": list(search.best.members),
        **{name: getattr(search, name) for name in names},
        "subsets": [
            {"members": list(one.members), "values": dict(one.values)} for one in search.table
        ],
    }


def _plain(means: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in means.items()}
