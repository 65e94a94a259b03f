"""Test whether a net's weights are a local optimum of a measure, as tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.figures import Line, Panel
from rankinite.core.progress import Progress
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.tables import Summary, Table
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.stats.optimality import (
    STEPS,
    Optimality,
    Perturbations,
    SingleWeights,
    local_optimality,
    single_weights,
)

# As many directions as in the figures of the papers, for readability.
DRAWN = 4
NAME = "optimality"  # of the files


@dataclass(frozen=True)
class Testing:
    """How local optimality is tested.

    Attributes
    ----------
    delta, epsilon
        With confidence 1 - delta, fewer than a share epsilon of all directions rise.
    steps
        Lengths of the moves.
    weights
        Number of weights that are also moved one by one; all if None.
    seed
        Seed of the directions.
    """

    delta: float = 0.01
    epsilon: float = 0.01
    steps: Sequence[float] = tuple(STEPS)
    weights: int | None = 0
    seed: int = 0


@dataclass(frozen=True)
class Tested:
    """Tests of one net by one measure; `one_by_one` is None unless it was asked for."""

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
    """Test whether a measure rises when a net's weights are moved in random directions.

    Parameters
    ----------
    ranker
        A fitted net.
    data
        Queries to measure: the training data, to test whether training ended in an optimum.
    measure
        The measure.
    testing
        How to test.
    progress
        Progress reporter.
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
    """Return a panel as in Optimality, Figures 1 to 4 and 6: the measure along some directions.

    The first directions are drawn, and the one that comes nearest to rising, or rises most.
    """
    directions = tested.directions
    worst = directions.worst.number
    drawn = sorted({*range(min(DRAWN, directions.n_directions)), worst})
    x = [0.0, *(float(step) for step in directions.steps)]
    lines = tuple(
        Line(
            f"direction {k}" + (", the highest" if k == worst else ""),
            x,
            [directions.start, *(float(value) for value in directions.values[k])],
        )
        for k in drawn
    )
    return Panel(title, "Step", tested.measure, lines)


COLUMNS = ("Value", "Moved", "Rise", "Tie", "Largest change", "Optimum")


def row_of(moves: Perturbations) -> tuple[str, ...]:
    """Return moves as a row of a table; see `COLUMNS`."""
    worst = moves.worst
    return (
        f"{moves.start:.4f}",
        f"{len(moves.values):,}",
        f"{moves.n_rising:,}",
        f"{moves.n_tying:,}",
        f"{worst.gain:+.2g} at {worst.step:g}",
        "yes" if moves.is_optimum else "no",
    )


def summary_of(tested: Sequence[Tested], name: str) -> Summary:
    """Return the summary that ``rankinite optimality`` prints of a net."""
    rows: list[tuple[str, ...]] = []
    notes = []
    values: dict[str, Any] = {}
    for test in tested:
        rows.append((test.measure, "in random directions", *row_of(test.directions)))
        notes.append(f"{test.measure}: {test.directions}")
        values[test.measure] = {"directions": test.directions.as_json()}
        if test.one_by_one is not None:
            rows.append((test.measure, "one by one", *row_of(test.one_by_one)))
            notes.append(f"{test.measure}: {test.one_by_one}")
            values[test.measure]["one_by_one"] = test.one_by_one.as_json()
    table = Table(f"Weights of {name}, moved", ("Measure", "How", *COLUMNS), tuple(rows))
    figure = tuple(panel_of(test, f"{test.measure} of {name}") for test in tested)
    return Summary(NAME, (table,), tuple(notes), {NAME: figure}, values)
