"""What people give to fit and predict, as RankingData."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.wording import some_of
from rankinite.data.ranking_data import RankingData

Valid = Any
VALID = "valid"


def training_data(
    owner: str, X: Any, y: ArrayLike | None, qid: ArrayLike | None, query_weight: ArrayLike | None
) -> RankingData:
    """Return the data set that was given as one, or as arrays or a frame with y and qid."""
    if isinstance(X, RankingData):
        _refuse_besides(owner, y=y, qid=qid)
        if query_weight is None:
            return X
        return X.with_query_weight(query_weight)
    if y is None:
        raise UsageError(
            f"{owner}: requires y to be passed, but the target y is None; "
            "give labels, or a RankingData"
        )
    matrix, names = feature_matrix(owner, X)
    labels = np.asarray(y)
    one_query = np.zeros(len(matrix), np.int64)
    return RankingData(
        X=matrix,
        y=labels,
        qid=one_query if qid is None else qid,
        feature_names=names,
        query_weight=query_weight,
        group=True,
    )


def _refuse_besides(owner: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(
                f"{owner}: {name} was given besides a RankingData, which has its own; leave it out"
            )


def feature_matrix(owner: str, X: Any) -> tuple[NDArray[Any], Sequence[str] | None]:
    """Return the features of an array or a frame, and the names of a frame's columns."""
    if hasattr(X, "toarray"):
        raise UsageError(
            f"{owner}: X is a sparse matrix; sparse input is not supported, give X.toarray()"
        )
    names = None
    if hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
        _refuse_categories(owner, X, names)
    matrix = np.asarray(X)
    if matrix.dtype.kind == "c":
        raise DataError(f"{owner}: Complex data not supported; give real numbers")
    return matrix, names


def _refuse_categories(owner: str, frame: Any, names: Sequence[str]) -> None:
    kinds = getattr(frame, "dtypes", None)
    if kinds is None:
        return
    listed = list(kinds.values()) if isinstance(kinds, Mapping) else list(kinds)
    texts = [
        name for name, kind in zip(names, listed, strict=True) if not _is_number(str(kind).lower())
    ]
    if texts:
        raise DataError(
            f"{owner}: these columns are not numbers: {some_of(texts)}; trees split on numbers: "
            "give counts, frequencies or means of the label by category (OrdinalEncoder only "
            "where the order means something), or leave the columns out"
        )


def _is_number(kind: str) -> bool:
    return kind.startswith(("int", "uint", "float", "double", "bool", "decimal", "half"))


def validation_sets(owner: str, valid: Valid, features: Sequence[str]) -> dict[str, RankingData]:
    """Return validation sets by name, from one set, a tuple (X, y, qid), or several by name."""
    if valid is None:
        return {}
    if not isinstance(valid, Mapping):
        valid = {VALID: valid}
    sets = {}
    for name, given in valid.items():
        if isinstance(given, (tuple, list)):
            if len(given) != 3:
                raise UsageError(f"{owner}: valid has {len(given)} parts; expected (X, y, qid)")
            X, y, qid = given
            given = training_data(owner, X, y, qid, None)
        if not isinstance(given, RankingData):
            raise UsageError(
                f"{owner}: valid is a {type(given).__name__}; expected a RankingData, "
                "(X, y, qid), or several of these by name"
            )
        if given.n_queries == 0:
            raise DataError(f"{owner}: the validation set {name!r} has no queries; give some")
        check_features(owner, given.feature_names, features)
        sets[str(name)] = given
    return sets


def check_features(owner: str, given: Sequence[str], expected: Sequence[str]) -> None:
    """Refuse features that are missing, added or renamed, by name."""
    if tuple(given) == tuple(expected):
        return
    missing = [name for name in expected if name not in set(given)]
    added = [name for name in given if name not in set(expected)]
    if not missing and not added:
        raise DataError(
            f"{owner}: the features stand in another order than at fit; bring them into it with "
            "select_features"
        )
    parts = [f"lacks {some_of(missing)}"] if missing else []
    parts += [f"has {some_of(added)} besides"] if added else []
    raise DataError(
        f"{owner}: X has {len(given)} features, but {owner} is expecting {len(expected)} features "
        f"as input; it {' and '.join(parts)}"
    )
