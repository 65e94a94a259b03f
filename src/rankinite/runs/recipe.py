"""A recipe as a value: data preparation, models, and how they are combined."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.core.format import some_of

# The training set that every recipe has.
ORIGINAL = "original"

# What the average of the models is called.
ENSEMBLE = "ensemble"

# How the subset of models is chosen by the first stage.
NAMED, EVERY, GREEDY, ALL = "named", "every", "greedy", "all"
CHOICES = (NAMED, EVERY, GREEDY, ALL)
# Of so many models every subset can be measured: there are 32,767.
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
    """Features of a query that are made of another model's scores, see `score_features`.

    Attributes
    ----------
    scores_of
        The model.
    folds
        Training documents get the scores of that model fitted to the other folds, never of one
        that has seen them.
    """

    scores_of: str
    folds: int


@dataclass(frozen=True)
class Model:
    """A model of a recipe.

    Attributes
    ----------
    name, description
        What it is called, such as M1; and what it is.
    ranker, parameters
        The name of the ranker's class, and all its parameters but base and random_state.
    train
        The training set: ``"original"``, or the name of one of the recipe's.
    features
        The name of score features that it sees besides, if any.
    bags
        How many trainings there are in the second stage, each with another fold for validation;
        their raw scores are averaged.
    trained_as
        The model whose training is taken, if it has none of its own: only what is said of the
        scores differs.
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
        What it is called, and what it is for.
    seed
        Of every random choice; the children of a model depend on its name alone.
    measures
        What tables show, as texts; the first decides.
    top_grade
        The largest label there can be; None if the data tell.
    parts, train_parts
        Training queries are cut into so many parts; the first stage trains on the first of them,
        and compares models on the rest.
    folds
        Of what a stage trains on, one fold of so many is for validation.
    training_sets, features, models
        By name.
    subsets
        Subsets of models to measure, by name.
    choose, level
        How the first stage chooses the models of the ensemble, one of `CHOICES`; and below which
        p-value a subset is better than all models.
    tables
        Which tables to print, of `TABLES`.
    text
        The file.
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


SHIPPED = ("winner", "winner-small", "winner-tiny")


def shipped_text(name: str) -> str:
    """Return the file of a recipe that comes with the package."""
    if name not in SHIPPED:
        raise UsageError(f"there is no recipe {name!r} in the package; it has {some_of(SHIPPED)}")
    return (resources.files(__package__) / "recipes" / f"{name}.toml").read_text("utf-8")


def shipped_tables() -> dict[str, dict[str, Any]]:
    """Return what the recipes of the package say, by name; nothing heavy is imported for it."""
    return {name: tomllib.loads(shipped_text(name)) for name in SHIPPED}


def own_trainings(recipe: Recipe) -> list[Model]:
    """Return the models that are trained, and do not take the training of another."""
    return [model for model in recipe.models.values() if model.trained_as is None]


def n_trainings(recipe: Recipe) -> tuple[int, int]:
    """Return how many trainings the two stages have, if the second is of all models.

    Those are counted that give training documents their out-of-fold scores.
    """
    models = own_trainings(recipe)
    used = {model.features for model in models}
    folds = sum(one.folds for name, one in recipe.features.items() if name in used)
    return len(models) + folds, sum(model.bags for model in models) + folds
