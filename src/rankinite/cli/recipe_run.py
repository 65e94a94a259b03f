"""``rankinite recipe run``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.findings import show_written_findings
from rankinite.cli.options import (
    Cluster,
    Jobs,
    Loading,
    RecipeName,
    TrainFile,
    check_place,
)
from rankinite.cli.targets import refuse_file_as_folder
from rankinite.cli.terminal import Terminal
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
    from rankinite.experiments.recipes.read import read_recipe
    from rankinite.experiments.runs.run import run_recipe

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
    show_written_findings(terminal, done.tables, done.written)


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
