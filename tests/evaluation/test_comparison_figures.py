"""Figures of comparisons."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba

import rankinite as rk
from rankinite.evaluation import comparison as comparison_module
from tests.evaluation.cases import pairs_of_documents

PNG = b"\x89PNG\r\n\x1a\n"


def test_figures_repeat(tmp_path):
    names = {"_hidden": "1100", "cost in $": "0110", "$": "1010"}
    scores, data = pairs_of_documents(**names)
    comparison = rk.compare(scores, data, ["MRR", "P(relevant=1)@1", "NDCG(empty=0, gain=linear)"])
    first = comparison.draw_differences(tmp_path / "a")
    second = comparison.draw_differences(tmp_path / "b")
    assert [path.name for path in first] == [
        "differences-MRR.png",
        "differences-P@1.png",
        "differences-NDCG(empty=0,%20gain=linear).png",
    ]
    other = comparison.draw_differences(tmp_path / "c", baseline="$")
    for figure, again, changed in zip(first, second, other, strict=True):
        assert figure.read_bytes()[:8] == PNG
        assert figure.read_bytes() == again.read_bytes() != changed.read_bytes()
    with pytest.raises(rk.UsageError, match="there is no system 'x'"):
        comparison.draw_differences(tmp_path, baseline="x")


@pytest.mark.parametrize("n_systems", [2, 12, 60])
def test_axes_keep_their_height_and_colours_differ(monkeypatch, tmp_path, n_systems):
    drawn = []
    monkeypatch.setattr(comparison_module, "save_figure", lambda figure, path: drawn.append(figure))
    marks = {f"system {k}": "1" * (k % 9) + "0" * (8 - k % 9) for k in range(n_systems)}
    scores, data = pairs_of_documents(**marks)
    rk.compare(scores, data, "MRR", resamples=1).draw_differences(tmp_path)
    (figure,) = drawn
    figure.canvas.draw()
    (axes,) = figure.axes
    # Inches: 4 for the axes with their words.
    assert 3.0 < axes.get_position().height * figure.get_figheight() < 4.0
    assert axes.get_position().width > 0.8
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.y0 >= 0
    assert box.y1 <= axes.get_window_extent().y0
    lines = axes.get_lines()[1:]
    assert len({tuple(to_rgba(line.get_color())) for line in lines}) == n_systems - 1


def test_long_names_are_cut_in_figures(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(comparison_module, "save_figure", lambda figure, path: drawn.append(figure))
    scores, data = pairs_of_documents(**{f"{k}{'x' * 200}{k}": "10" for k in "ab"})
    rk.compare(scores, data, "MRR", resamples=1).draw_differences(tmp_path)
    (figure,) = drawn
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert figure.axes[0].yaxis.label.get_window_extent().y0 >= 0


def test_names_that_the_font_lacks(tmp_path):
    # Warnings are errors here.
    scores, data = pairs_of_documents(模型="10", b="01")
    (path,) = rk.compare(scores, data, "MRR", resamples=1).draw_differences(tmp_path)
    assert path.read_bytes()[:8] == PNG


@pytest.fixture
def shown(monkeypatch):
    """The lines that are drawn, each with its label."""
    import matplotlib.axes

    shown = []
    plot = matplotlib.axes.Axes.plot
    monkeypatch.setattr(
        matplotlib.axes.Axes,
        "plot",
        lambda self, x, y, **rest: (
            shown.append((list(y), rest["label"])),
            plot(self, x, y, **rest),
        ),
    )
    return shown


def test_rounding_neither_wins_nor_loses(shown, tmp_path):
    # 0.1 + 0.2 and 0.3 differ by 6e-17. The tie of 1e18 does not make 1 and 0.5 one, and 1e-20
    # loses to 2e-20: what rounding can do depends on the query.
    values = {"a": [0.1 + 0.2, 1e18, 0.5, 2e-20], "b": [0.3, 1e18, 1.0, 1e-20]}
    rk.compare_evaluations(
        {k: rk.Evaluation(np.arange(4), {"DCG": np.array(v)}) for k, v in values.items()}
    ).draw_differences(tmp_path)
    assert shown == [([-1e-20, 0, 0, 0.5], "b  b: wins 1, ties 2, losses 1")]


def test_wins_ties_and_losses(shown, tmp_path):
    scores, data = pairs_of_documents(a="11000", b="10110", c="00000")
    rk.compare(scores, data, "MRR").draw_differences(tmp_path)
    assert shown == [
        ([-0.5, 0, 0, 0.5, 0.5], "b  b: wins 2, ties 2, losses 1"),
        ([-0.5, -0.5, 0, 0, 0], "c  c: wins 0, ties 3, losses 2"),
    ]
