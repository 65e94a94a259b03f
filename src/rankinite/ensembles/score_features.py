"""Features of a query that are made of a ranker's scores (Ensemble, Sec. 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from rankinite.core.container import Content
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import Constraint, Whole
from rankinite.core.types import Floats, Integers
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData
from rankinite.data.splits import split_queries
from rankinite.ensembles.ensemble import INNER, MEMBERS, with_parts
from rankinite.rankers.inputs import Valid, training_data, validation_sets
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.rankers.mart import MART
from rankinite.rankers.model_file import Manifest
from rankinite.rankers.ranker import Ranker

TOP = 3
FEATURE_NAMES = ("max of scores", "mean of scores", "max of top 3 scores", "mean of top 3 scores")
OWNER = "score_features"
# How many rows to copy at a time, so that an indexed set is not copied out twice.
ROWS_AT_ONCE = 1 << 16


def score_features(scores: ArrayLike, offsets: ArrayLike) -> NDArray[np.float32]:
    """Return four features of every document, which are those of its query.

    They are the maximum and the mean of scores over all documents of the query, and over the three
    that are ranked first (Ensemble, Sec. 4.2). The two maxima are one number; both are there as
    in the paper. A document's own score is none of them.

    Parameters
    ----------
    scores
        One score a document.
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
    # The best first, so that a sum does not depend on the order in which documents were given.
    ordered = numbers[np.lexsort((-numbers, np.repeat(np.arange(len(sizes)), sizes)))]
    sizes = sizes[sizes > 0]
    starts = np.cumsum(sizes) - sizes
    largest = ordered[starts]
    means = np.add.reduceat(ordered, starts) / sizes if len(sizes) else largest
    top_sums = largest.copy()
    for k in range(1, TOP):
        has_more = sizes > k
        top_sums[has_more] += ordered[starts[has_more] + k]
    found = np.stack([largest, means, largest, top_sums / np.minimum(sizes, TOP)], axis=1)
    return np.repeat(found.astype(np.float32), sizes, axis=0)


def _checked(scores: ArrayLike, offsets: ArrayLike) -> tuple[Floats, Integers]:
    """Return scores that fit into features of 32 bits, and how many each query has."""
    numbers, bounds = np.asarray(scores, np.float64), np.asarray(offsets)
    if numbers.ndim != 1:
        raise DataError(
            f"{OWNER}: scores have the shape {numbers.shape}; expected one score a document"
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
            "never fall; give those of a RankingData"
        )
    limit = float(np.finfo(np.float32).max)
    return numbers.clip(-limit, limit), sizes


def with_score_features(data: RankingData, scores: ArrayLike, prefix: str = "") -> RankingData:
    """Return the data set with four more features, see `score_features`.

    Parameters
    ----------
    data
        The set.
    scores
        One score a document.
    prefix
        What the names of the new features begin with, such as that of the ranker.
    """
    checks.data_set("with_score_features", data)
    names = tuple(prefix + name for name in FEATURE_NAMES)
    taken = [name for name in names if name in set(data.feature_names)]
    if taken:
        raise UsageError(
            f"with_score_features: the data set has {some_of(taken)} already; give another prefix"
        )
    added = score_features(scores, data.offsets)
    base = np.empty((data.n_docs, data.n_features + len(names)), np.float32)
    base[:, data.n_features :] = added
    for first in range(0, data.n_docs, ROWS_AT_ONCE):
        some = slice(first, first + ROWS_AT_ONCE)
        rows = some if data.rows is None else data.rows[some]
        base[some, : data.n_features] = data.base[rows]
    return data._with(base=base, rows=None, feature_names=(*data.feature_names, *names))


SCORER = "scorer"
FOLDS = "folds"
WEIGHTS = "sample_weight"


class WithScoreFeatures(Ranker):
    """A ranker whose features include four that are made of another ranker's scores.

    These are of the query: see `score_features` (Ensemble, Sec. 4.2). For training documents the
    scores come from rankers that were fitted to other queries, so that the features tell no more
    of their labels than they will of new documents' labels.

    Parameters
    ----------
    scorer
        The ranker whose scores are used, unfitted; ``MART("logistic")`` if None.
    ranker
        The ranker that sees them, unfitted; a `LambdaMART` if None.
    folds
        The queries are cut into so many parts, and the scores of each part are those of the scorer
        fitted to the others.

    Attributes
    ----------
    scorer_ : ranker
        The scorer, fitted to all training data; predict uses it.
    ranker_ : ranker
        The fitted ranker; its features are the scorer's, and the four.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.polynomials(20, n_features=3)
    >>> model = rk.WithScoreFeatures(rk.MART(n_trees=5), rk.LambdaMART(n_trees=5)).fit(data)
    >>> model.ranker_.feature_names_[3:5]
    ('MART: max of scores', 'MART: mean of scores')
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {FOLDS: Whole(2)}
    # What it consists of; it has no rounds of its own.
    rounds: ClassVar[str] = "rankers"

    scorer_: Ranker
    ranker_: Ranker

    def __init__(self, scorer: Any = None, ranker: Any = None, *, folds: int = 5) -> None:
        self.scorer = scorer
        self.ranker = ranker
        self.folds = folds

    @classmethod
    def made_of(cls, scorer: Ranker, ranker: Ranker) -> Self:
        """Put a fitted scorer and a fitted ranker together without any data.

        Parameters
        ----------
        scorer
            The ranker whose scores are used.
        ranker
            The ranker that sees them: fitted to the scorer's features and the four that
            `with_score_features` adds.
        """
        new = cls()
        for role, part in ((SCORER, scorer), (INNER, ranker)):
            new._refuse_other(role, part)
            if not part.is_fitted:
                raise UsageError(f"{new._name}: the {role} is not fitted yet; fit it first")
        if _prefix(scorer, ranker) is None:
            raise DataError(
                f"{new._name}: the features of the ranker are not those of the scorer and four "
                "more, as with_score_features makes them"
            )
        new._put_together(scorer, ranker)
        return new

    def _put_together(self, scorer: Ranker, ranker: Ranker) -> None:
        self.scorer, self.ranker = clone(scorer), clone(ranker)
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
        valid: Valid = None,
        query_weight: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Fit the scorer, to parts and to all queries, and then the ranker.

        Parameters
        ----------
        X, y, qid, query_weight
            A `RankingData`, or arrays, as in `LambdaMART.fit`.
        valid
            One or several validation sets, for the ranker alone.
        options
            What else the ranker's fit takes, such as ``progress``.
        """
        self._check_parameters()
        scorer, ranker = self._new(SCORER), self._new(INNER)
        given = training_data(self._name, X, y, qid, query_weight)
        data = given.data
        sets = validation_sets(self._name, valid, data.feature_names)
        if options.get(WEIGHTS) is not None:
            options[WEIGHTS] = given.arrange(np.asarray(options[WEIGHTS]))
        held_out = out_of_fold_scores(scorer, data, self.folds)
        scorer.fit(data)
        prefix = f"{type(scorer).__name__}: "
        if sets:
            options["valid"] = {
                name: with_score_features(one.data, scorer.predict(one.data), prefix)
                for name, one in sets.items()
            }
        ranker.fit(with_score_features(data, held_out, prefix), **options)
        self.scorer_, self.ranker_ = scorer, ranker
        self._remember(data)
        return self

    def _new(self, role: str) -> Any:
        """Return the scorer or the ranker, not yet fitted."""
        given = getattr(self, role)
        if given is None:
            return MART("logistic") if role == SCORER else LambdaMART()
        self._refuse_other(role, given)
        return clone(given)

    def _refuse_other(self, role: str, given: Any) -> None:
        if not isinstance(given, Ranker):
            raise UsageError(
                f"{self._name}: {role} is a {type(given).__name__}; expected a ranker, such as "
                + ('MART("logistic")' if role == SCORER else "LambdaMART()")
            )

    def predict(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return one score a document; larger is better.

        Parameters
        ----------
        X
            A `RankingData`, or an array or frame of features.
        qid
            With an array or a frame: the query of every document.
        """
        matrix, _ = self._features_of(X)
        if isinstance(X, RankingData):
            seen = with_score_features(X, self.scorer_.predict(X), self._prefix)
            return self.ranker_.predict(seen)
        if qid is None:
            raise UsageError(
                f"{self._name}: a score depends on the whole query; give predict a qid, or a "
                "RankingData"
            )
        numbers = np.unique(np.asarray(qid), return_inverse=True)[1]
        if numbers.shape != (len(matrix),):
            raise UsageError(
                f"{self._name}: qid has {numbers.size} values for {len(matrix)} documents"
            )
        added = _features_by_query(self.scorer_.predict(X, qid), numbers)
        return self.ranker_.predict(np.concatenate([matrix, added], axis=1), qid)

    @property
    def _prefix(self) -> str:
        return _prefix(self.scorer_, self.ranker_) or ""

    def to_content(self) -> Content:
        """Return the manifest and arrays of a model file."""
        parts = {f"{MEMBERS}.0": self.scorer_, INNER: self.ranker_}
        return with_parts(super().to_content(), parts)

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
        cls, content: Content, base: Ranker | None, parts: Mapping[str, Ranker] | None = None
    ) -> Self:
        """Return the fitted ranker of a model file."""
        manifest = Manifest.read({**content.manifest, "n_rounds": 0, "history": []})
        found = dict(parts or {})
        ranker = found.pop(INNER, None)
        if base is not None or ranker is None or len(found) != 1 or manifest.based_on_scores:
            raise ModelFileError("the file has other rankers inside than a scorer and a ranker")
        (scorer,) = found.values()
        if scorer.feature_names_ != manifest.feature_names or _prefix(scorer, ranker) is None:
            raise ModelFileError("the rankers in the file do not fit the ranker that contains them")
        try:
            if manifest.parameters.keys() - {FOLDS}:
                raise UsageError(f"its parameters are {sorted(manifest.parameters)}")
            new = cls(**manifest.parameters)
            new._check_parameters()
        except UsageError as problem:
            raise ModelFileError(f"the manifest of the file is not understood: {problem}") from None
        new._put_together(scorer, ranker)
        new.top_grade_ = manifest.top_grade
        return new


def out_of_fold_scores(scorer: Ranker, data: RankingData, folds: int, *, seed: int = 0) -> Floats:
    """Return a score a document, of a ranker that was fitted to other queries.

    Parameters
    ----------
    scorer
        The ranker, of which a clone is fitted for every fold.
    data
        The documents; samples are in the fold of their query.
    folds
        How many folds there are.
    seed
        Another seed cuts other folds.
    """
    n_queries = int(data.origins.max()) + 1
    if n_queries < folds:
        raise DataError(
            f"WithScoreFeatures: {n_queries} queries are too few for {folds} folds; give more, or "
            "ask for fewer folds"
        )
    scores = np.empty(data.n_docs)
    for part in split_queries(data.qids, folds, seed):
        held_out = np.zeros(data.n_queries, bool)
        held_out[part] = True
        fitted = clone(scorer).fit(data[~held_out])
        scores[np.repeat(held_out, data.sizes)] = fitted.predict(data[held_out])
    return scores


def _features_by_query(scores: Floats, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return score features of documents whose queries may stand apart."""
    order = np.argsort(numbers, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(numbers))])
    found = np.empty((len(scores), len(FEATURE_NAMES)), np.float32)
    found[order] = score_features(scores[order], offsets)
    return found


def _prefix(scorer: Ranker, ranker: Ranker) -> str | None:
    """Return what the names of the score features begin with; None if they are others."""
    n = len(scorer.feature_names_)
    own, added = ranker.feature_names_[:n], ranker.feature_names_[n:]
    prefix = added[0].removesuffix(FEATURE_NAMES[0]) if added else ""
    fits = own == scorer.feature_names_ and added == tuple(prefix + name for name in FEATURE_NAMES)
    return prefix if fits else None
