"""Importance of features in terms of a measure, and how the ranking depends on a feature.

A feature is permuted within queries: its values are handed to other documents of the same query.
Between queries they may differ for reasons that no ranking depends on, and a document would get
values that its query never has.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import Whole, check
from rankinite.core.progress import Progress, as_progress
from rankinite.core.random import generator
from rankinite.core.types import Floats, Floats32
from rankinite.data.checks import require_data_set
from rankinite.data.ranking_data import RankingData
from rankinite.explanation.attribution import depends_on_query, explained_scores
from rankinite.explanation.swaps import used_features
from rankinite.measures.measure import Measure
from rankinite.measures.scorer import Scorer
from rankinite.measures.text import one_measure
from rankinite.rankers.features import match_features
from rankinite.rankers.ranker import Ranker
from rankinite.stats.bootstrap import bootstrap

RESAMPLES = 2000


@dataclass(frozen=True)
class PermutationImportance:
    """What a measure loses if a feature is permuted within queries.

    Attributes
    ----------
    feature
        The feature.
    drop
        The mean drop of the measure over queries and permutations.
    low, high
        Interval of 95 percent for the mean over queries, by bootstrap.
    """

    feature: str
    drop: float
    low: float
    high: float

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return vars(self).copy()


def permutation_importances(
    model: Ranker,
    data: RankingData,
    measure: str | Measure = "NDCG@10",
    *,
    repeats: int = 5,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> list[PermutationImportance]:
    """Return what a measure loses if a feature is permuted within queries, the largest drop first.

    Features that the model does not look at lose nothing, and are left out.

    Parameters
    ----------
    model
        A fitted ranker.
    data
        Labelled documents; those of training overrate features that the model has learned by heart.
    measure
        The measure.
    repeats
        Number of permutations of each feature, at least 1.
    seed
        Seed of the permutations.
    progress
        True for a progress bar, or a progress reporter.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.polynomials(20, n_features=3)
    >>> model = rk.LambdaMART(n_trees=5).fit(data)
    >>> rows = rk.permutation_importances(model, data, "NDCG@10", repeats=2)
    >>> rows[0].drop > 0
    True
    """
    owner = "permutation_importances"
    check(owner, "repeats", repeats, Whole(1))
    check(owner, "seed", seed, Whole(0))
    data = _prepared(owner, model, data)
    chosen = one_measure(owner, measure)
    if not data.is_labelled:
        raise DataError(f"{owner}: the data set has no labels, which {chosen} needs")
    scorer = Scorer([chosen], data.all_labels, data.offsets, data.top_grade)
    before = scorer.per_query(model.predict(data))[0]
    counts = ~np.isnan(before)
    if not counts.any():
        raise DataError(f"{owner}: {chosen} leaves out all queries of the data set")
    used = used_features(model)
    columns = [j for j, name in enumerate(data.feature_names) if name in used]
    X = np.array(data.X)
    rows = []
    with as_progress(owner, progress).start("Importances", len(columns), "features") as bar:
        for column in columns:
            present = X[:, column].copy()
            drops = np.zeros(counts.sum())
            for repeat in range(int(repeats)):
                rng = generator(int(seed), "permutation", data.feature_names[column], repeat)
                X[:, column] = present[_permuted(rng, data)]
                after = scorer.per_query(model.predict(_with_features(data, X)))[0]
                drops += (before - after)[counts] / repeats
            X[:, column] = present
            low, high = bootstrap(drops[np.newaxis], resamples=RESAMPLES).means[0].tolist()
            name = data.feature_names[column]
            rows.append(PermutationImportance(name, float(drops.mean()), low, high))
            bar.advance(1)
    return sorted(rows, key=lambda row: -row.drop)


def _with_features(data: RankingData, X: Floats32) -> RankingData:
    # A view, since a data set makes its arrays read-only.
    return data.replace(matrix=X.view(), rows=None)


def _permuted(rng: np.random.Generator, data: RankingData) -> Any:
    """Return a random order of documents in which each query keeps its places."""
    keys = rng.random(data.n_docs)
    numbers = np.repeat(np.arange(data.n_queries), data.sizes)
    return np.lexsort((keys, numbers))


def _prepared(owner: str, model: Ranker, data: RankingData) -> RankingData:
    require_data_set(owner, data)
    if not isinstance(model, Ranker) or not model.is_fitted:
        raise UsageError(f"{owner}: model is no fitted ranker; fit it, or load one with load_model")
    matched: RankingData = match_features(type(model).__name__, data, model.feature_names_)
    return matched.dense(owner)


@dataclass(frozen=True, eq=False)
class Dependence:
    """How the ranking depends on a feature.

    Attributes
    ----------
    feature
        The feature.
    grid
        Values of the feature; NaN, the last, if it is missing somewhere.
    score
        The mean score of documents if the feature has the value in all of them.
    rank
        By value, the mean rank of a document whose feature alone is set to it, from 0, the top of
        its query, to 1, the bottom; a tie counts half.
    """

    feature: str
    grid: Floats
    score: Floats
    rank: Floats

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        values = [None if np.isnan(value) else float(value) for value in self.grid]
        columns = {"score": self.score.tolist(), "rank": self.rank.tolist()}
        return {"feature": self.feature, "values": values, **columns}


def partial_dependence(
    model: Ranker, data: RankingData, feature: str, *, grid: int | Any = 20
) -> Dependence:
    """Return the mean score and the mean rank of documents as a feature is set to values.

    The rank says more than the score: a feature that is the same for all documents of a query moves
    their scores, and no document.

    Parameters
    ----------
    model
        A fitted ranker.
    data
        The documents.
    feature
        Name of a feature of the model.
    grid
        Number of values at most, which are quantiles of the feature in the data; or the values.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.polynomials(20, n_features=3)
    >>> model = rk.LambdaMART(n_trees=5).fit(data)
    >>> len(rk.partial_dependence(model, data, "1", grid=[0.0, 0.5]).rank)
    2
    """
    owner = "partial_dependence"
    data = _prepared(owner, model, data)
    if feature not in data.feature_names:
        raise UsageError(f"{owner}: {type(model).__name__} was fitted to no feature {feature!r}")
    column = list(data.feature_names).index(feature)
    X = np.array(data.X)
    values = _grid(owner, X[:, column], grid)
    before = explained_scores(model, data)
    means, ranks = np.empty((2, len(values)))
    for k, value in enumerate(values):
        X[:, column] = value
        after = explained_scores(model, _with_features(data, X))
        means[k] = after.mean()
        alone = after
        if depends_on_query(model):
            alone = _scores_alone(model, data, column, value)
        ranks[k] = _mean_rank(before, alone, data)
    return Dependence(feature, values.astype(np.float64), means, ranks)


def _scores_alone(model: Ranker, data: RankingData, column: int, value: float) -> Floats:
    """Return the score of each document if it alone in its query has the value."""
    scores = np.empty(data.n_docs)
    for query in data:
        X = np.repeat(query.X[np.newaxis], query.n_docs, axis=0)
        every = np.arange(query.n_docs)
        X[every, every, column] = value
        copies = RankingData(
            X.reshape(-1, query.n_features),
            group_sizes=np.full(query.n_docs, query.n_docs),
            feature_names=query.feature_names,
            categories=query.categories,
        )
        begin = int(data.offsets[np.flatnonzero(data.qids == query.qids[0])[0]])
        of_copies = explained_scores(model, copies).reshape(query.n_docs, query.n_docs)
        scores[begin : begin + query.n_docs] = of_copies[every, every]
    return scores


def _grid(owner: str, present: Floats32, grid: int | Any) -> Floats32:
    if not isinstance(grid, int | np.integer):
        values = np.asarray(grid, np.float32)
        if values.ndim != 1 or not len(values):
            raise UsageError(f"{owner}: grid is {grid!r}; expected a number, or a list of values")
        return values
    check(owner, "grid", grid, Whole(2))
    known = np.unique(present[~np.isnan(present)])
    if len(known) > grid:
        known = np.unique(np.quantile(known, np.linspace(0, 1, int(grid)), method="nearest"))
    is_missing = np.isnan(present).any()
    return np.append(known, np.float32(np.nan)) if is_missing else known


def _mean_rank(before: Floats, after: Floats, data: RankingData) -> float:
    """Return the mean rank of documents among the unchanged others of their query, from 0 to 1."""
    ranks = []
    for begin, end in pairwise(data.offsets.tolist()):
        if end - begin < 2:
            continue
        others, changed = before[begin:end], after[begin:end]
        ordered = np.sort(others)
        above = len(ordered) - np.searchsorted(ordered, changed, side="right")
        ties = np.searchsorted(ordered, changed, side="right") - np.searchsorted(ordered, changed)
        # The document itself, as it was, is none of the others.
        above, ties = above - (others > changed), ties - (others == changed)
        ranks.append((above + ties / 2) / (end - begin - 1))
    return float(np.concatenate(ranks).mean()) if ranks else 0.0
