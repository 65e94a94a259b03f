"""Model files of trained rankers: the manifest, checked before a ranker is made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.params import SEED, Constraint, OneOf, Real, Whole, check
from rankinite.rankers.base import Base
from rankinite.rankers.ranker import Ranker

# By validation set and measure, one value per round.
Curves = dict[str, dict[str, list[float]]]
VERSION = "rankinite"  # the entry with the version that fitted the ranker
# Texts by categorical feature, in the order of the categories in the model's arrays.
CATEGORIES = "categories"
# What is no parameter of a file although it is one of the class: a base is a ranker of its own,
# and a preset stands for values.
NO_PARAMETERS = ("base", "preset")
# Lists in lists of parameters, such as those of constraints, are not deeper.
DEEPEST_VALUE = 4
# Rankers inside a ranker: the entries of the members, and of the one on top of them.
MEMBERS = "members"
INNER = "ranker"


@dataclass(frozen=True)
class Manifest:
    """The entries of a model file besides the arrays of the model."""

    parameters: Mapping[str, Any]
    based_on_scores: bool
    feature_names: tuple[str, ...]
    top_grade: float
    n_rounds: int
    best_round: int | None
    history: Curves
    # None in files that older versions wrote, and in those of ensembles.
    n_queries: int | None
    n_docs: int | None
    version: str | None
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, manifest: Mapping[str, Any]) -> Manifest:
        """Check every entry; refuse one that is not as `trained_content` writes it."""
        parameters = _entry(manifest, "parameters")
        names = _entry(manifest, "feature_names")
        if not isinstance(parameters, dict):
            raise _not_understood("parameters", parameters)
        for name, value in parameters.items():
            if name in NO_PARAMETERS or not _is_plain(value, DEEPEST_VALUE):
                raise _not_understood(name, value)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise _not_understood("feature_names", names)
        if not names or len(set(names)) < len(names):
            raise _not_understood("feature_names", names)
        top_grade = _number(manifest, "top_grade", Real(0))
        if float(top_grade) != top_grade:  # a whole number that no label can be
            raise _not_understood("top_grade", top_grade)
        n_rounds = int(_number(manifest, "n_rounds", Whole(0)))
        best_round = None
        if "best_round" in manifest:
            best_round = int(_number(manifest, "best_round", Whole(0, n_rounds)))
        return cls(
            parameters,
            bool(_number(manifest, "based_on_scores", OneOf([False, True]))),
            tuple(names),
            float(top_grade),
            n_rounds,
            best_round,
            read_history(_entry(manifest, "history"), n_rounds),
            _size(manifest, "n_queries"),
            _size(manifest, "n_docs"),
            _version(manifest),
            _read_categories(manifest.get(CATEGORIES, {})),
        )


def _is_plain(value: Any, depth: int) -> bool:
    """Tell whether a parameter is as `plain` returns it."""
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(item, depth - 1) for item in value)
    return not isinstance(value, dict)


def _read_categories(categories: Any) -> Mapping[str, Sequence[str]]:
    # Whether they fit the model is for the ranker to say.
    lists = isinstance(categories, dict) and all(isinstance(v, list) for v in categories.values())
    if not lists or not all(isinstance(t, str) for texts in categories.values() for t in texts):
        raise _not_understood(CATEGORIES, categories)
    read: Mapping[str, Sequence[str]] = categories
    return read


def plain(value: Any) -> Any:
    """Return a parameter as a file can hold it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):  # as pairs: as a key of JSON, 0 would become a text
        return [[plain(key), plain(item)] for key, item in value.items()]
    if callable(value) and hasattr(value, "__name__"):  # an objective or measure as a function
        return str(value.__name__)
    # The text of an object without a __str__ of its own is its address, another one every time.
    text = str(value)
    return type(value).__name__ if text == object.__repr__(value) else text


class _Parameters(Protocol):
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


def plain_parameters(ranker: _Parameters) -> dict[str, Any]:
    """Return the parameters of a ranker as a file can hold them, without the base."""
    return {
        name: plain(value)
        for name, value in ranker.get_params(deep=False).items()
        if name != "base"
    }


def trained_content(ranker: Any, arrays: Mapping[str, NDArray[Any]]) -> Content:
    """Return the content of the model file of a ranker that was trained in rounds.

    Parameters
    ----------
    ranker
        The fitted ranker.
    arrays
        The arrays of its model.
    """
    kind = type(ranker).__name__
    base = Base(kind, ranker.base)
    if not (ranker.base is None or base.is_scores or isinstance(ranker.base, Ranker)):
        raise UsageError(
            f"{kind}: the base is a {type(ranker.base).__name__}, which a model file cannot hold; "
            "give its scores as base, or a ranker of rankinite"
        )
    parameters = plain_parameters(ranker)
    # JSON holds no RandomState; and by the seed that was drawn, the same fit can be done again.
    if not SEED.allows(ranker.random_state):
        parameters["random_state"] = ranker.seed_
    manifest = {
        "parameters": parameters,
        "based_on_scores": base.is_scores,
        "feature_names": list(ranker.feature_names_),
        "top_grade": ranker.top_grade_,
        "n_rounds": ranker.n_rounds_,
        "best_round": ranker.best_round_,
        "history": write_history(ranker.history_),
    }
    origin = {"n_queries": ranker.n_queries_, "n_docs": ranker.n_docs_, VERSION: ranker.version_}
    manifest |= {name: value for name, value in origin.items() if value is not None}
    return Content(manifest, dict(arrays))


Trained = TypeVar("Trained", bound=Ranker)


def restore_ranker(kind: type[Trained], manifest: Manifest) -> Trained:
    """Return a ranker with the parameters and attributes of a model file, without its arrays.

    Parameters
    ----------
    kind
        The class of the ranker.
    manifest
        The manifest of the file.
    """
    # A file may be damaged or written by hand, so parameters are checked as those of users are.
    try:
        ranker: Any = kind(**manifest.parameters)
        ranker.check_parameters()
        check(kind.__name__, "random_state", ranker.random_state, SEED)
    except (TypeError, UsageError) as problem:
        raise ModelFileError(f"the manifest of the file is not understood: {problem}") from None
    ranker.feature_names_ = manifest.feature_names
    ranker.n_features_in_ = len(manifest.feature_names)
    ranker.top_grade_ = manifest.top_grade
    ranker.n_rounds_ = manifest.n_rounds
    ranker.history_ = manifest.history
    ranker.n_queries_, ranker.n_docs_ = manifest.n_queries, manifest.n_docs
    ranker.version_ = manifest.version
    ranker.seed_ = ranker.random_state
    restored: Trained = ranker
    return restored


def restore_base(ranker: Any, manifest: Manifest, base: Ranker | None) -> None:
    """Give a ranker the base of its model file, if there was one.

    Parameters
    ----------
    ranker
        The ranker of the file.
    manifest
        The manifest of the file.
    base
        The base in the file, if that was a ranker.
    """
    if base is None and not manifest.based_on_scores:
        return
    fits = base is None or (
        base.feature_names_ == ranker.feature_names_ and not manifest.based_on_scores
    )
    if "base" not in ranker.get_params(deep=False) or not fits:
        raise ModelFileError("the base in the file does not fit the ranker that contains it")
    # A file does not hold scores; that the base was scores is told by a base of no scores.
    ranker.base = np.zeros(0) if base is None else base


def write_history(history: Curves) -> list[dict[str, Any]]:
    """Return a history as a file holds it: a list keeps the order, and the first set decides."""
    return [
        {"set": name, "measure": measure, "values": list(values)}
        for name, curves in history.items()
        for measure, values in curves.items()
    ]


def read_history(curves: Any, n_rounds: int) -> Curves:
    """Check a history: for every validation set and measure, one finite number per round."""
    if not isinstance(curves, list) or not all(_is_curve(curve, n_rounds) for curve in curves):
        raise _not_understood("history", curves)
    history: Curves = {}
    for curve in curves:
        history.setdefault(curve["set"], {})[curve["measure"]] = curve["values"]
    if sum(map(len, history.values())) < len(curves):
        raise ModelFileError("the history in the file has the values of a measure twice")
    return history


def _is_curve(curve: Any, n_rounds: int) -> bool:
    return (
        isinstance(curve, dict)
        and curve.keys() == {"set", "measure", "values"}
        and isinstance(curve["set"], str)
        and isinstance(curve["measure"], str)
        and isinstance(curve["values"], list)
        # Before the first round there are no curves.
        and len(curve["values"]) == n_rounds > 0
        # Not isinstance: True is an int, and no value of a measure.
        and all(type(value) in (int, float) and math.isfinite(value) for value in curve["values"])
    )


def _entry(manifest: Mapping[str, Any], name: str) -> Any:
    if name not in manifest:
        raise ModelFileError(f"the manifest of the file has no {name!r}")
    return manifest[name]


def _size(manifest: Mapping[str, Any], name: str) -> int | None:
    return int(_number(manifest, name, Whole(1))) if name in manifest else None


def _version(manifest: Mapping[str, Any]) -> str | None:
    version = manifest.get(VERSION)
    if version is not None and not isinstance(version, str):
        raise _not_understood(VERSION, version)
    return version


def _number(manifest: Mapping[str, Any], name: str, constraint: Constraint) -> Any:
    value = _entry(manifest, name)
    if not constraint.allows(value):
        raise _not_understood(name, value)
    return value


def _not_understood(name: str, value: Any) -> ModelFileError:
    return ModelFileError(
        f"the manifest of the file is not understood: {_short(name)} is {_short(value)}"
    )


def _short(value: Any) -> str:
    # A damaged entry may be of any length.
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:60] + "..."
