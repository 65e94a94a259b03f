"""Workers: who executes tasks, in this process, in processes of this machine, or on Dask."""

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
from rankinite.core.numerals import parse_whole
from rankinite.core.params import Whole, check

# Between two looks of a worker at its parent.
SECONDS = 0.5


def end_with(parent: int) -> None:
    """End this process as soon as the one that started it is gone, if it is not gone already.

    A killed run would otherwise leave workers behind, which keep the cores from the next run.
    Nothing is lost: the folder of an unfinished task does not exist yet, and the next run resumes
    from the checkpoint of its training.

    Parameters
    ----------
    parent
        Process id of that process.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    # A process whose parent is gone gets another one.
    while os.getppid() == parent:
        time.sleep(SECONDS)
    # sys.exit would end this thread alone.
    os._exit(1)


LOCAL = "local:"
THREADS = "RANKINITE_THREADS"
SECONDS_TO_ANSWER = 10.0
MOST_JOBS = 1024  # each is a process

T = TypeVar("T")


class Workers(Protocol):
    """What executes tasks.

    Attributes
    ----------
    slots
        Number of tasks at the same time.
    die_together
        Whether all workers are lost if one of them dies.
    """

    slots: int
    die_together: bool

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Submit a call."""

    def renew(self) -> None:
        """Replace workers after one of them died."""

    def close(self, *, kill: bool) -> None:
        """Release the workers; what they are executing is stopped if ``kill``."""


class InProcess:
    """The current process, one task after the other; parallel kernels use all threads."""

    slots = 1
    die_together = True

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Call at once, and return a future that is done."""
        future: Future[T] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as problem:
            future.set_exception(problem)
        return future

    def renew(self) -> None:
        """Do nothing: if this process dies, the run has died."""

    def close(self, *, kill: bool) -> None:
        """Do nothing."""


class Processes:
    """Processes on this machine, through joblib's executor.

    Parameters
    ----------
    slots
        Number of processes.
    threads
        Number of threads of each.
    """

    die_together = True

    def __init__(self, slots: int, threads: int) -> None:
        self.slots = slots
        self.threads = threads
        self.executor: Any = self._new()

    def _new(self) -> Executor:
        from joblib.externals.loky import ProcessPoolExecutor

        executor: Executor = ProcessPoolExecutor(
            self.slots,
            # Idle workers stay: a new one would import and map everything again.
            timeout=None,
            env={THREADS: str(self.threads)},
            initializer=set_up_worker,
            initargs=(os.getpid(),),
        )
        return executor

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Submit a call to one of the processes."""
        future: Future[T] = self.executor.submit(function, *arguments)
        return future

    def renew(self) -> None:
        """Start new processes."""
        # Others of the pool may still be working on tasks that will be submitted again.
        self.executor.shutdown(wait=True, kill_workers=True)
        self.executor = self._new()

    def close(self, *, kill: bool) -> None:
        """End the processes."""
        self.executor.shutdown(wait=True, kill_workers=kill)


def set_up_worker(parent: int) -> None:
    """Set up a worker process, which ends with the process that started it."""
    from joblib.externals.loky import process_executor

    # loky would take the pages of mapped files for a memory leak, and replace the worker.
    process_executor._USE_PSUTIL = False
    end_with(parent)


class Cluster:
    """The workers of a Dask cluster, which see the folder of the run under the same path.

    Parameters
    ----------
    address
        Address of a Dask scheduler, such as ``tcp://10.0.0.1:8786``; or ``local:4`` for a cluster
        of four processes on this machine.
    """

    die_together = False

    def __init__(self, address: str) -> None:
        distributed = _distributed()
        self.local: Any = None
        # Dask logs every connection; users of a run only need its errors.
        logging.getLogger("distributed").setLevel(logging.ERROR)
        if address.startswith(LOCAL):
            self.local = distributed.LocalCluster(
                n_workers=_n_workers(address),
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.ERROR,
                env={THREADS: "1"},
                # Dask would count the pages of shared mapped files once for each worker.
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
        # Dask would take calls with equal arguments for one, and the scheduler of the run counts
        # failures itself.
        self.executor: Any = self.client.get_executor(pure=False, retries=0)

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Submit a call to one of the workers."""
        future: Future[T] = self.executor.submit(call_alone, function, *arguments)
        return future

    def renew(self) -> None:
        """Do nothing: Dask replaces workers."""

    def close(self, *, kill: bool) -> None:
        """Disconnect from the cluster; end it if it was started here."""
        self.client.close()
        if self.local is not None:
            self.local.close()


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("dask.distributed", "cluster") from None
    return distributed


_worker_lock = threading.Lock()


def call_alone(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function; a worker with several threads executes one task at a time."""
    with _worker_lock:
        return function(*arguments)


def _n_workers(address: str) -> int:
    text = address.removeprefix(LOCAL)
    try:
        n_workers = parse_whole(text, signed=False)
    except ValueError:
        n_workers = 0
    if n_workers < 1:
        raise UsageError(f"--cluster {address}: expected a number of workers, as in local:4")
    return n_workers


def check_cluster(address: str) -> None:
    """Refuse an address of a cluster that is wrong by itself, without connecting."""
    _distributed()
    if address.startswith(LOCAL):
        _n_workers(address)


def new_workers(jobs: int | None, cluster: str | None) -> Workers:
    """Return the workers of a run.

    Parameters
    ----------
    jobs
        Number of tasks at the same time on this machine; one per core if None. The cores are
        divided among them: each has its share of threads, and at least one.
    cluster
        Address of a Dask cluster, instead.
    """
    if cluster is not None:
        if jobs is not None:
            raise UsageError("jobs are for this machine; a cluster has its own workers: say one")
        return Cluster(cluster)
    # Of this process: a container or taskset may allow fewer cores than the machine has.
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    slots = n_cores or 1
    if jobs is not None:
        check("run", "jobs", jobs, Whole(1, MOST_JOBS))
        slots = int(jobs)
    if slots == 1:
        return InProcess()
    # Results do not depend on the number of threads, so this is about speed only.
    return Processes(slots, max(1, (n_cores or 1) // slots))


@contextmanager
def opened(workers: Workers) -> Iterator[Workers]:
    """Release workers in the end; kill them if something went wrong."""
    try:
        yield workers
    except BaseException:
        workers.close(kill=True)
        raise
    workers.close(kill=False)


def problem_of(future: Future[Any]) -> BaseException | None:
    """Return the error of a call that has ended, if there was one."""
    try:
        return future.exception()
    except CancelledError:  # nothing here cancels calls, so Dask has lost its scheduler
        return RunError("the scheduler of the cluster is gone")


def is_death(problem: BaseException) -> bool:
    """Tell whether a worker died, rather than the task raising an error."""
    # By name: Dask may not be installed.
    return isinstance(problem, BrokenProcessPool) or type(problem).__name__ == "KilledWorker"
