"""The commands of the application, each with an example for its ``--help``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rankinite.cli.combine import combine
from rankinite.cli.compare import compare
from rankinite.cli.data import augment, convert, describe, normalise, split
from rankinite.cli.demo import demo
from rankinite.cli.evaluate import evaluate
from rankinite.cli.explain import explain
from rankinite.cli.export import export
from rankinite.cli.import_model import import_model
from rankinite.cli.inspect import inspect
from rankinite.cli.mix import mix
from rankinite.cli.optimality import optimality
from rankinite.cli.options import Out, Seed, with_groups
from rankinite.cli.outputs import Outputs, refuse_file_as_folder
from rankinite.cli.predict import predict
from rankinite.cli.recipe import check, list_recipes, report, run, show
from rankinite.cli.serve import serve
from rankinite.cli.simulate import challenge, clicks, polynomials, sessions
from rankinite.cli.sweep import sweep
from rankinite.cli.terminal import Terminal
from rankinite.cli.train import train
from rankinite.cli.warm_up import warm_up
from rankinite.core import __version__
from rankinite.papers import EXPERIMENTS

# Typer knows --help alone.
SETTINGS = {"help_option_names": ["-h", "--help"]}


def _group(parent: typer.Typer | None, name: str, text: str, example: str) -> typer.Typer:
    """Return a group of commands, added to its parent."""
    group = typer.Typer(
        help=text,
        epilog=f"Example: {example}",
        context_settings=SETTINGS,
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # `cli.invoke` explains exceptions
    )
    if parent is not None:
        parent.add_typer(group, name=name)
    return group


app = _group(
    None,
    "rankinite",
    "Learning to rank: data, measures, and the system that won the Yahoo! challenge.",
    "rankinite demo",
)
data = _group(
    app,
    "data",
    "Describe, convert, split, augment and normalise data sets.",
    "rankinite data describe train.txt",
)
simulate = _group(
    data,
    "simulate",
    "Simulate data sets; the same seed gives the same bits.",
    "rankinite data simulate challenge --size 0.05 --out simulated",
)
reproduce = _group(
    app,
    "reproduce",
    "Reproduce experiments of the papers on simulated data; each takes minutes.",
    "rankinite reproduce linear --out linear",
)
recipe = _group(
    app,
    "recipe",
    "Train the models of a recipe and combine them: the system that won the challenge.",
    "rankinite recipe list",
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"rankinite {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            callback=_print_version,
            is_eager=True,
            metavar="",
        ),
    ] = False,
) -> None:
    pass


def _experiment(name: str) -> Callable[..., None]:
    """Return the command that reproduces an experiment of a paper."""
    chosen = EXPERIMENTS[name]

    def command(
        out: Out = Path(chosen.folder),
        scale: Annotated[
            float, typer.Option(help="Factor for the numbers of queries; 1 takes minutes.")
        ] = 1.0,
        seed: Seed = 0,
        *,
        outputs: Outputs,
        terminal: Terminal,
    ) -> None:
        from rankinite.papers.setting import Setting

        refuse_file_as_folder(out)
        # Which figures an experiment draws is known when it is done.
        kept = [path for path in out.glob("*") if path.suffix in (".md", ".json", ".png")]
        outputs.check(f"reproduce {chosen.folder}", [], files=kept)
        setting = Setting(scale, seed, terminal.progress())
        out.mkdir(parents=True, exist_ok=True)
        summary = chosen.run(setting)
        written = summary.save(out)
        outputs.record(written)
        terminal.show_summary(summary, written)

    # Typer takes the command's name and help from these.
    command.__name__ = name
    command.__doc__ = chosen.description
    return command


# Help lists the commands of a group in this order.
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
    (simulate, sessions, "rankinite data simulate sessions train.txt --sessions 8 --out log"),
    (app, train, "rankinite train train.txt --valid valid.txt --measure NDCG@10 --out model.rk"),
    (app, predict, "rankinite predict model.rk test.txt --out scores.txt"),
    (app, import_model, "rankinite import lightgbm.txt --out model.rk"),
    (app, inspect, "rankinite inspect model.rk --figures figures"),
    (app, explain, "rankinite explain model.rk test.txt --query 12 --documents 1,5"),
    (app, export, "rankinite export model.rk --to lightgbm --out model.txt"),
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
        (reproduce, _experiment(name), f"rankinite reproduce {name.replace('_', '-')} --scale 0.5")
        for name in EXPERIMENTS
    ),
    (app, serve, "rankinite serve ranker=model.rk --port 8000"),
    (app, demo, "rankinite demo --out demo"),
    (app, warm_up, "rankinite warm-up --all"),
]
for group, function, example in COMMANDS:
    group.command(epilog=f"Example: {example}")(with_groups(function))
