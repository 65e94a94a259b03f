"""``rankinite compare``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rankinite.cli.names import short_names
from rankinite.cli.options import DropSingleLabel, Loading, Measures, Missing, Seed
from rankinite.cli.targets import refuse_overwriting
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.core.wording import some_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankinite.evaluation.comparison import Comparison
    from rankinite.evaluation.table import Table

MOST_SYSTEMS_IN_MATRIX = 10
LEAST_SHOWN = 0.0001
LEAST_SYSTEMS_FOR_TAU = 3  # of two, tau could only say 1 or -1


def compare(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCORES",
            help="The scores of each system: one number a line in the order of the documents, or a "
            "TREC run.",
        ),
    ],
    source: Annotated[
        Path, typer.Option("--data", "-d", help="The data set with the labels.", show_default=False)
    ],
    measures: Measures = "NDCG@10,ERR",
    test: Annotated[
        Literal["t", "randomisation"],
        typer.Option(help="The paired t-test, or Fisher's randomisation test."),
    ] = "t",
    correction: Annotated[
        Literal["holm", "none"], typer.Option(help="Correct p-values for the number of pairs.")
    ] = "holm",
    level: Annotated[
        float, typer.Option(help="A difference with a p-value up to this is significant.")
    ] = 0.05,
    permutations: Annotated[
        int, typer.Option(min=1, help="How many sign patterns the randomisation test tries.")
    ] = 100_000,
    resamples: Annotated[
        int, typer.Option(min=1, help="How many times the bootstrap draws queries anew.")
    ] = 10_000,
    seed: Seed = 0,
    drop_single_label: DropSingleLabel = False,
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
    figures: Annotated[
        Path | None,
        typer.Option(help="Draw each query's differences as PNG files into this folder."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="The system that differences are drawn to. (Default: the first.)"),
    ] = None,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Compare systems query by query: means, and which differences could be chance.

    A system is called by the name of its file, without the ending. Every two systems are tested;
    the oracle picks the best system for every query.
    """
    from rankinite.data.scores import load_scores
    from rankinite.evaluation.compare import compare as compare_scores
    from rankinite.measures.text import parse_measures

    outs = out or []
    names = _checked_names(files)
    _check_outs(outs, [source, *files])
    _check_baseline(baseline, names, figures)
    chosen = parse_measures(measures)
    terminal.expect_compiling()
    data = loading.load(source, terminal)
    found = compare_scores(
        {
            name: load_scores(path, data, missing=missing, order=data.rows)
            for name, path in zip(names, files, strict=True)
        },
        data,
        chosen,
        test=test,
        correction=correction,
        level=level,
        permutations=permutations,
        resamples=resamples,
        seed=seed,
        drop_single_label=drop_single_label,
        progress=terminal.progress(),
    )
    _finish(terminal, found, _write(found, outs, figures, baseline))


def _checked_names(files: Sequence[Path]) -> list[str]:
    if len(files) == 1:
        raise UsageError(
            "compare: there must be at least two files of scores; as in rankinite compare "
            "a.scores b.scores --data test.txt"
        )
    twice = [str(path) for k, path in enumerate(files) if path in files[:k]]
    if twice:
        raise UsageError(f"compare: {twice[0]} was named twice; name each file once")
    return short_names(files)


def _check_outs(outs: Sequence[Path], sources: Sequence[Path]) -> None:
    from rankinite.evaluation.comparison import writer_for

    for path in outs:
        writer_for(path)
    refuse_overwriting("compare", outs, sources)


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


def _write(
    found: Comparison, outs: Sequence[Path], figures: Path | None, baseline: str | None
) -> list[Path]:
    for path in outs:
        found.save(path)
    drawn = [] if figures is None else found.draw_differences(figures, baseline=baseline)
    return [*outs, *drawn]


def _finish(terminal: Terminal, found: Comparison, written: Sequence[Path]) -> None:
    if terminal.json:
        terminal.show_json({**found.as_json(), "wrote": [str(path) for path in written]})
        return
    _show_means(terminal, found.table())
    _show_p_values(terminal, found)
    if found.tau is not None and len(found.systems) >= LEAST_SYSTEMS_FOR_TAU:
        terminal.say("")
        _show_triangle(terminal, "Kendall's tau", found.measures, found.measures, found.tau)
    for path in written:
        terminal.say(f"wrote {path}")


def _show_means(terminal: Terminal, table: Table) -> None:
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    if sys.stdout.isatty():
        _draw(table, unicode=unicode)
        terminal.say(table.legend)
        terminal.say(table.test)
    else:
        terminal.say(table.to_text(unicode=unicode))


def _draw(table: Table, *, unicode: bool) -> None:
    """Print the table of means on a terminal, with the best ones in bold."""
    import rich.console
    import rich.table
    from rich.text import Text

    drawn = rich.table.Table(title=Text(table.title, style="bold"), title_justify="left")
    columns = [table.padded(k, unicode=unicode, star="") for k in range(len(table.measures))]
    for heading in ("", "System", *(measure for (measure, _), *_ in columns)):
        drawn.add_column(Text(heading))
    for k, row in enumerate(table.rows):
        texts = [
            Text.assemble((mean, "bold" if cell.best else ""), letters)
            for cell, (mean, letters) in zip(row.cells, (c[k + 1] for c in columns), strict=True)
        ]
        oracle_next = k == len(table.rows) - 2
        drawn.add_row(row.letter, Text(row.name), *texts, end_section=oracle_next)
    rich.console.Console().print(drawn)


def _show_p_values(terminal: Terminal, found: Comparison) -> None:
    if len(found.systems) > MOST_SYSTEMS_IN_MATRIX:
        terminal.say("")
        terminal.say("The p-values of so many systems are in what --out FILE.json writes.")
        return
    rows = [f"{a}  {name}" for a, name in zip(found.letters, found.systems, strict=True)]
    for measure in found.measures:
        terminal.say("")
        matrix = found.p_values[measure]
        _show_triangle(terminal, f"p-values, {measure}", rows, found.letters, matrix)


def _show_triangle(
    terminal: Terminal,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    matrix: NDArray[np.float64],
) -> None:
    """Print what is above the diagonal of a symmetric matrix (Challenge, Table 8)."""
    shown = [
        [name, *(_number(x) if j > i else "" for j, x in enumerate(line[1:], 1))]
        for i, (name, line) in enumerate(zip(rows[:-1], matrix.tolist()[:-1], strict=True))
    ]
    terminal.show_table(title, ["", *columns[1:]], shown)


def _number(value: float) -> str:
    if value != value:
        return "-"
    return f"<{LEAST_SHOWN}" if 0 < value < LEAST_SHOWN else f"{value:.4f}"
