"""Figures as PNG files, drawn without a display; equal figures give equal bytes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from rankinite.core.files import atomic_write

WIDTH = 6.4
HEIGHT = 4.0


def panels(
    n_panels: int = 1, height: float = HEIGHT, a_row: int | None = None
) -> tuple[Any, list[Any]]:
    """Return a matplotlib figure and the axes of its panels, side by side, or so many a row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_columns = min(n_panels, a_row or n_panels)
    n_rows = -(-n_panels // n_columns)
    size = (WIDTH * n_columns, height * n_rows)
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    found = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    for axes in found[n_panels:]:
        axes.remove()
    for axes in found[:n_panels]:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, found[:n_panels]


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure to a file, which appears whole or not at all.

    Letters that the font lacks are drawn as boxes, and nothing is said of them.
    """
    with atomic_write(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(file, format="png", metadata={"Software": None})
