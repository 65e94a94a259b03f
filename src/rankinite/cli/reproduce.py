"""``rankinite reproduce``: experiments of the papers, with tables and figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.findings import show_findings
from rankinite.cli.options import Out, Seed
from rankinite.cli.targets import refuse_file_as_folder
from rankinite.cli.terminal import Terminal

if TYPE_CHECKING:
    from rankinite.experiments.findings import Findings
    from rankinite.experiments.reproductions.setting import Setting

Scale = Annotated[
    float, typer.Option(help="What the numbers of queries are multiplied by; 1 takes minutes.")
]


def matching(
    out: Out = Path("matching"), scale: Scale = 1.0, seed: Seed = 0, *, terminal: Terminal
) -> None:
    """Train on four measures, test by all four: Optimality, Tables 3 and 4 and Figure 5."""
    from rankinite.experiments.reproductions.matching import matching

    _reproduce(matching, out, scale, seed, terminal)


def constructions(
    out: Out = Path("constructions"), scale: Scale = 1.0, seed: Seed = 0, *, terminal: Terminal
) -> None:
    """Compare five constructions of a lambda gradient: Optimality, Tables 1 and 2."""
    from rankinite.experiments.reproductions.constructions import constructions

    _reproduce(constructions, out, scale, seed, terminal)


def linear(
    out: Out = Path("linear"), scale: Scale = 1.0, seed: Seed = 0, *, terminal: Terminal
) -> None:
    """Train linear nets for NDCG and for ERR, by epoch: Ensemble, Figure 1."""
    from rankinite.experiments.reproductions.linear import linear

    _reproduce(linear, out, scale, seed, terminal)


def optimality(
    out: Out = Path("reproduced"), scale: Scale = 1.0, seed: Seed = 0, *, terminal: Terminal
) -> None:
    """Test whether learned weights are local optima: Optimality, Figures 1 to 4 and 6, Sec. 8."""
    from rankinite.experiments.reproductions.optimality import optimality

    _reproduce(optimality, out, scale, seed, terminal)


def _reproduce(
    experiment: Callable[[Setting], Findings],
    out: Path,
    scale: float,
    seed: int,
    terminal: Terminal,
) -> None:
    from rankinite.experiments.reproductions.setting import Setting

    refuse_file_as_folder(out)
    setting = Setting(scale, seed, terminal.progress())
    out.mkdir(parents=True, exist_ok=True)
    terminal.expect_compiling()
    show_findings(terminal, experiment(setting), out)
