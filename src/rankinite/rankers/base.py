"""The base that training starts from: a fitted ranker, another fitted model, or scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.errors import DataError, UsageError
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.rankers.ranker import Ranker, check_features

Arrange = Callable[[Floats], Floats]


def is_model(base: Any) -> bool:
    """Tell whether a base is a model that predicts scores, and not scores."""
    # A class has predict, too, but nothing to predict with.
    return hasattr(base, "predict") and not isinstance(base, type)


def model_scores(
    owner: str,
    base: Any,
    X: Any,
    qid: ArrayLike | None,
    n_docs: int,
    called: str = "the base",
) -> Floats:
    """Return the scores of a model; rankers take all that we take, others arrays and frames."""
    kind = type(base).__name__
    if isinstance(base, Ranker):
        if not base.is_fitted:
            raise UsageError(f"{owner}: {called}, a {kind}, is not fitted yet; fit it first")
        return base.predict(X, qid)
    # Models of other libraries know neither our data sets nor queries, and nobody checks what they
    # predict.
    scores = base.predict(X.X if isinstance(X, RankingData) else X)
    return given_scores(owner, f"what {called}, a {kind}, predicts", scores, n_docs)


def given_scores(owner: str, name: str, scores: ArrayLike, n_docs: int) -> Floats:
    """Check scores that the caller passed for some documents."""
    try:
        numbers = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"{owner}: {name} is a {type(scores).__name__}; expected a fitted ranker (load_model "
            "reads one from a file), or one score per document"
        ) from None
    if numbers.shape != (n_docs,):
        raise DataError(
            f"{owner}: {name} has the shape {numbers.shape}; expected a fitted ranker, or one "
            f"score for each of the {n_docs} documents"
        )
    if not np.isfinite(numbers).all():
        doc = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(
            f"{owner}: {name} has {numbers[doc]} for document {doc}; expected finite scores"
        )
    return numbers


@dataclass(frozen=True)
class Base:
    """The ``base`` parameter of a ranker, and the scores that training and predict start from.

    Attributes
    ----------
    owner
        The ranker that has it, for messages.
    value
        A fitted ranker or other model, one score per training document, or None.
    """

    owner: str
    value: Any

    @property
    def is_scores(self) -> bool:
        """Whether the base is scores, which a model file cannot ask for others."""
        return self.value is not None and not is_model(self.value)

    def start_scores(self, start: Floats, data: RankingData, arrange: Arrange) -> Floats:
        """Return the scores of documents before the first round, one row per output.

        Parameters
        ----------
        start
            The constant score of each output.
        data
            The documents.
        arrange
            From the order of the caller's arrays to that of the data set.
        """
        return self._added(self.value, "base", start, data, arrange)

    def validation_scores(
        self, name: str, start: Floats, data: RankingData, arrange: Arrange, valid_base: Any
    ) -> Floats:
        """Return the scores of a validation set before the first round, one row per output.

        Parameters
        ----------
        name
            The name of the set.
        start, data, arrange
            As in `start_scores`.
        valid_base
            If the base is scores: those of the set, or of several sets by name.
        """
        if not self.is_scores:
            return self.start_scores(start, data, arrange)
        scores = valid_base.get(name) if isinstance(valid_base, Mapping) else valid_base
        if scores is None:
            raise UsageError(
                f"{self.owner}: the base is given as scores; give those of the validation set "
                f"{name!r} as valid_base"
            )
        return self._added(scores, f"valid_base of {name!r}", start, data, arrange)

    def _added(
        self, value: Any, called: str, start: Floats, data: RankingData, arrange: Arrange
    ) -> Floats:
        """Return the start of each output, plus the scores of a model, or these scores."""
        begin = np.repeat(start[:, None], data.n_docs, axis=1)
        if value is None:
            return begin
        if is_model(value):
            # One set of features for both: predict hands on the X that it gets.
            if isinstance(value, Ranker) and value.is_fitted:
                check_features(type(value).__name__, data.feature_names, value.feature_names_)
            return begin + model_scores(self.owner, value, data, None, data.n_docs)
        # Scores come in the order of the caller's arrays, a model's in that of the set.
        return begin + arrange(given_scores(self.owner, called, value, data.n_docs))

    def prediction_scores(
        self,
        start: Floats,
        X: Any,
        qid: ArrayLike | None,
        n_docs: int,
        base_scores: ArrayLike | None,
    ) -> Floats:
        """Return the scores that predict adds to, as they were in training, one row per output.

        Parameters
        ----------
        start
            The constant score of each output.
        X, qid, n_docs
            The documents to predict, and their number.
        base_scores
            If the base is scores: those of these documents, or 0.
        """
        scores = np.repeat(start[:, None], n_docs, axis=1)
        if base_scores is not None and not self.is_scores:
            raise UsageError(
                f"{self.owner}: base_scores were given, but the model "
                f"{'has no base' if self.value is None else 'contains its base'}; leave them out"
            )
        if self.value is None:
            return scores
        if not self.is_scores:
            return scores + model_scores(self.owner, self.value, X, qid, n_docs)
        if base_scores is None:
            raise UsageError(
                f"{self.owner}: was fitted on top of scores, not of a ranker; give base_scores, "
                "the same ranker's scores of these documents (0 for what was learned on top)"
            )
        # Without the base's scores, what was learned on top of them can still be looked at.
        is_zero = np.ndim(base_scores) == 0 and base_scores == 0
        wanted = np.zeros(n_docs) if is_zero else base_scores
        return scores + given_scores(self.owner, "base_scores", wanted, n_docs)
