"""The scheduler: executes tasks on all workers as soon as their dependencies are finished.

Before, `compile_kernels` lets two workers compile what all of them need; meanwhile, `logged_to`
writes what happens to the log of the run.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, as_completed, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankinite.core.errors import RankiniteError, RunError, UsageError
from rankinite.core.format import visible
from rankinite.core.progress import Progress, ProgressBar
from rankinite.models import RANKERS
from rankinite.runs.graph import with_dependencies
from rankinite.runs.inputs import inputs_of
from rankinite.runs.store import LOG, Store
from rankinite.runs.tasks import Fit, Task, TaskRecord, execute_task
from rankinite.runs.workers import Workers, is_death, problem_of

log = logging.getLogger("rankinite")

MOST_FAILURES = 3
# Names of running tasks in a line of progress.
MOST_NAMED = 4
# Time between two looks at finished tasks: the workers may die without finishing any.
SECONDS = 1.0


def execute(
    tasks: Iterable[Task], store: Store, workers: Workers, progress: Progress, title: str
) -> None:
    """Execute the tasks that are not finished, and their dependencies.

    A task that fails is tried again. After three failures the run ends with its error, once the
    running tasks are finished. Errors in data or usage are not tried again: they would only repeat.

    Parameters
    ----------
    tasks
        The tasks whose results are wanted.
    store
        The store of the run.
    workers
        The workers that execute them.
    progress, title
        Progress reporter, and the name of the work for it.
    """
    needed = with_dependencies(tasks)
    waiting = {key: task for key, task in needed.items() if not store.is_finished(key)}
    for key in needed:
        if key in waiting:
            # Whoever finishes a task keeps a folder that is there already, also a damaged one.
            store.remove(key)
        else:  # a run that was killed between finishing the task and this may have left it
            store.checkpoint(key).unlink(missing_ok=True)
    with progress.start(title, len(needed), "tasks") as bar:
        bar.advance(len(needed) - len(waiting))
        Scheduler(waiting, store, workers, bar, title).run()


class Scheduler:
    """Submits tasks to workers, longest first, and tries those again that fail by accident.

    Parameters
    ----------
    waiting
        Unfinished tasks by key, with all their unfinished dependencies.
    store, workers, bar, title
        The store, the workers, the progress bar, and the name of the work for messages.
    """

    def __init__(
        self,
        waiting: dict[str, Task],
        store: Store,
        workers: Workers,
        bar: ProgressBar,
        title: str,
    ) -> None:
        self.waiting = waiting
        self.store = store
        self.workers = workers
        self.bar = bar
        self.title = title
        self.running: dict[Future[TaskRecord], Task] = {}
        self.failures: Counter[str] = Counter()
        # Tasks that ran when a worker died. Each is tried alone, to see which of them kills it:
        # the others must not be blamed for it three times.
        self.suspects: set[str] = set()
        self.problem: BaseException | None = None
        self.best: tuple[float, str] | None = None

    def run(self) -> None:
        """Execute all tasks.

        Raises
        ------
        RunError
            If a task failed for good; the results of all others are kept.
        """
        while self.waiting or self.running:
            self._submit_ready()
            ended, _ = wait(self.running, SECONDS, FIRST_COMPLETED)
            # One death ends several futures at once; the workers are replaced once, after all of
            # them.
            a_worker_died = False
            for future in ended:
                task = self.running.pop(future)
                problem = problem_of(future)
                if problem is None:
                    self._handle_result(task, future.result())
                else:
                    a_worker_died |= is_death(problem)
                    self._handle_failure(task, problem)
            if a_worker_died:
                self._replace_workers()
            self._report_progress()
            if self.problem is not None and not self.running:
                raise self.problem

    def _submit_ready(self) -> None:
        if self.problem is not None or self._is_suspect_running():
            return
        # The longest first: started last, they would keep one worker busy while others idle.
        ready = sorted(
            (task for task in self.waiting.values() if self._is_ready(task)),
            key=lambda task: (task.key in self.suspects, -task.cost),
        )
        for task in ready:
            alone = task.key in self.suspects
            if len(self.running) >= (1 if alone else self.workers.slots):
                break
            if not self._submit(task) or alone:
                break

    def _submit(self, task: Task) -> bool:
        """Give a task to the workers; tell whether they took it."""
        log.debug("%s: %s begins", self.title, task.name)
        self._report_progress(task)
        try:
            future = self.workers.submit(execute_task, self.store.absolute(), task)
        except Exception as problem:
            if not is_death(problem):
                raise
            self._replace_workers()  # one died while it was idle
            return False
        del self.waiting[task.key]
        self.running[future] = task
        return True

    def _report_progress(self, *starting: Task) -> None:
        """Report the best value so far, and the tasks that are running."""
        notes = [] if self.best is None else [f"best {self.best[1]}"]
        names = [task.name for task in (*self.running.values(), *starting)]
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            notes.append(f"now {', '.join(names[:MOST_NAMED])}{more}")
        self.bar.note("; ".join(notes))

    def _is_suspect_running(self) -> bool:
        return any(task.key in self.suspects for task in self.running.values())

    def _is_ready(self, task: Task) -> bool:
        # Finished dependencies are neither waiting nor running; those before the start were never
        # in either.
        running = {other.key for other in self.running.values()}
        return all(
            other.key not in self.waiting and other.key not in running
            for other in task.dependencies
        )

    def _handle_result(self, task: Task, record: TaskRecord) -> None:
        self.suspects.discard(task.key)
        text, value = record.summary.text, record.summary.value
        log.debug("%s: %s: %s, %.1f s", self.title, task.name, text, record.seconds)
        if value is not None and (self.best is None or value > self.best[0]):
            self.best = (value, f"{text} ({task.name})")
        self._report_progress()
        self.bar.advance(1)

    def _handle_failure(self, task: Task, problem: BaseException) -> None:
        self.failures[task.key] += 1
        self.waiting[task.key] = task
        count = self.failures[task.key]
        log.debug("%s: %s: failure %d: %s", self.title, task.name, count, problem, exc_info=problem)
        if is_death(problem):
            self.suspects.add(task.key)
            problem = RunError("the worker process died (killed, or out of memory)")
            if not self.workers.die_together:  # Dask has tried it on several workers
                count = MOST_FAILURES
        elif isinstance(problem, RankiniteError) or _is_full_disk(problem):
            count = MOST_FAILURES
        elif count < MOST_FAILURES and self.problem is None:
            log.info("%s failed (%s) and is tried again", task.name, problem)
        # The first error counts; later ones are likely to follow from it.
        if count >= MOST_FAILURES and self.problem is None:
            self.problem = self._final_error(task, problem)
            if self.running:
                n_running = len(self.running)
                rest = "running task is" if n_running == 1 else f"{n_running} running tasks are"
                log.info("%s failed; the run ends when the %s finished", task.name, rest)

    def _replace_workers(self) -> None:
        """Replace the workers, and take back the tasks that died with them."""
        if self.problem is None:
            log.info("a worker died; its task is tried again")
        if not self.workers.die_together:
            return
        for future, task in list(self.running.items()):
            # A task that finished before the death has its result, and is handled in the next turn.
            if not future.done() or future.exception() is not None:
                del self.running[future]
                self.waiting[task.key] = task
                self.suspects.add(task.key)
        self.workers.renew()

    def _final_error(self, task: Task, problem: BaseException) -> BaseException:
        """Return the error that ends a run, with the name of the task."""
        if _is_full_disk(problem):
            return OSError(errno.ENOSPC, "no space is left", str(self.store.path))
        resume = "all finished tasks are kept, and the same command resumes from there"
        if isinstance(problem, RunError):
            sentence = f"{problem}; {resume}"
        elif isinstance(problem, RankiniteError):
            sentence = str(problem)
        else:
            sentence = f"{type(problem).__name__}: {problem}; {resume}"
        count = self.failures[task.key]
        times = f"failed {count} times" if count > 1 else "failed"
        error = RunError(f"{self.title}, {task.name}: {times}: {sentence}")
        error.__cause__ = problem
        return error


def _is_full_disk(problem: BaseException) -> bool:
    return isinstance(problem, OSError) and problem.errno == errno.ENOSPC


# Queries of a training that only compiles kernels.
QUERIES = 20
# Parameters that kernels do not depend on.
SIZES = ("n_trees", "n_epochs", "n_leaves", "random_state")


def compile_kernels(
    tasks: Iterable[Task], store: Store, workers: Workers, progress: Progress
) -> None:
    """Train each kind of model for one round: trees in one process, and nets in another.

    Compiled kernels are kept on disk, where all workers find them. Without this every worker would
    compile the same kernels at the same time.
    """
    # A single worker compiles nothing twice.
    if workers.slots == 1:
        return
    waiting = [t for t in with_dependencies(tasks).values() if not store.is_finished(t.key)]
    fits = [task.function for task in waiting if isinstance(task.function, Fit)]
    kinds: dict[bool, dict[str, Fit]] = {}
    for fit in fits:
        # Rankers of one kind share most kernels, so one process compiles for all of them.
        alike = kinds.setdefault(RANKERS[fit.ranker].takes_binned, {})
        alike.setdefault(_kind(fit), fit)
    futures = [
        workers.submit(train_one_round, store.absolute(), list(alike.values()))
        for alike in kinds.values()
    ]
    with progress.start("compiling", len(futures), "kinds") as bar:
        for _ in as_completed(futures):
            bar.advance(1)
    # Any other error is raised again by the task that does the same, with the task's name.
    if any(is_death(problem) for problem in map(problem_of, futures) if problem is not None):
        workers.renew()


def _kind(fit: Fit) -> str:
    """Return a text of all that the kernels of a training depend on."""
    parameters = {name: value for name, value in fit.parameters.items() if name not in SIZES}
    return json.dumps([fit.ranker, parameters])


def train_one_round(store: Store, fits: list[Fit]) -> None:
    """Train models for one round on a few queries; called in a worker process."""
    inputs = inputs_of(store)
    few = inputs.train[:QUERIES]
    for fit in fits:
        # Score features do not exist yet, and change no kernel.
        plain = replace(fit, features=None)
        rounds = "n_trees" if "n_trees" in fit.parameters else "n_epochs"
        ranker: Any = replace(plain, parameters={**fit.parameters, rounds: 1}).new_ranker()
        with contextlib.suppress(RankiniteError):  # of data too small for anything
            ranker.fit(few, valid=few, **plain.options(inputs))
            ranker.predict(few)


class _VisibleFormatter(logging.Formatter):
    """Writes records so that every character is seen, and only lines of tracebacks end."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        return visible(super().format(record), keep="\n")


class _LogFile(logging.FileHandler):
    """A log file; an error in writing it must not disturb the run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8")
        self.setFormatter(_VisibleFormatter("%(asctime)s %(message)s"))
        self.is_closed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; one of another thread that comes late does not open the file again."""
        if not self.is_closed:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 logging's name
        """Ignore the error."""

    def close(self) -> None:
        """Close the file, even if its last lines cannot be written."""
        self.acquire()
        self.is_closed = True
        self.release()
        with contextlib.suppress(OSError):
            super().close()


class _ParentHandler(logging.Handler):
    """Passes records to the parent logger's handlers, above a level of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on."""
        if log.parent is not None:
            log.parent.handle(record)


class _RunLogs:
    """The log files of the runs under way in this process.

    They need the level DEBUG of the logger, by which other handlers are filtered: from the first
    run to the last one, these get its former level.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_open = 0
        self._restore = contextlib.ExitStack()

    def add(self, file: _LogFile) -> None:
        """Write all records to a file from now on."""
        with self._lock:
            if self._n_open == 0:
                self._keep_levels()
            self._n_open += 1
            log.addHandler(file)

    def remove(self, file: _LogFile) -> None:
        """Write no more to a file."""
        with self._lock:
            log.removeHandler(file)
            self._n_open -= 1
            if self._n_open == 0:
                self._restore.close()
        file.close()

    def _keep_levels(self) -> None:
        level, propagate = log.getEffectiveLevel(), log.propagate
        for other in log.handlers:
            self._restore.callback(other.setLevel, other.level)
            other.setLevel(max(level, other.level))
        self._restore.callback(log.setLevel, log.level)
        log.setLevel(logging.DEBUG)
        self._restore.callback(setattr, log, "propagate", propagate)
        log.propagate = False
        if propagate:
            parent = _ParentHandler(level)
            log.addHandler(parent)
            self._restore.callback(log.removeHandler, parent)


_run_logs = _RunLogs()


@contextlib.contextmanager
def logged_to(store: Store) -> Iterator[None]:
    """Write all log records to the store; other handlers get the records that they got before."""
    path = store.path / LOG
    if path.is_symlink():  # which may lead to what the run reads
        raise UsageError(f"{path}: is a link; the log of a run is a file: remove the link")
    file = _LogFile(path)
    _run_logs.add(file)
    try:
        yield
    finally:
        _run_logs.remove(file)
