"""What rankers of boosted trees have in common: their parameters, and how they are fitted."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import Constraint, Either, OneOf, Real, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.measures.text import parse_measures
from rankinite.objectives.labels import doc_weights
from rankinite.objectives.objective import Objective, Targets
from rankinite.rankers.base import given_scores, is_model, model_scores
from rankinite.rankers.boosting import Boosting, Callback, History, Round, Watched
from rankinite.rankers.checkpoint import Checkpoint, digest_of
from rankinite.rankers.forest_ranker import ForestRanker
from rankinite.rankers.inputs import Given, Valid, check_features, training_data, validation_sets
from rankinite.rankers.sampling import Sampling
from rankinite.trees.binned_data import EVERY_ROW, BinnedData
from rankinite.trees.forest import Forest
from rankinite.trees.grower import Growth

log = logging.getLogger("rankinite")

Floats = NDArray[np.float64]
SHARE = Real(0, 1, low_open=True)
# These may differ between a fit and the one that goes on from its checkpoint.
NOT_OF_TREES = ("n_trees", "patience", "min_improvement", "base")


class TreeRanker(ForestRanker):
    """A ranker of boosted trees; see `LambdaMART`, `MART` and `McRank` for its parameters.

    Attributes
    ----------
    forest_
        The trees that predict uses.
    n_trees_ : int
        How many rounds of trees are kept: the best number by the validation set, or all.
    history_ : dict
        The values of measures on the validation sets: ``history_["valid"]["NDCG@10"]`` has one
        value a round.
    n_rounds_ : int
        How many rounds were grown.
    seed_ : int
        The seed of the fit: ``random_state``, or what was drawn from it.
    feature_importances_ : array
        The share of each feature in the gain of all splits.
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "n_trees": Whole(1),
        "n_leaves": Whole(2, 1 << 16),
        "learning_rate": Real(0, low_open=True),
        "max_depth": Either(Whole(1), OneOf([None])),
        "min_docs_in_leaf": Whole(1),
        "min_gain": Real(0),
        "docs_per_tree": SHARE,
        "queries_per_tree": SHARE,
        "features_per_tree": SHARE,
        "criterion": OneOf(["mse", "newton"]),
        "step": OneOf(["newton", "gradient"]),
        "most_bins": Whole(2, 255),
        "patience": Either(Whole(1), OneOf([None])),
        "min_improvement": Real(0),
    }

    n_trees: int
    n_leaves: int
    learning_rate: float
    max_depth: int | None
    min_docs_in_leaf: int
    min_gain: float
    docs_per_tree: float
    queries_per_tree: float
    features_per_tree: float
    criterion: str
    step: str
    most_bins: int
    valid_measure: Any
    patience: int | None
    min_improvement: float

    @abstractmethod
    def _objective(self) -> Objective:
        """Return what the trees follow."""

    @abstractmethod
    def _default_measures(self) -> Sequence[Measure]:
        """Return what validation sets are measured by if nobody says."""

    def _fit(
        self,
        X: Any,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        valid: Valid,
        query_weight: ArrayLike | None,
        doc_weight: ArrayLike | None,
        valid_base: Any,
        binned: BinnedData | None,
        callbacks: Sequence[Callback],
        progress: Progress | None,
        checkpoint: str | Path | None,
    ) -> Self:
        self._check_parameters()
        self._measures()  # a text that is no measure is refused before anything is done
        called = _as_callbacks(self._name, callbacks)
        given = training_data(self._name, X, y, qid, query_weight)
        data = given.data
        sets = validation_sets(self._name, valid, data.feature_names)
        own_weights = _doc_weights(self._name, doc_weight, given)
        seed = seed_of(self._name, self.random_state)
        targets = _targets(data, own_weights, seed)
        gradients = self._objective().prepare(targets)
        weights = _all_weights(targets)
        bins, rows = _binned(self._name, data, weights, binned, self.most_bins, seed)
        start = gradients.start if self.base is None else np.zeros(len(gradients.start))
        watched = {
            name: self._watch(name, found, bins, start, valid_base) for name, found in sets.items()
        }
        self._refuse_unmeasured(watched, data.top_grade)
        boosting = Boosting(
            gradients=gradients,
            binned=bins,
            rows=rows,
            offsets=data.offsets,
            origins=data.origins,
            growth=self._growth(),
            sampling=Sampling(self.docs_per_tree, self.queries_per_tree, self.features_per_tree),
            learning_rate=self.learning_rate,
            seed=seed,
            scores=self._start_scores(start, given, self.base, "base"),
            watched=watched,
            ranking=self._ranking,
            doc_weight=weights,
        )
        keeper = self._resumed(boosting, data, own_weights, checkpoint)
        self._remember(data)
        self.seed_ = seed
        try:
            self._boost(boosting, called, progress or Silent(), keeper)
        finally:
            self._keep(boosting, start)
        return self

    def _watch(
        self, name: str, found: Given, bins: BinnedData, start: Floats, valid_base: Any
    ) -> Watched:
        scores = self._start_scores(start, found, *self._base_of(name, valid_base))
        return Watched(found.data, bins, self._measures(), scores)

    def _refuse_unmeasured(self, watched: Mapping[str, Watched], top_grade: float) -> None:
        """Refuse validation sets that cannot tell anything, before training begins."""
        for name, found in watched.items():
            for measure, value in found.measure(self._ranking(found.scores)).items():
                if np.isnan(value):
                    raise DataError(
                        f"{self._name}: no query of the validation set {name!r} counts for "
                        f"{measure}: none has a relevant document; give others, or another "
                        "valid_measure"
                    )
            graded = [str(m) for m in found.measures if getattr(m, "top_grade", 0.0) is None]
            if graded and found.data.top_grade != top_grade:
                log.warning(
                    "%s: the top grade of %r is %g, that of the training data %g; give both sets "
                    "the same top_grade",
                    ", ".join(graded),
                    name,
                    found.data.top_grade,
                    top_grade,
                )

    def _resumed(
        self,
        boosting: Boosting,
        data: RankingData,
        weights: Floats | None,
        checkpoint: str | Path | None,
    ) -> Checkpoint | None:
        """Go on from a checkpoint, if there is one, as far as this fit would have come itself."""
        if checkpoint is None:
            return None
        check(f"{self._name} with a checkpoint", "random_state", self.random_state, Whole(0))
        blocks = (boosting.grower.binned.main, boosting.grower.binned.more)
        starts = [boosting.scores, *(found.scores for found in boosting.watched.values())]
        digest = digest_of(
            {"": data, **{name: found.data for name, found in boosting.watched.items()}},
            [weights, *starts, *(block.cuts for block in blocks)],
        )
        keeper = Checkpoint(Path(checkpoint), self._fit_parameters(), digest)
        trees, history = keeper.read(boosting)
        n_rounds = min(keeper.n_rounds, self.n_trees)
        waited = (r for r in range(1, n_rounds) if self._has_waited_enough(history.first(r), r))
        n_rounds = next(waited, n_rounds)
        boosting.replay(trees[: n_rounds * len(boosting.scores)], history.first(n_rounds))
        return keeper

    def _growth(self) -> Growth:
        return Growth(
            self.n_leaves,
            self.max_depth,
            self.min_docs_in_leaf,
            self.min_gain,
            self.criterion,
            self.step,
        )

    def _measures(self) -> Sequence[Measure]:
        if self.valid_measure is None:
            return self._default_measures()
        return parse_measures(self.valid_measure)

    def _boost(
        self,
        boosting: Boosting,
        callbacks: Sequence[Callback],
        progress: Progress,
        keeper: Checkpoint | None,
    ) -> None:
        """Grow trees until there are enough; a Ctrl-C leaves what was grown, and its checkpoint."""
        try:
            with progress.start("training", self.n_trees, "trees") as task:
                task.advance(min(boosting.n_rounds, self.n_trees))
                while boosting.n_rounds < self.n_trees and not self._is_enough(boosting):
                    done = boosting.step()
                    task.advance(1)
                    task.note(_in_words(done))
                    if keeper is not None:
                        keeper.write_sometimes(boosting)
                    answers = [callback(done) for callback in callbacks]
                    if any(answer is True for answer in answers):
                        break
        finally:
            if keeper is not None:
                keeper.write(boosting)

    def _is_enough(self, boosting: Boosting) -> bool:
        if boosting.is_done:
            log.info(
                "%s: there is nothing left to learn after %d rounds", self._name, boosting.n_rounds
            )
            return True
        return self._has_waited_enough(boosting.history, boosting.n_rounds)

    def _has_waited_enough(self, history: History, n_rounds: int) -> bool:
        if self.patience is None or not history.values or n_rounds == 0:
            return False
        return n_rounds - self._best_round(history, n_rounds) >= self.patience

    def _best_round(self, history: History, n_rounds: int) -> int:
        """Return the number of rounds to keep: the best by the first measure of the first set."""
        if not history.values or n_rounds == 0:
            return n_rounds
        first = next(iter(history.values))
        measure = str(self._measures()[0])
        return history.bests(first, measure, self.min_improvement)[n_rounds - 1]

    def _keep(self, boosting: Boosting, start: Floats) -> None:
        # An interrupt may have come between a round's values and its trees.
        history = boosting.history.first(boosting.n_rounds)
        self.n_rounds_ = boosting.n_rounds
        self.n_trees_ = self._best_round(history, boosting.n_rounds)
        self.history_ = history.values
        n_features = len(boosting.grower.binned.feature_names)
        whole = Forest(tuple(boosting.trees), start, n_features)
        self.forest_ = whole.first(self.n_trees_)

    def _base_of(self, name: str, valid_base: Any) -> tuple[Any, str]:
        """Return the base of a validation set, and what people call it."""
        if self.base is None or is_model(self.base):
            return self.base, "base"
        given = valid_base.get(name) if isinstance(valid_base, Mapping) else valid_base
        if given is None:
            raise UsageError(
                f"{self._name}: the base is given as scores; give those of the validation set "
                f"{name!r} as valid_base"
            )
        return given, f"valid_base of {name!r}"

    def _start_scores(self, start: Floats, given: Given, base: Any, called: str) -> Floats:
        """Return the scores before the first tree, one row for each output."""
        n_docs = given.data.n_docs
        scores = np.repeat(start[:, None], n_docs, axis=1)
        if base is None:
            return scores
        if is_model(base):
            return scores + model_scores(self._name, base, given.data, None, n_docs)
        return scores + given.arrange(given_scores(self._name, called, base, n_docs))

    def _fit_parameters(self) -> dict[str, Any]:
        """Return the parameters that the trees depend on."""
        return {
            name: value
            for name, value in self._plain_parameters().items()
            if name not in NOT_OF_TREES
        }


def seed_of(owner: str, random_state: Any) -> int:
    """Return the seed: the number given, or one drawn from what was given."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    check(owner, "random_state", random_state, Whole(0))
    return int(random_state)


def _targets(data: RankingData, doc_weight: Floats | None, seed: int) -> Targets:
    return Targets(
        dict([(None, data.y), *data.labels.items()]),
        data.offsets,
        data.top_grade,
        data.query_weight,
        doc_weight,
        seed,
    )


def _binned(
    owner: str,
    data: RankingData,
    weights: Floats | None,
    given: BinnedData | None,
    most_bins: int,
    seed: int,
) -> tuple[BinnedData, NDArray[np.int64] | None]:
    """Return the bins of the rows that documents use, and the row of every document."""
    if given is not None:
        _check_binned(owner, given, data)
        return given, data.rows
    used, rows = EVERY_ROW, None
    if data.rows is not None:
        used, rows = np.unique(data.rows, return_inverse=True)
        if len(used) == data.n_docs and (rows == np.arange(data.n_docs)).all():
            rows = None
    made = BinnedData.make(
        data.base,
        data.feature_names,
        rows=used if len(used) < len(data.base) else EVERY_ROW,
        docs=_docs_that_count(data, weights),
        most_bins=most_bins,
        seed=seed,
    )
    return made, rows


def _check_binned(owner: str, given: BinnedData, data: RankingData) -> None:
    check_features(f"{owner} with binned", given.feature_names, data.feature_names)
    if given.n_rows != len(data.base):
        raise UsageError(
            f"{owner}: binned has {given.n_rows} rows, and the matrix of the data set has "
            f"{len(data.base)}; make it of the set that this one was cut from"
        )


def _docs_that_count(data: RankingData, weights: Floats | None) -> NDArray[np.int64]:
    """Return the rows of the documents that bins are made for; those without weight are none."""
    rows = EVERY_ROW if data.rows is None else data.rows
    if weights is None or weights.all():
        return rows
    return rows[weights > 0.0] if len(rows) else np.flatnonzero(weights)


def _as_callbacks(owner: str, callbacks: Any) -> list[Callback]:
    listed = [callbacks] if callable(callbacks) else list(callbacks)
    for callback in listed:
        if not callable(callback):
            raise UsageError(f"{owner}: the callback {callback!r} cannot be called; give functions")
    return listed


def _all_weights(targets: Targets) -> Floats | None:
    """Return what every document counts, by its own weight and by its query's; 1 if None."""
    if targets.query_weight is None and targets.doc_weight is None:
        return None
    return doc_weights(targets)


def _doc_weights(owner: str, given: ArrayLike | None, documents: Given) -> Floats | None:
    if given is None:
        return None
    n_docs = documents.data.n_docs
    try:
        weights = np.asarray(given, np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"{owner}: sample_weight cannot be made numbers: {problem}") from None
    if weights.shape != (n_docs,):
        raise DataError(
            f"{owner}: sample_weight has the shape {weights.shape}; expected one weight for each "
            f"of the {n_docs} documents"
        )
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        doc = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{owner}: sample_weight of document {doc} is {weights[doc]}; expected a finite "
            "number of at least 0"
        )
    if not weights.any():
        raise DataError(f"{owner}: sample_weight is zero for all documents; give some a weight")
    return documents.arrange(weights)


def _in_words(done: Round) -> str:
    return "  ".join(
        f"{name} {measure} {value:.4f}"
        for name, values in done.values.items()
        for measure, value in values.items()
    )
