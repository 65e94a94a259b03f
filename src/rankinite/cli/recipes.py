"""``rankinite recipe list``, ``show`` and ``check``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rankinite.cli.options import RecipeName
from rankinite.cli.terminal import Terminal


def list_recipes(*, terminal: Terminal) -> None:
    """List the recipes that come with the package."""
    from rankinite.experiments.recipes.shipped import shipped_tables

    rows = [(name, len(given["models"]), str(given["description"]))
            for name, given in shipped_tables().items()]  # fmt: skip
    if terminal.json:
        keys = ("name", "models", "description")
        terminal.show_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    # To the left, as the terminal puts numbers to the right.
    width = max(len(description) for *_, description in rows)
    cells = [[name, f"{n}", description.ljust(width)] for name, n, description in rows]
    terminal.show_table("Recipes", ["Recipe", "Models", "Description".ljust(width)], cells)


# The command's name, which is a built-in's as well.
list_recipes.__name__ = "list"


def show(
    name: Annotated[
        str, typer.Argument(metavar="RECIPE", help="winner, winner-small or winner-tiny.")
    ],
    *,
    terminal: Terminal,
) -> None:
    """Print a recipe of the package: with > mine.toml, the beginning of one's own."""
    from rankinite.experiments.recipes.shipped import shipped_text

    text = shipped_text(name)
    if terminal.json:
        terminal.show_json({"name": name, "text": text})
    else:
        sys.stdout.write(text)


def check(
    recipe: RecipeName,
    *,
    terminal: Terminal,
) -> None:
    """Check a recipe whole: list all mistakes with their lines, or say how much it trains."""
    from rankinite.experiments.recipes.read import read_recipe
    from rankinite.experiments.recipes.trainings import n_trainings

    found = read_recipe(recipe)
    first, second = n_trainings(found)
    if terminal.json:
        terminal.show_json(
            {"recipe": found.name, "models": list(found.models), "trainings": [first, second]}
        )
        return
    word = "model" if len(found.models) == 1 else "models"
    terminal.say(
        f"{recipe} is sound: {len(found.models)} {word}, {first} trainings in the first stage and "
        f"{second} in the second if all are chosen"
    )
