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
    source: Annotated[Path, typer.Argument(metavar="DATA", help="Training data without samples.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write: .parquet, .gz (compressed text), or any other name for "
            "plain text.",
        ),
    ],
    fraction: Annotated[
        float, typer.Option(help="Share of a query's documents in a sample.")
    ] = 0.7,
    times: Annotated[int, typer.Option(min=1, help="Number of samples per query.")] = 5,
    seed: Seed = 0,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Add samples of each query's documents to training data (Ensemble, Sec. 2).

    Query 12 is followed by its samples 12~1, 12~2 and so on. Samples with fewer than two documents
    or a single label are left out. Split first: validation data is never augmented.
    """
    from rankinite.data.augment import FRACTION
    from rankinite.data.augment import augment as augment_data
    from rankinite.data.formats import save

    check("data augment", "--fraction", fraction, FRACTION)
    refuse_overwriting("data augment", [out], [source])
    data = loading.load(source, terminal)
    augmented = augment_data(data, fraction, times, seed=seed)
    save(augmented, out, progress=terminal.progress())
    if terminal.json:
        n_samples = augmented.n_queries - data.n_queries
        terminal.show_json(
            {
                "wrote": str(out),
                "queries": augmented.n_queries,
                "documents": augmented.n_docs,
                "samples": n_samples,
                "left_out": data.n_queries * times - n_samples,
            }
        )
    else:
        terminal.say(
            f"wrote {out} ({augmented.n_queries:,} queries, {augmented.n_docs:,} documents)"
        )
