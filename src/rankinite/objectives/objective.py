"""What every ranker follows: an objective is prepared with labels, then gives gradients.

Rankers see nothing else. An objective is an immutable value; what it makes of a data set, its
`Gradients`, holds whatever can be computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.jit import frozen
from rankinite.core.types import Floats
from rankinite.measures.scorer import source_of
from rankinite.objectives.kernels.arrays import Blend, Plan

EVERY_QUERY = np.zeros(0, np.bool_)


@dataclass(frozen=True)
class Targets:
    """What a ranker is to learn: labels, queries and weights.

    Attributes
    ----------
    labels
        The labels of each source; those of the data set itself under None. NaN means that the
        document has no label in this source.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    top_grade
        The largest grade there can be.
    query_weight, doc_weight
        One weight a query, one a document; all 1 if None.
    seed
        For the order of documents with equal scores.
    """

    labels: Mapping[str | None, Floats]
    offsets: NDArray[np.int64]
    top_grade: float
    query_weight: Floats | None = None
    doc_weight: Floats | None = None
    seed: int = 0

    @property
    def n_docs(self) -> int:
        """How many documents there are."""
        return int(self.offsets[-1])


class Gradients(Protocol):
    """Where the documents of one data set should move.

    Attributes
    ----------
    start
        The scores to begin with, one for each output; most objectives have one output.
    """

    start: Floats

    def gradients(
        self, scores: Floats, iteration: int, out_lambda: Floats, out_weight: Floats
    ) -> None:
        """Write lambda and weight of every document at these scores.

        Parameters
        ----------
        scores
            One row for each output, one column for each document.
        iteration
            How many steps were taken before this one.
        out_lambda
            Positive pushes a document up; the shape is that of the scores.
        out_weight
            How fast lambda falls when the document's score rises; at least 0.
        """


@runtime_checkable
class GradientsOfSome(Gradients, Protocol):
    """Gradients that cost less when only some queries' are needed."""

    def gradients_of(
        self,
        queries: NDArray[np.bool_],
        scores: Floats,
        iteration: int,
        out_lambda: Floats,
        out_weight: Floats,
    ) -> None:
        """Do what `gradients` does for the documents of some queries, or of all if empty.

        What is written for other documents has no meaning.
        """


@runtime_checkable
class Planned(Gradients, Protocol):
    """Gradients of one output that a kernel can also be given, for a query at a time.

    Attributes
    ----------
    plan
        What `plan_kernels.plan_lambdas` follows; it gives the same bits as `gradients`.
    """

    plan: Plan


@runtime_checkable
class Blended(Gradients, Protocol):
    """Gradients of one output that follow several plans, in shares that change by iteration."""

    def blend(self, iteration: int) -> Blend:
        """Return what `plan_kernels.blend_lambdas` follows in an iteration."""


class Objective(Protocol):
    """What should be improved."""

    def prepare(self, targets: Targets) -> Gradients:
        """Check the labels and compute what stays the same while scores change."""


def labels_of(owner: str, source: str | None, targets: Targets) -> Floats:
    """Return the labels of a source.

    Parameters
    ----------
    owner
        Who asks, for the message if there is no such source.
    source
        Its name; None for the data set's own labels.
    targets
        What is to be learned.
    """
    return source_of(owner, source, targets.labels)


def doc_weights(targets: Targets) -> Floats:
    """Return one weight a document: its own times its query's."""
    weight = np.ones(targets.n_docs) if targets.doc_weight is None else targets.doc_weight
    if targets.query_weight is None:
        return weight
    return weight * np.repeat(targets.query_weight, np.diff(targets.offsets))


def read_only(array: ArrayLike, dtype: Any = np.float64) -> NDArray[Any]:
    """Return a contiguous view that cannot be written: kernels compile for one kind of array."""
    return frozen(np.ascontiguousarray(array, dtype=dtype))
