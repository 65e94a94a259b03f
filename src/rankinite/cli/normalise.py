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
        list[Path], typer.Argument(metavar="DATA", help="The data sets, all of them at once.")
    ],
    out: Out,
    cut_points: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save what was learned, for --apply.")
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Learn nothing; use what --cut-points has saved."),
    ] = None,
    most_cut_points: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Keep so many values of a feature, and interpolate. (Default: all, exactly.)",
        ),
    ] = None,
    suffix: SameFormat = None,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Replace every value by the share of documents that have a smaller one (Challenge, Sec. 4.3).

    Shares are of the documents of all the data sets together; each is written under its own name
    into the folder. Augment afterwards: samples would count their documents more than once.
    """
    from rankinite.data.normalise import RankNormaliser

    _refuse_together(sources, cut_points, apply, most_cut_points, loading)
    targets = folder_targets("data normalise", sources, out, suffix)
    if cut_points is not None:
        refuse_twice("data normalise", [*targets, out, cut_points])
        refuse_overwriting("data normalise", [cut_points], sources)
    sets: Iterable[RankingData]
    if apply is None:
        sets = given = _load_alike(sources, loading, terminal)
        normaliser = RankNormaliser(most_cut_points).fit(given, progress=terminal.progress())
    else:
        normaliser = RankNormaliser.load(apply)
        sets = _load_each(sources, normaliser.feature_names_, loading, terminal)
    if cut_points is not None:
        cut_points.parent.mkdir(parents=True, exist_ok=True)
        normaliser.save(cut_points)
    normalised = (normaliser.transform(found, progress=terminal.progress()) for found in sets)
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
            "data normalise: --apply uses what was learned before; leave out --cut-points and "
            "--most-cut-points"
        )
    if loading.query_file is not None and len(sources) > 1:
        raise UsageError(
            "data normalise: --query-file belongs to one data set, and here are several; put the "
            "group sizes of each beside it, as FILE.query"
        )


def _load_alike(sources: Sequence[Path], loading: Loading, terminal: Terminal) -> list[RankingData]:
    """Load all sets; the one with most features tells which the others must have."""
    sets = [loading.load(path, terminal) for path in sources]
    expected = max(sets, key=lambda found: found.n_features).feature_names
    for path, found in zip(sources, sets, strict=True):
        _refuse_other_features(path, found, expected)
    return sets


def _load_each(
    sources: Sequence[Path], expected: Sequence[str], loading: Loading, terminal: Terminal
) -> Iterator[RankingData]:
    """Load one set after the other, when it is asked for."""
    for path in sources:
        found = loading.load(path, terminal)
        _refuse_other_features(path, found, expected)
        yield found


def _refuse_other_features(path: Path, found: RankingData, expected: Sequence[str]) -> None:
    from rankinite.data.concat import refuse_other_features

    refuse_narrow_text(path, found, expected)
    refuse_other_features(str(path), expected, found.feature_names)
