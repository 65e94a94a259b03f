"""Average: the sum of the members' scores on one scale, every member with weight 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from rankinite.combine.combination import Gathered, LinearCombination
from rankinite.core.params import Constraint


class Average(LinearCombination):
    """The average of rankers: scores at zero mean and unit variance, each with weight 1.

    It was the winner's choice among many ways to combine rankers (Ensemble, Sec. 4.3). Means and
    variances are over all documents, not those of a query; they are learned once, from documents
    that the members were not fitted to, so that later a query can be scored alone.

    Parameters
    ----------
    members
        Fitted rankers, as a list or by name. None if their scores are given to fit and predict.

    Attributes
    ----------
    member_names_ : tuple of str
        The names of the members: 1, 2, and so on, unless they were given by name.
    means_, scales_, weights_ : arrays
        A document's score is the sum over members of weight * (score - mean) / scale.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.RankingData([[0.0], [1.0], [0.5]], [0, 1, 2], [1, 1, 2])
    >>> average = rk.Average().fit(data, member_scores={"a": [0, 0, 3], "b": [-5, 5, 0]})
    >>> average.means_, average.scales_.round(4)
    (array([1., 0.]), array([1.4142, 4.0825]))
    >>> average.predict(None, member_scores={"a": [1], "b": [0]})
    array([0.])
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {}

    def __init__(self, members: Any = None) -> None:
        self.members = members

    def _learn(self, gathered: Gathered) -> None:
        self.weights_ = np.ones(len(gathered.names))
