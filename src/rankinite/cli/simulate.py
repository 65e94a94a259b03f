"""``rankinite data simulate``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rankinite.cli.options import Out, Seed
from rankinite.cli.terminal import Terminal
from rankinite.core.params import Real, check
from rankinite.data.formats import Format


def simulate(
    kind: Annotated[
        Literal["polynomials"],
        typer.Argument(help="polynomials: the artificial data of LambdaSMART and Optimality."),
    ],
    out: Out,
    size: Annotated[
        float,
        typer.Option(help="The share of 10,000 / 5,000 / 10,000 queries to simulate."),
    ] = 1.0,
    features: Annotated[
        int, typer.Option(min=1, help="50 as in LambdaSMART, 300 as in Optimality.")
    ] = 50,
    seed: Seed = 0,
    suffix: Annotated[Format, typer.Option("--format", help="The file format.")] = "parquet",
    *,
    terminal: Terminal,
) -> None:
    """Simulate train, valid and test data: 50 documents a query, five grades, no noise."""
    from rankinite.data.files import save
    from rankinite.data.simulate import FULL_SIZE, polynomials

    check("data simulate", "--size", size, Real(0, low_open=True))
    written = []
    for part, full in FULL_SIZE.items():
        simulated = polynomials(
            max(1, round(full * size)),
            part=part,
            n_features=features,
            seed=seed,
            progress=terminal.progress(),
        )
        path = out / f"{part}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        save(simulated, path, progress=terminal.progress())
        written.append((path, simulated.n_queries, simulated.n_docs))
    terminal.show_written(written)
