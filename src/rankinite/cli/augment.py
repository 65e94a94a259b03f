"""``rankinite data augment``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankinite.cli.options import Loading, Seed
from rankinite.cli.outputs import refuse_overwriting
from rankinite.cli.terminal import Terminal
from rankinite.core.params import check


def augment(
    source: Annotated[Path, typer.Argument(metavar="DATA", help="The training data, original.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The file to write: .parquet, .gz (compressed text), or any other name for "
            "plain text.",
        ),
    ],
    fraction: Annotated[
        float, typer.Option(help="The share of a query's documents that a sample has.")
    ] = 0.7,
    times: Annotated[int, typer.Option(min=1, help="How many samples of each query.")] = 5,
    seed: Seed = 0,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Add samples of every query's documents to training data (Ensemble, Sec. 2).

    Behind query 12 stand its samples 12~1, 12~2 and so on. Those with fewer than two documents,
    or with one label only, are left out. Split first: validation data is never augmented.
    """
    from rankinite.data.augment import FRACTION
    from rankinite.data.augment import augment as augmented
    from rankinite.data.formats import save

    check("data augment", "--fraction", fraction, FRACTION)
    refuse_overwriting("data augment", [out], [source])
    found = loading.load(source, terminal)
    more = augmented(found, fraction, times, seed=seed)
    save(more, out, progress=terminal.progress())
    if terminal.json:
        n_samples = more.n_queries - found.n_queries
        terminal.show_json(
            {
                "wrote": str(out),
                "queries": more.n_queries,
                "documents": more.n_docs,
                "samples": n_samples,
                "left_out": found.n_queries * times - n_samples,
            }
        )
    else:
        terminal.say(f"wrote {out} ({more.n_queries:,} queries, {more.n_docs:,} documents)")
