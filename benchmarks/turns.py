"""Rivals in turns, on the same machine in the same minutes, and the ratios of their times.

`in_turns` and `Results` are for ``train.py``, which collects ratios in a table; `two_in_turns` and
`report` for scripts that compare one function with its peer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

# Threads that wait for work spin for a while, and would disturb the next rival.
PAUSE = 0.3

Seconds = Mapping[str, list[float]]


def in_turns(rivals: Mapping[str, Callable[[], float]], turns: int) -> dict[str, list[float]]:
    """Let rivals measure themselves, one after the other, several turns; return what they say."""
    measured: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(turns):
        for name, rival in rivals.items():
            time.sleep(PAUSE)
            measured[name].append(rival())
    return measured


def per_call(work: Callable[[], object], times: int = 1) -> Callable[[], float]:
    """Return a rival that does the work so many times, and tells the seconds of one."""

    def rival() -> float:
        start = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - start) / times

    return rival


def fastest(measured: Seconds, names: list[str]) -> str:
    """Return which of these has the smallest median."""
    return min(names, key=lambda name: statistics.median(measured[name]))


@dataclass(frozen=True)
class Result:
    """One measurement; must and goal are upper bounds, None where nothing is asked."""

    what: str
    value: float
    unit: str
    must: float | None
    goal: float | None
    spread: str

    @property
    def verdict(self) -> str:
        """Whether it is good enough."""
        if self.must is None:
            return "for information"
        if self.goal is not None and self.value <= self.goal:
            return "goal met"
        missed = "MISSED" if self.value > self.must else "must met"
        return missed if self.goal is None or missed == "MISSED" else "must met, goal missed"


@dataclass
class Results:
    """All measurements of a run."""

    rows: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def ratio(
        self,
        what: str,
        ours: list[float],
        theirs: list[float],
        must: float | None = None,
        goal: float | None = None,
    ) -> None:
        """Keep the ratio of medians, ours over theirs, and print it with that of every turn."""
        single = [a / b for a, b in zip(ours, theirs, strict=True)]
        value = statistics.median(ours) / statistics.median(theirs)
        spread = f"{min(single):.2f} to {max(single):.2f}" if len(single) > 1 else ""
        self._keep(Result(what, value, "", must, goal, spread), single)

    def seconds(self, what: str, value: float, must: float | None = None) -> None:
        """Keep a time, and print it."""
        self._keep(Result(what, value, " s", must, None, ""), [])

    def note(self, text: str) -> None:
        """Keep something to say below the table."""
        print(f"note: {text}", flush=True)
        self.notes.append(text)

    def _keep(self, row: Result, single: list[float]) -> None:
        self.rows.append(row)
        turns = f" (turns: {', '.join(f'{x:.2f}' for x in single)})" if single else ""
        print(f"{row.what}: {row.value:.3g}{row.unit}{turns}; {_asked(row)}", flush=True)

    def markdown(self) -> str:
        """Return the table, and the notes below it."""
        lines = ["| | ours / theirs | turns | must | goal | |", "|---|---|---|---|---|---|"]
        lines += [
            f"| {row.what} | {row.value:.3g}{row.unit} | {row.spread} | {_bound(row.must)} "
            f"| {_bound(row.goal)} | {row.verdict} |"
            for row in self.rows
        ]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)])


def print_times(measured: Seconds, unit: str = "ms", scale: float = 1e3) -> None:
    """Print the median of every rival, and its turns."""
    for name, times in measured.items():
        turns = ", ".join(f"{scale * x:.4g}" for x in times)
        median = scale * statistics.median(times)
        print(f"  {name}: {median:.4g} {unit} (turns: {turns})", flush=True)


def _bound(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _asked(row: Result) -> str:
    if row.must is None:
        return row.verdict
    goal = "" if row.goal is None else f", goal {row.goal:g}"
    return f"must {row.must:g}{goal}: {row.verdict}"


def two_in_turns(
    ours: Callable[[], object], theirs: Callable[[], object], turns: int
) -> tuple[list[float], list[float]]:
    """Run both in turns, twice each, and return the seconds of the better of the two.

    The first of the two finds its files and memory as the other rival left them.
    """

    def better_of_two(work: Callable[[], object]) -> Callable[[], float]:
        timed = per_call(work)
        return lambda: min(timed(), timed())

    rivals = {"ours": better_of_two(ours), "theirs": better_of_two(theirs)}
    measured = in_turns(rivals, turns)
    return measured["ours"], measured["theirs"]


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
