"""Compare systems on the same queries, by paired tests and bootstrap intervals."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import SEED, Constraint, OneOf, Real, Whole, check
from rankinite.core.progress import Progress
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.data.scores import check_scores
from rankinite.data.splits import refuse_dependent_queries
from rankinite.evaluation.comparison import TESTS, Comparison, Settings
from rankinite.evaluation.evaluate import (
    Evaluation,
    evaluate_all,
    in_order,
    labelled_queries,
)
from rankinite.measures.text import MeasureLike
from rankinite.stats.bootstrap import Intervals, bootstrap
from rankinite.stats.kendall import kendall_tau
from rankinite.stats.paired_tests import holm_of_pairs, randomisation_test, t_test

log = logging.getLogger("rankinite")

CONSTRAINTS: dict[str, Constraint] = {
    "test": OneOf(list(TESTS)),
    "correction": OneOf(["holm", "none"]),
    "level": Real(0, 1, low_open=True, high_open=True),
    "permutations": Whole(1),
    "resamples": Whole(1),
    "seed": SEED,
}


def compare(
    scores: Mapping[str, ArrayLike],
    data: RankingData | ArrayLike,
    measures: MeasureLike | Iterable[MeasureLike] = ("NDCG@10", "ERR"),
    *,
    qid: ArrayLike | None = None,
    group_sizes: ArrayLike | None = None,
    top_grade: float | None = None,
    test: str = "t",
    correction: str = "holm",
    level: float = 0.05,
    permutations: int = 100_000,
    resamples: int = 10_000,
    seed: int = 0,
    drop_single_label: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Compare systems by their scores on a data set.

    Every two systems are tested query by query, and every mean and every difference of means gets
    a bootstrap interval. The same seed gives the same bytes.

    Parameters
    ----------
    scores
        One finite score a document, by the name of the system; larger is better.
    data
        The data set, without samples of queries, which are not independent; or the labels.
    measures, qid, group_sizes, top_grade, drop_single_label
        As in `evaluate`.
    test
        ``"t"`` for the paired t-test, ``"randomisation"`` for Fisher's randomisation test. Both
        are two-sided.
    correction
        ``"holm"`` corrects p-values for the number of pairs that a measure compares; or
        ``"none"``.
    level
        A difference is significant if its p-value is at most this. Intervals have a coverage of
        1 - level.
    permutations
        Number of sign patterns that the randomisation test draws; it tries all of them if there
        are no more.
    resamples
        Number of bootstrap samples of the queries.
    seed
        Seed of permutations and bootstrap samples.
    progress
        Progress reporter.

    Examples
    --------
    >>> data = RankingData(X=np.zeros((6, 1)), y=[1, 0] * 3, qid=[1, 1, 2, 2, 3, 3], top_grade=1)
    >>> systems = {"good": [1, 0, 1, 0, 1, 0], "bad": [0, 1, 0, 1, 1, 0]}
    >>> print(compare(systems, data, "MRR", test="randomisation"))
    Means over 3 queries
       System     MRR
    a  good    1.0000*
    b  bad     0.6667
       oracle  1.0000
    A letter: significantly better than that system; *: the best mean.
    Fisher's randomisation test, level 0.05.
    """
    settings = checked(
        Settings(test, correction, level, permutations, resamples, seed, bool(drop_single_label))
    )
    names = checked_names(scores)
    data_set, order = labelled_queries("compare", data, qid, group_sizes, top_grade)
    refuse_dependent_queries("compare", data_set.qids)
    rankings = [in_order(_checked_scores(name, scores[name], data_set), order) for name in names]
    evaluations = evaluate_all(rankings, data_set, measures, drop_single_label=drop_single_label)
    comparison = _compare(dict(zip(names, evaluations, strict=True)), settings, progress)
    _log_equal_systems(comparison.systems, comparison.per_query)
    return comparison


def compare_evaluations(
    evaluations: Mapping[str, Evaluation],
    *,
    test: str = "t",
    correction: str = "holm",
    level: float = 0.05,
    permutations: int = 100_000,
    resamples: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare systems from their evaluations, on the same queries by the same measures.

    Parameters
    ----------
    evaluations
        What `evaluate` returned, by the name of the system.
    test, correction, level, permutations, resamples, seed, progress
        As in `compare`.
    """
    settings = checked(Settings(test, correction, level, permutations, resamples, seed))
    checked_names(evaluations)
    _check_alike(evaluations)
    refuse_dependent_queries("compare", next(iter(evaluations.values())).qids)
    return _compare(evaluations, settings, progress)


def _compare(
    evaluations: Mapping[str, Evaluation], settings: Settings, progress: Progress | None
) -> Comparison:
    systems = tuple(evaluations)
    first = evaluations[systems[0]]
    measures = tuple(first.per_query)
    per_query = {m: np.stack([e.per_query[m] for e in evaluations.values()]) for m in measures}
    _check_finite(first.qids, systems, per_query)
    _check_counts(per_query)
    uncorrected, intervals = {}, {}
    # Measures of the same queries share permutations and bootstrap samples: one pass for all.
    for group, values in _groups(per_query):
        p_values = _p_values(values, settings, progress)
        samples = bootstrap(
            values,
            level=1 - settings.level,
            resamples=settings.resamples,
            seed=settings.seed,
            progress=progress,
        )
        for k, measure in enumerate(group):
            uncorrected[measure] = p_values[k]
            intervals[measure] = Intervals(samples.means[k], samples.differences[k])
    # In the order of the measures again, in which files and tables have them.
    uncorrected = {m: uncorrected[m] for m in measures}
    corrected = {m: holm_of_pairs(p) for m, p in uncorrected.items()}
    return Comparison(
        systems=systems,
        measures=measures,
        qids=first.qids,
        per_query=per_query,
        p_values=corrected if settings.correction == "holm" else uncorrected,
        uncorrected=uncorrected,
        intervals={m: intervals[m] for m in measures},
        tau=_tau(per_query),
        settings=settings,
    )


def _p_values(values: Floats, settings: Settings, progress: Progress | None) -> Floats:
    if settings.test == "t":
        return t_test(values)
    return randomisation_test(
        values, permutations=settings.permutations, seed=settings.seed, progress=progress
    )


def _groups(per_query: Mapping[str, Floats]) -> list[tuple[list[str], Floats]]:
    """Group measures for which the same queries count; return each with those queries' values."""
    groups: dict[bytes, list[str]] = {}
    # All systems leave out the same queries, so the first one's missing values are everybody's.
    for measure, values in per_query.items():
        groups.setdefault(np.isnan(values[0]).tobytes(), []).append(measure)
    values_of_groups = []
    for group in groups.values():
        counted = ~np.isnan(per_query[group[0]][0])
        values = np.stack([per_query[measure][:, counted] for measure in group])
        values_of_groups.append((group, values))
    return values_of_groups


def _tau(per_query: Mapping[str, Floats]) -> Floats | None:
    if len(per_query) == 1:  # there is no second measure to agree with
        return None
    return kendall_tau(np.array([np.nanmean(values, axis=1) for values in per_query.values()]))


def _check_finite(
    qids: NDArray[Any], systems: Sequence[str], per_query: Mapping[str, Floats]
) -> None:
    for measure, values in per_query.items():
        infinite = np.argwhere(np.isinf(values))
        if len(infinite):
            k, query = infinite[0]
            raise DataError(
                f"compare: {measure} of {systems[k]!r} is {values[k, query]} for query "
                f"{qids[query]}; expected finite values"
            )


def _check_counts(per_query: Mapping[str, Floats]) -> None:
    """Refuse measures for which no query counts, and warn of those for which only one does."""
    for measure, values in per_query.items():
        n_queries = int((~np.isnan(values[0])).sum())
        if n_queries == 0:
            raise DataError(
                f"{measure}: no query counts, so there is nothing to compare; leave this measure "
                "out, say what a query without a relevant document counts (empty=0), or keep "
                "queries of a single label (no drop_single_label, --drop-single-label)"
            )
        if n_queries == 1:
            log.warning("%s: one query counts; a test needs at least two", measure)


def _log_equal_systems(systems: Sequence[str], per_query: Mapping[str, Floats]) -> None:
    """Log which systems have the same values for all queries: likely one file under two names."""
    alike: dict[bytes, list[str]] = {}
    for k, system in enumerate(systems):
        key = b"".join(values[k].tobytes() for values in per_query.values())
        alike.setdefault(key, []).append(system)
    for group in alike.values():
        if len(group) > 1:
            log.info("%s have the same values for every query", some_of(group))


def checked(settings: Settings) -> Settings:
    """Check settings, and return them with numpy's numbers made plain, as JSON needs them."""
    for name, constraint in CONSTRAINTS.items():
        check("compare", name, getattr(settings, name), constraint)
    return replace(
        settings,
        level=float(settings.level),
        permutations=int(settings.permutations),
        resamples=int(settings.resamples),
        seed=int(settings.seed),
    )


def checked_names(systems: Mapping[str, object]) -> list[str]:
    """Return the names of systems, of which there must be at least two."""
    if not isinstance(systems, Mapping):
        raise UsageError(
            f"compare: got {type(systems).__name__}; expected a mapping from the names of systems"
        )
    # Names stand in tables, files and legends, one line each.
    for name in systems:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise UsageError(f"compare: {name!r} is no name for a system; expected a line of text")
    if len(systems) < 2:
        raise UsageError(f"compare: there must be at least two systems; got {len(systems)}")
    return list(systems)


def _checked_scores(name: str, scores: ArrayLike, data: RankingData) -> Floats:
    try:
        return check_scores(scores, data)
    except DataError as problem:
        raise DataError(f"{name}: {problem}") from None


def _check_alike(evaluations: Mapping[str, Evaluation]) -> None:
    """Refuse evaluations of other queries, by other measures, or that leave out other queries."""
    first, *others = evaluations
    expected = evaluations[first]
    for name in others:
        other = evaluations[name]
        pair = f"compare: {first!r} and {name!r}"
        if not np.array_equal(expected.qids, other.qids):
            raise DataError(f"{pair} were evaluated on different queries")
        if set(expected.per_query) != set(other.per_query):
            raise UsageError(
                f"{pair} were evaluated by different measures, {', '.join(expected.per_query)} and "
                f"{', '.join(other.per_query)}"
            )
        for measure, values in expected.per_query.items():
            if not np.array_equal(np.isnan(values), np.isnan(other.per_query[measure])):
                raise DataError(f"{pair} leave out different queries for {measure}")
