"""``rankinite combine`` without the command line: members become an ensemble, and its tables.

`combine_members` chooses the members, fits an ensemble of them, and measures it beside the members
and the average of all of them, which every other ensemble has to beat. `summary_of` and `to_csv`
write that down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankinite.core.cached import cached_property
from rankinite.core.errors import UsageError
from rankinite.core.format import MISSING
from rankinite.core.params import OneOf, Real, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.average import Average, Interpolation
from rankinite.ensembles.best_mix import BestMix
from rankinite.ensembles.ensemble import Ensemble, LinearEnsemble
from rankinite.ensembles.mix_tree import parse_mix_tree
from rankinite.ensembles.selection import (
    EnsembleEvaluation,
    Selection,
    evaluate_by_name,
    mean_texts,
    means_without_nan,
    select_members,
    without_nan,
)
from rankinite.ensembles.stacked import Stacked, net_of_scores
from rankinite.ensembles.subsets import Subset, SubsetSearch
from rankinite.evaluation.evaluate import Evaluation, evaluate_all
from rankinite.evaluation.tables import Summary, Table, csv_text
from rankinite.measures.measure import Measure
from rankinite.rankers.ranker import Ranker

AVERAGE, BEST_MIX, INTERPOLATION = "average", "best-mix", "interpolation"
LINEAR, TWO_LAYER = "linear", "two-layer"
METHODS = (AVERAGE, BEST_MIX, INTERPOLATION, LINEAR, TWO_LAYER)
# Hidden units of the net that combines; Ensemble does not report how many its net had.
HIDDEN = 10

EVERY, GREEDY, NO_SEARCH = "every", "greedy", "none"
FEWEST = 2
NAME = "combined"
MOST_SHOWN = 10  # subsets in a printed table
# Most members of which every subset is measured by default, 4,095 subsets, and on request.
MOST_BY_DEFAULT = 12
MOST_EXHAUSTIVE = 24


@dataclass(frozen=True)
class CombineOptions:
    """Options of `combine_members`.

    Attributes
    ----------
    measures
        Measures to compute; the first decides.
    method
        One of `METHODS`: `Average`, `BestMix`, `Interpolation`, or `Stacked` with a linear net or
        one of two layers.
    tree
        Tree of a best mix; see `BestMix`.
    subsets
        Search for a subset to average: ``"every"``, ``"greedy"`` (members are added one by one,
        and removed one by one) or ``"none"``. If None, an average searches every subset of up to
        12 members and is greedy with more, and other methods take all members.
    level
        Significance level at which a subset is better than all members.
    seed
        Seed of the search's halves of queries, and of nets.
    """

    measures: Sequence[Measure]
    method: str = AVERAGE
    tree: str | None = None
    subsets: str | None = None
    level: float = 0.05
    seed: int = 0

    @property
    def texts(self) -> tuple[str, ...]:
        """The measures as texts."""
        return tuple(str(measure) for measure in self.measures)

    def check(self, names: Sequence[str]) -> None:
        """Refuse options that are wrong, or wrong for these members."""
        owner = "combine"
        check(owner, "method", self.method, OneOf(METHODS))
        check(owner, "subsets", self.subsets, OneOf([None, EVERY, GREEDY, NO_SEARCH]))
        check(owner, "level", self.level, Real(0, 1))
        if len(names) < FEWEST:
            raise UsageError(
                f"{owner}: {len(names)} member was given; give at least two, model files or files "
                "of scores"
            )
        if self.tree is not None:
            if self.method != BEST_MIX:
                raise UsageError(
                    f"{owner}: a tree is for the method {BEST_MIX}, and the method is {self.method}"
                )
            # Parsed to be refused before data are loaded; `BestMix` will do it once more.
            parse_mix_tree(self.tree, names)
        if self.method != AVERAGE and self.subsets not in (None, NO_SEARCH):
            raise UsageError(
                f"{owner}: subsets are searched for the method {AVERAGE}; {self.method} takes all "
                "members"
            )
        if self.subsets == EVERY and len(names) > MOST_EXHAUSTIVE:
            raise UsageError(
                f"{owner}: {len(names)} members have too many subsets to measure every one; "
                f"expected at most {MOST_EXHAUSTIVE} members; use the {GREEDY} search"
            )

    def search(self, progress: Progress) -> dict[str, Any] | None:
        """Return the options of the search for a subset; None without a search."""
        if self.method != AVERAGE or self.subsets == NO_SEARCH:
            return None
        most = {EVERY: MOST_EXHAUSTIVE, GREEDY: 1, None: MOST_BY_DEFAULT}[self.subsets]
        options = {"level": self.level, "seed": self.seed, "progress": progress}
        return {"most_exhaustive": most, **options}

    def new_ensemble(self, members: Mapping[str, Ranker] | None) -> Any:
        """Return the unfitted ensemble."""
        measure = self.measures[0]
        if self.method == AVERAGE:
            return Average(members)
        if self.method == BEST_MIX:
            return BestMix(members, tree=self.tree, measure=measure)
        if self.method == INTERPOLATION:
            return Interpolation(members, measure=measure)
        # Without hidden units the net is linear: one weight for each member.
        hidden = HIDDEN if self.method == TWO_LAYER else 0
        return Stacked(members, ranker=net_of_scores(str(measure), hidden, self.seed))


@dataclass(frozen=True)
class CombineResult:
    """Result of `combine_members`.

    Attributes
    ----------
    options
        The options.
    selection
        The members on the data that ensembles are fitted to, and those that were chosen.
    ensemble
        The fitted ensemble; its members are rankers if all rankers were known.
    average
        The fitted average of all members.
    """

    options: CombineOptions
    selection: Selection
    ensemble: Ensemble
    average: Average

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all members."""
        return tuple(self.selection.scores)

    @cached_property
    def evaluation(self) -> EnsembleEvaluation:
        """Evaluations on the data that the ensembles were fitted to."""
        return self._evaluate(self.selection.scores, self.selection.data, self.selection.members)

    def evaluate(self, rows: Mapping[str, Floats], data: RankingData) -> EnsembleEvaluation:
        """Evaluate the members, their average and the ensemble on other data.

        Parameters
        ----------
        rows
            Scores of all members for the data, by name.
        data
            The data set.
        """
        members = evaluate_by_name(rows, data, self.options.measures)
        return self._evaluate(rows, data, members)

    def _evaluate(
        self, rows: Mapping[str, Floats], data: RankingData, members: Mapping[str, Evaluation]
    ) -> EnsembleEvaluation:
        # From the scores at hand: an ensemble of rankers would compute them once more.
        scores = self.ensemble.combine(rows, data.qid)
        systems = [self.average.combine(rows, data.qid), scores]
        average, chosen = evaluate_all(
            systems, data, self.options.measures, drop_single_label=False
        )
        return EnsembleEvaluation(members, average, chosen, scores)


def combine_members(
    rankers: Mapping[str, Ranker | None],
    rows: Mapping[str, Floats],
    data: RankingData,
    options: CombineOptions,
    *,
    progress: Progress | None = None,
) -> CombineResult:
    """Combine members into an ensemble, and evaluate them, their average and the ensemble.

    Parameters
    ----------
    rankers
        Members by name; None for a member of which only scores are known.
    rows
        Scores of the members for the data, by name.
    data
        Labelled queries that the members were not trained on.
    options
        How to combine them.
    progress
        Progress reporter.
    """
    options.check(tuple(rows))
    progress = progress or Silent()
    selection = select_members(rows, data, options.measures, {}, options.search(progress))
    ensemble = _fit(
        {name: rankers[name] for name in selection.chosen}, rows, data, options, progress
    )
    return CombineResult(options, selection, ensemble, Average().fit(data, member_scores=rows))


def _fit(
    chosen: Mapping[str, Ranker | None],
    rows: Mapping[str, Floats],
    data: RankingData,
    options: CombineOptions,
    progress: Progress,
) -> Ensemble:
    """Fit the ensemble; it contains the rankers if all of them are known."""
    # With one member known by its scores alone the ensemble cannot predict from features, so that
    # none of its members is kept.
    known = {name: ranker for name, ranker in chosen.items() if ranker is not None}
    arguments: dict[str, Any] = {}
    if len(known) < len(chosen):
        arguments["member_scores"] = {name: rows[name] for name in chosen}
    if options.method in (LINEAR, TWO_LAYER):
        arguments["progress"] = progress
    ensemble = options.new_ensemble(known if len(known) == len(chosen) else None)
    fitted: Ensemble = ensemble.fit(data, **arguments)
    return fitted


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
    sheets, notes = [_members_table(result, kinds)], _choice(result)
    if result.selection.search is not None:
        sheets.append(_subsets_table(result, result.selection.search, most))
    if isinstance(result.ensemble, BestMix):
        sheets.append(_mixes_table(result.ensemble))
    if test is not None:
        sheets.append(_test_table(result, test))
        notes.append(_test_note(test))
    return Summary(NAME, tuple(sheets), tuple(notes), {}, _values(result, kinds, test))


def to_csv(result: CombineResult) -> str:
    """Return all subsets, the best first, and the chosen ensemble as CSV.

    Without a search the subsets are each member alone, and all members.
    """
    method, chosen = result.options.method, result.selection.chosen
    evaluation, search = result.evaluation, result.selection.search
    if search is not None:
        subsets = search.table
    else:
        singles = [Subset((name,), member.mean) for name, member in evaluation.members.items()]
        subsets = (*singles, Subset(result.names, evaluation.average.mean))
    rows = [(AVERAGE, s, method == AVERAGE and s.members == chosen) for s in subsets]
    if method != AVERAGE:
        rows.append((method, Subset(chosen, evaluation.chosen.mean), True))
    texts = result.options.texts
    return csv_text(
        ["method", "members", "n_members", *texts, "chosen"],
        (
            [
                name,
                " + ".join(subset.members),
                len(subset.members),
                *(repr(subset.values[measure]) for measure in texts),
                int(is_chosen),
            ]
            for name, subset, is_chosen in rows
        ),
    )


def _systems(
    result: CombineResult, evaluation: EnsembleEvaluation
) -> Iterator[tuple[str, str, Evaluation]]:
    """Go through the rows of a table: label, name if it is a member, and evaluation."""
    for number, (name, of_member) in enumerate(evaluation.members.items(), 1):
        # Numbers identify members in subsets and trees; some are called by theirs.
        yield name if name == str(number) else f"{number}  {name}", name, of_member
    yield f"average of all {len(result.names)}", "", evaluation.average
    if result.options.method != AVERAGE or result.selection.chosen != result.names:
        label = f"{result.options.method} of {_short(result, result.selection.chosen)}"
        yield label, "", evaluation.chosen


def _members_table(result: CombineResult, kinds: Mapping[str, str]) -> Table:
    weights, texts = _weights(result), result.options.texts
    rows = tuple(
        (
            label,
            kinds.get(name, ""),
            *mean_texts(evaluation, texts),
            *([weights.get(name, "")] if weights else []),
        )
        for label, name, evaluation in _systems(result, result.evaluation)
    )
    n_queries = max(result.evaluation.chosen.n_queries.values())
    columns = ("Ranker", "Kind", *texts, *(["Weight"] if weights else []))
    return Table(f"Means over {n_queries:,} queries", columns, rows)


def _weights(result: CombineResult) -> dict[str, str]:
    """Return the weight of each member as a text; a dash for a member that is not chosen."""
    if not isinstance(result.ensemble, LinearEnsemble):
        return {}
    taken = dict(zip(result.ensemble.member_names_, result.ensemble.weights_, strict=True))
    return {name: f"{taken[name]:.4g}" if name in taken else "-" for name in result.names}


def _short(result: CombineResult, members: Sequence[str]) -> str:
    """Return the numbers of members, or "all" and their number."""
    if len(members) == len(result.names):
        return f"all {len(members)}"
    return _numbers(result, members)


def _numbers(result: CombineResult, members: Sequence[str]) -> str:
    return " ".join(str(result.names.index(name) + 1) for name in members)


def _subsets_table(result: CombineResult, search: SubsetSearch, most: int | None) -> Table:
    shown = list(search.table[:most])
    # All members are what the others are compared with, however far down they are.
    shown += [search.full] if search.full not in shown else []
    texts = result.options.texts
    rows = tuple(
        (
            _numbers(result, subset.members),
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
    marks = {"best": search.best.members, "all": search.full.members, "chosen": search.chosen}
    return ", ".join(mark for mark, members in marks.items() if subset.members == members)


def _mixes_table(mix: BestMix) -> Table:
    rows = tuple((node.text, f"{node.alpha:.4g}", f"{node.value:.4f}") for node in mix.nodes_)
    columns = ("Mix", "Share of the second", str(mix.measure))
    return Table("Members joined two by two, in the best proportion", columns, rows)


def _test_table(result: CombineResult, test: EnsembleEvaluation) -> Table:
    texts = result.options.texts
    rows = tuple(
        (label, *mean_texts(evaluation, texts), _p_text(test, evaluation))
        for label, _, evaluation in _systems(result, test)
    )
    n_queries = max(test.chosen.n_queries.values())
    columns = ("Ranker", *texts, f"p of {texts[0]}")
    return Table(f"Means over {n_queries:,} test queries", columns, rows)


def _p_text(test: EnsembleEvaluation, evaluation: Evaluation) -> str:
    if evaluation is test.average:
        return ""
    gain = test.over_average(evaluation)
    return MISSING if gain is None else f"{gain.p:.3g}"


def _test_note(test: EnsembleEvaluation) -> str:
    # Queries without a relevant document are worth 0 in some measures and skipped in others.
    if not any(value > 0 for value in test.average.mean.values()):
        return "No test query has a relevant document: there are scores, but nothing to measure."
    return "On test queries, p is of the paired t-test against the average of all members."


def _choice(result: CombineResult) -> list[str]:
    """Return sentences about the choice and the evidence for it."""
    search, first = result.selection.search, result.options.texts[0]
    if result.options.method != AVERAGE:
        chosen = f"Chosen: {result.options.method} of all members."
        gain = result.evaluation.over_average(result.evaluation.chosen)
        if gain is None:
            return [chosen]
        return [
            chosen,
            f"By {first} it differs from their average by {gain.mean:+.4f} (paired t-test: p = "
            f"{gain.p:.3g}) on the queries that it was fitted to; on others expect less.",
        ]
    if search is None:
        return ["Chosen: the average of all members, without a search for a subset."]
    if search.best.members == search.full.members:
        return [f"Chosen: the average of all members, which no subset exceeds by {first}."]
    return [
        f"Chosen: the average of {_short(result, search.chosen)}.",
        f"The best subset ({_short(result, search.best.members)}) gains {search.naive_gain:+.4f} "
        f"{first} over all members on the queries that it was chosen by (paired t-test: p = "
        f"{search.naive_p_value:.3g}, which flatters the best of {len(search.table):,}).",
        f"Chosen by one half of the queries and tested on the other, each in turn, subsets gain "
        f"{search.gain:+.4f} (p = {search.p_value:.3g}); this decides, at level {search.level:g}.",
    ]


def _values(
    result: CombineResult, kinds: Mapping[str, str], test: EnsembleEvaluation | None
) -> dict[str, Any]:
    """Return all numbers, as JSON can hold them."""
    evaluation, search = result.evaluation, result.selection.search
    values: dict[str, Any] = {
        "method": result.options.method,
        "measures": list(result.options.texts),
        "members": [
            {"name": name, "kind": kinds[name], "values": without_nan(of_member.mean)}
            for name, of_member in evaluation.members.items()
        ],
        "average": without_nan(evaluation.average.mean),
        "chosen": {
            "members": list(result.selection.chosen),
            "values": without_nan(evaluation.chosen.mean),
        },
        "search": None if search is None else search.as_json(),
    }
    if isinstance(result.ensemble, LinearEnsemble):
        values["chosen"]["weights"] = result.ensemble.weights_.tolist()
    if isinstance(result.ensemble, BestMix):
        values["mixes"] = [dict(vars(node)) for node in result.ensemble.nodes_]
    if test is not None:
        gain = test.over_average(test.chosen)
        values["test"] = {
            "members": means_without_nan(test.members),
            "average": without_nan(test.average.mean),
            "chosen": without_nan(test.chosen.mean),
            "gain": None if gain is None else gain.mean,
            "p_value": None if gain is None else gain.p,
        }
    return values
