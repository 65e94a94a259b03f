"""Boosting: trees that follow an objective, one round after the other.

All that a round draws is keyed by the seed and its number, and scores are the sum of trees in
their order. So a fit that goes on from a checkpoint gives the bytes of one that was never stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import mean_of_counted
from rankinite.measures.compute import Measuring
from rankinite.measures.measure import Measure
from rankinite.objectives.objective import Gradients, GradientsOfSome
from rankinite.rankers.sampling import Sampler, Sampling
from rankinite.trees.binned_data import EVERY_ROW, BinnedData
from rankinite.trees.grower import EVERY_DOC, Grower, Growth
from rankinite.trees.tree import Tree

log = logging.getLogger("rankinite")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

# A sample may have nothing to teach; so many in a row mean that the data have not.
IDLE_ROUNDS = 10
# Scores that reach this have run away; the squares of larger ones would overflow.
LARGEST_VALUE = 1e100


@dataclass(frozen=True)
class Round:
    """What a callback gets after every round.

    Attributes
    ----------
    number
        How many rounds are done.
    values
        The value of every measure on every validation set: ``values["valid"]["NDCG@10"]``.
    """

    number: int
    values: Mapping[str, Mapping[str, float]]


Callback = Callable[[Round], object]


@dataclass
class History:
    """The values of measures on validation sets, one a round."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def first(self, n_rounds: int) -> History:
        """Return the history of the first rounds."""
        return History(
            {
                name: {measure: curve[:n_rounds] for measure, curve in curves.items()}
                for name, curves in self.values.items()
            }
        )

    def bests(self, set_name: str, measure: str, min_improvement: float) -> list[int]:
        """Return after every round which round was best until then.

        A later round is better only if it gains more than ``min_improvement``.
        """
        bests: list[int] = []
        best_round, best_value = 0, -np.inf
        for number, value in enumerate(self.values[set_name].get(measure, []), 1):
            if value > best_value + min_improvement or best_round == 0:
                best_round, best_value = number, value
            bests.append(best_round)
        return bests


class Watched:
    """A validation set, binned like the training set, with the scores of the trees so far."""

    def __init__(
        self, data: RankingData, binned: BinnedData, measures: Sequence[Measure], start: Floats
    ) -> None:
        self.data = data
        self.measures = measures
        labels = dict([(None, data.y), *data.labels.items()])
        self.measuring = Measuring(measures, labels, data.offsets, data.top_grade)
        rows = EVERY_ROW if data.rows is None else data.rows
        self.columns = binned.columns_of(data.base, rows)
        self.scores = start
        self.leaves: NDArray[np.generic] | None = None

    def add(self, grower: Grower, tree: Tree, output: int) -> None:
        """Add a tree to the scores."""
        self.leaves = grower.add_elsewhere(tree, self.columns, self.leaves, self.scores[output])

    def measure(self, scores: Floats) -> dict[str, float]:
        """Return the means of the measures over the queries that count."""
        values = self.measuring.measure(scores, again=True)
        return {
            str(measure): mean_of_counted(row)
            for measure, row in zip(self.measures, values, strict=True)
        }


class Boosting:
    """One fit under way.

    Parameters
    ----------
    gradients
        What the trees follow.
    binned, rows
        The features, and the row of every document.
    offsets, origins
        The queries, and the number of the query that each was sampled from.
    growth, sampling
        How trees grow, and on which part of the data.
    learning_rate
        What the value of every leaf is multiplied by.
    seed
        The seed of the fit.
    scores
        The scores to begin with, one row for each output; they are changed.
    watched
        Validation sets by name.
    ranking
        From the scores of the outputs to the scores that documents are ranked by.
    doc_weight
        What a document counts when splits are chosen: 2 counts like two documents, 0 like none.
        All count 1 if None.
    """

    def __init__(
        self,
        gradients: Gradients,
        binned: BinnedData,
        rows: Integers | None,
        offsets: Integers,
        origins: Integers,
        growth: Growth,
        sampling: Sampling,
        learning_rate: float,
        seed: int,
        scores: Floats,
        watched: Mapping[str, Watched],
        ranking: Callable[[Floats], Floats],
        doc_weight: Floats | None,
    ) -> None:
        self.gradients = gradients
        self.grower = Grower(binned, rows, growth)
        self.learning_rate = learning_rate
        self.scores = scores
        self.watched = watched
        self.ranking = ranking
        taking_part, self.masses = _parts_and_masses(doc_weight)
        n_features = len(binned.feature_names)
        self.sampler = Sampler(sampling, offsets, origins, n_features, taking_part, seed)
        self.by_weight = growth.criterion == "newton"
        self.has_run_away = False
        self.trees: list[Tree] = []
        self.history = History({name: {} for name in watched})
        self._lambdas = np.zeros_like(scores)
        self._weights = np.zeros_like(scores)

    @property
    def n_rounds(self) -> int:
        """How many rounds are done; a round is one tree for each output."""
        return len(self.trees) // len(self.scores)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to learn: no tree of the last rounds did anything."""
        last = self.trees[-IDLE_ROUNDS * len(self.scores) :]
        enough = self.n_rounds >= IDLE_ROUNDS
        return enough and all(tree.n_leaves == 1 and not tree.value.any() for tree in last)

    def replay(self, trees: Sequence[Tree], history: History) -> None:
        """Go on behind these trees, as if they had just been grown."""
        for number, tree in enumerate(trees):
            self._add(tree, number % len(self.scores), grown=False)
        self.trees = list(trees)
        self.history = history

    def step(self) -> Round:
        """Do one more round."""
        number = self.n_rounds
        queries = self.sampler.queries(number)
        self._follow(queries, number)
        trees = []
        for output in range(len(self.scores)):
            tree = self._grow(number, output, queries)
            self._add(tree, output, grown=True)
            trees.append(tree)
        values = {
            name: watched.measure(self.ranking(watched.scores))
            for name, watched in self.watched.items()
        }
        for name, measured in values.items():
            for measure, value in measured.items():
                self.history.values[name].setdefault(measure, []).append(value)
        self.trees += trees
        return Round(self.n_rounds, values)

    def _follow(self, queries: Mask, number: int) -> None:
        """Compute the gradients of these queries at least."""
        scores, lambdas, weights = self.scores, self._lambdas, self._weights
        if isinstance(self.gradients, GradientsOfSome):
            self.gradients.gradients_of(queries, scores, number, lambdas, weights)
        else:
            self.gradients.gradients(scores, number, lambdas, weights)

    def _grow(self, number: int, output: int, queries: Mask) -> Tree:
        lambdas, weights = self._lambdas[output], self._weights[output]
        tree = self.grower.grow(
            lambdas,
            weights,
            masses=weights if self.by_weight else self.masses,
            chosen=self.sampler.docs(number, output, queries),
            features=self.sampler.features(number, output),
        )
        return replace(tree, value=self._in_reach(tree.value, number))

    def _in_reach(self, step: Floats, number: int) -> Floats:
        """Return the values of leaves; a Newton step can be as large as its weights are small."""
        with np.errstate(over="ignore"):
            value = step * self.learning_rate
        within = np.clip(value, -LARGEST_VALUE, LARGEST_VALUE)
        if (within != value).any() and not self.has_run_away:
            self.has_run_away = True
            log.warning(
                "training: scores run away in round %d; a smaller learning_rate or a larger "
                "min_docs_in_leaf keeps them in reach",
                number + 1,
            )
        return within

    def _add(self, tree: Tree, output: int, *, grown: bool) -> None:
        if grown:
            self.grower.add(tree, self.scores[output])
        else:
            self.grower.add_again(tree, self.scores[output])
        for watched in self.watched.values():
            watched.add(self.grower, tree, output)


def _parts_and_masses(doc_weight: Floats | None) -> tuple[Mask, Floats | None]:
    """Return which documents take part, and what they count unless all count 1.

    A document without weight must not even be counted, for it shall be as if it were not there.
    """
    if doc_weight is None:
        return EVERY_DOC, None
    some = doc_weight > 0.0
    masses = doc_weight if (doc_weight[some] != 1.0).any() else None
    return EVERY_DOC if some.all() else some, masses
