"""What the reproductions of Objectives share: measures at all depths, and how they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rankinite.core.progress import Task
from rankinite.evaluation.evaluate import Evaluation
from rankinite.experiments.reproductions.ndcg import LEVEL, p_text
from rankinite.rankers.rounds import Round
from rankinite.stats.t_test import gain_and_p

DEPTHS = range(1, 11)
# The depth that the paper cares for.
TOP = 3


def at_depths(name: str, source: str | None = None) -> list[str]:
    """Return a measure at every depth."""
    behind = "" if source is None else f"[{source}]"
    return [f"{name}@{depth}{behind}" for depth in DEPTHS]


def gains(one: Evaluation, other: Evaluation, measures: Sequence[str]) -> list[tuple[float, float]]:
    """Return how much better one is by every measure, and the p-value."""
    return [gain_and_p(one.per_query[m], other.per_query[m]) for m in measures]


def told(found: Sequence[tuple[float, float]]) -> str:
    """Say what gains at all depths come to, in points."""
    better = sum(p <= LEVEL and gain > 0 for gain, p in found)
    worse = sum(p <= LEVEL and gain < 0 for gain, p in found)
    low, high = min(gain for gain, _ in found), max(gain for gain, _ in found)
    gain, p = found[TOP - 1]
    return (
        f"{100 * low:+.2f} to {100 * high:+.2f} points ({100 * gain:+.2f} at {TOP}, p = "
        f"{p_text(p)}; of {len(found)} depths {better} significantly better and {worse} worse)"
    )


def row_of(
    found: Evaluation, measures: Sequence[str], rival: Evaluation | None = None
) -> list[str]:
    """Return means in points, with the sign of what is significant against a rival."""
    texts = [f"{100 * found.mean[m]:.2f}" for m in measures]
    if rival is None:
        return texts
    return [
        f"{text}{'' if p > LEVEL else ' +' if gain > 0 else ' -'}"
        for text, (gain, p) in zip(texts, gains(found, rival, measures), strict=True)
    ]


def counting(task: Task) -> Callable[[Round], None]:
    """Return a callback that counts trees."""

    def count(_done: Round) -> None:
        task.advance(1)

    return count
