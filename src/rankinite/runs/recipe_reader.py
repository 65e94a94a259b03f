"""Reading a recipe: a shipped one by its name, or a TOML file, checked as a whole."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankinite.core.errors import FileFormatError, RecipeError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import Constraint, OneOf, Real, Text, Whole
from rankinite.data.augment import FRACTION
from rankinite.measures.text import parse_measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.runs.configuration import Texts
from rankinite.runs.model_tables import DEFAULTS, MODELS, ModelTables
from rankinite.runs.recipe import (
    ALL,
    CHOICES,
    ENSEMBLE,
    EVERY,
    MOST_EXHAUSTIVE,
    NAMED,
    ORIGINAL,
    SHIPPED,
    TABLES,
    Model,
    Recipe,
    Samples,
    ScoreFeatures,
    shipped_text,
)
from rankinite.runs.toml_lines import KeyPath, Mistakes, spelled

# Of a name: with an ending it is that of a file, which has 255 bytes at most, a letter up to four.
MOST_LETTERS = 50
PLACE = re.compile(r"(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


@dataclass(frozen=True)
class AnyTable:
    """A table; what is in it is checked by itself."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a table."""
        return isinstance(value, dict)

    def __str__(self) -> str:
        return "a table"


TRAINING_SETS, FEATURES, SUBSETS = "training_sets", "features", "subsets"
TOP: Mapping[str, Constraint] = {
    "name": Text(),
    "description": Text(),
    "seed": Whole(0),
    "measures": Texts(),
    "tables": Texts(),
    **dict.fromkeys(
        ("data", TRAINING_SETS, FEATURES, DEFAULTS, MODELS, "combination", SUBSETS), AnyTable()
    ),
}
DATA: Mapping[str, Constraint] = {
    "parts": Whole(2),
    "train_parts": Whole(1),
    "folds": Whole(2),
    "top_grade": Real(0),
}
PAPERS_DATA = {"parts": 10, "train_parts": 6, "folds": 10, "top_grade": None}
SAMPLES: Mapping[str, Constraint] = {"fraction": FRACTION, "times": Whole(1)}
SCORES: Mapping[str, Constraint] = {"scores_of": Text(), "folds": Whole(2)}
COMBINATION: Mapping[str, Constraint] = {"choose": OneOf(CHOICES), "level": Real(0, 1)}


def read_recipe(given: str | Path) -> Recipe:
    """Read a recipe and check all of it.

    Parameters
    ----------
    given
        The name of a recipe that comes with the package, or a TOML file.

    Raises
    ------
    RecipeError
        Lists every mistake, with the file and the line.
    """
    if str(given) in SHIPPED:
        return recipe_of(f"{given}.toml", shipped_text(str(given)))
    path = Path(given)
    if not path.exists() and path.suffix != ".toml" and path.name == str(given):
        raise UsageError(
            f"there is no recipe {str(given)!r}; give one of {some_of(SHIPPED)}, or a TOML file"
        )
    try:
        return recipe_of(str(given), path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise FileFormatError(path, "there is no such file") from None
    except UnicodeDecodeError as problem:
        raise FileFormatError(path, f"is no TOML file: {problem}") from None


def recipe_of(owner: str, text: str) -> Recipe:
    """Return the recipe that a file holds.

    Parameters
    ----------
    owner
        What the file is called, for error messages; and the recipe, if it does not say.
    text
        What is in it.
    """
    given = _parsed(owner, text)
    return _Reader(Mistakes(owner, text), given).recipe(Path(owner).stem, text)


def _parsed(owner: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        found = PLACE.fullmatch(str(problem))
        what, line, column = found.groups() if found else (str(problem), None, None)
        last = len(text.splitlines()) or 1
        place = f"{line}:{column}" if line else str(last)
        raise RecipeError(f"{owner}:{place}: is no TOML: {what}") from None


class _Reader:
    """Reads the tables of a recipe one by one, and notes what is wrong with them."""

    def __init__(self, mistakes: Mistakes, given: Mapping[str, Any]) -> None:
        self._mistakes = mistakes
        self._given = mistakes.values((), given, TOP, {})

    def recipe(self, name: str, text: str) -> Recipe:
        """Return the recipe, if nothing is wrong with it."""
        top = self._given
        self._check_name(("name",), top.get("name", name))
        data = self._data()
        training_sets = self._training_sets()
        features = self._features()
        reader = ModelTables(
            self._mistakes, training_sets, features, data["folds"], top.get(DEFAULTS, {})
        )
        tables = top.get(MODELS, {})
        if not tables:
            self._mistakes.add((MODELS,), "there are no models; give one, such as [models.M1]")
        self._check_models(list(tables))
        models = reader.read(tables)
        self._check_scorers(features, models, tables)
        subsets = self._subsets(tables)
        choose, level = self._combination(subsets, len(tables))
        measures = self._measures()
        shown = self._tables()
        self._mistakes.refuse()
        return Recipe(
            name=top.get("name", name),
            description=top.get("description", ""),
            seed=top.get("seed", 0),
            measures=measures,
            training_sets=training_sets,
            features=features,
            models=models,
            subsets=subsets,
            choose=choose,
            level=level,
            tables=shown,
            text=text,
            **data,
        )

    def _check_name(self, path: KeyPath, name: str) -> None:
        """Note a name that no file or folder can have everywhere."""
        fits = name.strip(" .") == name != "" and name.isprintable()
        if not fits or set(name) & set('/\\:*?"<>|'):
            self._mistakes.add(
                path, f"{name!r} is to be the name of files; give one without any of "
                '/ \\ : * ? " < > |, and without a dot or a space at its ends'
            )  # fmt: skip
        elif len(name) > MOST_LETTERS:
            self._mistakes.add(
                path, f"{name!r} is to be the name of files, and has {len(name)} letters; give one "
                f"of at most {MOST_LETTERS}"
            )  # fmt: skip

    def _check_models(self, names: Sequence[str]) -> None:
        """Note names of models that are none of files, or of another's."""
        known: dict[str, str] = {}
        for name in names:
            path = (MODELS, name)
            self._check_name(path, name)
            other = known.setdefault(name.casefold(), name)
            if other != name:
                self._mistakes.add(
                    path, f"{name!r} and {other!r} are to be the names of files, and some disks "
                    "take them for the same; give names that differ in more than capital letters"
                )  # fmt: skip
            if name.casefold() == ENSEMBLE:
                self._mistakes.add(path, f"{name!r} is what the average of models is called")

    def _data(self) -> dict[str, Any]:
        found = self._mistakes.values(("data",), self._given.get("data", {}), DATA, PAPERS_DATA)
        if found["train_parts"] >= found["parts"]:
            self._mistakes.add(
                ("data", "train_parts"),
                f"data.train_parts is {found['train_parts']} of {found['parts']} parts; leave at "
                "least one to compare models on",
            )
        if found["top_grade"] is not None:
            found["top_grade"] = float(found["top_grade"])
        return found

    def _training_sets(self) -> dict[str, Samples]:
        found = {}
        for name, given in self._given.get(TRAINING_SETS, {}).items():
            path = (TRAINING_SETS, name)
            self._check_name(path, name)
            if name == ORIGINAL:
                self._mistakes.add(path, f"{name!r} is the training set that is always there")
            values = self._table(path, given, SAMPLES)
            found[name] = Samples(float(values.get("fraction", 0.5)), values.get("times", 1))
        return found

    def _features(self) -> dict[str, ScoreFeatures]:
        found = {}
        for name, given in self._given.get(FEATURES, {}).items():
            path = (FEATURES, name)
            self._check_name(path, name)
            values = self._table(path, given, SCORES, optional={"folds": 5})
            found[name] = ScoreFeatures(values.get("scores_of", ""), values["folds"])
        return found

    def _table(
        self,
        path: KeyPath,
        given: Any,
        known: Mapping[str, Constraint],
        optional: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return a table that must have every key, but for the optional ones."""
        table = self._mistakes.table(path, given)
        missing = [key for key in known if key not in table and key not in (optional or {})]
        if missing and isinstance(given, dict):
            self._mistakes.add(path, f"{spelled(path)} lacks {some_of(missing)}")
        return self._mistakes.values(path, table, known, optional or {})

    def _check_scorers(
        self,
        features: Mapping[str, ScoreFeatures],
        models: Mapping[str, Model],
        tables: Mapping[str, Any],
    ) -> None:
        """Note score features of models that are not there, or have such features themselves."""
        for name, one in features.items():
            path = (FEATURES, name, "scores_of")
            if one.scores_of and one.scores_of not in tables:
                self._mistakes.unknown(path, "model", tables, one.scores_of)
            elif one.scores_of in models:
                scorer = models[one.scores_of]
                if scorer.features is not None or scorer.trained_as is not None:
                    other = (
                        "has score features itself" if scorer.features is not None
                        else f"is trained as {scorer.trained_as!r}"
                    )  # fmt: skip
                    self._mistakes.add(
                        path, f"{spelled(path)} is {one.scores_of!r}, which {other}; name a model "
                        "that sees only the features of the data, and has a training of its own"
                    )  # fmt: skip

    def _subsets(self, models: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        found = {}
        for name, given in self._given.get(SUBSETS, {}).items():
            path = (SUBSETS, name)
            if not name.strip() or not name.isprintable():
                self._mistakes.add(path, f"{spelled(path)} has no name that a table could show")
            if not self._mistakes.check(path, given, Texts()):
                continue
            if not given:
                self._mistakes.add(path, f"{spelled(path)} is empty; name at least one model")
            for k, model in enumerate(given):
                if model not in models:
                    self._mistakes.unknown((*path, k), "model", models, model)
                elif model in given[:k]:
                    self._mistakes.add((*path, k), f"{spelled(path)} has {model!r} twice")
            found[name] = tuple(given)
        return found

    def _combination(self, subsets: Mapping[str, Any], n_models: int) -> tuple[str, float]:
        defaults = {"choose": NAMED if subsets else ALL, "level": 0.05}
        given = self._given.get("combination", {})
        found = self._mistakes.values(("combination",), given, COMBINATION, defaults)
        choose = found["choose"]
        path = ("combination", "choose")
        if choose == NAMED and not subsets and not self._given.get(SUBSETS):
            self._mistakes.add(path, "combination.choose is 'named', but [subsets] names none")
        if choose == EVERY and n_models > MOST_EXHAUSTIVE:
            self._mistakes.add(
                path, f"combination.choose is 'every', and {n_models} models have too many subsets "
                f"(up to {MOST_EXHAUSTIVE} models it can be); choose 'greedy' or 'named'"
            )  # fmt: skip
        return choose, float(found["level"])

    def _measures(self) -> tuple[str, ...]:
        texts = self._given.get("measures", ["NDCG@10", "ERR"])
        if not texts:
            self._mistakes.add(("measures",), "measures is empty; give one, such as 'NDCG@10'")
        found: list[str] = []
        for k, text in enumerate(texts):
            path = ("measures", k)
            try:
                measure = parse_measure(text)
            except UsageError as problem:
                self._mistakes.add(path, f"{spelled(path)}: {problem}")
                continue
            if isinstance(measure, TieredMeasure):
                self._mistakes.add(path, f"{text!r} is several measures; give each by itself")
            if str(measure) in found:
                self._mistakes.add(path, f"measures has {str(measure)!r} twice")
            found.append(str(measure))
        return tuple(found)

    def _tables(self) -> tuple[str, ...]:
        found = self._given.get("tables", list(TABLES))
        for k, table in enumerate(found):
            if table not in TABLES:
                self._mistakes.unknown(("tables", k), "table", TABLES, table)
        return tuple(dict.fromkeys(found))
