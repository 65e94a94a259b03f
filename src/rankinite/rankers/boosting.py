"""Boosted trees: the learner whose rounds are regression trees that follow an objective.

All that a round draws is keyed by the seed and its number, and scores are the sum of trees in
their order. So a fit that is resumed from a checkpoint gives the bytes of one that was never
stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import Content, checked_array
from rankinite.core.elementary import exp
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.random import generator
from rankinite.core.types import Floats, Integers, Mask
from rankinite.data.ranking_data import RankingData
from rankinite.objectives.objective import EVERY_QUERY, Targets, doc_weights
from rankinite.objectives.pointwise import RegressionTerm
from rankinite.rankers.callbacks import History, Round, ValidationSet
from rankinite.rankers.features import check_features
from rankinite.rankers.inputs import TrainingInputs
from rankinite.rankers.line_search import LineSearch
from rankinite.trees.binning import BinnedData
from rankinite.trees.bins import EVERY_ROW
from rankinite.trees.forest import Categories, Forest, Tree
from rankinite.trees.grower import EVERY_DOC, NO_NOISE, Grower, GrowthOptions

log = logging.getLogger("rankinite")


# A sample may have nothing to teach; this many in a row mean that the data have nothing.
IDLE_ROUNDS = 10
# Scores that reach this have diverged; the squares of larger ones would overflow.
LARGEST_VALUE = 1e100
ALPHAS = "alphas"
# Depths with noise of their own; deeper nodes have that of the first ones again.
NOISE_DEPTHS = 8


@dataclass(frozen=True)
class Sampling:
    """Which part of the data a tree sees: shares of documents, of queries and of features."""

    docs: float
    queries: float
    features: float


class Sampler:
    """Draws the part of the data that each tree sees, anew for every tree.

    Draws are keyed by the seed and the round, so that a resumed fit draws what an undisturbed one
    would.

    Parameters
    ----------
    sampling
        The shares to draw.
    offsets, origins
        The queries, and the number of the query that each was sampled from. Samples of one query
        are drawn together: they share documents, and a tree is to see a part of the documents.
    n_features
        Number of features.
    taking_part
        The documents to draw from; all if empty.
    seed
        The seed of the fit.
    """

    def __init__(
        self,
        sampling: Sampling,
        offsets: Integers,
        origins: Integers,
        n_features: int,
        taking_part: Mask,
        seed: int,
    ) -> None:
        self.sampling = sampling
        self.sizes = np.diff(offsets)
        self.origins = origins
        self.n_features = n_features
        self.taking_part = taking_part
        self.seed = seed

    def queries(self, number: int) -> Mask:
        """Return the queries of a round; all if empty."""
        share = self.sampling.queries
        if share == 1.0:
            return EVERY_QUERY
        # One draw per original query. Those with the smallest draws are chosen, so that every tree
        # sees the same number of them.
        draws = generator(self.seed, "queries", number).random(int(self.origins.max()) + 1)
        wanted = max(1, round(share * len(draws)))
        drawn = draws <= np.partition(draws, wanted - 1)[wanted - 1]
        return np.asarray(drawn[self.origins])

    def docs(self, number: int, output: int, queries: Mask) -> Mask:
        """Return the documents of a tree, which are in these queries; all if empty."""
        chosen = np.repeat(queries, self.sizes) if len(queries) else EVERY_DOC
        if self.sampling.docs < 1.0:
            rng = generator(self.seed, "docs", number, output)
            drawn = rng.random(int(self.sizes.sum()), np.float32) < self.sampling.docs
            chosen = _both(chosen, drawn)
        return _both(chosen, self.taking_part)

    def features(self, number: int, output: int) -> Integers | None:
        """Return the features of a tree; all if None."""
        share = self.sampling.features
        if share == 1.0:
            return None
        rng = generator(self.seed, "features", number, output)
        wanted = max(1, round(share * self.n_features))
        return np.sort(rng.choice(self.n_features, wanted, replace=False))

    def noise(self, number: int, output: int) -> Floats:
        """Return standard normal numbers, one per feature in a row for each depth of the tree."""
        rng = generator(self.seed, "noise", number, output)
        drawn = rng.standard_normal((NOISE_DEPTHS, self.n_features))
        # Rounded, because the largest of them, computed by the C library's logarithm, may depend on
        # the processor in their last bits.
        return drawn.astype(np.float32).astype(np.float64)


class BinnedValidationSet:
    """A validation set, binned like the training set, with the scores of the trees so far."""

    def __init__(self, valid: ValidationSet, binned: BinnedData) -> None:
        rows = EVERY_ROW if valid.data.rows is None else valid.data.rows
        self.columns = binned.columns_of(valid.data.matrix, rows)
        self.scores = valid.start.copy()
        # The leaf of every document, an array that is used again for every tree.
        self.leaves: NDArray[np.generic] | None = None

    def add(self, grower: Grower, tree: Tree, output: int) -> None:
        """Add a tree to the scores."""
        self.add_to(self.scores[output], grower, tree)

    def add_to(self, scores: Floats, grower: Grower, tree: Tree) -> None:
        """Add a tree to any scores of the set's documents."""
        self.leaves = grower.add_elsewhere(tree, self.columns, self.leaves, scores)


class TreeLearner:
    """Boosted trees under training; a round is one tree per output.

    Parameters
    ----------
    inputs
        The training data, and the gradients that the trees follow. The scores before the first
        round are changed.
    binned, rows
        The features, and the row of every document.
    growth, sampling
        How trees grow, and on which part of the data.
    learning_rate
        The value of every leaf is multiplied by it.
    sets
        Validation sets by name.
    doc_weight
        The weights of documents when splits are chosen: 2 counts like two documents, 0 like none.
        All have 1 if None.
    line_search
        Finds the weights of trees; all have 1 if None.
    regression
        Is added to the gradients; nothing if None.
    """

    def __init__(
        self,
        inputs: TrainingInputs,
        *,
        binned: BinnedData,
        rows: Integers | None,
        growth: GrowthOptions,
        sampling: Sampling,
        learning_rate: float,
        sets: Mapping[str, ValidationSet],
        doc_weight: Floats | None,
        line_search: LineSearch | None,
        regression: RegressionTerm | None = None,
    ) -> None:
        self.regression = regression
        self.gradients = inputs.gradients
        self.grower = Grower(binned, rows, growth)
        self.learning_rate = learning_rate
        self.scores = inputs.scores
        # Bins of validation sets are made once, so that a tree adds to their scores by comparing
        # bytes, as in training.
        self.valid = {name: BinnedValidationSet(valid, binned) for name, valid in sets.items()}
        taking_part, self.doc_weight = _weighted_docs(doc_weight)
        self._n_features = len(binned.feature_names)
        self._categories = binned.categories
        data, n_features = inputs.data, self._n_features
        self.sampler = Sampler(
            sampling, data.offsets, data.origins, n_features, taking_part, inputs.seed
        )
        self.by_hessian = growth.criterion == "newton"
        self.by_chance = growth.random_strength > 0.0
        self.has_diverged = False
        self.line_search = line_search
        self.trees: list[Tree] = []
        self.alphas: list[float] = []
        self._new_trees: list[Tree] = []
        # Queries that are not drawn keep the gradients of earlier rounds, which no tree reads.
        self._gradients = np.zeros_like(inputs.scores)
        self._hessians = np.zeros_like(inputs.scores)

    @property
    def inputs(self) -> list[NDArray[np.float32]]:
        """The cut points of bins, which may have been made of other data."""
        return [self.grower.binned.main.cuts, self.grower.binned.more.cuts]

    @property
    def categories(self) -> Categories:
        """The categories that have bins, by categorical feature."""
        return self._categories

    @property
    def n_rounds(self) -> int:
        """Number of rounds that were committed."""
        return len(self.trees) // len(self.scores)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to learn: no tree of the last rounds did anything."""
        # Only whole rounds: with several outputs, all trees of a round have to be idle.
        last = self.trees[-IDLE_ROUNDS * len(self.scores) :]
        enough = self.n_rounds >= IDLE_ROUNDS
        return enough and not any(tree.value.any() for tree in last)

    def step(self) -> None:
        """Grow the trees of one more round, and add them to all scores."""
        number = self.n_rounds
        queries = self.sampler.queries(number)
        self._compute_gradients(queries, number)
        self._new_trees = []
        # All outputs follow the gradients at the scores before the round.
        for output in range(len(self.scores)):
            tree = self._grow(number, output, queries)
            self._add(tree, output, grown=True)
            self._new_trees.append(tree)

    def validation_scores(self, name: str) -> Floats:
        """Return the scores of a validation set, one row per output."""
        return self.valid[name].scores

    def commit(self, _done: Round, *, is_best: bool) -> None:
        """Take over the trees of the round; which round is best is decided after the fit."""
        self.trees += self._new_trees

    def train_scores(self) -> Floats:
        """Return the scores of the training documents after the last round."""
        return self.scores

    def to_content(self) -> Content:
        """Return the trees of the rounds that are done."""
        forest = Forest(
            tuple(self.trees), np.zeros(len(self.scores)), self._n_features, self._categories
        )
        # An interrupt may have come between a tree's weight and the commit of the round.
        alphas = alphas_to_arrays(self.alphas[: self.n_rounds])
        learned = self.gradients.to_arrays(self.n_rounds)
        return Content({}, {**forest.to_arrays(), **alphas, **learned})

    def n_rounds_in(self, content: Content) -> int:
        """Return the number of rounds that a checkpoint holds."""
        forest = self._forest_in(content)
        return len(forest) // len(forest.start)

    def restore(self, content: Content, n_rounds: int, _history: History) -> None:
        """Resume after the first rounds of a checkpoint, as if they had just been grown."""
        forest = self._forest_in(content)
        trees = forest.trees[: n_rounds * len(self.scores)]
        if self.line_search is not None:
            n_rounds_in_file = len(forest) // len(forest.start)
            self.alphas = alphas_of(content.arrays, n_rounds_in_file)[:n_rounds]
        self.gradients.restore(content.arrays, n_rounds)
        # In the order of training: the sum of floats depends on it, and what follows on the sum.
        for number, tree in enumerate(trees):
            self._add(tree, number % len(self.scores), grown=False)
        self.trees = list(trees)

    def _forest_in(self, content: Content) -> Forest:
        """Return the trees of a checkpoint, which must be such as grow on these data."""
        forest = Forest.from_arrays(content.arrays, self._n_features)
        if len(forest.start) != len(self.scores):
            raise ModelFileError("has another number of outputs than the fit")
        categories = self._categories
        same = forest.categories.keys() == categories.keys() and all(
            np.array_equal(codes, categories[j]) for j, codes in forest.categories.items()
        )
        # Others would be followed by bins that they do not fit.
        if not same or not all(self.grower.can_follow(tree) for tree in forest.trees):
            raise ModelFileError("has trees that do not grow on the data of the fit")
        return forest

    def _compute_gradients(self, queries: Mask, number: int) -> None:
        """Compute the gradients of these queries at least."""
        scores, gradients, hessians = self.scores, self._gradients, self._hessians
        self.gradients.gradients_of(queries, scores, number, gradients, hessians)
        if self.regression is not None:
            self.regression.add(queries, scores, gradients, hessians)

    def _grow(self, number: int, output: int, queries: Mask) -> Tree:
        gradients, hessians = self._gradients[output], self._hessians[output]
        tree = self.grower.grow(
            gradients,
            hessians,
            split_hessians=hessians if self.by_hessian else self.doc_weight,
            chosen=self.sampler.docs(number, output, queries),
            features=self.sampler.features(number, output),
            noise=self._noise(number, output),
        )
        if self.line_search is not None:
            # One weight per round, also after an interrupt in the midst of one.
            del self.alphas[number:]
            self.alphas.append(self._alpha(tree, self.line_search))
            tree = replace(tree, value=tree.value * self.alphas[-1])
        return replace(tree, value=self._bounded(tree.value, number))

    def _noise(self, number: int, output: int) -> Floats:
        """Return the noise of a tree's choices, which fades as the rounds go on."""
        if not self.by_chance:
            return NO_NOISE
        # What is left to learn falls like exp(-rate x rounds). Once that is less than a document's
        # share of the data, chance would only keep the last trees from learning the details.
        left = self.scores.shape[1] * exp(-self.learning_rate * number)
        noise: Floats = self.sampler.noise(number, output) * (left / (1.0 + left))
        return noise

    def _alpha(self, tree: Tree, line_search: LineSearch) -> float:
        """Return the best weight of the tree just grown."""
        valid = None if line_search.on is None else self.valid[line_search.on]
        scores = self.scores[0] if valid is None else valid.scores[0]
        values = np.zeros(len(scores))
        if valid is None:
            self.grower.add(tree, values)
        else:
            valid.add_to(values, self.grower, tree)
        return line_search.alpha(scores, values)

    def _bounded(self, step: Floats, number: int) -> Floats:
        """Return the values of leaves; a Newton step can be as large as hessians are small."""
        with np.errstate(over="ignore"):
            value = step * self.learning_rate
        bounded = np.clip(value, -LARGEST_VALUE, LARGEST_VALUE)
        if (bounded != value).any() and not self.has_diverged:
            self.has_diverged = True
            log.warning(
                "training: scores diverge in round %d; a smaller learning_rate or a larger "
                "min_docs_in_leaf keeps them small",
                number + 1,
            )
        return bounded

    def _add(self, tree: Tree, output: int, *, grown: bool) -> None:
        if grown:
            # The grower still knows the leaf of every document of the tree that it grew last.
            self.grower.add(tree, self.scores[output])
        else:
            self.grower.add_again(tree, self.scores[output])
        for valid in self.valid.values():
            valid.add(self.grower, tree, output)


def alphas_to_arrays(alphas: Sequence[float]) -> dict[str, Floats]:
    """Return the weights of trees as a file holds them; nothing if there are none."""
    return {ALPHAS: np.array(alphas)} if alphas else {}


def alphas_of(arrays: Mapping[str, NDArray[Any]], n_rounds: int) -> list[float]:
    """Check the weights of trees that a file holds, one per round."""
    if n_rounds == 0 and ALPHAS not in arrays:
        return []
    return [float(alpha) for alpha in checked_array(arrays, ALPHAS, np.float64, n_rounds)]


def _weighted_docs(doc_weight: Floats | None) -> tuple[Mask, Floats | None]:
    """Return which documents take part, and their weights unless all have 1.

    A document without weight must not even be counted, for it shall be as if it were not there:
    a leaf has a least number of documents.
    """
    if doc_weight is None:
        return EVERY_DOC, None
    some = doc_weight > 0.0
    weights = doc_weight if (doc_weight[some] != 1.0).any() else None
    return EVERY_DOC if some.all() else some, weights


def _both(first: Mask, second: Mask) -> Mask:
    """Return what is in both masks; an empty one has everything."""
    if not len(first):
        return second
    return first & second if len(second) else first


def bins_of(
    owner: str,
    inputs: TrainingInputs,
    weights: Floats | None,
    binned: BinnedData | None,
    most_bins: int | None,
) -> tuple[BinnedData, NDArray[np.int64] | None]:
    """Return the bins of the rows that documents use, and the row of every document."""
    data = inputs.data
    # Bins that were made before cover the whole matrix, by its own row numbers.
    if binned is not None:
        _check_binned(owner, binned, data)
        return binned, data.rows
    used, rows = EVERY_ROW, None
    if data.rows is not None:
        # Only rows in use are binned; and without an index, if that is the identity then.
        used, rows = np.unique(data.rows, return_inverse=True)
        if len(used) == data.n_docs and (rows == np.arange(data.n_docs)).all():
            rows = None
    bins = BinnedData.make(
        data.matrix,
        data.feature_names,
        rows=used if len(used) < data.matrix.shape[0] else EVERY_ROW,
        docs=_docs_that_count(data, weights),
        most_bins=most_bins,
        seed=inputs.seed,
        categorical=[data.feature_names.index(name) for name in data.categories],
    )
    return bins, rows


def _check_binned(owner: str, binned: BinnedData, data: RankingData) -> None:
    check_features(f"{owner} with binned", binned.feature_names, data.feature_names)
    if binned.n_rows != data.matrix.shape[0]:
        raise UsageError(
            f"{owner}: binned has {binned.n_rows} rows, and the matrix of the data set has "
            f"{data.matrix.shape[0]}; make it of the set that this one was cut from"
        )


def _docs_that_count(data: RankingData, weights: Floats | None) -> NDArray[np.int64]:
    """Return the rows of the documents that bins are made for: those with a weight."""
    # A document of weight 0 shall be as if it were not there: no cut point may depend on it.
    rows = EVERY_ROW if data.rows is None else data.rows
    if weights is None or weights.all():
        return rows
    return rows[weights > 0.0] if len(rows) else np.flatnonzero(weights)


def all_weights(targets: Targets) -> Floats | None:
    """Return the weights of documents, times those of their queries; None if all are 1."""
    if targets.query_weight is None and targets.doc_weight is None:
        return None
    return doc_weights(targets)
