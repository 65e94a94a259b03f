"""What is in a model: numbers, parameters, learning curves and importances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.figures import panels, save_figure
from rankinite.experiments.configuration import defaults_of
from rankinite.rankers.tree_ranker import TreeRanker


@dataclass(frozen=True)
class Importance:
    """How much a feature matters: the gain of its splits, its share of all gain, their number."""

    feature: str
    gain: float
    share: float
    count: int


@dataclass(frozen=True)
class Curve:
    """The values of a measure on a validation set, one a round."""

    set_name: str
    measure: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Inspection:
    """What is in a ranker of boosted trees.

    Attributes
    ----------
    kind
        The name of its class.
    parameters, defaults
        Its parameters but the base, and what they are if nobody says.
    kept, grown
        How many rounds of trees it has, and how many were grown in training.
    trees_a_round, n_leaves
        How many trees a round has, and how many leaves all trees have.
    features
        The names of the features that it was fitted to.
    importances
        The most important first; features without a split are left out.
    curves
        The learning curves; empty without validation sets.
    base
        What boosting started from: another ranker, ``"scores"`` or nothing.
    """

    kind: str
    parameters: Mapping[str, Any]
    defaults: Mapping[str, Any]
    kept: int
    grown: int
    trees_a_round: int
    n_leaves: int
    features: tuple[str, ...]
    top_grade: float
    importances: tuple[Importance, ...]
    curves: tuple[Curve, ...]
    base: Inspection | str | None

    def as_json(self, top: int | None = None) -> dict[str, Any]:
        """Return plain values, with so many importances."""
        base = self.base.as_json(top) if isinstance(self.base, Inspection) else self.base
        return {
            "class": self.kind,
            "parameters": dict(self.parameters),
            "trees": self.kept,
            "trees_grown": self.grown,
            "trees_a_round": self.trees_a_round,
            "leaves": self.n_leaves,
            "features": list(self.features),
            "top_grade": self.top_grade,
            "importances": [vars(one) for one in self.importances[:top]],
            "history": [
                {"set": one.set_name, "measure": one.measure, "values": list(one.values)}
                for one in self.curves
            ],
            "base": base,
        }


def inspect_ranker(ranker: TreeRanker) -> Inspection:
    """Look into a fitted ranker, and into its base."""
    base: Inspection | str | None = None
    if isinstance(ranker.base, TreeRanker):
        base = inspect_ranker(ranker.base)
    elif ranker.base is not None:
        base = "scores"
    kind = type(ranker).__name__
    defaults = defaults_of(kind)
    parameters = ranker.get_params(deep=False)
    return Inspection(
        kind=kind,
        parameters={name: parameters[name] for name in defaults},
        defaults=defaults,
        kept=ranker.n_trees_,
        grown=ranker.n_rounds_,
        trees_a_round=len(ranker.forest_.start),
        n_leaves=sum(tree.n_leaves for tree in ranker.forest_.trees),
        features=ranker.feature_names_,
        top_grade=ranker.top_grade_,
        importances=importances_of(ranker),
        curves=tuple(
            Curve(name, measure, tuple(values))
            for name, measures in ranker.history_.items()
            for measure, values in measures.items()
        ),
        base=base,
    )


def importances_of(ranker: TreeRanker) -> tuple[Importance, ...]:
    """Return the features that a ranker splits on, the one with the most gain first."""
    gains, counts = ranker.importances("gain"), ranker.importances("count")
    total = sum(gains.values()) or 1.0
    return tuple(
        Importance(name, gain, gain / total, int(counts[name]))
        for name, gain in gains.items()
        if counts[name]
    )


def draw_figures(found: Inspection, folder: str | Path, top: int) -> list[Path]:
    """Draw the learning curves and the importances as PNG files, where there are any.

    Parameters
    ----------
    found
        What is in the model.
    folder
        Where to put the files; made if it is not there.
    top
        How many features to draw.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    drawn = []
    if found.curves:
        drawn.append(target / "learning-curve.png")
        _draw_curves(drawn[-1], found)
    if found.importances[:top]:
        drawn.append(target / "importances.png")
        _draw_importances(drawn[-1], found.importances[:top])
    return drawn


def _draw_curves(path: Path, found: Inspection) -> None:
    measures = list(dict.fromkeys(one.measure for one in found.curves))
    figure, drawn = panels(len(measures))
    for axes, measure in zip(drawn, measures, strict=True):
        for one in found.curves:
            if one.measure == measure:
                rounds = np.arange(1, len(one.values) + 1)
                axes.plot(rounds, one.values, linewidth=1.5, label=one.set_name)
        axes.axvline(found.kept, color="grey", linewidth=1, linestyle=":")
        axes.set(xlabel="Trees", ylabel=measure, title=f"{measure}, {found.kept} trees kept")
        axes.legend()
    save_figure(figure, path)


def _draw_importances(path: Path, chosen: tuple[Importance, ...]) -> None:
    figure, (axes,) = panels(1, max(2.0, 0.22 * len(chosen) + 1.0))
    axes.barh([one.feature for one in chosen], [one.share for one in chosen])
    axes.invert_yaxis()
    axes.set(xlabel="Share of the gain", ylabel="Feature", title="Most important features")
    save_figure(figure, path)
