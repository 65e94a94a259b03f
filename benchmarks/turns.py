"""Two rivals in turns: the ratio of their times, from the same minutes on the same machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def in_turns(
    ours: Callable[[], object], theirs: Callable[[], object], turns: int
) -> tuple[list[float], list[float]]:
    """Run both in turns, twice each, and return the seconds of the better of the two.

    The first of the two finds its files and memory as the other rival left them.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for rival, times in zip((ours, theirs), seconds, strict=True):
            times.append(min(_seconds(rival), _seconds(rival)))
    return seconds


def _seconds(rival: Callable[[], object]) -> float:
    start = time.perf_counter()
    rival()
    return time.perf_counter() - start


def report(what: str, ours: list[float], theirs: list[float], must: float, goal: float) -> None:
    """Print how many times as fast we are: the ratio of the medians, and of each turn."""
    ratio = statistics.median(theirs) / statistics.median(ours)
    single = ", ".join(f"{b / a:.1f}" for a, b in zip(ours, theirs, strict=True))
    verdict = (
        "goal met" if ratio >= goal else "must met, goal missed" if ratio >= must else "MISSED"
    )
    print(
        f"{what}: {ratio:.1f} times as fast (turns: {single}); "
        f"must {must:g}, goal {goal:g}: {verdict}"
    )
    print(f"  seconds, ours {statistics.median(ours):.3f}, peer {statistics.median(theirs):.3f}")
