"""LambdaMART: boosted trees that follow the lambda gradient of a measure."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content
from rankinite.core.errors import UsageError
from rankinite.core.params import Bounds, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.types import Floats
from rankinite.measures.text import one_measure, parse_measures
from rankinite.objectives.choose import choose_objective
from rankinite.objectives.objective import Objective
from rankinite.rankers.base import given_scores
from rankinite.rankers.boosting import Boosting, alphas_of, alphas_to_arrays
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.inputs import Valid, refuse_unknown, training_data
from rankinite.rankers.learner import Beginning
from rankinite.rankers.line_search import Backfitting, LineSearch, following, following_some
from rankinite.rankers.manifest import Manifest
from rankinite.rankers.parameters import LINE_SEARCH, LambdaMARTParameters
from rankinite.rankers.rounds import Callback
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.trees.binning import BinnedData
from rankinite.trees.grower import GrowthOptions

log = logging.getLogger("rankinite")


class LambdaMART(LambdaMARTParameters, TreeRanker):
    """Boosted regression trees that follow lambda gradients (LambdaSMART, Algorithm 1).

    With a ``base`` this is LambdaSMART: boosting starts from the scores of another ranker.

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
        # Some objectives have no Newton step.
        reason = getattr(self._objective(), "no_newton", "")
        for name, other in (("step", "gradient"), ("criterion", "mse")):
            if reason and getattr(self, name) == "newton":
                raise UsageError(
                    f"{self._name}: {name} is 'newton', and {reason}; use {name}={other!r} "
                    f"(--{name} {other})"
                )

    def _objective(self) -> Objective:
        return choose_objective(self.measure, truncation=self.truncation, normalise=self.normalise)

    @classmethod
    def _with_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        bounds = parameters.get("alpha_bounds")
        if isinstance(bounds, list):  # as a file holds what was a tuple
            parameters = {**parameters, "alpha_bounds": tuple(bounds)}
        return super()._with_parameters(parameters)

    def _growth(self) -> GrowthOptions:
        growth = super()._growth()
        return replace(growth, step="gradient") if self.step == LINE_SEARCH else growth

    def _search(self, beginning: Beginning) -> LineSearch | None:
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
