"""Rankers that rankinite did not train: forests of other tools, and models that only predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.core.format import some_of
from rankinite.core.memory import require_memory
from rankinite.core.params import OneOf, Real, Whole, check
from rankinite.core.types import Floats
from rankinite.data.names import numbered_names
from rankinite.data.ranking_data import RankingData
from rankinite.data.sparse import dense_rows, is_sparse
from rankinite.data.tables import feature_names_of
from rankinite.rankers.base import model_scores
from rankinite.rankers.features import are_numbers
from rankinite.rankers.ranker import Ranker
from rankinite.rankers.tree_contents import TreeContents
from rankinite.trees.forest import Forest

# The entries of a model file.
TOOL, OBJECTIVE, NAMES, TEXTS = "tool", "objective", "feature_names", "categories"
ZEROS, HAS_ALL = "zero_as_missing", "has_all_features"
# Numbers of at most this size are zeros to LightGBM.
LARGEST_ZERO = np.float32(1e-35)


class ImportedRanker(Ranker):
    """Base class of rankers that were trained by another tool, and cannot be fitted."""

    def fit(self, *_arguments: Any, **_more: Any) -> Self:
        """Refuse to be fitted."""
        raise UsageError(
            f"{self._name}: was trained by another tool, and cannot be fitted; to adapt it to "
            "other data, train a ranker with it as base, as in LambdaMART(base=imported)"
        )

    def __sklearn_clone__(self) -> Self:
        """Return itself: without what it has learned it would be nothing."""
        return self

    def _set_features(self, names: Sequence[str]) -> None:
        self.feature_names_ = tuple(names)
        self.n_features_in_ = len(self.feature_names_)
        # That of the training data is not known; data sets have their own.
        self.top_grade_ = 0.0

    def _matched(self, X: Any) -> Any:
        self._check_fitted()
        self._refuse_unnamed(X)
        return super()._matched(X)

    def _refuse_unnamed(self, X: Any) -> None:
        """Explain what to do if the model knows only numbers of features, and the data names."""
        names = X.feature_names if isinstance(X, RankingData) else None
        if (
            names is not None
            and len(names) == self.n_features_in_
            and are_numbers(self.feature_names_)
            and not set(names) & set(self.feature_names_)
        ):
            raise DataError(
                f"{self._name}: the model has {len(names)} features without names, and the data "
                f"has as many, with the names {some_of(list(names))}; if they are the same, say so "
                "by import_model(..., feature_names=data.feature_names), or rankinite import "
                "MODEL --names-of DATA"
            )


class ImportedForest(TreeContents, ImportedRanker):
    """A forest that another tool trained, as `import_model` and `load_model` return it.

    Its scores are those that the tool adds up before its objective transforms them, in 64 bits.

    Attributes
    ----------
    forest_
        The trees.
    tool_ : str
        The tool: LightGBM, XGBoost, CatBoost or RankLib.
    objective_ : str
        What the model was trained for, in the words of the tool; "" if its file does not say.
    n_trees_ : int
        Number of trees.
    zero_as_missing_ : tuple of str
        Features whose zeros are missing values, as LightGBM's zero_as_missing has them.
    """

    rounds: ClassVar[str] = "trees"

    forest_: Forest
    tool_: str
    objective_: str
    n_trees_: int
    zero_as_missing_: tuple[str, ...]
    _has_all_features: bool

    @classmethod
    def of(
        cls,
        forest: Forest,
        names: Sequence[str],
        *,
        tool: str,
        objective: str = "",
        categories: Mapping[int, Mapping[str, int]] | None = None,
        zero_as_missing: Sequence[int] = (),
        has_all_features: bool = True,
    ) -> Self:
        """Return the ranker of a forest.

        Parameters
        ----------
        forest
            The trees.
        names
            Names of the features.
        tool, objective
            The tool that grew them, and for what.
        categories
            By categorical feature, the code of each text, if there are texts.
        zero_as_missing
            Features whose zeros are missing values.
        has_all_features
            Whether the tool says how many features there are; otherwise data may have more.
        """
        new = cls()
        new._set_features(names)
        new.forest_ = forest
        new.tool_, new.objective_ = tool, objective
        new.n_trees_ = len(forest)
        texts = categories or {}
        new.categories_ = {names[j]: dict(texts.get(j, {})) for j in forest.categories}
        new.zero_as_missing_ = tuple(names[j] for j in zero_as_missing)
        new._has_all_features = has_all_features
        return new

    def __repr__(self) -> str:
        if not self.is_fitted:
            return super().__repr__()
        return (
            f"<{self._name} of {self.tool_}: {self.n_trees_} trees, {self.n_features_in_} features>"
        )

    def _matched(self, X: Any) -> Any:
        n = self.n_features_in_
        # Numbers go on behind the last feature that some tree asks for.
        if not self._has_all_features:
            if isinstance(X, RankingData):
                if X.n_features > n and are_numbers(X.feature_names):
                    return X.select_features(list(self.feature_names_))
            elif feature_names_of(X) is None and np.ndim(X) == 2 and np.shape(X)[1] > n:
                return X[:, :n] if hasattr(X, "shape") else [row[:n] for row in X]
        return super()._matched(X)

    def _features_of(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
        matrix, rows = super()._features_of(X)
        if not self.zero_as_missing_:
            return matrix, rows
        columns = [self.feature_names_.index(name) for name in self.zero_as_missing_]
        n_docs = matrix.shape[0] if rows is None else len(rows)
        require_memory(
            self._name,
            "a copy of the features, whose zeros are missing,",
            4 * n_docs * matrix.shape[1],
            "predict fewer documents at a time",
        )
        if is_sparse(matrix):
            matrix = dense_rows(matrix, np.arange(n_docs) if rows is None else rows)
        else:
            matrix = matrix.copy() if rows is None else matrix[rows]
        for j in columns:
            column = matrix[:, j]
            column[np.abs(column) <= LARGEST_ZERO] = np.nan
        return matrix, None

    def predict(
        self, X: Any, qid: ArrayLike | None = None, *, n_trees: int | None = None
    ) -> Floats:
        """Return one score per document; larger is better.

        Parameters
        ----------
        X
            A RankingData, an array or a frame with the features of the model.
        qid
            Not used: scores do not depend on the query.
        n_trees
            Use only this many trees, the first ones.
        """
        matrix, rows = self._features_of(X)
        forest = self.forest_
        if n_trees is not None:
            check(self._name, "n_trees", n_trees, Whole(0, self.n_trees_))
            forest = forest.first(int(n_trees))
        scores: Floats = forest.scores(matrix, rows)[0]
        return scores

    def scaled(self, factor: float) -> Self:
        """Return the same forest with scores that are multiplied: the order stays.

        Trees that are trained on top of a base follow its scores where these are far apart, and
        tools differ in how far that is. A smaller base is corrected by fewer queries.

        Parameters
        ----------
        factor
            What scores are multiplied by; above 0, and at most a million.
        """
        check(f"{self._name}.scaled", "factor", factor, Real(0, 1e6, low_open=True))
        forest = self._fitted_forest
        places = {name: j for j, name in enumerate(self.feature_names_)}
        return type(self).of(
            replace(
                forest,
                trees=tuple(replace(tree, value=tree.value * factor) for tree in forest.trees),
                start=forest.start * factor,
            ),
            self.feature_names_,
            tool=self.tool_,
            objective=self.objective_,
            categories={places[name]: codes for name, codes in self.categories_.items()},
            zero_as_missing=[places[name] for name in self.zero_as_missing_],
            has_all_features=self._has_all_features,
        )

    def importances(self, kind: str = "gain") -> dict[str, float]:
        """Return the importance of each feature, by name, the most important first.

        Parameters
        ----------
        kind
            ``"gain"``: the sum of the gains of its splits, which CatBoost and RankLib do not write;
            ``"count"``: the number of its splits.
        """
        check(f"{self._name}.importances", "kind", kind, OneOf(["gain", "count"]))
        values = self._fitted_forest.importances(kind)
        order = np.argsort(-values, kind="stable")
        return {self.feature_names_[j]: float(values[j]) for j in order}

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in the gain of all splits."""
        values = self._fitted_forest.importances("gain")
        total = values.sum()
        return values / total if total > 0 else values

    def _content(self) -> Content:
        texts = {name: dict(codes) for name, codes in self.categories_.items() if codes}
        manifest = {
            TOOL: self.tool_,
            OBJECTIVE: self.objective_,
            NAMES: list(self.feature_names_),
            HAS_ALL: self._has_all_features,
            **({TEXTS: texts} if texts else {}),
            **({ZEROS: list(self.zero_as_missing_)} if self.zero_as_missing_ else {}),
        }
        return Content(manifest, self.forest_.to_arrays())

    @classmethod
    def from_content(cls, content: Content, base: Ranker | None) -> Self:
        """Return the ranker of a model file."""
        manifest = content.manifest
        names, texts, zeros = manifest.get(NAMES), manifest.get(TEXTS, {}), manifest.get(ZEROS, [])
        has_all = manifest.get(HAS_ALL)
        said = (manifest.get(TOOL), manifest.get(OBJECTIVE))
        if base is not None or not isinstance(has_all, bool):
            raise ModelFileError("the manifest of the file is not that of an imported forest")
        if not (_are_texts(names) and names and _are_texts(zeros) and _are_texts(list(said))):
            raise ModelFileError("the manifest of the file is not that of an imported forest")
        places = {name: j for j, name in enumerate(names)}
        forest = Forest.from_arrays(content.arrays, len(names))
        known = {names[j] for j in forest.categories}
        if not _are_codes(texts) or not texts.keys() <= known or len(places) < len(names):
            raise ModelFileError("the names of features or categories in the file do not fit")
        if len(forest.start) != 1 or not set(zeros) <= places.keys():
            raise ModelFileError("the forest in the file is not that of an imported forest")
        return cls.of(
            forest,
            names,
            tool=str(said[0]),
            objective=str(said[1]),
            categories={places[name]: codes for name, codes in texts.items()},
            zero_as_missing=[places[name] for name in zeros],
            has_all_features=has_all,
        )


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _are_codes(texts: Any) -> bool:
    """Tell whether a manifest has codes by text: whole numbers, each once, of every feature."""
    return isinstance(texts, dict) and all(
        isinstance(codes, dict)
        and all(type(code) is int and 0 <= code < 1 << 24 for code in codes.values())
        and len(set(codes.values())) == len(codes)
        for codes in texts.values()
    )


class WrappedModel(ImportedRanker):
    """A fitted object of another library, of which nothing is known but its ``predict``.

    Attributes
    ----------
    model_
        The object.
    """

    model_: Any

    @classmethod
    def of(cls, model: Any, names: Sequence[str] | None = None) -> Self:
        """Return a ranker that calls a model.

        Parameters
        ----------
        model
            A fitted object; its ``predict`` takes a matrix and returns a score for each row.
        names
            Names of its features; what it says itself if None.
        """
        chosen = _names_of(model) if names is None else names
        new = cls()
        new._set_features(chosen)
        new.model_ = model
        return new

    def __repr__(self) -> str:
        if not self.is_fitted:
            return super().__repr__()
        return f"<{self._name}: {type(self.model_).__name__}, {self.n_features_in_} features>"

    def predict(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return one score per document; larger is better.

        Parameters
        ----------
        X
            A RankingData, an array or a frame with the features of the model.
        qid
            Not used: the model does not know queries.
        """
        matrix, rows = self._features_of(X)
        n_docs = matrix.shape[0] if rows is None else len(rows)
        documents = matrix if rows is None else matrix[rows]
        return model_scores(self._name, self.model_, documents, None, n_docs, "the model")

    def _content(self) -> Content:
        raise UsageError(
            f"{self._name}: a {type(self.model_).__name__} cannot be part of a model file, which "
            "holds no code; save its scores, or import a forest of LightGBM, XGBoost or CatBoost"
        )

    @classmethod
    def from_content(cls, content: Content, base: Ranker | None) -> Self:
        """Refuse: there are no such files."""
        raise ModelFileError("holds a model of another library, which no file can hold")


def _names_of(model: Any) -> Sequence[str]:
    """Return the names of a model's features, as scikit-learn's estimators tell them."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return [str(name) for name in names]
    n = getattr(model, "n_features_in_", None)
    if isinstance(n, (int, np.integer)) and n > 0:
        return numbered_names(int(n))
    raise UsageError(
        f"import_model: a {type(model).__name__} does not tell its features (feature_names_in_, "
        "n_features_in_); give feature_names"
    )
