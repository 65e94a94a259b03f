"""Output of commands: tables, JSON, notes and progress.

Nothing that a file says makes a terminal do more than show it: every text is printed here, or by
``cli/invoke.py``, through `visible`.

Results go to the standard output, notes and progress to the error stream, so that a pipe carries
results only.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankinite.core.format import visible
from rankinite.core.progress import Bar, Lines, Progress, Reporter, Silent
from rankinite.evaluation.tables import Cell, Table

if TYPE_CHECKING:
    import rich.table

    from rankinite.data.ranking_data import RankingData
    from rankinite.evaluation.tables import Summary

log = logging.getLogger("rankinite")

ABOUT_COMPILING = "compiling"  # as in core/compilation.py, which would import numba here
NARROWEST_LABEL = 12  # of labels that are folded on a terminal
CONTINUED = ", continued"


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """Where a command's output goes: rich on a terminal, plain in a pipe, JSON on demand."""

    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no notes and no progress.")
    ] = False
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Print more notes, and where an unexpected error arose."
        ),
    ] = False

    def __post_init__(self) -> None:
        level = logging.ERROR if self.quiet else logging.DEBUG if self.verbose else logging.INFO
        log.setLevel(level)
        # Of an earlier command of this process, which would print every note once more.
        for handler in list(log.handlers):
            if isinstance(handler, _NoteHandler):
                log.removeHandler(handler)
        log.addHandler(_NoteHandler())

    def progress(self, *, lines: bool = False) -> Progress:
        """Return a progress reporter: bars on a terminal, otherwise silent.

        With `lines`, for commands that run for hours, there are lines where there is no terminal.
        """
        if self._is_watched():
            return Reporter(Bar)
        return Reporter(Lines) if lines and not self.quiet else Silent()

    def _is_watched(self) -> bool:
        return sys.stderr.isatty() and not self.quiet

    def show_json(self, value: Any) -> None:
        """Print a value as JSON, in ASCII."""
        print(json.dumps(value, indent=2))

    def show_table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table of texts."""
        self.show(Table(title, columns, rows))

    def show(self, table: Table) -> None:
        """Print a table: with lines on a terminal, plain in a pipe.

        Where a terminal is too narrow, long labels are folded; if that does not suffice, the table
        is plain, and in parts if need be: no number is cut.
        """
        unicode = can_print_unicode()
        if not sys.stdout.isatty():
            print(table.to_text(unicode=unicode))
            return
        # Imported here, as it takes as long to import as many a command needs.
        import rich.console

        console = rich.console.Console()
        widths = _widths(table)
        label = widths[table.n_labels - 1]
        room = label + console.width - drawn_width(table)
        # Only labels may be folded: a number on two lines would be misread.
        is_drawn = room >= min(label, NARROWEST_LABEL)
        if is_drawn:
            console.print(_drawn(table, min(label, room), unicode=unicode))
        else:
            for part in _parts(table, widths, console.width):
                print("\n".join(part.lines(unicode=unicode, gap=" ")))
        for sentence in table.footer("bold" if is_drawn else "*"):
            self.say(sentence)

    def show_summary(self, summary: Summary, written: Sequence[Path]) -> None:
        """Print tables and notes, and which files were written."""
        if self.json:
            self.show_json({**summary.values, "wrote": [str(path) for path in written]})
            return
        for table in summary.tables:
            self.show(table)
            self.say("")
        for note in summary.notes:
            self.say(note)
        self.say_written(written)

    def show_written(
        self, files: Sequence[tuple[Path, int, int]], others: Sequence[Path] = ()
    ) -> None:
        """Print which files were written: data sets with their size, and others."""
        if self.json:
            names = ("wrote", "queries", "documents")
            sets = [dict(zip(names, (str(path), *counts), strict=True)) for path, *counts in files]
            self.show_json([*sets, *({"wrote": str(path)} for path in others)])
            return
        rows = [[str(path), f"{queries:,}", f"{docs:,}"] for path, queries, docs in files]
        self.show_table("Wrote", ["File", "Queries", "Documents"], rows)
        self.say_written(others)

    def show_data_file(self, path: Path, data: RankingData, **counts: int) -> None:
        """Print that a data set, or something about each of its documents, was written."""
        size = {"queries": data.n_queries, "documents": data.n_docs}
        if self.json:
            self.show_json({"wrote": str(path), **size, **counts})
        else:
            sizes = ", ".join(f"{number:,} {noun}" for noun, number in size.items())
            self.say(f"wrote {path} ({sizes})")

    def say_written(self, paths: Sequence[Path]) -> None:
        """Print a line for every file that was written."""
        for path in paths:
            self.say(f"wrote {path}")

    def say(self, sentence: str) -> None:
        """Print a sentence of the result."""
        print(visible(sentence))

    def show_file(self, text: str) -> None:
        """Print the text of a file: a terminal gets all characters visible, a pipe as they are."""
        sys.stdout.write(visible(text, keep="\n\t") if sys.stdout.isatty() else text)


def can_print_unicode() -> bool:
    """Return whether the output can show more than ASCII."""
    return (sys.stdout.encoding or "").lower().startswith("utf")


def drawn_width(table: Table) -> int:
    """Return how wide a table is on a terminal: three more a column, for lines and spaces.

    Examples
    --------
    >>> drawn_width(Table("Sizes", ["set", "queries"], [["train", "10"]]))
    19
    """
    return sum(width + 3 for width in _widths(table)) + 1


def _widths(table: Table) -> list[int]:
    """Return the widths of columns in cells of the terminal, of which some signs take two."""
    from rich.cells import cell_len

    widths = []
    for k, heading in enumerate(table.columns):
        texts = [heading, *(str(row[k]) for row in table.rows)]
        marks = table.padded(k, star="")[0][1]  # of the heading: as wide as all others
        widths.append(max(map(cell_len, texts)) + len(marks))
    return widths


def _drawn(table: Table, label_width: int, *, unicode: bool) -> rich.table.Table:
    """Return a table with lines, the best means in bold; the last label may be folded."""
    import rich.table
    from rich.text import Text

    drawn = rich.table.Table(title=Text(table.title, style="bold"), title_justify="left")
    rows: list[list[Text]] = [[] for _ in table.rows]
    for k, heading in enumerate(table.columns):
        cells = [row[k] for row in table.rows]
        has_marks = any(isinstance(cell, Cell) for cell in cells)
        padded = table.padded(k, unicode=unicode, star="")
        is_folded = k == table.n_labels - 1
        drawn.add_column(
            Text("".join(padded[0]) if has_marks else heading),
            # To the right, rich would drop the spaces after marks, by which numbers are aligned.
            justify="left" if has_marks or table.is_text(k) else "right",
            no_wrap=not is_folded,
            overflow="fold",
            max_width=label_width if is_folded else None,
        )
        for row, cell, (text, marks) in zip(rows, cells, padded[1:], strict=True):
            if isinstance(cell, Cell):
                row.append(Text.assemble((text, "bold" if cell.best else ""), marks))
            else:
                row.append(Text(cell))
    for k, row in enumerate(rows):
        drawn.add_row(*row, end_section=table.last_apart and k == len(rows) - 2)
    return drawn


def _parts(table: Table, widths: Sequence[int], room: int) -> Iterator[Table]:
    """Split a table by columns so that every part has room as plain text; all have the labels."""
    n_labels = table.n_labels
    labels = sum(width + 1 for width in widths[:n_labels])
    begin, used = n_labels, labels
    for k in range(n_labels, len(widths)):
        if k > begin and used + widths[k] > room:
            yield table.part(begin, k)
            begin, used = k, labels
            table = replace(table, title=f"{table.title.removesuffix(CONTINUED)}{CONTINUED}")
        used += widths[k] + 1
    yield table.part(begin, len(widths))


@contextmanager
def no_notes_on(subject: str) -> Iterator[None]:
    """Print no notes about a subject, by which log records are marked."""

    def is_about_another(record: logging.LogRecord) -> bool:
        return getattr(record, "about", None) != subject

    log.addFilter(is_about_another)
    try:
        yield
    finally:
        log.removeFilter(is_about_another)


class _NoteHandler(logging.Handler):
    """Prints log records as notes, each sentence once, and one about each marked subject.

    Several data sets of one command cause the same note, such as that on the top grade.
    """

    def __init__(self) -> None:
        super().__init__()
        self.printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        subject = getattr(record, "about", None)
        # It explains a wait to somebody who waits, and is no warning of anything.
        if subject == ABOUT_COMPILING and not sys.stderr.isatty():
            return
        is_note = record.levelno < logging.WARNING or subject == ABOUT_COMPILING
        sentence = f"{'note' if is_note else 'warning'}: {record.getMessage()}"
        subject = subject or sentence
        if subject not in self.printed:
            self.printed.add(subject)
            # What cannot be said must not end the work.
            with suppress(OSError):
                print(visible(sentence), file=sys.stderr)


@contextmanager
def resume_note(folder: Path) -> Iterator[None]:
    """Say what is kept if Ctrl-C ends a run or a sweep."""
    try:
        yield
    except KeyboardInterrupt:
        log.info(
            "stopped; %s keeps all finished tasks, and the same command resumes from there", folder
        )
        raise
