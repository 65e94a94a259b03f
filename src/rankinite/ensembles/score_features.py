"""Features of queries computed from a ranker's scores, and a ranker that uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.container import Content
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.core.format import some_of
from rankinite.core.lazy import LazyModule
from rankinite.core.memory import require_memory
from rankinite.core.params import Constraint, Whole
from rankinite.core.types import Floats, Floats32, Integers
from rankinite.data import checks
from rankinite.data.categories import Codes
from rankinite.data.queries import query_numbers
from rankinite.data.ranking_data import RankingData
from rankinite.data.sparse import dense_rows, is_sparse
from rankinite.data.splits import split_queries
from rankinite.ensembles.ensemble import with_members
from rankinite.measures.measure import Measure
from rankinite.rankers.inputs import Valid, training_data, validation_sets
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.rankers.mart import MART
from rankinite.rankers.model_file import INNER, MEMBERS, Manifest
from rankinite.rankers.ranker import Ranker

sparse: Any = LazyModule("scipy.sparse")
sklearn: Any = LazyModule("sklearn")

TOP = 3
FEATURE_NAMES = ("max of scores", "mean of scores", "max of top 3 scores", "mean of top 3 scores")
OWNER = "score_features"
# Rows copied at a time, so that an indexed data set is not copied twice.
ROWS_A_BLOCK = 1 << 16


def score_features(scores: ArrayLike, offsets: ArrayLike) -> Floats32:
    """Return four features per document, the same for all documents of a query.

    They are the maximum and the mean of scores over all documents of the query, and over the three
    that are ranked first (Ensemble, Sec. 4.2). The two maxima are the same number; both are kept
    as in the paper. The score of the document itself is not among them.

    Parameters
    ----------
    scores
        One score per document.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.

    Examples
    --------
    >>> score_features([1.0, 4.0, 2.0, 3.0, 7.0], [0, 4, 5])[[0, 3, 4]]
    array([[4. , 2.5, 4. , 3. ],
           [4. , 2.5, 4. , 3. ],
           [7. , 7. , 7. , 7. ]], dtype=float32)
    """
    numbers, sizes = _checked(scores, offsets)
    # Sorted, so that the rounding of a sum does not depend on the order of the documents.
    ordered = numbers[np.lexsort((-numbers, np.repeat(np.arange(len(sizes)), sizes)))]
    sizes = sizes[sizes > 0]
    starts = np.cumsum(sizes) - sizes
    largest = ordered[starts]
    means = np.add.reduceat(ordered, starts) / sizes if len(sizes) else largest
    top_sums = largest.copy()
    for k in range(1, TOP):
        has_more = sizes > k
        top_sums[has_more] += ordered[starts[has_more] + k]
    features = np.stack([largest, means, largest, top_sums / np.minimum(sizes, TOP)], axis=1)
    return np.repeat(features.astype(np.float32), sizes, axis=0)


def _checked(scores: ArrayLike, offsets: ArrayLike) -> tuple[Floats, Integers]:
    """Return scores that fit into float32 features, and the number of documents per query."""
    numbers, bounds = np.asarray(scores, np.float64), np.asarray(offsets)
    if numbers.ndim != 1:
        raise DataError(
            f"{OWNER}: scores have the shape {numbers.shape}; expected one score per document"
        )
    if not np.isfinite(numbers).all():
        doc = int((~np.isfinite(numbers)).argmax())
        raise DataError(
            f"{OWNER}: the score of document {doc} is {numbers[doc]}; expected finite scores"
        )
    sizes = np.diff(bounds) if bounds.ndim == 1 and bounds.dtype.kind in "iu" else np.array([-1])
    if len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != len(numbers) or (sizes < 0).any():
        raise DataError(
            f"{OWNER}: offsets must go from 0 to the number of documents, {len(numbers)}, and "
            "never decrease; give those of a RankingData"
        )
    # Features are float32; a larger score would become infinite, which rankers refuse.
    limit = float(np.finfo(np.float32).max)
    return numbers.clip(-limit, limit), sizes


def with_score_features(data: RankingData, scores: ArrayLike, prefix: str = "") -> RankingData:
    """Return the data set with the four features of `score_features` appended.

    Parameters
    ----------
    data
        The data set.
    scores
        One score per document.
    prefix
        Prefix of the names of the new features, such as the name of the ranker.
    """
    checks.require_data_set("with_score_features", data)
    names = tuple(prefix + name for name in FEATURE_NAMES)
    taken = [name for name in names if name in set(data.feature_names)]
    if taken:
        raise UsageError(
            f"with_score_features: the data set has {some_of(taken)} already; give another prefix"
        )
    added = score_features(scores, data.offsets)
    what = f"a matrix of {data.n_docs:,} documents x {data.n_features + len(names):,} features"
    n_bytes = 4 * data.n_docs * (data.n_features + len(names))
    require_memory("with_score_features", what, n_bytes, "take fewer documents or features")
    matrix = np.empty((data.n_docs, data.n_features + len(names)), np.float32)
    matrix[:, data.n_features :] = added
    for first in range(0, data.n_docs, ROWS_A_BLOCK):
        block = slice(first, first + ROWS_A_BLOCK)
        rows = block if data.rows is None else data.rows[block]
        matrix[block, : data.n_features] = dense_rows(data.matrix, rows)
    return data.replace(matrix=matrix, rows=None, feature_names=(*data.feature_names, *names))


SCORER = "scorer"
FOLDS = "folds"
WEIGHTS = "sample_weight"


class WithScoreFeatures(Ranker):
    """A ranker with four additional features computed from another ranker's scores.

    They are features of the query: see `score_features` (Ensemble, Sec. 4.2). For training
    documents the scores come from rankers that were fitted to other queries; otherwise the
    features would reveal more about training labels than about the labels of new documents.

    Parameters
    ----------
    scorer
        Unfitted ranker whose scores are used; ``MART("logistic")`` if None.
    ranker
        Unfitted ranker that gets the features; a `LambdaMART` if None.
    folds
        Number of folds; the scores of each fold come from a scorer fitted to the others.

    Attributes
    ----------
    scorer_ : ranker
        Scorer fitted to all training data, which predict uses.
    ranker_ : ranker
        The fitted ranker; its features are those of the scorer and the four.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.polynomials(20, n_features=3)
    >>> model = rk.WithScoreFeatures(rk.MART(n_trees=5), rk.LambdaMART(n_trees=5)).fit(data)
    >>> model.ranker_.feature_names_[3:5]
    ('MART: max of scores', 'MART: mean of scores')
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {FOLDS: Whole(2)}
    # It has rankers inside where other rankers have rounds.
    rounds: ClassVar[str] = "rankers"

    scorer_: Ranker
    ranker_: Ranker

    def __init__(self, scorer: Any = None, ranker: Any = None, *, folds: int = 5) -> None:
        self.scorer = scorer
        self.ranker = ranker
        self.folds = folds

    @property
    def inner_rankers(self) -> Mapping[str, Ranker]:
        """The scorer, and the ranker that has its scores as features."""
        return {"scorer": self.scorer_, "ranker": self.ranker_} if self.is_fitted else {}

    @classmethod
    def from_fitted(cls, scorer: Ranker, ranker: Ranker) -> Self:
        """Make a fitted ranker of a fitted scorer and a fitted ranker, without data.

        Parameters
        ----------
        scorer
            Ranker whose scores are used.
        ranker
            Ranker that gets the features: fitted to the scorer's features and the four that
            `with_score_features` adds.
        """
        new = cls()
        for role, value in ((SCORER, scorer), (INNER, ranker)):
            new._refuse_other(role, value)
            if not value.is_fitted:
                raise UsageError(f"{new._name}: the {role} is not fitted yet; fit it first")
        # The names are the only evidence that the ranker was fitted to score features of a scorer.
        if _prefix(scorer, ranker) is None:
            raise DataError(
                f"{new._name}: the features of the ranker are not those of the scorer and four "
                "more, as with_score_features makes them"
            )
        new._set_fitted(scorer, ranker)
        return new

    def _set_fitted(self, scorer: Ranker, ranker: Ranker) -> None:
        self.scorer, self.ranker = sklearn.clone(scorer), sklearn.clone(ranker)
        self.scorer_, self.ranker_ = scorer, ranker
        self.feature_names_ = scorer.feature_names_
        self.n_features_in_ = scorer.n_features_in_
        self.top_grade_ = ranker.top_grade_

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        valid: Valid = None,
        query_weight: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Fit the scorer, to parts and to all queries, and then the ranker.

        Parameters
        ----------
        X, y, qid, group, query_weight
            A `RankingData`, or arrays, as in `LambdaMART.fit`.
        valid
            One or several validation sets of the ranker.
        options
            Further options of the ranker's fit, such as ``progress``.
        """
        self._check_parameters()
        scorer, ranker = self._new(SCORER), self._new(INNER)
        inputs = training_data(self._name, X, y, qid, query_weight, group=group)
        data = inputs.data
        sets = validation_sets(self._name, valid, data.feature_names, data.categories)
        # Documents may have been moved to bring queries together; their weights follow them.
        if options.get(WEIGHTS) is not None:
            options[WEIGHTS] = inputs.arrange(np.asarray(options[WEIGHTS]))
        held_out = out_of_fold_scores(scorer, data, self.folds)
        # A scorer of all queries is for new documents. Training documents get scores of scorers
        # that have not seen them, or their features would hint at their labels.
        scorer.fit(data)
        prefix = f"{type(scorer).__name__}: "
        if sets:
            options["valid"] = {
                name: with_score_features(valid_set.data, scorer.predict(valid_set.data), prefix)
                for name, valid_set in sets.items()
            }
        ranker.fit(with_score_features(data, held_out, prefix), **options)
        self.scorer_, self.ranker_ = scorer, ranker
        self._remember(data)
        return self

    def _new(self, role: str) -> Any:
        """Return the scorer or the ranker, unfitted."""
        template = getattr(self, role)
        if template is None:
            return MART("logistic") if role == SCORER else LambdaMART()
        self._refuse_other(role, template)
        return sklearn.clone(template)

    def _refuse_other(self, role: str, value: Any) -> None:
        if not isinstance(value, Ranker):
            raise UsageError(
                f"{self._name}: {role} is a {type(value).__name__}; expected a ranker, such as "
                + ('MART("logistic")' if role == SCORER else "LambdaMART()")
            )

    def predict(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return one score per document; larger is better.

        Parameters
        ----------
        X
            A `RankingData`, or an array or frame of features.
        qid
            With an array or a frame: query of each document.
        """
        X = self._matched(X)
        matrix, _ = self._features_of(X)
        if isinstance(X, RankingData):
            return self.ranker_.predict(self.with_scores(X))
        numbers = query_numbers(self._name, X, matrix.shape[0], qid)
        added = _features_by_query(self.scorer_.predict(X, qid), numbers)
        stack = sparse.hstack if is_sparse(matrix) else np.hstack
        return self.ranker_.predict(stack([matrix, added]), qid)

    def with_scores(self, data: RankingData) -> RankingData:
        """Return a data set with the features of the scorer's scores, which `ranker_` ranks."""
        data = self._matched(data)
        return with_score_features(data, self.scorer_.predict(data), self._prefix)

    def _score_measure(self) -> Measure:
        return self.ranker_._score_measure()

    @property
    def categories_(self) -> Codes:  # type: ignore[override]
        """The codes of categories, which are those of the ranker."""
        # The scorer, which may have fewer bins for them, looks up the texts itself.
        return self.ranker_.categories_ if self.is_fitted else {}

    @property
    def _prefix(self) -> str:
        return _prefix(self.scorer_, self.ranker_) or ""

    def to_content(self) -> Content:
        """Return the manifest and arrays of a model file."""
        members = {f"{MEMBERS}.0": self.scorer_, INNER: self.ranker_}
        return with_members(super().to_content(), members)

    def _content(self) -> Content:
        manifest = {
            "parameters": {FOLDS: int(self.folds)},
            "based_on_scores": False,
            "feature_names": list(self.feature_names_),
            "top_grade": self.top_grade_,
        }
        return Content(manifest, {})

    @classmethod
    def from_content(
        cls, content: Content, base: Ranker | None, members: Mapping[str, Ranker] | None = None
    ) -> Self:
        """Return the fitted ranker of a model file."""
        manifest = Manifest.read({**content.manifest, "n_rounds": 0, "history": []})
        rankers = dict(members or {})
        ranker = rankers.pop(INNER, None)
        if base is not None or ranker is None or len(rankers) != 1 or manifest.based_on_scores:
            raise ModelFileError("the file has other rankers inside than a scorer and a ranker")
        (scorer,) = rankers.values()
        if scorer.feature_names_ != manifest.feature_names or _prefix(scorer, ranker) is None:
            raise ModelFileError("the rankers in the file do not fit the ranker that contains them")
        try:
            if manifest.parameters.keys() - {FOLDS}:
                raise UsageError(f"its parameters are {sorted(manifest.parameters)}")
            new = cls(**manifest.parameters)
            new._check_parameters()
        except UsageError as problem:
            raise ModelFileError(f"the manifest of the file is not understood: {problem}") from None
        new._set_fitted(scorer, ranker)
        new.top_grade_ = manifest.top_grade
        return new


def out_of_fold_scores(scorer: Ranker, data: RankingData, folds: int, *, seed: int = 0) -> Floats:
    """Return one score per document, from a ranker that was fitted to other queries.

    Parameters
    ----------
    scorer
        Ranker of which a clone is fitted for each fold.
    data
        The documents; samples are in the fold of their query.
    folds
        Number of folds.
    seed
        Seed of the folds.
    """
    # Of originals, not of samples: a query and its samples are in one fold, since they share
    # documents.
    n_queries = int(data.origins.max()) + 1
    if n_queries < folds:
        raise DataError(
            f"WithScoreFeatures: {n_queries} queries are too few for {folds} folds; give more, or "
            "ask for fewer folds"
        )
    scores = np.empty(data.n_docs)
    for fold in split_queries(data.qids, folds, seed):
        held_out = np.zeros(data.n_queries, bool)
        held_out[fold] = True
        fitted = sklearn.clone(scorer).fit(data[~held_out])
        scores[np.repeat(held_out, data.sizes)] = fitted.predict(data[held_out])
    return scores


def _features_by_query(scores: Floats, numbers: Integers) -> Floats32:
    """Return score features of documents whose queries need not be contiguous."""
    # Stable, so that the documents of a query keep their order.
    order = np.argsort(numbers, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(numbers))])
    features = np.empty((len(scores), len(FEATURE_NAMES)), np.float32)
    features[order] = score_features(scores[order], offsets)
    return features


def _prefix(scorer: Ranker, ranker: Ranker) -> str | None:
    """Return the prefix of the score features' names; None if the ranker lacks them."""
    n = len(scorer.feature_names_)
    inherited, added = ranker.feature_names_[:n], ranker.feature_names_[n:]
    prefix = added[0].removesuffix(FEATURE_NAMES[0]) if added else ""
    fits = inherited == scorer.feature_names_ and added == tuple(
        prefix + name for name in FEATURE_NAMES
    )
    return prefix if fits else None
