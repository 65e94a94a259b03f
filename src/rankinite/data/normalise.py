"""RankNormaliser: features as shares of smaller values (Challenge, Sec. 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from rankinite.core.container import Content, read_container, write_container
from rankinite.core.errors import DataError, ModelFileError
from rankinite.core.params import Whole, check, or_none
from rankinite.core.progress import Progress, as_progress
from rankinite.core.types import Floats32
from rankinite.core.unfitted import UnfittedError
from rankinite.data.checks import feature_names, require_data_set
from rankinite.data.concat import refuse_other_features
from rankinite.data.cut_points import (
    CutPoints,
    find_cut_points,
    from_arrays,
    ranks_of_columns,
    to_arrays,
    used_rows,
)
from rankinite.data.ranking_data import RankingData
from rankinite.data.splits import refuse_samples

OWNER = "RankNormaliser"
MOST = or_none(Whole(2))  # the smallest and the largest value are always cut points


class _ArrayNormaliser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The normaliser of arrays and frames, as scikit-learn has its transformers."""

    most_cut_points: int | None
    feature_names_: tuple[str, ...]
    cut_points_: list[CutPoints]

    def fit(self, X: Any, y: Any = None, *, progress: Progress | bool | None = None) -> Self:
        matrix = self._checked(X, reset=True)
        self._learn([(matrix, None)], progress)
        names = getattr(self, "feature_names_in_", None)
        self.feature_names_ = tuple(feature_names(names, matrix.shape[1]))
        return self

    def transform(self, X: Any, *, progress: Progress | bool | None = None) -> Any:
        # scikit-learn wraps the transform of its own subclasses, so that set_output works.
        matrix = self._checked(X, reset=False)
        return ranks_of_columns(matrix, None, self.cut_points_, as_progress(OWNER, progress))

    def _learn(self, parts: Sequence[Any], progress: Progress | bool | None) -> None:
        check(OWNER, "most_cut_points", self.most_cut_points, MOST)
        reporter = as_progress(OWNER, progress)
        self.cut_points_ = find_cut_points(parts, self.most_cut_points, reporter)

    def _checked(self, X: Any, *, reset: bool) -> Floats32:
        try:
            # What is too large for 32 bits becomes infinite, and is refused then.
            with np.errstate(over="ignore"):
                matrix: Floats32 = validate_data(
                    self, X, reset=reset, dtype=np.float32, order="C",
                    ensure_all_finite="allow-nan",
                )  # fmt: skip
        except (TypeError, ValueError) as problem:
            raise DataError(f"{OWNER}: {' '.join(str(problem).split())}") from None
        return matrix

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []  # ranks are float32, as features are
        return tags


# What its methods call is in the class behind it.
if TYPE_CHECKING:
    _Behind = _ArrayNormaliser
else:
    _Behind = object


class _WithDataSets(_Behind):
    """The normaliser of data sets, before that of arrays in the order of base classes.

    It is no class of scikit-learn's, which would make a frame of the data set that transform
    returns if ``set_output`` or the configuration asks for frames.
    """

    def fit(self, X: Any, y: Any = None, *, progress: Progress | bool | None = None) -> Self:
        """Learn the ranks of the values.

        Parameters
        ----------
        X
            One data set, or several with the same features, whose values are ranked together; or
            an array or frame of features. Data sets may not contain samples, whose documents would
            count more than once: normalise first, then augment.
        y
            Not used; pipelines of scikit-learn pass it.
        progress
            True for a progress bar, or a progress reporter, as in `LambdaMART.fit`.
        """
        data_sets = _data_sets(X)
        if data_sets is None:
            return super().fit(X, y, progress=progress)
        dense = [data.dense(OWNER) for data in data_sets]
        self._learn([(data.matrix, data.rows) for data in dense], progress)
        _set_names(self, tuple(data_sets[0].feature_names))
        return self

    def transform(self, X: Any, *, progress: Progress | bool | None = None) -> Any:
        """Return the features as ranks: a data set of a data set, an array of an array or frame.

        With ``set_output(transform="pandas")`` it is a frame where it would be an array.

        Parameters
        ----------
        X
            Documents with the features that were fitted. Samples in a data set keep sharing their
            rows, and its categorical features stay as they are.
        progress
            True for a progress bar, or a progress reporter.
        """
        self._check_fitted()
        if not isinstance(X, RankingData):
            return super().transform(X, progress=progress)
        refuse_other_features(OWNER, self.feature_names_, X.feature_names)
        data = X.dense(OWNER)
        used, rows = used_rows(len(data.matrix), data.rows)
        matrix = ranks_of_columns(data.matrix, used, self.cut_points_, as_progress(OWNER, progress))
        for name in data.categories:  # codes have no order
            j = data.feature_names.index(name)
            matrix[:, j] = data.matrix[:, j] if used is None else data.matrix[used, j]
        return data.replace(matrix=matrix, rows=rows)

    def fit_transform(
        self, X: Any, y: Any = None, *, progress: Progress | bool | None = None
    ) -> Any:
        """Fit, and return what was fitted, normalised; a list of several data sets.

        Parameters
        ----------
        X, y, progress
            As in `fit`.
        """
        self.fit(X, y, progress=progress)
        if not isinstance(X, RankingData) and (data_sets := _data_sets(X)) is not None:
            return [self.transform(data, progress=progress) for data in data_sets]
        return self.transform(X, progress=progress)


class RankNormaliser(_WithDataSets, _ArrayNormaliser):
    """Replaces each value of a feature by the share of documents with a smaller value.

    The value x becomes (number of the n fitted values that are less than x) / (n - 1), as in
    Challenge, Sec. 4.3, where training, validation and test data of both sets were fitted at
    once. The result lies between 0 and 1, and ties stay ties. A new value counts the fitted values
    below it as well; missing values stay missing and do not count.

    Parameters
    ----------
    most_cut_points
        Maximum number of a feature's values to keep, at evenly spaced ranks; values between them
        are interpolated, and ranks are off by at most 1 / (most_cut_points - 1). None keeps every
        distinct value (12 bytes each), which is exact.

    Attributes
    ----------
    feature_names_ : tuple of str
        Names of the features that it was fitted to.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if fit saw names; of an array it saw none.
    cut_points_ : list of CutPoints
        Cut points of each feature.

    Examples
    --------
    >>> data = RankingData(X=[[30], [10], [10], [20], [99]], y=[0, 1, 2, 0, 1], group_sizes=[5])
    >>> normaliser = RankNormaliser().fit(data)
    >>> normaliser.transform(data).X.ravel().tolist()
    [0.75, 0.0, 0.0, 0.5, 1.0]

    Arrays and frames are normalised as by any transformer of scikit-learn, also in a pipeline:

    >>> RankNormaliser().fit_transform([[30.0], [10.0], [20.0]]).ravel().tolist()
    [1.0, 0.0, 0.5]
    """

    expected_failed_checks: ClassVar[Mapping[str, str]] = {
        "check_dtype_object": (
            "features that cannot be made numbers are a DataError, which is a ValueError; "
            "scikit-learn wants a TypeError"
        ),
    }

    def __init__(self, most_cut_points: int | None = None) -> None:
        self.most_cut_points = most_cut_points

    def _check_fitted(self) -> None:
        if not hasattr(self, "cut_points_"):
            raise UnfittedError(
                f"{OWNER}: is not fitted yet; call fit, or read a fitted one with {OWNER}.load"
            )

    def save(self, path: str | Path) -> None:
        """Write the fitted normaliser to a file, which appears whole or not at all.

        Parameters
        ----------
        path
            The file; by custom its name ends in ``.rk``.
        """
        self._check_fitted()
        manifest = {
            "class": OWNER,
            "most_cut_points": self.most_cut_points,
            "feature_names": list(self.feature_names_),
        }
        write_container(path, Content(manifest, to_arrays(self.cut_points_)))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a fitted normaliser from a file.

        Parameters
        ----------
        path
            A file that `save` wrote.
        """
        content = read_container(path)
        kind = content.manifest.get("class")
        if kind != OWNER:
            raise ModelFileError(
                f"{path}: holds a {str(kind)[:60]!r} and no {OWNER}; rankers are read with "
                "load_model"
            )
        try:
            new = cls(_read_most(content.manifest))
            _set_names(new, _read_names(content.manifest))
            new.cut_points_ = from_arrays(content.arrays, len(new.feature_names_))
        except ModelFileError as problem:
            raise ModelFileError(f"{path}: {problem}") from None
        return new


def _set_names(normaliser: Any, names: tuple[str, ...]) -> None:
    """Set the names of features as scikit-learn does, which knows none of numbered columns."""
    normaliser.feature_names_ = names
    normaliser.n_features_in_ = len(names)
    if names != feature_names(None, len(names)):
        normaliser.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(normaliser, "feature_names_in_"):
        del normaliser.feature_names_in_


def _data_sets(X: Any) -> list[RankingData] | None:
    """Return the data sets, of one or several; None of anything else, such as an array."""
    if isinstance(X, RankingData):
        data_sets = [X]
    elif isinstance(X, Sequence) and any(isinstance(item, RankingData) for item in X):
        data_sets = list(X)
    else:
        return None
    for data in data_sets:
        require_data_set(OWNER, data)
        refuse_other_features(OWNER, data_sets[0].feature_names, data.feature_names)
        advice = "their documents would count more than once, so normalise first, then augment"
        refuse_samples(OWNER, data.qids, advice)
    return data_sets


def _read_most(manifest: Mapping[str, Any]) -> int | None:
    most: int | None = manifest.get("most_cut_points")
    if not MOST.allows(most):
        raise ModelFileError(f"most_cut_points is {repr(most)[:60]}; expected {MOST}")
    return most


def _read_names(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    names = manifest.get("feature_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the feature names are damaged; expected a list of texts")
    if not names or len(set(names)) < len(names):
        raise ModelFileError("the feature names are damaged; expected each once")
    return tuple(names)
