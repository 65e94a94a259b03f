"""Figures of comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from rankinite.core.figures import HEIGHT, panels, save_figure
from rankinite.core.types import Floats
from rankinite.stats.paired_tests import Differences

FEW_QUERIES = 50
MOST_COLOURS = 10  # that matplotlib has for lines
LEGEND_LINE = 0.18  # inches
# Of a name: what a line of the legend has room for, and an axis.
SIGNS_IN_LEGEND = 48
SIGNS_AT_AXIS = 24


def draw_differences(
    folder: str | Path, per_query: Mapping[str, Floats], letters: Mapping[str, str], baseline: int
) -> list[Path]:
    """Draw a figure a measure: the sorted differences of each system to a baseline.

    Parameters
    ----------
    folder
        Where to put the files; made if it is not there.
    per_query
        For every measure, systems x queries; NaN where the query is left out.
    letters
        The letter of every system, by its name.
    baseline
        The number of the system to compare with.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for measure, values in per_query.items():
        paths.append(target / f"differences-{quote(measure, safe='@()[]=,')}.png")
        counted = values[:, ~np.isnan(values[0])]
        _draw(paths[-1], measure, counted, letters, baseline)
    return paths


def _draw(
    path: Path, measure: str, values: Floats, letters: Mapping[str, str], baseline: int
) -> None:
    n_lines = len(letters) - 1
    figure, (axes,) = panels(height=HEIGHT + LEGEND_LINE * (n_lines + 1))
    axes.axhline(0, color="grey", linewidth=1)
    axes.set_prop_cycle(color=_colours(n_lines))
    differences = np.sort(Differences.between(values, values[baseline]).values, axis=1)
    ranks = np.arange(1, values.shape[1] + 1)
    marker = "." if len(ranks) <= FEW_QUERIES else ""
    for k, (name, letter) in enumerate(letters.items()):
        if k != baseline:
            label = _label(f"{letter}  {_short(name, SIGNS_IN_LEGEND)}", differences[k])
            axes.plot(ranks, differences[k], linewidth=1.5, marker=marker, label=label)
    words = _plain(f"{measure}, difference to {_short(list(letters)[baseline], SIGNS_AT_AXIS)}")
    axes.set(xlabel="Queries, by difference", ylabel=words)
    figure.legend(loc="outside lower center", fontsize="small", frameon=False)
    save_figure(figure, path)


def _colours(n_lines: int) -> list[Any]:
    """Return the usual colours, or as many from a rainbow as there are lines."""
    from matplotlib import colormaps

    if n_lines <= MOST_COLOURS:
        return list(colormaps["tab10"](np.arange(MOST_COLOURS)))
    return list(colormaps["turbo"](np.linspace(0.0, 1.0, n_lines)))


def _short(name: str, most: int) -> str:
    """Cut the middle out of a long name: both ends may be what tells it from others.

    Examples
    --------
    >>> _short("tree with 500 leaves", 10)
    'tree …aves'
    """
    half = most // 2
    return name if len(name) <= most else f"{name[:half]}…{name[1 - half :]}"


def _label(name: str, differences: Floats) -> str:
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    ties = len(differences) - wins - losses
    return _plain(f"{name}: wins {wins:,}, ties {ties:,}, losses {losses:,}")


def _plain(text: str) -> str:
    """Keep matplotlib from reading formulas in names."""
    return text.replace("$", r"\$")
