"""Boosting: trees that follow an objective, one round after the other.

All that a round draws is keyed by the seed and its number, and scores are the sum of trees in
their order. So a fit that goes on from a checkpoint gives the bytes of one that was never stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError
from rankinite.core.types import Floats, Integers, Mask
from rankinite.objectives.objective import Gradients
from rankinite.rankers.line_search import LineSearch
from rankinite.rankers.manifest import read_history, write_history
from rankinite.rankers.rounds import History, Round, Stopping, Watched
from rankinite.rankers.sampling import Sampler, Sampling
from rankinite.trees.binning import EVERY_ROW, BinnedData
from rankinite.trees.forest import Forest, Tree
from rankinite.trees.grower import EVERY_DOC, Grower, Growth

log = logging.getLogger("rankinite")


# A sample may have nothing to teach; so many in a row mean that the data have not.
IDLE_ROUNDS = 10
# Scores that reach this have run away; the squares of larger ones would overflow.
LARGEST_VALUE = 1e100
ALPHAS = "alphas"


class Placed:
    """A validation set, binned like the training set, with the scores of the trees so far."""

    def __init__(self, watched: Watched, binned: BinnedData) -> None:
        self.watched = watched
        rows = EVERY_ROW if watched.data.rows is None else watched.data.rows
        self.columns = binned.columns_of(watched.data.base, rows)
        self.scores = watched.start.copy()
        self.leaves: NDArray[np.generic] | None = None

    def add(self, grower: Grower, tree: Tree, output: int) -> None:
        """Add a tree to the scores."""
        self.add_to(self.scores[output], grower, tree)

    def add_to(self, scores: Floats, grower: Grower, tree: Tree) -> None:
        """Add a tree to any scores of the set's documents."""
        self.leaves = grower.add_elsewhere(tree, self.columns, self.leaves, scores)


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
    search
        How trees get their weights; all have 1 if None.
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
        search: LineSearch | None,
    ) -> None:
        self.gradients = gradients
        self.grower = Grower(binned, rows, growth)
        self.learning_rate = learning_rate
        self.scores = scores
        self.placed = {name: Placed(found, binned) for name, found in watched.items()}
        self.ranking = ranking
        taking_part, self.masses = _parts_and_masses(doc_weight)
        self._n_features = len(binned.feature_names)
        self.sampler = Sampler(sampling, offsets, origins, self._n_features, taking_part, seed)
        self.by_weight = growth.criterion == "newton"
        self.has_run_away = False
        self.search = search
        self.trees: list[Tree] = []
        self.alphas: list[float] = []
        self.history = History({name: {} for name in watched})
        self._lambdas = np.zeros_like(scores)
        self._weights = np.zeros_like(scores)

    @property
    def fixed(self) -> list[NDArray[np.float32]]:
        """The cut points of bins, which may have been made of other data."""
        return [self.grower.binned.main.cuts, self.grower.binned.more.cuts]

    @property
    def n_rounds(self) -> int:
        """How many rounds are done; a round is one tree for each output."""
        return len(self.trees) // len(self.scores)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to learn: no tree of the last rounds did anything."""
        last = self.trees[-IDLE_ROUNDS * len(self.scores) :]
        enough = self.n_rounds >= IDLE_ROUNDS
        return enough and not any(tree.value.any() for tree in last)

    def to_content(self) -> Content:
        """Return the trees of the rounds that are done, and their history."""
        forest = Forest(tuple(self.trees), np.zeros(len(self.scores)), self._n_features)
        history = write_history(self.history.first(self.n_rounds).values)
        # An interrupt may have come between a tree's weight and the round's end.
        alphas = alphas_to_arrays(self.alphas[: self.n_rounds])
        return Content({"history": history}, forest.to_arrays() | alphas)

    def go_on_from(self, content: Content, stopping: Stopping) -> int:
        """Go on behind the trees that a checkpoint kept, as if they had just been grown.

        A fit that would have ended before goes on from as many as it would have grown itself.
        Return how many rounds the checkpoint has.
        """
        forest = Forest.from_arrays(content.arrays, self._n_features)
        if len(forest.start) != len(self.scores):
            raise ModelFileError("has another number of outputs than the fit")
        n_rounds = len(forest) // len(forest.start)
        history = History(read_history(content.manifest.get("history"), n_rounds))
        history.refuse_others({name: found.watched for name, found in self.placed.items()})
        reach = stopping.reach(history, n_rounds)
        trees = forest.trees[: reach * len(self.scores)]
        for number, tree in enumerate(trees):
            self._add(tree, number % len(self.scores), grown=False)
        self.trees = list(trees)
        if self.search is not None:
            self.alphas = alphas_of(content.arrays, n_rounds)[:reach]
        self.history = history.first(reach)
        return n_rounds

    def train_scores(self) -> Floats:
        """Return the scores of the training documents after the last round."""
        return self.scores

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
            name: placed.watched.measure(self.ranking(placed.scores))
            for name, placed in self.placed.items()
        }
        self.history.add(values)
        self.trees += trees
        return Round(self.n_rounds, values)

    def _follow(self, queries: Mask, number: int) -> None:
        """Compute the gradients of these queries at least."""
        scores, lambdas, weights = self.scores, self._lambdas, self._weights
        self.gradients.gradients_of(queries, scores, number, lambdas, weights)

    def _grow(self, number: int, output: int, queries: Mask) -> Tree:
        lambdas, weights = self._lambdas[output], self._weights[output]
        tree = self.grower.grow(
            lambdas,
            weights,
            masses=weights if self.by_weight else self.masses,
            chosen=self.sampler.docs(number, output, queries),
            features=self.sampler.features(number, output),
        )
        if self.search is not None:
            del self.alphas[number:]
            self.alphas.append(self._alpha(tree, self.search))
            tree = replace(tree, value=tree.value * self.alphas[-1])
        return replace(tree, value=self._in_reach(tree.value, number))

    def _alpha(self, tree: Tree, search: LineSearch) -> float:
        """Return the best weight of the tree just grown."""
        placed = None if search.on is None else self.placed[search.on]
        scores = self.scores[0] if placed is None else placed.scores[0]
        values = np.zeros(len(scores))
        if placed is None:
            self.grower.add(tree, values)
        else:
            placed.add_to(values, self.grower, tree)
        return search.alpha(scores, values)

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
        for placed in self.placed.values():
            placed.add(self.grower, tree, output)


def alphas_to_arrays(alphas: Sequence[float]) -> dict[str, Floats]:
    """Return the weights of trees as a file holds them; nothing if there are none."""
    return {ALPHAS: np.array(alphas)} if alphas else {}


def alphas_of(arrays: Mapping[str, NDArray[Any]], n_rounds: int) -> list[float]:
    """Check the weights of trees that a file holds, one a round."""
    found = arrays.get(ALPHAS, np.zeros(0))
    if found.shape != (n_rounds,) or found.dtype != np.float64 or not np.isfinite(found).all():
        raise ModelFileError("the weights of trees in the file are not one finite number a round")
    return [float(alpha) for alpha in found]


def _parts_and_masses(doc_weight: Floats | None) -> tuple[Mask, Floats | None]:
    """Return which documents take part, and what they count unless all count 1.

    A document without weight must not even be counted, for it shall be as if it were not there.
    """
    if doc_weight is None:
        return EVERY_DOC, None
    some = doc_weight > 0.0
    masses = doc_weight if (doc_weight[some] != 1.0).any() else None
    return EVERY_DOC if some.all() else some, masses
