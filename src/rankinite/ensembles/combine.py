"""Combine members into an ensemble, and compare it with the members and their average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.core.params import OneOf, Real, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.average import Average
from rankinite.ensembles.best_mix import BestMix, parse_mix_tree
from rankinite.ensembles.ensemble import Ensemble
from rankinite.ensembles.interpolation import Interpolation
from rankinite.ensembles.stacked import Stacked
from rankinite.ensembles.subsets import Subset, SubsetSearch, best_subset
from rankinite.evaluation.evaluate import Evaluation, evaluate_all
from rankinite.measures.measure import Measure
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.ranker import Ranker
from rankinite.stats.paired_tests import gain_and_p

AVERAGE, BEST_MIX, INTERPOLATION = "average", "best-mix", "interpolation"
LINEAR, TWO_LAYER = "linear", "two-layer"
METHODS = (AVERAGE, BEST_MIX, INTERPOLATION, LINEAR, TWO_LAYER)
# Hidden units of the net that combines; Ensemble does not report how many its net had.
HIDDEN = 10

EVERY, GREEDY, NO_SEARCH = "every", "greedy", "none"
FEWEST = 2
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

    def most_exhaustive(self) -> int | None:
        """Return the most members of which every subset is measured; None without a search."""
        if self.method != AVERAGE or self.subsets == NO_SEARCH:
            return None
        return {EVERY: MOST_EXHAUSTIVE, GREEDY: 1, None: MOST_BY_DEFAULT}[self.subsets]

    def new_ensemble(self, members: Mapping[str, Ranker] | None) -> Any:
        """Return the unfitted ensemble."""
        measure = self.measures[0]
        if self.method == AVERAGE:
            return Average(members)
        if self.method == BEST_MIX:
            return BestMix(members, tree=self.tree, measure=measure)
        if self.method == INTERPOLATION:
            return Interpolation(members, measure=measure)
        hidden = HIDDEN if self.method == TWO_LAYER else 0
        ranker = LambdaRank(str(measure), hidden=hidden, random_state=self.seed)
        return Stacked(members, ranker=ranker)


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

    def against_average(self, evaluation: Evaluation) -> tuple[float, float]:
        """Return the gain in the first measure over the average of all members, and its p-value."""
        first = next(iter(evaluation.per_query))
        return gain_and_p(evaluation.per_query[first], self.average.per_query[first])


@dataclass(frozen=True)
class CombineResult:
    """Result of `combine_members`.

    Attributes
    ----------
    options
        The options.
    names
        Names of all members.
    search
        Result of the search for a subset, if there was one.
    chosen
        Names of the members of the ensemble.
    ensemble
        The fitted ensemble; its members are rankers if all rankers were known.
    average
        The fitted average of all members.
    evaluation
        Evaluations on the data that the ensembles were fitted to.
    """

    options: CombineOptions
    names: tuple[str, ...]
    search: SubsetSearch | None
    chosen: tuple[str, ...]
    ensemble: Ensemble
    average: Average
    evaluation: EnsembleEvaluation

    @property
    def table(self) -> tuple[Subset, ...]:
        """Measured subsets, the best first; without a search, each member alone and all."""
        if self.search is not None:
            return self.search.table
        members = self.evaluation.members.items()
        singles = [Subset((name,), evaluation.mean) for name, evaluation in members]
        return (*singles, Subset(self.names, self.evaluation.average.mean))

    def evaluate(self, rows: Mapping[str, Floats], data: RankingData) -> EnsembleEvaluation:
        """Evaluate the members, their average and the ensemble on other data.

        Parameters
        ----------
        rows
            Scores of all members for the data, by name.
        data
            The data set.
        """
        return _evaluate(self.average, self.ensemble, rows, data, self.options.measures)


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
    names = tuple(rows)
    options.check(names)
    progress = progress or Silent()
    search = _search(rows, data, options, progress)
    chosen = names if search is None else search.chosen
    ensemble = _fit({name: rankers[name] for name in chosen}, rows, data, options, progress)
    average = Average().fit(data, member_scores=rows)
    evaluation = _evaluate(average, ensemble, rows, data, options.measures)
    return CombineResult(options, names, search, chosen, ensemble, average, evaluation)


def _search(
    rows: Mapping[str, Floats], data: RankingData, options: CombineOptions, progress: Progress
) -> SubsetSearch | None:
    most = options.most_exhaustive()
    if most is None:
        return None
    return best_subset(
        rows,
        data,
        options.measures,
        most_exhaustive=most,
        level=options.level,
        seed=options.seed,
        progress=progress,
    )


def _fit(
    chosen: Mapping[str, Ranker | None],
    rows: Mapping[str, Floats],
    data: RankingData,
    options: CombineOptions,
    progress: Progress,
) -> Ensemble:
    """Fit the ensemble; it contains the rankers if all of them are known."""
    known = {name: ranker for name, ranker in chosen.items() if ranker is not None}
    arguments: dict[str, Any] = {}
    if len(known) < len(chosen):
        arguments["member_scores"] = {name: rows[name] for name in chosen}
    if options.method in (LINEAR, TWO_LAYER):
        arguments["progress"] = progress
    ensemble = options.new_ensemble(known if len(known) == len(chosen) else None)
    fitted: Ensemble = ensemble.fit(data, **arguments)
    return fitted


def _evaluate(
    average: Average,
    ensemble: Ensemble,
    rows: Mapping[str, Floats],
    data: RankingData,
    measures: Sequence[Measure],
) -> EnsembleEvaluation:
    member_scores = None
    if ensemble.members is None:
        member_scores = {name: rows[name] for name in ensemble.member_names_}
    scores = ensemble.predict(data, member_scores=member_scores)
    systems = [*rows.values(), average.predict(data, member_scores=rows), scores]
    *members, of_average, of_chosen = evaluate_all(systems, data, measures, drop_single_label=False)
    by_name = dict(zip(rows, members, strict=True))
    return EnsembleEvaluation(by_name, of_average, of_chosen, scores)
