"""The base class of all rankers: a scikit-learn estimator with checks and a model file.

The features that rankers take, arrays and frames, are checked here, too: by `fit` as by `predict`.
"""

from __future__ import annotations

import difflib
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
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
from rankinite.data.categories import Codes, encode_frame, match_codes, refuse_numbers
from rankinite.data.checks import ROWS_A_BLOCK
from rankinite.data.names import NumberedNames
from rankinite.data.ranking_data import RankingData
from rankinite.data.sparse import is_sparse, require_finite_entries, to_csr
from rankinite.data.tables import as_matrix, column_names, feature_names_of, is_lazy
from rankinite.rankers.aliases import explain_alias

log = logging.getLogger("rankinite")

# The types of columns, by the names that pandas, polars and Arrow have for them, that are numbers.
NUMBERS = re.compile(r"u?int\d|float|double|half|bool|decimal|sparse")


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
    categories_ : dict
        By categorical feature, the code of each category that it knows; no categories if the
        feature was codes already.
    """

    # Capabilities: whether a Trainer fits it in rounds, with validation sets and early stopping;
    # and whether fit takes features that are binned already.
    learns_in_rounds: ClassVar[bool] = False
    takes_binned: ClassVar[bool] = False

    categories_: Codes = MappingProxyType({})

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
        tags.input_tags.sparse = True
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
        self.feature_names_ = tuple(data.feature_names)
        self.n_features_in_ = data.n_features
        self.top_grade_ = data.top_grade

    def _features_of(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
        """Check the features of documents to score; return a matrix, and rows if it is indexed."""
        X = self._matched(X)
        if isinstance(X, RankingData):
            codes = match_codes(
                self._name, X.matrix, X.feature_names, X.categories, self.categories_
            )
            return codes, X.rows
        X, tables = encode_frame(self._name, X, self._columns_of_categories())
        matrix, names = feature_matrix(self._name, X)
        if matrix.shape[1] != self.n_features_in_:
            raise DataError(
                f"{self._name}: X has {matrix.shape[1]} features, but {self._name} is expecting "
                f"{self.n_features_in_} features as input"
            )
        features = _as_features(self._name, matrix)
        # By position from here on: fit may have seen an array, whose columns have no names.
        expected = self.feature_names_
        tables = {expected[names.index(name)]: t for name, t in tables.items() if names is not None}
        if names is not None and self.categories_:
            others = {name: codes for name, codes in self.categories_.items() if name not in tables}
            refuse_numbers(self._name, features, expected, others)
        return match_codes(self._name, features, expected, tables, self.categories_), None

    def _columns_of_categories(self) -> list[int]:
        return [self.feature_names_.index(name) for name in self.categories_]

    def _matched(self, X: Any) -> Any:
        """Return a data set or a frame with the features of fit alone, in their order, by name."""
        self._check_fitted()
        return match_features(self._name, X, self.feature_names_)

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
    hint = f"did you mean {near[0]!r}?" if near else f"known are {some_of(known, 40)}"
    return f"{owner}: there is no parameter {name!r}; {hint}"


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
    numbered = _are_numbers(expected)
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


def _are_numbers(names: Sequence[str]) -> bool:
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


def _as_features(owner: str, matrix: NDArray[Any]) -> NDArray[np.float32]:
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
