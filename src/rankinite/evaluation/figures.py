"""Figures of comparisons: the sorted differences of systems to a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from rankinite.core.figures import HEIGHT, save_figure, subplots
from rankinite.core.types import Floats
from rankinite.stats.paired_tests import Differences

FEW_QUERIES = 50
MOST_COLOURS = 10  # of matplotlib's default cycle
LEGEND_LINE = 0.18  # inches
# Longest names that a line of the legend, and an axis, have room for.
SIGNS_IN_LEGEND = 48
SIGNS_AT_AXIS = 24


def draw_differences(
    folder: str | Path, per_query: Mapping[str, Floats], letters: Mapping[str, str], baseline: int
) -> list[Path]:
    """Draw the sorted differences of every system to a baseline, one figure per measure.

    Parameters
    ----------
    folder
        Folder of the PNG files; created if it does not exist.
    per_query
        For every measure, systems x queries; NaN where the query is left out.
    letters
        The letter of every system, by its name.
    baseline
        Index of the system to compare with.
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
    figure, (axes,) = subplots(height=HEIGHT + LEGEND_LINE * (n_lines + 1))
    axes.axhline(0, color="grey", linewidth=1)
    axes.set_prop_cycle(color=_colours(n_lines))
    differences = np.sort(Differences.between(values, values[baseline]).values, axis=1)
    ranks = np.arange(1, values.shape[1] + 1)
    marker = "." if len(ranks) <= FEW_QUERIES else ""
    for k, (name, letter) in enumerate(letters.items()):
        if k != baseline:
            label = _label(f"{letter}  {_short(name, SIGNS_IN_LEGEND)}", differences[k])
            axes.plot(ranks, differences[k], linewidth=1.5, marker=marker, label=label)
    label = _plain(f"{measure}, difference to {_short(list(letters)[baseline], SIGNS_AT_AXIS)}")
    axes.set(xlabel="Queries, by difference", ylabel=label)
    figure.legend(loc="outside lower center", fontsize="small", frameon=False)
    save_figure(figure, path)


def _colours(n_lines: int) -> list[Any]:
    """Return matplotlib's default colours, or colours of a rainbow if there are more lines."""
    from matplotlib import colormaps

    if n_lines <= MOST_COLOURS:
        return list(colormaps["tab10"](np.arange(MOST_COLOURS)))
    return list(colormaps["turbo"](np.linspace(0.0, 1.0, n_lines)))


def _short(name: str, most: int) -> str:
    """Cut the middle out of a long name: either end may distinguish it from others.

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
    """Return text in which matplotlib sees no formulas."""
    return text.replace("$", r"\$")
