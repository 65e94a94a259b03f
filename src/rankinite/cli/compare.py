"""``rankinite compare``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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
from rankinite.core.format import some_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankinite.evaluation.comparison import Comparison
    from rankinite.evaluation.tables import Table

MOST_SYSTEMS_IN_MATRIX = 10
MOST_NAMES_IN_MATRIX = 5
USUAL_WIDTH = 80  # of a terminal
LEAST_NAME = 12  # of a name's letters in a line
LEAST_SHOWN = 0.0001
LEAST_SYSTEMS_FOR_TAU = 3  # of two, tau could only say 1 or -1


def show_comparison(terminal: Terminal, found: Comparison) -> None:
    """Print the means with their letters, the p-values, and how far measures agree."""
    _show_means(terminal, found.table())
    _show_p_values(terminal, found)
    if found.tau is not None and len(found.systems) >= LEAST_SYSTEMS_FOR_TAU:
        terminal.say("")
        _show_triangle(terminal, "Kendall's tau", found.measures, found.measures, found.tau)


def _show_means(terminal: Terminal, table: Table) -> None:
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    if sys.stdout.isatty() and _draw(table, unicode=unicode):
        terminal.say(table.legend)
        terminal.say(table.test)
    else:
        terminal.say(table.to_text(unicode=unicode))


def _draw(table: Table, *, unicode: bool) -> bool:
    """Print the table of means on a terminal, with the best ones in bold, if it has room.

    A name may go over several lines, a number never does.
    """
    import rich.console
    import rich.table
    from rich.text import Text

    columns = [table.padded(k, unicode=unicode, star="") for k in range(len(table.measures))]
    console = rich.console.Console()
    widest = ["".join(cell) for (cell, *_) in columns]
    room = console.width - drawn_width([table.rows[0].letter, "", *widest], [])
    if room < LEAST_NAME:
        return False
    drawn = rich.table.Table(title=Text(table.title, style="bold"), title_justify="left")
    drawn.add_column("")
    drawn.add_column("System", overflow="fold", max_width=room)
    for (measure, _), *_ in columns:
        drawn.add_column(Text(measure), no_wrap=True)
    for k, row in enumerate(table.rows):
        texts = [
            Text.assemble((mean, "bold" if cell.best else ""), letters)
            for cell, (mean, letters) in zip(row.cells, (c[k + 1] for c in columns), strict=True)
        ]
        oracle_next = k == len(table.rows) - 2
        drawn.add_row(row.letter, Text(row.name), *texts, end_section=oracle_next)
    console.print(drawn)
    return True


def _show_p_values(terminal: Terminal, found: Comparison) -> None:
    if len(found.systems) > MOST_SYSTEMS_IN_MATRIX:
        terminal.say("")
        terminal.say("The p-values of so many systems are in what --pairs FILE writes.")
        return
    rows = _rows(found)
    for measure in found.measures:
        terminal.say("")
        matrix = found.p_values[measure]
        _show_triangle(terminal, f"p-values, {measure}", rows, found.letters, matrix)


def _rows(found: Comparison) -> Sequence[str]:
    """Return letters with names; letters alone if names make too wide a matrix of p-values."""
    rows = [f"{a}  {name}" for a, name in zip(found.letters, found.systems, strict=True)]
    widths = [drawn_width(found.letters, _triangle(rows, p)) for p in found.p_values.values()]
    fit = len(rows) <= MOST_NAMES_IN_MATRIX and max(widths) <= USUAL_WIDTH
    return rows if fit else found.letters


def _show_triangle(
    terminal: Terminal,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    matrix: NDArray[np.float64],
) -> None:
    """Print what is above the diagonal of a symmetric matrix (Challenge, Table 8)."""
    terminal.show_table(title, ["", *columns[1:]], _triangle(rows, matrix))


def _triangle(rows: Sequence[str], matrix: NDArray[np.float64]) -> list[list[str]]:
    return [
        [name, *(_number(x) if j > i else "" for j, x in enumerate(line[1:], 1))]
        for i, (name, line) in enumerate(zip(rows[:-1], matrix.tolist()[:-1], strict=True))
    ]


def _number(value: float) -> str:
    if value != value:
        return "-"
    return f"<{LEAST_SHOWN}" if 0 < value < LEAST_SHOWN else f"{value:.4f}"


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
    from rankinite.data.samples import refuse_dependent_queries
    from rankinite.data.scores import feature_scores, load_scores
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
