"""A recipe with other parameters of one of its models; all else stays as it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rankinite.core.errors import RecipeError, UsageError
from rankinite.runs.configuration import toml_of
from rankinite.runs.model_tables import MODELS
from rankinite.runs.recipe import Recipe
from rankinite.runs.recipe_reader import recipe_of
from rankinite.runs.toml_lines import KeyPath, Span, key_spans

RANKER = "ranker"
LAST_KEY = re.compile(rf"""["']?{RANKER}["']?([ \t]*=[ \t]*)$""")


def with_parameters(recipe: Recipe, model: str, parameters: Mapping[str, Any]) -> str:
    """Return the text of a recipe in which a model has other parameters.

    Parameters
    ----------
    recipe
        The recipe.
    model
        The name of the model.
    parameters
        What it is to have; the rest of its parameters, and all comments, stay.
    """
    text = recipe.text
    # The last first, as each of them that is new comes directly behind the ranker.
    for name, value in reversed(list(parameters.items())):
        text = _with_one(text, model, name, toml_of(value))
    said = ", ".join(f"{name} = {toml_of(value)}" for name, value in parameters.items())
    try:
        found = recipe_of(recipe.name, text).models[model].parameters
    except RecipeError as problem:
        raise UsageError(
            f"sweep: with {said} of {model} the recipe is none any more: {problem}"
        ) from None
    if dict(found) != {**recipe.models[model].parameters, **parameters}:
        raise UsageError(
            f"sweep: the recipe cannot be changed by itself; write {said} into [models.{model}]"
        )
    return text


def _with_one(text: str, model: str, name: str, value: str) -> str:
    spans = key_spans(text)
    path: KeyPath = (MODELS, model, name)
    if path in spans:
        span = spans[path]
        return text[: span.value] + value + text[span.end :]
    # Every model that is trained has a ranker: what is new stands behind it.
    return _behind(text, spans[MODELS, model, RANKER], name, value)


def _behind(text: str, ranker: Span, name: str, value: str) -> str:
    key = LAST_KEY.sub(rf"{name}\1", text[ranker.key : ranker.value])
    begin = text.rfind("\n", 0, ranker.key) + 1
    indent = text[begin : ranker.key]
    if indent.strip():  # within a table of one line
        return f"{text[: ranker.end]}, {key}{value}{text[ranker.end :]}"
    end = text.find("\n", ranker.end)
    head, rest = (text, "") if end < 0 else (text[:end], text[end:])
    return f"{head}\n{indent}{key}{value}{rest}"
