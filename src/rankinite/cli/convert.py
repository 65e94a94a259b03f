"""``rankinite data convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankinite.cli.options import Loading
from rankinite.cli.terminal import Terminal

QRELS = ".qrels"


def convert(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Data set to read.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET",
            help="File to write: .parquet, .gz (compressed text), .qrels (TREC labels), "
            "or any other name for plain text.",
        ),
    ],
    originals: Annotated[
        bool, typer.Option("--originals", help="Leave out the samples that data augment added.")
    ] = False,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Convert losslessly between SVMlight/LETOR text and Parquet, or write TREC qrels."""
    from rankinite.data.formats import save
    from rankinite.data.scores import save_qrels

    data = loading.load(source, terminal)
    if originals:
        data = data.originals
    if target.name.removesuffix(".gz").endswith(QRELS):
        save_qrels(data, target)
    else:
        save(data, target, progress=terminal.progress())
    if terminal.json:
        terminal.show_json(
            {
                "wrote": str(target),
                "queries": data.n_queries,
                "documents": data.n_docs,
                "features": data.n_features,
            }
        )
    else:
        terminal.say(f"wrote {target} ({data.n_queries:,} queries, {data.n_docs:,} documents)")
