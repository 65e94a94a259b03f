"""What an experiment found: tables, figures and sentences, and the files that keep them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankinite.core.figures import panels, save_figure
from rankinite.core.files import atomic_write


@dataclass(frozen=True)
class Sheet:
    """A table of texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_markdown(self) -> str:
        """Return the table as Markdown; the first column is to the left."""
        marks = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [self.columns, marks, *self.rows]
        body = "\n".join("| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in lines)
        return f"**{self.title}**\n\n{body}\n"


@dataclass(frozen=True)
class Line:
    """A line of a figure; its points are marked if there are few that stand apart."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    marked: bool = False


@dataclass(frozen=True)
class Panel:
    """One of the panels of a figure; with many lines the legend best stands beside them."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    legend_beside: bool = False


@dataclass(frozen=True)
class Summary:
    """What an experiment found.

    Attributes
    ----------
    name
        What its files are called.
    sheets, notes
        Tables, and sentences on what they show.
    figures
        The panels of every figure, by the name of its file.
    values
        All numbers, as JSON can hold them.
    """

    name: str
    sheets: tuple[Sheet, ...]
    notes: tuple[str, ...]
    figures: Mapping[str, tuple[Panel, ...]] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    def save(self, folder: str | Path) -> list[Path]:
        """Write NAME.md, NAME.json and one PNG file a figure.

        Parameters
        ----------
        folder
            Where to put the files; made if it is not there.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        notes = "\n".join(f"- {note}" for note in self.notes)
        parts = [*(sheet.to_markdown() for sheet in self.sheets), notes + "\n"]
        written = [target / f"{self.name}.md", target / f"{self.name}.json"]
        with atomic_write(written[0]) as file:
            file.write("\n".join(parts).encode())
        with atomic_write(written[1]) as file:
            file.write((json.dumps(dict(self.values), indent=2) + "\n").encode())
        for name, drawn in self.figures.items():
            written.append(target / f"{name}.png")
            draw_lines(drawn, written[-1])
        return written


def draw_lines(drawn: Sequence[Panel], path: str | Path, a_row: int | None = None) -> None:
    """Draw panels of lines, side by side or so many a row, as a PNG file."""
    figure, axes = panels(len(drawn), a_row=a_row)
    for one, panel in zip(axes, drawn, strict=True):
        for line in panel.lines:
            mark = "o" if line.marked else None
            one.plot(line.x, line.y, linewidth=1.5, marker=mark, markersize=4, label=line.label)
        if panel.log_x:
            one.set_xscale("log")
        one.set(xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if panel.legend_beside else {}
        one.legend(fontsize="small", **place)
    save_figure(figure, path)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
