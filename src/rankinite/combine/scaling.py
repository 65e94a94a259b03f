"""Members' scores on one scale: zero mean and unit variance over all documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError

Floats = NDArray[np.float64]

# Of the largest score: a spread below it is the rounding of whoever computed the scores.
ROUNDING = 2.0**-46
# Of scaled scores, of weights, and of what a model file may hold: products stay finite.
LARGEST = 1e150


@dataclass(frozen=True)
class Scaling:
    """How to bring the scores of members to one scale (Ensemble, Sec. 4.3).

    Attributes
    ----------
    means, scales
        One of each for every member: the mean, and the standard deviation.
    """

    means: Floats
    scales: Floats

    @classmethod
    def fit(cls, scores: Floats) -> Scaling:
        """Learn the scales of scores, one row a member; one that says nothing has scale 1.

        The mean is over all documents, not over those of a query: how sure a member is of a query
        stays in its scores.

        Examples
        --------
        >>> Scaling.fit(np.array([[1.0, 3.0], [5.0, 5.0]]))
        Scaling(means=array([2., 5.]), scales=array([1., 1.]))
        """
        # By the largest, so that no square is too large or too small for a number.
        largest = np.abs(scores).max(axis=1, keepdims=True)
        largest[largest == 0.0] = 1.0
        relative = scores / largest
        spreads = relative.std(axis=1)
        scales = spreads * largest[:, 0]
        says_nothing = (spreads <= ROUNDING) | (scales < np.finfo(np.float64).tiny)
        return cls(relative.mean(axis=1) * largest[:, 0], np.where(says_nothing, 1.0, scales))

    def apply(self, owner: str, names: Sequence[str], scores: Floats) -> Floats:
        """Return scores, one row a member, on one scale."""
        with np.errstate(over="ignore"):
            scaled: Floats = (scores - self.means[:, None]) / self.scales[:, None]
        bad = np.abs(scaled) > LARGEST
        if bad.any():
            member, doc = np.argwhere(bad)[0]
            raise DataError(
                f"{owner}: the score {scores[member, doc]:g} of the member {names[member]!r} for "
                f"document {doc} is too far from those it was fitted to, which spread by "
                f"{self.scales[member]:g}"
            )
        return scaled


def weighted_sum(scaled: Floats, weights: Floats) -> Floats:
    """Return the sum of rows, each times its weight.

    Row by row, so that a document's score does not depend on what documents stand beside it.
    """
    total = np.zeros(scaled.shape[1])
    for row, weight in zip(scaled, weights, strict=True):
        total += weight * row
    return total
