"""The commands of the application, each with an example for its ``--help``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from rankinite.cli.combine import combine
from rankinite.cli.compare import compare
from rankinite.cli.data import augment, convert, describe, normalise, split
from rankinite.cli.demo import demo
from rankinite.cli.evaluate import evaluate
from rankinite.cli.inspect import inspect
from rankinite.cli.mix import mix
from rankinite.cli.optimality import optimality
from rankinite.cli.options import with_groups
from rankinite.cli.predict import predict
from rankinite.cli.recipe import check, list_recipes, report, run, show
from rankinite.cli.reproduce import experiment
from rankinite.cli.simulate import challenge, clicks, polynomials
from rankinite.cli.sweep import sweep
from rankinite.cli.train import train
from rankinite.core import __version__
from rankinite.papers import EXPERIMENTS

SETTINGS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    help="Learning to rank: data, measures, and the system that won the Yahoo! challenge.",
    epilog="Example: rankinite demo",
    context_settings=SETTINGS,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
data = typer.Typer(
    help="Describe, convert, split, augment and normalise data sets.",
    epilog="Example: rankinite data describe train.txt",
    context_settings=SETTINGS,
    no_args_is_help=True,
)
app.add_typer(data, name="data")
simulate = typer.Typer(
    help="Simulate data sets; the same seed gives the same bits.",
    epilog="Example: rankinite data simulate challenge --size 0.05 --out simulated",
    context_settings=SETTINGS,
    no_args_is_help=True,
)
data.add_typer(simulate, name="simulate")
reproduce = typer.Typer(
    help="Reproduce experiments of the papers on simulated data; each takes minutes.",
    epilog="Example: rankinite reproduce linear --out linear",
    context_settings=SETTINGS,
    no_args_is_help=True,
)
app.add_typer(reproduce, name="reproduce")
recipe = typer.Typer(
    help="Train many models by a recipe, and combine them: the system that won the challenge.",
    epilog="Example: rankinite recipe list",
    context_settings=SETTINGS,
    no_args_is_help=True,
)
app.add_typer(recipe, name="recipe")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"rankinite {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


COMMANDS: list[tuple[typer.Typer, Callable[..., None], str]] = [
    (data, describe, "rankinite data describe train.txt valid.txt --figures figures"),
    (data, convert, "rankinite data convert train.txt.gz train.parquet"),
    (data, split, "rankinite data split all.txt --proportions 0.6,0.2,0.2 --out parts"),
    (
        data,
        augment,
        "rankinite data augment train.txt --fraction 0.5 --times 10 --out aug50.parquet",
    ),
    (data, normalise, "rankinite data normalise train.txt valid.txt test.txt --out normalised"),
    (simulate, polynomials, "rankinite data simulate polynomials --size 0.01 --out simulated"),
    (simulate, challenge, "rankinite data simulate challenge --size 0.05 --out simulated"),
    (simulate, clicks, "rankinite data simulate clicks train.txt test.txt --out clicked"),
    (app, train, "rankinite train train.txt --valid valid.txt --measure NDCG@10 --out model.rk"),
    (app, predict, "rankinite predict model.rk test.txt --out scores.txt"),
    (app, inspect, "rankinite inspect model.rk --figures figures"),
    (app, evaluate, "rankinite evaluate test.txt scores.txt --measures NDCG@10,ERR"),
    (app, compare, "rankinite compare a.scores b.scores --data test.txt --measures NDCG@10,ERR"),
    (app, mix, "rankinite mix a.scores b.scores --data valid.txt --measure NDCG@10"),
    (app, combine, "rankinite combine a.rk b.rk c.rk --data valid.txt --out combined"),
    (app, optimality, "rankinite optimality net.rk train.txt --measures NDCG@10,MAP"),
    (recipe, run, "rankinite recipe run winner-small --train train.txt --test test.txt --out run"),
    (recipe, report, "rankinite recipe report run"),
    (recipe, list_recipes, "rankinite recipe list"),
    (recipe, show, "rankinite recipe show winner-small > mine.toml"),
    (recipe, check, "rankinite recipe check mine.toml"),
    (
        app,
        sweep,
        "rankinite sweep winner-small --model M5 --train train.txt --trials 30 --out sweep",
    ),
    *(
        (reproduce, experiment(name), f"rankinite reproduce {name.replace('_', '-')} --scale 0.5")
        for name in EXPERIMENTS
    ),
    (app, demo, "rankinite demo --out demo"),
]
for group, function, example in COMMANDS:
    group.command(epilog=f"Example: {example}")(with_groups(function))
