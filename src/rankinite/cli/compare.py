"""``rankinite compare``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.members import short_names
from rankinite.cli.options import Loading, Measures, Missing, Testing
from rankinite.cli.outputs import (
    refuse_file_as_folder,
    refuse_missing_folders,
    refuse_overwriting,
    refuse_twice,
)
from rankinite.cli.terminal import Terminal, drawn_width
from rankinite.core.errors import UsageError
from rankinite.core.files import atomic_write
from rankinite.core.format import number_text, p_text, some_of
from rankinite.evaluation.tables import Table

if TYPE_CHECKING:
    from rankinite.core.types import Floats
    from rankinite.evaluation.comparison import Comparison

MOST_SYSTEMS_IN_MATRIX = 10
MOST_NAMES_IN_MATRIX = 5
USUAL_WIDTH = 80  # of a terminal
P_DIGITS = 4
LEAST_SYSTEMS = 2
LEAST_SYSTEMS_FOR_TAU = 3  # of two, tau could only be 1 or -1


def compare(
    source: Annotated[
        Path, typer.Option("--data", "-d", help="The data set with the labels.", show_default=False)
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SCORES",
            help="The scores of each system: one number per line in the order of the documents, or "
            "a TREC run.",
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
    from rankinite.data.splits import refuse_dependent_queries
    from rankinite.evaluation.compare import checked
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
    refuse_dependent_queries("compare", data.qids)
    rankings = [feature_scores(data, name) for name in features]
    rankings += [load_scores(path, data, missing=missing, order=data.rows) for path in files]
    comparison = compare_scores(
        dict(zip(names, rankings, strict=True)),
        data,
        chosen,
        **vars(settings),
        progress=terminal.progress(),
    )
    written = _write(comparison, outs, pairs)
    if figures is not None:
        written += comparison.draw_differences(figures, baseline=baseline)
    if terminal.json:
        files_written = [str(path) for path in written]
        terminal.show_json({"data": str(source), **comparison.as_json(), "wrote": files_written})
        return
    show_comparison(terminal, comparison)
    for path in written:
        terminal.say(f"wrote {path}")


def show_comparison(terminal: Terminal, comparison: Comparison) -> None:
    """Print the means with their letters, the p-values, and how far measures agree."""
    terminal.show(comparison.table())
    _show_p_values(terminal, comparison)
    if comparison.tau is not None and len(comparison.systems) >= LEAST_SYSTEMS_FOR_TAU:
        terminal.say("")
        measures = comparison.measures
        terminal.show(_triangle("Kendall's tau", measures, measures, comparison.tau, number_text))


def _show_p_values(terminal: Terminal, comparison: Comparison) -> None:
    if len(comparison.systems) > MOST_SYSTEMS_IN_MATRIX:
        terminal.say("")
        terminal.say("There are too many p-values to print; --pairs FILE writes them.")
        return
    letters = comparison.letters
    rows = [f"{letter}  {name}" for letter, name in zip(letters, comparison.systems, strict=True)]
    tables = _p_tables(comparison, rows)
    too_wide = any(drawn_width(table) > USUAL_WIDTH for table in tables)
    if too_wide or len(rows) > MOST_NAMES_IN_MATRIX:
        tables = _p_tables(comparison, letters)
    for table in tables:
        terminal.say("")
        terminal.show(table)


def _p_tables(comparison: Comparison, rows: Sequence[str]) -> list[Table]:
    return [
        _triangle(f"p-values, {measure}", rows, comparison.letters, matrix, _p_value)
        for measure, matrix in comparison.p_values.items()
    ]


def _p_value(p: float) -> str:
    return p_text(p, P_DIGITS)


def _triangle(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    matrix: Floats,
    text: Callable[[float], str],
) -> Table:
    """Return what is above the diagonal of a symmetric matrix (Challenge, Table 8)."""
    cells = [
        [name, *(text(value) if j > i else "" for j, value in enumerate(line[1:], 1))]
        for i, (name, line) in enumerate(zip(rows[:-1], matrix.tolist()[:-1], strict=True))
    ]
    return Table(title, ["", *columns[1:]], cells)


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


def _write(comparison: Comparison, outs: Sequence[Path], pairs: Path | None) -> list[Path]:
    for path in outs:
        comparison.save(path)
    if pairs is None:
        return [*outs]
    with atomic_write(pairs) as file:
        file.write(comparison.pairs_to_csv().encode())
    return [*outs, pairs]
