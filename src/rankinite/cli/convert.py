"""``rankinite data convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankinite.cli.options import Loading
from rankinite.cli.terminal import Terminal

QRELS = ".qrels"


def convert(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="The data set to read.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET",
            help="The file to write: .parquet, .gz (compressed text), .qrels (TREC labels), "
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
    """Convert between SVMlight/LETOR text and Parquet without losing a bit; write TREC qrels."""
    from rankinite.data.formats import save
    from rankinite.data.scores import save_qrels

    found = loading.load(source, terminal)
    if originals:
        found = found.originals
    if target.name.removesuffix(".gz").endswith(QRELS):
        save_qrels(found, target)
    else:
        save(found, target, progress=terminal.progress())
    if terminal.json:
        terminal.show_json(
            {
                "wrote": str(target),
                "queries": found.n_queries,
                "documents": found.n_docs,
                "features": found.n_features,
            }
        )
    else:
        terminal.say(f"wrote {target} ({found.n_queries:,} queries, {found.n_docs:,} documents)")
