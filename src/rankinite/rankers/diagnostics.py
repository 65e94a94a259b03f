"""Diagnostics of training: what it is about, round by round (Objectives, Figures 2 to 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rankinite.core.errors import ModelFileError
from rankinite.core.params import Either, OneOf, Real, Whole, check

# What curves are called: these words, and what they are of.
AGREEMENT = "agreement of"
SHARE = "lambda share of"
TOP = "top {} share of"
CHANGES = "rank changes in"
ON_TRAINING_SET = "of the training set"
WHOLE_LIST = "the whole list"
NO_LABEL = "no label"

Row = tuple[float, ...]


class Diagnostics:
    """What happens to lambdas and rankings while a ranker is fitted; give it to ``fit``.

    After every round the ranking of the training data is looked at, and the lambdas at the scores
    that the round left. Documents of equal scores are ranked in the order, drawn from the seed, in
    which objectives rank them. Queries of weight 0 are left out; others count alike. The model is
    the same, to the byte, with and without. The curves are these, each with one value a round:

    ``agreement of MEASURE``
        For a graded measure: the share of documents whose lambda by the tier points where that of
        the first tier points, or is 0 (Objectives, Sec. 4.2). Once for the pairs that the tier
        follows, and once, behind ``, all pairs``, for all pairs of different labels, where no label
        counts as 0. For a `Transition`: its last objective against its first.
    ``lambda share of grade V``
        The part that documents of grade V have in the lambdas of highly relevant documents: what
        they push such a document up, less what they push it down, divided by the sum of the
        *sizes* of all pushes that it gets; the mean over the highly relevant documents that get
        any. Objectives, Eq. 11, divides by the lambda instead, which may be 0 or negative, so that
        its shares have no bounds. Ours lie between -1 and 1; where all pushes go up, the two are
        the same. Lambdas are those of the first tier or objective. Constructions that are not made
        of all pairs, such as `LocalCost`, are stood for by the `Lambdas` of their measure.
    ``top 3 share of grade V``
        The share of grade V among the first ranks; and that of documents without a label, if there
        are any. The mean over queries.
    ``rank changes in the top 3``, ``rank changes in the whole list``
        The share of ranks at which another document stands than before the round; the mean over
        queries.
    ``MEASURE of the training set``
        Each measure of validation, measured on the training data.

    Objectives that are not made of pairs, those of `MART` and `McRank`, have neither of the first
    two. Grades are the labels of the source that the first measure reads; there may be 12.

    Parameters
    ----------
    top
        How many ranks count as the top.
    highly_relevant
        Documents are highly relevant from this grade on; None is three quarters of the largest
        label, which is 3 and 4 of the grades 0 to 4.

    Attributes
    ----------
    rounds : list of int
        The rounds that were looked at: all, unless diagnostics were switched on when a fit went on
        from a checkpoint.
    curves : dict
        The curves by name, with one value for each of these rounds; NaN where there is none.

    Examples
    --------
    >>> import rankinite as rk
    >>> train = rk.polynomials(40, part="train", n_features=5)
    >>> diagnostics = rk.Diagnostics()
    >>> model = rk.LambdaMART(n_trees=3, n_leaves=7).fit(train, diagnostics=diagnostics)
    >>> diagnostics.rounds
    [1, 2, 3]
    >>> changes = diagnostics.curves["rank changes in the top 3"]
    >>> changes[0] > changes[-1]
    True
    """

    def __init__(self, *, top: int = 3, highly_relevant: float | None = None) -> None:
        check("Diagnostics", "top", top, Whole(1))
        check("Diagnostics", "highly_relevant", highly_relevant, Either(Real(0), OneOf([None])))
        self.top = int(top)
        self.highly_relevant = highly_relevant
        self._names: tuple[str, ...] = ()
        self._rows: dict[int, Row] = {}

    @property
    def rounds(self) -> list[int]:
        """The rounds that were looked at."""
        return list(self._rows)

    @property
    def curves(self) -> dict[str, list[float]]:
        """The curves by name, with one value for each round that was looked at."""
        rows = list(self._rows.values())
        return {name: [row[k] for row in rows] for k, name in enumerate(self._names)}

    def begin(self, names: Sequence[str]) -> None:
        """Forget what an earlier fit left, and name the curves of this one."""
        self._names = tuple(names)
        self._rows = {}

    def add(self, number: int, values: Sequence[float]) -> None:
        """Add the values of a round, one a curve; in one step, whenever an interrupt may come."""
        self._rows[number] = tuple(values)

    def to_manifest(self) -> dict[str, Any]:
        """Return all that a checkpoint needs to keep, as JSON can hold it."""
        return {
            "top": self.top,
            "highly_relevant": self.highly_relevant,
            "names": list(self._names),
            "rounds": self.rounds,
            "rows": [[_written(value) for value in row] for row in self._rows.values()],
        }

    def go_on_from(self, kept: Any, n_rounds: int) -> None:
        """Take the first rounds of what a checkpoint kept, if it is of the same curves.

        Parameters
        ----------
        kept
            What `to_manifest` gave; None if there were no diagnostics.
        n_rounds
            How many rounds the fit goes on from.
        """
        if kept is None:
            return
        if not _is_sound(kept):
            raise ModelFileError("holds diagnostics that are not understood")
        own = self.to_manifest()
        if any(kept[name] != own[name] for name in ("top", "highly_relevant", "names")):
            return
        for number, row in zip(kept["rounds"], kept["rows"], strict=True):
            if number <= n_rounds:
                self.add(number, [math.nan if value is None else float(value) for value in row])


def _written(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _is_sound(kept: Any) -> bool:
    """Tell whether a checkpoint's diagnostics are as `Diagnostics.to_manifest` writes them."""
    if not isinstance(kept, Mapping):
        return False
    lists = [kept.get(name) for name in ("names", "rounds", "rows")]
    if not all(isinstance(found, list) for found in lists) or "top" not in kept:
        return False
    names, rounds, rows = (list(found or []) for found in lists)
    return (
        "highly_relevant" in kept
        and len(rounds) == len(rows)
        and all(type(number) is int and number > 0 for number in rounds)
        and rounds == sorted(set(rounds))
        and all(_is_row(row, len(names)) for row in rows)
    )


def _is_row(row: Any, n_curves: int) -> bool:
    return (
        isinstance(row, list)
        and len(row) == n_curves
        and all(value is None or type(value) in (int, float) for value in row)
    )
