"""The base class of all rankers: a scikit-learn estimator with checks and a model file.

The features that rankers take, arrays and frames, are checked here, too: by `fit` as by `predict`.
"""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from rankinite.core.container import Content, write_container
from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import Constraint, check, parameters_of, with_parameters
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.rankers.aliases import explain_alias

# The types of columns, by the names that pandas, polars and Arrow have for them, that are numbers.
NUMBERS = re.compile(r"u?int\d|float|double|half|bool|decimal|sparse")

# Why rankers of lambdas fail scikit-learn's check of the equivalence of sample weights.
COPIES_HAVE_RANKS = (
    "a document of weight 2 has one rank, and two copies of it have two; one of weight 0 keeps its "
    "rank, and one that is left out has none"
)


class UnfittedError(UsageError, NotFittedError):  # type: ignore[misc]
    """A ranker was asked for something before it was fitted; scikit-learn's error, and ours."""


class Ranker(BaseEstimator, ABC):  # type: ignore[misc]
    """A ranker: fitted to queries with labels, it scores documents; larger is better.

    Rankers are scikit-learn estimators. Checks of ``check_estimator`` that do not apply to a class
    are in its ``expected_failed_checks``, with the reason; pass it to ``check_estimator`` as the
    argument of the same name.

    Attributes
    ----------
    feature_names_ : tuple of str
        Names of the features that it was fitted to.
    n_features_in_ : int
        Number of features.
    top_grade_ : float
        The largest grade of the training data.
    """

    # Capabilities: whether a Trainer fits it in rounds, with validation sets and early stopping;
    # and whether fit takes features that are binned already.
    learns_in_rounds: ClassVar[bool] = False
    takes_binned: ClassVar[bool] = False

    constraints: ClassVar[Mapping[str, Constraint]]
    expected_failed_checks: ClassVar[Mapping[str, str]] = {
        "check_dtype_object": (
            "features that cannot be made numbers are a DataError, which is a ValueError; "
            "scikit-learn wants a TypeError"
        ),
    }

    # scikit-learn passes these on to fit without being told to.
    __metadata_request__fit: ClassVar = {"qid": True}

    def __init_subclass__(cls, **options: Any) -> None:
        """Complete the class's docstring by the parameters that it declares."""
        super().__init_subclass__(**options)
        # Without a docstring of its own, or with python -OO, there is nothing to complete.
        if cls.__doc__ is not None:
            cls.__doc__ = with_parameters(cls.__doc__, parameters_of(cls))

    def __new__(cls, *_values: Any, **parameters: Any) -> Self:
        """Refuse unknown parameters here, where the sentence can name the right one."""
        # Python's own TypeError, which __init__ would raise, knows no other tools' names.
        known = cls._get_param_names()
        for name in parameters:
            if name not in known and not (name == "preset" and hasattr(cls, "presets")):
                raise UsageError(_unknown(cls.__name__, name, known))
        new: Self = super().__new__(cls)
        return new

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy; a base is part of the parameters and stays fitted."""
        parameters = self.get_params(deep=False)
        copied: Self = type(self)(
            **{
                name: value if name == "base" else clone(value, safe=False)
                for name, value in parameters.items()
            }
        )
        return copied

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        tags.input_tags.allow_nan = True
        return tags

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name; scikit-learn's ``base__n_trees`` is one of the base's.

        Parameters
        ----------
        parameters
            The new values.
        """
        known = self._get_param_names()
        for name in parameters:
            if name.partition("__")[0] not in known:
                raise UsageError(_unknown(self._name, name, known))
        super().set_params(**parameters)
        return self

    @property
    def is_fitted(self) -> bool:
        """Whether `fit` was called, or the ranker was read from a file."""
        return hasattr(self, "feature_names_")

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise UnfittedError(
                f"{self._name}: is not fitted yet; call fit, or read a fitted one with load_model"
            )

    @property
    def _name(self) -> str:
        return type(self).__name__

    def check_parameters(self) -> None:
        """Refuse values that parameters cannot have."""
        self._check_parameters()

    def _check_parameters(self) -> None:
        for name, constraint in self.constraints.items():
            check(self._name, name, getattr(self, name), constraint)

    def _remember(self, data: RankingData) -> None:
        self.feature_names_ = data.feature_names
        self.n_features_in_ = data.n_features
        self.top_grade_ = data.top_grade

    def _features_of(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
        """Check the features of documents to score; return a matrix, and rows if it is indexed."""
        self._check_fitted()
        if isinstance(X, RankingData):
            check_features(self._name, X.feature_names, self.feature_names_)
            return X.matrix, X.rows
        matrix, names = feature_matrix(self._name, X)
        # Names are compared before numbers of columns: they say which feature is missing.
        if names is not None and not self._was_nameless(names):
            check_features(self._name, names, self.feature_names_)
        if matrix.shape[1] != self.n_features_in_:
            raise DataError(
                f"{self._name}: X has {matrix.shape[1]} features, but {self._name} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return _as_features(self._name, matrix), None

    def _was_nameless(self, names: Sequence[str]) -> bool:
        """Tell whether fit saw an array, whose columns are only numbered, and these are names."""
        numbers = tuple(str(k) for k in range(1, self.n_features_in_ + 1))
        return self.feature_names_ == numbers and not set(names) & set(numbers)

    @abstractmethod
    def predict(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return one score per document."""

    @abstractmethod
    def _content(self) -> Content:
        """Return the manifest and arrays of this ranker alone, without its class and base."""

    @classmethod
    @abstractmethod
    def from_content(cls, content: Content, base: Ranker | None) -> Self:
        """Return the fitted ranker of a model file.

        Parameters
        ----------
        content
            The manifest and arrays of the file.
        base
            The base in the file, if there is one.
        """

    def save(self, path: str | Path) -> None:
        """Write the fitted ranker to a model file, with its base if it has one.

        Parameters
        ----------
        path
            The file; by custom its name ends in ``.rk``.
        """
        self._check_fitted()
        write_container(path, self.to_content())

    def to_content(self) -> Content:
        """Return the manifest and arrays of a model file."""
        content = self._content()
        manifest = {"class": self._name, **content.manifest}
        arrays = dict(content.arrays)
        # A base that is scores, or a model of another library, has no model file of its own.
        base = getattr(self, "base", None)
        if isinstance(base, Ranker):
            inner = base.to_content()
            manifest["base"] = inner.manifest
            arrays |= {f"base.{name}": array for name, array in inner.arrays.items()}
        return Content(manifest, arrays)


def _unknown(owner: str, name: str, known: list[str]) -> str:
    # Another tool's name is explained, even if its letters are near to one of our parameters.
    advice = explain_alias(owner, name, known)
    if advice:
        return f"{owner}: there is no parameter {name!r}; {advice}"
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {some_of(known, 20)}"
    return f"{owner}: there is no parameter {name!r}; {hint}"


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


def _as_features(owner: str, matrix: NDArray[Any]) -> NDArray[np.float32]:
    try:
        # What is too large for 32 bits becomes infinite, and is refused below in our own words.
        with np.errstate(over="ignore"):
            features = np.asarray(matrix, dtype=np.float32, order="C")
    except (TypeError, ValueError) as problem:
        raise DataError(f"{owner}: X cannot be made a matrix of numbers: {problem}") from None
    if np.isinf(features).any():
        row, column = np.argwhere(np.isinf(features))[0]
        raise DataError(
            f"{owner}: X contains infinity (or a number too large for 32 bits) at document {row}, "
            f"column {column}; give finite numbers, or NaN for missing ones"
        )
    return features
