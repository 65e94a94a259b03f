"""Aug50, the original and ten samples of half of each query's documents, over the original."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import rankinite as rk
from peers import Ours
from rankinite.trees.grower import Grower
from training.settings import Settings
from verdicts import Results, in_turns, print_times


def run(settings: Settings, results: Results) -> None:
    """Compare iterations, and what growing the tree takes of them."""
    for shape in settings.shapes:
        train, valid = (part.data() for part in settings.simulate(shape))
        binned = rk.BinnedData.make(train.matrix, train.feature_names)
        more = rk.augment(train, fraction=0.5, times=10)
        for n_leaves, docs in itertools.product(settings.leaves, ("default", "all")):
            what = f"Aug50 over the original, {settings.fitted(shape)}, {n_leaves} leaves"
            options = {} if docs == "default" else {"queries_per_tree": 1.0}
            asked = (2.0, 1.3) if docs == "default" else (None, None)
            what += "" if docs == "default" else ", all queries in every tree"
            task = settings.task(n_leaves, rk.LambdaMART().truncation)
            sizes = f"{more.n_docs:,} over {train.n_docs:,} documents"
            print(f"{what}, {sizes}, truncation {task.truncation}:", flush=True)
            rivals = {
                "original": _Watched(Ours(train, valid, binned, task, **options)),
                "Aug50": _Watched(Ours(more, valid, binned, task, **options)),
            }
            _compare(what, rivals, asked, settings.turns, results)


def _compare(
    what: str,
    rivals: dict[str, _Watched],
    asked: tuple[float | None, float | None],
    turns: int,
    results: Results,
) -> None:
    """Measure both in turns; a sample of Aug50 has more different rows than one of the original."""
    measured = in_turns(rivals, turns)
    trees = {name: rival.kept for name, rival in rivals.items()}
    print_times({f"{name}, iteration": times for name, times in measured.items()})
    print_times({f"{name}, tree": times for name, times in trees.items()})
    results.ratio(f"{what}, iteration", measured["Aug50"], measured["original"], *asked)
    results.ratio(f"{what}, growing the tree only", trees["Aug50"], trees["original"])


class _Watched:
    """A rival whose time of growing trees is kept as well."""

    def __init__(self, rival: Ours) -> None:
        self.rival = rival
        self.kept: list[float] = []

    def __call__(self) -> float:
        """Train, and return the seconds of an iteration."""
        with _clocked(Grower, "grow") as times:
            seconds = self.rival()
        self.kept.append(float(np.median(times[-self.rival.task.n_timed :])))
        return seconds


@contextmanager
def _clocked(owner: Any, name: str) -> Iterator[list[float]]:
    """Keep the seconds of every call of a method."""
    original = getattr(owner, name)
    times: list[float] = []

    def timed(*args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = original(*args, **options)
        times.append(time.perf_counter() - start)
        return result

    setattr(owner, name, timed)
    try:
        yield times
    finally:
        setattr(owner, name, original)
