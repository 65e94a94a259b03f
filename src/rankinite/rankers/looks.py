"""What diagnostics look at after a round: lambdas, grades at the top, ranks that changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import plain_number
from rankinite.core.types import Floats, Integers, Mask
from rankinite.objectives.kernels.arrays import PAIRS, SIGMOID_COST
from rankinite.objectives.kernels.diagnostics import add_grade_shares, rank_all
from rankinite.objectives.objective import (
    EVERY_QUERY,
    Gradients,
    Objective,
    Targets,
    labels_of,
    read_only,
)
from rankinite.objectives.pairwise import Lambdas, PairGradients, RankNet
from rankinite.rankers.diagnostics import (
    AGREEMENT,
    CHANGES,
    NO_LABEL,
    ON_TRAINING_SET,
    SHARE,
    TOP,
    WHOLE_LIST,
    Diagnostics,
)
from rankinite.rankers.rounds import Watched

MOST_GRADES = 12
# Documents are highly relevant from this share of the largest label on, if nobody says.
HIGHLY = 0.75


@dataclass(frozen=True)
class Followed:
    """What a fit follows, and how its documents are ranked.

    Attributes
    ----------
    objective, gradients
        What the ranker follows, and what that is on the training data.
    targets
        What is to be learned.
    ranking
        From the scores of the outputs to the scores that documents are ranked by.
    docs
        The documents of the queries that count.
    watched
        These documents, as validation sets are watched.
    """

    objective: Objective
    gradients: Gradients
    targets: Targets
    ranking: Callable[[Floats], Floats]
    docs: Integers
    watched: Watched

    @property
    def counts(self) -> Mask:
        """Which queries count."""
        weight = self.targets.query_weight
        return np.ones(len(self.targets.offsets) - 1, np.bool_) if weight is None else weight > 0.0

    @property
    def source(self) -> str | None:
        """The label source of the first measure."""
        return self.objective.source

    @property
    def labels(self) -> Floats:
        """The labels of this source."""
        return labels_of("diagnostics", self.source, self.targets)

    @property
    def first_pairs(self) -> PairGradients | None:
        """The lambdas of the first tier or objective; None if it is not made of pairs."""
        return self.gradients.parts[0].pairs


class Moment(NamedTuple):
    """The training data after a round.

    Attributes
    ----------
    scores
        One row for each output.
    ranked_by
        The scores that documents are ranked by.
    before, order
        The documents of each query from the first rank to the last, before the round and after.
    """

    scores: Floats
    ranked_by: Floats
    before: Integers
    order: Integers


class Look(Protocol):
    """One kind of curves."""

    @property
    def names(self) -> Sequence[str]:
        """What the curves are called."""

    def values(self, moment: Moment) -> Sequence[float]:
        """Return one value for each name."""


class Ranks:
    """Who stands where; ties as objectives rank them, in an order drawn from the seed."""

    def __init__(self, targets: Targets) -> None:
        # Of the pairs nothing is wanted but the order of ties, which is that of all objectives.
        made = RankNet().prepare(replace(targets, doc_weight=None))
        self._arrays, self._blocks = made.arrays, made.blocks

    def order(self, scores: Floats) -> Integers:
        """Return the documents of each query from the first rank to the last."""
        out = np.empty(len(scores), np.int64)
        rank_all(read_only(scores), self._blocks, self._arrays, out)
        return out


class Grades:
    """The grades of documents: the different labels that there are.

    Attributes
    ----------
    names
        One a grade, from the least.
    numbers
        The number of every document's grade; -1 for no label.
    highly
        The number of the first that is highly relevant.
    """

    def __init__(self, labels: Floats, source: str | None, highly: float | None) -> None:
        found = np.unique(labels[~np.isnan(labels)])
        if not 1 <= len(found) <= MOST_GRADES:
            of = "" if source is None else f" of {source!r}"
            raise DataError(
                f"diagnostics: the labels{of} have {len(found)} different values, and shares are "
                f"told for 1 to {MOST_GRADES} grades; round the labels to grades, or train "
                "without diagnostics"
            )
        self.names = [f"grade {plain_number(float(grade))}" for grade in found]
        self.numbers = np.where(np.isnan(labels), -1, np.searchsorted(found, labels))
        least = HIGHLY * found[-1] if highly is None else highly
        self.highly = int(np.searchsorted(found, least))
        if self.highly == len(found):
            raise UsageError(
                f"Diagnostics: highly_relevant is {least:g}, and the largest label of the "
                f"training data is {found[-1]:g}; give that or less"
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

    def values(self, moment: Moment) -> list[float]:
        """Return the shares of documents whose lambdas agree; one that is 0 always does."""
        first = self._signs(self._first, moment.scores)
        found = [self._signs(other, moment.scores) for other in self._others]
        return [float(np.mean((own == first) | (own == 0.0))) for own in found]

    def _signs(self, gradients: PairGradients, scores: Floats) -> Floats:
        lambdas, weights = np.zeros((2, *scores.shape))
        gradients.gradients_of(EVERY_QUERY, scores, 0, lambdas, weights)
        return np.asarray(np.sign(lambdas[0, self._docs]))


class GradeShares:
    """Which grades push highly relevant documents (Objectives, Figure 3 a)."""

    def __init__(self, gradients: PairGradients, grades: Grades) -> None:
        self.names = [f"{SHARE} {name}" for name in grades.names]
        self._gradients = gradients
        self._grades = read_only(grades.numbers[gradients.arrays.shuffle], np.int64)
        self._highly = grades.highly

    def values(self, moment: Moment) -> list[float]:
        """Return the mean shares of all grades; NaN if no highly relevant document is pushed."""
        made = self._gradients
        sums = np.empty((len(made.blocks) - 1, len(self.names) + 1))
        scores = read_only(moment.scores[0])
        add_grade_shares(scores, made.blocks, self._grades, self._highly, made.arrays, sums)
        *shares, n_docs = sums.sum(axis=0).tolist()
        return [share / n_docs if n_docs else np.nan for share in shares]


class Places:
    """What ranks count in means over queries: each query that counts, as much as any other.

    Attributes
    ----------
    top
        How many ranks are the first.
    first
        Where the first ranks of queries stand among all ranks.
    share_of_top, share_of_all
        What each of the first ranks, and each of all, counts.
    """

    def __init__(self, offsets: Integers, counts: Mask, top: int) -> None:
        sizes = np.diff(offsets)
        query = np.repeat(np.arange(len(sizes)), sizes)
        rank = np.arange(len(query)) - offsets[query]
        a_query = counts / counts.sum()
        self.top = top
        self.first = np.flatnonzero((rank < top) & counts[query])
        self.share_of_top = (a_query / np.minimum(sizes, top))[query[self.first]]
        self.share_of_all = (a_query / sizes)[query]


class TopGrades:
    """Which grades stand at the first ranks (Objectives, Figure 3 b)."""

    def __init__(self, grades: Grades, places: Places) -> None:
        missing = grades.numbers < 0
        names = [*grades.names, NO_LABEL] if missing.any() else grades.names
        self.names = [f"{TOP.format(places.top)} {name}" for name in names]
        self._numbers = np.where(missing, len(grades.names), grades.numbers)
        self._places = places

    def values(self, moment: Moment) -> list[float]:
        """Return the mean share of every grade."""
        found = self._numbers[moment.order[self._places.first]]
        shares = np.bincount(found, self._places.share_of_top, minlength=len(self.names))
        return [float(share) for share in shares]


class RankChanges:
    """At how many ranks another document stands than before (Objectives, Figure 4)."""

    def __init__(self, places: Places) -> None:
        self.names = [f"{CHANGES} the top {places.top}", f"{CHANGES} {WHOLE_LIST}"]
        self._places = places

    def values(self, moment: Moment) -> list[float]:
        """Return the shares of the first ranks and of all ranks."""
        places = self._places
        changed = moment.order != moment.before
        in_top = changed[places.first]
        # Not a dot product, whose rounding may depend on the number of threads.
        return [
            float(places.share_of_top[in_top].sum()),
            float(places.share_of_all[changed].sum()),
        ]


class TrainingValues:
    """The measures of validation on the training data (Objectives, Figure 4)."""

    def __init__(self, watched: Watched, docs: Integers) -> None:
        self.names = [f"{measure} {ON_TRAINING_SET}" for measure in watched.measures]
        self._watched = watched
        self._docs = docs

    def values(self, moment: Moment) -> list[float]:
        """Return the means of all measures."""
        return list(self._watched.measure(moment.ranked_by[self._docs]).values())


def looks_at(followed: Followed, diagnostics: Diagnostics) -> list[Look]:
    """Return what there is to look at in a fit."""
    targets, first = followed.targets, followed.first_pairs
    grades = Grades(followed.labels, followed.source, diagnostics.highly_relevant)
    places = Places(targets.offsets, followed.counts, diagnostics.top)
    looks: list[Look] = []
    if first is not None:
        others = followed.objective.compared(followed.gradients, targets)
        looks += [Agreement(first, others, followed.docs)] if others else []
        looks.append(GradeShares(_made_of_pairs(first, followed), grades))
    looks += [TopGrades(grades, places), RankChanges(places)]
    return [*looks, TrainingValues(followed.watched, followed.docs)]


def _made_of_pairs(first: PairGradients, followed: Followed) -> PairGradients:
    """Return lambdas of all pairs: those that are followed, or those of the same measure."""
    if first.arrays.kind in (PAIRS, SIGMOID_COST):
        return first
    objective: Any = followed.objective
    return Lambdas(objective.measure).pair_gradients(followed.targets)
