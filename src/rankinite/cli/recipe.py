"""``rankinite recipe``: run, report, list, show and check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.options import Loading, RecipeName, TrainFile, Workers
from rankinite.cli.outputs import Outputs, refuse_file_as_folder, refuse_overwriting
from rankinite.cli.pipes import is_pipe
from rankinite.cli.terminal import Terminal, resume_note
from rankinite.core.errors import FileFormatError

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData


def run(
    recipe: RecipeName,
    train: TrainFile,
    valid: Annotated[
        Path | None,
        typer.Option(
            help="Validation data to evaluate the final models on; nothing is learned from them."
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="Test data to evaluate the final models and their ensemble on."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of the run. (Default: the recipe's name.)"),
    ] = None,
    *,
    workers: Workers,
    outputs: Outputs,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Train the models of a recipe, choose among them, train these again, and average them.

    The folder holds the ensemble as one model file, every model, their scores and measures, tables
    and report.html. After an interruption at any moment the same command resumes, and ends with
    the same bytes; after a change to the recipe it trains what the change concerns.
    """
    from rankinite.report.page import write_report
    from rankinite.runs.recipe_reader import read_recipe
    from rankinite.runs.run import check_folder, result_files, run_recipe

    workers.check("recipe run")
    chosen = read_recipe(recipe)
    target = Path(chosen.name) if out is None else out
    refuse_file_as_folder(target)
    check_folder(chosen, target, force=outputs.force)
    refuse_overwriting(
        "recipe run", [target / name for name in result_files(chosen)], [train, valid, test]
    )
    loading = loading.with_grade_of("recipe run", chosen)
    others = {"valid": valid, "test": test}
    sets = _load_sets(loading, terminal, train, others, chosen.categorical_features)
    with resume_note(target):
        done = run_recipe(
            chosen,
            # No reference stays here: the run releases the data once they are in its folder.
            train=sets.pop("train"),
            valid=sets.pop("valid", None),
            test=sets.pop("test", None),
            out=target,
            jobs=workers.jobs,
            cluster=workers.cluster,
            force=outputs.force,
            progress=terminal.progress(lines=True),
        )
    terminal.show_summary(done.tables, [*done.written, write_report(done)])


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder of a finished run or sweep."),
    ],
    *,
    terminal: Terminal,
) -> None:
    """Render the tables and the report of a finished run or sweep again; nothing is trained.

    A run gets tables.md, tables.json and report.html, a sweep recipe.toml, trials.csv, sweep.json
    and sweep.html, with the same bytes as before unless rankinite writes them differently now.
    """
    from rankinite.report.page import write_report
    from rankinite.report.sweep_page import write_sweep_report
    from rankinite.runs.run import open_run
    from rankinite.runs.store import SETTINGS
    from rankinite.sweeps.results import write_results
    from rankinite.sweeps.sweep import open_sweep

    if not folder.is_dir():
        raise FileFormatError(folder, "there is no such folder")
    # Only the folder of a sweep has this file.
    if (folder / SETTINGS).exists():
        sweep = write_results(open_sweep(folder))
        terminal.show_summary(sweep.summary(), [*sweep.written, write_sweep_report(sweep)])
        return
    opened = open_run(folder)
    written = [*opened.tables.save(folder), write_report(opened)]
    terminal.show_summary(opened.tables, written)


def _load_sets(
    loading: Loading,
    terminal: Terminal,
    train: Path,
    others: Mapping[str, Path | None],
    categorical: Sequence[str],
) -> dict[str, RankingData]:
    """Load the training data, and the other data sets that were named."""
    named = {name: path for name, path in others.items() if path is not None}
    loading.refuse_query_file("recipe run", 1 + len(named))
    # All of them, before the first is read: that may take minutes.
    for path in (train, *named.values()):
        if not path.exists() and not is_pipe(path):
            raise FileFormatError(path, "there is no such file")
    data = loading.load(train, terminal, categorical=categorical)
    loaded = {name: loading.load_alike(data, train, path, terminal) for name, path in named.items()}
    return {"train": data, **loaded}


def list_recipes(*, terminal: Terminal) -> None:
    """List the recipes that come with the package."""
    from rankinite.runs.recipe import shipped_tables

    rows = [
        (name, len(table["models"]), str(table["description"]))
        for name, table in shipped_tables().items()
    ]
    if terminal.json:
        keys = ("name", "models", "description")
        terminal.show_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    # Padded, as the terminal aligns all columns but the first to the right.
    width = max(len(description) for *_, description in rows)
    cells = [[name, f"{n}", description.ljust(width)] for name, n, description in rows]
    terminal.show_table("Recipes", ["Recipe", "Models", "Description".ljust(width)], cells)


# The name of the command, which is also that of a built-in.
list_recipes.__name__ = "list"


def show(
    name: Annotated[
        str, typer.Argument(metavar="RECIPE", help="winner, winner-small or winner-tiny.")
    ],
    *,
    terminal: Terminal,
) -> None:
    """Print a recipe of the package; with > mine.toml it is a start for your own."""
    from rankinite.runs.recipe import shipped_text

    text = shipped_text(name)
    if terminal.json:
        terminal.show_json({"name": name, "text": text})
    else:
        terminal.show_file(text)


def check(
    recipe: RecipeName,
    *,
    terminal: Terminal,
) -> None:
    """Check a recipe: list all mistakes with their lines, or the number of its trainings."""
    from rankinite.runs.recipe import n_trainings
    from rankinite.runs.recipe_reader import read_recipe

    checked = read_recipe(recipe)
    first, second = n_trainings(checked)
    if terminal.json:
        terminal.show_json(
            {"recipe": checked.name, "models": list(checked.models), "trainings": [first, second]}
        )
        return
    word = "model" if len(checked.models) == 1 else "models"
    terminal.say(
        f"{recipe} is sound: {len(checked.models)} {word}, {first} trainings in the first stage "
        f"and {second} in the second if all are chosen"
    )
