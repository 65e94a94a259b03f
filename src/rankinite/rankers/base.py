"""What boosting starts from: a fitted ranker, another fitted model, or scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.rankers.inputs import Given
from rankinite.rankers.ranker import Ranker


def is_model(base: Any) -> bool:
    """Tell whether a base can be asked for scores, or is scores itself."""
    return hasattr(base, "predict") and not isinstance(base, type)


def model_scores(
    owner: str,
    base: Any,
    X: Any,
    qid: ArrayLike | None,
    n_docs: int,
    called: str = "the base",
) -> Floats:
    """Ask a base for scores; rankers take all that we take, other models arrays and frames."""
    kind = type(base).__name__
    if isinstance(base, Ranker):
        if not base.is_fitted:
            raise UsageError(f"{owner}: {called}, a {kind}, is not fitted yet; fit it first")
        return base.predict(X, qid)
    found = base.predict(X.X if isinstance(X, RankingData) else X)
    return given_scores(owner, f"what {called}, a {kind}, predicts", found, n_docs)


def given_scores(owner: str, name: str, given: ArrayLike, n_docs: int) -> Floats:
    """Check scores that were given for some documents."""
    try:
        scores = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"{owner}: {name} is a {type(given).__name__}; expected a fitted ranker (load_model "
            "reads one from a file), or one score a document"
        ) from None
    if scores.shape != (n_docs,):
        raise DataError(
            f"{owner}: {name} has the shape {scores.shape}; expected a fitted ranker, or one "
            f"score for each of the {n_docs} documents"
        )
    if not np.isfinite(scores).all():
        doc = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise DataError(
            f"{owner}: {name} has {scores[doc]} for document {doc}; expected finite scores"
        )
    return scores


class Based(Ranker):
    """A ranker that begins with the scores of its base, if it has one."""

    base: Any

    @property
    @abstractmethod
    def _start(self) -> Floats:
        """The score that all documents begin with, one for each output."""

    def _base_of(self, name: str, valid_base: Any) -> tuple[Any, str]:
        """Return the base of a validation set, and what people call it."""
        if self.base is None or is_model(self.base):
            return self.base, "base"
        given = valid_base.get(name) if isinstance(valid_base, Mapping) else valid_base
        if given is None:
            raise UsageError(
                f"{self._name}: the base is given as scores; give those of the validation set "
                f"{name!r} as valid_base"
            )
        return given, f"valid_base of {name!r}"

    def _start_scores(self, start: Floats, given: Given, base: Any, called: str) -> Floats:
        """Return the scores before the first round, one row for each output."""
        n_docs = given.data.n_docs
        scores = np.repeat(start[:, None], n_docs, axis=1)
        if base is None:
            return scores
        if is_model(base):
            return scores + model_scores(self._name, base, given.data, None, n_docs)
        return scores + given.arrange(given_scores(self._name, called, base, n_docs))

    def _scores_before(
        self, X: Any, qid: ArrayLike | None, n_docs: int, given: ArrayLike | None
    ) -> Floats:
        """Return the scores before the first round, as in training, for documents to predict."""
        scores = np.repeat(self._start[:, None], n_docs, axis=1)
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
                "the same ranker's scores of these documents (0 for what was learned on top)"
            )
        alone = np.ndim(given) == 0 and given == 0
        wanted = np.zeros(n_docs) if alone else given
        return scores + given_scores(self._name, "base_scores", wanted, n_docs)

    def _set_base(self, base: Any) -> None:
        sound = "base" in self._get_param_names() and (
            not isinstance(base, Ranker) or base.feature_names_ == self.feature_names_
        )
        if not sound:
            raise ModelFileError("the base in the file does not fit the ranker that contains it")
        self.base = base
