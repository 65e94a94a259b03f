"""The manifest of a model file, checked before anything is made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankinite.core.errors import ModelFileError
from rankinite.core.params import Constraint, OneOf, Real, Whole

# By validation set and measure, one value a round.
Curves = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class Manifest:
    """What a model file says about a ranker besides the arrays that it learned."""

    parameters: Mapping[str, Any]
    based_on_scores: bool
    feature_names: tuple[str, ...]
    top_grade: float
    n_rounds: int
    history: Curves

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Manifest:
        """Check every entry; what is not as `Learner` writes it is a `ModelFileError`."""
        parameters = _entry(given, "parameters")
        names = _entry(given, "feature_names")
        if not isinstance(parameters, dict):
            raise _not_understood("parameters", parameters)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise _not_understood("feature_names", names)
        if not names or len(set(names)) < len(names):
            raise _not_understood("feature_names", names)
        n_rounds = int(_number(given, "n_rounds", Whole(0)))
        return cls(
            parameters,
            bool(_number(given, "based_on_scores", OneOf([False, True]))),
            tuple(names),
            float(_number(given, "top_grade", Real(0))),
            n_rounds,
            read_history(_entry(given, "history"), n_rounds),
        )


def plain(value: Any) -> Any:
    """Return a parameter as a file can hold it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    # What a function, or an object without a text, shows is its address.
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    text = str(value)
    return type(value).__name__ if text == object.__repr__(value) else text


def write_history(history: Curves) -> list[dict[str, Any]]:
    """Return a history as a file holds it: a list, for the first set and measure decide."""
    return [
        {"set": name, "measure": measure, "values": list(values)}
        for name, curves in history.items()
        for measure, values in curves.items()
    ]


def read_history(given: Any, n_rounds: int) -> Curves:
    """Check a history: for every validation set and measure, one finite number a round."""
    if not isinstance(given, list) or not all(_is_curve(curve, n_rounds) for curve in given):
        raise _not_understood("history", given)
    history: Curves = {}
    for curve in given:
        history.setdefault(curve["set"], {})[curve["measure"]] = curve["values"]
    return history


def _is_curve(curve: Any, n_rounds: int) -> bool:
    return (
        isinstance(curve, dict)
        and curve.keys() == {"set", "measure", "values"}
        and isinstance(curve["set"], str)
        and isinstance(curve["measure"], str)
        and isinstance(curve["values"], list)
        and len(curve["values"]) == n_rounds
        and all(type(value) in (int, float) and math.isfinite(value) for value in curve["values"])
    )


def _entry(given: Mapping[str, Any], name: str) -> Any:
    if name not in given:
        raise ModelFileError(f"the manifest of the file has no {name!r}")
    return given[name]


def _number(given: Mapping[str, Any], name: str, constraint: Constraint) -> Any:
    value = _entry(given, name)
    if not constraint.allows(value):
        raise _not_understood(name, value)
    return value


def _not_understood(name: str, value: Any) -> ModelFileError:
    shown = repr(value)
    return ModelFileError(
        f"the manifest of the file is not understood: {name!r} is "
        + (shown if len(shown) <= 60 else shown[:60] + "...")
    )
