"""``rankinite data normalise``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.options import Loading, Out, SameFormat, refuse_narrow_text
from rankinite.cli.outputs import folder_targets, refuse_overwriting, refuse_twice, save_all
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData


def normalise(
    sources: Annotated[
        list[Path], typer.Argument(metavar="DATA", help="Data sets that are normalised together.")
    ],
    out: Out,
    cut_points: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the cut points, for --apply.")
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Use the cut points of this file instead of computing them."
        ),
    ] = None,
    most_cut_points: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Values of a feature to keep at most; others are interpolated. (Default: all.)",
        ),
    ] = None,
    suffix: SameFormat = None,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Replace each value by the share of documents with a smaller value (Challenge, Sec. 4.3).

    Shares are over the documents of all data sets together; each is written under its name into
    the folder. Augment afterwards: samples would count their documents more than once.
    """
    from rankinite.data.normalise import RankNormaliser

    _refuse_together(sources, cut_points, apply, most_cut_points, loading)
    targets = folder_targets("data normalise", sources, out, suffix)
    if cut_points is not None:
        refuse_twice("data normalise", [*targets, out, cut_points])
        refuse_overwriting("data normalise", [cut_points], sources)
    sets: Iterable[RankingData]
    if apply is None:
        sets = loaded = _load_alike(sources, loading, terminal)
        normaliser = RankNormaliser(most_cut_points).fit(loaded, progress=terminal.progress())
    else:
        normaliser = RankNormaliser.load(apply)
        sets = _load_each(sources, normaliser.feature_names_, loading, terminal)
    if cut_points is not None:
        cut_points.parent.mkdir(parents=True, exist_ok=True)
        normaliser.save(cut_points)
    normalised = (normaliser.transform(data, progress=terminal.progress()) for data in sets)
    save_all(
        zip(targets, normalised, strict=True), terminal, [] if cut_points is None else [cut_points]
    )


def _refuse_together(
    sources: Sequence[Path],
    cut_points: Path | None,
    apply: Path | None,
    most_cut_points: int | None,
    loading: Loading,
) -> None:
    if apply is not None and (cut_points is not None or most_cut_points is not None):
        raise UsageError(
            "data normalise: --apply uses saved cut points; leave out --cut-points and "
            "--most-cut-points"
        )
    if loading.query_file is not None and len(sources) > 1:
        raise UsageError(
            "data normalise: --query-file belongs to one data set, and here are several; put the "
            "group sizes of each beside it, as FILE.query"
        )


def _load_alike(sources: Sequence[Path], loading: Loading, terminal: Terminal) -> list[RankingData]:
    """Load all data sets; they must have the features of the one with the most features."""
    sets = [loading.load(path, terminal) for path in sources]
    expected = max(sets, key=lambda data: data.n_features).feature_names
    for path, data in zip(sources, sets, strict=True):
        _refuse_other_features(path, data, expected)
    return sets


def _load_each(
    sources: Sequence[Path], expected: Sequence[str], loading: Loading, terminal: Terminal
) -> Iterator[RankingData]:
    """Load one data set after the other, so that memory holds one of them."""
    for path in sources:
        data = loading.load(path, terminal)
        _refuse_other_features(path, data, expected)
        yield data


def _refuse_other_features(path: Path, data: RankingData, expected: Sequence[str]) -> None:
    from rankinite.data.concat import refuse_other_features

    refuse_narrow_text(path, data, expected)
    refuse_other_features(str(path), expected, data.feature_names)
