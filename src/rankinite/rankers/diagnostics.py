"""Diagnostics of training: lambdas and rankings, round by round (Objectives, Figures 2 to 4)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.params import Either, OneOf, Real, Whole, check
from rankinite.core.types import Floats, Integers
from rankinite.rankers.callbacks import Learner, Round
from rankinite.rankers.diagnostic_curves import DiagnosticCurves, Snapshot, curves_of
from rankinite.rankers.inputs import TrainingInputs

log = logging.getLogger("rankinite")

# Where the manifest of a checkpoint keeps the curves.
DIAGNOSTICS = "diagnostics"

Row = tuple[float, ...]


class Diagnostics:
    """Curves of lambdas and rankings while a ranker is fitted; pass it to ``fit``.

    After every round the ranking of the training data is examined, and the lambdas at the scores
    after the round. Documents of equal scores are ranked in the order, drawn from the seed, in
    which objectives rank them. Queries of weight 0 are left out; others count alike. The model is
    the same, to the byte, with and without. The curves are these, each with one value per round:

    ``agreement of MEASURE``
        For a tiered measure: the share of documents whose lambda by the tier points where that of
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
        of all pairs, such as `LocalCost`, are represented by the `Lambdas` of their measure.
    ``top 3 share of grade V``
        The share of grade V among the first ranks; and that of documents without a label, if there
        are any. The mean over queries.
    ``rank changes in the top 3``, ``rank changes in the whole list``
        The share of ranks that hold another document than before the round; the mean over
        queries.
    ``MEASURE of the training set``
        Each measure of validation, measured on the training data.

    Objectives that are not made of pairs, those of `MART` and `McRank`, have neither of the first
    two. Grades are the labels of the source that the first measure reads; there may be 12.

    Parameters
    ----------
    top
        Number of ranks that count as the top.
    highly_relevant
        Documents are highly relevant from this grade on; None is three quarters of the largest
        label, which is 3 and 4 of the grades 0 to 4.

    Attributes
    ----------
    rounds : list of int
        The rounds that the curves cover: all, unless diagnostics were switched on when a fit was
        resumed from a checkpoint.
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
        """The rounds that the curves cover."""
        return list(self._rows)

    @property
    def curves(self) -> dict[str, list[float]]:
        """The curves by name, with one value for each of the rounds."""
        rows = list(self._rows.values())
        return {name: [row[k] for row in rows] for k, name in enumerate(self._names)}

    def begin(self, names: Sequence[str]) -> None:
        """Drop the curves of an earlier fit, and name those of this one."""
        self._names = tuple(names)
        self._rows = {}

    def add(self, number: int, values: Sequence[float]) -> None:
        """Add the values of a round, one per curve; an interrupt leaves all of them or none."""
        self._rows[number] = tuple(values)

    def to_manifest(self) -> dict[str, Any]:
        """Return the curves as a checkpoint keeps them: as JSON can hold them."""
        return {
            "top": self.top,
            "highly_relevant": self.highly_relevant,
            "names": list(self._names),
            "rounds": self.rounds,
            "rows": [[_written(value) for value in row] for row in self._rows.values()],
        }

    def restore(self, kept: Any, n_rounds: int) -> None:
        """Restore the first rounds that a checkpoint kept, if it is of the same curves.

        Parameters
        ----------
        kept
            The result of `to_manifest`; None if there were no diagnostics.
        n_rounds
            Number of rounds that the fit resumes from.
        """
        if kept is None:
            return
        if not _is_sound(kept):
            raise ModelFileError("holds diagnostics that are not understood")
        # Curves of another kind are dropped, not refused: the model does not depend on them.
        wanted = self.to_manifest()
        if any(kept[name] != wanted[name] for name in ("top", "highly_relevant", "names")):
            return
        for number, row in zip(kept["rounds"], kept["rows"], strict=True):
            if number <= n_rounds:
                self.add(number, [math.nan if value is None else float(value) for value in row])


class _Ranking(NamedTuple):
    """The ranking of the training data after a number of rounds."""

    n_rounds: int
    order: Integers


class DiagnosticsCallback:
    """Adds the values of every round to the curves; the model is not changed by it.

    Parameters
    ----------
    diagnostics
        Gets the values; curves of an earlier fit are dropped.
    curves
        Computes the values.
    learner
        The learner that is trained.
    ranking
        From the scores of the outputs to the scores that documents are ranked by.
    """

    def __init__(
        self,
        diagnostics: Diagnostics,
        curves: DiagnosticCurves,
        learner: Learner,
        ranking: Callable[[Floats], Floats],
    ) -> None:
        self._diagnostics = diagnostics
        self._curves = curves
        self._learner = learner
        self._ranking = ranking
        diagnostics.begin(curves.names)
        # The ranking before the first round, which the first rank changes are counted from.
        self._last = self._rank()

    def __call__(self, _done: Round) -> None:
        """Add the values of the round that was just done."""
        self._catch_up()

    def to_manifest(self) -> dict[str, Any]:
        """Return the curves as a checkpoint keeps them."""
        # An interrupt may have come between a round and its values. A checkpoint has the round,
        # so a resumed fit would never compute them.
        self._catch_up()
        return {DIAGNOSTICS: self._diagnostics.to_manifest()}

    def restore(self, manifest: Mapping[str, Any]) -> None:
        """Restore the curves of a checkpoint, from which the learner has been restored."""
        n_rounds = self._learner.n_rounds
        self._diagnostics.restore(manifest.get(DIAGNOSTICS), n_rounds)
        n_missing = n_rounds - len(self._diagnostics.rounds)
        if n_missing:
            log.info(
                "diagnostics: the first rounds were done without these; curves lack %d of %d",
                n_missing,
                n_rounds,
            )
        self._last = self._rank()

    def _rank(self) -> _Ranking:
        order = self._curves.order(self._ranking(self._learner.train_scores()))
        return _Ranking(self._learner.n_rounds, order)

    def _catch_up(self) -> None:
        """Add the values of the last round, unless that was done."""
        number = self._learner.n_rounds
        if number == self._last.n_rounds:
            return
        scores = self._learner.train_scores()
        ranked_by = self._ranking(scores)
        snapshot = Snapshot(scores, ranked_by, self._last.order, self._curves.order(ranked_by))
        self._diagnostics.add(number, self._curves.values(snapshot))
        self._last = _Ranking(number, snapshot.order)


def diagnostics_callback(
    owner: str,
    diagnostics: Any,
    learner: Learner,
    inputs: TrainingInputs,
    ranking: Callable[[Floats], Floats],
) -> DiagnosticsCallback:
    """Return the callback of a fit that has diagnostics.

    Parameters
    ----------
    owner
        The ranker that is fitted, for messages.
    diagnostics
        What the caller passed to fit.
    learner, ranking
        As in `DiagnosticsCallback`.
    inputs
        The objective and the training data.
    """
    if not isinstance(diagnostics, Diagnostics):
        raise UsageError(
            f"{owner}: diagnostics is a {type(diagnostics).__name__}; give a Diagnostics()"
        )
    curves = curves_of(owner, inputs, diagnostics.top, diagnostics.highly_relevant)
    return DiagnosticsCallback(diagnostics, curves, learner, ranking)


def _written(value: float) -> float | None:
    # JSON has no NaN.
    return None if math.isnan(value) else float(value)


def _is_sound(kept: Any) -> bool:
    """Tell whether a checkpoint's diagnostics are as `Diagnostics.to_manifest` writes them."""
    if not isinstance(kept, Mapping):
        return False
    lists = [kept.get(name) for name in ("names", "rounds", "rows")]
    if not all(isinstance(entry, list) for entry in lists) or "top" not in kept:
        return False
    names, rounds, rows = (list(entry or []) for entry in lists)
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
