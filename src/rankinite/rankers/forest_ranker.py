"""What a ranker of trees can do once it is fitted: predict, tell importances, be kept in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.params import OneOf, Whole, check
from rankinite.rankers.base import given_scores, is_model, model_scores
from rankinite.rankers.manifest import Curves, Manifest, write_history
from rankinite.rankers.ranker import Ranker
from rankinite.trees.forest import Forest

Floats = NDArray[np.float64]


class ForestRanker(Ranker):
    """A ranker whose scores are sums of trees."""

    base: Any
    random_state: Any
    forest_: Forest
    n_trees_: int
    n_rounds_: int
    history_: Curves
    seed_: int

    def _ranking(self, scores: Floats) -> Floats:
        """Return the scores that documents are ranked by, from those of the outputs."""
        first: Floats = scores[0]
        return first

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

    def _scores_before(
        self, X: Any, qid: ArrayLike | None, n_docs: int, given: ArrayLike | None
    ) -> Floats:
        """Return the scores that the first tree is added to, as in training."""
        scores = np.repeat(self.forest_.start[:, None], n_docs, axis=1)
        if given is not None and (self.base is None or is_model(self.base)):
            raise UsageError(
                f"{self._name}: base_scores were given, but the model "
                f"{'has no base' if self.base is None else 'contains its base'}; leave them out"
            )
        if self.base is None:
            return scores
        if is_model(self.base):
            return scores + model_scores(self._name, self.base, X, qid, n_docs)
        if given is None:
            raise UsageError(
                f"{self._name}: was fitted on top of scores, not of a ranker; give base_scores, "
                "the same ranker's scores of these documents (0 for the trees alone)"
            )
        alone = np.ndim(given) == 0 and given == 0
        wanted = np.zeros(n_docs) if alone else given
        return scores + given_scores(self._name, "base_scores", wanted, n_docs)

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

    def _content(self) -> Content:
        if is_model(self.base) and not isinstance(self.base, Ranker):
            raise UsageError(
                f"{self._name}: the base is a {type(self.base).__name__}, which a model file "
                "cannot hold; give its scores as base, or a ranker of rankinite"
            )
        parameters = self._plain_parameters()
        if not Whole(0).allows(self.random_state):
            parameters["random_state"] = self.seed_
        manifest = {
            "parameters": parameters,
            "based_on_scores": self.base is not None and not is_model(self.base),
            "feature_names": list(self.feature_names_),
            "top_grade": self.top_grade_,
            "n_rounds": self.n_rounds_,
            "history": write_history(self.history_),
        }
        return Content(manifest, self.forest_.to_arrays())

    def _plain_parameters(self) -> dict[str, Any]:
        """Return the parameters as a file can hold them, without the base."""
        return {
            name: _plain(value)
            for name, value in self.get_params(deep=False).items()
            if name != "base"
        }

    @classmethod
    def _from_content(cls, content: Content, base: Ranker | None) -> Self:
        manifest = Manifest.read(content.manifest)
        new = cls._with_parameters(manifest.parameters)
        new.feature_names_ = manifest.feature_names
        new.n_features_in_ = len(manifest.feature_names)
        new.top_grade_ = manifest.top_grade
        new.n_rounds_ = manifest.n_rounds
        new.history_ = manifest.history
        new.seed_ = new.random_state
        new.forest_ = Forest.from_arrays(content.arrays, new.n_features_in_)
        start = new.forest_.start
        if len(start) != cls._n_outputs(manifest.top_grade) or not np.isfinite(start).all():
            raise ModelFileError(f"the trees of the file are not those of a {cls.__name__}")
        new.n_trees_ = len(new.forest_) // len(start)
        if new.n_trees_ > new.n_rounds_:
            raise ModelFileError("the file has more trees than its manifest says were grown")
        if manifest.based_on_scores or base is not None:
            new._set_base(np.zeros(0) if base is None else base)
        return new

    @classmethod
    def _with_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Make an unfitted ranker of what a file says, if `fit` would take it."""
        try:
            new = cls(**parameters)
            new._check_parameters()
            check(cls.__name__, "random_state", new.random_state, Whole(0))
        except (TypeError, UsageError) as problem:
            raise ModelFileError(f"the manifest of the file is not understood: {problem}") from None
        return new

    @classmethod
    def _n_outputs(cls, top_grade: float) -> int:
        """Return how many trees a round grows."""
        return 1

    def _set_base(self, base: Any) -> None:
        sound = "base" in self._get_param_names() and (
            not isinstance(base, Ranker) or base.feature_names_ == self.feature_names_
        )
        if not sound:
            raise ModelFileError("the base in the file does not fit the ranker that contains it")
        self.base = base


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    # What an object without a text of its own shows is its address.
    text = str(value)
    return type(value).__name__ if text == object.__repr__(value) else text
