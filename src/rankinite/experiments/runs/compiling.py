"""Kernels compiled once, before workers would all do it at the same time."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from concurrent.futures import as_completed
from dataclasses import replace
from typing import Any

from rankinite.core.errors import RankiniteError
from rankinite.core.progress import Progress
from rankinite.experiments.runs.bench import bench_of
from rankinite.experiments.runs.folder import RunFolder
from rankinite.experiments.runs.plan import all_needed
from rankinite.experiments.runs.units import Unit
from rankinite.experiments.runs.work import Fit
from rankinite.experiments.runs.workers import Workers, is_death, problem_of
from rankinite.models import RANKERS
from rankinite.rankers.tree_ranker import TreeRanker

# Of the data, for a training that nobody keeps.
QUERIES = 20
# What kernels do not depend on.
SIZES = ("n_trees", "n_epochs", "n_leaves", "random_state")


def compile_kernels(
    units: Iterable[Unit], folder: RunFolder, workers: Workers, progress: Progress
) -> None:
    """Train each kind of model for one round: trees in one process, and nets in another.

    Compiled kernels are kept on disk, where all workers find them.
    """
    if workers.slots == 1:
        return
    waiting = [u for u in all_needed(units).values() if not folder.is_done(u.key)]
    fits = [unit.work for unit in waiting if isinstance(unit.work, Fit)]
    kinds: dict[bool, dict[str, Fit]] = {}
    for fit in fits:
        own = kinds.setdefault(issubclass(RANKERS[fit.ranker], TreeRanker), {})
        own.setdefault(_kind(fit), fit)
    begun = [
        workers.submit(try_out, folder.absolute(), list(own.values())) for own in kinds.values()
    ]
    with progress.start("compiling", len(begun), "kinds") as task:
        for _ in as_completed(begun):
            task.advance(1)
    # Another error comes again when the units do the same, and is told then.
    if any(is_death(problem) for problem in map(problem_of, begun) if problem is not None):
        workers.renew()


def _kind(fit: Fit) -> str:
    """Return what the kernels of a training depend on, as a text."""
    said = {name: value for name, value in fit.parameters.items() if name not in SIZES}
    return json.dumps([fit.ranker, said])


def try_out(folder: RunFolder, fits: list[Fit]) -> None:
    """Train models for one round on a few queries; called in a worker process."""
    bench = bench_of(folder)
    few = bench.train[:QUERIES]
    for fit in fits:
        plain = replace(fit, features=None)
        rounds = "n_trees" if "n_trees" in fit.parameters else "n_epochs"
        ranker: Any = replace(plain, parameters={**fit.parameters, rounds: 1}).new_ranker()
        with contextlib.suppress(RankiniteError):  # of data too small for anything
            ranker.fit(few, valid=few, **plain.options(bench))
            ranker.predict(few)
