"""``rankinite data split``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.options import Loading, Out, SameFormat, Seed
from rankinite.cli.outputs import refuse_overwriting, save_all
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.data.formats import format_of

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData

NAMES = {2: ["train", "test"], 3: ["train", "valid", "test"]}
NEVER_AUGMENTED = {"valid", "test"}


def split(
    source: Annotated[Path, typer.Argument(metavar="DATA", help="The data set to split.")],
    out: Out,
    parts: Annotated[
        int | None, typer.Option(min=2, help="Into so many parts of equal size.")
    ] = None,
    proportions: Annotated[
        str | None,
        typer.Option(help="Into parts of these proportions: 0.8,0.2 or 0.6,0.2,0.2."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Into so many folds, each with train and valid.")
    ] = None,
    seed: Seed = 0,
    suffix: SameFormat = None,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Shuffle the queries and split them; documents and samples of a query stay with it.

    A query's samples, 12~1 and so on from data augment, go into its part; parts called valid and
    test leave them out.
    """
    if sum(choice is not None for choice in (parts, proportions, folds)) != 1:
        raise UsageError("data split: give one of --parts, --proportions and --folds")
    ending = suffix or format_of(source).name
    wanted = parts if proportions is None else _numbers(proportions)
    found = loading.load(source, terminal)
    pieces = [
        (out / f"{name}.{ending}", part) for name, part in _named_parts(found, wanted, folds, seed)
    ]
    refuse_overwriting("data split", [path for path, _ in pieces], [source])
    save_all(pieces, terminal)


def _named_parts(
    found: RankingData, wanted: int | list[float] | None, folds: int | None, seed: int
) -> Iterator[tuple[str, RankingData]]:
    if wanted is None:
        for k, (train, valid) in enumerate(found.folds(folds or 0, seed=seed), 1):
            yield f"fold{k}/train", train
            yield f"fold{k}/valid", valid
        return
    pieces = found.split(wanted, seed=seed)
    width = max(2, len(str(len(pieces))))
    numbers = [f"part{k:0{width}}" for k in range(1, len(pieces) + 1)]
    names = NAMES.get(len(pieces), numbers) if isinstance(wanted, list) else numbers
    for name, piece in zip(names, pieces, strict=True):
        yield name, piece.originals if name in NEVER_AUGMENTED else piece


def _numbers(text: str) -> list[float]:
    try:
        return [float(piece) for piece in text.split(",")]
    except ValueError:
        raise UsageError(
            f"data split: --proportions {text!r} are not numbers; expected such as 0.6,0.2,0.2"
        ) from None
