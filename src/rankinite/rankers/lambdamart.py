"""LambdaMART: boosted trees that follow the lambda gradient of a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from rankinite.core.params import Constraint, Either, OneOf, Whole
from rankinite.core.progress import Progress
from rankinite.measures.measure import Measure
from rankinite.measures.text import parse_measures
from rankinite.objectives.choose import choose_objective
from rankinite.objectives.objective import Objective
from rankinite.rankers.inputs import Valid, refuse_unknown
from rankinite.rankers.rounds import Callback
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.trees.binned_data import BinnedData

DEFAULT_MEASURE = "NDCG@10"


class LambdaMART(TreeRanker):
    """Boosted regression trees that follow lambda gradients (LambdaSMART, Algorithm 1).

    With a ``base`` this is LambdaSMART: boosting starts from the scores of another ranker.

    Parameters
    ----------
    measure
        What to improve, as a text or a value: ``"NDCG"``, ``"ERR"``, ``"MAP@10"``; or
        ``"RankNet"``, or an objective.
    n_trees
        How many trees to grow at most.
    n_leaves, max_depth
        How large a tree may be.
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
        The value of a leaf: a ``"newton"`` step, or the mean ``"gradient"`` (Objectives,
        Sec. 5.3).
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
        What validation sets are measured by; the first decides. The measure of training if None.
    patience
        Stop after so many rounds in which the validation set did not improve; never if None.
    min_improvement
        What counts as an improvement.
    random_state
        The seed; None for another one every time.

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
    }

    def __init__(
        self,
        measure: Any = "NDCG",
        *,
        n_trees: int = 500,
        n_leaves: int = 31,
        learning_rate: float = 0.1,
        max_depth: int | None = None,
        min_docs_in_leaf: int = 20,
        min_gain: float = 0.0,
        docs_per_tree: float = 1.0,
        queries_per_tree: float = 0.5,
        features_per_tree: float = 1.0,
        criterion: str = "mse",
        step: str = "newton",
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
        self.min_docs_in_leaf = min_docs_in_leaf
        self.min_gain = min_gain
        self.docs_per_tree = docs_per_tree
        self.queries_per_tree = queries_per_tree
        self.features_per_tree = features_per_tree
        self.criterion = criterion
        self.step = step
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
            binned=binned,
        )

    def _objective(self) -> Objective:
        return choose_objective(self.measure, truncation=self.truncation, normalise=self.normalise)

    def _default_measures(self) -> Sequence[Measure]:
        objective = self._objective()
        return parse_measures(getattr(objective, "measure", DEFAULT_MEASURE))
