"""Rankers of boosted trees: their parameters, the learner of a fit, and how they score.

`TreeRanker` is what all have in common; `PointwiseTreeRanker` is for losses of single documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import OneOf, Whole, check
from rankinite.core.types import Floats
from rankinite.data.categories import Codes
from rankinite.data.ranking_data import RankingData
from rankinite.rankers.constraints import MONOTONE, directions_of, groups_of
from rankinite.rankers.model_file import CATEGORIES, Manifest
from rankinite.rankers.parameters import TreeParameters
from rankinite.rankers.trained_ranker import TrainedRanker
from rankinite.rankers.tree_contents import TreeContents
from rankinite.trees.forest import Categories, Forest, mean_of_rounds
from rankinite.trees.leaf_values import MOST_ORDERED_LEAVES

if TYPE_CHECKING:
    from rankinite.core.progress import Progress
    from rankinite.objectives.objective import Objective
    from rankinite.objectives.pointwise import RegressionTerm
    from rankinite.rankers.boosting import TreeLearner
    from rankinite.rankers.callbacks import Callback, ValidationSet
    from rankinite.rankers.columns import Columns
    from rankinite.rankers.diagnostics import Diagnostics
    from rankinite.rankers.early_stopping import EarlyStopping
    from rankinite.rankers.inputs import FitArguments, TrainingInputs, Valid
    from rankinite.rankers.line_search import LineSearch
    from rankinite.rankers.trainer import Trainer
    from rankinite.trees.binning import BinnedData
    from rankinite.trees.grower import GrowthOptions

ORDERED_LEAVES = Whole(2, MOST_ORDERED_LEAVES)


class TreeRanker(TreeParameters, TreeContents, TrainedRanker):
    """A ranker of boosted trees.

    Attributes
    ----------
    forest_
        The trees that predict uses.
    best_round_ : int
        The number of the best round by the validation set; without one, that of the last.
    n_trees_ : int
        Number of rounds of trees that are kept: up to the best, or with ``average_rounds`` up to
        the last one that counts.
    history_ : dict
        The values of measures on the validation sets: ``history_["valid"]["NDCG@10"]`` has one
        value per round.
    n_rounds_ : int
        Number of rounds that were grown.
    seed_ : int
        The seed of the fit: ``random_state``, or what was drawn from it.
    feature_importances_ : array
        The share of each feature in the gain of all splits.
    """

    takes_binned: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True
    rounds: ClassVar[str] = "trees"
    # Trees do not depend on when training stops, so a resumed fit may have more of them, or fewer.
    free_parameters: ClassVar[Sequence[str]] = ("n_trees", "patience", "min_improvement")

    forest_: Forest
    n_trees_: int

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        valid: Valid = None,
        query_weight: ArrayLike | None = None,
        position: ArrayLike | None = None,
        valid_base: Any = None,
        binned: BinnedData | None = None,
        callbacks: Sequence[Callback] = (),
        progress: Progress | bool | None = None,
        checkpoint: str | Path | None = None,
        diagnostics: Diagnostics | None = None,
        **unknown: Any,
    ) -> Self:
        """Grow trees.

        Parameters
        ----------
        X
            A RankingData; or an array or frame of features, one row per document.
        y, qid
            With an array or frame: the label and the query of every document, whose order does not
            matter. ``qid=0`` means that all documents are of one query.
        group
            Instead of ``qid``: the sizes of queries whose documents are consecutive rows.
        sample_weight
            One weight per document: 2 counts like two documents, 0 like none. A pair of documents
            counts the product of their weights; a document of weight 0 keeps its rank.
        valid
            A RankingData or (X, y, qid) for early stopping; or several by name, of which the first
            decides.
        query_weight
            One weight per query.
        position
            Where each document was shown, if labels are clicks: whole numbers of at least 0.
            `LambdaMART` corrects for it, see ``position_bias``; predict needs none.
        valid_base
            If the base is given as scores: those of the validation set, or of several by name.
        binned
            The bins of the matrix that the data set was cut from, if they were made before.
        callbacks
            Called with a `Round` after every round; one that returns True stops training.
        progress
            True for a progress bar, lines where there is no terminal; or a reporter of your own, an
            object as `Progress` describes.
        checkpoint
            A file that keeps the trees while training, and from which training resumes if it
            exists.
        diagnostics
            Records curves of lambdas and rankings, one value per round; see `Diagnostics`.
        """
        from rankinite.core.compilation import compile_ahead
        from rankinite.rankers.inputs import FitArguments, refuse_unknown

        refuse_unknown(self._name, unknown)
        arguments = FitArguments(
            X, y, qid, group, valid, query_weight, valid_base, sample_weight, position
        )
        compile_ahead("rankinite.trees.grower:compile_growth", "rankinite.trees.kernels.grow.grow")
        return self._train(arguments, callbacks, progress, checkpoint, diagnostics, binned=binned)

    @property
    def max_rounds(self) -> int:
        """Number of rounds of trees at most."""
        return self.n_trees

    def _new_learner(
        self,
        inputs: TrainingInputs,
        sets: Mapping[str, ValidationSet],
        early_stopping: EarlyStopping,
        *,
        binned: BinnedData | None = None,
        **_options: Any,
    ) -> TreeLearner:
        from rankinite.rankers.boosting import Sampling, TreeLearner, all_weights, bins_of

        # Whether a function has hessians is known only once it was called.
        self._refuse_newton(inputs.gradients.no_newton)
        weights = all_weights(inputs.targets)
        bins, rows = bins_of(self._name, inputs, weights, binned, self.most_bins)
        self._check_category_bins(bins, inputs.data)
        growth = self._growth(inputs.data.feature_names)
        self._refuse_directions_of_categories(growth, inputs.data)
        return TreeLearner(
            inputs,
            binned=bins,
            rows=rows,
            growth=growth,
            sampling=Sampling(self.docs_per_tree, self.queries_per_tree, self.features_per_tree),
            learning_rate=self.learning_rate,
            sets=sets,
            doc_weight=weights,
            line_search=self._line_search(inputs),
            regression=self._regression(inputs),
        )

    def check_objective(self) -> Objective:
        """Return the objective; refuse one without a Newton step where that is wanted."""
        objective = super().check_objective()
        self._refuse_newton(objective.no_newton)
        return objective

    def _refuse_newton(self, reason: str) -> None:
        """Refuse Newton steps if there is a reason why the objective has none."""
        for name, other in (("step", "gradient"), ("criterion", "mse")):
            if reason and getattr(self, name) == "newton":
                raise UsageError(
                    f"{self._name}: {name} is 'newton', and {reason}; use {name}={other!r} "
                    f"(--{name} {other})"
                )

    def _line_search(self, _inputs: TrainingInputs) -> LineSearch | None:
        """Return the search for the weights of trees; None if all have 1."""
        return None

    def _regression(self, _inputs: TrainingInputs) -> RegressionTerm | None:
        """Return the regression term that is added to the gradients; None if there is none."""
        return None

    def _named_categorical_features(self) -> Sequence[str | int]:
        named = self.categorical_features
        return () if isinstance(named, str) else named

    def _refuse_directions_of_categories(self, growth: GrowthOptions, data: RankingData) -> None:
        for name, direction in zip(data.feature_names, growth.directions, strict=False):
            if direction != 0 and name in data.categories:
                raise UsageError(
                    f"{self._name}: {MONOTONE} has a direction for {name!r}, which is categorical, "
                    "and categories have no order; leave it out"
                )

    def _check_category_bins(self, binned: BinnedData, data: RankingData) -> None:
        """Refuse bins, made before, in which other features are categorical."""
        names = {binned.feature_names[j] for j in binned.categories}
        if names != data.categories.keys():
            different = sorted(names ^ data.categories.keys())
            raise UsageError(
                f"{self._name}: {some_of(different)} of binned and of the data set are not "
                "categorical alike; make binned with BinnedData.of, and name the same features as "
                "categorical"
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.monotone_constraints is not None:
            check(f"{self._name} with {MONOTONE}", "n_leaves", self.n_leaves, ORDERED_LEAVES)

    def _growth(self, names: Sequence[str]) -> GrowthOptions:
        from rankinite.trees.grower import GrowthOptions

        by_step = "newton" if self.step == "newton" else "mse"
        return GrowthOptions(
            n_leaves=self.n_leaves,
            max_depth=self.max_depth,
            min_docs_in_leaf=self.min_docs_in_leaf,
            min_gain=self.min_gain,
            criterion=self.criterion or by_step,
            step=self.step,
            symmetric=self.symmetric,
            l2_regularization=self.l2_regularization,
            random_strength=self.random_strength,
            categorical_smoothing=self.categorical_smoothing,
            max_delta_step=float(self.max_delta_step),
            path_smooth=float(self.path_smooth),
            directions=directions_of(self._name, self.monotone_constraints, names),
            groups=groups_of(self._name, self.interaction_constraints, names),
        )

    def _keep(self, learner: TreeLearner, start: Floats, best: int) -> None:
        # Trees behind the best round are dropped; the checkpoint still has them.
        self.best_round_ = self.n_trees_ = best
        self.forest_ = self._forest(learner, start).first(best)

    def _forest(self, learner: TreeLearner, start: Floats) -> Forest:
        return Forest(tuple(learner.trees), start, self.n_features_in_, learner.categories)

    def _keep_best(self, inputs: TrainingInputs, trainer: Trainer) -> None:
        from rankinite.rankers.early_stopping import ONLY_THE_BEST

        super()._keep_best(inputs, trainer)
        weights = trainer.round_weights() if self.average_rounds else ONLY_THE_BEST
        if len(weights) > 0:
            learner: Any = trainer.learner
            self.n_trees_ = len(weights)
            self.forest_ = mean_of_rounds(self._forest(learner, inputs.start), weights)
        # Codes without a bin are missing values to the trees, and so need no text.
        self.categories_ = {
            inputs.data.feature_names[j]: dict(_texts_of(inputs.data, j, codes))
            for j, codes in self.forest_.categories.items()
        }

    def _prediction(self, scores: Floats, X: Any, qid: ArrayLike | None) -> Floats:
        """Return the result of predict, from the scores of the outputs."""
        return self._ranking(scores)

    def predict(
        self,
        X: Any,
        qid: ArrayLike | None = None,
        *,
        n_trees: int | None = None,
        base_scores: ArrayLike | None = None,
    ) -> Floats:
        """Return one score per document; larger is better.

        Parameters
        ----------
        X
            A RankingData, an array or a frame with the features of fit.
        qid
            The query of every document of an array: needed only where scores depend on the whole
            query, as those of `MART` with ``per_query`` do, or of a base of that kind.
        n_trees
            Use only this many rounds of trees, the first ones.
        base_scores
            The scores of the base, for a ranker whose base was given as scores.
        """
        X = self._matched(X)
        matrix, rows = self._features_of(X)
        forest = self.forest_
        if n_trees is not None:
            check(self._name, "n_trees", n_trees, Whole(0, self.n_trees_))
            forest = forest.first(int(n_trees))
        n_docs = (matrix if rows is None else rows).shape[0]
        scores = self._start_scores(X, qid, n_docs, base_scores)
        return self._prediction(forest.add_to(scores, matrix, rows), X, qid)

    def raw_scores(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return the scores of the outputs before predict makes one of them: outputs x documents.

        Log odds of `MART` with the logistic loss, logarithms of chances of `McRank`; otherwise they
        are the scores.

        Parameters
        ----------
        X, qid
            As in `predict`.
        """
        X = self._matched(X)
        matrix, rows = self._features_of(X)
        n_docs = (matrix if rows is None else rows).shape[0]
        return self.forest_.add_to(self._start_scores(X, qid, n_docs, None), matrix, rows)

    def staged_predict(
        self,
        X: Any,
        qid: ArrayLike | None = None,
        *,
        every: int = 1,
        base_scores: ArrayLike | None = None,
    ) -> Iterator[Floats]:
        """Iterate over the scores after ``every``, 2 ``every``, ... rounds of trees.

        Parameters
        ----------
        X, qid, base_scores
            As in `predict`.
        every
            Number of rounds between two results; the last result is that of all trees.
        """
        check(self._name, "every", every, Whole(1))
        X = self._matched(X)
        matrix, rows = self._features_of(X)
        n_docs = (matrix if rows is None else rows).shape[0]
        scores = self._start_scores(X, qid, n_docs, base_scores)
        forest, width = self.forest_, len(self.forest_.start)
        parts = (
            replace(forest, trees=forest.trees[begin : begin + every * width])
            for begin in range(0, len(self.forest_), every * width)
        )
        # A result must not change when the next part is added to the scores.
        return (
            self._prediction(part.add_to(scores, matrix, rows).copy(), X, qid) for part in parts
        )

    def importances(self, kind: str = "gain") -> dict[str, float]:
        """Return the importance of each feature, by name, the most important first.

        Parameters
        ----------
        kind
            ``"gain"``: the sum of the gains of its splits; ``"count"``: the number of its splits.
        """
        check(f"{self._name}.importances", "kind", kind, OneOf(["gain", "count"]))
        self._check_fitted()
        return self._by_importance(self.forest_.importances(kind))

    def _importance_values(self) -> Floats:
        return self.forest_.importances("gain")

    @property
    def _start(self) -> Floats:
        return self.forest_.start

    def _model_arrays(self) -> dict[str, NDArray[Any]]:
        return self.forest_.to_arrays()

    def _content(self) -> Content:
        content = super()._content()
        texts = {name: list(codes) for name, codes in self.categories_.items() if codes}
        return (
            replace(content, manifest={**content.manifest, CATEGORIES: texts}) if texts else content
        )

    def _set_model(self, arrays: Mapping[str, NDArray[Any]], manifest: Manifest) -> None:
        self.forest_ = Forest.from_arrays(arrays, self.n_features_in_)
        self.categories_ = _read_texts(manifest, self.forest_.categories)
        start = self.forest_.start
        if len(start) != self._n_outputs(manifest.top_grade) or not np.isfinite(start).all():
            raise ModelFileError(f"the trees of the file are not those of a {self._name}")
        # With early stopping there may be fewer trees than rounds, never more.
        self.n_trees_ = len(self.forest_) // len(start)
        # Files of earlier versions have the trees of the best round.
        self.best_round_ = self.n_trees_ if manifest.best_round is None else manifest.best_round
        if self.n_trees_ > manifest.n_rounds:
            raise ModelFileError("the file has more trees than its manifest says were grown")

    @classmethod
    def _n_outputs(cls, top_grade: float) -> int:
        """Return the number of trees per round."""
        return 1


class PointwiseTreeRanker(TreeRanker):
    """A ranker of boosted trees whose loss is that of single documents."""

    def _columns(self, arguments: FitArguments) -> Columns:
        return replace(super()._columns(arguments), labelled_only=True)


def _texts_of(
    data: RankingData, feature: int, codes: NDArray[np.float32]
) -> Iterator[tuple[str, int]]:
    """Go through the texts of codes, and the codes; nothing if codes have no texts."""
    texts = data.categories[data.feature_names[feature]]
    return ((texts[int(code)], int(code)) for code in (codes if texts else ()))


def _read_texts(manifest: Manifest, categories: Categories) -> Codes:
    """Check the texts of a model file: as many distinct ones as the feature has categories."""
    codes = {manifest.feature_names[j]: values.astype(int) for j, values in categories.items()}
    texts = manifest.categories
    fits = texts.keys() <= codes.keys() and all(
        len(set(of_feature)) == len(of_feature) == len(codes[name])
        for name, of_feature in texts.items()
    )
    if not fits:
        raise ModelFileError("the texts of categories in the file do not fit its categories")
    return {
        name: dict(zip(texts.get(name, ()), values.tolist(), strict=False))
        for name, values in codes.items()
    }
