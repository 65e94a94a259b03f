"""``rankinite recipe run``."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rankinite.cli.findings import show_written_findings
from rankinite.cli.options import Jobs, Loading, refuse_narrow_text
from rankinite.cli.targets import refuse_file_as_folder
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError

log = logging.getLogger("rankinite")


def run(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="winner, winner-small, winner-tiny, or a TOML file.",
            show_default=False,
        ),
    ],
    train: Annotated[Path, typer.Option("--train", help="The training data.", show_default=False)],
    valid: Annotated[
        Path | None,
        typer.Option(help="Data for the last table; nothing is learned from them."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="The test data, for the last table and the report.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder of the run. (Default: the recipe's name.)"),
    ] = None,
    jobs: Jobs = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="<address>",
            help="Train on a Dask cluster: the scheduler's address, or local:4. Its workers must "
            "see the folder of the run.",
        ),
    ] = None,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Train the models of a recipe, choose among them, train again, and make them one.

    The folder holds the ensemble as one model file, every model, their scores and measures, tables
    and report.html. Stopped at any moment, the same command goes on where it was, to the same
    bytes; after a change to the recipe it does what the change needs.
    """
    from rankinite.experiments.recipes.read import read_recipe
    from rankinite.experiments.runs.run import run_recipe

    if jobs is not None and cluster is not None:
        raise UsageError("recipe run: --jobs is for this machine, --cluster for others; say one")
    chosen = read_recipe(recipe)
    target = Path(chosen.name) if out is None else out
    refuse_file_as_folder(target)
    if loading.query_file is not None and (valid or test):
        raise UsageError(
            "recipe run: --query-file belongs to one data set, and here are several; put the group "
            "sizes of each beside it, as FILE.query"
        )
    if loading.top_grade is None:
        loading = replace(loading, top_grade=chosen.top_grade)
    terminal.expect_compiling()
    data = loading.load(train, terminal)
    others = {}
    for name, path in (("valid", valid), ("test", test)):
        if path is not None:
            others[name] = loading.load_like(data, train, path, terminal)
            refuse_narrow_text(path, others[name], data.feature_names)
    try:
        done = run_recipe(
            chosen,
            data,
            others.get("valid"),
            others.get("test"),
            out=target,
            jobs=jobs,
            cluster=cluster,
            progress=terminal.progress(lines=True),
        )
    except KeyboardInterrupt:
        log.info("stopped; %s keeps what is done, and the same command goes on from there", target)
        raise
    show_written_findings(terminal, done.tables, done.written)
