"""The curves of diagnostics: lambdas, grades at the top, ranks that changed, training values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import plain_number
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Integers
from rankinite.objectives.kernels.arrays import PAIRS, SIGMOID_COST
from rankinite.objectives.kernels.diagnostics import add_grade_shares, rank_all
from rankinite.objectives.objective import EVERY_QUERY, Targets, labels_of, read_only
from rankinite.objectives.pairwise import Lambdas, PairGradients, RankNet
from rankinite.rankers.callbacks import ValidationSet
from rankinite.rankers.inputs import TrainingInputs, queries_with_weight

# The parts of the names of curves.
AGREEMENT = "agreement of"
SHARE = "lambda share of"
TOP = "top {} share of"
CHANGES = "rank changes in"
ON_TRAINING_SET = "of the training set"
WHOLE_LIST = "the whole list"
NO_LABEL = "no label"

# One curve for each; the pages and figures that show them have room for no more.
MOST_GRADES = 12
# Documents are highly relevant from this share of the largest label on, by default.
HIGHLY = 0.75


class Snapshot(NamedTuple):
    """The training data after a round.

    Attributes
    ----------
    scores
        One row per output.
    ranked_by
        The scores that documents are ranked by.
    before, order
        The documents of each query from the first rank to the last, before the round and after.
    """

    scores: Floats
    ranked_by: Floats
    before: Integers
    order: Integers


class CurveGroup(Protocol):
    """Curves that are computed together."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the curves."""

    def values(self, snapshot: Snapshot) -> Sequence[float]:
        """Return one value for each name."""


class Ranks:
    """The ranking of documents; ties as objectives rank them, in an order drawn from the seed."""

    def __init__(self, targets: Targets) -> None:
        # Only the order of ties is used, which is the same for all objectives.
        prepared = RankNet().prepare(replace(targets, doc_weight=None))
        self._arrays, self._blocks = prepared.arrays, prepared.blocks

    def order(self, scores: Floats) -> Integers:
        """Return the documents of each query from the first rank to the last."""
        out = np.empty(len(scores), np.int64)
        arguments = read_only(scores), self._blocks, self._arrays, out
        parallel_for(rank_all, len(self._blocks) - 1, *arguments)
        return out


class Grades:
    """The grades of documents: the different labels that there are.

    Attributes
    ----------
    names
        One per grade, from the least.
    numbers
        The number of every document's grade; -1 for no label.
    highly
        The number of the first that is highly relevant.
    """

    def __init__(self, labels: Floats, source: str | None, highly: float | None) -> None:
        values = np.unique(labels[~np.isnan(labels)])
        # Real numbers, such as click rates, would give a curve for every document.
        if not 1 <= len(values) <= MOST_GRADES:
            of = "" if source is None else f" of {source!r}"
            raise DataError(
                f"diagnostics: the labels{of} have {len(values)} different values, and shares are "
                f"shown for 1 to {MOST_GRADES} grades; round the labels to grades, or train "
                "without diagnostics"
            )
        self.names = [f"grade {plain_number(float(grade))}" for grade in values]
        self.numbers = np.where(np.isnan(labels), -1, np.searchsorted(values, labels))
        least = HIGHLY * values[-1] if highly is None else highly
        self.highly = int(np.searchsorted(values, least))
        if self.highly == len(values):
            raise UsageError(
                f"Diagnostics: highly_relevant is {least:g}, and the largest label of the "
                f"training data is {values[-1]:g}; give that or less"
            )


class Agreement:
    """Whether lambdas point where those of the first part point (Objectives, Figure 2)."""

    def __init__(
        self, first: PairGradients, others: Mapping[str, PairGradients], docs: Integers
    ) -> None:
        self.names = [f"{AGREEMENT} {name}" for name in others]
        self._first = first
        self._others = list(others.values())
        self._docs = docs

    def values(self, snapshot: Snapshot) -> list[float]:
        """Return the shares of documents whose lambdas agree; one that is 0 always does."""
        first = self._signs(self._first, snapshot.scores)
        others = [self._signs(other, snapshot.scores) for other in self._others]
        return [float(np.mean((signs == first) | (signs == 0.0))) for signs in others]

    def _signs(self, gradients: PairGradients, scores: Floats) -> Floats:
        lambdas, hessians = np.zeros((2, *scores.shape))
        gradients.gradients_of(EVERY_QUERY, scores, 0, lambdas, hessians)
        return np.asarray(np.sign(lambdas[0, self._docs]))


class GradeShares:
    """Which grades push highly relevant documents (Objectives, Figure 3 a)."""

    def __init__(self, gradients: PairGradients, grades: Grades) -> None:
        self.names = [f"{SHARE} {name}" for name in grades.names]
        self._gradients = gradients
        self._grades = read_only(grades.numbers[gradients.arrays.shuffle], np.int64)
        self._highly = grades.highly

    def values(self, snapshot: Snapshot) -> list[float]:
        """Return the mean shares of all grades; NaN if no highly relevant document is pushed."""
        gradients = self._gradients
        # One row per block of queries, so that threads do not write into the same row.
        sums = np.empty((len(gradients.blocks) - 1, len(self.names) + 1))
        scores = read_only(snapshot.scores[0])
        arguments = scores, gradients.blocks, self._grades, self._highly, gradients.arrays, sums
        parallel_for(add_grade_shares, len(sums), *arguments)
        *shares, n_docs = sums.sum(axis=0).tolist()
        return [share / n_docs if n_docs else np.nan for share in shares]


class RankWeights:
    """Weights of ranks in means over queries: all queries with a weight count alike.

    Attributes
    ----------
    top
        Number of ranks that are the first.
    first
        The positions of the first ranks of queries among all ranks.
    of_top, of_all
        The weight of each of the first ranks, and of each of all ranks.
    """

    def __init__(self, offsets: Integers, queries: Integers, top: int) -> None:
        sizes = np.diff(offsets)
        has_weight = np.zeros(len(sizes), np.bool_)
        has_weight[queries] = True
        query = np.repeat(np.arange(len(sizes)), sizes)
        rank = np.arange(len(query)) - offsets[query]
        query_share = has_weight / len(queries)
        self.top = top
        self.first = np.flatnonzero((rank < top) & has_weight[query])
        self.of_top = (query_share / np.minimum(sizes, top))[query[self.first]]
        self.of_all = (query_share / sizes)[query]


class TopGrades:
    """The shares of grades among the first ranks (Objectives, Figure 3 b)."""

    def __init__(self, grades: Grades, rank_weights: RankWeights) -> None:
        missing = grades.numbers < 0
        names = [*grades.names, NO_LABEL] if missing.any() else grades.names
        self.names = [f"{TOP.format(rank_weights.top)} {name}" for name in names]
        self._numbers = np.where(missing, len(grades.names), grades.numbers)
        self._rank_weights = rank_weights

    def values(self, snapshot: Snapshot) -> list[float]:
        """Return the mean share of every grade."""
        # Without labels a document still takes a place: the shares of a query add up to 1.
        grades = self._numbers[snapshot.order[self._rank_weights.first]]
        shares = np.bincount(grades, self._rank_weights.of_top, minlength=len(self.names))
        return [float(share) for share in shares]


class RankChanges:
    """The share of ranks that hold another document than before (Objectives, Figure 4)."""

    def __init__(self, rank_weights: RankWeights) -> None:
        self.names = [f"{CHANGES} the top {rank_weights.top}", f"{CHANGES} {WHOLE_LIST}"]
        self._rank_weights = rank_weights

    def values(self, snapshot: Snapshot) -> list[float]:
        """Return the shares of the first ranks and of all ranks."""
        rank_weights = self._rank_weights
        changed = snapshot.order != snapshot.before
        in_top = changed[rank_weights.first]
        # Not a dot product, whose rounding may depend on the number of threads.
        return [
            float(rank_weights.of_top[in_top].sum()),
            float(rank_weights.of_all[changed].sum()),
        ]


class TrainingValues:
    """The measures of validation on the training data (Objectives, Figure 4)."""

    def __init__(self, training_set: ValidationSet, docs: Integers) -> None:
        self.names = [f"{measure} {ON_TRAINING_SET}" for measure in training_set.measures]
        self._training_set = training_set
        self._docs = docs

    def values(self, snapshot: Snapshot) -> list[float]:
        """Return the means of all measures."""
        return list(self._training_set.measure(snapshot.ranked_by[self._docs]).values())


class DiagnosticCurves:
    """All curves of a fit.

    Parameters
    ----------
    groups
        The curves.
    ranks
        How documents are ranked.
    """

    def __init__(self, groups: Sequence[CurveGroup], ranks: Ranks) -> None:
        self.names = [name for group in groups for name in group.names]
        self._groups = groups
        self._ranks = ranks

    def order(self, scores: Floats) -> Integers:
        """Return the documents of each query from the first rank to the last."""
        return self._ranks.order(scores)

    def values(self, snapshot: Snapshot) -> list[float]:
        """Return one value for each name."""
        return [value for group in self._groups for value in group.values(snapshot)]


def curves_of(
    owner: str, inputs: TrainingInputs, top: int, highly_relevant: float | None
) -> DiagnosticCurves:
    """Return the curves that a fit has.

    Parameters
    ----------
    owner
        The ranker that is fitted, for messages.
    inputs
        The objective and the training data.
    top, highly_relevant
        As in `Diagnostics`.
    """
    targets, objective, training_set = inputs.targets, inputs.objective, inputs.training_set(owner)
    queries, docs = queries_with_weight(inputs.data)
    labels = labels_of("diagnostics", objective.source, targets)
    grades = Grades(labels, objective.source, highly_relevant)
    rank_weights = RankWeights(targets.offsets, queries, top)
    groups: list[CurveGroup] = []
    # The first tier or objective; None if it is not made of pairs.
    first = inputs.gradients.parts[0].pairs
    if first is not None:
        others = objective.compared(inputs.gradients, targets)
        groups += [Agreement(first, others, docs)] if others else []
        groups.append(GradeShares(_made_of_pairs(first, inputs), grades))
    groups += [TopGrades(grades, rank_weights), RankChanges(rank_weights)]
    groups.append(TrainingValues(training_set, docs))
    return DiagnosticCurves(groups, Ranks(targets))


def _made_of_pairs(first: PairGradients, inputs: TrainingInputs) -> PairGradients:
    """Return lambdas of all pairs: those of training, or those of the same measure."""
    if first.arrays.kind in (PAIRS, SIGMOID_COST):
        return first
    objective: Any = inputs.objective
    return Lambdas(objective.measure).pair_gradients(inputs.targets)
