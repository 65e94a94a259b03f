"""The base class of all rankers: a scikit-learn estimator with checks and a model file."""

from __future__ import annotations

import difflib
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
from rankinite.rankers.inputs import check_features, feature_matrix


class UnfittedError(UsageError, NotFittedError):  # type: ignore[misc]
    """A ranker was asked for something before it was fitted; scikit-learn's error, and ours."""


class Ranker(BaseEstimator, ABC):  # type: ignore[misc]
    """A ranker: fitted to queries with labels, it scores documents; larger is better.

    Rankers are scikit-learn estimators. What of ``check_estimator`` does not apply to a class
    stands in its ``expected_failed_checks``, with the reason; give it to ``check_estimator`` as
    the argument of the same name.

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
        known = cls._get_param_names()
        for name in parameters:
            if name not in known:
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
        """Return what a model file keeps of this ranker, besides its class."""

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
        base = getattr(self, "base", None)
        if isinstance(base, Ranker):
            inner = base.to_content()
            manifest["base"] = inner.manifest
            arrays |= {f"base.{name}": array for name, array in inner.arrays.items()}
        return Content(manifest, arrays)


def _unknown(owner: str, name: str, known: list[str]) -> str:
    advice = explain_alias(owner, name, known)
    if advice:
        return f"{owner}: there is no parameter {name!r}; {advice}"
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {some_of(known, 40)}"
    return f"{owner}: there is no parameter {name!r}; {hint}"


def _as_features(owner: str, matrix: NDArray[Any]) -> NDArray[np.float32]:
    try:
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
