"""Members made one: what every subset's average is worth, and the combination that is chosen."""

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
# Of the net that combines; Ensemble does not tell how many units its had.
HIDDEN = 10

EVERY, GREEDY, NO_SEARCH = "every", "greedy", "none"
FEWEST = 2
# Up to so many members every subset is measured unless somebody asks for it: 4,095 of them.
MOST_BY_ITSELF = 12
MOST_EXHAUSTIVE = 24


@dataclass(frozen=True)
class Plan:
    """How members are to be combined.

    Attributes
    ----------
    measures
        What is computed; the first decides.
    method
        One of `METHODS`: `Average`, `BestMix`, `Interpolation`, or `Stacked` with a linear net or
        one of two layers.
    tree
        Which members a best mix joins first; see `BestMix`.
    subsets
        Whether subsets to average are searched: ``"every"``, ``"greedy"`` (members are added one
        by one, and taken one by one) or ``"none"``. If None, an average looks at every subset of up
        to 12 members and is greedy with more, and other methods take all members.
    level
        Below which p-value a subset is better than all members.
    seed
        Of the search's halves of queries, and of nets.
    """

    measures: Sequence[Measure]
    method: str = AVERAGE
    tree: str | None = None
    subsets: str | None = None
    level: float = 0.05
    seed: int = 0

    def check(self, names: Sequence[str]) -> None:
        """Refuse what cannot be meant for these members."""
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
                f"{owner}: {len(names)} members have too many subsets to measure every one; the "
                f"most are {MOST_EXHAUSTIVE} members; let the search be {GREEDY}"
            )

    def most_exhaustive(self) -> int | None:
        """Return up to how many members every subset is measured; None if nothing is searched."""
        if self.method != AVERAGE or self.subsets == NO_SEARCH:
            return None
        return {EVERY: MOST_EXHAUSTIVE, GREEDY: 1, None: MOST_BY_ITSELF}[self.subsets]

    def new(self, members: Mapping[str, Ranker] | None) -> Any:
        """Return the combination, unfitted."""
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
class Applied:
    """What members and combinations are worth on one data set.

    Attributes
    ----------
    members
        The evaluation of every member, by name.
    average, chosen
        Those of the average of all members, and of the combination that was chosen.
    scores
        The scores of the latter.
    """

    members: Mapping[str, Evaluation]
    average: Evaluation
    chosen: Evaluation
    scores: Floats

    def against_average(self, found: Evaluation) -> tuple[float, float]:
        """Return the gain over the average of all members, and the p-value, by measure one."""
        first = next(iter(found.per_query))
        return gain_and_p(found.per_query[first], self.average.per_query[first])


@dataclass(frozen=True)
class Combined:
    """Members, made one.

    Attributes
    ----------
    plan
        How it was done.
    names
        What all members are called.
    search
        What the search for a subset found, if there was one.
    chosen
        The members that were taken.
    combination
        The combination of these, fitted; its members are rankers if all were known.
    average
        The average of all members, fitted.
    applied
        What all are worth on the data that they were fitted to.
    """

    plan: Plan
    names: tuple[str, ...]
    search: SubsetSearch | None
    chosen: tuple[str, ...]
    combination: Ensemble
    average: Average
    applied: Applied

    @property
    def table(self) -> tuple[Subset, ...]:
        """Every subset whose average was measured, the best first; or members, and all of them."""
        if self.search is not None:
            return self.search.table
        singles = [Subset((name,), one.mean) for name, one in self.applied.members.items()]
        return (*singles, Subset(self.names, self.applied.average.mean))

    def apply(self, rows: Mapping[str, Floats], data: RankingData) -> Applied:
        """Evaluate the members, their average and the combination on other data.

        Parameters
        ----------
        rows
            The scores of all members for the data, by name.
        data
            The data set.
        """
        return _apply(self.average, self.combination, rows, data, self.plan.measures)


def combine_members(
    rankers: Mapping[str, Ranker | None],
    rows: Mapping[str, Floats],
    data: RankingData,
    plan: Plan,
    *,
    progress: Progress | None = None,
) -> Combined:
    """Combine members as planned, and measure them and the combinations.

    Parameters
    ----------
    rankers
        The members by name; None where only scores are known.
    rows
        Their scores for the data, by name.
    data
        Queries with labels that the members were not trained on.
    plan
        How to combine them.
    progress
        Who wants to know how far it is.
    """
    names = tuple(rows)
    plan.check(names)
    watcher = progress or Silent()
    search = _search(rows, data, plan, watcher)
    chosen = names if search is None else search.chosen
    combination = _fit({name: rankers[name] for name in chosen}, rows, data, plan, watcher)
    average = Average().fit(data, member_scores=rows)
    applied = _apply(average, combination, rows, data, plan.measures)
    return Combined(plan, names, search, chosen, combination, average, applied)


def _search(
    rows: Mapping[str, Floats], data: RankingData, plan: Plan, progress: Progress
) -> SubsetSearch | None:
    most = plan.most_exhaustive()
    if most is None:
        return None
    return best_subset(
        rows,
        data,
        plan.measures,
        most_exhaustive=most,
        level=plan.level,
        seed=plan.seed,
        progress=progress,
    )


def _fit(
    chosen: Mapping[str, Ranker | None],
    rows: Mapping[str, Floats],
    data: RankingData,
    plan: Plan,
    progress: Progress,
) -> Ensemble:
    """Fit the combination; rankers that can be asked later are kept inside, if all can."""
    known = {name: one for name, one in chosen.items() if one is not None}
    options: dict[str, Any] = {}
    if len(known) < len(chosen):
        options["member_scores"] = {name: rows[name] for name in chosen}
    if plan.method in (LINEAR, TWO_LAYER):
        options["progress"] = progress
    combination = plan.new(known if len(known) == len(chosen) else None)
    fitted: Ensemble = combination.fit(data, **options)
    return fitted


def _apply(
    average: Average,
    combination: Ensemble,
    rows: Mapping[str, Floats],
    data: RankingData,
    measures: Sequence[Measure],
) -> Applied:
    given = None
    if combination.members is None:
        given = {name: rows[name] for name in combination.member_names_}
    scores = combination.predict(data, member_scores=given)
    systems = [*rows.values(), average.predict(data, member_scores=rows), scores]
    *members, of_average, of_chosen = evaluate_all(systems, data, measures, drop_single_label=False)
    return Applied(dict(zip(rows, members, strict=True)), of_average, of_chosen, scores)
