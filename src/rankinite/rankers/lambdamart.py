"""LambdaMART: boosted trees that follow the lambda gradient of a measure."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content
from rankinite.core.errors import UsageError
from rankinite.core.params import Bounds, Constraint, Either, OneOf, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.types import Floats
from rankinite.measures.text import one_measure, parse_measures
from rankinite.objectives.objective import Objective
from rankinite.objectives.parse import parse_objective
from rankinite.rankers.base import given_scores
from rankinite.rankers.boosting import Boosting, alphas_of, alphas_to_arrays
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.inputs import Valid, refuse_unknown, training_data
from rankinite.rankers.learner import Beginning
from rankinite.rankers.line_search import Backfitting, LineSearch, following, following_some
from rankinite.rankers.manifest import Manifest
from rankinite.rankers.rounds import Callback
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.trees.binning import BinnedData
from rankinite.trees.grower import Growth

log = logging.getLogger("rankinite")


LINE_SEARCH = "line-search"


class LambdaMART(TreeRanker):
    """Boosted regression trees that follow lambda gradients (LambdaSMART, Algorithm 1).

    With a ``base`` this is LambdaSMART: boosting starts from the scores of another ranker.

    Parameters
    ----------
    measure
        What to improve, as a text or a value: ``"NDCG"``, ``"ERR"``, ``"MAP@10"``; tiers, as in
        ``"NDCG@3 > CNDCG@3[clicks]"`` (see `Tiered`); ``"RankNet"``; or an objective, such as a
        `Transition`.
    n_trees
        How many trees to grow at most.
    n_leaves, max_depth
        How large a tree may be.
    symmetric
        Whether all leaves of a level are split alike, by what they gain together: with many noisy
        features that is better than to split the leaf that gains most. A tree then has as many
        levels as ``n_leaves`` allows: 6 for 64.
    learning_rate
        What the values of leaves are multiplied by.
    min_docs_in_leaf, min_gain
        A leaf has at least so many documents; a split gains more than this.
    docs_per_tree, queries_per_tree, features_per_tree
        Which share of the documents, queries and features each tree sees. Samples of one query,
        called 12~1, 12~2 and so on, are drawn together.
    criterion
        How splits are chosen: ``"mse"``, by the papers, or ``"newton"``.
    step
        The value of a leaf: a ``"newton"`` step; the mean ``"gradient"`` (Objectives, Sec. 5.3);
        or with ``"line-search"`` the mean gradient times the exact best weight of the tree
        (LambdaSMART, Sec. 5.6), for the first tier if there are several. All are multiplied by the
        learning rate. The sigmoid cost has no Newton step.
    alpha_bounds
        The least and the largest weight of a tree, with a line search.
    line_search_on
        Where weights are best: on the training data, ``"train"``, for the measure of training, with
        query weights; or on the first validation set, ``"valid"``, for its first measure.
    truncation
        Only pairs count that have a document among the first so many ranks; all if None.
    normalise
        How the lambdas of a query are scaled: ``"none"``; by their ``"deviation"``, so that all
        queries count alike; or pair by pair by the ``"distance"`` of scores. See `Lambdas`.
    most_bins
        How many bins a feature has, at most.
    base
        A fitted ranker, or one score for each training document, to start from.
    valid_measure
        What validation sets are measured by; the first decides, tier after tier. The measure of
        training if None.
    patience
        Stop after so many rounds in which the validation set did not improve; never if None.
    min_improvement
        What counts as an improvement.
    random_state
        The seed; None for another one every time.

    Attributes
    ----------
    alphas_ : list of float
        The weight that a line search gave the tree of each round; empty without one.

    Examples
    --------
    >>> import rankinite as rk
    >>> train = rk.polynomials(40, part="train", n_features=5)
    >>> model = rk.LambdaMART(n_trees=20, n_leaves=7).fit(train)
    >>> rk.evaluate(model.predict(train), train, "NDCG@10").mean["NDCG@10"] > 0.6
    True
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        **TreeRanker.constraints,
        "truncation": Either(Whole(1), OneOf([None])),
        "normalise": OneOf(["none", "deviation", "distance"]),
        "step": OneOf(["newton", "gradient", LINE_SEARCH]),
        "alpha_bounds": Bounds(0),
        "line_search_on": OneOf(["train", "valid"]),
    }

    def __init__(
        self,
        measure: Any = "NDCG",
        *,
        n_trees: int = 500,
        n_leaves: int = 31,
        learning_rate: float = 0.1,
        max_depth: int | None = None,
        symmetric: bool = False,
        min_docs_in_leaf: int = 20,
        min_gain: float = 0.0,
        docs_per_tree: float = 1.0,
        queries_per_tree: float = 0.5,
        features_per_tree: float = 1.0,
        criterion: str = "mse",
        step: str = "newton",
        alpha_bounds: tuple[float, float] = (0.1, 100.0),
        line_search_on: str = "train",
        truncation: int | None = 30,
        normalise: str = "deviation",
        most_bins: int = 255,
        base: Any = None,
        valid_measure: Any = None,
        patience: int | None = 100,
        min_improvement: float = 0.0,
        random_state: Any = 0,
    ) -> None:
        self.measure = measure
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.symmetric = symmetric
        self.min_docs_in_leaf = min_docs_in_leaf
        self.min_gain = min_gain
        self.docs_per_tree = docs_per_tree
        self.queries_per_tree = queries_per_tree
        self.features_per_tree = features_per_tree
        self.criterion = criterion
        self.step = step
        self.alpha_bounds = alpha_bounds
        self.line_search_on = line_search_on
        self.truncation = truncation
        self.normalise = normalise
        self.most_bins = most_bins
        self.base = base
        self.valid_measure = valid_measure
        self.patience = patience
        self.min_improvement = min_improvement
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        valid: Valid = None,
        query_weight: ArrayLike | None = None,
        valid_base: Any = None,
        binned: BinnedData | None = None,
        callbacks: Sequence[Callback] = (),
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
        diagnostics: Diagnostics | None = None,
        **unknown: Any,
    ) -> Self:
        """Grow trees.

        Parameters
        ----------
        X
            A RankingData; or an array or frame of features, one row a document.
        y, qid
            With an array: the label and the query of every document; no qid means one query.
        valid
            A RankingData or (X, y, qid) to stop early by; or several by name, of which the first
            decides.
        query_weight
            One weight a query.
        valid_base
            If the base is given as scores: those of the validation set, or of several by name.
        binned
            The bins of the matrix that the data set was cut from, if they are there already.
        callbacks
            Called with a `Round` after every round; one that returns True stops training.
        progress
            Who wants to know how far it is.
        checkpoint
            A file to keep the trees in while training, and to go on from if it is there.
        diagnostics
            What to tell of lambdas and rankings after every round; see `Diagnostics`.
        """
        refuse_unknown(self._name, unknown)
        return self._fit(
            X,
            y,
            qid=qid,
            valid=valid,
            query_weight=query_weight,
            valid_base=valid_base,
            callbacks=callbacks,
            progress=progress,
            checkpoint=checkpoint,
            diagnostics=diagnostics,
            binned=binned,
        )

    def _check_measures(self) -> None:
        super()._check_measures()
        self._refuse_newton(self._objective().no_newton)

    def _refuse_newton(self, reason: str) -> None:
        """Raise `UsageError` if there is a reason why there is no Newton step, and it is needed."""
        for name, other in (("step", "gradient"), ("criterion", "mse")):
            if reason and getattr(self, name) == "newton":
                raise UsageError(
                    f"{self._name}: {name} is 'newton', and {reason}; use {name}={other!r} "
                    f"(--{name} {other})"
                )

    def _objective(self) -> Objective:
        return parse_objective(self.measure, truncation=self.truncation, normalise=self.normalise)

    @classmethod
    def _with_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        bounds = parameters.get("alpha_bounds")
        if isinstance(bounds, list):  # as a file holds what was a tuple
            parameters = {**parameters, "alpha_bounds": tuple(bounds)}
        return super()._with_parameters(parameters)

    def _growth(self) -> Growth:
        growth = super()._growth()
        return replace(growth, step="gradient") if self.step == LINE_SEARCH else growth

    def _search(self, beginning: Beginning) -> LineSearch | None:
        self._refuse_newton(beginning.gradients.no_newton)
        if self.step != LINE_SEARCH:
            return None
        measure, data, name = parse_measures(self._followed())[0], beginning.data, None
        weights = beginning.targets.query_weight
        if self.line_search_on == "valid":
            name = next(iter(beginning.watched), None)
            if name is None:
                raise UsageError(
                    f"{self._name}: line_search_on is 'valid', and there is no validation set; "
                    "give one as valid, or search on 'train'"
                )
            measure, data, weights = self._measures()[0], beginning.watched[name].data, None
        return LineSearch(name, following(measure, data, weights), self.alpha_bounds)

    def _keep(self, fit: Boosting, start: Floats, best: int) -> None:
        super()._keep(fit, start, best)
        self.alphas_ = fit.alphas[: fit.n_rounds]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return super()._arrays() | alphas_to_arrays(self.alphas_)

    def _set_arrays(self, content: Content, manifest: Manifest) -> None:
        super()._set_arrays(content, manifest)
        searched = self.step == LINE_SEARCH
        self.alphas_ = alphas_of(content.arrays, manifest.n_rounds) if searched else []

    def backfit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        measure: Any = None,
        sweeps: int = 1,
        bounds: tuple[float, float] = (0.0, 10.0),
        base_scores: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Find the weight of every tree anew, one after the other (LambdaSMART, end of Sec. 4).

        Each gets the exact best weight while all others stay as they are, if that is better than
        what it has. So the mean of the measure, in which queries count by their weights, never
        falls on these data. It may on others. ``alphas_`` and ``history_`` stay those of `fit`.

        Parameters
        ----------
        X, y, qid
            The data, as in `fit`.
        measure
            What shall be best; the measure of training if None.
        sweeps
            How often to go through all trees, at most; it ends when nothing is gained.
        bounds
            The least and the largest weight, where 1 leaves a tree as it is.
        base_scores
            The scores of the base, for a ranker whose base was given as scores.
        progress
            Who wants to know how far it is.
        """
        owner = f"{self._name}.backfit"
        self._check_fitted()
        check(owner, "sweeps", sweeps, Whole(1))
        check(owner, "bounds", bounds, Bounds(0))
        first = parse_measures(self._followed())[0]
        chosen = one_measure(owner, first if measure is None else measure)
        given = training_data(owner, X, y, qid, None)
        data = given.data
        if base_scores is not None:
            base_scores = given.arrange(
                given_scores(owner, "base_scores", base_scores, data.n_docs)
            )
        fitting = Backfitting(
            following_some(owner, chosen, data, data.query_weight),
            *self._features_of(data),
            self._scores_before(data, None, data.n_docs, base_scores),
            bounds,
        )
        with (progress or Silent()).start("backfitting", sweeps * self.n_trees_, "trees") as task:
            for _ in range(sweeps):
                self.forest_, old, new = fitting.sweep(self.forest_, task)
                log.info("%s: %s from %.6f to %.6f", owner, chosen, old, new)
                if new <= old:
                    break
        return self
