"""``rankinite sweep``."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from rankinite.cli.findings import show_written_findings
from rankinite.cli.options import Loading
from rankinite.cli.targets import refuse_file_as_folder
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError

log = logging.getLogger("rankinite")


def sweep(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="winner, winner-small, winner-tiny, or a TOML file.",
            show_default=False,
        ),
    ],
    model: Annotated[
        str, typer.Option("--model", help="The model of the recipe to sweep.", show_default=False)
    ],
    train: Annotated[Path, typer.Option("--train", help="The training data.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder of the sweep.", show_default=False)
    ],
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<parameter=values>",
            help="What to try, once for each parameter: n_leaves=50:400:30 (low:high:step), "
            "learning_rate=0.05,0.1 (values), or learning_rate=1e-4..1e-2 (a range; on a log "
            "scale if its ends are a factor of 100 or more apart). (Default: what the paper "
            "tried. Trees: leaves 50 to 400 by 30, learning rates 0.01, 0.05, 0.1, 0.3, 0.5. "
            "Nets: 10 to 30 hidden units by 5, learning rates 1e-4 to 1e-2.)",
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="How many to try. (Default: 30; all of a grid.)"),
    ] = None,
    search: Annotated[
        Literal["tpe", "grid", "random"],
        typer.Option(help="tpe learns from earlier trials; grid goes through all, shuffled."),
    ] = "tpe",
    folds: Annotated[
        int, typer.Option(min=2, help="Cross-validation by query: in how many folds.")
    ] = 3,
    measure: Annotated[
        str | None,
        typer.Option("--measure", "-m", help="What decides. (Default: the recipe's first.)"),
    ] = None,
    no_pruning: Annotated[
        bool,
        typer.Option(
            "--no-pruning",
            help="Carry out every trial to its end. Otherwise one is given up if, after a third of "
            "the rounds or more, its first fold is below the median of earlier trials; small "
            "learning rates, which begin slowly, are so more often.",
        ),
    ] = False,
    batch: Annotated[
        int,
        typer.Option(
            min=1,
            help="How many trials are begun together; more for many workers, fewer to learn more "
            "from each.",
        ),
    ] = 4,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Another seed gives another result. (Default: the recipe's.)"),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="How many models are trained at once. (Default: one a core.)",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="<address>",
            help="Train on a Dask cluster: the scheduler's address, or local:4. Its workers must "
            "see the folder of the sweep.",
        ),
    ] = None,
    *,
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
    from rankinite.experiments.recipes.read import read_recipe
    from rankinite.experiments.sweeps.space import read_over
    from rankinite.experiments.sweeps.studies import the_optuna
    from rankinite.experiments.sweeps.sweep import check_sweep, run_sweep

    if jobs is not None and cluster is not None:
        raise UsageError("sweep: --jobs is for this machine, --cluster for others; say one")
    the_optuna()
    chosen = read_recipe(recipe)
    space = read_over(over) if over else None
    check_sweep(chosen, model, space=space, search=search, measure=measure)
    refuse_file_as_folder(out)
    if loading.top_grade is None:
        loading = replace(loading, top_grade=chosen.top_grade)
    terminal.expect_compiling()
    data = loading.load(train, terminal)
    try:
        done = run_sweep(
            chosen,
            model,
            data,
            out=out,
            space=space,
            trials=trials,
            search=search,
            folds=folds,
            measure=measure,
            pruning=not no_pruning,
            batch=batch,
            seed=seed,
            jobs=jobs,
            cluster=cluster,
            progress=terminal.progress(lines=True),
        )
    except KeyboardInterrupt:
        log.info("stopped; %s keeps what is done, and the same command goes on from there", out)
        raise
    show_written_findings(terminal, done.findings(), done.written)
