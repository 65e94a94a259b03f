"""The recipe with the best parameters of a model, and all its comments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rankinite.core.errors import RecipeError, UsageError
from rankinite.runs.configuration import toml_of
from rankinite.runs.model_tables import MODELS
from rankinite.runs.recipe import Recipe
from rankinite.runs.recipe_reader import recipe_of
from rankinite.runs.toml_lines import KeyPath, Span, key_positions

RANKER = "ranker"
LAST_KEY = re.compile(rf"""["']?{RANKER}["']?([ \t]*=[ \t]*)$""")


def with_parameters(recipe: Recipe, model: str, parameters: Mapping[str, Any]) -> str:
    """Return the text of a recipe in which a model has other parameters.

    Parameters
    ----------
    recipe
        The recipe.
    model
        Name of the model.
    parameters
        The new parameters; all others, and all comments, stay.
    """
    text = recipe.text
    # In reverse, as each new one is inserted directly after the ranker.
    for name, value in reversed(list(parameters.items())):
        text = _with_parameter(text, model, name, toml_of(value))
    changes = ", ".join(f"{name} = {toml_of(value)}" for name, value in parameters.items())
    try:
        changed = recipe_of(recipe.name, text).models[model].parameters
    except RecipeError as problem:
        raise UsageError(
            f"sweep: with {changes} of {model} the recipe is invalid: {problem}"
        ) from None
    if dict(changed) != {**recipe.models[model].parameters, **parameters}:
        raise UsageError(
            f"sweep: the recipe cannot be edited automatically; write {changes} into "
            f"[models.{model}]"
        )
    return text


def _with_parameter(text: str, model: str, name: str, value: str) -> str:
    positions = key_positions(text)
    path: KeyPath = (MODELS, model, name)
    if path in positions:
        span = positions[path]
        return text[: span.value] + value + text[span.end :]
    # Every model that is trained has a ranker, after which new parameters stand.
    return _after_ranker(text, positions[MODELS, model, RANKER], name, value)


def _after_ranker(text: str, ranker: Span, name: str, value: str) -> str:
    key = LAST_KEY.sub(rf"{name}\1", text[ranker.key : ranker.value])
    begin = text.rfind("\n", 0, ranker.key) + 1
    indent = text[begin : ranker.key]
    if indent.strip():  # within an inline table
        return f"{text[: ranker.end]}, {key}{value}{text[ranker.end :]}"
    end = text.find("\n", ranker.end)
    head, rest = (text, "") if end < 0 else (text[:end], text[end:])
    return f"{head}\n{indent}{key}{value}{rest}"
