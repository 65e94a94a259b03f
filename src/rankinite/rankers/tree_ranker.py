"""Rankers of boosted trees: their parameters, how they are fitted, and how they score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.params import OneOf, Whole, check
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.objectives.objective import Targets, doc_weights
from rankinite.rankers.boosting import Boosting
from rankinite.rankers.inputs import check_features
from rankinite.rankers.judging import Judging
from rankinite.rankers.learner import Beginning, Learner
from rankinite.rankers.line_search import LineSearch
from rankinite.rankers.manifest import Manifest
from rankinite.rankers.parameters import TreeParameters
from rankinite.rankers.rounds import Stopping, Watched
from rankinite.rankers.sampling import Sampling
from rankinite.trees.binning import EVERY_ROW, BinnedData
from rankinite.trees.forest import Forest
from rankinite.trees.grower import GrowthOptions


class TreeRanker(TreeParameters, Learner):
    """A ranker of boosted trees.

    Attributes
    ----------
    forest_
        The trees that predict uses.
    n_trees_ : int
        How many rounds of trees are kept: the best number by the validation set, or all.
    history_ : dict
        The values of measures on the validation sets: ``history_["valid"]["NDCG@10"]`` has one
        value a round.
    n_rounds_ : int
        How many rounds were grown.
    seed_ : int
        The seed of the fit: ``random_state``, or what was drawn from it.
    feature_importances_ : array
        The share of each feature in the gain of all splits.
    """

    rounds: ClassVar[str] = "trees"
    free_parameters: ClassVar[Sequence[str]] = ("n_trees", "patience", "min_improvement", "base")

    forest_: Forest
    n_trees_: int

    @property
    def kept_rounds_(self) -> int:
        """How many rounds of trees are kept."""
        return self.n_trees_

    def _stopping(self, watched: Mapping[str, Watched]) -> Stopping:
        first = next(iter(watched), None)
        if first is None:
            return Stopping(self.n_trees, self.patience)
        judging = Judging(first, self._deciding(), self.min_improvement)
        return Stopping(self.n_trees, self.patience, judging)

    def _begin(
        self, beginning: Beginning, *, binned: BinnedData | None = None, **_options: Any
    ) -> Boosting:
        data, seed = beginning.data, beginning.seed
        weights = _all_weights(beginning.targets)
        bins, rows = _binned(self._name, data, weights, binned, self.most_bins, seed)
        return Boosting(
            gradients=beginning.gradients,
            binned=bins,
            rows=rows,
            offsets=data.offsets,
            origins=data.origins,
            growth=self._growth(),
            sampling=Sampling(self.docs_per_tree, self.queries_per_tree, self.features_per_tree),
            learning_rate=self.learning_rate,
            seed=seed,
            scores=beginning.scores,
            watched=beginning.watched,
            ranking=self._ranking,
            doc_weight=weights,
            search=self._search(beginning),
        )

    def _search(self, _beginning: Beginning) -> LineSearch | None:
        """Return how trees get their weights; None if all have 1."""
        return None

    def _growth(self) -> GrowthOptions:
        return GrowthOptions(
            self.n_leaves,
            self.max_depth,
            self.min_docs_in_leaf,
            self.min_gain,
            self.criterion,
            self.step,
            self.symmetric,
        )

    def _keep(self, fit: Boosting, start: Floats, best: int) -> None:
        self.n_trees_ = best
        self.forest_ = Forest(tuple(fit.trees), start, self.n_features_in_).first(best)

    def _for_people(self, scores: Floats, X: Any, qid: ArrayLike | None) -> Floats:
        """Return what predict gives, from the scores of the outputs."""
        return self._ranking(scores)

    def predict(
        self,
        X: Any,
        qid: ArrayLike | None = None,
        *,
        n_trees: int | None = None,
        base_scores: ArrayLike | None = None,
    ) -> Floats:
        """Return one score a document; larger is better.

        Parameters
        ----------
        X
            A RankingData, an array or a frame with the features of fit.
        qid
            The query of every document of an array: needed only where scores depend on the whole
            query, as those of `MART` with ``per_query`` do, or of a base of that kind.
        n_trees
            Use the first so many rounds of trees only.
        base_scores
            The scores of the base, for a ranker whose base was given as scores.
        """
        matrix, rows = self._features_of(X)
        forest = self.forest_
        if n_trees is not None:
            check(self._name, "n_trees", n_trees, Whole(0, self.n_trees_))
            forest = forest.first(int(n_trees))
        scores = self._scores_before(X, qid, len(matrix if rows is None else rows), base_scores)
        return self._for_people(forest.add_to(scores, matrix, rows), X, qid)

    def staged_predict(
        self,
        X: Any,
        qid: ArrayLike | None = None,
        *,
        every: int = 1,
        base_scores: ArrayLike | None = None,
    ) -> Iterator[Floats]:
        """Go through the scores after ``every``, 2 ``every``, ... rounds of trees.

        Parameters
        ----------
        X, qid, base_scores
            As in `predict`.
        every
            How many rounds lie between two results; the last is that of all trees.
        """
        check(self._name, "every", every, Whole(1))
        matrix, rows = self._features_of(X)
        scores = self._scores_before(X, qid, len(matrix if rows is None else rows), base_scores)
        width, n_features = len(self.forest_.start), self.forest_.n_features
        parts = (
            Forest(self.forest_.trees[begin : begin + every * width], np.zeros(width), n_features)
            for begin in range(0, len(self.forest_), every * width)
        )
        # A result must not change when the next part is added to the scores.
        return (
            self._for_people(part.add_to(scores, matrix, rows).copy(), X, qid) for part in parts
        )

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in the gain of all splits."""
        self._check_fitted()
        gains = self.forest_.importances("gain")
        total = gains.sum()
        return gains / total if total > 0 else gains

    def importances(self, kind: str = "gain") -> dict[str, float]:
        """Return how much each feature matters, by name, the most important first.

        Parameters
        ----------
        kind
            ``"gain"``: the sum of what its splits gained; ``"count"``: how many splits it has.
        """
        check(f"{self._name}.importances", "kind", kind, OneOf(["gain", "count"]))
        self._check_fitted()
        sums = self.forest_.importances(kind)
        order = np.argsort(-sums, kind="stable")
        return {self.feature_names_[j]: float(sums[j]) for j in order}

    @property
    def _start(self) -> Floats:
        return self.forest_.start

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self.forest_.to_arrays()

    def _set_arrays(self, content: Content, manifest: Manifest) -> None:
        self.forest_ = Forest.from_arrays(content.arrays, self.n_features_in_)
        start = self.forest_.start
        if len(start) != self._n_outputs(manifest.top_grade) or not np.isfinite(start).all():
            raise ModelFileError(f"the trees of the file are not those of a {self._name}")
        self.n_trees_ = len(self.forest_) // len(start)
        if self.n_trees_ > manifest.n_rounds:
            raise ModelFileError("the file has more trees than its manifest says were grown")

    @classmethod
    def _n_outputs(cls, top_grade: float) -> int:
        """Return how many trees a round grows."""
        return 1


def _binned(
    owner: str,
    data: RankingData,
    weights: Floats | None,
    given: BinnedData | None,
    most_bins: int,
    seed: int,
) -> tuple[BinnedData, NDArray[np.int64] | None]:
    """Return the bins of the rows that documents use, and the row of every document."""
    if given is not None:
        _check_binned(owner, given, data)
        return given, data.rows
    used, rows = EVERY_ROW, None
    if data.rows is not None:
        used, rows = np.unique(data.rows, return_inverse=True)
        if len(used) == data.n_docs and (rows == np.arange(data.n_docs)).all():
            rows = None
    made = BinnedData.make(
        data.matrix,
        data.feature_names,
        rows=used if len(used) < len(data.matrix) else EVERY_ROW,
        docs=_docs_that_count(data, weights),
        most_bins=most_bins,
        seed=seed,
    )
    return made, rows


def _check_binned(owner: str, given: BinnedData, data: RankingData) -> None:
    check_features(f"{owner} with binned", given.feature_names, data.feature_names)
    if given.n_rows != len(data.matrix):
        raise UsageError(
            f"{owner}: binned has {given.n_rows} rows, and the matrix of the data set has "
            f"{len(data.matrix)}; make it of the set that this one was cut from"
        )


def _docs_that_count(data: RankingData, weights: Floats | None) -> NDArray[np.int64]:
    """Return the rows of the documents that bins are made for; those without weight are none."""
    rows = EVERY_ROW if data.rows is None else data.rows
    if weights is None or weights.all():
        return rows
    return rows[weights > 0.0] if len(rows) else np.flatnonzero(weights)


def _all_weights(targets: Targets) -> Floats | None:
    """Return what every document counts, by its own weight and by its query's; 1 if None."""
    if targets.query_weight is None and targets.doc_weight is None:
        return None
    return doc_weights(targets)
