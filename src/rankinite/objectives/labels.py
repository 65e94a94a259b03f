"""What objectives ask of targets: labels by source, weights, arrays as kernels want them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.kernels import frozen
from rankinite.measures.sources import source_of
from rankinite.objectives.objective import Floats, Targets


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
