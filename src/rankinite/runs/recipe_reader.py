"""Reading a recipe: a shipped one by its name, or a TOML file, checked as a whole."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rankinite.core.errors import FileFormatError, RecipeError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import SEED, Constraint, OneOf, Real, Text, Whole
from rankinite.data.augment import FRACTION
from rankinite.measures.text import parse_measure
from rankinite.measures.tiers import TieredMeasure
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
from rankinite.runs.recipe_models import DEFAULTS, MODELS, ModelTables
from rankinite.runs.toml import AnyTable, KeyPath, Mistakes, Texts, spelled

# Longest name of a model. With a suffix it names a file, and many file systems allow 255 bytes, of
# which a letter can take four.
MOST_LETTERS = 50
PLACE = re.compile(r"(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


TRAINING_SETS, FEATURES, SUBSETS = "training_sets", "features", "subsets"
TOP: Mapping[str, Constraint] = {
    "name": Text(),
    "description": Text(),
    "seed": SEED,
    "measures": Texts(),
    "tables": Texts(),
    **dict.fromkeys(
        ("data", TRAINING_SETS, FEATURES, DEFAULTS, MODELS, ENSEMBLE, SUBSETS), AnyTable()
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
# `folds` are of the model whose scores they are, not those of [data].
SCORES: Mapping[str, Constraint] = {"scores_of": Text(), "folds": Whole(2)}
# What the section was called once.
FORMER_ENSEMBLE = "combination"
ENSEMBLE_KEYS: Mapping[str, Constraint] = {"choose": OneOf(CHOICES), "level": Real(0, 1)}


def read_recipe(source: str | Path) -> Recipe:
    """Read a recipe and check all of it.

    Parameters
    ----------
    source
        Name of a recipe that comes with the package, or a TOML file.

    Raises
    ------
    RecipeError
        Lists every mistake, with the file and the line.
    """
    # A shipped name means the shipped recipe, whatever files there are.
    if str(source) in SHIPPED:
        return recipe_of(f"{source}.toml", shipped_text(str(source)))
    path = Path(source)
    if not path.exists() and path.suffix != ".toml" and path.name == str(source):
        raise UsageError(
            f"there is no recipe {str(source)!r}; give one of {some_of(SHIPPED)}, or a TOML file"
        )
    try:
        # Some editors put a byte order mark in front, which tomllib would refuse.
        return recipe_of(str(source), path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise FileFormatError(path, "there is no such file") from None
    except UnicodeDecodeError as problem:
        raise FileFormatError(path, f"is no TOML file: {problem}") from None


def recipe_of(owner: str, text: str) -> Recipe:
    """Return the recipe of a TOML text.

    Parameters
    ----------
    owner
        Name of the file, for error messages; without a suffix it is the name of a recipe that does
        not have one.
    text
        Its content.
    """
    tables = _parsed(owner, text)
    return _Reader(Mistakes(owner, text), tables).recipe(Path(owner).stem, text)


def _parsed(owner: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        # tomllib tells the place in its message alone; ours begins with it, as a compiler's does.
        match = PLACE.fullmatch(str(problem))
        what, line, column = match.groups() if match else (str(problem), None, None)
        last = len(text.splitlines()) or 1
        place = f"{line}:{column}" if line else str(last)
        raise RecipeError(f"{owner}:{place}: is no TOML: {what}") from None


class _Reader:
    """Reads the tables of a recipe one by one, and collects their mistakes."""

    def __init__(self, mistakes: Mistakes, tables: Mapping[str, Any]) -> None:
        self._mistakes = mistakes
        sections = {key: value for key, value in tables.items() if key != FORMER_ENSEMBLE}
        if FORMER_ENSEMBLE in tables:
            mistakes.add(
                (FORMER_ENSEMBLE,),
                f"there is no key {FORMER_ENSEMBLE!r}; the section is called [{ENSEMBLE}]",
            )
        self._top = mistakes.values((), sections, TOP, {})

    def recipe(self, name: str, text: str) -> Recipe:
        """Return the recipe; raise an error that lists all mistakes, if there are any."""
        top = self._top
        self._check_name(("name",), top.get("name", name))
        data = self._data()
        training_sets = self._training_sets()
        # In this order: models name training sets and features, and subsets name models.
        features = self._features()
        reader = ModelTables(
            self._mistakes, training_sets, features, data["folds"], top.get(DEFAULTS, {})
        )
        tables = top.get(MODELS, {})
        if not tables:
            self._mistakes.add((MODELS,), "there are no models; give one, such as [models.M1]")
        self._check_models(list(tables))
        models = reader.read(tables)
        # Only now it is known which models have features of their own.
        self._check_scorers(features, models, tables)
        subsets = self._subsets(tables)
        choose, level = self._ensemble(subsets, len(tables))
        measures = self._measures()
        shown = self._tables()
        # Only here, so that the author of a recipe sees all mistakes at once.
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
        """Refuse a name that a file or folder cannot have on every system."""
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
        """Refuse names of models that cannot be names of files, or that another model has."""
        known: dict[str, str] = {}
        for name in names:
            path = (MODELS, name)
            self._check_name(path, name)
            # File systems of macOS and Windows do not tell capital letters apart.
            other = known.setdefault(name.casefold(), name)
            if other != name:
                self._mistakes.add(
                    path, f"{name!r} and {other!r} are to be the names of files, and some disks "
                    "take them for the same; give names that differ in more than capital letters"
                )  # fmt: skip
            if name.casefold() == ENSEMBLE:
                self._mistakes.add(path, f"{name!r} is the name of the average of all models")

    def _data(self) -> dict[str, Any]:
        data = self._mistakes.values(("data",), self._top.get("data", {}), DATA, PAPERS_DATA)
        if data["train_parts"] >= data["parts"]:
            self._mistakes.add(
                ("data", "train_parts"),
                f"data.train_parts is {data['train_parts']} of {data['parts']} parts; leave at "
                "least one to compare models on",
            )
        # TOML reads 4 as a whole number.
        if data["top_grade"] is not None:
            data["top_grade"] = float(data["top_grade"])
        return data

    def _training_sets(self) -> dict[str, Samples]:
        training_sets = {}
        for name, table in self._top.get(TRAINING_SETS, {}).items():
            path = (TRAINING_SETS, name)
            self._check_name(path, name)
            if name == ORIGINAL:
                self._mistakes.add(path, f"{name!r} is the training set that is always there")
            values = self._table(path, table, SAMPLES)
            # The defaults only stand in for values with mistakes, which are refused in the end.
            fraction, times = values.get("fraction", 0.5), values.get("times", 1)
            training_sets[name] = Samples(float(fraction), times)
        return training_sets

    def _features(self) -> dict[str, ScoreFeatures]:
        features = {}
        for name, table in self._top.get(FEATURES, {}).items():
            path = (FEATURES, name)
            self._check_name(path, name)
            values = self._table(path, table, SCORES, optional={"folds": 5})
            features[name] = ScoreFeatures(values.get("scores_of", ""), values["folds"])
        return features

    def _table(
        self,
        path: KeyPath,
        value: Any,
        known: Mapping[str, Constraint],
        optional: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return a table that must have every key except the optional ones."""
        table = self._mistakes.table(path, value)
        missing = [key for key in known if key not in table and key not in (optional or {})]
        if missing and isinstance(value, dict):
            self._mistakes.add(path, f"{spelled(path)} lacks {some_of(missing)}")
        return self._mistakes.values(path, table, known, optional or {})

    def _check_scorers(
        self,
        features: Mapping[str, ScoreFeatures],
        models: Mapping[str, Model],
        tables: Mapping[str, Any],
    ) -> None:
        """Refuse score features of unknown models, and of models with score features."""
        for name, spec in features.items():
            path = (FEATURES, name, "scores_of")
            if spec.scores_of and spec.scores_of not in tables:
                self._mistakes.unknown(path, "model", tables, spec.scores_of)
            elif spec.scores_of in models:
                scorer = models[spec.scores_of]
                if scorer.features is not None or scorer.trained_as is not None:
                    other = (
                        "has score features itself" if scorer.features is not None
                        else f"is trained as {scorer.trained_as!r}"
                    )  # fmt: skip
                    self._mistakes.add(
                        path, f"{spelled(path)} is {spec.scores_of!r}, which {other}; name a model "
                        "that sees only the features of the data, and has a training of its own"
                    )  # fmt: skip

    def _subsets(self, models: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        subsets = {}
        for name, members in self._top.get(SUBSETS, {}).items():
            path = (SUBSETS, name)
            if not name.strip() or not name.isprintable():
                self._mistakes.add(path, f"{spelled(path)} has no name that a table could show")
            if not self._mistakes.check(path, members, Texts()):
                continue
            if not members:
                self._mistakes.add(path, f"{spelled(path)} is empty; name at least one model")
            for k, model in enumerate(members):
                if model not in models:
                    self._mistakes.unknown((*path, k), "model", models, model)
                elif model in members[:k]:
                    self._mistakes.add((*path, k), f"{spelled(path)} has {model!r} twice")
            subsets[name] = tuple(members)
        return subsets

    def _ensemble(self, subsets: Mapping[str, Any], n_models: int) -> tuple[str, float]:
        # Whoever names subsets wants to choose among them.
        defaults = {"choose": NAMED if subsets else ALL, "level": 0.05}
        table = self._top.get(ENSEMBLE, {})
        values = self._mistakes.values((ENSEMBLE,), table, ENSEMBLE_KEYS, defaults)
        choose = values["choose"]
        path = (ENSEMBLE, "choose")
        if choose == NAMED and not subsets and not self._top.get(SUBSETS):
            self._mistakes.add(path, "ensemble.choose is 'named', but [subsets] names none")
        if choose == EVERY and n_models > MOST_EXHAUSTIVE:
            self._mistakes.add(
                path, f"ensemble.choose is 'every', and {n_models} models have too many subsets "
                f"(up to {MOST_EXHAUSTIVE} models it can be); choose 'greedy' or 'named'"
            )  # fmt: skip
        return choose, float(values["level"])

    def _measures(self) -> tuple[str, ...]:
        texts = self._top.get("measures", ["NDCG@10", "ERR"])
        if not texts:
            self._mistakes.add(("measures",), "measures is empty; give one, such as 'NDCG@10'")
        measures: list[str] = []
        for k, text in enumerate(texts):
            path = ("measures", k)
            try:
                measure = parse_measure(text)
            except UsageError as problem:
                self._mistakes.add(path, f"{spelled(path)}: {problem}")
                continue
            if isinstance(measure, TieredMeasure):
                self._mistakes.add(path, f"{text!r} is several measures; give each by itself")
            if str(measure) in measures:
                self._mistakes.add(path, f"measures has {str(measure)!r} twice")
            measures.append(str(measure))
        return tuple(measures)

    def _tables(self) -> tuple[str, ...]:
        names = self._top.get("tables", list(TABLES))
        for k, table in enumerate(names):
            if table not in TABLES:
                self._mistakes.unknown(("tables", k), "table", TABLES, table)
        # A table that is asked for twice is printed once.
        return tuple(dict.fromkeys(names))
