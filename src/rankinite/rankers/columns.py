"""Numbers of training documents besides features and labels: their weights and positions.

They are arguments of fit, one number per document; or, for data sets and files, label sources that
parameters of the ranker name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import some_of
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.objectives.objective import Gradients, Targets

# Positions from here on would not be exact as floats, and no list of results is as long.
LARGEST_POSITION = 2**31


@dataclass(frozen=True)
class InputData:
    """A data set that the caller passed as one, or as arrays.

    Attributes
    ----------
    data
        The set.
    order
        The position in the caller's arrays of each document of the set: documents of a query that
        were apart in the arrays were brought together. None if nothing was moved.
    """

    data: RankingData
    order: NDArray[np.int64] | None = None

    def arrange(self, values: Floats) -> Floats:
        """Bring values in the order of the caller's arrays into the order of the set."""
        return values if self.order is None else values[self.order]

    def callers_qid(self) -> NDArray[Any]:
        """Return the query of every document, in the order of the caller's arrays."""
        qid = self.data.qid
        if self.order is not None:
            qid[self.order] = qid.copy()
        return qid


@dataclass(frozen=True)
class Columns:
    """Which label sources of the training data are no labels, and how positions are corrected for.

    Attributes
    ----------
    weight
        The source that holds the weights of documents; None if there is none.
    position
        The source that holds positions; None if these are not corrected for.
    labelled_only
        Whether documents without a label have weight 0: to a loss of single documents they teach
        nothing, while to a loss of pairs they hold a rank.
    correct
        Corrects gradients for the positions of the targets.
    """

    weight: str | None = None
    position: str | None = None
    labelled_only: bool = False
    correct: Callable[[Gradients, Targets], Gradients] | None = None


def doc_weights_of(
    owner: str, sample_weight: ArrayLike | None, columns: Columns, documents: InputData
) -> Floats | None:
    """Return the weights of documents: those of the argument, or of a label source."""
    data = documents.data
    if sample_weight is None and columns.weight is not None:
        of_source = _source(owner, "weight_source", "sample_weight", columns.weight, documents)
        weights = checked_doc_weights(owner, of_source, InputData(data))
    else:
        weights = checked_doc_weights(owner, sample_weight, documents)
    unlabelled = np.isnan(data.y)
    if not columns.labelled_only or not unlabelled.any():
        return weights
    return np.where(unlabelled, 0.0, 1.0 if weights is None else weights)


def positions_of(
    owner: str, position: ArrayLike | None, source: str, documents: InputData
) -> NDArray[np.int64]:
    """Return the positions of documents: those of the argument, or of a label source."""
    if position is None:
        values = _source(owner, "position_source", "position", source, documents)
    else:
        try:
            values = np.asarray(position, np.float64)
        except (TypeError, ValueError) as problem:
            raise DataError(f"{owner}: position cannot be made numbers: {problem}") from None
        if values.shape != (documents.data.n_docs,):
            raise DataError(
                f"{owner}: position has the shape {values.shape}; expected one position for each "
                f"of the {documents.data.n_docs} documents"
            )
        values = documents.arrange(values)
    # NaN is not whole, so that a document without a position is refused, too.
    bad = ~((values >= 0.0) & (values < LARGEST_POSITION) & (np.floor(values) == values))
    if bad.any():
        doc = int(bad.argmax())
        raise DataError(
            f"{owner}: the position of document {doc} is {values[doc]:g}; expected a whole number "
            "of at least 0, counted from 0 or from 1"
        )
    return values.astype(np.int64)


def _source(owner: str, parameter: str, argument: str, source: str, documents: InputData) -> Floats:
    """Return a label source that a parameter names."""
    labels = documents.data.labels
    if source not in labels:
        known = some_of(list(labels)) if labels else "none"
        raise UsageError(
            f"{owner}: {parameter} is {source!r}, and the label sources of the training data are: "
            f"{known}; give fit {argument}, one number per document, or name a source"
        )
    return labels[source]


def checked_doc_weights(
    owner: str, sample_weight: ArrayLike | None, documents: InputData
) -> Floats | None:
    """Check weights of documents, and bring them into the order of the set."""
    if sample_weight is None:
        return None
    n_docs = documents.data.n_docs
    try:
        weights = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"{owner}: sample_weight cannot be made numbers: {problem}") from None
    if weights.shape != (n_docs,):
        raise DataError(
            f"{owner}: sample_weight has the shape {weights.shape}; expected one weight for each "
            f"of the {n_docs} documents"
        )
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        doc = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{owner}: sample_weight of document {doc} is {weights[doc]}; expected a finite "
            "number of at least 0"
        )
    if not weights.any():
        raise DataError(f"{owner}: sample_weight is zero for all documents; give some a weight")
    return documents.arrange(weights)
