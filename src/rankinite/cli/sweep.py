"""``rankinite sweep``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

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
from rankinite.cli.searching import Searching
from rankinite.cli.terminal import Terminal, show_written_summary

log = logging.getLogger("rankinite")


def sweep(
    *,
    recipe: RecipeName,
    model: Annotated[
        str, typer.Option("--model", help="The model of the recipe to sweep.", show_default=False)
    ],
    train: TrainFile,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder of the sweep.", show_default=False)
    ],
    searching: Searching,
    jobs: Jobs = None,
    cluster: Cluster = None,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Search for better parameters of a recipe's model, by cross-validation over queries.

    Every trial trains one model a fold and takes the mean over the held-out folds; the recipe's own
    parameters are measured in the same way. The folder gets recipe.toml, which is the recipe with
    the best parameters, all trials as trials.csv and sweep.json, sweep.html with plots, and
    optuna.log for Optuna's own tools. Stopped at any moment, the same command goes on where it
    was, to the same trials; with more --trials it adds to them.
    """
    from rankinite.runs.recipe_reader import read_recipe
    from rankinite.sweeps.space import read_over
    from rankinite.sweeps.study import the_optuna
    from rankinite.sweeps.sweep import check_sweep, run_sweep

    check_place("sweep", jobs, cluster)
    the_optuna()
    chosen = read_recipe(recipe)
    space = read_over(searching.over) if searching.over else None
    search, measure = searching.search, searching.measure
    check_sweep(chosen, model, space=space, search=search, measure=measure)
    refuse_file_as_folder(out)
    loading = loading.with_grade_of("sweep", chosen)
    terminal.expect_compiling()
    try:
        done = run_sweep(
            chosen,
            model,
            loading.load(train, terminal),  # and nothing here holds it while the sweep works
            out=out,
            space=space,
            search=search,
            measure=measure,
            trials=searching.trials,
            folds=searching.folds,
            pruning=not searching.no_pruning,
            batch=searching.batch,
            seed=searching.seed,
            jobs=jobs,
            cluster=cluster,
            progress=terminal.progress(lines=True),
        )
    except KeyboardInterrupt:
        log.info("stopped; %s keeps what is done, and the same command goes on from there", out)
        raise
    show_written_summary(terminal, done.findings(), done.written)
