"""Losses of one document at a time: MART's squared error and logistic loss, McRank's classes.

Lambda is minus the derivative of the loss by the score, weight its second derivative. A document
without a label has neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError
from rankinite.core.params import Either, OneOf, SourceName, check
from rankinite.core.types import Floats
from rankinite.measures.measure import ERR
from rankinite.objectives.kernels import arrays as plans
from rankinite.objectives.kernels import pointwise as kernels
from rankinite.objectives.kernels.arrays import Plan
from rankinite.objectives.objective import Targets, doc_weights, labels_of, read_only

# Every class counts as if so many more documents had been seen: none starts at minus infinity.
SMOOTHING = 1.0
MOST_CLASSES = 100
# Log odds of a mean of 0 or 1 would be infinite.
LEAST_CHANCE = 1e-6


@dataclass(frozen=True)
class _Pointwise:
    """A loss of one document at a time.

    Parameters
    ----------
    source
        The label source; the data set's labels if None.
    """

    source: str | None = None

    def __post_init__(self) -> None:
        check(type(self).__name__, "source", self.source, Either(SourceName(), OneOf([None])))

    def _labels_and_weights(self, targets: Targets) -> tuple[Floats, Floats]:
        """Return labels and weights; both 0 where there is no label."""
        owner = type(self).__name__
        labels = labels_of(owner, self.source, targets)
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

    def prepare(self, targets: Targets) -> SquaredErrorGradients:
        """Find the mean label."""
        labels, weights = self._labels_and_weights(targets)
        return SquaredErrorGradients(labels, weights, targets.offsets)


class SquaredErrorGradients:
    """The residuals of one data set."""

    def __init__(self, labels: Floats, weights: Floats, offsets: NDArray[np.int64]) -> None:
        self.start = np.array([_mean(labels, weights)])
        self.plan = _plan(plans.SQUARED_ERROR, labels, weights, offsets)

    def gradients(
        self, scores: Floats, iteration: int, out_lambda: Floats, out_weight: Floats
    ) -> None:
        """Write the weighted residual and the weight of every document."""
        weights = self.plan.doc_weight
        np.subtract(self.plan.values, scores[0], out=out_lambda[0])
        np.multiply(out_lambda[0], weights, out=out_lambda[0])
        np.copyto(out_weight[0], weights)


@dataclass(frozen=True)
class CentredSquaredError(_Pointwise):
    """Squared error that forgives each query a constant: only differences within it count.

    Parameters
    ----------
    source
        The label source; the data set's labels if None.
    """

    def prepare(self, targets: Targets) -> CentredGradients:
        """Keep labels, weights and queries."""
        return CentredGradients(*self._labels_and_weights(targets), targets.offsets)


class CentredGradients:
    """The residuals of one data set, less the mean residual of each query."""

    def __init__(self, labels: Floats, weights: Floats, offsets: NDArray[np.int64]) -> None:
        self.start = np.zeros(1)
        self.plan = _plan(plans.CENTRED_SQUARED_ERROR, labels, weights, offsets)

    def gradients(
        self, scores: Floats, iteration: int, out_lambda: Floats, out_weight: Floats
    ) -> None:
        """Write the weighted centred residual and the weight of every document."""
        plan, given = self.plan, read_only(scores[0])
        kernels.centred(
            given, plan.values, plan.doc_weight, plan.offsets, out_lambda[0], out_weight[0]
        )


@dataclass(frozen=True)
class Logistic(_Pointwise):
    """Cross-entropy with the chance R = (2^y - 1) / 2^top_grade to satisfy (Ensemble, Sec. 4.2).

    Parameters
    ----------
    source
        The label source; the data set's labels if None.
    """

    def prepare(self, targets: Targets) -> LogisticGradients:
        """Turn labels into chances and find the log odds of their mean."""
        labels, weights = self._labels_and_weights(targets)
        measure = ERR(source=self.source)
        measure.check_labels(labels, targets.top_grade)
        chances = measure.document_values(labels, targets.top_grade)
        return LogisticGradients(chances, weights, targets.offsets)


class LogisticGradients:
    """Differences of wanted and predicted chances for one data set."""

    def __init__(self, chances: Floats, weights: Floats, offsets: NDArray[np.int64]) -> None:
        mean = min(max(_mean(chances, weights), LEAST_CHANCE), 1.0 - LEAST_CHANCE)
        self.start = np.array([np.log(mean / (1.0 - mean))])
        self.plan = _plan(plans.LOGISTIC, chances, weights, offsets)

    def gradients(
        self, scores: Floats, iteration: int, out_lambda: Floats, out_weight: Floats
    ) -> None:
        """Write the weighted difference of chances, and p (1 - p)."""
        plan, given = self.plan, read_only(scores[0])
        kernels.logistic(given, plan.values, plan.doc_weight, out_lambda[0], out_weight[0])


@dataclass(frozen=True)
class MultiClass(_Pointwise):
    """Cross-entropy over the grades 0 to top_grade as classes, one output each: McRank.

    Lambdas are multiplied by (K - 1) / K for K classes, so that a Newton step is the one of
    Friedman's multi-class boosting.

    Parameters
    ----------
    source
        The label source; the data set's labels if None.
    """

    def prepare(self, targets: Targets) -> MultiClassGradients:
        """Check that labels are classes and find how often each occurs."""
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


class MultiClassGradients:
    """Differences of wanted and predicted chances of each class for one data set."""

    def __init__(self, classes: NDArray[np.int64], weights: Floats, n_classes: int) -> None:
        counts = np.bincount(classes, weights / weights.max(), minlength=n_classes) + SMOOTHING
        self.start = np.log(counts / counts.sum())
        self._fixed = read_only(classes, np.int64), read_only(weights)

    def gradients(
        self, scores: Floats, iteration: int, out_lambda: Floats, out_weight: Floats
    ) -> None:
        """Write the weighted differences of chances, and p (1 - p), of every class."""
        kernels.multi_class(read_only(scores), *self._fixed, out_lambda, out_weight)


def _plan(kind: int, values: Floats, weights: Floats, offsets: NDArray[np.int64]) -> Plan:
    nothing, no_places = read_only(plans.NO_NUMBERS), read_only(plans.NO_PLACES, np.int64)
    return Plan(
        kind=kind,
        form=0,
        reach=0,
        normalise=0,
        margin=0.0,
        offsets=read_only(offsets, np.int64),
        values=read_only(values),
        shuffle=no_places,
        rank_weights=nothing,
        scales=nothing,
        groups=no_places,
        query_weight=nothing,
        doc_weight=read_only(weights),
    )


def _mean(numbers: Floats, weights: Floats) -> float:
    return float(np.average(numbers, weights=weights))


def _number_of_classes(top_grade: float) -> int:
    if top_grade != int(top_grade) or not 1 <= top_grade < MOST_CLASSES:
        raise DataError(
            f"MultiClass: the top grade is {top_grade:g}; expected a whole number from 1 to "
            f"{MOST_CLASSES - 1}, each grade being a class"
        )
    return int(top_grade) + 1
