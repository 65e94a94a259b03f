"""Worker processes whose run was killed: they end, so that the next run has the cores."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from rankinite.core.errors import MissingExtraError, RunError, UsageError
from rankinite.core.params import Whole, check

SECONDS = 0.5


def end_with(parent: int) -> None:
    """End this process as soon as the one that started it is gone, if it is not gone already.

    Nothing is lost: what a unit has not finished is not there, and the next run goes on from the
    checkpoint of its training.

    Parameters
    ----------
    parent
        The number of that process.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS)
    os._exit(1)


LOCAL = "local:"
THREADS = "NUMBA_NUM_THREADS"
SECONDS_TO_ANSWER = 10.0

T = TypeVar("T")


class Workers(Protocol):
    """Who does units of work.

    Attributes
    ----------
    slots
        How many at once.
    share_a_fate
        Whether all go if one of them dies.
    """

    slots: int
    share_a_fate: bool

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Begin a piece of work."""

    def renew(self) -> None:
        """Replace workers after one of them died."""

    def close(self, *, kill: bool) -> None:
        """Let workers go; whatever they do is stopped if ``kill``."""


class InProcess:
    """The process itself, one unit after the other; parallel kernels have all threads."""

    slots = 1
    share_a_fate = True

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Do a piece of work at once."""
        future: Future[T] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as problem:
            future.set_exception(problem)
        return future

    def renew(self) -> None:
        """Do nothing: if this process dies, nobody is left to ask."""

    def close(self, *, kill: bool) -> None:
        """Do nothing."""


class Processes:
    """Processes on this machine, through joblib's executor.

    Parameters
    ----------
    slots
        How many.
    threads
        How many threads each may use.
    """

    share_a_fate = True

    def __init__(self, slots: int, threads: int) -> None:
        self.slots = slots
        self.threads = threads
        self.executor: Any = self._new()

    def _new(self) -> Executor:
        from joblib.externals.loky import ProcessPoolExecutor

        made: Executor = ProcessPoolExecutor(
            self.slots,
            timeout=None,
            env={THREADS: str(self.threads)},
            initializer=begin_work,
            initargs=(os.getpid(),),
        )
        return made

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Give a piece of work to one of the processes."""
        future: Future[T] = self.executor.submit(function, *arguments)
        return future

    def renew(self) -> None:
        """Start new processes."""
        self.executor.shutdown(wait=True, kill_workers=True)
        self.executor = self._new()

    def close(self, *, kill: bool) -> None:
        """End the processes."""
        self.executor.shutdown(wait=True, kill_workers=kill)


def begin_work(parent: int) -> None:
    """Set up a worker process, which ends with the process that started it."""
    from joblib.externals.loky import process_executor

    # It would take the pages of mapped files for a leak, and replace the worker.
    process_executor._USE_PSUTIL = False
    end_with(parent)


class Cluster:
    """The workers of a Dask cluster, which see the folder of the run under the same path.

    Parameters
    ----------
    address
        Of a scheduler, such as ``tcp://10.0.0.1:8786``; or ``local:4`` for a cluster of four
        processes on this machine.
    """

    share_a_fate = False

    def __init__(self, address: str) -> None:
        distributed = _distributed()
        self.local: Any = None
        # Of what it does, only errors are our user's business.
        logging.getLogger("distributed").setLevel(logging.ERROR)
        if address.startswith(LOCAL):
            self.local = distributed.LocalCluster(
                n_workers=_number(address),
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.ERROR,
                env={THREADS: "1"},
                # It would count the pages of files that all workers share, once for each.
                memory_limit=0,
            )
        try:
            self.client: Any = distributed.Client(self.local or address, timeout=SECONDS_TO_ANSWER)
        except (OSError, ValueError) as problem:
            raise UsageError(
                f"--cluster {address}: no scheduler answers there ({problem}); give the address "
                "of a Dask scheduler, or local:4"
            ) from None
        try:
            self.client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
        except TimeoutError:
            self.close(kill=True)
            raise UsageError(
                f"--cluster {address}: the scheduler has no workers; start some with: dask worker "
                f"{address}"
            ) from None
        self.slots = max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))
        self.executor: Any = self.client.get_executor(pure=False, retries=0)

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Give a piece of work to one of the workers."""
        future: Future[T] = self.executor.submit(do_alone, function, *arguments)
        return future

    def renew(self) -> None:
        """Do nothing: Dask replaces workers."""

    def close(self, *, kill: bool) -> None:
        """Leave the cluster; end it if it is our own."""
        self.client.close()
        if self.local is not None:
            self.local.close()


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("dask.distributed", "cluster") from None
    return distributed


_one_at_a_time = threading.Lock()


def do_alone(function: Callable[..., T], *arguments: Any) -> T:
    """Do a piece of work; a worker with several threads does one at a time."""
    with _one_at_a_time:
        return function(*arguments)


def _number(address: str) -> int:
    text = address.removeprefix(LOCAL)
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"--cluster {address}: expected a number of workers, as in local:4")
    return int(text)


def check_cluster(address: str) -> None:
    """Refuse what can be seen to be wrong with the address of a cluster before it is asked."""
    _distributed()
    if address.startswith(LOCAL):
        _number(address)


def new_workers(jobs: int | None, cluster: str | None) -> Workers:
    """Return who does the units.

    Parameters
    ----------
    jobs
        How many at once on this machine; as many as there are cores if None. The cores are shared
        out among them: each has its share of threads, and one at least.
    cluster
        The address of a Dask cluster instead.
    """
    if cluster is not None:
        if jobs is not None:
            raise UsageError("jobs are for this machine; a cluster has its own workers: say one")
        return Cluster(cluster)
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    slots = n_cores or 1
    if jobs is not None:
        check("run", "jobs", jobs, Whole(1))
        slots = int(jobs)
    if slots == 1:
        return InProcess()
    return Processes(slots, max(1, (n_cores or 1) // slots))


@contextmanager
def opened(workers: Workers) -> Iterator[Workers]:
    """Let workers go in the end; at once if something went wrong."""
    try:
        yield workers
    except BaseException:
        workers.close(kill=True)
        raise
    workers.close(kill=False)


def problem_of(future: Future[Any]) -> BaseException | None:
    """Return what went wrong with a piece of work that has ended, if something did."""
    try:
        return future.exception()
    except CancelledError:  # nobody here cancels anything
        return RunError("the scheduler of the cluster is gone")


def is_death(problem: BaseException) -> bool:
    """Tell whether a worker died, other than an error of the unit."""
    return isinstance(problem, BrokenProcessPool) or type(problem).__name__ == "KilledWorker"
