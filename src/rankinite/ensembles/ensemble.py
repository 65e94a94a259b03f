"""Rankers within a ranker, and how a model file holds them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from rankinite.core.container import Content
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.members import fitted_members, in_order, scores_by_name
from rankinite.measures.text import one_measure
from rankinite.rankers.inputs import InputData, check_features, training_data
from rankinite.rankers.model_file import Manifest, plain
from rankinite.rankers.ranker import Ranker

MEMBERS = "members"
INNER = "ranker"


def with_parts(own: Content, parts: Mapping[str, Ranker]) -> Content:
    """Return the content of a ranker's file together with that of the rankers in it.

    Parameters
    ----------
    own
        What it keeps besides them.
    parts
        The rankers by the prefix of their arrays: ``members.0``, ``members.1``, and so on, and
        ``ranker`` for one on top.
    """
    manifest, arrays = {**own.manifest, MEMBERS: []}, dict(own.arrays)
    for prefix, part in parts.items():
        inner = part.to_content()
        arrays |= {f"{prefix}.{name}": array for name, array in inner.arrays.items()}
        if prefix == INNER:
            manifest[INNER] = inner.manifest
        else:
            manifest[MEMBERS].append(inner.manifest)
    return Content(manifest, arrays)


# Of the largest score: a spread below it is the rounding of whoever computed the scores.
ROUNDING = 2.0**-46
# Of scaled scores, of weights, and of what a model file may hold: products stay finite.
LARGEST = 1e150


@dataclass(frozen=True)
class Scaling:
    """How to bring the scores of members to one scale (Ensemble, Sec. 4.3).

    Attributes
    ----------
    means, scales
        One of each for every member: the mean, and the standard deviation.
    """

    means: Floats
    scales: Floats

    @classmethod
    def fit(cls, scores: Floats) -> Scaling:
        """Learn the scales of scores, one row a member; one that says nothing has scale 1.

        The mean is over all documents, not over those of a query: how sure a member is of a query
        stays in its scores.

        Examples
        --------
        >>> Scaling.fit(np.array([[1.0, 3.0], [5.0, 5.0]]))
        Scaling(means=array([2., 5.]), scales=array([1., 1.]))
        """
        # By the largest, so that no square is too large or too small for a number.
        largest = np.abs(scores).max(axis=1, keepdims=True)
        largest[largest == 0.0] = 1.0
        relative = scores / largest
        spreads = relative.std(axis=1)
        scales = spreads * largest[:, 0]
        says_nothing = (spreads <= ROUNDING) | (scales < np.finfo(np.float64).tiny)
        return cls(relative.mean(axis=1) * largest[:, 0], np.where(says_nothing, 1.0, scales))

    def apply(self, owner: str, names: Sequence[str], scores: Floats) -> Floats:
        """Return scores, one row a member, on one scale."""
        with np.errstate(over="ignore"):
            scaled: Floats = (scores - self.means[:, None]) / self.scales[:, None]
        bad = np.abs(scaled) > LARGEST
        if bad.any():
            member, doc = np.argwhere(bad)[0]
            raise DataError(
                f"{owner}: the score {scores[member, doc]:g} of the member {names[member]!r} for "
                f"document {doc} is too far from those it was fitted to, which spread by "
                f"{self.scales[member]:g}"
            )
        return scaled


def weighted_sum(scaled: Floats, weights: Floats) -> Floats:
    """Return the sum of rows, each times its weight.

    Row by row, so that a document's score does not depend on what documents stand beside it.
    """
    total = np.zeros(scaled.shape[1])
    for row, weight in zip(scaled, weights, strict=True):
        total += weight * row
    return total


@dataclass(frozen=True)
class Gathered:
    """What a combination learns from.

    Attributes
    ----------
    data
        The documents, with labels and queries.
    names
        The names of the members.
    scaling, scaled
        What brings their scores to one scale; and the scores on it, one row a member.
    """

    data: RankingData
    names: tuple[str, ...]
    scaling: Scaling
    scaled: Floats


class Ensemble(Ranker):
    """Several fitted rankers as one; or scores of several, where the rankers are not at hand.

    Attributes
    ----------
    members_ : dict
        The members that it was fitted with, by name; none if it was fitted to scores.
    member_names_ : tuple of str
        The names of the members: 1, 2, and so on, unless they were given by name.
    means_, scales_ : arrays
        What each member's scores are scaled by, learned when the combination was fitted.
    """

    # What a combination consists of; it has no rounds of its own.
    rounds: ClassVar[str] = MEMBERS

    members: Any
    members_: dict[str, Ranker]
    member_names_: tuple[str, ...]
    means_: Floats
    scales_: Floats

    @abstractmethod
    def _combine(self, scaled: Floats, qid: NDArray[Any] | None) -> Floats:
        """Return one score a document, from the members' on one scale."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learned besides the scales, as arrays."""

    @abstractmethod
    def _set_arrays(self, content: Content, inner: Ranker | None) -> None:
        """Take what was learned from a model file, or refuse it."""

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy; members are part of the parameters and stay fitted."""
        copied: Self = type(self)(
            **{
                name: value if name == MEMBERS else clone(value, safe=False)
                for name, value in self.get_params(deep=False).items()
            }
        )
        return copied

    def predict(
        self,
        X: Any,
        qid: ArrayLike | None = None,
        *,
        member_scores: Any = None,
    ) -> Floats:
        """Return one score a document; larger is better.

        Parameters
        ----------
        X, qid
            The documents, as every member takes them. None if ``member_scores`` are given.
        member_scores
            The scores of the members for these documents, if the combination was fitted to scores:
            by name, or one row a member.
        """
        self._check_fitted()
        scores = self._scores_to_combine(X, qid, member_scores)
        scaling = Scaling(self.means_, self.scales_)
        scaled = scaling.apply(self._name, self.member_names_, scores)
        if isinstance(X, RankingData):
            qid = X.qid
        return self._combine(scaled, None if qid is None else np.asarray(qid))

    def _scores_to_combine(self, X: Any, qid: ArrayLike | None, given: Any) -> Floats:
        if not self.members_:
            if given is None:
                raise UsageError(
                    f"{self._name}: was fitted to scores, not to rankers; give member_scores, the "
                    "same rankers' scores of these documents"
                )
            rows = scores_by_name(self._name, given, _n_docs(X))
            return in_order(self._name, rows, self.member_names_)
        self._refuse_scores(given)
        self._features_of(X)  # others are refused in the name of the combination
        return ask(self.members_, X, qid)

    def _refuse_scores(self, given: Any) -> None:
        if given is not None:
            raise UsageError(
                f"{self._name}: member_scores were given, but the members are rankers, which are "
                "asked themselves; leave them out, or say members=None"
            )

    def _scores_of(
        self, given: InputData, X: Any, qid: ArrayLike | None, member_scores: Any
    ) -> dict[str, Floats]:
        """Return the scores of every member for a data set to learn from."""
        if self.members is None:
            if member_scores is None:
                raise UsageError(
                    f"{self._name}: there is nothing to combine; give members, fitted rankers, or "
                    "fit's member_scores"
                )
            rows = scores_by_name(self._name, member_scores, given.data.n_docs)
        else:
            self._refuse_scores(member_scores)
            members = fitted_members(self._name, self.members)
            if isinstance(X, RankingData):
                first = next(iter(members.values()))
                check_features(self._name, X.feature_names, first.feature_names_)
            rows = dict(zip(members, ask(members, X, qid), strict=True))
        return {name: given.arrange(scores) for name, scores in rows.items()}

    def _gather(
        self, X: Any, y: ArrayLike | None, qid: ArrayLike | None, member_scores: Any
    ) -> Gathered:
        """Check what fit was given, and ask the members for their scores."""
        self._check_parameters()
        given = training_data(self._name, X, y, qid, None)
        rows = self._scores_of(given, X, qid, member_scores)
        scores = np.stack(list(rows.values()))
        scaling = self._scaling(scores)
        scaled = scaling.apply(self._name, list(rows), scores)
        return Gathered(given.data, tuple(rows), scaling, scaled)

    def _scaling(self, scores: Floats) -> Scaling:
        """Return what brings the members' scores to one scale."""
        return Scaling.fit(scores)

    def _take(self, gathered: Gathered) -> None:
        """Remember what was learned of all members alike."""
        self.member_names_ = gathered.names
        self.means_, self.scales_ = gathered.scaling.means, gathered.scaling.scales
        self._remember(gathered.data)
        self.members_ = {}
        if self.members is not None:
            self.members_ = fitted_members(self._name, self.members)
            # Fitted by name, they may have been given columns without names.
            self.feature_names_ = next(iter(self.members_.values())).feature_names_

    def _parts(self) -> dict[str, Ranker]:
        """Return the rankers in this one, by the prefix of their arrays in a model file."""
        return {f"{MEMBERS}.{k}": member for k, member in enumerate(self.members_.values())}

    def to_content(self) -> Content:
        """Return the manifest and arrays of a model file."""
        return with_parts(super().to_content(), self._parts())

    def _content(self) -> Content:
        parameters = self.get_params(deep=False)
        manifest = {
            "parameters": {
                name: plain(value)
                for name, value in parameters.items()
                if name not in (MEMBERS, INNER)
            },
            "based_on_scores": not self.members_,
            "member_names": list(self.member_names_),
            "feature_names": list(self.feature_names_),
            "top_grade": self.top_grade_,
        }
        scales = {"means": self.means_, "scales": self.scales_}
        return Content(manifest, {**scales, **self._arrays()})

    @classmethod
    def from_content(
        cls, content: Content, base: Ranker | None, parts: Mapping[str, Ranker] | None = None
    ) -> Self:
        """Return the fitted ensemble of a model file."""
        if base is not None:
            raise ModelFileError("the base in the file does not fit the ranker that contains it")
        found = dict(parts or {})
        inner = found.pop(INNER, None)
        manifest = Manifest.read({**content.manifest, "n_rounds": 0, "history": []})
        names = _read_names(content.manifest.get("member_names"))
        new = cls._with_parameters(manifest.parameters)
        new._set_members(names, list(found.values()), manifest)
        new.means_ = read_numbers(content, "means", len(names))
        new.scales_ = read_numbers(content, "scales", len(names))
        if not (new.scales_ > 0).all():
            raise ModelFileError("the file has a member whose scores have no scale")
        new._set_arrays(content, inner)
        new.n_features_in_ = len(manifest.feature_names)
        new.top_grade_ = manifest.top_grade
        new.feature_names_ = manifest.feature_names
        return new

    @classmethod
    def _with_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Make an unfitted combination of what a file says, if `fit` would take it."""
        if {MEMBERS, INNER} & parameters.keys():
            raise ModelFileError("the manifest of the file has rankers among the parameters")
        try:
            new = cls(**{MEMBERS: None, **parameters})
            new._check_parameters()
        except (TypeError, UsageError) as problem:
            raise ModelFileError(f"the manifest of the file is not understood: {problem}") from None
        return new

    def _set_members(
        self, names: tuple[str, ...], members: Sequence[Ranker], manifest: Manifest
    ) -> None:
        expected = 0 if manifest.based_on_scores else len(names)
        alike = all(member.feature_names_ == manifest.feature_names for member in members)
        if len(members) != expected or not alike:
            raise ModelFileError("the members in the file do not fit the ranker that contains them")
        self.member_names_ = names
        self.members_ = dict(zip(names, members, strict=True)) if members else {}
        self.members = self.members_ or None


class LinearEnsemble(Ensemble):
    """A weighted sum of the members' scores on one scale.

    Attributes
    ----------
    weights_ : array
        The weight of each member, by which its scaled scores are multiplied.
    """

    weights_: Floats

    @abstractmethod
    def _learn(self, gathered: Gathered) -> None:
        """Learn the weights, and what else there is to learn of scaled scores."""

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        member_scores: Any = None,
    ) -> Self:
        """Learn the scales of the members' scores, and their weights.

        Parameters
        ----------
        X, y, qid
            Documents that the members were not fitted to: a `RankingData`, or arrays.
        member_scores
            With ``members=None``: the scores of every member for these documents, by name, or one
            row a member.
        """
        gathered = self._gather(X, y, qid, member_scores)
        self._learn(gathered)
        self._take(gathered)
        return self

    def _combine(self, scaled: Floats, qid: NDArray[Any] | None) -> Floats:
        return weighted_sum(scaled, self.weights_)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"weights": self.weights_}

    def _set_arrays(self, content: Content, inner: Ranker | None) -> None:
        if inner is not None:
            raise ModelFileError("the file has a ranker inside that does not belong there")
        self.weights_ = read_numbers(content, "weights", len(self.member_names_))


class MeasuredEnsemble(LinearEnsemble):
    """A weighted sum that is best for a measure on the data it is fitted to."""

    measure: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_measure(self._name, self.measure)


def ask(members: Mapping[str, Ranker], X: Any, qid: ArrayLike | None) -> Floats:
    """Return what members predict, one row each."""
    return np.stack([member.predict(X, qid) for member in members.values()])


def _n_docs(X: Any) -> int | None:
    if X is None:
        return None
    return X.n_docs if isinstance(X, RankingData) else len(X)


def _read_names(given: Any) -> tuple[str, ...]:
    sound = isinstance(given, list) and all(isinstance(name, str) for name in given)
    if not sound or not given or len(set(given)) < len(given):
        raise ModelFileError("the manifest of the file does not name the members, each once")
    return tuple(given)


def read_numbers(content: Content, name: str, length: int) -> Floats:
    """Return an array of a model file with one finite number for each of several, or refuse it."""
    array = content.arrays.get(name)
    if array is None or array.dtype != np.float64 or array.shape != (length,):
        raise ModelFileError(f"the file has no {name} of {length} numbers")
    if not (np.abs(array) <= LARGEST).all():
        raise ModelFileError(f"the file has {name} that are too large, or no numbers")
    return array
