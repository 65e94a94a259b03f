"""Whether a net's weights are a local optimum of a measure, as tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.figures import Line, Panel
from rankinite.core.progress import Progress
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.summary import Summary
from rankinite.evaluation.tables import Table
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.stats.optimality import (
    STEPS,
    Optimality,
    Perturbations,
    SingleWeights,
    local_optimality,
    single_weights,
)

# The papers draw so many directions, for readability.
DRAWN = 4


@dataclass(frozen=True)
class Testing:
    """How local optimality is tested.

    Attributes
    ----------
    delta, epsilon
        With confidence 1 - delta, fewer than a share epsilon of all directions rise.
    steps
        How far weights are moved.
    weights
        How many weights are also moved one by one; none if 0, all if None.
    seed
        Of the directions.
    """

    delta: float = 0.01
    epsilon: float = 0.01
    steps: Sequence[float] = tuple(STEPS)
    weights: int | None = 0
    seed: int = 0


@dataclass(frozen=True)
class Tested:
    """What the tests of one net and measure came to; `one_by_one` only where it was asked for."""

    measure: str
    directions: Optimality
    one_by_one: SingleWeights | None = None


def check_optimality(
    ranker: LambdaRank,
    data: RankingData,
    measure: str,
    testing: Testing,
    progress: Progress | None = None,
) -> Tested:
    """Move a net's weights in many directions and see whether a measure rises.

    Parameters
    ----------
    ranker
        A fitted net.
    data
        The queries to measure: the training data, to see whether training ended in an optimum.
    measure
        The measure.
    testing
        How to test.
    progress
        Who wants to know how far it is.
    """
    along = ranker.along(data, measure)
    directions = local_optimality(
        along,
        along.n_weights,
        delta=testing.delta,
        epsilon=testing.epsilon,
        steps=testing.steps,
        seed=testing.seed,
        progress=progress,
    )
    one_by_one = None
    if testing.weights != 0:
        one_by_one = single_weights(
            along,
            along.n_weights,
            steps=_both_ways(testing.steps),
            chosen=testing.weights,
            seed=testing.seed,
            progress=progress,
        )
    return Tested(measure, directions, one_by_one)


def _both_ways(steps: Sequence[float]) -> NDArray[np.float64]:
    ahead = np.asarray(steps, np.float64)
    return np.concatenate([-ahead[::-1], ahead])


def panel_of(tested: Tested, title: str) -> Panel:
    """Return a panel as in Figures 1 to 4 and 6: the measure along a few directions.

    The first directions are drawn, and the one that comes nearest to rising, or rises most.
    """
    found = tested.directions
    worst = found.worst.number
    drawn = sorted({*range(min(DRAWN, found.n_directions)), worst})
    x = [0.0, *(float(step) for step in found.steps)]
    lines = tuple(
        Line(
            f"direction {k}" + (", the highest" if k == worst else ""),
            x,
            [found.start, *(float(value) for value in found.values[k])],
        )
        for k in drawn
    )
    return Panel(title, "Step", tested.measure, lines)


def row_of(moves: Perturbations) -> tuple[str, ...]:
    """Return the start, how many there are, how many rise and tie, and the largest change."""
    worst = moves.worst
    return (
        f"{moves.start:.4f}",
        f"{len(moves.values):,}",
        f"{moves.n_rising:,}",
        f"{moves.n_tying:,}",
        f"{worst.gain:+.2g} at {worst.step:g}",
        "yes" if moves.is_optimum else "no",
    )


COLUMNS = ("Value", "Moved", "Rise", "Tie", "Largest change", "Optimum")


def summary_of(tested: Sequence[Tested], name: str) -> Summary:
    """Return what ``rankinite optimality`` shows of one net."""
    rows: list[tuple[str, ...]] = []
    notes = []
    values: dict[str, Any] = {}
    for one in tested:
        rows.append((one.measure, "in random directions", *row_of(one.directions)))
        notes.append(f"{one.measure}: {one.directions}")
        values[one.measure] = {"directions": one.directions.as_json()}
        if one.one_by_one is not None:
            rows.append((one.measure, "one by one", *row_of(one.one_by_one)))
            notes.append(f"{one.measure}: {one.one_by_one}")
            values[one.measure]["one_by_one"] = one.one_by_one.as_json()
    sheet = Table(f"Weights of {name}, moved", ("Measure", "How", *COLUMNS), tuple(rows))
    figure = tuple(panel_of(one, f"{one.measure} of {name}") for one in tested)
    return Summary("optimality", (sheet,), tuple(notes), {"optimality": figure}, values)
