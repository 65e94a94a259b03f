"""Tables as text, Markdown and LaTeX, values as CSV and JSON, and summaries of experiments.

A table holds texts, as people read them. Some of its cells may be means with marks: letters for the
systems that they are significantly better than, and whether they are the best of their column.
CSV and JSON are for programs and keep every digit, so they are made from values instead of texts.
Names come from files: all their characters are seen, and none means anything to Markdown, LaTeX or
a spreadsheet. A `Summary` bundles the tables, notes, figures and values of an experiment, and
writes its files.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rankinite.core.figures import Panel, draw_panels
from rankinite.core.files import atomic_write
from rankinite.core.format import visible

# Unicode has no superscript q.
LETTERS = string.ascii_lowercase.replace("q", "")
SUPERSCRIPTS = dict(zip(LETTERS, "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
LEGEND = "A letter: significantly better than that system"

# By which a cell of a spreadsheet begins that is computed, the wide forms of some included.
FORMULA_SIGNS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

# In LaTeX's default font encoding, <, > and | print as other signs.
LATEX_ESCAPES = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
} | {sign: "\\" + sign for sign in "&%$#_{}"} | {
    # After the end of a line these would be options of that.
    sign: "{" + sign + "}" for sign in "[*"
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A mean, the letters of the systems that it is better than, and whether it is the best."""

    text: str
    letters: str = ""
    best: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """Rows of texts under a title; characters that would not be seen are escaped.

    Attributes
    ----------
    title
        What the table shows.
    columns
        Headings of the columns.
    rows
        The rows; a cell is a text, or a mean with marks.
    note
        Sentence below the table, such as the test behind the letters.
    n_labels
        Number of leading columns that name the row; they are aligned to the left.
    last_apart
        Whether the last row stands below a line, as an oracle does.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    note: str = ""
    n_labels: int = 1
    last_apart: bool = False

    def __post_init__(self) -> None:
        shown = tuple(
            tuple(visible(c) if isinstance(c, str) else c for c in row) for row in self.rows
        )
        for name, value in (
            ("title", visible(self.title)),
            ("columns", tuple(visible(column) for column in self.columns)),
            ("rows", shown),
            ("note", visible(self.note)),
        ):
            object.__setattr__(self, name, value)

    @property
    def has_marks(self) -> bool:
        """Whether some cells are means with letters."""
        return any(isinstance(cell, Cell) for row in self.rows for cell in row)

    def is_text(self, column: int) -> bool:
        """Return whether a column is aligned to the left: labels, or cells that are no numbers."""
        is_label = column < self.n_labels
        return is_label or any(str(row[column])[:1].isalpha() for row in self.rows)

    def footer(self, best: str = "bold") -> list[str]:
        """Return the sentences below the table, given how the best mean is shown."""
        legend = [f"{LEGEND}; {best}: the best mean."] if self.has_marks else []
        return legend + ([self.note] if self.note else [])

    def part(self, begin: int, end: int) -> Table:
        """Return a table of the labels and some of the other columns."""
        chosen = [*range(self.n_labels), *range(begin, end)]
        rows = [[row[k] for k in chosen] for row in self.rows]
        return replace(self, columns=[self.columns[k] for k in chosen], rows=rows)

    def to_text(self, *, unicode: bool = True, gap: str = "  ") -> str:
        """Return the table in aligned columns of plain text.

        Parameters
        ----------
        unicode
            Whether letters may be superscripts; otherwise a ``^`` comes before them.
        gap
            What stands between columns.

        Examples
        --------
        >>> print(Table("Sizes", ["set", "queries"], [["train", "10"], ["test", "5"]]).to_text())
        Sizes
        set    queries
        train       10
        test         5
        >>> rows = [("a", "bm25", Cell("12.1")), ("b", "tree", Cell("19.9", "a", best=True))]
        >>> test = "By tossing a coin."
        >>> print(Table("Means", ["", "System", "DCG"], rows, test, n_labels=2).to_text())
        Means
           System   DCG
        a  bm25    12.1
        b  tree    19.9*ᵃ
        A letter: significantly better than that system; *: the best mean.
        By tossing a coin.
        """
        return "\n".join([*self.lines(unicode=unicode, gap=gap), *self.footer("*")])

    def lines(self, *, unicode: bool = True, gap: str = "  ") -> list[str]:
        """Return title, headings and rows as in `to_text`, without what stands below them."""
        padded = [self.padded(k, unicode=unicode) for k in range(len(self.columns))]
        joined = (map("".join, column) for column in padded)
        return [self.title, *(gap.join(line).rstrip() for line in zip(*joined, strict=True))]

    def padded(
        self, column: int, *, unicode: bool = True, star: str = "*"
    ) -> list[tuple[str, str]]:
        """Return text and marks of every cell of a column, its heading first, at equal widths."""
        cells = [row[column] for row in self.rows]
        texts = [self.columns[column], *map(str, cells)]
        marks = ["", *(_marks(cell, unicode=unicode, star=star) for cell in cells)]
        left, right = max(map(len, texts)), max(map(len, marks))
        # Marks have a column of their own, so that digits stay aligned beside them.
        pad = str.ljust if self.is_text(column) else str.rjust
        return [(pad(t, left), m.ljust(right)) for t, m in zip(texts, marks, strict=True)]

    def to_markdown(self) -> str:
        """Return the table in Markdown.

        Examples
        --------
        >>> print(Table("Sizes", ["set", "queries"], [["train", "10"]]).to_markdown(), end="")
        **Sizes**
        <BLANKLINE>
        | set | queries |
        | --- | ---: |
        | train | 10 |
        """
        rules = ["---" if k < self.n_labels else "---:" for k in range(len(self.columns))]
        lines = [
            [_markdown_escaped(column) for column in self.columns],
            rules,
            *([_markdown_cell(cell) for cell in row] for row in self.rows),
        ]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        footer = [_markdown_escaped(" ".join(self.footer()))] if self.footer() else []
        return "\n\n".join([f"**{_markdown_escaped(self.title)}**", body, *footer]) + "\n"

    def to_latex(self) -> str:
        """Return the table in LaTeX, for the package booktabs."""
        lines = [_latex_line([_latex_cell(cell) for cell in row]) for row in self.rows]
        if self.last_apart:
            lines.insert(-1, r"\midrule")
        sentences = " ".join([f"{self.title}.", *self.footer()])
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_latex_escaped(sentences)}}}",
                rf"\begin{{tabular}}{{{'l' * len(self.columns)}}}",
                r"\toprule",
                _latex_line([_latex_escaped(column) for column in self.columns]),
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )


@dataclass(frozen=True)
class Summary:
    """Results of an experiment.

    Attributes
    ----------
    name
        Name of its files, without their suffixes.
    tables
        The tables.
    notes
        Sentences on what the tables show.
    figures
        Panels of every figure, by the name of its file.
    values
        All numbers, as JSON can hold them.
    """

    name: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    figures: Mapping[str, tuple[Panel, ...]] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    def to_markdown(self) -> str:
        """Return tables and notes in Markdown."""
        notes = "\n".join(f"- {_markdown_sentence(note)}" for note in self.notes)
        return "\n".join([*(table.to_markdown() for table in self.tables), notes + "\n"])

    def save(self, folder: str | Path) -> list[Path]:
        """Write NAME.md, NAME.json and a PNG file for every figure; return their paths.

        Parameters
        ----------
        folder
            Folder of the files; created if it does not exist.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        texts = {".md": self.to_markdown(), ".json": json_text(dict(self.values))}
        written = []
        for suffix, text in texts.items():
            written.append(target / f"{self.name}{suffix}")
            with atomic_write(written[-1]) as file:
                file.write(text.encode())
        for name, panels in self.figures.items():
            written.append(target / f"{name}.png")
            draw_panels(panels, written[-1])
        return written


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    r"""Return values as CSV, numbers with all their digits and None as nothing.

    A text that a spreadsheet would compute gets an apostrophe, and control characters are escaped.

    Examples
    --------
    >>> csv_text(["measure", "mean"], [["ERR", 0.1 + 0.2], ["MRR", None]])
    'measure,mean\nERR,0.30000000000000004\nMRR,\n'
    >>> csv_text(["qid", "-1"], [["=1+1", "-2.5"]])
    "qid,-1\n'=1+1,-2.5\n"
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in itertools.chain([columns], rows):
        writer.writerow([_csv_cell(value) for value in row])
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    shown = visible(value, keep="\n\t")
    # Spreadsheets may drop blanks before they look whether a cell is a formula.
    is_formula = shown.lstrip()[:1] in FORMULA_SIGNS or shown[:1] in ("\n", "\t")
    return f"'{shown}" if shown and is_formula and not NUMBER.fullmatch(shown) else shown


def json_text(values: Any) -> str:
    """Return values as JSON for a file."""
    return json.dumps(values, indent=2) + "\n"


def letters_for(n_systems: int) -> tuple[str, ...]:
    """Return a letter for every system; two or more letters each if the alphabet is too short.

    Examples
    --------
    >>> letters_for(3), letters_for(30)[:3]
    (('a', 'b', 'c'), ('aa', 'ab', 'ac'))
    """
    length = 1
    while len(LETTERS) ** length < n_systems:
        length += 1
    names = itertools.product(LETTERS, repeat=length)
    return tuple("".join(name) for name in itertools.islice(names, n_systems))


def superscript(letters: str) -> str:
    """Return letters as superscripts.

    Examples
    --------
    >>> superscript("ac"), superscript("aa,ab")
    ('ᵃᶜ', 'ᵃᵃ,ᵃᵇ')
    """
    return "".join(SUPERSCRIPTS.get(letter, letter) for letter in letters)


def _marks(cell: str | Cell, *, unicode: bool, star: str) -> str:
    if isinstance(cell, str):
        return ""
    caret = "^" if cell.letters else ""
    return star * cell.best + (superscript(cell.letters) if unicode else caret + cell.letters)


def _markdown_escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~&$])", r"\\\1", visible(text))


def _markdown_sentence(text: str) -> str:
    """Return a sentence for a list; one that begins like a heading or another list is neither."""
    return re.sub(r"^(\d*)([#+=.)-])", r"\1\\\2", _markdown_escaped(text).lstrip())


def _markdown_cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return _markdown_escaped(cell)
    return (f"**{cell.text}**" if cell.best else cell.text) + superscript(cell.letters)


def _latex_escaped(text: str) -> str:
    r"""Return text with LaTeX's special characters escaped.

    Examples
    --------
    >>> print(_latex_escaped("tree_2 & 50%"))
    tree\_2 \& 50\%
    """
    return "".join(LATEX_ESCAPES.get(sign, sign) for sign in text)


def _latex_cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return _latex_escaped(cell)
    mean = rf"\textbf{{{cell.text}}}" if cell.best else cell.text
    return mean + (rf"\textsuperscript{{{cell.letters}}}" if cell.letters else "")


def _latex_line(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
