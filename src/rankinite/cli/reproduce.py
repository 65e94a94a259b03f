"""``rankinite reproduce``: experiments of the papers, with tables and figures."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.options import Out, Seed
from rankinite.cli.outputs import refuse_file_as_folder
from rankinite.cli.terminal import Terminal, show_summary

if TYPE_CHECKING:
    from rankinite.evaluation.summary import Summary
    from rankinite.papers.setting import Setting

Scale = Annotated[
    float, typer.Option(help="What the numbers of queries are multiplied by; 1 takes minutes.")
]
# What each shows; it is a function in a module of its name, in `experiments.reproductions`.
EXPERIMENTS = {
    "matching": (
        "Train on four measures, test by all four: Optimality, Tables 3 and 4 and Figure 5."
    ),
    "constructions": "Compare five constructions of a lambda gradient: Optimality, Tables 1 and 2.",
    "linear": "Train linear nets for NDCG and for ERR, by epoch: Ensemble, Figure 1.",
    "optimality": (
        "Test whether learned weights are local optima: Optimality, Figures 1 to 4 and 6, Sec. 8."
    ),
    "combiners": "Combine six rankers in many ways: Ensemble, Table 1.",
    "accuracy": "Compare LambdaMART, McRank and LambdaRank: LambdaSMART, Table 1 and Figure 2.",
    "adaptation": "Adapt rankers to domains with few queries: LambdaSMART, Tables 2 to 4.",
    "line_search": (
        "Boost with Newton steps and with exact weights of trees: LambdaSMART, Figures 3 and 4."
    ),
    "graded": "Learn from judgements first and clicks second: Objectives, Table 1 and Figure 2.",
    "schedules": (
        "Change the objective while learning: Objectives, Table 2 and Figures 3, 4 and 7."
    ),
}
# A folder of its own, for `rankinite optimality` writes into one of this name.
FOLDERS = {"optimality": "reproduced"}


def experiment(name: str) -> Callable[..., None]:
    """Return the command of an experiment."""
    folder = Path(FOLDERS.get(name, name.replace("_", "-")))

    def command(
        out: Out = folder, scale: Scale = 1.0, seed: Seed = 0, *, terminal: Terminal
    ) -> None:
        module = importlib.import_module(f"rankinite.papers.{name}")
        _reproduce(getattr(module, name), out, scale, seed, terminal)

    command.__name__ = name
    command.__doc__ = EXPERIMENTS[name]
    return command


def _reproduce(
    run: Callable[[Setting], Summary],
    out: Path,
    scale: float,
    seed: int,
    terminal: Terminal,
) -> None:
    from rankinite.papers.setting import Setting

    refuse_file_as_folder(out)
    setting = Setting(scale, seed, terminal.progress())
    out.mkdir(parents=True, exist_ok=True)
    terminal.expect_compiling()
    show_summary(terminal, run(setting), out)
