"""Ranges of work on several Python threads, for serial kernels that release the GIL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def in_threads(compute: Callable[[int, int], None], n: int, n_workers: int) -> None:
    """Compute ``n`` things, a range from begin to end - 1 on each thread.

    Unlike numba's threads, these survive callers that are concurrent themselves. Results must not
    depend on the ranges.
    """
    bounds = [n * k // n_workers for k in range(n_workers + 1)]
    if n_workers == 1:
        compute(0, n)
        return
    with ThreadPoolExecutor(n_workers) as workers:
        # A list, because errors of the threads are raised only where their results are read.
        list(workers.map(compute, bounds, bounds[1:]))
