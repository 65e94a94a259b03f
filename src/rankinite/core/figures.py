"""Figures as PNG files, drawn without a display; equal figures give equal bytes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankinite.core.files import atomic_write
from rankinite.core.format import visible

WIDTH = 6.4
HEIGHT = 4.0


@dataclass(frozen=True)
class Line:
    """A line of a panel; `marked` draws a dot at each point, for few points far apart."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    marked: bool = False


@dataclass(frozen=True)
class Panel:
    """Lines on common axes; `legend_beside` keeps a long legend from covering them."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    legend_beside: bool = False


def subplots(
    n_panels: int = 1, height: float = HEIGHT, per_row: int | None = None
) -> tuple[Any, list[Any]]:
    """Return a matplotlib figure and the axes of its panels.

    Parameters
    ----------
    n_panels
        Number of panels.
    height
        Height of a panel in inches.
    per_row
        Number of panels in a row; all of them by default.
    """
    # The Agg canvas needs no display, and leaves pyplot's global state alone.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_columns = min(n_panels, per_row or n_panels)
    n_rows = -(-n_panels // n_columns)
    size = (WIDTH * n_columns, height * n_rows)
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    all_axes = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    # The last row may have places without a panel.
    for axes in all_axes[n_panels:]:
        axes.remove()
    for axes in all_axes[:n_panels]:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, all_axes[:n_panels]


def draw_panels(panels: Sequence[Panel], path: str | Path, per_row: int | None = None) -> None:
    """Draw panels of lines as a PNG file.

    Parameters
    ----------
    panels
        The panels, in the order of reading.
    path
        The file.
    per_row
        Number of panels in a row; all of them by default.
    """
    figure, all_axes = subplots(len(panels), per_row=per_row)
    for axes, panel in zip(all_axes, panels, strict=True):
        for line in panel.lines:
            marker = "o" if line.marked else None
            axes.plot(line.x, line.y, linewidth=1.5, marker=marker, markersize=4, label=line.label)
        if panel.log_x:
            axes.set_xscale("log")
        axes.set(xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if panel.legend_beside else {}
        axes.legend(fontsize="small", **place)
    save_figure(figure, path)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure to a PNG file, which appears whole or not at all.

    Texts are drawn as they are: what stands between two $ is no formula. Characters that the font
    lacks are drawn as boxes, without a warning.
    """
    from matplotlib.text import Text

    # Numbers at ticks are not among them: they are written, some as formulas, when they are drawn.
    for text in figure.findobj(Text):
        text.set_text(drawn_as_is(text.get_text()))
    with atomic_write(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        # The default metadata name matplotlib's version, by which equal figures would differ.
        figure.savefig(file, format="png", metadata={"Software": None})


def drawn_as_is(text: str) -> str:
    r"""Return what matplotlib draws as a text: without formulas, and with all characters seen.

    Examples
    --------
    >>> print(drawn_as_is("a$x_1$"))
    a\$x_1\$
    """
    return visible(text).replace("$", r"\$")
