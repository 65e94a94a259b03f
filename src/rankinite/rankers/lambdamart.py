"""LambdaMART: boosted trees that follow the lambda gradient of a measure."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import ArrayLike

from rankinite.core.container import Content
from rankinite.core.errors import UsageError
from rankinite.core.params import Bounds, Whole, check
from rankinite.core.types import Floats
from rankinite.rankers.base import given_scores
from rankinite.rankers.parameters import LINE_SEARCH, LambdaMARTParameters
from rankinite.rankers.ranker import COPIES_HAVE_RANKS, Ranker
from rankinite.rankers.tree_ranker import TreeRanker

if TYPE_CHECKING:
    from rankinite.core.progress import Progress
    from rankinite.objectives.objective import Gradients, Objective, Targets
    from rankinite.objectives.pointwise import RegressionTerm
    from rankinite.rankers.boosting import TreeLearner
    from rankinite.rankers.columns import Columns
    from rankinite.rankers.inputs import FitArguments, TrainingInputs
    from rankinite.rankers.line_search import LineSearch
    from rankinite.trees.grower import GrowthOptions

log = logging.getLogger("rankinite")


class LambdaMART(LambdaMARTParameters, TreeRanker):
    """Boosted regression trees that follow lambda gradients (LambdaSMART, Algorithm 1).

    With a ``base`` this is LambdaSMART: boosting starts from the scores of another ranker.

    Attributes
    ----------
    alphas_ : list of float
        The weight that a line search gave the tree of each round; empty without one.
    position_bias_ : PositionBias or None
        How much each position mattered, as estimated up to the best round; None if positions were
        not corrected for.

    Examples
    --------
    >>> import rankinite as rk
    >>> train = rk.polynomials(40, part="train", n_features=5)
    >>> model = rk.LambdaMART(n_trees=20, n_leaves=7).fit(train)
    >>> rk.evaluate(model.predict(train), train, "NDCG@10").mean["NDCG@10"] > 0.6
    True
    """

    expected_failed_checks: ClassVar[Mapping[str, str]] = {
        **TreeRanker.expected_failed_checks,
        "check_sample_weight_equivalence_on_dense_data": COPIES_HAVE_RANKS,
        "check_sample_weight_equivalence_on_sparse_data": COPIES_HAVE_RANKS,
    }

    def objective(self) -> Objective:
        """Return the objective that training follows."""
        from rankinite.objectives.parse import parse_objective

        return parse_objective(self.measure, truncation=self.truncation, normalise=self.normalise)

    def _columns(self, arguments: FitArguments) -> Columns:
        from rankinite.objectives.position_bias import PROPENSITY, debiased
        from rankinite.rankers.columns import Columns

        method = self.position_bias
        if method is None:
            method = "none" if arguments.position is None else PROPENSITY
        if method == "none":
            return Columns(self.weight_source)

        def correct(gradients: Gradients, targets: Targets) -> Gradients:
            return debiased(
                gradients,
                targets,
                method,
                self.position_bias_regularization,
                self.learning_rate,
                self._regression_term(self.objective(), targets),
            )

        return Columns(self.weight_source, self.position_source, correct=correct)

    def _growth(self, names: Sequence[str]) -> GrowthOptions:
        growth = super()._growth(names)
        # The line search multiplies mean gradients (LambdaSMART, Sec. 5.6).
        return replace(growth, step="gradient") if self.step == LINE_SEARCH else growth

    def _line_search(self, inputs: TrainingInputs) -> LineSearch | None:
        if self.step != LINE_SEARCH:
            return None
        from rankinite.measures.text import parse_measures
        from rankinite.rankers.inputs import training_measure
        from rankinite.rankers.line_search import LineSearch, measure_along_line

        if self.line_search_on == "train":
            measure = parse_measures(training_measure(inputs.objective))[0]
            along = measure_along_line(measure, inputs.data, inputs.targets.query_weight)
            return LineSearch(None, along, self.alpha_bounds)
        name = next(iter(inputs.valid), None)
        if name is None:
            raise UsageError(
                f"{self._name}: line_search_on is 'valid', and there is no validation set; "
                "give one as valid, or search on 'train'"
            )
        # Validation sets are measured without weights of queries, here as after every round.
        along = measure_along_line(inputs.measures[0], inputs.valid[name].data)
        return LineSearch(name, along, self.alpha_bounds)

    def _regression(self, inputs: TrainingInputs) -> RegressionTerm | None:
        # Gradients that are corrected for positions have one that is corrected, too.
        if inputs.targets.position is not None:
            return None
        return self._regression_term(inputs.objective, inputs.targets)

    def _regression_term(self, objective: Objective, targets: Targets) -> RegressionTerm | None:
        if self.regression_weight == 0.0 or not objective.is_of_lambdas:
            return None
        from rankinite.objectives.pointwise import RegressionTerm

        return RegressionTerm(targets, objective.source, self.regression_weight)

    def _keep(self, learner: TreeLearner, start: Floats, best: int) -> None:
        from rankinite.objectives.position_bias import DebiasedGradients

        super()._keep(learner, start, best)
        self.alphas_ = learner.alphas[: learner.n_rounds]
        gradients = learner.gradients
        self.position_bias_ = (
            gradients.position_bias(best) if isinstance(gradients, DebiasedGradients) else None
        )

    def _content(self) -> Content:
        content = super()._content()
        from rankinite.rankers.boosting import alphas_to_arrays

        bias = {} if self.position_bias_ is None else self.position_bias_.to_arrays()
        arrays = {**content.arrays, **alphas_to_arrays(self.alphas_), **bias}
        return Content(content.manifest, arrays)

    @classmethod
    def from_content(cls, content: Content, base: Ranker | None) -> Self:
        """Return the fitted ranker of a model file."""
        manifest = dict(content.manifest)
        parameters = manifest.get("parameters")
        if isinstance(parameters, dict) and isinstance(parameters.get("alpha_bounds"), list):
            # JSON has no tuples.
            bounds = tuple(parameters["alpha_bounds"])
            manifest["parameters"] = {**parameters, "alpha_bounds": bounds}
        ranker = super().from_content(Content(manifest, content.arrays), base)
        ranker.alphas_, ranker.position_bias_ = [], None
        # What few files have is imported for these only.
        if ranker.step == LINE_SEARCH or "alphas" in content.arrays:
            from rankinite.rankers.boosting import alphas_of

            ranker.alphas_ = alphas_of(content.arrays, ranker.n_rounds_)
        if any(name.startswith("position_bias.") for name in content.arrays):
            from rankinite.objectives.position_bias import PositionBias

            ranker.position_bias_ = PositionBias.from_arrays(content.arrays)
        return ranker

    def backfit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        measure: Any = None,
        sweeps: int = 1,
        bounds: tuple[float, float] = (0.0, 10.0),
        base_scores: ArrayLike | None = None,
        progress: Progress | bool | None = None,
    ) -> Self:
        """Find the weight of every tree anew, one after the other (LambdaSMART, end of Sec. 4).

        Each gets the exact best weight while all others stay as they are, if that is better than
        its present one. So the mean of the measure, in which queries count by their weights, never
        falls on these data. It may on others. ``alphas_`` and ``history_`` stay those of `fit`.

        Parameters
        ----------
        X, y, qid, group
            The data, as in `fit`.
        measure
            The measure to improve; that of training if None.
        sweeps
            Number of sweeps over all trees at most; it ends when nothing is gained.
        bounds
            The least and the largest weight, where 1 leaves a tree as it is.
        base_scores
            The scores of the base, for a ranker whose base was given as scores.
        progress
            True for a progress bar, or a progress reporter, as in `LambdaMART.fit`.
        """
        from rankinite.core.progress import as_progress
        from rankinite.measures.text import one_measure, parse_measures
        from rankinite.rankers.inputs import training_data, training_measure
        from rankinite.rankers.line_search import Backfitting, checked_measure_along_line

        owner = f"{self._name}.backfit"
        self._check_fitted()
        check(owner, "sweeps", sweeps, Whole(1))
        check(owner, "bounds", bounds, Bounds(0))
        reporter = as_progress(owner, progress)
        first = parse_measures(training_measure(self.objective()))[0]
        chosen = one_measure(owner, first if measure is None else measure)
        documents = training_data(
            owner, X, y, qid, None, group=group, categorical=list(self.categories_)
        )
        data = self._matched(documents.data)
        if base_scores is not None:
            base_scores = documents.arrange(
                given_scores(owner, "base_scores", base_scores, data.n_docs)
            )
        backfitting = Backfitting(
            checked_measure_along_line(owner, chosen, data, data.query_weight),
            *self._features_of(data),
            self._start_scores(data, None, data.n_docs, base_scores),
            bounds,
        )
        with reporter.start("backfitting", sweeps * self.n_trees_, "trees") as bar:
            for _ in range(sweeps):
                self.forest_, old, new = backfitting.sweep(self.forest_, bar)
                log.info("%s: %s from %.6f to %.6f", owner, chosen, old, new)
                if new <= old:
                    break
        return self
