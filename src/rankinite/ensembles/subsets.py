"""Search for the best subset of members to average, with a test on held-out queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankinite.core.errors import UsageError
from rankinite.core.format import refuse_text, some_of
from rankinite.core.params import Real, Whole, check
from rankinite.core.progress import Progress, ProgressBar, Silent
from rankinite.core.types import Floats, Integers
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData
from rankinite.data.splits import split_queries
from rankinite.ensembles.members import (
    Scaling,
    fitted_members,
    member_scorer,
    scores_by_name,
    weighted_sum,
)
from rankinite.measures.scorer import mean_of_counted
from rankinite.measures.text import MeasureLike, parse_measures
from rankinite.rankers.ranker import Ranker
from rankinite.stats.paired_tests import gain_and_p

# Members of a subset, by number from 0.
Numbers = tuple[int, ...]

# Returns the best subset on a part of the queries: 0 is all of them, 1 and 2 are the halves.
Search = Callable[[int], Numbers]

EVERY, GREEDY, GIVEN = "every subset", "forward and backward", "given subsets"
OWNER = "best_subset"
# Relative difference of means below which they are equal but for rounding.
ROUNDING = 2.0**-46


@dataclass(frozen=True)
class Subset:
    """Some of the members, and the measures of their average.

    Attributes
    ----------
    members
        Names of the members.
    values
        Mean of each measure, by its text.
    """

    members: tuple[str, ...]
    values: Mapping[str, float]


@dataclass(frozen=True)
class SubsetSearch:
    """Result of a search for the best subset.

    Attributes
    ----------
    chosen
        Members to use: `best` if it is better than all members by the held-out test, otherwise
        all.
    best, full
        Subset with the largest mean of the first measure, and all members.
    table
        Every subset that was measured, the best first.
    p_value, gain
        The held-out test. Queries are split into two halves; the best subset of each half is
        compared with all members on the other half. These are the two-sided p-value of the paired
        t-test over all queries, and the mean difference.
    naive_p_value, naive_gain
        The same for `best` on the queries that it was chosen by. The gain is never negative and
        the p-value too small, because among many subsets some look good by chance.
    method
        "every subset", "forward and backward" or "given subsets".
    level
        Significance level.
    """

    chosen: tuple[str, ...]
    best: Subset
    full: Subset
    table: tuple[Subset, ...]
    p_value: float
    gain: float
    naive_p_value: float
    naive_gain: float
    method: str
    level: float

    def __str__(self) -> str:
        measure, value = next(iter(self.best.values.items()))
        took = "the best subset" if self.chosen != self.full.members else "all members"
        return (
            f"{len(self.table):,} subsets ({self.method}); best by {measure}: "
            f"{', '.join(self.best.members)} at {value:.4f}, all members "
            f"{self.full.values[measure]:.4f}; held out, the difference is {self.gain:+.4f} with "
            f"p = {self.p_value:.3g} (on the queries chosen by: {self.naive_gain:+.4f}, "
            f"p = {self.naive_p_value:.3g}); chosen: {took}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        names = ("p_value", "gain", "naive_p_value", "naive_gain", "method", "level")
        return {
            "best": list(self.best.members),
            **{name: getattr(self, name) for name in names},
            "subsets": [
                {"members": list(subset.members), "values": dict(subset.values)}
                for subset in self.table
            ],
        }


def best_subset(
    members: Any,
    data: RankingData,
    measure: MeasureLike | Iterable[MeasureLike] = "NDCG@10",
    *,
    candidates: Iterable[Sequence[str]] | None = None,
    most_exhaustive: int = 15,
    level: float = 0.05,
    seed: int = 0,
    progress: Progress | None = None,
) -> SubsetSearch:
    """Search for the subset of members whose average of standardised scores is best.

    The largest of many means is partly luck. Therefore a subset is chosen only if the search on
    one half of the queries finds subsets that are better than all members on the other half.

    Parameters
    ----------
    members
        Fitted rankers, as a list or by name; or their scores for the data, by name or one row
        per member.
    data
        Validation set that the members were not fitted to.
    measure
        One measure or several, of which the first decides.
    candidates
        Subsets to choose from, as names of members; only these and all members are measured. Any
        subset if None.
    most_exhaustive
        Largest number of members of which every subset is measured. With more, the search is
        greedy: forward from no members and backward from all, one member at a time, and the best
        subset on both paths wins.
    level
        Significance level at which a subset is better than all members.
    seed
        Seed of the halves of the queries.
    progress
        Progress reporter.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.RankingData([[0.0], [1.0]] * 2, [0, 1, 1, 0], [1, 1, 2, 2])
    >>> search = best_subset({"good": [0, 1, 1, 0], "bad": [9, 0, 1, 2]}, data, "NDCG")
    >>> search.best.members, search.chosen
    (('good',), ('good', 'bad'))
    """
    checks.require_data_set(OWNER, data)
    # 2^24 are 16.8 million subsets, each of which is measured on all queries.
    check(OWNER, "most_exhaustive", most_exhaustive, Whole(1, 24))
    check(OWNER, "level", level, Real(0, 1))
    names, scaled = _scaled_scores(members, data)
    means = _SubsetMeans(names, scaled, data, measure, _halves(data, seed))
    progress = progress or Silent()
    if candidates is not None:
        method = GIVEN
        subsets = list(dict.fromkeys([*_numbers(names, candidates), means.full]))
        search = _exhaustive(means, ((s, None) for s in subsets), len(subsets), progress)
    elif len(names) <= most_exhaustive:
        method = EVERY
        search = _exhaustive(means, _averages(means.scaled), 2 ** len(names) - 1, progress)
    else:
        method, search = GREEDY, _greedy(means, progress)
    best = search(0)
    held_out = _held_out(means, search)
    gain, p_value = gain_and_p(held_out, means.per_query(means.full))
    naive_gain, naive_p_value = gain_and_p(means.per_query(best), means.per_query(means.full))
    # The test is two-sided, and significantly worse is not better.
    better = best if p_value < level and gain > 0 else means.full
    return SubsetSearch(
        chosen=means.subset(better).members,
        best=means.subset(best),
        full=means.subset(means.full),
        table=_table(means),
        p_value=p_value,
        gain=gain,
        naive_p_value=naive_p_value,
        naive_gain=naive_gain,
        method=method,
        level=float(level),
    )


def _held_out(means: _SubsetMeans, search: Search) -> Floats:
    """Return for each query the measure of the subset that was chosen by the other half."""
    values = means.per_query(means.full)
    _, first, second = means.parts
    # Without a query that counts in each half nothing is held out: the gain is 0 and p is 1.
    if first.any() and second.any():
        chosen = [means.per_query(search(part)) for part in (1, 2)]
        # Crosswise: what one half has chosen is measured on the other.
        values[second], values[first] = chosen[0][second], chosen[1][first]
    return values


def _table(means: _SubsetMeans) -> tuple[Subset, ...]:
    """Return all subsets that were measured, the best first."""
    order = sorted(means.by_subset, key=lambda s: (-means.first_means[s][0], len(s), s))
    return tuple(means.subset(numbers) for numbers in order)


def _scaled_scores(members: Any, data: RankingData) -> tuple[tuple[str, ...], Floats]:
    """Return the names of the members and their standardised scores."""
    values = list(members.values()) if isinstance(members, Mapping) else members
    if isinstance(values, (list, tuple)) and any(isinstance(value, Ranker) for value in values):
        rankers = fitted_members(OWNER, members)
        rows = {name: ranker.predict(data) for name, ranker in rankers.items()}
    else:
        rows = scores_by_name(OWNER, members, data.n_docs)
    scores = np.stack(list(rows.values()))
    return tuple(rows), Scaling.fit(scores).apply(OWNER, list(rows), scores)


def _halves(data: RankingData, seed: int) -> Integers:
    """Return the half of each query, 0 or 1; samples are in the half of their query."""
    half = np.zeros(data.n_queries, np.int64)
    # One query alone cannot be split; it stays in the first half, and there is no test.
    if data.origins.max() > 0:
        # Samples of a query stay together: apart, the search would be tested on what it has seen.
        half[split_queries(data.qids, 2, seed)[1]] = 1
    return half


class _SubsetMeans:
    """Measures of subsets, each computed once; a subset is the numbers of its members."""

    def __init__(
        self,
        names: tuple[str, ...],
        scaled: Floats,
        data: RankingData,
        measure: MeasureLike | Iterable[MeasureLike],
        half: Integers,
    ) -> None:
        self.names = names
        self.scaled = scaled
        self.measures = parse_measures(measure)
        self._scorer = member_scorer(OWNER, data, self.measures)
        self.full = tuple(range(len(names)))
        # Which queries count does not depend on the scores.
        counted = ~np.isnan(self.per_query(self.full))
        self.parts = [counted, counted & (half == 0), counted & (half == 1)]
        self.by_subset: dict[Numbers, list[float]] = {}
        self.first_means: dict[Numbers, list[float]] = {}

    def per_query(self, subset: Numbers) -> Floats:
        """Return the first measure of a subset for each query."""
        first: Floats = self._scorer.per_query(self._average(subset))[0]
        return first

    def _average(self, subset: Numbers) -> Floats:
        return weighted_sum(self.scaled[list(subset)], np.ones(len(subset)))

    def add(self, subset: Numbers, average: Floats | None = None) -> None:
        """Measure a subset unless that was done before."""
        if subset in self.by_subset:
            return
        scores = self._average(subset) if average is None else average
        values = self._scorer.per_query(scores)
        self.by_subset[subset] = [mean_of_counted(row) for row in values]
        self.first_means[subset] = [
            float(values[0, part].mean()) if part.any() else 0.0 for part in self.parts
        ]

    def best(self, subsets: Iterable[Numbers], part: int) -> Numbers:
        """Return the subset with the largest mean on a part of the queries.

        Ties within rounding are broken in favour of all members, then of fewer members.
        """
        values = {subset: self.first_means[subset][part] for subset in subsets}
        largest = max(values.values())
        # Sums in another order differ in the last bits, which must not decide between subsets.
        near = [s for s, value in values.items() if value >= largest - ROUNDING * abs(largest)]
        return self.full if self.full in near else min(near, key=lambda s: (len(s), s))

    def subset(self, numbers: Numbers) -> Subset:
        """Return a subset with the names of its members."""
        texts = [str(measure) for measure in self.measures]
        values = dict(zip(texts, self.by_subset[numbers], strict=True))
        return Subset(tuple(self.names[k] for k in numbers), values)


def _numbers(names: Sequence[str], candidates: Iterable[Sequence[str]]) -> list[Numbers]:
    """Return the candidates, each once, as numbers of their members."""
    refuse_text(OWNER, "candidates", candidates)
    place = {name: k for k, name in enumerate(names)}
    subsets: dict[Numbers, None] = {}
    for subset in candidates:
        refuse_text(OWNER, "a subset of candidates", subset)
        unknown = [name for name in subset if name not in place]
        if unknown or not subset or len(set(subset)) < len(subset):
            problem = f"the members are {some_of(names)}" if unknown else "expected some, each once"
            raise UsageError(f"{OWNER}: candidates has the subset {tuple(subset)}; {problem}")
        # Sorted: a subset is the same in any order, and sums in one order have the same bits.
        subsets[tuple(sorted(place[name] for name in subset))] = None
    return list(subsets)


def _exhaustive(
    means: _SubsetMeans,
    subsets: Iterable[tuple[Numbers, Floats | None]],
    n_subsets: int,
    progress: Progress,
) -> Search:
    """Measure subsets, whose averages may be known; the search is over all of them."""
    with progress.start("subsets", n_subsets, "subsets") as bar:
        for subset, average in subsets:
            means.add(subset, average)
            bar.advance(1)
    measured = list(means.by_subset)
    return lambda part: means.best(measured, part)


def _averages(scaled: Floats) -> Iterator[tuple[Numbers, Floats]]:
    """Iterate over all subsets with the sums of their scores; a sum is valid until the next one.

    Sums over the first members are kept and the last members change fastest, which takes two
    additions per subset, and gives each sum the same bits as `Average`.
    """
    n = len(scaled)
    sums = np.zeros((n + 1, scaled.shape[1]))
    for count in range(1, 2**n):
        first = n - (count ^ (count - 1)).bit_length()
        for k in range(first, n):
            if count >> (n - 1 - k) & 1:
                np.add(sums[k], scaled[k], out=sums[k + 1])
            else:
                sums[k + 1] = sums[k]
        yield tuple(k for k in range(n) if count >> (n - 1 - k) & 1), sums[n]


def _greedy(means: _SubsetMeans, progress: Progress) -> Search:
    with progress.start("subsets", None, "subsets") as bar:
        # The greedy path depends on the queries, so each half has a path of its own.
        best_by_part = [_both_ways(means, part, bar) for part in range(len(means.parts))]
    return best_by_part.__getitem__


def _both_ways(means: _SubsetMeans, part: int, bar: ProgressBar) -> Numbers:
    """Return the best of the subsets on the path from none to all members, and back."""
    means.add(means.full)
    path = [means.full]
    for start, larger in (((), True), (means.full, False)):
        current: Numbers = start
        # One step fewer than there are members: all of them are measured already.
        for _ in means.full[1:]:
            steps = _steps(current, means.full, larger)
            for subset in steps:
                means.add(subset)
                bar.advance(1)
            current = means.best(steps, part)
            path.append(current)
    return means.best(path, part)


def _steps(subset: Numbers, full: Numbers, larger: bool) -> list[Numbers]:
    """Return the subsets with one member more, or one fewer."""
    if larger:
        return [tuple(sorted({*subset, k})) for k in full if k not in subset]
    return [tuple(k for k in subset if k != out) for out in subset]
