"""The page of a sweep: one HTML file that opens offline, in the style of a run's report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rankinite.core.format import counted, value_text
from rankinite.report.charts import Scale, along, bars_of, coordinate, path_of, point
from rankinite.report.page import page_of
from rankinite.runs.store import write_text
from rankinite.sweeps.results import (
    PAGE,
    Settings,
    Sweep,
    baseline_in_words,
    best_in_words,
    optimism_note,
    parameters_in_words,
    recipe_in_words,
    rounds_of,
    short,
    trials_table,
)
from rankinite.sweeps.space import Choice, Domain, Range, extremes_of
from rankinite.sweeps.study import FEWEST_FOR_IMPORTANCE
from rankinite.sweeps.trials import Trial, ranked

TEMPLATE = "sweep.html.j2"

SECTIONS = {
    "history": "Trial by trial",
    "importance": "Which parameters matter",
    "coordinates": "Parameters and values",
    "curves": "Learning curves",
    "trials": "All trials",
    "settings": "Settings",
}

# Opacity of lines, from the worst trial to the best.
FAINTEST, STRONGEST = 0.2, 0.9
CURVE_STRENGTH = 0.55  # of learning curves, which cross each other more often
# An axis with more values is labelled at its ends and its middle.
MOST_LABELS = 6


def write_sweep_report(sweep: Sweep) -> Path:
    """Write the page of a sweep into its folder; return the file."""
    path = sweep.folder / PAGE
    write_text(path, sweep_html(sweep))
    return path


def sweep_html(sweep: Sweep) -> str:
    """Return the page of a sweep: one HTML file that needs no network.

    Equal trials give equal bytes.
    """
    return page_of(TEMPLATE, _content(sweep))


def _content(sweep: Sweep) -> dict[str, Any]:
    return {
        "sweep": sweep,
        "sections": SECTIONS,
        "sentence": best_in_words(sweep),
        "compared": baseline_in_words(sweep),
        "notes": (optimism_note(sweep), recipe_in_words(sweep)),
        "history": history_of(sweep),
        "bars": bars_of(sweep.importances or {}, "{:.0%}".format),
        "no_importance": _no_importance(sweep),
        "coordinates": coordinates_of(sweep),
        "curves": curves_of(sweep),
        "trials": trials_table(sweep),
        "settings": _settings(sweep.settings),
        "parameters": sorted(
            (name, value_text(value))
            for name, value in sweep.settings.model.parameters.items()
            if name not in sweep.settings.space
        ),
        "counted": counted,
        "short": short,
        "rounds_of": rounds_of,
    }


def _no_importance(sweep: Sweep) -> str:
    """Return why importances are not known; empty if they are."""
    if sweep.importances is not None:
        return ""
    if len(sweep.settings.space) < 2:
        return "One parameter is swept, so there is nothing to compare it with."
    n = len(sweep.trials) - sweep.n_pruned
    if n < FEWEST_FOR_IMPORTANCE:
        completed = f"{counted(n, 'trial')} {'was' if n == 1 else 'were'} completed"
        return f"{completed}, too few to tell: it takes {FEWEST_FOR_IMPORTANCE}."
    return "All trials have the same value."


def _settings(settings: Settings) -> list[tuple[str, str]]:
    pruning = "by the first fold's learning curve" if settings.pruning else "none"
    space = [(f"{name} in", str(domain)) for name, domain in settings.space.items()]
    return [
        ("recipe", settings.recipe.name),
        ("model", f"{settings.model.name}: {settings.model.description}"),
        *space,
        ("search", settings.search),
        ("trials started together", str(settings.batch)),
        ("measure", settings.measure),
        ("folds", str(settings.folds)),
        ("pruning", pruning),
        ("seed", str(settings.seed)),
        ("training data", settings.data),
    ]


@dataclass(frozen=True)
class Mark:
    """A line or a dot of a trial.

    Attributes
    ----------
    path
        SVG path.
    kind
        ``"best"``, ``"pruned"``, or empty.
    strength
        Opacity.
    title
        Tooltip.
    """

    path: str
    kind: str
    strength: float
    title: str


@dataclass(frozen=True)
class TrialChart:
    """A chart with a mark for every trial, and texts at the ends of its axes.

    Attributes
    ----------
    marks
        Dots or lines, in the order in which they are drawn.
    top, bottom, right
        Texts at the ends of the axes.
    best, recipe
        Paths of the best value so far, and of the value of the recipe's parameters.
    """

    marks: tuple[Mark, ...]
    top: str
    bottom: str
    right: str
    best: str = ""
    recipe: str = ""


@dataclass(frozen=True)
class Axis:
    """An axis of parallel coordinates: its position, its name, and labels with their positions."""

    place: str
    name: str
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Coordinates:
    """Parallel coordinates: a line per trial, through its parameters to its value."""

    axes: tuple[Axis, ...]
    lines: tuple[Mark, ...]

    @property
    def letters(self) -> int:
        """Width in characters at which no name of an axis covers another."""
        widest = max(len(left.name) + len(right.name) for left, right in pairwise(self.axes))
        return (len(self.axes) - 1) * (widest // 2 + 2)


def history_of(sweep: Sweep) -> TrialChart:
    """Return the values of trials in their order."""
    trials = sweep.trials
    values = [trial.value for trial in trials if not trial.is_pruned]
    scale = _scale([*values, sweep.baseline.value])
    dots = []
    for k, trial in enumerate(trials):
        # A pruned trial has no mean over all folds that could be compared: it stands at the edge.
        height = 0.0 if trial.is_pruned else scale.place(trial.value)
        dots.append(_mark(sweep, trial, f"M{point(along(k, len(trials)), height)}h0"))
    return TrialChart(
        tuple(dots),
        f"{scale.high:.4f}",
        f"{scale.low:.4f}",
        f"trial {len(trials) - 1}",
        best=_best_so_far(trials, scale),
        recipe=f"M{point(0, scale.place(sweep.baseline.value))}H100",
    )


def _best_so_far(trials: Sequence[Trial], scale: Scale) -> str:
    path, best = "", -math.inf
    for k, trial in enumerate(trials):
        x = coordinate(along(k, len(trials)))
        if trial.is_pruned or trial.value <= best:
            path += f"H{x}" if path else ""
            continue
        best = trial.value
        y = coordinate(100 - scale.place(best))
        path += f"H{x}V{y}" if path else f"M{x} {y}"
    return path


def _scale(values: Sequence[float]) -> Scale:
    """Return a scale on which the better half fills at least the upper quarter."""
    # Some parameters are so bad that, on a scale with all of them, good trials would look alike.
    ordered = sorted(values)
    best, middle = ordered[-1], ordered[len(ordered) // 2]
    low = max(ordered[0], best - 4 * (best - middle)) if best > middle else ordered[0]
    return Scale.around([low, best], margin=0.04)


def _mark(sweep: Sweep, trial: Trial, path: str, strength: float = 1.0) -> Mark:
    ending = ", pruned" if trial.is_pruned else ""
    value = f"{sweep.settings.measure} {trial.value:.4f}{ending}"
    title = f"trial {trial.number}: {value}; {parameters_in_words(trial)}"
    return Mark(path, sweep.mark(trial), round(strength, 3), title)


def coordinates_of(sweep: Sweep) -> Coordinates:
    """Return parallel coordinates; the best trial comes last, to be drawn above the others."""
    space = sweep.settings.space
    complete = [trial for trial in ranked(sweep.trials) if not trial.is_pruned]
    scale = _scale([trial.value for trial in complete])
    n = len(space)
    axes = [
        Axis(coordinate(100 * k / n), name, _labels(domain))
        for k, (name, domain) in enumerate(space.items())
    ]
    ends = ((coordinate(0), f"{scale.high:.4f}"), (coordinate(100), f"{scale.low:.4f}"))
    axes.append(Axis("100", sweep.settings.measure, ends))
    lines = []
    for rank, trial in reversed(list(enumerate(complete))):
        heights = [_height(space[name], value) for name, value in trial.parameters.items()]
        heights.append(scale.place(trial.value))
        points = (point(100 * k / n, height) for k, height in enumerate(heights))
        strength = STRONGEST - (STRONGEST - FAINTEST) * rank / max(len(complete) - 1, 1)
        lines.append(_mark(sweep, trial, "M" + "L".join(points), strength))
    return Coordinates(tuple(axes), tuple(lines))


def _height(domain: Domain, value: Any) -> float:
    """Return the height of a value on its axis, from 0 to 100; values of a list are equidistant."""
    # Equidistant, as lists may hold words, and numbers in lists tend to be spaced by factors.
    if isinstance(domain, Choice):
        return along(_sorted(domain).index(value), len(domain.values))
    if isinstance(domain, Range) and domain.is_log:
        return Scale(math.log(domain.low), math.log(domain.high)).place(math.log(value))
    low, high = extremes_of(domain)
    if low == high:  # steps wider than the range leave a single value
        return 50.0
    return Scale(low, high).place(value)


def _sorted(domain: Choice) -> list[Any]:
    """Return the values of a list, sorted if they are numbers."""
    if all(isinstance(value, int | float) for value in domain.values):
        return sorted(domain.values)
    return list(domain.values)


def _labels(domain: Domain) -> tuple[tuple[str, str], ...]:
    if isinstance(domain, Range):
        shown: Sequence[Any] = (domain.low, domain.high)
    else:
        shown = _sorted(domain) if isinstance(domain, Choice) else domain.values
        if len(shown) > MOST_LABELS:
            shown = (shown[0], shown[len(shown) // 2], shown[-1])
    return tuple((coordinate(100 - _height(domain, value)), short(value)) for value in shown)


def curves_of(sweep: Sweep) -> TrialChart:
    """Return the learning curves of the first fold, the best trial's above the others."""
    order = list(reversed(ranked(sweep.trials)))
    n_rounds = max(trial.folds[0].n_rounds for trial in order)
    complete = [trial.folds[0] for trial in order if not trial.is_pruned]
    scale = _scale([max(value for _, value in fold.curve) for fold in complete])
    # The first rounds are far below: the room is for those where trials differ.
    scale = Scale(scale.low - 0.5 * (scale.high - scale.low), scale.high)
    lines = []
    for trial in order:
        curve = ((number - 1, value) for number, value in trial.folds[0].curve)
        lines.append(_mark(sweep, trial, path_of(curve, scale, n_rounds), CURVE_STRENGTH))
    rounds = "trees" if "n_trees" in sweep.settings.model.parameters else "epochs"
    right = f"{n_rounds:,} {rounds}"
    return TrialChart(tuple(lines), f"{scale.high:.4f}", f"{scale.low:.4f}", right)
