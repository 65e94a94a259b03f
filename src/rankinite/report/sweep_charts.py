"""The plots of a sweep: numbers to places in a box of 100 x 100, which the page stretches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rankinite.report.charts import Scale, along, number
from rankinite.report.sections import Bar
from rankinite.sweeps.results import Sweep, parameters_in_words, short
from rankinite.sweeps.space import Choice, Domain, Range, extremes_of
from rankinite.sweeps.trials import Trial, ranked

# Of lines, from the worst trial to the best.
FAINTEST, STRONGEST = 0.2, 0.9
# Labels of an axis, if it has so few values.
MOST_LABELS = 6


@dataclass(frozen=True)
class Mark:
    """A line or a dot of a trial.

    Attributes
    ----------
    path
        The path.
    kind
        ``"best"``, ``"pruned"``, or nothing.
    strength
        How much of it is seen.
    title
        What is said when one points at it.
    """

    path: str
    kind: str
    strength: float
    title: str


@dataclass(frozen=True)
class History:
    """The value of every trial, the best so far, and that of the recipe's own parameters."""

    dots: tuple[Mark, ...]
    best: str
    own: str
    top: str
    bottom: str
    right: str


@dataclass(frozen=True)
class Axis:
    """An axis of parallel coordinates: its place, its name, and labels with their places."""

    place: str
    name: str
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Coordinates:
    """Parallel coordinates: a line a trial, through its parameters to its value."""

    axes: tuple[Axis, ...]
    lines: tuple[Mark, ...]

    @property
    def letters(self) -> int:
        """How many letters wide it must be, so that no name covers another."""
        widest = max(len(one.name) + len(other.name) for one, other in pairwise(self.axes))
        return (len(self.axes) - 1) * (widest // 2 + 2)


@dataclass(frozen=True)
class Curves:
    """Learning curves of the first fold."""

    lines: tuple[Mark, ...]
    top: str
    bottom: str
    right: str


def history_of(sweep: Sweep) -> History:
    """Return the values of trials in their order."""
    trials = sweep.trials
    values = [trial.value for trial in trials if not trial.is_pruned]
    scale = _scale([*values, sweep.baseline.value])
    own = f"M0 {number(100 - scale.place(sweep.baseline.value))}H100"
    dots = tuple(
        Mark(
            f"M{number(along(k, len(trials)))} {number(100 - _placed(trial, scale))}h0",
            _kind(sweep, trial),
            1.0,
            _title(sweep, trial),
        )
        for k, trial in enumerate(trials)
    )
    return History(
        dots, _best_so_far(trials, scale), own, f"{scale.high:.4f}", f"{scale.low:.4f}",
        f"trial {len(trials) - 1}",
    )  # fmt: skip


def _placed(trial: Trial, scale: Scale) -> float:
    """Return how high a trial is; the value of a pruned one, of one fold, is no mean of several."""
    return 0.0 if trial.is_pruned else scale.place(trial.value)


def _best_so_far(trials: Sequence[Trial], scale: Scale) -> str:
    path, best = "", -math.inf
    for k, trial in enumerate(trials):
        x = number(along(k, len(trials)))
        if trial.is_pruned or trial.value <= best:
            path += f"H{x}" if path else ""
            continue
        best = trial.value
        y = number(100 - scale.place(best))
        path += f"H{x}V{y}" if path else f"M{x} {y}"
    return path


def _scale(values: Sequence[float]) -> Scale:
    """Return a scale on which the better half fills the upper quarter at least."""
    ordered = sorted(values)
    best, middle = ordered[-1], ordered[len(ordered) // 2]
    low = max(ordered[0], best - 4 * (best - middle)) if best > middle else ordered[0]
    return Scale.around([low, best], margin=0.04)


def _kind(sweep: Sweep, trial: Trial) -> str:
    return "pruned" if trial.is_pruned else "best" if trial is sweep.best else ""


def _title(sweep: Sweep, trial: Trial) -> str:
    ending = ", pruned" if trial.is_pruned else ""
    value = f"{sweep.settings.measure} {trial.value:.4f}{ending}"
    return f"trial {trial.number}: {value}; {parameters_in_words(trial)}"


def coordinates_of(sweep: Sweep) -> Coordinates:
    """Return parallel coordinates; the best trial is drawn last, and so above the others."""
    space = sweep.settings.space
    whole = [trial for trial in ranked(sweep.trials) if not trial.is_pruned]
    scale = _scale([trial.value for trial in whole])
    n = len(space)
    axes = [
        Axis(number(100 * k / n), name, _labels(domain))
        for k, (name, domain) in enumerate(space.items())
    ]
    ends = ((number(0), f"{scale.high:.4f}"), (number(100), f"{scale.low:.4f}"))
    axes.append(Axis("100", sweep.settings.measure, ends))
    lines = []
    for rank, trial in reversed(list(enumerate(whole))):
        heights = [_height(space[name], value) for name, value in trial.parameters.items()]
        heights.append(scale.place(trial.value))
        points = (f"{number(100 * k / n)} {number(100 - h)}" for k, h in enumerate(heights))
        strength = STRONGEST - (STRONGEST - FAINTEST) * rank / max(len(whole) - 1, 1)
        mark = Mark("M" + "L".join(points), _kind(sweep, trial), round(strength, 3),
                    _title(sweep, trial))  # fmt: skip
        lines.append(mark)
    return Coordinates(tuple(axes), tuple(lines))


def _height(domain: Domain, value: Any) -> float:
    """Return where a value is on its axis, from 0 to 100: values of a list have equal distances."""
    if isinstance(domain, Choice):
        return along(_sorted(domain).index(value), len(domain.values))
    if isinstance(domain, Range) and domain.is_log:
        return Scale(math.log(domain.low), math.log(domain.high)).place(math.log(value))
    low, high = extremes_of(domain)
    if low == high:  # steps so wide that there is no second one
        return 50.0
    return Scale(low, high).place(value)


def _sorted(domain: Choice) -> list[Any]:
    """Return the values of a list in their order, if they are numbers."""
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
    return tuple((number(100 - _height(domain, value)), short(value)) for value in shown)


def curves_of(sweep: Sweep) -> Curves:
    """Return the learning curves of the first fold, the best trial's above the others."""
    order = list(reversed(ranked(sweep.trials)))
    n_rounds = max(trial.folds[0].n_rounds for trial in order)
    whole = [trial.folds[0] for trial in order if not trial.is_pruned]
    scale = _scale([max(value for _, value in fold.curve) for fold in whole])
    # Starts are far below: room is for where trials come apart.
    scale = Scale(scale.low - 0.5 * (scale.high - scale.low), scale.high)
    lines = []
    for trial in order:
        points = [
            f"{number(along(r - 1, n_rounds))} {number(100 - scale.place(value))}"
            for r, value in trial.folds[0].curve
            if value >= scale.low
        ]
        path = "M" + "L".join(points) if points else ""
        lines.append(Mark(path, _kind(sweep, trial), 0.55, _title(sweep, trial)))
    rounds = "trees" if "n_trees" in sweep.settings.model.parameters else "epochs"
    return Curves(tuple(lines), f"{scale.high:.4f}", f"{scale.low:.4f}", f"{n_rounds:,} {rounds}")


def importance_bars(sweep: Sweep) -> tuple[Bar, ...]:
    """Return the share of each parameter; nothing if nobody can tell."""
    found = sweep.importances or {}
    most = max(found.values(), default=1.0) or 1.0
    return tuple(
        Bar(name, round(100 * share / most, 2), f"{share:.0%}") for name, share in found.items()
    )
