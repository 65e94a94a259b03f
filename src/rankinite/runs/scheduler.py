"""Units carried out: those that can be, on all workers, until none is left."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, as_completed, wait
from dataclasses import replace
from typing import Any

from rankinite.core.errors import RankiniteError, RunError
from rankinite.core.progress import Progress, ProgressBar
from rankinite.models import RANKERS
from rankinite.runs.graph import all_needed
from rankinite.runs.inputs import bench_of
from rankinite.runs.store import RunFolder
from rankinite.runs.tasks import Done, Fit, Unit, do_unit
from rankinite.runs.workers import Workers, is_death, problem_of

log = logging.getLogger("rankinite")

MOST_FAILURES = 3
MOST_NAMED = 4
# Between two looks at what has ended.
SECONDS = 1.0


def carry_out(
    units: Iterable[Unit], folder: RunFolder, workers: Workers, progress: Progress, title: str
) -> None:
    """Do the units that are not done, and what they need.

    A unit that fails is tried again; after three failures the run ends with its error, once those
    under way have ended. Errors in data or use are no accidents, and are not tried again.

    Parameters
    ----------
    units
        What is wanted.
    folder
        Where.
    workers
        Who does it.
    progress, title
        Who wants to know how far it is, and what the work is called.
    """
    needed = all_needed(units)
    waiting = {key: unit for key, unit in needed.items() if not folder.is_done(key)}
    for key in needed:
        if key in waiting:
            folder.forget(key)
        else:  # whoever did it may have been killed right then
            folder.checkpoint(key).unlink(missing_ok=True)
    with progress.start(title, len(needed), "units") as bar:
        bar.advance(len(needed) - len(waiting))
        _Carrying(waiting, folder, workers, bar, title).go()


class _Carrying:
    def __init__(
        self,
        waiting: dict[str, Unit],
        folder: RunFolder,
        workers: Workers,
        bar: ProgressBar,
        title: str,
    ) -> None:
        self.waiting = waiting
        self.folder = folder
        self.workers = workers
        self.bar = bar
        self.title = title
        self.running: dict[Future[Done], Unit] = {}
        self.failures: Counter[str] = Counter()
        # Those that ran when a worker died: each is tried alone, to see which one it was.
        self.suspects: set[str] = set()
        self.problem: BaseException | None = None
        self.best: tuple[float, str] | None = None

    def go(self) -> None:
        while self.waiting or self.running:
            self._begin_some()
            ended, _ = wait(self.running, SECONDS, FIRST_COMPLETED)
            died = False
            for future in ended:
                unit = self.running.pop(future)
                problem = problem_of(future)
                if problem is None:
                    self._has_ended(unit, future.result())
                else:
                    died |= is_death(problem)
                    self._has_failed(unit, problem)
            if died:
                self._a_worker_died()
            self._note()
            if self.problem is not None and not self.running:
                raise self.problem

    def _begin_some(self) -> None:
        if self.problem is not None or self._a_suspect_runs():
            return
        ready = sorted(
            (unit for unit in self.waiting.values() if all(self._is_there(n) for n in unit.needs)),
            key=lambda unit: (unit.key in self.suspects, -unit.cost),
        )
        for unit in ready:
            alone = unit.key in self.suspects
            if len(self.running) >= (1 if alone else self.workers.slots):
                break
            if not self._begin(unit) or alone:
                break

    def _begin(self, unit: Unit) -> bool:
        """Give a unit to the workers; tell whether they took it."""
        log.debug("%s: %s begins", self.title, unit.name)
        self._note(unit)
        try:
            future = self.workers.submit(do_unit, self.folder.absolute(), unit)
        except Exception as problem:
            if not is_death(problem):
                raise
            self._a_worker_died()  # while it had nothing to do
            return False
        del self.waiting[unit.key]
        self.running[future] = unit
        return True

    def _note(self, *begun: Unit) -> None:
        """Say how well it goes, and what is under way."""
        said = [] if self.best is None else [f"best {self.best[1]}"]
        names = [unit.name for unit in (*self.running.values(), *begun)]
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            said.append(f"now {', '.join(names[:MOST_NAMED])}{more}")
        self.bar.note("; ".join(said))

    def _a_suspect_runs(self) -> bool:
        return any(unit.key in self.suspects for unit in self.running.values())

    def _is_there(self, unit: Unit) -> bool:
        running = {one.key for one in self.running.values()}
        return unit.key not in self.waiting and unit.key not in running

    def _has_ended(self, unit: Unit, done: Done) -> None:
        self.suspects.discard(unit.key)
        words, value = done.how_well.words, done.how_well.value
        log.debug("%s: %s: %s, %.1f s", self.title, unit.name, words, done.seconds)
        if value is not None and (self.best is None or value > self.best[0]):
            self.best = (value, f"{words} ({unit.name})")
        self._note()
        self.bar.advance(1)

    def _has_failed(self, unit: Unit, problem: BaseException) -> None:
        self.failures[unit.key] += 1
        self.waiting[unit.key] = unit
        count = self.failures[unit.key]
        log.debug("%s: %s: failure %d: %s", self.title, unit.name, count, problem, exc_info=problem)
        if is_death(problem):
            self.suspects.add(unit.key)
            problem = RunError("the worker process died (killed, or out of memory)")
            if not self.workers.share_a_fate:  # Dask has tried it on several workers
                count = MOST_FAILURES
        elif isinstance(problem, RankiniteError) or _is_full_disk(problem):
            count = MOST_FAILURES
        elif count < MOST_FAILURES and self.problem is None:
            log.info("%s failed (%s) and is tried again", unit.name, problem)
        if count >= MOST_FAILURES and self.problem is None:
            self.problem = self._told(unit, problem)
            if self.running:
                n_units = len(self.running)
                words = "unit under way is" if n_units == 1 else f"{n_units} units under way are"
                log.info("%s failed; the run ends when the %s done", unit.name, words)

    def _a_worker_died(self) -> None:
        """Replace the workers; whatever ran beside the one that died has gone, too."""
        if self.problem is None:
            log.info("a worker died; its unit is tried again")
        if not self.workers.share_a_fate:
            return
        for future, unit in list(self.running.items()):
            if not future.done() or future.exception() is not None:
                del self.running[future]
                self.waiting[unit.key] = unit
                self.suspects.add(unit.key)
        self.workers.renew()

    def _told(self, unit: Unit, problem: BaseException) -> BaseException:
        """Return the error that ends a run, with the name of the unit."""
        if _is_full_disk(problem):
            return OSError(errno.ENOSPC, "no space is left", str(self.folder.path))
        goes_on = "all that is done is kept, and the same command goes on from there"
        if isinstance(problem, RunError):
            words = f"{problem}; {goes_on}"
        elif isinstance(problem, RankiniteError):
            words = str(problem)
        else:
            words = f"{type(problem).__name__}: {problem}; {goes_on}"
        count = self.failures[unit.key]
        times = f"failed {count} times" if count > 1 else "failed"
        error = RunError(f"{self.title}, {unit.name}: {times}: {words}")
        error.__cause__ = problem
        return error


def _is_full_disk(problem: BaseException) -> bool:
    return isinstance(problem, OSError) and problem.errno == errno.ENOSPC


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
        own = kinds.setdefault(RANKERS[fit.ranker].takes_binned, {})
        own.setdefault(_kind(fit), fit)
    begun = [
        workers.submit(try_out, folder.absolute(), list(own.values())) for own in kinds.values()
    ]
    with progress.start("compiling", len(begun), "kinds") as bar:
        for _ in as_completed(begun):
            bar.advance(1)
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
