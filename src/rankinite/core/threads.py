"""One pool of threads for all kernels, and how many of them are used.

Kernels are serial and release the GIL; `parallel_for` calls one for ranges of queries, rows or
columns, on the threads of a persistent pool and on the calling thread. Results never depend on the
ranges, so they are the same for any number of threads.

The calling thread works as well, and waits only for ranges that another thread has begun. Hence
nothing waits for a thread that is busy elsewhere, or that a fork did not copy into the child: any
number of threads may call at once, and a child process works from its first call on. Waiting is
sleeping, so a busy machine slows a fit down in proportion.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from rankinite.core.errors import UsageError

VARIABLE = "RANKINITE_THREADS"
# Ranges for each thread, so that one that is held up leaves its later ranges to the others.
RANGES_PER_THREAD = 4


# How many threads


class _Budget(threading.local):
    """Number of threads that the calling thread may use; None if nothing says so."""

    n_threads: int | None = None


_budget = _Budget()
_process_budget: int | None = None


def n_threads() -> int:
    """Return the number of threads that work of the calling thread is spread over.

    That is the number of the innermost `threads` block, else of `set_threads`, else of the
    environment variable ``RANKINITE_THREADS``, else of the cores that this process may use.
    """
    return _budget.n_threads or _process_budget or _usual_threads()


def set_threads(n: int | None) -> None:
    """Set how many threads training, scoring and evaluation use in this process.

    Results do not depend on it.

    Parameters
    ----------
    n
        Number of threads, at least 1; None for all cores that this process may use, or what the
        environment variable ``RANKINITE_THREADS`` says.

    Examples
    --------
    >>> import rankinite as rk
    >>> rk.set_threads(1)
    >>> rk.n_threads()
    1
    >>> rk.set_threads(None)
    """
    global _process_budget
    _process_budget = None if n is None else _checked(n, "set_threads")


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Use this many threads for what the calling thread does in a ``with`` block.

    Parameters
    ----------
    n
        Number of threads, at least 1.

    Examples
    --------
    >>> import rankinite as rk
    >>> with rk.threads(1):
    ...     rk.n_threads()
    1
    """
    before = _budget.n_threads
    _budget.n_threads = _checked(n, "threads")
    try:
        yield
    finally:
        _budget.n_threads = before


def _checked(n: object, where: str) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__") or n.__index__() < 1:
        raise UsageError(f"{where}: the number of threads is {n!r}; expected a whole number from 1")
    return int(n.__index__())


@cache
def _usual_threads() -> int:
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return available_cores()
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UsageError(
            f"the environment variable {VARIABLE} is {text!r}; expected a whole number from 1"
        )
    return int(text)


def available_cores() -> int:
    """Return how many cores this process may use, by its affinity and its control group."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, math.ceil(min(cores, _cpu_quota(Path("/")))))


def _cpu_quota(root: Path) -> float:
    """Return how many cores the control groups of this process allow; infinity if any number.

    A container's own group is mounted as the top; elsewhere each group up to the top may have a
    limit.
    """
    quotas = [math.inf]
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return math.inf
    for line in lines:
        _, _, line = line.partition(":")
        controllers, _, group = line.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        folder = mount / group.strip("/")
        while folder.is_relative_to(mount):
            quotas.append(_quota_of(folder))
            folder = folder.parent
    return min(quotas)


def _quota_of(folder: Path) -> float:
    """Return the limit that one control group has, of version 2 or 1, in cores."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        cores = float(quota) / float(period)
    except (OSError, ValueError, ZeroDivisionError):  # "max" is no number: there is no limit
        return math.inf
    return cores if cores > 0 else math.inf


# The pool


def parallel_for(
    compute: Callable[..., object], n: int, *arguments: Any, grain: int = 1, most: int = 0
) -> None:
    """Call ``compute(first, last, *arguments)`` for ranges that together are 0 to n - 1.

    Parameters
    ----------
    compute
        A kernel or function that releases the GIL; its result must not depend on the ranges.
    n
        Number of things to compute.
    arguments
        Passed on.
    grain
        Fewer things than this are not worth another thread.
    most
        Number of threads at most; 0 for `n_threads`.
    """
    n_workers = min(most or n_threads(), n // max(grain, 1))
    if n_workers <= 1:
        if n > 0:
            compute(0, n, *arguments)
        return
    n_ranges = min(n_workers * RANGES_PER_THREAD, n // max(grain, 1))
    bounds = [n * k // n_ranges for k in range(n_ranges + 1)]
    job = _Job(compute, arguments, list(pairwise(bounds)))
    _pool().help_with(job, n_workers - 1)
    job.finish()


class _Job:
    """Ranges of work that several threads take from.

    Attributes
    ----------
    ranges
        Those that nobody has begun, the next one last.
    n_working
        Number of other threads that are at it.
    """

    def __init__(
        self,
        compute: Callable[..., object],
        arguments: tuple[Any, ...],
        ranges: list[tuple[int, int]],
    ) -> None:
        self.compute = compute
        self.arguments = arguments
        self.ranges = ranges[::-1]
        self.n_working = 0
        self.error: BaseException | None = None
        self.lock = threading.Lock()
        # Held until the last of the other threads has left.
        self.others_left = threading.Lock()

    def work(self) -> None:
        """Compute ranges until there are none; an error ends that and is kept for the caller."""
        compute, arguments = self.compute, self.arguments
        try:
            while (bounds := self._next_range()) is not None:
                compute(*bounds, *arguments)
        except BaseException as error:
            self.ranges.clear()
            self.error = self.error or error

    def _next_range(self) -> tuple[int, int] | None:
        # Asking whether there is one first would leave time for another thread to take it.
        try:
            return self.ranges.pop()
        except IndexError:
            return None

    def help(self) -> None:
        """Work on another thread than the caller's."""
        with self.lock:
            if not self.ranges:
                return
            self.n_working += 1
            if self.n_working == 1:
                self.others_left.acquire()
        self.work()
        with self.lock:
            self.n_working -= 1
            if self.n_working == 0:
                self.others_left.release()

    def finish(self) -> None:
        """Work on the caller's thread, and return when all is done."""
        try:
            self.work()
            with self.others_left:
                pass
        except BaseException:
            # Ctrl-C: what others have begun is waited for, because they write into arrays.
            self.ranges.clear()
            with self.others_left:
                pass
            raise
        if self.error is not None:
            raise self.error


class _Pool:
    """Threads that wait for jobs; there are never more than were asked for at once."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self.n_threads = 0
        self.lock = threading.Lock()

    def help_with(self, job: _Job, n_helpers: int) -> None:
        """Wake up threads that take ranges of a job, as far as they are free."""
        if self.n_threads < n_helpers:
            self._add_threads(n_helpers)
        for _ in range(n_helpers):
            self.jobs.put(job)

    def _add_threads(self, n: int) -> None:
        with self.lock:
            while self.n_threads < n:
                # Daemons, because the interpreter must not wait for them when it exits.
                threading.Thread(target=self._serve, name="rankinite", daemon=True).start()
                self.n_threads += 1

    def _serve(self) -> None:
        # What a kernel's caller computes in turn stays on this thread.
        _budget.n_threads = 1
        while True:
            self.jobs.get().help()


_current_pool: _Pool | None = None
_pool_lock = threading.Lock()


def _pool() -> _Pool:
    global _current_pool
    if _current_pool is None:
        with _pool_lock:
            if _current_pool is None:
                _current_pool = _Pool()
    return _current_pool


def _forget_pool() -> None:
    """Begin anew in the child of a fork, which has none of its parent's threads."""
    global _current_pool, _pool_lock
    _current_pool = None
    _pool_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
