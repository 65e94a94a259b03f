"""``rankinite sweep``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from rankinite.cli.files import refuse_file_as_folder
from rankinite.cli.options import Loading, RecipeName, TrainFile, Workers
from rankinite.cli.terminal import Terminal, resume_note


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """The options of a sweep: what is tried, and how trials are compared."""

    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<parameter=values>",
            help="Values to try, once for each parameter: n_leaves=50:400:30 (low:high:step), "
            "learning_rate=0.05,0.1 or hidden=20,[20,10] (values), or learning_rate=1e-4..1e-2 "
            "(a range; on a log scale if its ends are a factor of 100 or more apart). (Default: "
            "those of the paper. Trees: leaves 50 to 400 by 30, learning rates 0.01, 0.05, 0.1, "
            "0.3, 0.5. Nets: 10 to 30 hidden units by 5, learning rates 1e-4 to 1e-2.)",
        ),
    ] = None
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Number of trials. (Default: 30; all of a grid.)"),
    ] = None
    search: Annotated[
        Literal["tpe", "grid", "random"],
        typer.Option(help="tpe learns from earlier trials; grid tries all points in random order."),
    ] = "tpe"
    folds: Annotated[
        int, typer.Option(min=2, help="Number of folds of the cross-validation by query.")
    ] = 3
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure", "-m", help="Measure that decides. (Default: the recipe's first.)"
        ),
    ] = None
    no_pruning: Annotated[
        bool,
        typer.Option(
            "--no-pruning",
            help="Train every trial to its end. Otherwise a trial is stopped if, after a third of "
            "the rounds or more, its first fold is below the median of earlier trials; this "
            "disfavours small learning rates, which begin slowly.",
        ),
    ] = False
    batch: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of trials that start together: more keep more workers busy, fewer learn "
            "more from each other.",
        ),
    ] = 4
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Random seed. (Default: the recipe's.)"),
    ] = None


def sweep(
    *,
    recipe: RecipeName,
    model: Annotated[
        str, typer.Option("--model", help="Model of the recipe to sweep.", show_default=False)
    ],
    train: TrainFile,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the sweep.", show_default=False)
    ],
    options: SweepOptions,
    workers: Workers,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Search for better parameters of a recipe's model, by cross-validation over queries.

    Every trial trains one model per fold and takes the mean over the held-out folds; the recipe's
    own parameters are measured in the same way. The folder gets recipe.toml, which is the recipe
    with the best parameters, all trials as trials.csv and sweep.json, sweep.html with charts, and
    optuna.log for Optuna's own tools. After an interruption at any moment the same command
    resumes, with the same trials; with more --trials it adds to them.
    """
    from rankinite.report.sweep_page import write_sweep_report
    from rankinite.runs.recipe_reader import read_recipe
    from rankinite.sweeps.space import read_over
    from rankinite.sweeps.study import import_optuna
    from rankinite.sweeps.sweep import check_sweep, run_sweep

    workers.check("sweep")
    import_optuna()  # an extra: if it is not installed, that is said before the data are read
    chosen = read_recipe(recipe)
    space = read_over(options.over) if options.over else None
    search, measure = options.search, options.measure
    # Here already, as `run_sweep` gets the data, which take long to load.
    check_sweep(chosen, model, space=space, search=search, measure=measure)
    refuse_file_as_folder(out)
    loading = loading.with_grade_of("sweep", chosen)
    terminal.expect_compiling()
    with resume_note(out):
        done = run_sweep(
            chosen,
            model,
            # No reference stays here: the sweep releases the data once they are in its folder.
            loading.load(train, terminal, categorical=chosen.categorical_features),
            out=out,
            space=space,
            search=search,
            measure=measure,
            trials=options.trials,
            folds=options.folds,
            pruning=not options.no_pruning,
            batch=options.batch,
            seed=options.seed,
            jobs=workers.jobs,
            cluster=workers.cluster,
            progress=terminal.progress(lines=True),
        )
    page = write_sweep_report(done)
    terminal.show_summary(done.summary(), [*done.written, page])
