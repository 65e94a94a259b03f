"""The base class of all rankers: a scikit-learn estimator with checks and a model file."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content, write_container
from rankinite.core.errors import DataError, UsageError
from rankinite.core.estimator import Estimator
from rankinite.core.format import some_of
from rankinite.core.lazy import LazyModule
from rankinite.core.params import Constraint, check, parameters_of, with_parameters
from rankinite.core.types import Floats
from rankinite.data.categories import Codes, encode_frame, match_codes, refuse_numbers
from rankinite.data.ranking_data import RankingData
from rankinite.rankers.features import (
    are_numbers,
    as_features,
    feature_matrix,
    match_features,
)

if TYPE_CHECKING:
    from rankinite.measures.measure import Measure

sklearn: Any = LazyModule("sklearn")

# Rankers are measured by this if neither the user nor the objective names a measure.
DEFAULT_MEASURE = "NDCG@10"
# Checks of scikit-learn that call fit(X, y); those of weights are run where fit takes them.
NO_QUERIES = "calls fit without qid, which rankers refuse; a subclass whose qid is 0 passes it"
CHECKS_WITHOUT_QUERIES = (
    "check_all_zero_sample_weights_error",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
)

# Why rankers of lambdas fail scikit-learn's check of the equivalence of sample weights.
COPIES_HAVE_RANKS = (
    "a document of weight 2 has one rank, and two copies of it have two; one of weight 0 keeps its "
    "rank, and one that is left out has none"
)


# What only rankers of trees have: `rankinite.rankers.tree_contents`.
OF_TREES = ("predict_leaf", "trees", "tree_nodes", "plot_tree")


class Ranker(Estimator, ABC):
    """A ranker: fitted to queries with labels, it scores documents; larger is better.

    Rankers are scikit-learn estimators by its protocol. They do not inherit from its
    ``BaseEstimator``, because a process that only scores should not import scikit-learn. Checks of
    ``check_estimator`` that do not apply to a class are in its ``expected_failed_checks``, with the
    reason; pass it to ``check_estimator`` as the argument of the same name. Most are there because
    they call ``fit(X, y)``: to run them, check a subclass whose ``fit`` and ``score`` have 0 as the
    default of ``qid``.

    Attributes
    ----------
    feature_names_ : tuple of str
        Names of the features that it was fitted to.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if ``fit`` saw names; of an array it saw none.
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
        **dict.fromkeys(CHECKS_WITHOUT_QUERIES, NO_QUERIES),
    }

    # scikit-learn passes these on without being told to.
    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__predict: ClassVar = {"qid": True}
    __metadata_request__score: ClassVar = {"qid": True}

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
                name: value if name == "base" else sklearn.clone(value, safe=False)
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
    def inner_rankers(self) -> Mapping[str, Ranker]:
        """The fitted rankers that this one consists of, by name; none for most rankers."""
        return {}

    def no_trees(self) -> str:
        """Return the sentence that it has no trees, and what to do instead."""
        inner = list(self.inner_rankers)
        if inner:
            return (
                f"{self._name}: has no trees of its own; ask one of its rankers, {some_of(inner)}, "
                f"as in inner_rankers[{inner[0]!r}] (--member {inner[0]})"
            )
        return f"{self._name}: has no trees; those of LambdaMART, MART and McRank can be looked at"

    if not TYPE_CHECKING:  # to a type checker this would give every attribute

        def __getattr__(self, name: str) -> Any:
            # Users of an ensemble ask it for its trees; "no attribute" would leave them alone.
            if name in OF_TREES:
                raise AttributeError(f"{name}: {self.no_trees()}")
            return super().__getattr__(name)

    @property
    def is_fitted(self) -> bool:
        """Whether `fit` was called, or the ranker was read from a file."""
        return hasattr(self, "feature_names_")

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            from rankinite.core.unfitted import UnfittedError

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

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the features, if ``fit`` saw names; of an array it saw none."""
        self._check_fitted()
        if are_numbers(self.feature_names_):
            raise AttributeError(f"{self._name}: fit saw no names of features, only their number")
        return np.array(self.feature_names_, dtype=object)

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
        features = as_features(self._name, matrix)
        # By position from here on: fit may have seen an array, whose columns have no names.
        expected = self.feature_names_
        tables = {expected[names.index(name)]: t for name, t in tables.items() if names is not None}
        if names is not None and self.categories_:
            others = {name: codes for name, codes in self.categories_.items() if name not in tables}
            refuse_numbers(self._name, features, expected, others)
        return match_codes(self._name, features, expected, tables, self.categories_), None

    def _columns_of_categories(self) -> list[int]:
        if not self.categories_:
            return []
        columns = {name: j for j, name in enumerate(self.feature_names_)}
        return [columns[name] for name in self.categories_]

    def _matched(self, X: Any) -> Any:
        """Return a data set or a frame with the features of fit alone, in their order, by name."""
        self._check_fitted()
        return match_features(self._name, X, self.feature_names_)

    @abstractmethod
    def predict(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return one score per document."""

    def score(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: None = None,
    ) -> float:
        """Return the mean of the ranker's measure over queries; larger is better.

        The measure is that of validation sets: ``valid_measure``, or the first if there are
        several; if it is None, the measure of training; and NDCG@10 if training has none.

        Parameters
        ----------
        X
            A RankingData, an array or a frame with the features of fit.
        y, qid, group
            With an array or frame: labels and queries, as in `fit`.
        sample_weight
            None: all queries count alike. Pipelines of scikit-learn pass it on.
        """
        from rankinite.data.queries import query_ids
        from rankinite.evaluation.evaluate import evaluate, mean_of_documents

        self._check_fitted()
        owner = f"{self._name}.score"
        if sample_weight is not None:
            raise UsageError(
                f"{owner}: documents have no weight in a measure; leave out the weights"
            )
        measure = self._score_measure()
        if isinstance(X, RankingData):
            refuse_besides(owner, y=y, qid=qid, group=group)
            return evaluate(self.predict(X), X, measure).mean[str(measure)]
        if y is None:
            raise UsageError(f"{owner}: requires y; give labels, or a RankingData")
        queries = query_ids(owner, len(np.asarray(y)), qid, group)
        scores = self.predict(X, queries)
        return mean_of_documents(measure, y, scores, queries, self.top_grade_)

    def _score_measure(self) -> Measure:
        """Return the measure of `score`."""
        from rankinite.measures.text import one_measure

        return one_measure(self._name, getattr(self, "measure", DEFAULT_MEASURE))

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
    from rankinite.rankers.aliases import explain_alias

    # Another tool's name is explained, even if its letters are near to one of our parameters.
    advice = explain_alias(owner, name, known)
    if advice:
        return f"{owner}: there is no parameter {name!r}; {advice}"
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {some_of(known, 20)}"
    return f"{owner}: there is no parameter {name!r}; {hint}"


def refuse_besides(owner: str, **arguments: Any) -> None:
    """Refuse arrays besides a data set."""
    for name, value in arguments.items():
        if value is not None:
            raise UsageError(
                f"{owner}: {name} was given besides a RankingData, which has its own; leave it out"
            )
