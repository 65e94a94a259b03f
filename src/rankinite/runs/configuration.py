"""Configuration of a training: everything that its model depends on, as a flat TOML file.

A key is a flag of ``rankinite train`` with underscores. TOML has no None, so ``"none"`` stands for
None, in files and in flags. What a parameter may be comes from its declaration.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankinite.core import __version__
from rankinite.core.errors import FileFormatError, UsageError
from rankinite.core.params import (
    YES_OR_NO,
    Constraint,
    Either,
    OneOf,
    Real,
    Text,
    Whole,
    check,
    file_parameters_of,
    parameters_of,
)
from rankinite.models import RANKERS
from rankinite.rankers.aliases import explain_alias
from rankinite.rankers.ranker import Ranker

NONE = "none"
DEFAULT_RANKER = "LambdaMART"
BASE = "base"


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
    """What a constraint allows, or the text that stands for None."""

    first: Constraint

    def allows(self, value: Any) -> bool:
        """Tell whether the value is allowed, or stands for None."""
        return value == NONE or self.first.allows(value)

    def __str__(self) -> str:
        return f"{self.first}, or {NONE!r}"


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


@dataclass(frozen=True)
class Configuration:
    """Ranker, parameters and files of a training.

    Attributes
    ----------
    ranker
        Name of the ranker's class.
    train, valid, base, out
        The files, as they were named.
    loading
        Options for loading data sets that were set, without defaults.
    parameters
        All parameters of the ranker except its base.
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
        named = {key: value for key, value in files.items() if value}
        tables = [{"ranker": self.ranker, **named}, self.loading, self.parameters]
        blocks = [
            "\n".join(f"{key} = {toml_of(value)}" for key, value in table.items())
            for table in tables
            if table
        ]
        header = (
            f"# A training of rankinite {__version__}: rankinite train --config FILE repeats it."
        )
        return "\n\n".join([header, *blocks]) + "\n"


@dataclass(frozen=True)
class Source:
    """Values of a file or of flags, with the spelling of their keys for error messages."""

    owner: str
    values: Mapping[str, Any]
    spell: Callable[[str], str] = str


def flags(values: Mapping[str, Any]) -> Source:
    """Return the values of flags of ``rankinite train``."""
    return Source("train", values, lambda key: "--" + key.replace("_", "-"))


def read_configuration(path: str | Path) -> Source:
    """Read a TOML file, whose values `configure` checks."""
    try:
        return Source(str(path), tomllib.loads(Path(path).read_text("utf-8")))
    except FileNotFoundError:
        raise FileFormatError(path, "there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise FileFormatError(path, f"is no TOML file: {problem}") from None


def configure(*sources: Source) -> Configuration:
    """Return the configuration of several sources, of which later ones override earlier ones."""
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
    """Return the keys of a configuration of the ranker, with what they may be."""
    keys: dict[str, Constraint] = {"ranker": OneOf(list(RANKERS)), **FILES, **LOADING}
    if BASE not in parameters_of(RANKERS[ranker]):
        del keys[BASE]
    return keys | parameter_keys(ranker)


def parameter_keys(ranker: str) -> dict[str, Constraint]:
    """Return the parameters of the ranker, with what a TOML file can set them to."""
    return {
        name: _as_toml(declared.file_constraint)
        for name, declared in file_parameters_of(RANKERS[ranker]).items()
        if declared.file_constraint is not None
    }


def defaults_of(ranker: str) -> dict[str, Any]:
    """Return the defaults of the ranker's parameters, without its base."""
    declared = file_parameters_of(RANKERS[ranker])
    return {name: parameter.default for name, parameter in declared.items()}


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
    """Return the value of a parameter from its value in a TOML file."""
    if isinstance(constraint, Real):
        return float(value)
    return None if isinstance(constraint, OrNone) and value == NONE else value


def toml_of(value: Any) -> str:
    """Write a value as TOML."""
    # TOML's texts and lists are JSON's, but for the character DEL; its numbers are Python's.
    if isinstance(value, (bool, str, list, tuple)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(NONE) if value is None else repr(value)


def unknown_key(spelled: str, key: str, ranker: str, known: Collection[str]) -> str | None:
    """Return the sentence for an unknown key; None if there is nothing to advise.

    Parameters
    ----------
    spelled, key
        The key as it was spelled, and as a file spells it.
    ranker
        Name of the ranker's class.
    known
        The known keys.
    """
    others = [other for other in RANKERS if key in keys_of(other)]
    if others:
        return f"{ranker} has no {spelled}; {' and '.join(others)} can have it"
    advice = explain_alias(ranker, key, known)
    if advice is None:
        near = difflib.get_close_matches(key, known, 1)
        advice = f"did you mean {near[0]!r}?" if near else None
    return None if advice is None else f"there is no key {key!r}; {advice}"
