"""A comparison of systems as tables on a terminal or in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rankinite.cli.terminal import Terminal, drawn_width

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankinite.evaluation.comparison import Comparison
    from rankinite.evaluation.table import Table

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
