"""``rankinite recipe run``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.options import (
    Cluster,
    Jobs,
    Loading,
    RecipeName,
    TrainFile,
    check_place,
)
from rankinite.cli.outputs import refuse_file_as_folder
from rankinite.cli.terminal import Terminal, show_written_summary
from rankinite.core.errors import FileFormatError, UsageError

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData

log = logging.getLogger("rankinite")


def run(
    recipe: RecipeName,
    train: TrainFile,
    valid: Annotated[
        Path | None,
        typer.Option(help="More data to measure the final models on; nothing is learned from it."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="The test data, for the final models and their ensemble.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder of the run. (Default: the recipe's name.)"),
    ] = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Train the models of a recipe, choose among them, train again, and make them one.

    The folder holds the ensemble as one model file, every model, their scores and measures, tables
    and report.html. Stopped at any moment, the same command goes on where it was, to the same
    bytes; after a change to the recipe it does what the change needs.
    """
    from rankinite.runs.recipe_reader import read_recipe
    from rankinite.runs.run import run_recipe

    check_place("recipe run", jobs, cluster)
    chosen = read_recipe(recipe)
    target = Path(chosen.name) if out is None else out
    refuse_file_as_folder(target)
    loading = loading.with_grade_of("recipe run", chosen)
    terminal.expect_compiling()
    sets = _load_sets(loading, terminal, train, {"valid": valid, "test": test})
    try:
        done = run_recipe(
            chosen,
            # Nothing here is to hold the data while the run works with what it has written.
            train=sets.pop("train"),
            valid=sets.pop("valid", None),
            test=sets.pop("test", None),
            out=target,
            jobs=jobs,
            cluster=cluster,
            progress=terminal.progress(lines=True),
        )
    except KeyboardInterrupt:
        log.info("stopped; %s keeps what is done, and the same command goes on from there", target)
        raise
    show_written_summary(terminal, done.tables, done.written)


def _load_sets(
    loading: Loading, terminal: Terminal, train: Path, others: Mapping[str, Path | None]
) -> dict[str, RankingData]:
    """Load the training data, and all others that were named."""
    named = {name: path for name, path in others.items() if path is not None}
    if loading.query_file is not None and named:
        raise UsageError(
            "recipe run: --query-file belongs to one data set, and here are several; put the group "
            "sizes of each beside it, as FILE.query"
        )
    for path in (train, *named.values()):
        if not path.exists():
            raise FileFormatError(path, "there is no such file")
    data = loading.load(train, terminal)
    found = {name: loading.load_alike(data, train, path, terminal) for name, path in named.items()}
    return {"train": data, **found}


def list_recipes(*, terminal: Terminal) -> None:
    """List the recipes that come with the package."""
    from rankinite.runs.recipe import shipped_tables

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
    from rankinite.runs.recipe import shipped_text

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
    from rankinite.runs.recipe import n_trainings
    from rankinite.runs.recipe_reader import read_recipe

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
