"""The arguments of fit and predict, checked: arrays and frames as RankingData."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import Whole, check
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.data.splits import first_sample
from rankinite.rankers.aliases import FIT_ADVICE

Valid = Any
VALID = "valid"
NUMBERS = re.compile(r"u?int\d|float|double|half|bool|decimal|sparse")


@dataclass(frozen=True)
class InputData:
    """A data set that the caller passed as one, or as arrays.

    Attributes
    ----------
    data
        The set.
    order
        The position in the caller's arrays of each document of the set: documents of a query that
        were apart in the arrays were brought together. None if nothing was moved.
    """

    data: RankingData
    order: NDArray[np.int64] | None = None

    def arrange(self, values: Floats) -> Floats:
        """Bring values in the order of the caller's arrays into the order of the set."""
        return values if self.order is None else values[self.order]


def training_data(
    owner: str, X: Any, y: ArrayLike | None, qid: ArrayLike | None, query_weight: ArrayLike | None
) -> InputData:
    """Return the training set, from a RankingData, or from arrays or a frame with y and qid."""
    if isinstance(X, RankingData):
        _refuse_besides(owner, y=y, qid=qid)
        return InputData(X if query_weight is None else X.with_query_weight(query_weight))
    if y is None:
        raise UsageError(
            f"{owner}: requires y to be passed, but the target y is None; "
            "give labels, or a RankingData"
        )
    matrix, names = feature_matrix(owner, X)
    one_query = np.zeros(len(matrix), np.int64)
    data = RankingData(
        X=matrix,
        y=_labels(owner, y),
        qid=one_query if qid is None else qid,
        feature_names=names,
        query_weight=query_weight,
        group=True,
    )
    return InputData(data, data.rows)


def _refuse_besides(owner: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise UsageError(
                f"{owner}: {name} was given besides a RankingData, which has its own; leave it out"
            )


def _labels(owner: str, y: ArrayLike) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.dtype.kind == "c":
        raise DataError(f"{owner}: y has complex numbers; labels are real numbers of at least 0")
    if labels.ndim == 2 and labels.shape[1] == 1:
        # Takes the column, and warns as scikit-learn does.
        return np.asarray(column_or_1d(labels, warn=True))
    return labels


def refuse_unknown(owner: str, unknown: Mapping[str, Any]) -> None:
    """Refuse arguments that fit does not have, with a hint at the name that they have here."""
    for name in unknown:
        hint = FIT_ADVICE.get(name, f"see help({owner}.fit)")
        raise UsageError(f"{owner}.fit: there is no parameter {name!r}; {hint}")


def feature_matrix(owner: str, X: Any) -> tuple[NDArray[Any], Sequence[str] | None]:
    """Return the features of an array or a frame, and the names of a frame's columns."""
    if hasattr(X, "toarray"):
        raise UsageError(
            f"{owner}: X is a sparse matrix; sparse input is not supported, give X.toarray()"
        )
    names = _column_names(X)
    if names is not None:
        _refuse_categories(owner, X, [str(name) for name in names])
        # A frame numbers the columns that nobody named.
        numbered = all(isinstance(name, (int, np.integer)) for name in names)
        names = None if numbered else [str(name) for name in names]
    matrix = _as_array(owner, X)
    if matrix.dtype.kind == "c":
        raise DataError(f"{owner}: Complex data not supported; give real numbers")
    if matrix.ndim != 2:
        raise DataError(
            f"{owner}: Expected 2D array, got {matrix.ndim}D array instead. "
            "Reshape your data: one row per document, one column per feature"
        )
    if matrix.shape[1] == 0:
        raise DataError(
            f"{owner}: X has 0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required."
        )
    return matrix, names


def _as_array(owner: str, X: Any) -> NDArray[Any]:
    try:
        matrix = np.asarray(X)
        if matrix.dtype.kind == "O" and hasattr(X, "dtypes") and hasattr(X, "to_numpy"):
            # Columns of pandas that may hold NA.
            matrix = X.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as problem:
        raise DataError(f"{owner}: X cannot be made a matrix of numbers: {problem}") from None
    return matrix


def _column_names(X: Any) -> list[Any] | None:
    for attribute in ("column_names", "columns"):  # Arrow; pandas and polars
        if hasattr(X, attribute):
            return list(getattr(X, attribute))
    return None


def _refuse_categories(owner: str, frame: Any, names: Sequence[str]) -> None:
    kinds = frame.schema.types if hasattr(frame, "column_names") else frame.dtypes
    texts = [
        name
        for name, kind in zip(names, list(kinds), strict=True)
        if not NUMBERS.match(str(kind).lower())
    ]
    if texts:
        raise DataError(
            f"{owner}: these columns are not numbers: {some_of(texts)}; rankers take numbers: "
            "give counts, frequencies or means of the label by category (OrdinalEncoder only "
            "where the order means something), or leave the columns out"
        )


def validation_sets(owner: str, valid: Valid, features: Sequence[str]) -> dict[str, InputData]:
    """Return validation sets by name, from one set, a tuple (X, y, qid), or several by name."""
    if valid is None:
        return {}
    if not isinstance(valid, Mapping):
        valid = {VALID: valid}
    return {
        str(name): _validation_set(owner, str(name), value, features)
        for name, value in valid.items()
    }


def _validation_set(owner: str, name: str, value: Any, features: Sequence[str]) -> InputData:
    if not isinstance(value, (RankingData, tuple, list)):
        raise UsageError(
            f"{owner}: valid is a {type(value).__name__}; expected a RankingData, (X, y, qid), "
            "or several of these by name"
        )
    try:
        if isinstance(value, RankingData):
            valid = InputData(value)
        elif len(value) == 3:
            X, y, qid = value
            valid = training_data(owner, X, y, qid, None)
        else:
            raise UsageError(
                f"it has {len(value)} parts; expected a RankingData, (X, y, qid), or several of "
                "these by name"
            )
        if valid.data.n_queries == 0:
            raise DataError("it has no queries; give some, or leave valid out")
        sample = first_sample(valid.data.qids)
        if sample is not None:
            raise DataError(
                f"it holds samples, such as {sample!r} (an id that ends in ~ and a number), and "
                "validation data is never augmented; leave them out (valid.originals, or "
                "rankinite data convert --originals)"
            )
        check_features(owner, valid.data.feature_names, features)
    except (DataError, UsageError) as problem:
        raise type(problem)(f"{owner}: the validation set {name!r}: {problem}") from None
    return valid


def check_features(owner: str, names: Sequence[str], expected: Sequence[str]) -> None:
    """Refuse features that are missing, added or renamed, by name."""
    if tuple(names) == tuple(expected):
        return
    missing = [name for name in expected if name not in set(names)]
    added = [name for name in names if name not in set(expected)]
    if not missing and not added:
        raise DataError(
            f"{owner}: the features stand in another order than at fit; bring them into it with "
            "select_features, or as columns of the frame"
        )
    parts = [f"lacks {some_of(missing)}"] if missing else []
    parts += [f"has {some_of(added)} besides"] if added else []
    raise DataError(
        f"{owner}: X has {len(names)} features, but {owner} is expecting {len(expected)} features "
        f"as input; it {' and '.join(parts)}"
    )


def checked_doc_weights(
    owner: str, sample_weight: ArrayLike | None, documents: InputData
) -> Floats | None:
    """Check weights of documents, and bring them into the order of the set."""
    if sample_weight is None:
        return None
    n_docs = documents.data.n_docs
    try:
        weights = np.asarray(sample_weight, np.float64)
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


def labelled_weights(X: Any, sample_weight: ArrayLike | None) -> ArrayLike | None:
    """Return the weights of documents, with 0 for those without a label."""
    if not isinstance(X, RankingData) or not np.isnan(X.y).any():
        return sample_weight
    labelled = ~np.isnan(X.y)
    if sample_weight is None:
        return labelled.astype(np.float64)
    weights = np.asarray(sample_weight)
    # Weights of a wrong kind or number stay as they are: `checked_doc_weights` refuses them.
    fits = weights.shape == labelled.shape and weights.dtype.kind in "biuf"
    return np.where(labelled, weights, 0.0) if fits else sample_weight


def queries_with_weight(data: RankingData) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the queries whose weight is not 0, and their documents."""
    if data.query_weight is None:
        return np.arange(data.n_queries), np.arange(data.n_docs)
    some = data.query_weight > 0.0
    return np.flatnonzero(some), np.flatnonzero(np.repeat(some, data.sizes))


def seed_of(owner: str, random_state: Any) -> int:
    """Return the seed: ``random_state`` if it is a number, or one drawn from it."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    check(owner, "random_state", random_state, Whole(0))
    return int(random_state)
