"""Figures of comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from rankinite.core.figures import panels, save_figure
from rankinite.stats.units import NOISE, Units

Floats = NDArray[np.float64]

FEW_QUERIES = 50


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
    figure, (axes,) = panels()
    axes.axhline(0, color="grey", linewidth=1)
    differences = np.sort(without_noise(values, baseline), axis=1)
    ranks = np.arange(1, values.shape[1] + 1)
    marker = "." if len(ranks) <= FEW_QUERIES else ""
    for k, (name, letter) in enumerate(letters.items()):
        if k != baseline:
            label = _label(f"{letter}  {name}", differences[k])
            axes.plot(ranks, differences[k], linewidth=1.5, marker=marker, label=label)
    words = _plain(f"{measure}, difference to {list(letters)[baseline]}")
    axes.set(xlabel="Queries, by difference", ylabel=words)
    axes.legend(fontsize="small")
    save_figure(figure, path)


def without_noise(values: Floats, baseline: int) -> Floats:
    """Return the differences to one system; those within rounding are 0."""
    units = Units.of(values).counts
    noise = np.abs(units - units[baseline]) <= NOISE
    return np.where(noise, 0.0, values - values[baseline])


def _label(name: str, differences: Floats) -> str:
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    ties = len(differences) - wins - losses
    return _plain(f"{name}: wins {wins:,}, ties {ties:,}, losses {losses:,}")


def _plain(text: str) -> str:
    """Keep matplotlib from reading formulas in names."""
    return text.replace("$", r"\$")
