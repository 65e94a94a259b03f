"""``rankinite compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.comparison import show_comparison
from rankinite.cli.names import short_names
from rankinite.cli.options import Loading, Measures, Missing, Testing
from rankinite.cli.targets import (
    refuse_file_as_folder,
    refuse_missing_folders,
    refuse_overwriting,
    refuse_twice,
)
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.core.files import atomic_write
from rankinite.core.wording import some_of

if TYPE_CHECKING:
    from rankinite.evaluation.comparison import Comparison

LEAST_SYSTEMS = 2


def compare(
    source: Annotated[
        Path, typer.Option("--data", "-d", help="The data set with the labels.", show_default=False)
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SCORES",
            help="The scores of each system: one number a line in the order of the documents, or a "
            "TREC run.",
            show_default=False,
        ),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(help="Also a system that ranks by this feature; several are fine."),
    ] = None,
    measures: Measures = "NDCG@10,ERR",
    missing: Missing = "refuse",
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            help="Write to this file; several are fine. Tables end in .md or .tex, means with "
            "their intervals in .csv, all there is in .json.",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Write the difference, interval and p-value of every pair to this CSV."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(help="Draw each query's differences as PNG files into this folder."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="The system that differences are drawn to. (Default: the first.)"),
    ] = None,
    *,
    testing: Testing,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Compare systems query by query: means, and which differences could be chance.

    A system is called by the name of its file, without the ending, or "feature NAME". Every two
    systems are tested; the oracle picks the best system for every query.
    """
    from rankinite.data.scores import feature_scores, load_scores
    from rankinite.evaluation.compare import checked, refuse_samples
    from rankinite.evaluation.compare import compare as compare_scores
    from rankinite.evaluation.comparison import Settings
    from rankinite.measures.text import parse_measures

    files, features, outs = files or [], feature or [], out or []
    settings = checked(Settings(**vars(testing)))
    names = _checked_names(features, files)
    _check_targets(outs, pairs, figures, [source, *files])
    _check_baseline(baseline, names, figures)
    chosen = parse_measures(measures)
    terminal.expect_compiling()
    data = loading.load(source, terminal)
    refuse_samples(data.qids)
    rankings = [feature_scores(data, name) for name in features]
    rankings += [load_scores(path, data, missing=missing, order=data.rows) for path in files]
    found = compare_scores(
        dict(zip(names, rankings, strict=True)),
        data,
        chosen,
        **vars(settings),
        progress=terminal.progress(),
    )
    written = _write(found, outs, pairs)
    if figures is not None:
        written += found.draw_differences(figures, baseline=baseline)
    if terminal.json:
        files_written = [str(path) for path in written]
        terminal.show_json({"data": str(source), **found.as_json(), "wrote": files_written})
        return
    show_comparison(terminal, found)
    for path in written:
        terminal.say(f"wrote {path}")


def _checked_names(features: Sequence[str], files: Sequence[Path]) -> list[str]:
    from rankinite.evaluation.compare import checked_names

    if len(features) + len(files) < LEAST_SYSTEMS:
        raise UsageError(
            "compare: there must be at least two files of scores, or one and a --feature; as in "
            "rankinite compare a.scores b.scores --data test.txt"
        )
    twice = [str(path) for k, path in enumerate(files) if path in files[:k]]
    if twice:
        raise UsageError(f"compare: {twice[0]} was named twice; name each file once")
    names = [*(f"feature {name}" for name in features), *short_names(files)]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"compare: two systems would be called {name!r}; name each once")
    return checked_names(dict.fromkeys(names))


def _check_targets(
    outs: Sequence[Path], pairs: Path | None, figures: Path | None, sources: Sequence[Path]
) -> None:
    """Refuse files that could not be written, before the work."""
    from rankinite.evaluation.comparison import writer_for

    for path in outs:
        writer_for(path)
    targets = [*outs] if pairs is None else [*outs, pairs]
    refuse_twice("compare", targets)
    refuse_overwriting("compare", targets, sources)
    refuse_missing_folders(targets)
    if figures is not None:
        refuse_file_as_folder(figures)


def _check_baseline(baseline: str | None, names: Sequence[str], figures: Path | None) -> None:
    if baseline is None:
        return
    if figures is None:
        raise UsageError("compare: --baseline is what figures are drawn to; say --figures FOLDER")
    if baseline not in names:
        raise UsageError(
            f"compare: there is no system {baseline!r} for --baseline; the systems are "
            f"{some_of(names)}"
        )


def _write(found: Comparison, outs: Sequence[Path], pairs: Path | None) -> list[Path]:
    for path in outs:
        found.save(path)
    if pairs is None:
        return [*outs]
    with atomic_write(pairs) as file:
        file.write(found.pairs_to_csv().encode())
    return [*outs, pairs]
