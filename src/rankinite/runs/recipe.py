"""A recipe as a value: data preparation, models, and how they become an ensemble."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.core.format import some_of

# Name of the training set that every recipe has.
ORIGINAL = "original"

# Name of the average of the chosen models.
ENSEMBLE = "ensemble"

# How the first stage chooses the members of the ensemble.
NAMED, EVERY, GREEDY, ALL = "named", "every", "greedy", "all"
CHOICES = (NAMED, EVERY, GREEDY, ALL)
# Largest number of models of which every subset is measured: there are 32,767 subsets.
MOST_EXHAUSTIVE = 15

MEMBERS_TABLE, SUBSETS_TABLE, FINAL_TABLE = "members", "subsets", "final"
P_VALUES_TABLE, ORACLE_TABLE = "p-values", "oracle"
TABLES = (MEMBERS_TABLE, SUBSETS_TABLE, FINAL_TABLE, P_VALUES_TABLE, ORACLE_TABLE)


@dataclass(frozen=True)
class Samples:
    """A training set with samples of every query's documents, see `augment`."""

    fraction: float
    times: int


@dataclass(frozen=True)
class ScoreFeatures:
    """Features that are made of another model's scores, see `score_features`.

    Attributes
    ----------
    scores_of
        Name of the other model.
    folds
        Number of folds. Training documents get scores of that model fitted to the other folds,
        never of a model that has seen them.
    """

    scores_of: str
    folds: int


@dataclass(frozen=True)
class Model:
    """A model of a recipe.

    Attributes
    ----------
    name, description
        Name, such as M1, and a short description.
    ranker, parameters
        Name of the ranker's class, and all its parameters except base and random_state.
    train
        Name of the training set: ``"original"``, or one of the recipe's.
    features
        Name of additional score features, if any.
    bags
        Number of trainings in the second stage, each with another fold for validation; their raw
        scores are averaged.
    trained_as
        Name of the model whose trainings it takes, if any: it differs in parameters that only
        affect scores.
    """

    name: str
    description: str
    ranker: str
    parameters: Mapping[str, Any]
    train: str = ORIGINAL
    features: str | None = None
    bags: int = 1
    trained_as: str | None = None


@dataclass(frozen=True)
class Recipe:
    """A recipe.

    Attributes
    ----------
    name, description
        Name, and a short description.
    seed
        Random seed. The seeds of a model's trainings depend on it and on the name of the model: to
        add a model changes no other.
    measures
        Measures of the tables, as texts; the first decides.
    top_grade
        The largest possible label; None to take it from the data.
    parts, train_parts
        Number of parts of the training queries, and of those that the first stage trains on; it
        compares models on the others.
    folds
        Number of folds of the queries that a stage trains on; one of them is for validation.
    training_sets, features, models
        Augmented training sets, score features and models, by name.
    subsets
        Subsets of models to measure, by name.
    choose, level
        How the first stage chooses the members of the ensemble, one of `CHOICES`; and the p-value
        below which a subset is better than all models.
    tables
        The tables to print, of `TABLES`.
    text
        Text of the TOML file.
    """

    name: str
    description: str
    seed: int
    measures: tuple[str, ...]
    top_grade: float | None
    parts: int
    train_parts: int
    folds: int
    training_sets: Mapping[str, Samples]
    features: Mapping[str, ScoreFeatures]
    models: Mapping[str, Model]
    subsets: Mapping[str, tuple[str, ...]]
    choose: str
    level: float
    tables: tuple[str, ...]
    text: str

    @property
    def categorical_features(self) -> list[str]:
        """The features that some model names as categorical."""
        named = [m.parameters.get("categorical_features", "") for m in self.models.values()]
        lists = [features for features in named if not isinstance(features, str)]
        return sorted({name for names in lists for name in names if isinstance(name, str)})


# The recipes of the package; each is a file in recipes/.
SHIPPED = ("winner", "winner-small", "winner-tiny")


def shipped_text(name: str) -> str:
    """Return the text of a recipe that comes with the package."""
    if name not in SHIPPED:
        raise UsageError(f"there is no recipe {name!r} in the package; it has {some_of(SHIPPED)}")
    return (resources.files(__package__) / "recipes" / f"{name}.toml").read_text("utf-8")


def shipped_tables() -> dict[str, dict[str, Any]]:
    """Return the tables of all recipes of the package, by name; nothing heavy is imported."""
    # Not through the reader, which imports all rankers: this answers a listing at once.
    return {name: tomllib.loads(shipped_text(name)) for name in SHIPPED}


def trained_models(recipe: Recipe) -> list[Model]:
    """Return the models that are trained, and do not take the trainings of another."""
    return [model for model in recipe.models.values() if model.trained_as is None]


def n_trainings(recipe: Recipe) -> tuple[int, int]:
    """Return the numbers of trainings of both stages, if the second trains all models.

    Trainings for out-of-fold scores of training documents are included.
    """
    models = trained_models(recipe)
    used = {model.features for model in models}
    # Features that no model uses are never made.
    folds = sum(spec.folds for name, spec in recipe.features.items() if name in used)
    return len(models) + folds, sum(model.bags for model in models) + folds
