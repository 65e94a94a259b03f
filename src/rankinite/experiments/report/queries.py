"""Query by query: where the ensemble wins against the best member, and where it loses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankinite.experiments.report.drawing import Scale, steps_path, thinned
from rankinite.experiments.report.wording import signed
from rankinite.experiments.runs.contest import Contest
from rankinite.experiments.runs.texts import number

Floats = NDArray[np.float64]

MOST_LISTED = 10
# Differences below it are the rounding of sums.
ROUNDING = 1e-12


@dataclass(frozen=True)
class LostQuery:
    """A query for which the best member is better."""

    qid: str
    documents: str
    ensemble: str
    member: str
    difference: str


@dataclass(frozen=True)
class Differences:
    """Differences of the ensemble to the best member, one a query.

    Attributes
    ----------
    wins, ties, losses
        How many queries are so.
    gains_path, losses_path
        Outlines of the sorted differences above and below 0.
    top, bottom, zero
        The ends of the axis, and where 0 is on it, in percent from the top.
    mean_win, mean_loss
        What a win and a loss are worth on average.
    worst
        The queries with the largest losses, the largest first.
    """

    measure: str
    wins: int
    ties: int
    losses: int
    gains_path: str
    losses_path: str
    top: str
    bottom: str
    zero: float
    mean_win: str
    mean_loss: str
    worst: tuple[LostQuery, ...]

    @property
    def n_queries(self) -> int:
        """How many queries count."""
        return self.wins + self.ties + self.losses


def differences_of(contest: Contest, measure: str) -> Differences | None:
    """Return how the ensemble fares against the best member; None if no query tells."""
    if measure not in contest.ensemble.per_query:
        return None
    whole = contest.ensemble.per_query[measure]
    single = contest.members[contest.best].per_query[measure]
    difference = whole - single
    counted = np.flatnonzero(~np.isnan(difference))
    if len(counted) == 0:
        return None
    values = np.where(np.abs(difference[counted]) <= ROUNDING, 0.0, difference[counted])
    shown = thinned(np.sort(values))
    scale = Scale.around([0.0, *shown.tolist()])
    return Differences(
        measure=measure,
        wins=int((values > 0).sum()),
        ties=int((values == 0).sum()),
        losses=int((values < 0).sum()),
        gains_path=steps_path(np.maximum(shown, 0.0).tolist(), scale),
        losses_path=steps_path(np.minimum(shown, 0.0).tolist(), scale),
        top=signed(scale.high, 2),
        bottom=signed(scale.low, 2),
        zero=round(100 - scale.place(0.0), 2),
        mean_win=_mean(values[values > 0]),
        mean_loss=_mean(values[values < 0]),
        worst=_worst(contest, whole, single, counted, values),
    )


def _worst(
    contest: Contest,
    whole: Floats,
    single: Floats,
    counted: NDArray[np.intp],
    values: Floats,
) -> tuple[LostQuery, ...]:
    order = np.argsort(values, kind="stable")[:MOST_LISTED]
    sizes = contest.data.sizes
    return tuple(
        LostQuery(
            str(contest.data.qids[query]),
            f"{sizes[query]:,}",
            number(float(whole[query])),
            number(float(single[query])),
            signed(float(values[k])),
        )
        for k, query in zip(order.tolist(), counted[order].tolist(), strict=True)
        if values[k] < 0
    )


def _mean(values: Floats) -> str:
    return signed(float(values.mean())) if len(values) else "-"
