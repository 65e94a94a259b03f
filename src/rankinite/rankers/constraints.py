"""Constraints on the features of trees: which way scores may move, and which features interact.

`FeatureDirections` and `FeatureGroups` are what the parameters may be, before the data are known;
`directions_of` and `groups_of` find the features by their names. Numbers are positions, from 0;
texts are names. This module imports neither numba nor numpy, because ``--help`` reads it.
"""

from __future__ import annotations

import difflib
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.core.format import some_of

MONOTONE, INTERACTION = "monotone_constraints", "interaction_constraints"
# A feature by its position or by its name.
Feature = int | str
GROUP = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True)
class FeatureDirections:
    """Directions 1, 0 or -1: of all features in their order, or of some by feature."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value has that form."""
        return _can_be_read(_directions, value)

    def __str__(self) -> str:
        return (
            "1, 0 or -1 for every feature in order, or by feature, such as {'price': -1} or "
            "'price=-1,bm25=1'"
        )


@dataclass(frozen=True)
class FeatureGroups:
    """Groups of features, by position or name."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a list of lists of features, or its text."""
        return _can_be_read(_groups, value)

    def __str__(self) -> str:
        return "groups of features, such as [['price', 'bm25'], ['age']] or '[price,bm25],[age]'"


def directions_of(owner: str, value: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Return the direction of every feature; nothing if no feature is constrained.

    Parameters
    ----------
    owner
        Class of the ranker.
    value
        Its monotone constraints, or None.
    names
        The features of the training data.
    """
    if value is None:
        return ()
    given = _directions(value)
    by_position = [0] * len(names)
    if isinstance(given, list):
        if len(given) != len(names):
            raise UsageError(
                f"{owner}: {MONOTONE} has {len(given)} directions, and the data have {len(names)} "
                "features; give one for each, or directions by name"
            )
        by_position = given
    else:
        for feature, direction in given.items():
            by_position[_position(owner, MONOTONE, feature, names)] = direction
    return tuple(by_position) if any(by_position) else ()


def groups_of(owner: str, value: Any, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the positions of the features of every group; nothing if none are constrained.

    Parameters
    ----------
    owner
        Class of the ranker.
    value
        Its interaction constraints, or None.
    names
        The features of the training data.
    """
    return tuple(
        tuple(_position(owner, INTERACTION, feature, names) for feature in group)
        for group in ([] if value is None else _groups(value))
    )


def _can_be_read(read: Any, value: Any) -> bool:
    try:
        read(value)
    except (TypeError, ValueError):
        return False
    return True


def _directions(value: Any) -> list[int] | dict[Feature, int]:
    """Return directions in order, or by feature; raise `ValueError` for anything else."""
    if isinstance(value, str):
        value = _directions_of_text(value)
    elif hasattr(value, "tolist"):  # an array
        value = value.tolist()
    # A model file has pairs: JSON cannot tell the position 0 from a feature called 0 as a key.
    if not isinstance(value, Mapping):
        pairs = [item for item in value if isinstance(item, (list, tuple))]
        if not pairs:
            return [_direction(item) for item in value]
        value = dict(value)
    return {_feature(key): _direction(direction) for key, direction in value.items()}


def _directions_of_text(text: str) -> list[int] | dict[Feature, int]:
    parts = [part.strip() for part in text.strip().strip("()[]").split(",")]
    if any("=" in part for part in parts):
        # Names may have an equals sign themselves.
        pairs = [part.rpartition("=") for part in parts]
        return {name.strip(): int(direction) for name, _, direction in pairs}
    return [int(part) for part in parts]


def _groups(value: Any) -> list[list[Feature]]:
    """Return groups of features; raise `ValueError` for anything else."""
    if isinstance(value, str):
        if GROUP.sub("", value).strip(", "):
            raise ValueError(value)
        value = [[name.strip() for name in group.split(",")] for group in GROUP.findall(value)] or [
            []
        ]
    if isinstance(value, Mapping) or any(isinstance(group, (str, Mapping)) for group in value):
        raise ValueError(value)
    groups = [[_feature(feature) for feature in group] for group in value]
    if not all(groups):
        raise ValueError(value)
    return groups


def _direction(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or value not in (-1, 0, 1):
        raise ValueError(value)
    return int(float(value))


def _feature(value: Any) -> Feature:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise ValueError(value)
    return int(value)


def _position(owner: str, parameter: str, feature: Feature, names: Sequence[str]) -> int:
    if isinstance(feature, str):
        if feature in names:
            return names.index(feature)
        near = difflib.get_close_matches(feature, names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"the features are {some_of(names)}"
        raise UsageError(f"{owner}: {parameter}: there is no feature {feature!r}; {hint}")
    if feature >= len(names):
        raise UsageError(
            f"{owner}: {parameter}: there is no feature {feature}; the data have {len(names)}, "
            f"which are numbered from 0 to {len(names) - 1}"
        )
    return feature
