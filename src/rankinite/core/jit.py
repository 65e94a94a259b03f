"""Compilation of kernels with numba: decorators, a cache on disk, and a message while compiling.

All kernels are compiled by the decorators of this module, lazily, for the types that they are
called with. Machine code is kept in a directory named by a hash of the sources that it was made
of, so that an edit, which numba itself would notice only in the file of the kernel, is never
answered with old code.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numba.core.event as events
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numpy.typing import NDArray

from rankinite.core.sources import all_sources, hash_of, with_imports

log = logging.getLogger("rankinite")

F = TypeVar("F", bound=Callable[..., Any])
Array = TypeVar("Array", bound=NDArray[Any])

prange = numba.prange

# Only ``prange`` loops are meant to be parallel: making array expressions parallel, too, takes long
# to compile.
AUTOMATIC = ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion")


def n_threads() -> int:
    """Return the number of threads that parallel kernels run on."""
    return int(numba.get_num_threads())


def frozen(array: Array) -> Array:
    """Return a read-only view.

    Numba compiles a kernel again for arrays that differ in being writeable: inputs of kernels are
    always frozen, so that there is one version of each.
    """
    view = array.view()
    view.flags.writeable = False
    return view


# Decorators


def kernel(function: F) -> F:
    """Compile a serial kernel; it releases the GIL."""
    return _compiled(function, parallel=False)


def inlined_kernel(function: F) -> F:
    """Compile a small kernel into every kernel that calls it."""
    return _compiled(function, parallel=False, forceinline=True)


def summing_kernel(function: F) -> F:
    """Compile a small kernel of sums over rows into every kernel that calls it.

    Sums may be reordered, and a product may be fused with the sum it is added to. Without this
    permission numbers must be added one by one, and the loop cannot be vectorised. The order
    depends on the processor and the length of the row, never on the number of threads.
    """
    return _compiled(function, parallel=False, forceinline=True, fastmath={"reassoc", "contract"})


def parallel_kernel(function: F) -> F:
    """Compile a kernel whose ``prange`` loops run on all threads."""
    return _compiled(function, parallel=True)


def _compiled(
    function: F,
    *,
    parallel: bool,
    forceinline: bool = False,
    fastmath: bool | set[str] = False,
) -> F:
    njit: Any = numba.njit  # its stub allows only True and False for parallel
    compiler: Any = njit(
        nogil=True,
        error_model="numpy",
        parallel={**dict.fromkeys(AUTOMATIC, False), "prange": True} if parallel else False,
        forceinline=forceinline,
        fastmath=fastmath,
    )
    dispatcher = compiler(function)
    if not config.DISABLE_JIT and cache_directory() is not None:
        dispatcher._cache = _KernelCache(function)
    return cast(F, dispatcher)


# Cache on disk

HOLDS_KERNELS = re.compile(r"^@\w*kernel$", re.MULTILINE)


@cache
def kernel_hash() -> str:
    """Return a hash of every source file that holds kernels, or that such a file imports."""
    return hash_of(
        with_imports(path for path, text in all_sources().items() if HOLDS_KERNELS.search(text))
    )


# Machine code of other versions is deleted when it was not used for this many days.
DAYS_KEPT = 30


@cache
def cache_directory() -> Path | None:
    """Return where compiled kernels are kept, or None if nothing can be written."""
    for parent in (_user_cache, _temporary_cache):
        try:
            directory = parent() / "kernels" / kernel_hash()
            directory.mkdir(parents=True, exist_ok=True)
            # A directory that can be listed may still be on a full or read-only disk.
            tempfile.TemporaryFile(dir=directory).close()
            os.utime(directory)
        except (OSError, RuntimeError) as problem:  # RuntimeError: a user without a home
            log.debug("kernels cannot be kept: %s", problem)
            continue
        _delete_old_versions(directory)
        return directory
    return None


def _user_cache() -> Path:
    configured = os.environ.get("RANKINITE_CACHE_DIR")
    if configured:
        return Path(configured)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "rankinite"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rankinite"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankinite"


def _temporary_cache() -> Path:
    """Return a directory that no other user can write to: the code in it is executed."""
    directory = Path(tempfile.gettempdir()) / f"rankinite-{_user_name()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.lstat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise PermissionError(f"{directory} belongs to, or can be written by, somebody else")
    return directory


def _user_name() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")


def _delete_old_versions(current: Path) -> None:
    horizon = time.time() - DAYS_KEPT * 24 * 3600
    for directory in current.parent.iterdir():
        with contextlib.suppress(OSError):  # another process may have been faster
            if directory != current and directory.stat().st_mtime < horizon:
                shutil.rmtree(directory, ignore_errors=True)


class _KernelLocator(_CacheLocator):  # type: ignore[misc]
    """Tells numba where a kernel is cached, and that the hash of sources is its version."""

    def __init__(self, module: str, line: int) -> None:
        self.module = module
        self.line = line

    @classmethod
    def from_function(cls, function: Callable[..., Any], _file: str) -> _KernelLocator:
        return cls(function.__module__, function.__code__.co_firstlineno)

    def get_cache_path(self) -> str:
        return str(cast(Path, cache_directory()) / self.module)

    def get_source_stamp(self) -> str:
        return kernel_hash()

    def get_disambiguator(self) -> str:
        return str(self.line)


class _KernelCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_KernelLocator]  # noqa: RUF012 the name and type are numba's


class _KernelCache(FunctionCache):  # type: ignore[misc]
    _impl_class = _KernelCacheImpl


# Messages

COMPILE_EVENT = "numba:compile"


class CompileListener(events.Listener):  # type: ignore[misc]
    """Logs that numba compiles; kernels that are loaded from the cache do not count."""

    def on_start(self, _event: Any) -> None:
        """Log it; the terminal shows the same sentence once."""
        log.info("compiling for the first use, which takes up to a minute")

    def on_end(self, _event: Any) -> None:
        """Log nothing."""


def log_compilation() -> None:
    """Log from now on when kernels are compiled."""
    events.register(COMPILE_EVENT, CompileListener())
