"""``rankinite reproduce``: experiments of the papers, with tables and figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rankinite.cli.options import Out, Seed
from rankinite.cli.outputs import refuse_file_as_folder
from rankinite.cli.terminal import Terminal, show_summary
from rankinite.papers import EXPERIMENTS

Scale = Annotated[
    float, typer.Option(help="What the numbers of queries are multiplied by; 1 takes minutes.")
]


def experiment(name: str) -> Callable[..., None]:
    """Return the command of an experiment."""
    chosen = EXPERIMENTS[name]

    def command(
        out: Out = Path(chosen.folder), scale: Scale = 1.0, seed: Seed = 0, *, terminal: Terminal
    ) -> None:
        from rankinite.papers.setting import Setting

        refuse_file_as_folder(out)
        setting = Setting(scale, seed, terminal.progress())
        out.mkdir(parents=True, exist_ok=True)
        terminal.expect_compiling()
        show_summary(terminal, chosen.run(setting), out)

    command.__name__ = name
    command.__doc__ = chosen.description
    return command
