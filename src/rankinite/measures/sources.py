"""Label sources: the data set's own labels, and others by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError

Floats = NDArray[np.float64]


def source_of(owner: str, source: str | None, labels: Mapping[str | None, Floats]) -> Floats:
    """Return the labels of a source.

    Parameters
    ----------
    owner
        Who asks, for the message if there is no such source.
    source
        Its name; None for the data set's own labels.
    labels
        All labels, by source.
    """
    if source not in labels:
        known = [repr(name) for name in labels if name is not None]
        has = f"it has {', '.join(known)}" if known else "it has none but its own labels"
        raise UsageError(
            f"{owner}: the data set has no label source {source!r}; {has}; "
            f"load it with labels=[{source!r}], --labels {source}"
        )
    return labels[source]
