"""What readers return, and values of foreign files, which may be of any kind or absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import ModelFileError
from rankinite.core.types import Floats
from rankinite.data.categories import MOST_CODES, WHOLE
from rankinite.trees.forest import Forest

Kind = TypeVar("Kind")
KINDS = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}
# Arrays have an entry for each feature, also if a short file says that there are many.
MOST_FEATURES = 1_000_000
# Characters of a value that a message shows.
SHOWN = 40


@dataclass(frozen=True, kw_only=True)
class ForeignForest:
    """The forest of another tool's model file.

    Attributes
    ----------
    tool
        The tool that wrote the file.
    forest
        The trees.
    names
        Names of the features; None if the file has only their number.
    objective
        What the model was trained for, in the words of the tool; "" if the file does not say.
    categories
        By feature, the code of each text; nothing if codes are all that is known.
    zero_as_missing
        Features whose zeros are missing values.
    has_all_features
        Whether the number of features is known, and not only those that splits ask for.
    notes
        Sentences about what the file has and the forest has not.
    """

    tool: str
    forest: Forest
    names: Sequence[str] | None
    objective: str = ""
    categories: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    zero_as_missing: Sequence[int] = ()
    has_all_features: bool = True
    notes: Sequence[str] = ()


def shown(value: Any) -> str:
    """Return a value as a message shows it: a damaged one may be of any length."""
    text = repr(value[:SHOWN] if isinstance(value, (str, bytes, list)) else value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def entry(values: Any, name: str, kind: type[Kind]) -> Kind:
    """Return an entry of an object in a file, which must be of this kind.

    Parameters
    ----------
    values
        The object, or what the file has instead.
    name
        The name of the entry.
    kind
        What it must be.
    """
    if not isinstance(values, dict) or name not in values:
        raise ModelFileError(f"has no {name!r} where one is expected")
    value = values[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ModelFileError(f"has {shown(value)} as {name!r}; expected {KINDS[kind]}")
    return value


def whole(value: Any, name: str, least: int, most: int) -> int:
    """Return a whole number, which may be written as a text.

    Parameters
    ----------
    value, name
        The value, and what it is.
    least, most
        The smallest and the largest that it may be.
    """
    try:
        number = int(value) if isinstance(value, (str, int, np.integer)) else None
    except ValueError:  # also of a text with thousands of digits
        number = None
    if number is None or not least <= number <= most:
        raise ModelFileError(
            f"has {shown(value)} as {name!r}; expected a whole number from {least} to {most}"
        )
    return number


def real(value: Any, name: str) -> float:
    """Return a finite number, which may be written as a text."""
    try:
        number = float(value) if isinstance(value, (str, int, float, np.number)) else np.nan
    except (ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number):
        raise ModelFileError(f"has {shown(value)} as {name!r}; expected a finite number")
    return float(number)


def numbers(values: Any, name: str, length: int | None = None) -> Floats:
    """Return a list of numbers as an array; they need not be finite.

    Parameters
    ----------
    values, name
        The list, a numeric array or words, and what it is.
    length
        How many there must be; any number if None.
    """
    return _array(values, name, length, "f", "iufb").astype(np.float64)


def integers(values: Any, name: str, length: int | None = None) -> NDArray[np.int64]:
    """Return a list of whole numbers as an array.

    Parameters
    ----------
    values, name, length
        As in `numbers`.
    """
    array = _array(values, name, length, "i", "iub")
    if array.dtype == np.uint64 and (array > np.iinfo(np.int64).max).any():
        raise ModelFileError(f"has whole numbers in {name!r} that are too large")
    return array.astype(np.int64)


def _array(values: Any, name: str, length: int | None, wanted: str, kinds: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
        if array.dtype.kind == "U":  # words of a line; an int64 takes no fractions
            array = array.astype(np.float64 if wanted == "f" else np.int64)
    except (ValueError, TypeError, OverflowError, RecursionError):
        array = np.zeros((), object)
    if array.size == 0 and array.ndim == 1:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in kinds:
        what = "numbers" if wanted == "f" else "whole numbers"
        raise ModelFileError(f"has something else than a list of {what} as {name!r}")
    if length is not None and len(array) != length:
        raise ModelFileError(f"has {len(array):,} values in {name!r}; expected {length:,}")
    return array


def texts(values: Any, name: str, length: int | None = None) -> tuple[str, ...]:
    """Return a list of texts.

    Parameters
    ----------
    values, name, length
        As in `numbers`.
    """
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ModelFileError(f"has something else than a list of texts as {name!r}")
    if length is not None and len(values) != length:
        raise ModelFileError(f"has {len(values):,} values in {name!r}; expected {length:,}")
    return tuple(values)


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of features; no two may be the same, and none empty."""
    if len(set(names)) < len(names) or "" in names:
        raise ModelFileError("has features without a name, or several of the same name")
    return tuple(names)


def category_codes(words: Sequence[str], feature: int) -> tuple[dict[str, int], NDArray[np.int64]]:
    """Return the codes of the categories of a feature, by text, and by their place.

    Whole numbers are codes themselves, as in data sets, and have no texts.

    Parameters
    ----------
    words
        The categories, in the order of the file.
    feature
        The number of the feature, from 0 on.
    """
    if len(set(words)) < len(words):
        raise ModelFileError(f"has the same category twice for feature {feature} (from 0 on)")
    if all(WHOLE.fullmatch(word) and int(word) < MOST_CODES for word in words):
        return {}, np.array([int(word) for word in words], np.int64)
    return {word: code for code, word in enumerate(words)}, np.arange(len(words))
