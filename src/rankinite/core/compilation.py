"""Compilations: a message when the first kernel is compiled, a count, and a second process.

Kernels that are loaded from the cache are not compiled, and those of other packages do not count.
This module does not import numba, so that the second process begins before the first one does.
"""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rankinite.core.jit import JIT_IS_OFF
from rankinite.core.kernel_cache import cache_directory
from rankinite.core.threads import available_cores

log = logging.getLogger("rankinite")

ABOUT_COMPILING = "compiling"  # the subject of the message; commands print it on a terminal only
PACKAGE = __name__.partition(".")[0]


class Compilations:
    """Counts our kernels that numba compiles, and tells of the first.

    Attributes
    ----------
    n_kernels, seconds
        Their number, and how long it took; a kernel that is compiled for another one counts, its
        time does not twice.
    is_told
        Whether the message was logged, or is not wanted.
    expected
        How long what has begun will compile, for the message.
    """

    def __init__(self) -> None:
        self.n_kernels = 0
        self.seconds = 0.0
        self.is_told = False
        self.expected = "a few seconds"
        self.started: list[float] = []

    def on_start(self, function: Callable[..., Any]) -> None:
        """Tell of the first, and note the time."""
        if not _is_ours(function):
            return
        self.started.append(time.perf_counter())
        # Workers compile at the same time: their parent process tells, if it compiles as well.
        if not self.is_told and not _is_worker():
            # A warning, so that it is seen without any set-up of logging: a first fit that says
            # nothing for a while looks as if it hung.
            log.warning(
                "compiling for the first use, which takes %s; 'rankinite warm-up' does it ahead "
                "of time",
                self.expected,
                extra={"about": ABOUT_COMPILING},
            )
        self.is_told = True

    def on_end(self, function: Callable[..., Any]) -> None:
        """Count it."""
        if not _is_ours(function) or not self.started:
            return
        self.n_kernels += 1
        start = self.started.pop()
        if not self.started:
            self.seconds += time.perf_counter() - start


def _is_ours(function: Callable[..., Any]) -> bool:
    return getattr(function, "__module__", "").partition(".")[0] == PACKAGE


def _is_worker() -> bool:
    """Tell whether another process of Python's multiprocessing started this one."""
    multiprocessing = sys.modules.get("multiprocessing")
    return multiprocessing is not None and multiprocessing.current_process().name != "MainProcess"


compilations = Compilations()


# A second process

COMPILE_AHEAD = "RANKINITE_COMPILE_AHEAD"
# How long a fit compiles if the cache is empty.
EXPECTED = "about 15 seconds"
_begun: dict[str, subprocess.Popen[bytes]] = {}


def compile_ahead(function: str, kernel: str) -> None:
    """Begin to compile in a second process what this one will need later, if it never was.

    Numba compiles on one core only. The process writes into the cache of kernels, where this one
    waits for what is under way; it ends by itself, and if it fails, this one compiles all.

    Parameters
    ----------
    function
        ``"module:name"`` of a function without arguments that calls the kernel.
    kernel
        Full name of the kernel; if the cache has it, for any types, there is nothing to do.
    """
    directory = cache_directory()
    if JIT_IS_OFF or directory is None or function in _begun or _is_worker():
        return
    if next(directory.glob(f"{kernel}-*.kernel"), None) is not None:
        return
    compilations.expected = EXPECTED
    if available_cores() < 2 or os.environ.get(COMPILE_AHEAD) == "0" or not _runs_python():
        return
    module, _, name = function.partition(":")
    # The same modules as here, wherever they were imported from.
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = _begun[function] = subprocess.Popen(
        [sys.executable, "-c", f"from {module} import {name}; {name}()"],
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(_let_go, process)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Leave a process that is still compiling to itself, instead of warning of it at the exit."""
    if process.poll() is None:
        process.returncode = 0


def _runs_python() -> bool:
    """Tell whether what runs this program is Python, and not a program that contains it."""
    is_bundled = getattr(sys, "frozen", False)
    return not is_bundled and Path(sys.executable or "").name.lower().startswith(("python", "pypy"))
