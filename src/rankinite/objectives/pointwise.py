"""Losses of one document at a time: MART's squared error and logistic loss, McRank's classes.

`RegressionTerm` adds a squared error to the gradients of another objective.

The gradient is minus the derivative of the loss by the score, the hessian its second derivative.
Both are 0 for a document without a label.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np

from rankinite.core.elementary import log
from rankinite.core.errors import DataError
from rankinite.core.params import SourceName, check, or_none
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Integers, Mask
from rankinite.measures.definitions import ERR
from rankinite.objectives.kernels import pointwise as kernels
from rankinite.objectives.kernels.arrays import (
    CENTRED_SQUARED_ERROR,
    LOGISTIC,
    SQUARED_ERROR,
    ObjectiveArrays,
    ObjectiveMixture,
    single_mixture,
)
from rankinite.objectives.objective import (
    Gradients,
    Objective,
    Targets,
    doc_weights,
    labels_of,
    read_only,
)

# Fewer are done by one thread before another has woken up.
QUERIES_PER_THREAD, DOCS_PER_THREAD = 4000, 20_000
# Added to the number of documents of every class, so that none starts at minus infinity.
SMOOTHING = 1.0
MOST_CLASSES = 100
# Means are clipped to this distance from 0 and 1, where log odds would be infinite.
LEAST_CHANCE = 1e-6
# Grades of a regression term: what the largest difference is scaled to, and how many steps between
# grades count. Tried on real and simulated sets: 8 and no limit were no better.
SCORE_RANGE = 4.0
MOST_STEPS = 4


@dataclass(frozen=True)
class _Pointwise(Objective):
    """A loss of one document at a time.

    Parameters
    ----------
    source
        The label source; the data set's labels if None.
    """

    source: str | None = None

    def __post_init__(self) -> None:
        check(type(self).__name__, "source", self.source, or_none(SourceName()))

    def _labels_and_weights(self, targets: Targets) -> tuple[Floats, Floats]:
        """Return labels and weights; both 0 where there is no label."""
        owner = type(self).__name__
        labels = labels_of(owner, self.source, targets)
        # A weight of 0 rather than a mask: kernels then need no branch for missing labels.
        missing = np.isnan(labels)
        weights = np.where(missing, 0.0, doc_weights(targets))
        if not weights.any():
            raise DataError(
                f"{owner}: no document has both a label and a weight above 0; "
                "give labels or weights for at least one"
            )
        return np.where(missing, 0.0, labels), weights


@dataclass(frozen=True)
class SquaredError(_Pointwise):
    """Half the squared difference of score and label; starts from the mean label.

    Parameters
    ----------
    source
        The label source; the data set's labels if None.

    Examples
    --------
    >>> import numpy as np
    >>> labels = {None: np.array([0.0, 1.0, 5.0])}
    >>> SquaredError().prepare(Targets(labels, np.array([0, 3]), top_grade=5.0)).start
    array([2.])
    """

    def prepare(self, targets: Targets) -> PointwiseGradients:
        """Compute the mean label."""
        labels, weights = self._labels_and_weights(targets)
        start = _mean(labels, weights)
        return PointwiseGradients(SQUARED_ERROR, labels, weights, targets.offsets, start)


@dataclass(frozen=True)
class CentredSquaredError(_Pointwise):
    """Squared error up to a constant per query: only differences within a query count.

    Parameters
    ----------
    source
        The label source; the data set's labels if None.
    """

    def prepare(self, targets: Targets) -> PointwiseGradients:
        """Check the labels."""
        labels, weights = self._labels_and_weights(targets)
        # Any start would do: a constant per query changes nothing.
        return PointwiseGradients(CENTRED_SQUARED_ERROR, labels, weights, targets.offsets, 0.0)


@dataclass(frozen=True)
class Logistic(_Pointwise):
    """Cross-entropy with the chance R = (2^y - 1) / 2^top_grade to satisfy (Ensemble, Sec. 4.2).

    Parameters
    ----------
    source
        The label source; the data set's labels if None.
    """

    def prepare(self, targets: Targets) -> PointwiseGradients:
        """Turn labels into chances and compute the log odds of their mean."""
        labels, weights = self._labels_and_weights(targets)
        measure = ERR(source=self.source)
        measure.check_labels(labels, targets.top_grade)
        chances = measure.document_values(labels, targets.top_grade)
        mean = min(max(_mean(chances, weights), LEAST_CHANCE), 1.0 - LEAST_CHANCE)
        start = log(mean / (1.0 - mean))
        return PointwiseGradients(LOGISTIC, chances, weights, targets.offsets, start)


class PointwiseGradients(Gradients):
    """The gradients of a loss of one output on one data set.

    Parameters
    ----------
    kind
        ``SQUARED_ERROR``, ``CENTRED_SQUARED_ERROR`` or ``LOGISTIC``.
    values, weights
        The target and the weight of each document.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    start
        The score to start from.
    """

    def __init__(
        self, kind: int, values: Floats, weights: Floats, offsets: Integers, start: float
    ) -> None:
        self.start = np.array([start])
        self.arrays = ObjectiveArrays(
            kind,
            offsets=read_only(offsets, np.int64),
            values=read_only(values),
            doc_weight=read_only(weights),
        )

    def mixture(self, round: int) -> ObjectiveMixture:
        """Return arrays from which a net's kernel computes the gradients of a query."""
        return single_mixture(self.arrays)

    def gradients(
        self, scores: Floats, round: int, out_gradient: Floats, out_hessian: Floats
    ) -> None:
        """Write gradient and hessian of every document at these scores."""
        arguments = read_only(scores[0]), self.arrays, out_gradient[0], out_hessian[0]
        n_queries = len(self.arrays.offsets) - 1
        parallel_for(
            kernels.all_pointwise_gradients, n_queries, *arguments, grain=QUERIES_PER_THREAD
        )


class RegressionTerm:
    """A centred squared error that is added to lambdas: combined regression and ranking.

    Lambdas say which document should be higher, and never that the distance is large enough;
    grades say how far apart two documents should be. Grades are scaled so that the largest
    difference is `SCORE_RANGE`, where the sigmoid of lambdas is nearly flat.

    Parameters
    ----------
    targets
        The data set; documents without a label take no part.
    source
        The label source; the data set's labels if None.
    weight
        The weight of a document if there are two grades. With more it is multiplied by the square
        of the number of steps between them, up to `MOST_STEPS`: on the scaled grades a step is so
        much smaller, and shall count the same.
    """

    def __init__(self, targets: Targets, source: str | None, weight: float) -> None:
        labels = labels_of("regression_weight", source, targets)
        missing = np.isnan(labels)
        grades = np.unique(labels[~missing])
        span = float(grades[-1] - grades[0]) if len(grades) > 1 else 1.0
        steps = min(max(len(grades) - 1, 0), MOST_STEPS)
        self._arrays = ObjectiveArrays(
            CENTRED_SQUARED_ERROR,
            offsets=read_only(targets.offsets, np.int64),
            values=read_only(np.where(missing, 0.0, labels) * (SCORE_RANGE / span)),
            doc_weight=read_only(
                np.where(missing, 0.0, float(weight) * steps**2 * doc_weights(targets))
            ),
        )

    def divided_by(self, divisors: Floats) -> Self:
        """Return the term with the grade of every document divided by a number."""
        new = copy(self)
        new._arrays = self._arrays._replace(values=read_only(self._arrays.values / divisors))
        return new

    def add(self, queries: Mask, scores: Floats, out_gradient: Floats, out_hessian: Floats) -> None:
        """Add gradients and hessians of some queries, or of all if the mask is empty."""
        arguments = read_only(scores[0]), self._arrays, queries, out_gradient[0], out_hessian[0]
        n_queries = len(self._arrays.offsets) - 1
        parallel_for(kernels.add_regression, n_queries, *arguments, grain=QUERIES_PER_THREAD)


@dataclass(frozen=True)
class MultiClass(_Pointwise):
    """Cross-entropy over the grades 0 to top_grade as classes, one output each: McRank.

    Gradients are multiplied by (K - 1) / K for K classes, so that a Newton step is that of
    Friedman's multi-class boosting.

    Parameters
    ----------
    source
        The label source; the data set's labels if None.
    """

    def prepare(self, targets: Targets) -> MultiClassGradients:
        """Check that labels are classes and count them."""
        labels, weights = self._labels_and_weights(targets)
        n_classes = _number_of_classes(targets.top_grade)
        whole = np.floor(labels) == labels
        if not whole.all():
            doc = int(np.argmin(whole))
            raise DataError(
                f"MultiClass: document {doc} has the label {labels[doc]:g}, and classes are whole "
                "grades; round the labels, or use a ranker that takes decimals, such as MART"
            )
        if labels.max() >= n_classes:
            doc = int(labels.argmax())
            raise DataError(
                f"MultiClass: document {doc} has the label {labels[doc]:g}, above the top grade "
                f"{targets.top_grade:g}; give a larger top_grade"
            )
        return MultiClassGradients(labels.astype(np.int64), weights, n_classes)


class MultiClassGradients(Gradients):
    """Differences of target and predicted chances of each class for one data set."""

    def __init__(self, classes: Integers, weights: Floats, n_classes: int) -> None:
        # Weights relative to the largest: smoothing then means one more document of full weight.
        counts = np.bincount(classes, weights / weights.max(), minlength=n_classes) + SMOOTHING
        self.start = log(counts / counts.sum())
        self._classes, self._weights = read_only(classes, np.int64), read_only(weights)

    def gradients(
        self, scores: Floats, round: int, out_gradient: Floats, out_hessian: Floats
    ) -> None:
        """Write the weighted differences of chances, and p (1 - p), of every class."""
        arguments = read_only(scores), self._classes, self._weights, out_gradient, out_hessian
        parallel_for(kernels.multi_class, len(self._classes), *arguments, grain=DOCS_PER_THREAD)


def _mean(numbers: Floats, weights: Floats) -> float:
    return float(np.average(numbers, weights=weights))


def _number_of_classes(top_grade: float) -> int:
    if top_grade != int(top_grade) or not 1 <= top_grade < MOST_CLASSES:
        raise DataError(
            f"MultiClass: the top grade is {top_grade:g}; expected a whole number from 1 to "
            f"{MOST_CLASSES - 1}, each grade being a class"
        )
    return int(top_grade) + 1
