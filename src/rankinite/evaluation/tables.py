"""A table of systems and measures, with letters for what is significantly better than what."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Unicode has no small raised q.
LETTERS = string.ascii_lowercase.replace("q", "")
RAISED = dict(zip(LETTERS, "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
SPACE = "  "
LEGEND = "A letter: significantly better than that system"

IN_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
} | {sign: "\\" + sign for sign in "&%$#_{}"}  # fmt: skip


def letters_for(n_systems: int) -> tuple[str, ...]:
    """Return a letter for every system; two or more letters each where one is not enough.

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


def raised(letters: str) -> str:
    """Return letters as small raised ones.

    Examples
    --------
    >>> raised("ac"), raised("aa,ab")
    ('ᵃᶜ', 'ᵃᵃ,ᵃᵇ')
    """
    return "".join(RAISED.get(letter, letter) for letter in letters)


@dataclass(frozen=True)
class Cell:
    """A mean, the letters of the systems that it is better than, and whether it is the best."""

    mean: str
    letters: str = ""
    best: bool = False


@dataclass(frozen=True)
class Row:
    """A system with its letter; the oracle has none."""

    letter: str
    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Systems are rows, measures are columns; the last row is the oracle.

    Attributes
    ----------
    title
        What the cells are.
    test
        The test behind the letters.
    """

    title: str
    test: str
    measures: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def legend(self) -> str:
        """What letters and bold numbers stand for."""
        return f"{LEGEND}; bold: the best mean."

    def to_text(self, *, unicode: bool = True) -> str:
        """Return aligned columns of plain text; without Unicode ``^`` stands before letters.

        Examples
        --------
        >>> rows = (Row("a", "bm25", (Cell("12.1"),)), Row("b", "tree", (Cell("19.9", "a", True),)))
        >>> print(Table("Means", "By tossing a coin.", ("DCG",), rows).to_text())
        Means
           System   DCG
        a  bm25    12.1
        b  tree    19.9*ᵃ
        A letter: significantly better than that system; *: the best mean.
        By tossing a coin.
        """
        columns = [self.padded(k, unicode=unicode) for k in range(len(self.measures))]
        first = _padded_left([("", "System"), *((row.letter, row.name) for row in self.rows)])
        lines = zip(first, *(map("".join, column) for column in columns), strict=True)
        texts = [SPACE.join(line).rstrip() for line in lines]
        return "\n".join([self.title, *texts, f"{LEGEND}; *: the best mean.", self.test])

    def padded(self, k: int, *, unicode: bool = True, star: str = "*") -> list[tuple[str, str]]:
        """Return a column, the measure first: means that end, and letters that begin, alike."""
        cells = [row.cells[k] for row in self.rows]
        raise_ = raised if unicode else _after_caret
        marks = ["", *(star * cell.best + raise_(cell.letters) for cell in cells)]
        means = [self.measures[k], *(cell.mean for cell in cells)]
        left, right = max(map(len, means)), max(map(len, marks))
        return [(m.rjust(left), s.ljust(right)) for m, s in zip(means, marks, strict=True)]

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        rows = [
            [row.letter, _in_markdown(row.name), *map(_markdown_cell, row.cells)]
            for row in self.rows
        ]
        lines = [
            ["", "System", *map(_in_markdown, self.measures)],
            ["---", "---", *("---:" for _ in self.measures)],
            *rows,
        ]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([_in_markdown(self.title), table, f"{self.legend} {self.test}\n"])

    def to_latex(self) -> str:
        """Return the table in LaTeX, for the package booktabs."""
        *systems, oracle = (
            [row.letter, _in_latex(row.name), *map(_latex_cell, row.cells)] for row in self.rows
        )
        caption = _in_latex(f"{self.title}. {self.legend} {self.test}")
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{caption}}}",
                rf"\begin{{tabular}}{{ll{'l' * len(self.measures)}}}",
                r"\toprule",
                _latex_line(["", "System", *map(_in_latex, self.measures)]),
                r"\midrule",
                *map(_latex_line, systems),
                r"\midrule",
                _latex_line(oracle),
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )


def _in_latex(text: str) -> str:
    r"""Return text with LaTeX's own signs escaped.

    Examples
    --------
    >>> print(_in_latex("tree_2 & 50%"))
    tree\_2 \& 50\%
    """
    return "".join(IN_LATEX.get(sign, sign) for sign in text)


def _after_caret(letters: str) -> str:
    return f"^{letters}" if letters else ""


def _padded_left(lines: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Join two columns of text, both aligned to the left."""
    widths = [max(len(line[k]) for line in lines) for k in (0, 1)]
    for letter, name in lines:
        yield letter.ljust(widths[0]) + SPACE + name.ljust(widths[1])


def _in_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~&])", r"\\\1", text)


def _markdown_cell(cell: Cell) -> str:
    return (f"**{cell.mean}**" if cell.best else cell.mean) + raised(cell.letters)


def _latex_cell(cell: Cell) -> str:
    mean = rf"\textbf{{{cell.mean}}}" if cell.best else cell.mean
    return mean + (rf"\textsuperscript{{{cell.letters}}}" if cell.letters else "")


def _latex_line(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
