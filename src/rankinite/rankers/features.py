"""The features that a ranker is given: arrays and frames as matrices, columns matched by name."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError
from rankinite.core.format import some_of
from rankinite.data.checks import ROWS_A_BLOCK
from rankinite.data.names import NumberedNames
from rankinite.data.ranking_data import RankingData
from rankinite.data.sparse import is_sparse, require_finite_entries, to_csr
from rankinite.data.tables import as_matrix, column_names, feature_names_of, is_lazy

log = logging.getLogger("rankinite")

# The types of columns, by the names that pandas, polars and Arrow have for them, that are numbers.
NUMBERS = re.compile(r"u?int\d|float|double|half|bool|decimal|sparse")


def feature_matrix(owner: str, X: Any) -> tuple[NDArray[Any], Sequence[str] | None]:
    """Return the features of an array or a frame, and the names of a frame's columns."""
    columns = column_names(X)
    if columns is not None:
        _refuse_categories(owner, X, [str(name) for name in columns])
    names = feature_names_of(X)
    matrix = X if is_sparse(X) else _as_array(owner, X)
    # These sentences begin with scikit-learn's own, which its `check_estimator` looks for.
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
        return as_matrix(owner, X)
    except DataError:
        raise  # it is a ValueError, too
    except (TypeError, ValueError) as problem:
        raise DataError(f"{owner}: X cannot be made a matrix of numbers: {problem}") from None


def _refuse_categories(owner: str, frame: Any, names: Sequence[str]) -> None:
    if is_lazy(frame):
        kinds = frame.collect_schema().dtypes()
    else:
        kinds = frame.dtypes if hasattr(frame, "dtypes") else frame.schema.types
    texts = [
        name
        for name, kind in zip(names, list(kinds), strict=True)
        if not NUMBERS.match(str(kind).lower())
    ]
    if texts:
        raise DataError(
            f"{owner}: these columns are not numbers: {some_of(texts)}; if they are categories, "
            "name them as categorical_features or give them a category type, which rankers of "
            "trees take; otherwise leave the columns out"
        )


def match_features(owner: str, X: Any, expected: Sequence[str]) -> Any:
    """Return a data set or a frame with the expected features alone, in their order, by name.

    Arrays, whose columns are only numbered, stay as they are; so do frames if fit saw an array.
    Features that are missing are refused; others than the expected ones are left out, with a note.

    Parameters
    ----------
    owner
        The ranker, for messages.
    X
        A data set, frame or array.
    expected
        The features of fit.
    """
    is_set = isinstance(X, RankingData)
    names = X.feature_names if is_set else feature_names_of(X)
    if names is None or tuple(names) == tuple(expected):
        return X
    known, wanted = set(names), set(expected)
    numbered = are_numbers(expected)
    if numbered and not is_set and not known & wanted:
        return X
    added = [name for name in names if name not in wanted]
    # A number says where a feature stands, and nothing of what it is: another number of them is
    # another data set.
    if wanted - known or (added and numbered):
        check_features(owner, names, expected)
    if added:
        log.info("%s: features that it was not fitted to are ignored: %s", owner, some_of(added))
    return X.select_features(list(expected)) if is_set else _select(X, names, expected)


def are_numbers(names: Sequence[str]) -> bool:
    """Tell whether features are only numbered, as the columns of an array are."""
    return NumberedNames(len(names)) == tuple(names)


def _select(frame: Any, names: Sequence[str], expected: Sequence[str]) -> Any:
    if hasattr(frame, "iloc"):  # pandas, whose columns need not be called by texts
        place = {name: j for j, name in enumerate(names)}
        return frame.iloc[:, [place[name] for name in expected]]
    if hasattr(frame, "to_table"):  # a dataset, of which only these columns are read
        return frame.to_table(columns=list(expected))
    return frame.select(list(expected))


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


def as_features(owner: str, matrix: NDArray[Any]) -> NDArray[np.float32]:
    """Return a matrix of 32-bit floats, dense or sparse; refuse infinite features."""
    try:
        if is_sparse(matrix):
            sparse: NDArray[np.float32] = to_csr(matrix)
            require_finite_entries(sparse, range(sparse.shape[1]))
            return sparse
        # What is too large for 32 bits becomes infinite, and is refused below in our own words.
        with np.errstate(over="ignore"):
            features = np.asarray(matrix, dtype=np.float32, order="C")
    except (TypeError, ValueError) as problem:
        raise DataError(f"{owner}: X cannot be made a matrix of numbers: {problem}") from None
    # Block by block, so that the mask of a large matrix takes little memory.
    for start in range(0, len(features), ROWS_A_BLOCK):
        infinite = np.isinf(features[start : start + ROWS_A_BLOCK])
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise DataError(
                f"{owner}: X contains infinity (or a number too large for 32 bits) at document "
                f"{start + row}, column {column}; give finite numbers, or NaN for missing ones"
            )
    return features
