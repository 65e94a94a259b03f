"""Ensemble: several rankers as one, the scales of their scores, and its model file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content, checked_array
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.lazy import LazyModule
from rankinite.core.types import Floats
from rankinite.data.categories import Codes
from rankinite.data.checks import id_values
from rankinite.data.ranking_data import RankingData
from rankinite.data.tables import feature_names_of
from rankinite.ensembles.members import (
    MemberScores,
    Scaling,
    fitted_members,
    in_order,
    predict_all,
    scores_by_name,
    weighted_sum,
)
from rankinite.rankers.columns import InputData
from rankinite.rankers.features import match_features
from rankinite.rankers.inputs import training_data
from rankinite.rankers.model_file import INNER, MEMBERS, Manifest, plain
from rankinite.rankers.ranker import Ranker

sklearn: Any = LazyModule("sklearn")


def with_members(content: Content, members: Mapping[str, Ranker]) -> Content:
    """Return the content of a ranker's model file together with that of the rankers inside it.

    Parameters
    ----------
    content
        Manifest and arrays of the ranker itself.
    members
        The rankers inside it by the prefix of their arrays: ``members.0``, ``members.1``, and so
        on, and ``ranker`` for a ranker on top of them.
    """
    # Prefixes are numbers: the name of a member is any text, also one with a dot, which ends a
    # prefix.
    manifest, arrays = {**content.manifest, MEMBERS: []}, dict(content.arrays)
    for prefix, member in members.items():
        inner = member.to_content()
        arrays |= {f"{prefix}.{name}": array for name, array in inner.arrays.items()}
        if prefix == INNER:
            manifest[INNER] = inner.manifest
        else:
            manifest[MEMBERS].append(inner.manifest)
    return Content(manifest, arrays)


class Ensemble(Ranker):
    """Base class of ensembles: several fitted rankers, or the scores of several, as one ranker.

    Attributes
    ----------
    members_ : dict
        Members by name; empty if the ensemble was fitted to scores.
    member_names_ : tuple of str
        Names of the members: 1, 2, and so on, unless they were passed by name.
    means_, scales_ : arrays
        Mean and standard deviation of each member's scores in fit.
    """

    # An ensemble has members where other rankers have rounds.
    rounds: ClassVar[str] = MEMBERS

    members: Any
    members_: dict[str, Ranker]
    member_names_: tuple[str, ...]
    means_: Floats
    scales_: Floats

    @property
    def inner_rankers(self) -> Mapping[str, Ranker]:
        """The members, by name."""
        return dict(getattr(self, "members_", {}))

    @abstractmethod
    def _combine(self, scaled: Floats, qid: NDArray[Any] | None) -> Floats:
        """Return one score per document from the members' standardised scores."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return what fit learned besides the scales, as arrays of a model file."""

    @abstractmethod
    def _set_arrays(self, content: Content, inner: Ranker | None) -> None:
        """Set what fit learned from the arrays of a model file, or refuse them."""

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy; members are parameters and stay fitted."""
        copied: Self = type(self)(
            **{
                name: value if name == MEMBERS else sklearn.clone(value, safe=False)
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
        """Return one score per document; larger is better.

        Parameters
        ----------
        X, qid
            Documents, as in the members' predict. None with ``member_scores``.
        member_scores
            Scores of the members for these documents, if the ensemble was fitted to scores: by
            name, or one row per member.
        """
        self._check_fitted()
        scores = self._scores_to_combine(X, qid, member_scores)
        return self._combine_rows(scores, X.qid if isinstance(X, RankingData) else qid)

    def combine(self, member_scores: Mapping[str, Floats], qid: ArrayLike | None = None) -> Floats:
        """Return one score per document from the members' scores, also if they are rankers.

        It is for callers that have these scores already; predict would compute them again.

        Parameters
        ----------
        member_scores
            Scores of the members, and perhaps of other rankers, by name.
        qid
            Query of each document.
        """
        return self._combine_rows(
            np.stack([member_scores[name] for name in self.member_names_]), qid
        )

    def _combine_rows(self, scores: Floats, qid: ArrayLike | None) -> Floats:
        scaling = Scaling(self.means_, self.scales_)
        scaled = scaling.apply(self._name, self.member_names_, scores)
        return self._combine(scaled, None if qid is None else id_values(qid))

    def _scores_to_combine(self, X: Any, qid: ArrayLike | None, member_scores: Any) -> Floats:
        if not self.members_:
            if member_scores is None:
                raise UsageError(
                    f"{self._name}: was fitted to scores, not to rankers; give member_scores, the "
                    "same rankers' scores of these documents"
                )
            # X is optional here. If it is there, the number of its documents is checked.
            rows = scores_by_name(self._name, member_scores, _n_docs(X))
            return in_order(self._name, rows, self.member_names_)
        self._refuse_scores(member_scores)
        # Once for all members, and so that messages about wrong features name the ensemble.
        X = self._matched(X)
        self._features_of(X)
        return predict_all(self.members_, X, qid)

    def _refuse_scores(self, member_scores: Any) -> None:
        if member_scores is not None:
            raise UsageError(
                f"{self._name}: member_scores were given, but the members are rankers, which "
                "predict themselves; leave them out, or say members=None"
            )

    def _scores_by_name(self, inputs: InputData, X: Any, member_scores: Any) -> dict[str, Floats]:
        """Return the scores of each member for the training data."""
        if self.members is None:
            if member_scores is None:
                raise UsageError(
                    f"{self._name}: there is nothing to combine; give members, fitted rankers, or "
                    "fit's member_scores"
                )
            rows = scores_by_name(self._name, member_scores, inputs.data.n_docs)
        else:
            self._refuse_scores(member_scores)
            members = fitted_members(self._name, self.members)
            # Before the members predict, so that messages name the ensemble.
            first = next(iter(members.values()))
            X = match_features(self._name, X, first.feature_names_)
            # X as the caller gave it, in whose order `arrange` expects the scores.
            qid = None if isinstance(X, RankingData) else inputs.callers_qid()
            rows = dict(zip(members, predict_all(members, X, qid), strict=True))
        return {name: inputs.arrange(scores) for name, scores in rows.items()}

    def _begin_fit(
        self,
        X: Any,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        member_scores: Any,
    ) -> MemberScores:
        """Check the arguments of fit, and compute the members' scores."""
        self._check_parameters()
        # Of a frame, whose columns of texts are categories if the members know them as such; an
        # array has codes, which the members take as they are.
        frame_names = () if isinstance(X, RankingData) else feature_names_of(X) or ()
        columns = [name for name in self._known_categories() if name in frame_names]
        inputs = training_data(self._name, X, y, qid, None, group=group, categorical=columns)
        rows = self._scores_by_name(inputs, X, member_scores)
        scores = np.stack(list(rows.values()))
        scaling = self._scaling(scores)
        scaled = scaling.apply(self._name, list(rows), scores)
        return MemberScores(inputs.data, tuple(rows), scaling, scaled)

    def _known_categories(self) -> list[str]:
        """Return the features of which a member knows categories."""
        members = {} if self.members is None else fitted_members(self._name, self.members)
        return sorted({name for member in members.values() for name in member.categories_})

    def _scaling(self, scores: Floats) -> Scaling:
        """Return the standardisation of the members' scores."""
        return Scaling.fit(scores)

    def _end_fit(self, scores: MemberScores) -> None:
        """Set the attributes that every fitted ensemble has."""
        self.member_names_ = scores.names
        self.means_, self.scales_ = scores.scaling.means, scores.scaling.scales
        self._remember(scores.data)
        self.members_ = {}
        if self.members is not None:
            self.members_ = fitted_members(self._name, self.members)
            # X may have been an array without names, and the members know them.
            self.feature_names_ = next(iter(self.members_.values())).feature_names_

    @property
    def categories_(self) -> Codes:  # type: ignore[override]
        """The codes of categories, which are those of the members."""
        members = getattr(self, "members_", {}).values()
        return next((member.categories_ for member in members if member.categories_), {})

    def _rankers_inside(self) -> dict[str, Ranker]:
        """Return the rankers inside this one by the prefix of their arrays in a model file."""
        return {f"{MEMBERS}.{k}": member for k, member in enumerate(self.members_.values())}

    def to_content(self) -> Content:
        """Return the manifest and arrays of a model file."""
        return with_members(super().to_content(), self._rankers_inside())

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
        cls, content: Content, base: Ranker | None, members: Mapping[str, Ranker] | None = None
    ) -> Self:
        """Return the fitted ensemble of a model file."""
        if base is not None:
            raise ModelFileError("the base in the file does not fit the ranker that contains it")
        rankers = dict(members or {})
        inner = rankers.pop(INNER, None)
        # The manifest of rankers that learn in rounds has these keys, too; an ensemble has no
        # rounds.
        manifest = Manifest.read({**content.manifest, "n_rounds": 0, "history": []})
        names = _read_names(content.manifest.get("member_names"))
        new = cls._with_parameters(manifest.parameters)
        new._set_members(names, list(rankers.values()), manifest)
        new.means_ = checked_array(content.arrays, "means", np.float64, len(names))
        new.scales_ = checked_array(content.arrays, "scales", np.float64, len(names))
        # Scores are divided by them. A file can be wrong although its checksum is right.
        if not (new.scales_ > 0).all():
            raise ModelFileError("the file has a member whose scores have no scale")
        new._set_arrays(content, inner)
        new.n_features_in_ = len(manifest.feature_names)
        new.top_grade_ = manifest.top_grade
        new.feature_names_ = manifest.feature_names
        return new

    @classmethod
    def _with_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Return an unfitted ensemble with the parameters of a model file, which must be valid."""
        # They come from the file as rankers of their own, which a value here would replace.
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
        # All members get the X of the ensemble: what fit has checked must hold in a file as well.
        same_features = all(member.feature_names_ == manifest.feature_names for member in members)
        if len(members) != expected or not same_features:
            raise ModelFileError("the members in the file do not fit the ranker that contains them")
        self.member_names_ = names
        self.members_ = dict(zip(names, members, strict=True)) if members else {}
        self.members = self.members_ or None


class LinearEnsemble(Ensemble):
    """Base class of ensembles whose score is a weighted sum of the members' standardised scores.

    Attributes
    ----------
    weights_ : array
        Weight of each member.
    """

    weights_: Floats

    @abstractmethod
    def _learn(self, scores: MemberScores) -> None:
        """Set ``weights_``, and the other attributes that are learned from the scores."""

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        member_scores: Any = None,
    ) -> Self:
        """Learn the scales of the members' scores and the weights of the members.

        Parameters
        ----------
        X, y, qid, group
            Documents that the members were not fitted to: a `RankingData`, or arrays, as in
            `LambdaMART.fit`.
        member_scores
            With ``members=None``: scores of each member for these documents, by name, or one row
            per member.
        """
        scores = self._begin_fit(X, y, qid, group, member_scores)
        self._learn(scores)
        self._end_fit(scores)
        return self

    def _combine(self, scaled: Floats, qid: NDArray[Any] | None) -> Floats:
        return weighted_sum(scaled, self.weights_)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"weights": self.weights_}

    def _set_arrays(self, content: Content, inner: Ranker | None) -> None:
        if inner is not None:
            raise ModelFileError("the file has a ranker inside that does not belong there")
        n_members = len(self.member_names_)
        self.weights_ = checked_array(content.arrays, "weights", np.float64, n_members)


def _n_docs(X: Any) -> int | None:
    if X is None:
        return None
    return X.n_docs if isinstance(X, RankingData) else np.shape(X)[0]


def _read_names(names: Any) -> tuple[str, ...]:
    are_texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    # They become the keys of `members_`, where a second one of a name would replace the first.
    if not are_texts or not names or len(set(names)) < len(names):
        raise ModelFileError("the manifest of the file does not name the members, each once")
    return tuple(names)
