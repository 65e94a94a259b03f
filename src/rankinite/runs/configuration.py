"""The configuration of a training: all that its model depends on, as a flat TOML file.

A key is a flag of ``rankinite train`` with underscores. TOML has no None, so ``"none"`` stands for
it, in files and in flags.
"""

from __future__ import annotations

import difflib
import inspect
import json
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankinite.core.errors import FileFormatError, UsageError
from rankinite.core.params import Constraint, Either, OneOf, Real, Whole, check
from rankinite.core.version import __version__
from rankinite.models import RANKERS
from rankinite.rankers.aliases import our_word
from rankinite.rankers.ranker import Ranker

NONE = "none"
DEFAULT_RANKER = "LambdaMART"
BASE = "base"


@dataclass(frozen=True)
class Text:
    """A text."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a text with something in it."""
        return isinstance(value, str) and value.strip() != ""

    def __str__(self) -> str:
        return "a text"


@dataclass(frozen=True)
class Texts:
    """A list of texts."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a list of texts."""
        return isinstance(value, list) and all(Text().allows(item) for item in value)

    def __str__(self) -> str:
        return "a list of texts"


@dataclass(frozen=True)
class OrNone:
    """What a constraint allows, or the word that stands for None."""

    first: Constraint

    def allows(self, value: Any) -> bool:
        """Tell whether the value is allowed, or the word for None."""
        return value == NONE or self.first.allows(value)

    def __str__(self) -> str:
        return f"{self.first}, or {NONE!r}"


YES_OR_NO = OneOf([False, True])
FILES: Mapping[str, Constraint] = {"train": Text(), "valid": Texts(), BASE: Text(), "out": Text()}
LOADING: Mapping[str, Constraint] = {
    "top_grade": Real(0),
    "labels": Text(),
    "group": YES_OR_NO,
    "label_column": Text(),
    "qid_column": Text(),
    "doc_id_column": Text(),
    "n_features": Whole(1),
    "query_file": Text(),
    "no_comments": YES_OR_NO,
}
# What rankers check later, or let be more than a file can say.
FREE: Mapping[str, Constraint] = {
    "measure": Text(),
    "valid_measure": OrNone(Text()),
    "random_state": Whole(0),
}


@dataclass(frozen=True)
class Configuration:
    """What to fit to what.

    Attributes
    ----------
    ranker
        The name of the ranker's class.
    train, valid, base, out
        The files, as they were named.
    loading
        How to load data sets: what was said, without defaults.
    parameters
        All parameters of the ranker but its base.
    """

    ranker: str
    train: str | None
    valid: tuple[str, ...]
    base: str | None
    out: str | None
    loading: Mapping[str, Any]
    parameters: Mapping[str, Any]

    def new_ranker(self, base: Ranker | None = None) -> Ranker:
        """Return the ranker, not yet fitted."""
        parameters = dict(self.parameters)
        if base is not None:
            parameters[BASE] = base
        return RANKERS[self.ranker](**parameters)

    def to_toml(self) -> str:
        """Return the text of a file that `read_configuration` reads."""
        files = {"train": self.train, "valid": list(self.valid), BASE: self.base, "out": self.out}
        given = {key: value for key, value in files.items() if value}
        parts = [{"ranker": self.ranker, **given}, self.loading, self.parameters]
        lines = ["\n".join(f"{key} = {toml_of(value)}" for key, value in p.items()) for p in parts]
        header = (
            f"# A training of rankinite {__version__}: rankinite train --config FILE repeats it."
        )
        return "\n\n".join([header, *(text for text in lines if text)]) + "\n"


@dataclass(frozen=True)
class Source:
    """Where values come from, and how it spells their keys, for error messages."""

    owner: str
    values: Mapping[str, Any]
    spell: Callable[[str], str] = str


def flags(values: Mapping[str, Any]) -> Source:
    """Return values that came as flags of ``rankinite train``."""
    return Source("train", values, lambda key: "--" + key.replace("_", "-"))


def read_configuration(path: str | Path) -> Source:
    """Read a TOML file; what it says is checked by `configure`."""
    try:
        return Source(str(path), tomllib.loads(Path(path).read_text("utf-8")))
    except FileNotFoundError:
        raise FileFormatError(path, "there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise FileFormatError(path, f"is no TOML file: {problem}") from None


def configure(*sources: Source) -> Configuration:
    """Return the configuration that the sources make together; later ones override."""
    name = _ranker_name(sources)
    known = keys_of(name)
    values: dict[str, Any] = {}
    for source in sources:
        for key, value in source.values.items():
            if key not in known:
                problem = unknown_key(source.spell(key), key, name, known)
                hint = problem or f"there is no key {key!r}; --print-config shows what there is"
                raise UsageError(f"{source.owner}: {hint}")
            check(source.owner, source.spell(key), value, known[key])
            values[key] = from_toml(value, known[key])
    parameters = {key: values.get(key, default) for key, default in defaults_of(name).items()}
    # Wrong measures are refused now, and not when the data are loaded.
    RANKERS[name](**parameters).check_objective()
    return Configuration(
        ranker=name,
        train=values.get("train"),
        valid=tuple(values.get("valid", ())),
        base=values.get(BASE),
        out=values.get("out"),
        loading={key: values[key] for key in LOADING if key in values},
        parameters=parameters,
    )


def keys_of(ranker: str) -> dict[str, Constraint]:
    """Return what a configuration of the ranker may say, by key."""
    found: dict[str, Constraint] = {"ranker": OneOf(list(RANKERS)), **FILES, **LOADING}
    if BASE not in _signature(ranker):
        del found[BASE]
    for key in defaults_of(ranker):
        found[key] = FREE[key] if key in FREE else _as_toml(RANKERS[ranker].constraints[key])
    return found


def defaults_of(ranker: str) -> dict[str, Any]:
    """Return the parameters of the ranker with their defaults; a base is none of them."""
    return {key: given.default for key, given in _signature(ranker).items() if key != BASE}


def _signature(ranker: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(RANKERS[ranker]).parameters


def _ranker_name(sources: Sequence[Source]) -> str:
    name = DEFAULT_RANKER
    for source in sources:
        name = source.values.get("ranker", name)
        check(source.owner, source.spell("ranker"), name, OneOf(list(RANKERS)))
    return name


def _as_toml(constraint: Constraint) -> Constraint:
    if isinstance(constraint, Either) and constraint.second == OneOf([None]):
        return OrNone(constraint.first)
    return constraint


def from_toml(value: Any, constraint: Constraint) -> Any:
    """Return the value of a parameter, from how a file can say it."""
    if isinstance(constraint, Real):
        return float(value)
    return None if isinstance(constraint, OrNone) and value == NONE else value


def toml_of(value: Any) -> str:
    """Write a value as TOML, whose numbers are Python's and whose texts are nearly JSON's."""
    if isinstance(value, (bool, str, list, tuple)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(NONE) if value is None else repr(value)


def unknown_key(spelled: str, key: str, ranker: str, known: Collection[str]) -> str | None:
    """Return the sentence for a key that is none; None if there is nothing to advise.

    Parameters
    ----------
    spelled, key
        The key as it was given, and as a file has it.
    ranker
        The name of the ranker's class.
    known
        The keys that there are.
    """
    having = [other for other in RANKERS if key in keys_of(other)]
    if having:
        return f"{ranker} has no {spelled}; {' and '.join(having)} can have it"
    advice = our_word(ranker, key, known)
    if advice is None:
        near = difflib.get_close_matches(key, known, 1)
        advice = f"did you mean {near[0]!r}?" if near else None
    return None if advice is None else f"there is no key {key!r}; {advice}"
