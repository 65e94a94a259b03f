"""What rankers of boosted trees have in common: parameters, fit, predict, importances."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.core.params import Constraint, Either, OneOf, Real, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.measures.text import parse_measures
from rankinite.objectives.objective import Objective, Targets
from rankinite.rankers.boosting import Boosting, Callback, Round, Sampling, Watched
from rankinite.rankers.checkpoint import Checkpoint, digest_of
from rankinite.rankers.inputs import Valid, check_features, training_data, validation_sets
from rankinite.rankers.ranker import Ranker
from rankinite.trees.binned_data import EVERY_ROW, BinnedData
from rankinite.trees.forest import Forest
from rankinite.trees.grower import Growth

log = logging.getLogger("rankinite")

Floats = NDArray[np.float64]
SHARE = Real(0, 1, low_open=True)
# These may differ between a fit and the one that goes on from its checkpoint.
NOT_OF_TREES = ("n_trees", "patience", "min_improvement", "base")


class TreeRanker(Ranker):
    """A ranker of boosted trees; see `LambdaMART`, `MART` and `McRank` for its parameters.

    Attributes
    ----------
    forest_
        The trees that predict uses.
    n_trees_ : int
        How many rounds of trees are kept: the best number by the validation set, or all.
    history_ : dict
        The values of measures on the validation sets: ``history_["valid"]["NDCG@10"]`` has one
        value a round.
    feature_importances_ : array
        The share of each feature in the gain of all splits.
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "n_trees": Whole(1),
        "n_leaves": Whole(2, 1 << 16),
        "learning_rate": Real(0, low_open=True),
        "max_depth": Either(Whole(1), OneOf([None])),
        "min_docs_in_leaf": Whole(1),
        "min_gain": Real(0),
        "docs_per_tree": SHARE,
        "queries_per_tree": SHARE,
        "features_per_tree": SHARE,
        "criterion": OneOf(["mse", "newton"]),
        "step": OneOf(["newton", "gradient"]),
        "most_bins": Whole(2, 255),
        "patience": Either(Whole(1), OneOf([None])),
        "min_improvement": Real(0),
    }

    n_trees: int
    n_leaves: int
    learning_rate: float
    max_depth: int | None
    min_docs_in_leaf: int
    min_gain: float
    docs_per_tree: float
    queries_per_tree: float
    features_per_tree: float
    criterion: str
    step: str
    most_bins: int
    base: Any
    valid_measure: Any
    patience: int | None
    min_improvement: float
    random_state: Any

    @abstractmethod
    def _objective(self) -> Objective:
        """Return what the trees follow."""

    @abstractmethod
    def _default_measures(self) -> Sequence[Measure]:
        """Return what validation sets are measured by if nobody says."""

    def _ranking(self, scores: Floats) -> Floats:
        """Return the scores that documents are ranked by, from those of the outputs."""
        first: Floats = scores[0]
        return first

    def _fit(
        self,
        X: Any,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        valid: Valid,
        query_weight: ArrayLike | None,
        doc_weight: ArrayLike | None,
        valid_base: Any,
        binned: BinnedData | None,
        callbacks: Sequence[Callback],
        progress: Progress | None,
        checkpoint: str | Path | None,
    ) -> Self:
        self._check_parameters()
        data = training_data(self._name, X, y, qid, query_weight)
        sets = validation_sets(self._name, valid, data.feature_names)
        weights = _doc_weights(self._name, doc_weight, data.n_docs)
        seed = seed_of(self._name, self.random_state)
        gradients = self._objective().prepare(
            Targets(
                dict([(None, data.y), *data.labels.items()]),
                data.offsets,
                data.top_grade,
                data.query_weight,
                weights,
                seed,
            )
        )
        bins, rows = _binned(self._name, data, binned, self.most_bins, seed)
        start = gradients.start if self.base is None else np.zeros(len(gradients.start))
        measures = self._measures()
        boosting = Boosting(
            gradients=gradients,
            binned=bins,
            rows=rows,
            offsets=data.offsets,
            growth=self._growth(),
            sampling=Sampling(self.docs_per_tree, self.queries_per_tree, self.features_per_tree),
            learning_rate=self.learning_rate,
            seed=seed,
            scores=self._start_scores(start, data, self.base),
            watched={
                name: Watched(
                    found,
                    bins,
                    measures,
                    self._start_scores(start, found, _base_of(self, name, valid_base)),
                )
                for name, found in sets.items()
            },
            ranking=self._ranking,
            doc_weight=weights,
        )
        keeper = None
        if checkpoint is not None:
            digest = digest_of(data, weights, boosting.scores)
            keeper = Checkpoint(Path(checkpoint), self._fit_parameters(), digest)
            keeper.resume(boosting)
        self._remember(data)
        try:
            self._boost(boosting, callbacks, progress or Silent(), keeper)
        finally:
            self._keep(boosting, start)
        return self

    def _growth(self) -> Growth:
        return Growth(
            self.n_leaves,
            self.max_depth,
            self.min_docs_in_leaf,
            self.min_gain,
            self.criterion,
            self.step,
        )

    def _measures(self) -> Sequence[Measure]:
        if self.valid_measure is None:
            return self._default_measures()
        return parse_measures(self.valid_measure)

    def _boost(
        self,
        boosting: Boosting,
        callbacks: Sequence[Callback],
        progress: Progress,
        keeper: Checkpoint | None,
    ) -> None:
        """Grow trees until there are enough; a Ctrl-C leaves what was grown, and its checkpoint."""
        try:
            with progress.start("training", self.n_trees, "trees") as task:
                task.advance(min(boosting.n_rounds, self.n_trees))
                while boosting.n_rounds < self.n_trees and not self._is_enough(boosting):
                    done = boosting.step()
                    task.advance(1)
                    task.note(_in_words(done))
                    if keeper is not None:
                        keeper.write_sometimes(boosting)
                    if any(callback(done) is True for callback in list(callbacks)):
                        break
        finally:
            if keeper is not None:
                keeper.write(boosting)

    def _is_enough(self, boosting: Boosting) -> bool:
        if boosting.is_done:
            log.info(
                "%s: there is nothing left to learn after %d rounds", self._name, boosting.n_rounds
            )
            return True
        if self.patience is None or not boosting.watched or boosting.n_rounds == 0:
            return False
        return boosting.n_rounds - self._best_round(boosting) >= self.patience

    def _best_round(self, boosting: Boosting) -> int:
        """Return the number of rounds to keep: the best by the first measure of the first set."""
        if not boosting.watched or boosting.n_rounds == 0:
            return boosting.n_rounds
        first = next(iter(boosting.watched))
        measure = str(self._measures()[0])
        return boosting.history.best(first, measure, self.min_improvement)

    def _keep(self, boosting: Boosting, start: Floats) -> None:
        self.n_rounds_ = boosting.n_rounds
        self.n_trees_ = self._best_round(boosting)
        self.history_ = boosting.history.values
        n_features = len(boosting.grower.binned.feature_names)
        whole = Forest(tuple(boosting.trees), start, n_features)
        self.forest_ = whole.first(self.n_trees_)

    def _start_scores(self, start: Floats, data: RankingData, base: Any) -> Floats:
        """Return the scores before the first tree, one row for each output."""
        scores = np.repeat(start[:, None], data.n_docs, axis=1)
        return scores if base is None else scores + self._base_scores(data, base)

    def _base_scores(self, data: RankingData, base: Any) -> Floats:
        if hasattr(base, "predict"):
            return np.asarray(base.predict(data), np.float64)
        scores = np.asarray(base, np.float64)
        if scores.shape != (data.n_docs,) or not np.isfinite(scores).all():
            raise DataError(
                f"{self._name}: base has the shape {scores.shape}; expected a fitted ranker, or "
                f"one finite score for each of the {data.n_docs} documents"
            )
        return scores

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
            Not needed: a document's score does not depend on the others of its query.
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
        scores = forest.scores(matrix, rows)
        base = self._base_at_predict(X, scores.shape[1], base_scores)
        return self._ranking(scores if base is None else scores + base)

    def _base_at_predict(self, X: Any, n_docs: int, given: ArrayLike | None) -> Floats | None:
        if self.base is None:
            if given is not None:
                raise UsageError(f"{self._name}: base_scores were given, but there is no base")
            return None
        if hasattr(self.base, "predict"):
            return np.asarray(self.base.predict(X), np.float64)
        if given is None:
            raise UsageError(
                f"{self._name}: was fitted on top of scores, not of a ranker; give base_scores, "
                "the same ranker's scores of these documents (0 for the trees alone)"
            )
        return np.broadcast_to(np.asarray(given, np.float64), (n_docs,))

    def staged_predict(self, X: Any, *, every: int = 1) -> Iterator[Floats]:
        """Go through the scores after ``every``, 2 ``every``, ... rounds of trees.

        Parameters
        ----------
        X
            A RankingData, an array or a frame with the features of fit.
        every
            How many rounds lie between two results; the last is that of all trees.
        """
        check(self._name, "every", every, Whole(1))
        matrix, rows = self._features_of(X)
        width = len(self.forest_.start)
        scores = np.repeat(self.forest_.start[:, None], len(matrix if rows is None else rows), 1)
        base = self._base_at_predict(X, scores.shape[1], None)
        for begin in range(0, self.n_trees_, every):
            part = self.forest_.trees[begin * width : (begin + every) * width]
            scores = Forest(part, np.zeros(width), self.forest_.n_features).add_to(
                scores, matrix, rows
            )
            yield self._ranking(scores if base is None else scores + base)

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in the gain of all splits."""
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
        sums = self.forest_.importances(kind)
        order = np.argsort(-sums, kind="stable")
        return {self.feature_names_[j]: float(sums[j]) for j in order}

    def _fit_parameters(self) -> dict[str, Any]:
        return {
            name: _plain(value)
            for name, value in self.get_params(deep=False).items()
            if name not in NOT_OF_TREES
        }

    def _content(self) -> Content:
        parameters = {
            name: _plain(value)
            for name, value in self.get_params(deep=False).items()
            if name != "base"
        }
        manifest = {
            "parameters": parameters,
            "based_on_scores": self.base is not None and not hasattr(self.base, "predict"),
            "feature_names": list(self.feature_names_),
            "top_grade": self.top_grade_,
            "n_rounds": self.n_rounds_,
            "history": self.history_,
        }
        if hasattr(self.base, "predict") and not isinstance(self.base, Ranker):
            raise UsageError(
                f"{self._name}: the base is a {type(self.base).__name__}, which a model file "
                "cannot hold; give its scores as base, or a ranker of rankinite"
            )
        return Content(manifest, self.forest_.to_arrays())

    @classmethod
    def _from_content(cls, content: Content, base: Ranker | None) -> Self:
        manifest = content.manifest
        try:
            new = cls(**manifest["parameters"])
            new.feature_names_ = tuple(str(name) for name in manifest["feature_names"])
            new.top_grade_ = float(manifest["top_grade"])
            new.n_rounds_ = int(manifest["n_rounds"])
            new.history_ = dict(manifest["history"])
            based_on_scores = bool(manifest["based_on_scores"])
        except (KeyError, TypeError, ValueError) as problem:
            raise ModelFileError(f"the manifest of the file is not understood: {problem}") from None
        new.base = np.zeros(0) if based_on_scores else base
        new.n_features_in_ = len(new.feature_names_)
        new.forest_ = Forest.from_arrays(content.arrays, new.n_features_in_)
        new.n_trees_ = len(new.forest_) // len(new.forest_.start)
        return new


def seed_of(owner: str, random_state: Any) -> int:
    """Return the seed: the number given, or one drawn from what was given."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    check(owner, "random_state", random_state, Whole(0))
    return int(random_state)


def _binned(
    owner: str, data: RankingData, given: BinnedData | None, most_bins: int, seed: int
) -> tuple[BinnedData, NDArray[np.int64] | None]:
    """Return the bins of the rows that documents use, and the row of every document."""
    if given is not None:
        check_features(owner, given.feature_names, data.feature_names)
        if given.n_rows != len(data.base):
            raise UsageError(
                f"{owner}: binned has {given.n_rows} rows, and the matrix of the data set has "
                f"{len(data.base)}; make it of the set that this one was cut from"
            )
        return given, data.rows
    if data.rows is None:
        made = BinnedData.make(data.base, data.feature_names, most_bins=most_bins, seed=seed)
        return made, None
    used, rows = np.unique(data.rows, return_inverse=True)
    made = BinnedData.make(
        data.base,
        data.feature_names,
        rows=used if len(used) < len(data.base) else EVERY_ROW,
        docs=data.rows,
        most_bins=most_bins,
        seed=seed,
    )
    in_order = len(used) == data.n_docs and bool((rows == np.arange(data.n_docs)).all())
    return made, None if in_order else rows


def _base_of(ranker: TreeRanker, name: str, valid_base: Any) -> Any:
    if ranker.base is None or hasattr(ranker.base, "predict"):
        return ranker.base
    given = valid_base.get(name) if isinstance(valid_base, Mapping) else valid_base
    if given is None:
        raise UsageError(
            f"{ranker._name}: the base is given as scores; give those of the validation set "
            f"{name!r} as valid_base"
        )
    return given


def _doc_weights(owner: str, given: ArrayLike | None, n_docs: int) -> Floats | None:
    if given is None:
        return None
    weights = np.asarray(given, np.float64)
    if weights.shape != (n_docs,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError(
            f"{owner}: sample_weight has the shape {weights.shape}; expected one finite weight of "
            f"at least 0 for each of the {n_docs} documents"
        )
    return weights


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value)


def _in_words(done: Round) -> str:
    return "  ".join(
        f"{name} {measure} {value:.4f}"
        for name, values in done.values.items()
        for measure, value in values.items()
    )
